//! What Prometheus is told. What requests count are atomic words made at the start; what the policy has counted is read when
//! somebody asks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use metrics::{Counter, Gauge, Key, Label, Level, Metadata, Recorder, with_local_recorder};
use tidegate::notify::Metrics as Counted;
use tidegate::policy::Verdict;

use super::App;
use super::exposition::Registry;

static METADATA: Metadata<'static> = Metadata::new("tidegate", Level::INFO, None);

/// Who asks for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Check,
    Auth,
}

/// What requests are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Check,
    Auth,
    Health,
    Metrics,
    Offenders,
    Other,
}

impl Endpoint {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Check, "check"),
        (Self::Auth, "auth"),
        (Self::Health, "health"),
        (Self::Metrics, "metrics"),
        (Self::Offenders, "offenders"),
        (Self::Other, "other"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Of a path.
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/check" => Self::Check,
            "/auth" => Self::Auth,
            "/health" => Self::Health,
            "/metrics" => Self::Metrics,
            "/offenders" => Self::Offenders,
            path if path.starts_with("/auth/") => Self::Auth,
            _ => Self::Other,
        }
    }
}

/// The statuses that answers have.
const STATUSES: [StatusCode; 13] = [
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Everything that is counted.
pub(super) struct Metrics {
    registry: Registry,
    /// By the policy.
    counted: Counted,
    started: Instant,
    uptime: Gauge,
    /// By endpoint and status, with one place for those that are not among [`STATUSES`].
    answers: [[OnceLock<Counter>; STATUSES.len() + 1]; Endpoint::ALL.len()],
    /// By who asked, then allowed and refused.
    checks: [[Counter; 2]; 2],
    /// By who asked.
    unmatched: [Counter; 2],
    lacking: Counter,
    pub(super) connections: Connections,
    pub(super) accepted: Counter,
    pub(super) broken: Counter,
    pub(super) accept_errors: Counter,
    pub(super) reloads: Counter,
    pub(super) reload_failures: Counter,
    /// Told as they are.
    _constant: [Gauge; 2],
}

/// Connections that are open.
pub(super) struct Connections {
    open: AtomicU64,
    told: Gauge,
}

impl Connections {
    pub(super) fn add(&self) {
        // ORDERING: Relaxed: it is a count, and orders nothing.
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove(&self) {
        // ORDERING: Relaxed: as above.
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn open(&self) -> u64 {
        // ORDERING: Relaxed: as above.
        self.open.load(Ordering::Relaxed)
    }
}

impl Metrics {
    pub(super) fn new() -> Self {
        let registry = Registry::default();
        describe(&registry);
        let counter = |name, labels: &[(&'static str, &'static str)]| {
            registry.register_counter(&key(name, labels), &METADATA)
        };
        let gauge = |name, labels: &[(&'static str, &'static str)]| {
            registry.register_gauge(&key(name, labels), &METADATA)
        };
        let check = |endpoint, outcome| {
            counter("tidegate_checks_total", &[("endpoint", endpoint), ("outcome", outcome)])
        };
        let outcomes = |endpoint| [check(endpoint, "allowed"), check(endpoint, "refused")];
        let unmatched = |endpoint| counter("tidegate_unmatched_total", &[("endpoint", endpoint)]);
        let version = gauge("tidegate_build_info", &[("version", env!("CARGO_PKG_VERSION"))]);
        version.set(1.0);
        let start = gauge("tidegate_start_time_seconds", &[]);
        start.set(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));
        Self {
            counted: Counted::new(),
            started: Instant::now(),
            uptime: gauge("tidegate_uptime_seconds", &[]),
            answers: Default::default(),
            checks: [outcomes("check"), outcomes("auth")],
            unmatched: [unmatched("check"), unmatched("auth")],
            lacking: counter("tidegate_auth_lacking_total", &[]),
            connections: Connections { open: AtomicU64::new(0), told: gauge("tidegate_connections", &[]) },
            accepted: counter("tidegate_connections_accepted_total", &[]),
            broken: counter("tidegate_connections_broken_total", &[]),
            accept_errors: counter("tidegate_accept_errors_total", &[]),
            reloads: counter("tidegate_policy_reloads_total", &[]),
            reload_failures: counter("tidegate_policy_reload_failures_total", &[]),
            _constant: [version, start],
            registry,
        }
    }

    /// An answer went out.
    pub(super) fn answered(&self, endpoint: Endpoint, status: StatusCode) {
        let known = STATUSES.iter().position(|known| *known == status);
        let counter = self.answers[endpoint as usize][known.unwrap_or(STATUSES.len())].get_or_init(|| {
            let status = known.map_or("other".to_owned(), |_| status.as_str().to_owned());
            let labels =
                vec![Label::from_static_parts("endpoint", endpoint.name()), Label::new("status", status)];
            let key = Key::from_parts("tidegate_http_requests_total", labels);
            self.registry.register_counter(&key, &METADATA)
        });
        counter.increment(1);
    }

    /// The policy has decided.
    pub(super) fn decided(&self, by: Asked, verdict: &Verdict) {
        self.checks[by as usize][usize::from(!verdict.is_allowed())].increment(1);
        if !verdict.is_matched() {
            self.unmatched[by as usize].increment(1);
        }
    }

    /// A request to `/auth` was not decided.
    pub(super) fn lacked(&self) {
        self.lacking.increment(1);
    }

    /// All of it as text.
    pub(super) fn text(&self, app: &App) -> String {
        self.uptime.set(self.started.elapsed().as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "there are not so many")]
        self.connections.told.set(self.connections.open() as f64);
        with_local_recorder(&self.registry, || self.publish(app));
        self.registry.text()
    }

    /// Has all those tell what they have counted who count by themselves.
    fn publish(&self, app: &App) {
        self.counted.publish(&app.policy);
        #[cfg(feature = "webhook")]
        if let Some(webhooks) = &app.webhooks {
            self.counted.publish_webhooks(&webhooks.webhooks);
        }
    }
}

fn key(name: &'static str, labels: &[(&'static str, &'static str)]) -> Key {
    let labels = labels.iter().map(|(name, value)| Label::from_static_parts(name, value)).collect::<Vec<_>>();
    Key::from_parts(name, labels)
}

/// Says of each series what it is.
fn describe(registry: &Registry) {
    with_local_recorder(registry, Counted::describe);
    for (name, says) in [
        ("tidegate_checks_total", "Requests that the policy decided for clients"),
        ("tidegate_unmatched_total", "Of them, those that no rule was about"),
        ("tidegate_http_requests_total", "Answers by endpoint and status"),
        ("tidegate_auth_lacking_total", "Requests to /auth that lacked a part that nothing stood in for"),
        ("tidegate_connections_accepted_total", "Connections so far"),
        ("tidegate_connections_broken_total", "Connections that ended in an error or a time limit"),
        ("tidegate_accept_errors_total", "Connections that the system could not give us"),
        ("tidegate_policy_reloads_total", "Policies put in force since the start"),
        ("tidegate_policy_reload_failures_total", "Policies that were not put in force"),
    ] {
        registry.describe_counter(name.into(), None, says.into());
    }
    for (name, says) in [
        ("tidegate_connections", "Connections that are open"),
        ("tidegate_build_info", "What runs"),
        ("tidegate_start_time_seconds", "When it was started, in seconds since 1970"),
        ("tidegate_uptime_seconds", "Time since the start"),
    ] {
        registry.describe_gauge(name.into(), None, says.into());
    }
}

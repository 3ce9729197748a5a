//! What Prometheus is told. Counters of requests and checks are atomic words made at the start; only a refusal looks one up.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tidegate::policy::Verdict;

/// The type of what is told: the text format of OpenMetrics, which Prometheus reads.
pub(super) const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels<const N: usize> = [(&'static str, String); N];

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
    Other,
}

impl Endpoint {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Check, "check"),
        (Self::Auth, "auth"),
        (Self::Health, "health"),
        (Self::Metrics, "metrics"),
        (Self::Other, "other"),
    ];

    /// Of a path.
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/check" => Self::Check,
            "/auth" => Self::Auth,
            "/health" => Self::Health,
            "/metrics" => Self::Metrics,
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
    started: Instant,
    uptime: Gauge<f64, AtomicU64>,
    requests: Family<Labels<2>, Counter>,
    /// By endpoint and status; the same counters as in `requests`.
    known: [[std::sync::OnceLock<Counter>; STATUSES.len()]; Endpoint::ALL.len()],
    /// By who asked, then allowed and refused.
    checks: [[Counter; 2]; 2],
    /// By who asked.
    unmatched: [Counter; 2],
    refusals: Family<Labels<1>, Counter>,
    lacking: Counter,
    pub(super) connections: Gauge<i64, AtomicI64>,
    pub(super) accepted: Counter,
    pub(super) broken: Counter,
    pub(super) accept_errors: Counter,
    pub(super) reloads: Counter,
    pub(super) reload_failures: Counter,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        let checks = Family::<Labels<2>, Counter>::default();
        let check = |endpoint: &str, outcome: &str| {
            let labels = [("endpoint", endpoint.to_owned()), ("outcome", outcome.to_owned())];
            checks.get_or_create(&labels).clone()
        };
        let outcomes = |endpoint: &str| [check(endpoint, "allowed"), check(endpoint, "refused")];
        let unmatched = Family::<Labels<1>, Counter>::default();
        let unmatched_by =
            |endpoint: &str| unmatched.get_or_create(&[("endpoint", endpoint.to_owned())]).clone();
        let metrics = Self {
            started: Instant::now(),
            uptime: Gauge::default(),
            requests: Family::default(),
            known: Default::default(),
            checks: [outcomes("check"), outcomes("auth")],
            unmatched: [unmatched_by("check"), unmatched_by("auth")],
            refusals: Family::default(),
            lacking: Counter::default(),
            connections: Gauge::default(),
            accepted: Counter::default(),
            broken: Counter::default(),
            accept_errors: Counter::default(),
            reloads: Counter::default(),
            reload_failures: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("checks", "Requests that the policy decided", checks);
        registry.register("unmatched", "Of them, those that no rule was about", unmatched);
        registry.register("refusals", "Refused requests by each rule that refuses", metrics.refusals.clone());
        registry.register("http_requests", "Answers by endpoint and status", metrics.requests.clone());
        let lacking = metrics.lacking.clone();
        registry.register(
            "auth_lacking",
            "Requests to /auth that lacked a part that nothing stood in for",
            lacking,
        );
        registry.register("connections", "Connections that are open", metrics.connections.clone());
        registry.register("connections_accepted", "Connections so far", metrics.accepted.clone());
        let broken = metrics.broken.clone();
        registry.register("connections_broken", "Connections that ended in an error or a time limit", broken);
        let errors = metrics.accept_errors.clone();
        registry.register("accept_errors", "Connections that the system could not give us", errors);
        registry.register("policy_reloads", "Policies put in force since the start", metrics.reloads.clone());
        let failures = metrics.reload_failures.clone();
        registry.register("policy_reload_failures", "Policies that were not put in force", failures);
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What runs", version);
        registry.register("uptime_seconds", "Time since the start", metrics.uptime.clone());
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));
        registry.register("start_time_seconds", "When it was started, in seconds since 1970", start);
        Self { registry, ..metrics }
    }

    /// An answer went out.
    pub(super) fn answered(&self, endpoint: Endpoint, status: StatusCode) {
        let make = || {
            let name =
                Endpoint::ALL.iter().find(|(known, _)| *known == endpoint).map_or("", |(_, name)| name);
            let labels = [("endpoint", name.to_owned()), ("status", status.as_str().to_owned())];
            self.requests.get_or_create(&labels).clone()
        };
        match STATUSES.iter().position(|known| *known == status) {
            Some(at) => self.known[endpoint as usize][at].get_or_init(make).inc(),
            None => make().inc(),
        };
    }

    /// The policy has decided.
    pub(super) fn decided(&self, by: Asked, verdict: &Verdict) {
        self.checks[by as usize][usize::from(!verdict.is_allowed())].inc();
        if !verdict.is_matched() {
            self.unmatched[by as usize].inc();
        }
        if !verdict.is_allowed() {
            for rule in verdict.refusing() {
                self.refusals.get_or_create(&[("rule", rule.name().to_owned())]).inc();
            }
        }
    }

    /// A request to `/auth` was not decided.
    pub(super) fn lacked(&self) {
        self.lacking.inc();
    }

    /// All of it as text.
    pub(super) fn text(&self) -> String {
        self.uptime.set(self.started.elapsed().as_secs_f64());
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = encode(&mut text, &self.registry);
        text
    }
}

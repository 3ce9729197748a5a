//! `tidegate serve`: a policy behind HTTP.
//!
//! ```text
//! accept       connections as they come, and each request of them in time; places: how many at a time
//! connection   one of them: HTTP/1.1 or HTTP/2, and an end for who is too slow
//! routes       which path is answered by what
//! check        POST /check; input: its body; json: the same as it was written
//! auth         /auth, for proxies
//! offenders    GET /offenders, for who has a token
//! events       what happens to keys, for the log
//! problem      errors as clients are told them
//! reload       other rules; advice: those that /auth does not serve as they seem to ask
//! stop         signals
//! webhooks     who is told what happened
//! bounds · metrics (exposition: their text) · log (lossy: nobody waits for who reads it)
//! ```
//!
//! Requests are decided where they are read, by one call that waits for nobody; the only thing that a request may wait for is
//! its own body.

mod accept;
mod advice;
mod auth;
mod bounds;
mod check;
mod connection;
mod events;
mod exposition;
mod input;
mod json;
mod log;
mod lossy;
mod metrics;
mod offenders;
mod places;
mod problem;
mod reload;
mod routes;
mod stop;
#[cfg(feature = "webhook")]
mod webhooks;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use advice::Given;
pub use auth::{Original, Reading};
pub use bounds::{Bounds, HEADER_BYTES_MIN};
pub use log::LogFormat;
use metrics::Metrics;
pub use offenders::{AdminToken, TOKEN_BYTES_MAX};
use stop::Signals;
use tidegate::http::Answering;
use tidegate::notify::Log;
use tidegate::policy::{EventSettings, Policy, Rules};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

#[cfg(feature = "webhook")]
pub use webhooks::{Wanted as Webhooks, read as read_webhooks};

use crate::key::printable;

/// What the server is asked to be.
#[derive(Debug)]
pub struct Settings {
    /// The rules to begin with.
    pub rules: Rules,
    /// The file that they are from; none for those that come with tidegate.
    pub file: Option<PathBuf>,
    /// Whether to follow the file.
    pub follows: bool,
    /// Where to listen.
    pub listen: SocketAddr,
    /// How requests to `/auth` are read.
    pub reading: Reading,
    /// How verdicts are told to clients.
    pub answering: Answering,
    /// What clients may take.
    pub bounds: Bounds,
    /// Who is told what happened.
    #[cfg(feature = "webhook")]
    pub webhooks: Option<Webhooks>,
    /// How the log is written.
    pub log: LogFormat,
    /// Whether the log is coloured where it is text.
    pub is_coloured: bool,
    /// Whether the log tells keys, or only their fingerprints.
    pub logs_keys: bool,
    /// What `/offenders` asks for; without one there is no such path.
    pub admin_token: Option<AdminToken>,
}

/// What all requests share.
struct App {
    policy: Arc<Policy>,
    answering: Answering,
    reading: Reading,
    bounds: Bounds,
    metrics: Metrics,
    /// What happens to keys, for the log.
    events: Log,
    /// The same, for whom it concerns.
    #[cfg(feature = "webhook")]
    webhooks: Option<webhooks::Telling>,
    admin_token: Option<AdminToken>,
    /// Places for requests that are under way.
    places: places::Places,
    /// Whether those who ask are told that the server stops; it may go on for a while.
    announced: watch::Sender<bool>,
    /// Whether connections are to end.
    stopping: connection::Stopping,
}

impl App {
    /// Endpoints that are told what happened.
    fn webhook_endpoints(&self) -> usize {
        #[cfg(feature = "webhook")]
        let endpoints = self.webhooks.as_ref().map_or(0, webhooks::Telling::endpoints);
        #[cfg(not(feature = "webhook"))]
        let endpoints = 0;
        endpoints
    }
}

/// Serves until a signal stops it; the status to end with.
///
/// # Errors
/// What kept the server from its beginning, in words.
pub fn run(settings: Settings) -> Result<u8, String> {
    let log = log::begin(settings.log, settings.is_coloured).map_err(|error| format!("no log: {error}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    let status = serve(&runtime, settings);
    // What still runs was told to stop, and had its time.
    runtime.shutdown_background();
    drop(log);
    status
}

fn serve(runtime: &Runtime, settings: Settings) -> Result<u8, String> {
    let (stop, stopping) = watch::channel(false);
    let mut bounds = settings.bounds;
    bounds.connections_max = affordable(bounds.connections_max);
    // The rules themselves go into the policy.
    let count = settings.rules.rules.len();
    settings.reading.given.tell(&settings.rules.rules);
    let policy = Policy::builder(settings.rules).events(EventSettings::new()).build();
    let policy = policy.map_err(|error| format!("the policy: {error}"))?;
    let events = Log::new().map_err(|error| format!("the log: {error}"))?;
    let events = if settings.logs_keys { events } else { events.without_keys() };
    let policy = Arc::new(policy);
    #[cfg(feature = "webhook")]
    let webhooks = {
        let _in = runtime.enter();
        settings.webhooks.map(|wanted| webhooks::Telling::begin(&policy, wanted)).transpose()?
    };
    let app = Arc::new(App {
        policy,
        answering: settings.answering,
        reading: settings.reading,
        bounds,
        metrics: Metrics::new(),
        events,
        #[cfg(feature = "webhook")]
        webhooks,
        admin_token: settings.admin_token,
        places: places::Places::new(),
        announced: watch::Sender::new(false),
        stopping,
    });
    let file = settings.file;
    runtime.block_on(async {
        // Heard before anybody is told that there is a server.
        let signals = Signals::new().map_err(|error| format!("no signals: {error}"))?;
        let unbound = |error: io::Error| format!("cannot listen at {}: {error}", settings.listen);
        let listener = accept::listen(settings.listen).map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        let from = policy_name(file.as_deref());
        let offenders = if app.admin_token.is_some() { "with the token" } else { "off" };
        let webhooks = app.webhook_endpoints();
        tracing::info!(%address, policy = from, rules = count, connections_max = bounds.connections_max, offenders, webhooks, "listening");
        // Nobody need read it.
        _ = writeln!(io::stdout(), "http://{address}");
        let watch = match &file {
            Some(file) if settings.follows => reload::follow(&app, file),
            _ => None,
        };
        let places = Arc::new(Semaphore::new(bounds.connections_max));
        let router = routes::router(Arc::clone(&app));
        let accepting = tokio::spawn(accept::accept(Arc::clone(&app), router, listener, Arc::clone(&places)));
        let telling = tokio::spawn(events::tell(Arc::clone(&app)));
        let told = async || {
            telling.abort();
            _ = telling.await;
            events::end(&app, bounds.stop_timeout).await;
        };
        let status = until_stopped(&app, file, signals, &stop, accepting, &places, told).await;
        drop(watch);
        Ok(status)
    })
}

/// Where the rules are from, in words.
fn policy_name(file: Option<&Path>) -> String {
    file.map_or_else(|| "the default policy".to_owned(), |file| printable(&file.to_string_lossy()))
}

/// Waits for a signal to stop, and then for what runs; last for what there is to tell of it.
async fn until_stopped(
    app: &Arc<App>,
    file: Option<PathBuf>,
    mut signals: Signals,
    stop: &watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
    places: &Arc<Semaphore>,
    told: impl AsyncFnOnce(),
) -> u8 {
    while signals.next().await == stop::Asked::Reload {
        let (app, file) = (Arc::clone(app), file.clone());
        // Reading and building take their time; nobody waits for them here.
        tokio::task::spawn_blocking(move || reload::again(&app, file.as_deref()));
    }
    let (bounds, asked) = (&app.bounds, Instant::now());
    app.announced.send_replace(true);
    tracing::info!(connections = app.metrics.connections.open(), "stopping");
    let finish = async {
        tokio::time::sleep(bounds.stop_delay).await;
        accepting.abort();
        _ = accepting.await;
        stop.send_replace(true);
        let all = u32::try_from(bounds.connections_max).unwrap_or(u32::MAX);
        _ = places.acquire_many(all).await;
    };
    let finish = async {
        let finished = tokio::time::timeout(bounds.stop_delay + bounds.stop_timeout, finish).await;
        told().await;
        finished
    };
    tokio::select! {
        finished = finish => {
            match finished {
                Ok(()) => tracing::info!("stopped"),
                Err(_) => tracing::warn!(connections = app.metrics.connections.open(), "stopped; connections were cut off"),
            }
            0
        }
        status = again(&mut signals, asked) => {
            tracing::warn!("ended at once");
            status
        }
    }
}

/// The status of a second signal to stop. What comes within [`stop::SAME`] of the first is the first once more.
async fn again(signals: &mut Signals, first: Instant) -> u8 {
    loop {
        if let stop::Asked::Stop(status) = signals.next().await
            && first.elapsed() >= stop::SAME
        {
            return u8::try_from(status).unwrap_or(1);
        }
    }
}

/// As many connections as there can be open files, of those that are asked for; raises the limit of the process as far as it may.
#[cfg(unix)]
fn affordable(connections: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(bounds::FILES_KEPT);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        // Where it may not be raised, there are fewer connections.
        _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    }
    let Some(files) = getrlimit(Resource::Nofile).current else { return connections };
    let possible = usize::try_from(files.saturating_sub(bounds::FILES_KEPT)).unwrap_or(usize::MAX).max(1);
    if possible < connections {
        tracing::warn!(
            connections,
            possible,
            "fewer connections than asked for: the limit of open files is too low"
        );
    }
    connections.min(possible)
}

/// Elsewhere a connection is no file.
#[cfg(not(unix))]
fn affordable(connections: usize) -> usize {
    connections
}

//! Endpoints at work.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::endpoint::Endpoint;
use super::error::WebhookError;
use super::post::Http;
use super::settings::WebhookSettings;
use super::state::{EndpointStatus, Shared, WebhookCounts, sum};
use super::worker::Worker;
use crate::policy::Event;

/// The longest that a stop may take.
const STOP_MAX: Duration = Duration::from_secs(86_400);

/// Endpoints that are told of events, from [`start`](Self::start) to [`stop`](Self::stop).
///
/// One that is dropped without a stop sends nothing more, and nobody is told what was lost. Nor does one whose `stop` is let go before it
/// returns: its time is over then.
///
/// ```
/// use std::time::Duration;
/// use tidegate::notify::{Endpoint, WebhookSettings, Webhooks};
/// use tidegate::policy::Pattern;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ada = Endpoint::new("ada", "https://hooks.example.com/limits")
///     .secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
///     .keys([Pattern::Exact("ada".to_owned())]);
/// let webhooks = Webhooks::start([ada], WebhookSettings::new())?;
///
/// // A few times a second, for whoever is to be told, logs too: one drain for all of them.
/// # let policy = tidegate::policy::Policy::builder(Default::default());
/// # let policy = policy.events(tidegate::policy::EventSettings::new()).build()?;
/// policy.drain_events(|event| webhooks.send(&event));
///
/// // At the end what no event has told yet, and then what is pending.
/// policy.drain_last_events(|event| webhooks.send(&event));
/// let counts = webhooks.stop(Duration::from_secs(5)).await;
/// assert_eq!(counts.events_lost_at_stop, 0);
/// # Ok(())
/// # }
/// ```
pub struct Webhooks {
    endpoints: Vec<Arc<Shared>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Webhooks {
    /// Starts a task for each endpoint on the tokio runtime that it is called in, whose timers and I/O must be on. None: every event is let go.
    ///
    /// # Errors
    /// A [`WebhookError`] if an endpoint or a setting is wrong, two endpoints have one name, the system tells nobody to trust that
    /// signs certificates, or there is no runtime. Nothing has been started then.
    pub fn start(
        endpoints: impl IntoIterator<Item = Endpoint>,
        settings: WebhookSettings,
    ) -> Result<Self, WebhookError> {
        settings.check()?;
        let runtime = Handle::try_current().map_err(|why| WebhookError::of_settings("runtime", why))?;
        let (mut names, mut ready) = (HashSet::new(), Vec::new());
        for endpoint in endpoints {
            let checked = endpoint.check()?;
            if !names.insert(endpoint.name.clone()) {
                return Err(WebhookError::of(&endpoint.name, "name", "is another endpoint's too"));
            }
            let http = Http::new(checked, settings.attempt_timeout)
                .map_err(|problem| WebhookError::of(&endpoint.name, "url", problem))?;
            ready.push((Arc::new(Shared::new(endpoint)), http));
        }
        let mut tasks = Vec::with_capacity(ready.len());
        let mut endpoints = Vec::with_capacity(ready.len());
        for (shared, http) in ready {
            tasks.push(runtime.spawn(Worker::new(Arc::clone(&shared), settings.clone(), http).run()));
            endpoints.push(shared);
        }
        Ok(Self { endpoints, tasks: Mutex::new(tasks) })
    }

    /// Notes an event for each endpoint that wants it. Nobody is waited for: what an endpoint cannot be told in time is counted. It may be
    /// called on any thread, in the runtime or not.
    pub fn send(&self, event: &Event) {
        for endpoint in &self.endpoints {
            endpoint.send(event);
        }
    }

    /// What was counted until now, of all endpoints together.
    pub fn counts(&self) -> WebhookCounts {
        sum(&self.endpoints)
    }

    /// How each endpoint stands, in the order in which they were given.
    pub fn endpoints(&self) -> Vec<EndpointStatus> {
        self.endpoints.iter().map(|endpoint| endpoint.status()).collect()
    }

    /// Sends what is pending, interval or not, and returns when all of it is accepted or given up, after `within` at the latest (a day at
    /// most). What is not accepted then is lost, and counted; so is what is sent afterwards. A receiver that asked for a longer wait is not asked again.
    ///
    /// Only the first call stops anything; others return what is counted at once. Whoever lets go of the first before it returns, as a timeout
    /// does, ends it there: what was not accepted by then is lost, and counted.
    pub async fn stop(&self, within: Duration) -> WebhookCounts {
        let tasks = self.take_tasks();
        if tasks.is_empty() {
            return self.counts();
        }
        let mut stop = Stop { tasks, endpoints: &self.endpoints };
        let by = Instant::now() + within.min(STOP_MAX);
        self.endpoints.iter().for_each(|endpoint| endpoint.stop_by(by));
        for task in &mut stop.tasks {
            if timeout_at(by, &mut *task).await.is_err() {
                task.abort();
                // Until it has let go of everything.
                _ = task.await;
            }
        }
        drop(stop);
        self.counts()
    }

    fn take_tasks(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A stop under way. However it ends, also by somebody who waits no longer for it, nothing is sent after it.
struct Stop<'a> {
    tasks: Vec<JoinHandle<()>>,
    endpoints: &'a [Arc<Shared>],
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.endpoints.iter().for_each(|endpoint| endpoint.end());
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.take_tasks().iter().for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("endpoints", &self.endpoints()).finish_non_exhaustive()
    }
}

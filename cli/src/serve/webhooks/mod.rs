//! `--webhooks`: partners are told what happened to their keys.

mod file;

use std::sync::Arc;
use std::time::Duration;

use tidegate::notify::{EndpointStatus, Webhooks};
use tidegate::policy::Policy;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

pub use file::{Webhooks as Wanted, read};

use crate::key::printable;

/// How often the policy is asked what has happened.
const DRAIN: Duration = Duration::from_millis(250);
/// Of so many offenders an endpoint is told of those that are its own.
const OFFENDERS: usize = 100;

/// Endpoints that are told, until they are stopped.
pub(super) struct Telling {
    policy: Arc<Policy>,
    webhooks: Arc<Webhooks>,
    task: JoinHandle<()>,
}

impl Telling {
    /// Begins, in the runtime that it is called in.
    pub(super) fn begin(policy: &Arc<Policy>, wanted: Wanted) -> Result<Self, String> {
        let mut settings = wanted.settings;
        if wanted.offenders {
            let policy = Arc::clone(policy);
            settings = settings.offenders(move || policy.offenders(OFFENDERS));
        }
        let webhooks =
            Webhooks::start(wanted.endpoints, settings).map_err(|error| format!("webhooks: {error}"))?;
        let (policy, webhooks) = (Arc::clone(policy), Arc::new(webhooks));
        let task = tokio::spawn(tell(Arc::clone(&policy), Arc::clone(&webhooks)));
        Ok(Self { policy, webhooks, task })
    }

    /// Sends what has happened until now, for so long at most.
    pub(super) async fn stop(self, within: Duration) {
        self.task.abort();
        _ = self.task.await;
        self.policy.drain_events(|event| self.webhooks.send(&event));
        let counts = self.webhooks.stop(within).await;
        let (delivered, events_lost) = (counts.delivered, counts.events_lost_at_stop);
        if events_lost == 0 {
            tracing::info!(delivered, "webhooks stopped");
        } else {
            tracing::warn!(delivered, events_lost, "webhooks stopped; what was not accepted in time is lost");
        }
    }
}

async fn tell(policy: Arc<Policy>, webhooks: Arc<Webhooks>) {
    let mut ticks = interval(DRAIN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = webhooks.endpoints();
    loop {
        ticks.tick().await;
        policy.drain_events(|event| webhooks.send(&event));
        let now = webhooks.endpoints();
        before.iter().zip(&now).for_each(|(before, now)| log(before, now));
        before = now;
    }
}

/// What an operator has to know.
fn log(before: &EndpointStatus, now: &EndpointStatus) {
    let endpoint = printable(&now.name);
    if now.is_gone && !before.is_gone {
        tracing::warn!(endpoint, "webhook answered 410: it gets nothing more until the next start");
    }
    let messages = now.counts.given_up - before.counts.given_up;
    if messages > 0 {
        let why = now.last_failure.as_deref().map(printable);
        tracing::warn!(endpoint, messages, why, "webhook given up");
    }
}

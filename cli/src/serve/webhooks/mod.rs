//! `--webhooks`: partners are told what happened to their keys.

mod file;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::notify::{EndpointStatus, Webhooks};
use tidegate::policy::{Event, Policy};

pub use file::{Webhooks as Wanted, read};

use crate::key::printable;

/// Of so many offenders an endpoint is told of those that are its own.
const OFFENDERS: usize = 100;

/// Endpoints that are told, until they are stopped.
pub(super) struct Telling {
    pub(super) webhooks: Webhooks,
    /// How they stood when the log was last told.
    logged: Mutex<Vec<EndpointStatus>>,
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
        Ok(Self { logged: Mutex::new(webhooks.endpoints()), webhooks })
    }

    /// How many there are.
    pub(super) fn endpoints(&self) -> usize {
        self.webhooks.endpoints().len()
    }

    /// Has an event told to whom it concerns. Waits for nobody.
    pub(super) fn send(&self, event: &Event) {
        self.webhooks.send(event);
    }

    /// Sends what there is, for so long at most.
    pub(super) async fn stop(&self, within: Duration) {
        let counts = self.webhooks.stop(within).await;
        self.log();
        let (messages_delivered, events_lost) = (counts.delivered, counts.events_lost_at_stop);
        if events_lost == 0 {
            tracing::info!(messages_delivered, "webhooks stopped");
        } else {
            tracing::warn!(
                messages_delivered,
                events_lost,
                "webhooks stopped; what was not accepted in time is lost"
            );
        }
    }

    /// Logs what an operator has to know, and was not told yet.
    pub(super) fn log(&self) {
        let now = self.webhooks.endpoints();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.iter().zip(&now).for_each(|(before, now)| log(before, now));
        *logged = now;
    }
}

fn log(before: &EndpointStatus, now: &EndpointStatus) {
    let endpoint = printable(&now.name);
    if now.is_gone && !before.is_gone {
        tracing::warn!(endpoint, "webhook answered 410: it gets nothing more until the next start");
    }
    let why = now.last_failure.as_deref().map(printable);
    let messages = now.counts.given_up - before.counts.given_up;
    if messages > 0 {
        let events_undelivered = now.counts.events_undelivered - before.counts.events_undelivered;
        tracing::warn!(
            endpoint,
            messages,
            events_undelivered,
            why,
            "webhook message given up; the endpoint gets the next"
        );
    } else if before.last_failure.is_none() && why.is_some() && !now.is_gone {
        tracing::warn!(endpoint, why, "webhook attempt failed; it is tried again");
    }
}

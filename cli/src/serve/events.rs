//! What happens to keys: told in the log and, where there are some, to webhooks.

use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::Event;
use tokio::time::{MissedTickBehavior, interval};

use super::App;

/// So often events are drained.
const EVERY: Duration = Duration::from_millis(250);

/// Tells events as they come, until it is dropped.
pub(super) async fn tell(app: Arc<App>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        app.policy.drain_events(|event| told(&app, &event));
        #[cfg(feature = "webhook")]
        if let Some(webhooks) = &app.webhooks {
            webhooks.log();
        }
    }
}

/// Tells what nobody has told yet, of periods that are not over too; webhooks have so long for it at most.
pub(super) async fn end(app: &App, within: Duration) {
    app.policy.drain_last_events(|event| told(app, &event));
    app.events.end();
    #[cfg(feature = "webhook")]
    if let Some(webhooks) = &app.webhooks {
        webhooks.stop(within).await;
    }
    #[cfg(not(feature = "webhook"))]
    let _ = within;
}

fn told(app: &App, event: &Event) {
    app.events.tell(event);
    #[cfg(feature = "webhook")]
    if let Some(webhooks) = &app.webhooks {
        webhooks.send(event);
    }
}

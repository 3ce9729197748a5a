//! What happens to keys: told in the log and, where there are some, to webhooks.

use std::sync::Arc;
use std::time::Duration;

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
        drain(&app);
    }
}

/// Tells what nobody has told yet; webhooks have so long for it at most.
pub(super) async fn end(app: &App, within: Duration) {
    drain(app);
    app.events.end();
    #[cfg(feature = "webhook")]
    if let Some(webhooks) = &app.webhooks {
        webhooks.stop(within).await;
    }
    #[cfg(not(feature = "webhook"))]
    let _ = within;
}

fn drain(app: &App) {
    app.policy.drain_events(|event| {
        app.events.tell(&event);
        #[cfg(feature = "webhook")]
        if let Some(webhooks) = &app.webhooks {
            webhooks.send(&event);
        }
    });
    #[cfg(feature = "webhook")]
    if let Some(webhooks) = &app.webhooks {
        webhooks.log();
    }
}

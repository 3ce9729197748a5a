//! What happens to keys, as lines of the log.

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
        app.policy.drain_events(|event| app.events.tell(&event));
    }
}

/// Tells what nobody has told yet.
pub(super) fn end(app: &App) {
    app.policy.drain_events(|event| app.events.tell(&event));
    app.events.end();
}

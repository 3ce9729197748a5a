//! One endpoint's task.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::post::Post;
use super::retry::{self, Failure, Outcome};
use super::settings::WebhookSettings;
use super::state::{End, Message, Shared};

/// A message waits so long for more to tell, so that what is drained together travels together; no longer than the endpoint's interval.
const GATHER: Duration = Duration::from_millis(100);

pub(super) struct Worker<P> {
    shared: Arc<Shared>,
    settings: WebhookSettings,
    post: P,
    /// No message before: the interval.
    next_at: Instant,
    /// No attempt before: the receiver has said so.
    told_wait_until: Instant,
}

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Now,
    /// The time is not enough, or nothing is left to do in it.
    Over,
}

impl<P: Post> Worker<P> {
    pub(super) fn new(shared: Arc<Shared>, settings: WebhookSettings, post: P) -> Self {
        let now = Instant::now();
        Self { shared, settings, post, next_at: now, told_wait_until: now }
    }

    pub(super) async fn run(mut self) {
        // No two messages have one id: the number is this endpoint's, and nobody else draws these bits.
        let ids = format!("msg_{:016x}", retry::random());
        for number in 1_u64.. {
            if self.turn().await == Turn::Over {
                return;
            }
            let Some(message) =
                self.shared.take(format!("{ids}{number:08x}"), self.settings.offenders.as_ref())
            else {
                continue;
            };
            let end = self.deliver(&message).await;
            self.shared.settle(end);
            if matches!(end, End::Gone | End::Lost) {
                return;
            }
            self.next_at = Instant::now() + self.shared.endpoint.interval;
        }
    }

    /// Waits until there is something to tell and the interval is over. A stop ends the interval, but not what the receiver asked for.
    async fn turn(&self) -> Turn {
        loop {
            let glance = self.shared.glance();
            let Some(since) = glance.pending_since else {
                if glance.stop_by.is_some() {
                    return Turn::Over;
                }
                self.shared.rung().await;
                continue;
            };
            let start = match glance.stop_by {
                Some(_) => self.told_wait_until,
                None => {
                    let gathered = since + GATHER.min(self.shared.endpoint.interval);
                    gathered.max(self.next_at).max(self.told_wait_until)
                }
            };
            if start <= Instant::now() {
                return Turn::Now;
            }
            if glance.stop_by.is_some_and(|by| by < start) {
                return Turn::Over;
            }
            _ = timeout_at(start, self.shared.rung()).await;
        }
    }

    /// Tries until it is over, one way or another.
    async fn deliver(&mut self, message: &Message) -> End {
        let begun = Instant::now();
        for attempts in 1_u32.. {
            let failure = match self.post.post(&message.id, &message.body).await {
                Outcome::Delivered => return End::Delivered,
                Outcome::Gone => return End::Gone,
                Outcome::Failed(failure) => failure,
            };
            self.shared.failed(&failure);
            let again = self.again_at(&failure, attempts);
            if attempts >= self.settings.attempts_max || again > begun + self.settings.retry_within {
                return End::GivenUp;
            }
            if self.wait_to_retry(again).await == Turn::Over {
                return End::Lost;
            }
        }
        End::GivenUp
    }

    /// When the next attempt is due; notes the wait that the receiver asks for.
    fn again_at(&mut self, failure: &Failure, attempts: u32) -> Instant {
        let now = Instant::now();
        if let Some(wait) = failure.retry_after {
            self.told_wait_until = now + wait;
        }
        let own = now + retry::backoff(&self.settings, attempts, retry::random());
        own.max(self.told_wait_until)
    }

    /// A stop that begins meanwhile brings the attempt forward, to when the receiver lets it be.
    async fn wait_to_retry(&self, at: Instant) -> Turn {
        let was_stopping = self.shared.glance().stop_by.is_some();
        loop {
            let stop_by = self.shared.glance().stop_by;
            let start = if stop_by.is_some() && !was_stopping { self.told_wait_until } else { at };
            if start <= Instant::now() {
                return Turn::Now;
            }
            if stop_by.is_some_and(|by| by < start) {
                return Turn::Over;
            }
            _ = timeout_at(start, self.shared.rung()).await;
        }
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;

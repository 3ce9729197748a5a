//! The one place that talks to the engine.

use std::time::Duration;

use tidegate::{ConfigError, Denied, ExactLimiter, Limit, Manual, Reason, WindowName};

use super::Outcome;
use crate::key::ClientKey;
use crate::log::read::{Event, Log};

/// How many requests go by between two calls of the progress function.
const EVENTS_PER_TICK: usize = 16_384;

/// How the limiter of a replay is built.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// The limit of each client, with its alignment.
    pub limit: Limit,
    /// What keys are hashed with.
    pub seed: u64,
    /// Room for clients; as many as there are if `None`.
    pub max_keys: Option<u32>,
}

impl Engine {
    /// Whether a limiter can be built at all: asked before a long log is read.
    ///
    /// # Errors
    ///
    /// What the engine finds wrong with the limit.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.build(1, Manual::new()).map(|_| ())
    }

    /// Puts every request to the limiter, at its time; `each` is told what became of it, and `tick` from
    /// time to time how many are done.
    ///
    /// # Errors
    ///
    /// What the engine finds wrong with the limit.
    pub fn replay(
        &self,
        log: &Log,
        mut each: impl FnMut(Event, Outcome),
        mut tick: impl FnMut(usize),
    ) -> Result<(), ConfigError> {
        let origin_unix_ns = log.events.first().map_or(0, |event| event.at_unix_ns);
        let clock = Manual::at_unix(Duration::from_nanos(origin_unix_ns));
        let limiter = self.build(log.keys.len(), clock.clone())?;
        for (done, event) in log.events.iter().enumerate() {
            if done % EVENTS_PER_TICK == 0 {
                tick(done);
            }
            clock.set(Duration::from_nanos(event.at_unix_ns - origin_unix_ns));
            let outcome = match limiter.check(&log.keys[event.key as usize]) {
                Ok(_) => Outcome::Passed,
                Err(denied) => refusal(&denied),
            };
            each(*event, outcome);
        }
        Ok(())
    }

    fn build(&self, keys: usize, clock: Manual) -> Result<ExactLimiter<ClientKey, Manual>, ConfigError> {
        let max_keys = self.max_keys.map_or(keys.max(1), |max_keys| max_keys as usize);
        ExactLimiter::<ClientKey>::builder(self.limit).max_keys(max_keys).seed(self.seed).clock(clock).build()
    }
}

fn refusal(denied: &Denied) -> Outcome {
    if denied.reason() == Reason::Full {
        return Outcome::Full;
    }
    let refuses =
        |name: WindowName| denied.windows().iter().any(|window| window.name == name && window.refuses);
    match (refuses(WindowName::Burst), refuses(WindowName::Sustain)) {
        (true, true) => Outcome::Both,
        (true, false) => Outcome::Burst,
        (false, true) => Outcome::Sustain,
        (false, false) => Outcome::Limit,
    }
}

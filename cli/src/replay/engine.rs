//! The one place that talks to the engine.

use std::time::Duration;

use tidegate::{ConfigError, Denied, ExactLimiter, Limit, Limiter, Manual, Pass, Reason, WindowName};

use super::Outcome;
use crate::key::ClientKey;
use crate::log::read::{Event, Log};

/// How many requests go by between two calls of the progress function.
const EVENTS_PER_TICK: usize = 16_384;

/// After how long a quiet moment is used to begin anew: well below the seven years that the engine's own
/// time lasts at least.
const LEG: Duration = Duration::from_secs(365 * 86_400);

/// What a limiter says of one request.
pub type Answer = Result<Pass, Denied>;

/// How the limiter of a replay is built.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// The limit of each client, with its alignment.
    pub limit: Limit,
    /// How long the limit remembers.
    pub memory: Duration,
    /// What keys are hashed with.
    pub seed: u64,
    /// Room for clients; as many as there are if `None`.
    pub max_keys: Option<u32>,
    /// Whether to keep clients whole, in place of fingerprints in the slot table.
    pub exact: bool,
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

    /// Puts every request to the limiter, at its time; `each` is told the answer, and `tick` from
    /// time to time how many are done.
    ///
    /// # Errors
    ///
    /// What the engine finds wrong with the limit.
    pub fn replay(
        &self,
        log: &Log,
        mut each: impl FnMut(Event, &Answer),
        mut tick: impl FnMut(usize),
    ) -> Result<(), ConfigError> {
        // Room for more clients than there are changes nothing, and would only cost memory.
        let clients = log.keys.len().max(1);
        let max_keys =
            self.max_keys.map_or_else(|| self.room_for(clients), |keys| clients.min(keys as usize));
        let first = log.events.first().map_or(Duration::ZERO, |event| Duration::from_nanos(event.at_unix_ns));
        let mut leg = Leg::begin(self, max_keys, first)?;
        let mut last = first;
        let (mut done, mut tick_at) = (0, 0);
        // The clock stands still for requests of one time: they are decided together, in their order.
        for together in log.events.chunk_by(|one, other| one.at_unix_ns == other.at_unix_ns) {
            if done >= tick_at {
                tick(done);
                tick_at = done + EVENTS_PER_TICK;
            }
            done += together.len();
            let now = Duration::from_nanos(together[0].at_unix_ns);
            // One line with a clock that was never set would otherwise take the limiter of all others
            // past the end of its time, where it refuses. In a pause as long as the limit remembers (twice
            // that, for windows are placed on a grid) every client has its whole quota again, so that a
            // new limiter decides as the old one would.
            if now - leg.origin > LEG && now - last > self.memory.saturating_mul(2) {
                leg = Leg::begin(self, max_keys, now)?;
            }
            last = now;
            leg.clock.set(now - leg.origin);
            let mut answered = |event: Event, answer: Answer| each(event, &answer);
            match together {
                // A batch of one costs more than a check.
                [event] => answered(*event, leg.limiter.check(&log.keys[event.key as usize])),
                _ => leg.limiter.check_all(together, &log.keys, answered),
            }
        }
        Ok(())
    }

    /// Room in which no client can meet another's: a slot table places keys by hash, and one made for
    /// exactly as many as there are could turn a few away.
    fn room_for(&self, clients: usize) -> usize {
        if self.exact { clients } else { clients.saturating_mul(4) }
    }

    fn build(&self, max_keys: usize, clock: Manual) -> Result<Tried, ConfigError> {
        if self.exact {
            let builder = ExactLimiter::<ClientKey>::builder(self.limit).max_keys(max_keys).seed(self.seed);
            builder.clock(clock).build().map(|limiter| Tried::Exact(Box::new(limiter)))
        } else {
            let builder = Limiter::builder(self.limit).max_keys(max_keys).seed(self.seed);
            builder.clock(clock).build().map(|limiter| Tried::Slots(Box::new(limiter)))
        }
    }
}

/// The limiter that is tried.
enum Tried {
    Slots(Box<Limiter<Manual>>),
    Exact(Box<ExactLimiter<ClientKey, Manual>>),
}

impl Tried {
    fn check(&self, client: &ClientKey) -> Answer {
        match self {
            Self::Slots(limiter) => limiter.check(client),
            Self::Exact(limiter) => limiter.check(client),
        }
    }

    /// Decides requests of one time, in their order.
    fn check_all(&self, events: &[Event], keys: &[ClientKey], mut each: impl FnMut(Event, Answer)) {
        let client = |event: &Event| &keys[event.key as usize];
        match self {
            Self::Slots(limiter) => {
                let mut answered = events.iter();
                limiter.check_many(events.iter().map(client), |answer| {
                    if let Some(event) = answered.next() {
                        each(*event, answer);
                    }
                });
            }
            Self::Exact(limiter) => {
                events.iter().for_each(|event| each(*event, limiter.check(client(event))))
            }
        }
    }
}

/// A stretch of the replay on one limiter.
struct Leg {
    origin: Duration,
    clock: Manual,
    limiter: Tried,
}

impl Leg {
    /// Begins at a time since the Unix epoch.
    fn begin(engine: &Engine, max_keys: usize, origin: Duration) -> Result<Self, ConfigError> {
        let clock = Manual::at_unix(origin);
        let limiter = engine.build(max_keys, clock.clone())?;
        Ok(Leg { origin, clock, limiter })
    }
}

/// What became of a request.
pub fn outcome(answer: &Answer) -> Outcome {
    answer.as_ref().map_or_else(refusal, |_| Outcome::Passed)
}

/// The share of each window (or of the bucket) that the client has used, in whole percent, rounded down; in the order of
/// the limit's parts. Above 100 where refused requests count. Nothing is used where there is no room to count.
pub fn used_percent(answer: &Answer) -> [u32; 2] {
    let windows = match answer {
        Ok(pass) => pass.windows(),
        Err(denied) if denied.reason() == Reason::Full => return [0; 2],
        Err(denied) => denied.windows(),
    };
    let mut used = [0; 2];
    for (share, window) in used.iter_mut().zip(windows.iter()) {
        let percent = u128::from(window.observed) * 100 / u128::from(window.limit.max(1));
        *share = u32::try_from(percent).unwrap_or(u32::MAX);
    }
    used
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

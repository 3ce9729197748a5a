//! The one place that talks to a policy: every request decided at its time.

use std::time::Duration;

use tidegate::Manual;
use tidegate::policy::{Policy, PolicyError, Request, Rules, Verdict};

use super::requests::{Arrival, Requests};

/// How many requests go by between two calls of the progress function.
const ARRIVALS_PER_TICK: usize = 4_096;

/// After how long a quiet moment is used to begin anew: well below the seven years that a limiter's time lasts at least.
const LEG: Duration = Duration::from_secs(365 * 86_400);

/// What became of one request.
pub struct Decided<'a> {
    /// When it came, and its shape.
    pub arrival: Arrival,
    /// The request itself.
    pub request: Request<'a>,
    /// What the policy said.
    pub verdict: Verdict,
    /// The policy, which knows keys.
    pub policy: &'a Policy<Manual>,
}

/// Whether a policy can be built at all: asked before a long log is read.
///
/// # Errors
///
/// What the policy finds wrong with the rules.
pub fn validate(rules: &Rules) -> Result<(), PolicyError> {
    Policy::builder(rules.clone()).clock(Manual::new()).build().map(|_| ())
}

/// Puts every request to the policy, at its time; `each` is told what became of it, and `tick` from time to time how
/// many are done.
///
/// # Errors
///
/// What the policy finds wrong with the rules.
pub fn decide_all(
    rules: &Rules,
    seed: u64,
    requests: &Requests,
    mut each: impl FnMut(&Decided<'_>),
    mut tick: impl FnMut(usize),
) -> Result<(), PolicyError> {
    let lists = requests.attribute_lists();
    let shapes: Vec<Request<'_>> =
        requests.shapes.iter().zip(&lists).map(|(shape, list)| shape.request(list)).collect();
    let mut last = requests.arrivals.first().map_or(Duration::ZERO, at);
    let mut leg = Leg::begin(rules, seed, last)?;
    for (done, arrival) in requests.arrivals.iter().enumerate() {
        if done.is_multiple_of(ARRIVALS_PER_TICK) {
            tick(done);
        }
        let now = at(arrival);
        // One line with a clock that was never set would otherwise take the policy past the end of its time, where it
        // refuses. After a pause in which everything that any key used has come back, a new policy decides as the old one
        // would.
        if now - leg.origin > LEG && now - last > leg.memory {
            leg = Leg::begin(rules, seed, now)?;
        }
        last = now;
        leg.clock.set(now - leg.origin);
        let request = shapes[arrival.shape as usize].cost(arrival.cost);
        let verdict = leg.policy.check(&request);
        leg.remember(&verdict);
        each(&Decided { arrival: *arrival, request, verdict, policy: &leg.policy });
    }
    Ok(())
}

fn at(arrival: &Arrival) -> Duration {
    Duration::from_nanos(arrival.at_unix_ns)
}

/// A stretch of the replay on one policy.
struct Leg {
    origin: Duration,
    clock: Manual,
    policy: Policy<Manual>,
    /// How long any limit that counted so far remembers, at most.
    memory: Duration,
}

impl Leg {
    /// Begins at a time since the Unix epoch.
    fn begin(rules: &Rules, seed: u64, origin: Duration) -> Result<Self, PolicyError> {
        let clock = Manual::at_unix(origin);
        let policy = Policy::builder(rules.clone()).clock(clock.clone()).seed(seed).build()?;
        Ok(Self { origin, clock, policy, memory: Duration::ZERO })
    }

    fn remember(&mut self, verdict: &Verdict) {
        for limit in verdict.rules().flat_map(|rule| rule.limits()) {
            // A sliding window weighs the period before, and windows are placed on a grid.
            let memory = limit.windows().iter().map(|window| window.period.saturating_mul(4)).max();
            self.memory = self.memory.max(memory.unwrap_or(Duration::ZERO));
        }
    }
}

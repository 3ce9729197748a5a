//! Buckets against the twin. The twin counts time exactly; the limiter in units of its own. So the twin
//! follows the limiter's decisions, and each must have been right for some time at most `slack` away.

use std::collections::BTreeSet;
use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{Denied, Limit, Pass, Rate};

use crate::game::{self, Game, Judge};
use crate::input::{Length, Number, Step};
use crate::twin;

#[derive(Arbitrary, Debug)]
pub struct Input {
    tokens: Number,
    period: Length,
    burst: Number,
    max_keys: u8,
    steps: Vec<Step>,
}

pub fn run(input: &Input) {
    let (tokens, period, burst) = (input.tokens.get(), input.period.get(), input.burst.get());
    let period_ns = period.as_nanos();
    let one_token_ns = period_ns / u128::from(tokens.max(1));
    let game = Game {
        limit: Limit::bucket(Rate::new(tokens, period), burst),
        cost_max: burst,
        period_ns: u64::try_from(one_token_ns).unwrap_or(u64::MAX).max(16),
        max_keys: usize::from(input.max_keys % 8),
        unix: Duration::ZERO,
        steps: &input.steps,
    };
    let mut judge = Exact {
        tokens: tokens.into(),
        period_ns,
        burst: burst.into(),
        slack_ns: slack_ns(tokens, period_ns, burst),
        twin: in_twins_range(tokens, period_ns, burst)
            .then(|| twin::Bucket::new(tokens.into(), period_ns, burst.into())),
        keys: BTreeSet::new(),
    };
    let played = game::play(&game, &mut judge);
    let sound = tokens > 0 && burst > 0 && period_ns > 0 && game.max_keys > 0;
    assert!(sound || !played, "built from {input:?}");
}

fn in_twins_range(tokens: u64, period_ns: u128, burst: u64) -> bool {
    let span = u128::from(burst).checked_mul(period_ns);
    tokens > 0 && period_ns > 0 && burst > 0 && tokens < 1 << 34 && span.is_some_and(|span| span < 1 << 97)
}

/// A nanosecond more than one unit of the limiter's time can last. Units are as fine as 62 bits allow for 2^60 ns, the
/// period twice (the clock's first reading and the end of time may each lie one later) and a whole burst on top, so
/// the next finer ones, half as long, must not have fitted.
fn slack_ns(tokens: u64, period_ns: u128, burst: u64) -> u128 {
    let full_ns = u128::from(burst).saturating_mul(period_ns) / u128::from(tokens.max(1));
    let longest_ns = full_ns.saturating_add((1 << 60) + 2 * period_ns);
    2 + (longest_ns >> 61)
}

struct Exact {
    tokens: u128,
    period_ns: u128,
    burst: u128,
    slack_ns: u128,
    /// None where the numbers are too large for it.
    twin: Option<twin::Bucket>,
    keys: BTreeSet<u64>,
}

impl Exact {
    /// The least and the most that the twin would have left, `slack` before now and after.
    fn check_remaining(&mut self, key: u64, now_ns: u128, remaining: u64) {
        let Some(twin) = &mut self.twin else { return };
        let least = twin.check(key, now_ns.saturating_sub(self.slack_ns), 0).remaining;
        let most = twin.check(key, now_ns + self.slack_ns, 0).remaining;
        assert!((least..=most).contains(&remaining.into()), "{remaining} left, not {least} to {most}");
    }
}

impl Judge for Exact {
    fn passed(&mut self, key: u64, now_ns: u128, cost: u64, pass: &Pass) {
        self.keys.insert(key);
        let Some(twin) = &mut self.twin else { return };
        assert!(
            twin.fits(key, now_ns + self.slack_ns, cost.into()),
            "{cost} passed too early at {now_ns}: {pass:?}"
        );
        twin.charge(key, now_ns, cost.into());
        self.check_remaining(key, now_ns, pass.remaining());
    }

    fn exhausted(&mut self, key: u64, now_ns: u128, cost: u64, denied: &Denied) {
        let Some(twin) = &self.twin else { return };
        let fits = |at_ns: u128| twin.fits(key, at_ns, cost.into());
        if let Some(early_ns) = now_ns.checked_sub(self.slack_ns) {
            assert!(!fits(early_ns), "{cost} could have passed at {early_ns}: {denied:?}");
        }
        if let Some(wait) = denied.retry_after() {
            let again_ns = now_ns + wait.as_nanos();
            assert!(fits(again_ns + self.slack_ns), "too short a wait: {denied:?}");
            if let Some(early_ns) = again_ns.checked_sub(self.slack_ns + 1) {
                assert!(!fits(early_ns), "too long a wait: {denied:?}");
            }
        }
        self.check_remaining(key, now_ns, denied.remaining());
    }

    fn looked(&mut self, key: u64, now_ns: u128, pass: &Pass) {
        self.check_remaining(key, now_ns, pass.remaining());
    }

    fn keys_owing(&mut self, now_ns: u128) -> usize {
        let Some(twin) = &mut self.twin else {
            return usize::MAX;
        };
        let early_ns = now_ns.saturating_sub(self.slack_ns);
        self.keys.iter().filter(|&&key| twin.check(key, early_ns, 0).reset_ns > 0).count()
    }

    fn admitted_max(&self, latest_ns: u128) -> u128 {
        // The last token of a refill may be early by the slack.
        let refilled = self.tokens.saturating_mul(latest_ns + self.slack_ns) / self.period_ns;
        self.burst.saturating_add(refilled)
    }
}

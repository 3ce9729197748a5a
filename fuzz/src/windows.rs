//! Windows, one (fixed or sliding) or two, against the twin, which they must match to the nanosecond (where each key's windows are
//! shifted by an amount of its own, to the next one).

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{Alignment, Denied, ExactLimiter, Limit, Manual, Pass, Window, WindowState};

use crate::game::{self, Game, Judge};
use crate::input::{Length, Number, Step};
use crate::twin::{self, Decision, Start};

#[derive(Arbitrary, Debug)]
pub struct Input {
    limit: Number,
    period: Length,
    sustain_limit: Number,
    sustain_periods: Number,
    alignment: u8,
    count_refused: bool,
    unix_ns: u64,
    max_keys: u8,
    steps: Vec<Step>,
}

/// Which limit is made of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    One,
    BurstSustain,
}

pub fn run(input: &Input, kind: Kind) {
    let (burst, period) = (input.limit.get(), input.period.get());
    let slides = kind == Kind::One && slides(input.alignment);
    let sustain = input.sustain_limit.get();
    let sustain_period = multiple(period, input.sustain_periods.get());
    let alignment = match input.alignment % 3 {
        0 => Alignment::Clock,
        1 => Alignment::PerKey,
        _ => Alignment::FirstRequest,
    };
    let first = Window::new(burst, period);
    let (limit, windows) = match kind {
        Kind::One if slides => (Limit::sliding_window(first), vec![(u128::from(burst), period.as_nanos())]),
        Kind::One => (Limit::window(first), vec![(u128::from(burst), period.as_nanos())]),
        Kind::BurstSustain => (
            Limit::burst_sustain(first, Window::new(sustain, sustain_period)),
            vec![(u128::from(burst), period.as_nanos()), (u128::from(sustain), sustain_period.as_nanos())],
        ),
    };
    let unix = Duration::from_nanos(input.unix_ns >> 2);
    let game = Game {
        limit: limit.align(alignment).count_refused(input.count_refused),
        cost_max: if kind == Kind::One { burst } else { burst.min(sustain) },
        period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
        max_keys: usize::from(input.max_keys % 8),
        unix,
        steps: &input.steps,
    };
    let sound = game.max_keys > 0
        && !(slides && alignment == Alignment::FirstRequest)
        && windows.iter().all(|&(limit, period_ns)| limit > 0 && period_ns > 0)
        && windows[windows.len() - 1].1 % windows[0].1 == 0;
    let start = match alignment {
        _ if slides => Some(Start::Tiled { shift_ns: unix.as_nanos() }),
        Alignment::FirstRequest => {
            grid(game.limit, &windows).map(|grid| Start::FirstRequest { grid: Some(grid) })
        }
        Alignment::Clock | Alignment::PerKey => Some(Start::Tiled { shift_ns: unix.as_nanos() }),
    };
    let twin = start.filter(|_| sound).map(|start| {
        if slides {
            let (limit, period_ns) = windows[0];
            Twin::Sliding(twin::Sliding::new(limit, period_ns, unix.as_nanos(), input.count_refused))
        } else {
            Twin::Fixed(twin::Windows::new(&windows, start, input.count_refused))
        }
    });
    let mut judge = Exact { windows, alignment, twin, shifts_ns: BTreeMap::new() };
    let played = game::play(&game, &mut judge);
    assert!(sound || !played, "built from {input:?}");
}

/// The grid on which the windows of this limit open, as a limiter shows that is asked one nanosecond before a
/// whole period: its window is short by one step, less that nanosecond. None if the limit cannot be built, or if a
/// step is no whole number of nanoseconds: where a window then ends, the limiter may round to either side.
fn grid(limit: Limit, windows: &[(u128, u128)]) -> Option<u32> {
    let (period_ns, longest_ns) = (windows[0].1, windows[windows.len() - 1].1);
    let clock = Manual::new();
    let limiter = ExactLimiter::<u64>::builder(limit).max_keys(1).clock(clock.clone()).build().ok()?;
    clock.set(Duration::from_nanos(u64::try_from(period_ns - 1).ok()?));
    let pass = limiter.check(&0).expect("the first request of a key passes");
    let step_ns = longest_ns + 1 - pass.windows().last()?.reset_after.as_nanos();
    assert!(
        step_ns <= (period_ns >> GRID_BITS_MIN) + 1,
        "a step of {step_ns} ns is too coarse for {limit:?}"
    );
    let steps = period_ns.checked_div(step_ns).filter(|steps| steps.is_power_of_two())?;
    (step_ns * steps == period_ns).then(|| steps.ilog2())
}

/// A step of the grid is at most a 64th of the first period.
const GRID_BITS_MIN: u32 = 6;

fn multiple(period: Duration, count: u64) -> Duration {
    let ns = period.as_nanos().saturating_mul(count.into());
    let seconds = u64::try_from(ns / 1_000_000_000).unwrap_or(u64::MAX);
    // Below a thousand million, so the cast is exact.
    Duration::new(seconds, (ns % 1_000_000_000) as u32)
}

/// Whether the one window of an input slides: said by what is left of its alignment's byte.
pub fn slides(alignment: u8) -> bool {
    alignment / 3 % 2 == 1
}

/// The twin of the windows that are played.
#[derive(Clone)]
enum Twin {
    Fixed(twin::Windows),
    Sliding(twin::Sliding),
}

impl Twin {
    fn shift_key(&mut self, key: u64, shift_ns: u128) {
        match self {
            Self::Fixed(windows) => windows.shift_key(key, shift_ns),
            Self::Sliding(window) => window.shift_key(key, shift_ns),
        }
    }

    fn check(&mut self, key: u64, now_ns: u128, cost: u128) -> Decision {
        match self {
            Self::Fixed(windows) => windows.check(key, now_ns, cost),
            Self::Sliding(window) => window.check(key, now_ns, cost),
        }
    }
}

struct Exact {
    /// Limit and period in ns.
    windows: Vec<(u128, u128)>,
    alignment: Alignment,
    /// None where the twin would be no limiter either.
    twin: Option<Twin>,
    /// The keys that were charged, and how far each one's windows are shifted.
    shifts_ns: BTreeMap<u64, u128>,
}

impl Exact {
    /// The twin, for a key whose windows' place it knows: after the first charge, where each key has its own.
    fn twin(&mut self, key: u64) -> Option<&mut Twin> {
        let known = self.alignment != Alignment::PerKey || self.shifts_ns.contains_key(&key);
        self.twin.as_mut().filter(|_| known)
    }

    /// Learns from its first charge where a key's windows lie, and what a count that weighs on can hold.
    fn learn(&mut self, key: u64, now_ns: u128, states: &[WindowState]) {
        if let Some(Twin::Sliding(window)) = &mut self.twin {
            window.saturate_at(states[0].observed_max.into());
        }
        if self.shifts_ns.contains_key(&key) {
            return;
        }
        let (longest, (_, period_ns)) = (states.len() - 1, self.windows[self.windows.len() - 1]);
        let end_ns = now_ns + states[longest].reset_after.as_nanos();
        let shift_ns = (period_ns - end_ns % period_ns) % period_ns;
        self.shifts_ns.insert(key, shift_ns);
        if let (Alignment::PerKey, Some(twin)) = (self.alignment, &mut self.twin) {
            twin.shift_key(key, shift_ns);
        }
    }

    fn compare(&mut self, key: u64, now_ns: u128, cost: u64, found: Found<'_>) {
        // A key's own shift need not be a whole number of nanoseconds. The limiter rounds less than one away, and
        // so may end a window one nanosecond before the twin or after it.
        let (times, slack_ns) = match self.alignment {
            Alignment::PerKey => (vec![now_ns, now_ns + 1, now_ns.saturating_sub(1)], 2),
            Alignment::Clock | Alignment::FirstRequest => (vec![now_ns], 0),
        };
        let Some(twin) = self.twin(key) else { return };
        let found = Terms::of_answer(&found);
        let decided = times.iter().map(|&time_ns| {
            let mut twin = twin.clone();
            let decision = twin.check(key, time_ns, cost.into());
            (Terms::of_twin(&decision), twin)
        });
        let decided: Vec<_> = decided.collect();
        let agreeing = decided.iter().position(|(expected, _)| found.is_within(slack_ns, expected));
        let Some(agreeing) = agreeing else {
            let expected = &decided[0].0;
            panic!("key {key}, {cost} at {now_ns}\n tidegate: {found:?}\n     twin: {expected:?}");
        };
        self.twin = decided.into_iter().nth(agreeing).map(|(_, twin)| twin);
    }
}

impl Judge for Exact {
    fn passed(&mut self, key: u64, now_ns: u128, cost: u64, pass: &Pass) {
        self.learn(key, now_ns, &pass.windows());
        self.compare(key, now_ns, cost, Found::Pass(pass));
    }

    fn exhausted(&mut self, key: u64, now_ns: u128, cost: u64, denied: &Denied) {
        assert!(self.shifts_ns.contains_key(&key), "a new key was refused {cost}: {denied:?}");
        self.compare(key, now_ns, cost, Found::Denied(denied));
    }

    fn looked(&mut self, key: u64, now_ns: u128, pass: &Pass) {
        self.compare(key, now_ns, 0, Found::Pass(pass));
    }

    fn keys_owing(&mut self, now_ns: u128) -> usize {
        // A nanosecond earlier, for the same rounding.
        let now_ns = now_ns.saturating_sub(1);
        let keys: Vec<u64> = self.shifts_ns.keys().copied().collect();
        let mut owes = |key: &u64| match self.twin(*key) {
            Some(twin) => twin.check(*key, now_ns, 0).reset_ns > 0,
            None => true,
        };
        keys.iter().copied().filter(|key| owes(key)).count()
    }

    fn admitted_max(&self, latest_ns: u128) -> u128 {
        // A sliding window gives its limit, and as much again in each period.
        if let Some(Twin::Sliding(_)) = self.twin {
            let (limit, period_ns) = self.windows[0];
            return limit.saturating_add(limit.saturating_mul(latest_ns + 2) / period_ns);
        }
        // Windows that open with a request may each be short by a step of the grid, at most 1/64 of the
        // first period.
        let first_ns = self.windows[0].1;
        let short_ns = if self.alignment == Alignment::FirstRequest { first_ns / 64 + 1 } else { 0 };
        let most = |&(limit, period_ns): &(u128, u128)| {
            limit.saturating_mul(latest_ns / (period_ns - short_ns.min(period_ns - 1)) + 2)
        };
        self.windows.iter().map(most).min().unwrap_or(0)
    }
}

enum Found<'a> {
    Pass(&'a Pass),
    Denied(&'a Denied),
}

/// Limit, remaining, used up to the limit, next and reset, and whether it refuses.
type Share = (u128, u128, u128, u128, u128, bool);

/// What an answer and the twin's decision have in common. Counts above a limit are only compared as such:
/// the limiter's stop at what their field holds.
#[derive(Debug)]
struct Terms {
    passed: bool,
    remaining: u128,
    retry_ns: Option<u128>,
    shares: Vec<Share>,
}

impl Terms {
    /// Equal, but for waits that may differ by `slack_ns`.
    fn is_within(&self, slack_ns: u128, other: &Self) -> bool {
        let near = |one: u128, two: u128| one.abs_diff(two) <= slack_ns;
        let near_retry = match (self.retry_ns, other.retry_ns) {
            (Some(one), Some(two)) => near(one, two),
            (one, two) => one == two,
        };
        let near_share = |((limit, left, used, next, reset, refuses), two): (&Share, &Share)| {
            (limit, left, used, refuses) == (&two.0, &two.1, &two.2, &two.5)
                && near(*next, two.3)
                && near(*reset, two.4)
        };
        (self.passed, self.remaining, self.shares.len())
            == (other.passed, other.remaining, other.shares.len())
            && near_retry
            && self.shares.iter().zip(&other.shares).all(near_share)
    }

    fn of_twin(decision: &Decision) -> Self {
        Self {
            passed: decision.passed,
            remaining: decision.remaining,
            retry_ns: decision.retry_ns,
            shares: decision
                .shares
                .iter()
                .map(|share| {
                    let used = share.observed.min(share.limit);
                    (share.limit, share.remaining, used, share.next_ns, share.reset_ns, share.refuses)
                })
                .collect(),
        }
    }

    fn of_answer(found: &Found<'_>) -> Self {
        let (windows, remaining, retry) = match found {
            Found::Pass(pass) => (pass.windows(), pass.remaining(), None),
            Found::Denied(denied) => (denied.windows(), denied.remaining(), denied.retry_after()),
        };
        Self {
            passed: matches!(found, Found::Pass(_)),
            remaining: remaining.into(),
            retry_ns: retry.map(|wait| wait.as_nanos()),
            shares: windows
                .iter()
                .map(|window| {
                    (
                        window.limit.into(),
                        window.remaining.into(),
                        window.observed.min(window.limit).into(),
                        window.next_after.as_nanos(),
                        window.reset_after.as_nanos(),
                        window.refuses,
                    )
                })
                .collect(),
        }
    }
}

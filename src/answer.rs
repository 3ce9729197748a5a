//! `Pass` and `Denied`: what a check answers.
//!
//! Both are small copies of what the decision was made from (the rule, the word it left, the time).
//! Everything that can be asked of them is computed when it is asked: a caller who only wants to know
//! whether to go on pays for nothing else.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::decision::{Reason, WindowName, WindowState, Windows};
use crate::stagger::Refused;
use crate::word::{Part, Refusing, Rule};

const NOBODY: Refusing = Refusing { first: false, sustain: false };

/// A rule, a word and a time.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    pub(crate) rule: Rule,
    pub(crate) word: u64,
    /// The limiter's time in nanoseconds.
    pub(crate) ns: u64,
    /// By how much the key's time is shifted, in units.
    pub(crate) phase: u64,
    /// Whether the time may only lag, never have stepped back.
    pub(crate) is_steady: bool,
}

impl Snapshot {
    fn moment(&self) -> u64 {
        self.now().0
    }

    /// The moment, and the limiter's time in nanoseconds: what was read, or what the word proves if that is
    /// later.
    fn now(&self) -> (u64, u64) {
        let moment = self.rule.time().units(self.ns) + self.phase;
        let left_at = self.rule.left_at(self.word);
        if self.is_steady && left_at > moment {
            let left_at_ns = self.rule.time().first_ns_at(left_at - self.phase);
            return (left_at, left_at_ns.unwrap_or(self.ns));
        }
        (moment, self.ns)
    }

    /// Whether a word that was just charged uses as much as the threshold says.
    #[cfg(feature = "policy")]
    #[inline(always)]
    pub(crate) fn reaches(&self, threshold: &crate::word::Threshold) -> bool {
        self.rule.reaches(threshold, self.word, self.rule.time().units(self.ns) + self.phase)
    }

    /// The wait until a moment; `None` if it lies beyond the horizon.
    fn wait(&self, moment: u64) -> Option<Duration> {
        let at_ns = self.rule.time().first_ns_at(moment.saturating_sub(self.phase))?;
        Some(Duration::from_nanos(at_ns.saturating_sub(self.now().1)))
    }

    /// The same, with a wait that never ends for what lies beyond the horizon.
    fn wait_or_max(&self, moment: u64) -> Duration {
        self.wait(moment).unwrap_or(Duration::MAX)
    }

    /// When a refused request of `cost` is to come back.
    #[inline(never)]
    pub(crate) fn refused(&self, cost: u64) -> Refused {
        let time = self.rule.time();
        let (part, at) = self.rule.retry_at(self.word, time.units(self.ns) + self.phase, cost);
        Refused {
            ns: self.ns,
            due_ns: time.span_ns(at.saturating_sub(self.phase)),
            spacing_ns: time.span_ns(self.rule.spacing(part, cost)).max(1),
        }
    }

    fn parts(&self) -> [Part; 2] {
        self.rule.parts(self.word, self.moment())
    }

    /// The part with the fewest left; of equals the one that takes longer to give more.
    fn tightest(&self) -> Part {
        let [first, second] = self.parts();
        let key = |part: &Part| (part.remaining(), u64::MAX - part.next);
        if key(&second) <= key(&first) { second } else { first }
    }

    fn reset_after(&self) -> Duration {
        let [first, second] = self.parts();
        self.wait_or_max(first.reset.max(second.reset))
    }

    fn windows(&self, refusing: Refusing) -> Windows {
        let [first, second] = self.parts();
        let state = |part: Part, refuses| WindowState {
            name: part.name,
            limit: part.limit,
            period: Duration::from_nanos(self.rule.time().span_ns(part.period)),
            remaining: part.remaining(),
            observed: part.used,
            observed_max: part.used_max,
            next_after: self.wait_or_max(part.next),
            reset_after: self.wait_or_max(part.reset),
            refuses,
        };
        if first.name == second.name {
            Windows::one(state(first, refusing.first))
        } else {
            Windows::two(state(first, refusing.first), state(second, refusing.sustain))
        }
    }
}

/// The request may go on, and has been charged.
#[derive(Clone, Copy)]
#[must_use = "a pass is only one of two answers; use `allow` when nothing else matters"]
pub struct Pass {
    pub(crate) snapshot: Snapshot,
}

impl Pass {
    /// The limit of the window with the fewest left (of the only one; of the bucket, its burst).
    pub fn limit(&self) -> u64 {
        self.snapshot.tightest().limit
    }

    /// What would still pass right now, in units of cost, by the clock's coarse reading: on a
    /// [`Ticking`](crate::Ticking) clock what came back in the last millisecond may be missing. Of a hot key (see
    /// [`leases`](crate::Builder::leases)) it may be what would have passed a millisecond ago, less what threads have
    /// leased, each a 16th of it at most.
    pub fn remaining(&self) -> u64 {
        self.snapshot.tightest().remaining()
    }

    /// The wait until [`remaining`](Self::remaining) grows: the next whole token of a bucket, the end
    /// of the window with the fewest left, the time at which a sliding window weighs one less. Zero when nothing is used.
    pub fn next_after(&self) -> Duration {
        self.snapshot.wait_or_max(self.snapshot.tightest().next)
    }

    /// The wait until nothing counts as used any more.
    pub fn reset_after(&self) -> Duration {
        self.snapshot.reset_after()
    }

    /// Every window of the limit as it stands after this request.
    pub fn windows(&self) -> Windows {
        self.snapshot.windows(NOBODY)
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("windows", &&*self.windows()).finish_non_exhaustive()
    }
}

/// How a key stands: what `peek` answers.
#[derive(Clone, Copy)]
pub struct Standing {
    pub(crate) snapshot: Snapshot,
}

impl Standing {
    /// The limit of the window with the fewest left (of the only one; of the bucket, its burst).
    pub fn limit(&self) -> u64 {
        self.snapshot.tightest().limit
    }

    /// What would pass right now, in units of cost; see [`Pass::remaining`].
    pub fn remaining(&self) -> u64 {
        self.snapshot.tightest().remaining()
    }

    /// The wait until [`remaining`](Self::remaining) grows; zero when nothing is used.
    pub fn next_after(&self) -> Duration {
        self.snapshot.wait_or_max(self.snapshot.tightest().next)
    }

    /// The wait until nothing counts as used any more.
    pub fn reset_after(&self) -> Duration {
        self.snapshot.reset_after()
    }

    /// What is used beyond the limit, after a [`charge`](crate::Limiter::charge) of more than was left, or a reservation: of
    /// a bucket the tokens (rounded up) that have to come back before one is available, of windows what is counted
    /// above the limit, refused requests included, in the window that is furthest above.
    pub fn debt(&self) -> u64 {
        self.snapshot.rule.overdrawn(self.snapshot.word, self.snapshot.moment())
    }

    /// The shortest wait after which a request of `cost` passes if nobody else comes first: zero if it would now, `None`
    /// if it never can.
    pub fn retry_after(&self, cost: u64) -> Option<Duration> {
        let Snapshot { rule, word, .. } = self.snapshot;
        let limit = rule.parts(word, self.snapshot.moment()).iter().map(|part| part.limit).min();
        if limit.is_some_and(|limit| cost > limit) {
            return None;
        }
        if cost <= self.remaining() {
            return Some(Duration::ZERO);
        }
        self.snapshot.wait(rule.retry_at(word, self.snapshot.moment(), cost).1)
    }

    /// Every window of the limit as it stands.
    pub fn windows(&self) -> Windows {
        self.snapshot.windows(NOBODY)
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("windows", &&*self.windows()).finish_non_exhaustive()
    }
}

/// The request must not go on.
#[derive(Clone, Copy)]
pub struct Denied {
    pub(crate) snapshot: Snapshot,
    pub(crate) cost: u64,
    pub(crate) reason: Reason,
    /// The limiter's time in nanoseconds at which, for [`Reason::Full`], a slot may become free (`u64::MAX` if that is beyond
    /// the horizon); and for [`Reason::Exhausted`] where the refused are staggered, it is to come back (else 0).
    pub(crate) back_at_ns: u64,
    /// Whether the request is among what was used, if refused ones are.
    pub(crate) is_counted: bool,
}

impl Denied {
    /// Why: used up for now, a cost that can never fit, or no room for a new key.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The window that is waited for: the one with the longest wait, sustain when both are equal. For
    /// [`Reason::Full`] no window refused; this and what follows then describe a key never seen.
    pub fn binding(&self) -> WindowName {
        if self.reason == Reason::TooLarge {
            // The window that it can never fit, not the one that happens to be fuller.
            let [first, second] = self.snapshot.parts();
            return if self.refusing().first { first.name } else { second.name };
        }
        self.retry_at().0
    }

    /// The limit of the [binding](Self::binding) window.
    pub fn limit(&self) -> u64 {
        self.binding_part().limit
    }

    /// What would still pass right now, in units of cost: less than was asked for; 0 for
    /// [`Reason::Full`].
    pub fn remaining(&self) -> u64 {
        if self.reason == Reason::Full { 0 } else { self.snapshot.tightest().remaining() }
    }

    /// What was used in the binding window's period, this request included if refused ones count. In a sliding window,
    /// with what the period before still weighs, rounded up.
    pub fn observed(&self) -> u64 {
        self.binding_part().used
    }

    /// The shortest wait that is enough: the same request passes then if nobody else comes first, and
    /// fails a nanosecond earlier, in the limiter's time. On a [`Ticking`](crate::Ticking) clock that time may
    /// lag by about a millisecond, or by a stall that nobody has noticed yet, and the wait be as much too long.
    ///
    /// `None` for [`Reason::TooLarge`], and at the end of the limiter's time (decades away): no wait
    /// is enough. For [`Reason::Full`] it is when one of the keys looked at becomes idle, which is no
    /// promise.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::TooLarge | Reason::Unsupported => None,
            Reason::Full if self.back_at_ns == u64::MAX => None,
            Reason::Full => Some(Duration::from_nanos(self.back_at_ns.saturating_sub(self.snapshot.ns))),
            Reason::Exhausted => self.snapshot.wait(self.retry_at().1),
        }
    }

    /// A wait that does not bring all the refused back at once: never shorter than [`retry_after`](Self::retry_after), which it
    /// is in a limiter that does not [stagger](crate::Builder::stagger).
    ///
    /// In one that does, each refusal of a key takes the next place in a row: the first is the shortest wait, and each one
    /// after it is as much later than the one before as what it costs takes to come back (of a bucket one emission interval for each
    /// unit of cost, of a window so many times its period ÷ limit). As time passes places come up, and go whether or not who has one
    /// comes. In a bucket, and in one fixed window where all cost the same, whoever comes at his place passes if nobody else
    /// came. Of two windows one may run out while places follow the other, and a sliding one forgets unevenly: there some are
    /// refused again.
    /// No place is further away than the limiter's
    /// [`stagger_wait_max`](crate::Builder::stagger_wait_max); when the row is as long, whoever is refused gets that one.
    ///
    /// What is read here was settled when the request was refused: reading it twice takes no second place.
    pub fn retry_after_staggered(&self) -> Option<Duration> {
        let place = Duration::from_nanos(self.back_at_ns.saturating_sub(self.snapshot.ns));
        self.retry_after().map(|wait| wait.max(place))
    }

    /// [`retry_after_staggered`](Self::retry_after_staggered) in whole seconds, as [`retry_after_secs`](Self::retry_after_secs) has
    /// the shortest wait: what `Retry-After` is to say in a limiter that staggers. Places within one second come up together then.
    pub fn retry_after_staggered_secs(&self) -> u64 {
        self.retry_after_staggered().map_or(u64::MAX, whole_seconds)
    }

    /// [`retry_after`](Self::retry_after) in whole seconds as the `Retry-After` field of HTTP wants
    /// it: rounded up, at least 1. `u64::MAX` where no wait is enough: do not tell a caller to try
    /// again then.
    pub fn retry_after_secs(&self) -> u64 {
        self.retry_after().map_or(u64::MAX, whole_seconds)
    }

    /// The wait until there is more quota in the window with the fewest left: enough for a request of
    /// cost 1, perhaps not for this one. [`retry_after`](Self::retry_after) is.
    pub fn next_after(&self) -> Duration {
        self.snapshot.wait_or_max(self.snapshot.tightest().next)
    }

    /// The wait until nothing counts as used any more.
    pub fn reset_after(&self) -> Duration {
        self.snapshot.reset_after()
    }

    /// Every window of the limit as it stands after this request; `refuses` tells which ones refused
    /// it.
    pub fn windows(&self) -> Windows {
        self.snapshot.windows(self.refusing())
    }

    fn refusing(&self) -> Refusing {
        if matches!(self.reason, Reason::Full | Reason::Unsupported) {
            return NOBODY;
        }
        self.snapshot.rule.refusing(self.snapshot.word, self.snapshot.moment(), self.cost, self.is_counted)
    }

    fn retry_at(&self) -> (WindowName, u64) {
        self.snapshot.rule.retry_at(self.snapshot.word, self.snapshot.moment(), self.cost)
    }

    fn binding_part(&self) -> Part {
        let [first, second] = self.snapshot.parts();
        if first.name == self.binding() { first } else { second }
    }
}

/// A wait as `Retry-After` wants it: rounded up, at least 1.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied")
            .field("reason", &self.reason)
            .field("cost", &self.cost)
            .field("retry_after", &self.retry_after())
            .field("windows", &&*self.windows())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::TooLarge => {
                write!(
                    f,
                    "a cost of {} can never fit the {} limit of {}",
                    self.cost,
                    self.binding(),
                    self.limit()
                )
            }
            Reason::Unsupported => f.write_str("windows have no turns to reserve; only a bucket has"),
            Reason::Full => f.write_str("no room for a new key where it may stand"),
            Reason::Exhausted => {
                let (binding, limit, observed) = (self.binding(), self.limit(), self.observed());
                write!(
                    f,
                    "the {binding} limit of {limit} has no room for a cost of {} ({observed} used)",
                    self.cost
                )?;
                match self.retry_after() {
                    Some(wait) => write!(f, "; retry after {wait:?}"),
                    None => f.write_str("; its time has ended"),
                }
            }
        }
    }
}

impl Error for Denied {}

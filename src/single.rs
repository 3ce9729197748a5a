//! [`SingleLimiter`]: one limit for everybody.

use std::fmt;
use std::time::Duration;

use crate::account::Named;
use crate::answer::{Denied, Pass, Standing};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::receipt::{Receipt, Reservation};
use crate::settings::{Core, Settings, passes};
use crate::table::{Answer, Hot, OWN, Single, SlotTable};
use crate::time::{Clock, Ticking};
use crate::word::{CarryOver, Outcome};

/// A limit that all requests count against, whoever sends them: a server's whole capacity, a paid upstream's quota.
///
/// The same decisions as those of a [`Limiter`](crate::Limiter) that is always asked for one key, a little faster, in
/// less than 2 KiB. Threads that meet at it lease, as they do at a hot key there.
///
/// Share it by reference or in an [`Arc`](std::sync::Arc): every method takes `&self`.
///
/// ```
/// use tidegate::{Limit, Rate, SingleLimiter};
///
/// let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_second(5_000), 500)).build()?;
/// assert_eq!(limiter.check().map(|pass| pass.remaining()).ok(), Some(499));
/// assert!(limiter.allow());
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
pub struct SingleLimiter<C = Ticking> {
    single: Single,
    pub(crate) core: Core<C>,
}

/// Settings of a [`SingleLimiter`] to be.
#[derive(Clone, Debug)]
#[must_use = "nothing is limited before `build`"]
pub struct SingleBuilder<C = Ticking> {
    settings: Settings<C>,
    leases: bool,
}

impl SingleLimiter {
    /// Begins a limiter that enforces `limit` for all requests together.
    pub fn builder(limit: Limit) -> SingleBuilder {
        SingleBuilder { settings: Settings::new(limit), leases: true }
    }
}

impl<C: Clock> SingleBuilder<C> {
    /// Fixes the phase of [`Alignment::PerKey`](crate::Alignment::PerKey), for runs that repeat on one kind of
    /// processor. Unless told it is random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Whether threads that meet may each lease some tokens in advance, as in
    /// [`Builder::leases`](crate::Builder::leases); they may unless told.
    pub fn leases(mut self, leases: bool) -> Self {
        self.leases = leases;
        self
    }

    /// Whether the refused are told to come back one after the other; see [`Builder::stagger`](crate::Builder::stagger).
    pub fn stagger(mut self, stagger: bool) -> Self {
        self.settings.stagger = stagger;
        self
    }

    /// The longest staggered wait; see [`Builder::stagger_wait_max`](crate::Builder::stagger_wait_max).
    pub fn stagger_wait_max(mut self, wait_max: Duration) -> Self {
        self.settings.stagger_wait_max = wait_max;
        self
    }

    /// The clock; a [`Ticking`] one unless told.
    pub fn clock<D: Clock>(self, clock: D) -> SingleBuilder<D> {
        SingleBuilder { settings: self.settings.with_clock(clock), leases: self.leases }
    }

    /// Checks everything and builds the limiter.
    ///
    /// May block for up to 200 ms when it makes the first [`Ticking`] clock of the process.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the first setting that cannot be honoured.
    pub fn build(self) -> Result<SingleLimiter<C>, ConfigError> {
        let core = self.settings.build(usize::MAX)?;
        let key = SlotTable::fingerprint(core.hashing.of(&()));
        let hot = Hot::new(if self.leases { core.engine.rule.lease_ns() } else { 0 });
        Ok(SingleLimiter { single: Single::new(key, hot), core })
    }
}

impl<C: Clock> SingleLimiter<C> {
    /// Decides one request, and counts it.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on. Its reason is [`Reason::Full`](crate::Reason::Full) where the
    /// check lost thousands of races to other threads.
    #[inline(always)]
    pub fn check(&self) -> Result<Pass, Denied> {
        self.check_n(1)
    }

    /// Decides a request that costs `cost`: all of it is charged, or nothing passes.
    ///
    /// A cost of 0 looks without touching: it always passes and changes nothing.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on; [`Reason::TooLarge`](crate::Reason::TooLarge) when it
    /// never can.
    #[inline(always)]
    pub fn check_n(&self, cost: u64) -> Result<Pass, Denied> {
        let answer = match self.single.check_once(&self.core.engine, cost) {
            Ok(charged) if charged.decided.outcome == Outcome::Pass => {
                return self.core.respond_at_once(charged, self.single.key(), cost);
            }
            Ok(charged) => Answer::Decided(charged),
            Err(missed) => self.single.check_on(&self.core.engine, cost, missed),
        };
        self.core.respond(answer, self.single.key(), cost)
    }

    /// How the limiter stands, by the precise clock. Changes nothing.
    pub fn peek(&self) -> Standing {
        let seen = self.single.peek(&self.core.engine);
        self.core.standing_in(self.core.engine.era(), seen, self.single.key())
    }

    /// Charges a cost that is known only now, as [`Limiter::charge`](crate::Limiter::charge) does.
    ///
    /// # Errors
    /// [`Denied`] with [`Reason::Full`](crate::Reason::Full) after thousands of lost races.
    pub fn charge(&self, cost: u64) -> Result<Receipt, Denied> {
        self.core.charge(self.named(), cost, |order| self.single.order(&self.core.engine, order))
    }

    /// Decides a request as [`check_n`](Self::check_n) does, and answers with a receipt; no refusal is counted.
    ///
    /// # Errors
    /// [`Denied`] when the request must not go on.
    pub fn take(&self, cost: u64) -> Result<Receipt, Denied> {
        self.core.take(self.named(), cost, |order| self.single.order(&self.core.engine, order))
    }

    /// Gives back what a receipt is still good for, as [`Limiter::refund`](crate::Limiter::refund) does.
    pub fn refund(&self, receipt: Receipt) -> u64 {
        self.refund_part(receipt, u64::MAX)
    }

    /// Gives back `tokens` of what was charged, as [`Limiter::refund_part`](crate::Limiter::refund_part) does.
    pub fn refund_part(&self, receipt: Receipt, tokens: u64) -> u64 {
        self.core.refund(&receipt, tokens, Some(self.single.hot()), |order, is_good| {
            self.single.order_on(&self.core.engine, order, is_good)
        })
    }

    /// Gives back up to `tokens` of what is used, as [`Limiter::refund_key`](crate::Limiter::refund_key) does: **this adds
    /// to what may be admitted**.
    pub fn refund_tokens(&self, tokens: u64) -> u64 {
        let hot = Some(self.single.hot());
        self.core.credit(tokens, self.named(), hot, |order| self.single.order(&self.core.engine, order))
    }

    /// Begins anew, as [`Limiter::reset`](crate::Limiter::reset) does.
    pub fn reset(&self) -> bool {
        let hot = Some(self.single.hot());
        self.core.reset(self.named(), hot, |order| self.single.order(&self.core.engine, order))
    }

    /// Takes a place in line, as [`Limiter::reserve`](crate::Limiter::reserve) does.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, in the cases told there.
    pub fn reserve(&self, cost: u64, wait_max: Duration) -> Result<Reservation, Denied> {
        self.core.reserve(self.named(), cost, wait_max, |order| self.single.order(&self.core.engine, order))
    }

    /// Gives a reservation back if it is the last in line, as [`Limiter::cancel`](crate::Limiter::cancel) does.
    pub fn cancel(&self, reservation: Reservation) -> bool {
        self.core.cancel(&reservation, Some(self.single.hot()), |order, is_good| {
            self.single.order_on(&self.core.engine, order, is_good)
        })
    }

    /// Where it stands among the keys of all limiters.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.core.number, self.single.key())
    }

    fn named(&self) -> Named {
        Named { hash: self.single.key(), fingerprint: self.single.key(), tier: OWN }
    }

    /// Whether one request may go on; counts it as [`check`](Self::check) does.
    #[inline(always)]
    #[must_use = "a request that is not allowed must not go on"]
    pub fn allow(&self) -> bool {
        match self.single.check_once(&self.core.engine, 1) {
            Ok(charged) => passes(&Answer::Decided(charged)),
            Err(missed) => passes(&self.single.check_on(&self.core.engine, 1, missed)),
        }
    }

    /// Has the calling thread lease as if other threads had got in its way: for tests, which cannot wait for those.
    #[doc(hidden)]
    pub fn warm(&self) {
        self.single.hot().warm(self.single.key(), self.core.engine.coarse_ns(), 1 << 20);
    }

    /// Changes the limit while requests are decided, as [`Limiter::set_limit`](crate::Limiter::set_limit) does.
    ///
    /// # Errors
    /// A [`ConfigError`], and nothing is changed, in the cases told there.
    pub fn set_limit(&self, limit: Limit, carry_over: CarryOver) -> Result<(), ConfigError> {
        self.core.set_limit(limit, carry_over, Some(self.single.hot()), |era| {
            self.single.walk(&self.core.engine, era)
        })
    }

    /// The limit that is in force.
    pub fn limit(&self) -> Limit {
        self.core.limit()
    }

    /// The clock it runs on.
    pub fn clock(&self) -> &C {
        &self.core.engine.clock
    }

    /// How long after it was built the limiter's time lasts at least, as
    /// [`Limiter::horizon`](crate::Limiter::horizon) tells.
    pub fn horizon(&self) -> Duration {
        self.core.horizon()
    }

    /// The step of the limiter's time, as [`Limiter::resolution`](crate::Limiter::resolution) tells.
    pub fn resolution(&self) -> Duration {
        self.core.resolution()
    }
}

impl<C> fmt::Debug for SingleLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleLimiter").field("limit", &self.core.limit()).finish_non_exhaustive()
    }
}

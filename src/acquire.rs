//! Waiting for a bucket's tokens in an async task: `acquire`, `acquire_n` and `acquire_timeout` of each limiter.
//!
//! ```text
//! nobody waits    reserve without a wait, and go on
//! else            take a seat ─▶ become the head ─▶ reserve ─▶ sleep ─▶ hand on ─▶ go on when who was before has gone
//! dropped         nothing charged                    cancel the reservation, then hand on
//! ```
//!
//! Only the head has reserved, so nobody's reservation stands behind one that is cancelled. Timers are late by a
//! millisecond or two, though, and a bucket that is full again before the next head reserves has lost what came in
//! vain. So where a burst lasts for less than [`LATE`], the head hands on that much earlier, and the next one reserves
//! behind it.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::answer::{Denied, Standing};
use crate::decision::Reason;
use crate::exact::ExactLimiter;
use crate::limiter::Limiter;
use crate::queue::Queues;
use crate::receipt::Reservation;
use crate::single::SingleLimiter;
use crate::time::Clock;

/// By how much a task may go on late without a loss of rate, whatever the burst.
const LATE: Duration = Duration::from_millis(5);

/// A key to wait for, by its limiter.
trait Account {
    /// The limiter's queues, and which of them is the key's.
    fn queue(&self) -> (&Queues, u64);
    fn peek(&self) -> Standing;
    fn reserve(&self, cost: u64, wait_max: Duration) -> Result<Reservation, Denied>;
    fn cancel(&self, reservation: Reservation) -> bool;
}

/// Waits until `cost` tokens are charged and there.
async fn wait(account: impl Account, cost: u64, timeout: Option<Duration>) -> Result<(), Denied> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let (queues, hash) = account.queue();
    let standing = account.peek();
    let bucket = standing.windows()[0];
    // What needs no tokens, or never gets them, has nothing to queue for.
    if cost == 0 || cost > bucket.limit || queues.are_empty_for(hash) {
        match account.reserve(cost, Duration::ZERO) {
            Err(denied) if denied.reason() == Reason::Exhausted => {}
            answer => return answer.map(drop),
        }
    }

    let too_late = || Denied {
        snapshot: account.peek().snapshot,
        cost,
        reason: Reason::Exhausted,
        back_at_ns: 0,
        is_counted: false,
    };
    let (mut seat, before) = queues.sit(hash, cost);
    if timeout.is_some_and(|timeout| least_wait(&standing, before + u128::from(cost)) > timeout) {
        return Err(too_late());
    }
    let head = seat.head();
    let mut head = within(deadline, head.lock()).await.ok_or_else(too_late)?;

    // Before the reservation: who arrives meanwhile counts these tokens once or not at all, never twice.
    seat.want_no_more();
    let wait_max = deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
    let reservation = account.reserve(cost, wait_max)?;
    let (now, wait) = (Instant::now(), reservation.wait());
    // Declared after `head`, so dropped before it: the next head finds the account without this reservation.
    let mut place = Place { account: &account, reservation: Some(reservation) };
    let (_gone, gone) = oneshot::channel();
    let before = head.replace(gone);

    sleep_till(now + wait.saturating_sub(LATE.saturating_sub(bucket.period))).await;
    drop(head);
    if let Some(before) = before {
        // An error says that it has gone. One that is never polled holds up nobody beyond a deadline.
        let _ = within(deadline, before).await;
    }
    sleep_till(now + wait).await;
    place.reservation = None;
    Ok(())
}

/// A reservation that is given back when this is dropped, if it is the last in line.
struct Place<'a, A: Account> {
    account: &'a A,
    reservation: Option<Reservation>,
}

impl<A: Account> Drop for Place<'_, A> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.account.cancel(reservation);
        }
    }
}

/// The least wait until as many tokens have come, more than a burst of them too, if nothing is given back.
fn least_wait(standing: &Standing, tokens: u128) -> Duration {
    let bucket = standing.windows()[0];
    let first = u64::try_from(tokens).unwrap_or(bucket.limit).min(bucket.limit);
    let first_wait = standing.retry_after(first).unwrap_or(Duration::MAX);
    // A period is told in nanoseconds rounded up: not one too many for each burst of those who wait.
    let period_ns = bucket.period.as_nanos().saturating_sub(1);
    let beyond_ns = period_ns.saturating_mul(tokens - u128::from(first)) / u128::from(bucket.limit);
    first_wait.saturating_add(Duration::from_nanos(u64::try_from(beyond_ns).unwrap_or(u64::MAX)))
}

/// What a future comes to, if it does before the deadline.
async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

/// Sleeps, not at all if the time has come, and again if a timer could not be set as far ahead.
async fn sleep_till(time: Instant) {
    while Instant::now() < time {
        sleep_until(time).await;
    }
}

impl<C: Clock> Limiter<C> {
    /// Waits for one token of `key`, first come, first served.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidegate::{Limit, Limiter, Rate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_second(100), 1)).build()?;
    /// for _ in 0..3 {
    ///     limiter.acquire("api").await?; // the second and the third wait for 10 ms each
    /// }
    /// let denied = limiter.acquire_timeout("api", 1, Duration::from_millis(1)).await.unwrap_err();
    /// assert!(denied.retry_after() > Some(Duration::from_millis(1)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The same as [`acquire_n`](Self::acquire_n) of 1.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, where no wait helps.
    ///
    /// # Panics
    /// As [`acquire_n`](Self::acquire_n) does.
    pub async fn acquire<K: Hash + ?Sized>(&self, key: &K) -> Result<(), Denied> {
        self.acquire_n(key, 1).await
    }

    /// Waits until `cost` tokens of `key` are charged and there. Those who wait for a key queue in the order in which
    /// they were first polled, and only the head of the queue reserves: a large cost waits for its turn, and nobody behind it
    /// overtakes it. Nor does a check: while the head waits for its tokens, checks are refused. Keys of one hash share
    /// a queue. A queue is there while somebody waits: memory grows with the tasks that wait, and with nothing else.
    ///
    /// A future that is dropped while it queues has charged nothing. The head gives its reservation back, unless others have
    /// charged the key since, or given back to it or to one in 64 other keys ([`cancel`](Self::cancel) says why); where a whole
    /// burst takes less than 5 ms to fill, the next in the queue may do that in the last 5 ms.
    ///
    /// A task goes on when its turn has come by the limiter's clock and tokio's timer has noticed, a millisecond or
    /// two later. A future that is neither polled nor dropped holds up those behind it.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged, where no wait helps: `cost` is above the burst; the key is new and has no room;
    /// the limit has windows ([`Reason::Unsupported`]); or the turn would come after the end of the limiter's time.
    ///
    /// # Panics
    /// If it has to wait outside a tokio runtime, or in one whose timer is not enabled.
    pub async fn acquire_n<K: Hash + ?Sized>(&self, key: &K, cost: u64) -> Result<(), Denied> {
        wait((self, key), cost, None).await
    }

    /// The same, but for as long as `timeout` at most, the time in the queue included. It fails at once if, as the queue and
    /// the key stand, the turn would come later.
    ///
    /// # Errors
    /// [`Denied`], and nothing is charged: the turn would come too late, or has not come in time ([`Reason::Exhausted`]); or
    /// for the reasons of [`acquire_n`](Self::acquire_n).
    ///
    /// # Panics
    /// As [`acquire_n`](Self::acquire_n) does.
    pub async fn acquire_timeout<K: Hash + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        timeout: Duration,
    ) -> Result<(), Denied> {
        wait((self, key), cost, Some(timeout)).await
    }
}

impl<C: Clock, K: Hash + ?Sized> Account for (&Limiter<C>, &K) {
    fn queue(&self) -> (&Queues, u64) {
        (&self.0.core.queues, self.0.core.hashing.of(self.1))
    }
    fn peek(&self) -> Standing {
        self.0.peek(self.1)
    }
    fn reserve(&self, cost: u64, wait_max: Duration) -> Result<Reservation, Denied> {
        self.0.reserve(self.1, cost, wait_max)
    }
    fn cancel(&self, reservation: Reservation) -> bool {
        self.0.cancel(reservation)
    }
}

impl<K: Hash + Eq, C: Clock> ExactLimiter<K, C> {
    /// Waits for one token of `key`, as [`Limiter::acquire`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire<Q>(&self, key: &Q) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.acquire_n(key, 1).await
    }

    /// Waits for `cost` tokens of `key`, as [`Limiter::acquire_n`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire_n<Q>(&self, key: &Q, cost: u64) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        wait((self, key), cost, None).await
    }

    /// Waits for `timeout` at most, as [`Limiter::acquire_timeout`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire_timeout<Q>(&self, key: &Q, cost: u64, timeout: Duration) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        wait((self, key), cost, Some(timeout)).await
    }
}

impl<C: Clock, K, Q> Account for (&ExactLimiter<K, C>, &Q)
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    fn queue(&self) -> (&Queues, u64) {
        (&self.0.core.queues, self.0.core.hashing.of(self.1))
    }
    fn peek(&self) -> Standing {
        self.0.peek(self.1)
    }
    fn reserve(&self, cost: u64, wait_max: Duration) -> Result<Reservation, Denied> {
        self.0.reserve(self.1, cost, wait_max)
    }
    fn cancel(&self, reservation: Reservation) -> bool {
        self.0.cancel(reservation)
    }
}

impl<C: Clock> SingleLimiter<C> {
    /// Waits for one token, as [`Limiter::acquire`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire(&self) -> Result<(), Denied> {
        self.acquire_n(1).await
    }

    /// Waits for `cost` tokens, as [`Limiter::acquire_n`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire_n(&self, cost: u64) -> Result<(), Denied> {
        wait(self, cost, None).await
    }

    /// Waits for `timeout` at most, as [`Limiter::acquire_timeout`] does.
    ///
    /// # Errors
    /// [`Denied`] in the cases told there.
    ///
    /// # Panics
    /// In the cases told there.
    pub async fn acquire_timeout(&self, cost: u64, timeout: Duration) -> Result<(), Denied> {
        wait(self, cost, Some(timeout)).await
    }
}

impl<C: Clock> Account for &SingleLimiter<C> {
    fn queue(&self) -> (&Queues, u64) {
        (&self.core.queues, 0)
    }
    fn peek(&self) -> Standing {
        SingleLimiter::peek(self)
    }
    fn reserve(&self, cost: u64, wait_max: Duration) -> Result<Reservation, Denied> {
        SingleLimiter::reserve(self, cost, wait_max)
    }
    fn cancel(&self, reservation: Reservation) -> bool {
        SingleLimiter::cancel(self, reservation)
    }
}

//! The clocks a limiter may run on. Only this file names quanta.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::shared::{Refresher, STALL_NS, SharedTime};
use super::timebase::saturating_ns;
use crate::sync::{AtomicU64, Ordering};

/// Where a limiter takes its time from.
///
/// Both readings are nanoseconds since one origin of the clock's own, whichever, and below 2^63 (292 years): a
/// limiter's time starts when it is built. `coarse` may lag behind
/// `precise` and must never lead it: a limiter admits on the coarse reading, and refuses after a precise one or
/// where [no lag](Self::lag_bound_ns) would matter. A clock must not ask a limiter that runs on it. A reading may step back; a limiter then admits nothing more for it and refuses for at
/// most the length of the step.
pub trait Clock: Send + Sync {
    /// A cheap reading in nanoseconds, at most [`lag_max`](Self::lag_max) behind the precise one.
    fn coarse(&self) -> u64;

    /// An exact reading in nanoseconds.
    fn precise(&self) -> u64;

    /// A bound on how far behind a coarse reading is now, in nanoseconds: what would still be refused so much
    /// later is refused at once. `None` (unless told) has the refusal read the precise clock. Asked once in a
    /// check, twice at most.
    #[inline]
    fn lag_bound_ns(&self) -> Option<u64> {
        None
    }

    /// Whether `coarse` and `precise` never step back, a coarse one's lag aside (`unix` may); `false` unless
    /// told. What a key has used then proves that a time has been, which keeps a lag out of the waits that are
    /// told.
    #[inline]
    fn never_steps_back(&self) -> bool {
        false
    }

    /// Wall time since the Unix epoch; only [`Alignment::Clock`](crate::Alignment::Clock) and snapshots ask for it.
    fn unix(&self) -> Duration;

    /// The furthest that a coarse reading ever lagged behind.
    fn lag_max(&self) -> Duration {
        Duration::ZERO
    }

    /// How often checks found that coarse readings had stopped, and went on without them.
    fn stalls(&self) -> u64 {
        0
    }
}

/// Wall time of the system; before 1970 reads as 1970.
fn system_unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Nanoseconds of quanta's fastest counter since this was made.
#[derive(Debug)]
struct Counter {
    clock: quanta::Clock,
    start: u64,
}

impl Counter {
    fn new() -> Self {
        let clock = quanta::Clock::new();
        let start = clock.raw();
        Self { clock, start }
    }

    #[inline]
    fn read(&self) -> u64 {
        self.clock.delta_as_nanos(self.start, self.clock.raw())
    }
}

/// Whether a thread may trust the shared time: not at first, and not each 64th time. It is told to read the counter
/// then, which is how a stopped refresher is noticed by threads that only refuse.
#[derive(Debug, Default)]
pub struct Trust {
    asked: Cell<u32>,
}

/// Trusted once less in a row.
const TRUST_ENDS: u32 = 64;

impl Trust {
    /// Of a thread that has not asked yet.
    pub const fn new() -> Self {
        Self { asked: Cell::new(0) }
    }

    /// Whether to trust it this time.
    #[inline]
    pub fn once_more(&self) -> bool {
        let asked = self.asked.get();
        self.asked.set(asked.wrapping_add(1));
        !asked.is_multiple_of(TRUST_ENDS)
    }
}

thread_local! {
    static TRUST: Trust = const { Trust::new() };
}

/// The default clock: one shared time for the process, moved about once a millisecond by a small
/// thread of its own (`tidegate-clock`), beside the precise counter.
///
/// A check costs one load where it would cost a counter read of about 20 ns. While nobody asks for
/// the time the thread sleeps up to a second, and costs nothing: checks read the counter meanwhile. If it is
/// starved or gone (after a `fork`), checks keep the last time until a refusal notices: a thread's first does, each
/// 64th, and any that 50 ms could change. What a lag `L` can cost is stated as part of every bound: a bucket admits at most `burst + rate · (Δ + L)` in
/// any Δ, and [`lag_max`](Clock::lag_max) reports the largest `L` there ever was.
///
/// Handles are copies of one reference; make as many as you like.
#[derive(Clone, Copy, Debug)]
pub struct Ticking {
    process: &'static Process,
}

#[derive(Debug)]
struct Process {
    counter: Counter,
    time: SharedTime,
    /// The process that the refresher was started in: threads do not survive a fork.
    started_in: AtomicU64,
}

impl Ticking {
    /// The process's shared clock, started on first use.
    ///
    /// The first call in a process may block for up to 200 ms, while the counter is calibrated. If
    /// the thread cannot be started, the clock works all the same and reads the counter every time; in a
    /// forked child, from the 64th refusal in a row on a thread on at the latest, until a limiter is built there.
    pub fn new() -> Self {
        static PROCESS: OnceLock<Process> = OnceLock::new();
        let process = PROCESS.get_or_init(|| Process {
            counter: Counter::new(),
            time: SharedTime::new(),
            started_in: AtomicU64::new(0),
        });
        process.start_refresher();
        Self { process }
    }
}

impl Process {
    /// Starts the refresher unless this process has one.
    fn start_refresher(&'static self) {
        let this = u64::from(std::process::id());
        // ORDERING: Relaxed: only which caller won matters, nothing is published by it.
        if self.started_in.swap(this, Ordering::Relaxed) == this {
            return;
        }
        // If it cannot be started, the shared time stays in the state in which nobody takes it.
        let spawned = thread::Builder::new().name("tidegate-clock".into()).spawn(move || {
            let mut refresher = Refresher::default();
            loop {
                let sleep_ns = self.time.visit(&mut refresher, || self.counter.read());
                thread::sleep(Duration::from_nanos(sleep_ns));
            }
        });
        if spawned.is_err() {
            self.started_in.store(0, Ordering::Relaxed); // the next limiter tries again
        }
    }
}

impl Default for Ticking {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Ticking {
    #[inline]
    fn coarse(&self) -> u64 {
        self.process.time.coarse(|| self.process.counter.read())
    }

    #[inline]
    fn precise(&self) -> u64 {
        self.process.time.precise(|| self.process.counter.read())
    }

    #[inline]
    fn lag_bound_ns(&self) -> Option<u64> {
        TRUST.with(Trust::once_more).then_some(STALL_NS)
    }

    #[inline]
    fn never_steps_back(&self) -> bool {
        true
    }

    fn unix(&self) -> Duration {
        system_unix()
    }

    fn lag_max(&self) -> Duration {
        Duration::from_nanos(self.process.time.lag_max_ns())
    }

    /// How often checks found the refresher stopped (for 50 ms or more) and went on without it.
    fn stalls(&self) -> u64 {
        self.process.time.stalls()
    }
}

/// The precise counter at every check: about 20 ns more a check, no thread and no lag.
#[derive(Clone, Debug)]
pub struct Precise {
    counter: Arc<Counter>,
}

impl Precise {
    /// A clock whose origin is now. The first one in a process may block for up to 200 ms, while the
    /// counter is calibrated.
    pub fn new() -> Self {
        Self { counter: Arc::new(Counter::new()) }
    }
}

impl Default for Precise {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Precise {
    #[inline]
    fn coarse(&self) -> u64 {
        self.counter.read()
    }

    #[inline]
    fn precise(&self) -> u64 {
        self.counter.read()
    }

    #[inline]
    fn lag_bound_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn unix(&self) -> Duration {
        system_unix()
    }
}

/// The last reading of a [`Manual`] clock, in nanoseconds.
const READING_MAX: u64 = (1 << 63) - 1;

/// A clock that stands still until it is moved: for tests, simulations and replays. Clones share one
/// time. A test of windows wants [`Alignment::Clock`](crate::Alignment::Clock) too, or a fixed seed: by
/// default each key's windows start at a time of its own.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{ExactLimiter, Limit, Manual, Rate};
///
/// let clock = Manual::new();
/// let limiter = ExactLimiter::<u32>::builder(Limit::bucket(Rate::per_second(1), 1))
///     .clock(clock.clone())
///     .build()?;
/// assert!(limiter.allow(&7));
/// assert!(!limiter.allow(&7));
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.allow(&7));
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Manual {
    shared: Arc<ManualTime>,
}

#[derive(Debug)]
struct ManualTime {
    now_ns: AtomicU64,
    /// Unix time minus `now_ns`, wrapping.
    unix_ahead_ns: AtomicU64,
}

impl Manual {
    /// Starts at 0, which is also Unix time 0.
    pub fn new() -> Self {
        Self::at_unix(Duration::ZERO)
    }

    /// Starts at 0, when wall time is `since_epoch` (up to the year 2554).
    pub fn at_unix(since_epoch: Duration) -> Self {
        let unix_ahead_ns = AtomicU64::new(saturating_ns(since_epoch));
        Self { shared: Arc::new(ManualTime { now_ns: AtomicU64::new(0), unix_ahead_ns }) }
    }

    /// Moves time forward, wall time with it; stops at 2^63 − 1 ns.
    pub fn advance(&self, by: Duration) {
        let by = saturating_ns(by);
        let mut now = self.shared.now_ns.load(Ordering::Relaxed);
        while let Err(seen) = self.shared.now_ns.compare_exchange(
            now,
            now.saturating_add(by).min(READING_MAX),
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            now = seen;
        }
    }

    /// Sets the time since the origin, wall time with it. It may step back.
    pub fn set(&self, since_origin: Duration) {
        self.shared.now_ns.store(saturating_ns(since_origin).min(READING_MAX), Ordering::Release);
    }

    /// Sets wall time alone, as an administrator or a time server would.
    pub fn set_unix(&self, since_epoch: Duration) {
        let ahead = saturating_ns(since_epoch).wrapping_sub(self.coarse());
        self.shared.unix_ahead_ns.store(ahead, Ordering::Relaxed);
    }

    /// Time since the origin.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.coarse())
    }
}

impl Default for Manual {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Manual {
    #[inline]
    fn coarse(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of `advance` and `set`: who acts on what another
        // thread did at some time reads that time or a later one, as on any real clock.
        self.shared.now_ns.load(Ordering::Acquire)
    }

    #[inline]
    fn precise(&self) -> u64 {
        self.coarse()
    }

    #[inline]
    fn lag_bound_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn unix(&self) -> Duration {
        // ORDERING: Relaxed: wall time is set by the test that reads it.
        let ahead = self.shared.unix_ahead_ns.load(Ordering::Relaxed);
        Duration::from_nanos(self.coarse().wrapping_add(ahead))
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;

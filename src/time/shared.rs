//! The shared time: one atomic that a refresher moves and every check reads.
//!
//! # Protocol
//!
//! The word holds a time in nanoseconds and, in its two lowest bits, what the refresher is doing:
//!
//! ```text
//!            a check meets it            the refresher visits
//! RUNNING    takes the time as it is     moves the time; every 64th visit leaves PROBE
//! PROBE      reads precisely → RUNNING   nobody came by → ASLEEP, sleeps longer and longer
//! ASLEEP     reads precisely → STIRRED   nobody came by → stays, sleeps up to a second
//! STIRRED    reads precisely             → RUNNING
//! ```
//!
//! * **Only RUNNING lends its time.** In every other state a check reads the precise clock, so no
//!   check ever uses a time that nobody is refreshing, unless the refresher stops while RUNNING.
//! * **A stopped refresher** (starved, killed, left behind by a fork) is noticed by the next precise
//!   read: a time more than [`STALL_NS`] old becomes STIRRED, and checks read precisely until the
//!   refresher comes back, if ever. The stall costs what its length is worth, once.
//! * **Nobody makes a system call**: waking is a state that the refresher finds when it next looks.
//! * **Time never steps back.** Every change is a compare-and-swap from the value that was read to
//!   one at least as late. A blind maximum would not do: it could put RUNNING back over ASLEEP.
//! * **Collisions.** Of two changes from one value one fails and is dropped by a check (whoever won
//!   moved the time) and tried again by the refresher. ABA: a value can only come back with the same
//!   time and the same state, which means the same.
//! * **Lag.** Each step from RUNNING to a later time records the step; the largest is
//!   [`lag_max_ns`](SharedTime::lag_max_ns). A time that a check took from RUNNING was at most that old.

use crate::sync::{AtomicU64, Ordering, Padded};

/// How often the refresher moves the time while checks come by.
pub const TICK_NS: u64 = 1_000_000;
/// A time this old, met while RUNNING, means that the refresher has stopped.
pub const STALL_NS: u64 = 50 * TICK_NS;
/// The longest the refresher sleeps while nobody comes by.
const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// One visit in so many leaves PROBE.
#[cfg(not(tidegate_loom))]
const VISITS_PER_PROBE: u64 = 64;
#[cfg(tidegate_loom)]
const VISITS_PER_PROBE: u64 = 1;

const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;
/// The refresher moves the time once a tick. Set by it, and by a check that answers a PROBE.
const RUNNING: u64 = 0;
/// Set by the refresher to learn whether anybody comes by; a check that meets it clears it.
const PROBE: u64 = 1;
/// Set by the refresher before it sleeps longer than a tick; a check that meets it must not take its
/// time.
const ASLEEP: u64 = 2;
/// Set by a check that met ASLEEP or a stall; cleared by the refresher alone.
const STIRRED: u64 = 3;

/// The time that a process shares, and what is known of its lag.
#[derive(Debug)]
pub struct SharedTime {
    word: Padded<AtomicU64>,
    lag_max_ns: AtomicU64,
    stalls: AtomicU64,
}

/// What the refresher keeps from one visit to the next.
#[derive(Debug, Default)]
pub struct Refresher {
    visits: u64,
    sleep_ns: u64,
}

impl Default for SharedTime {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedTime {
    /// A time that nobody refreshes yet: every read is precise until the first visit.
    pub fn new() -> Self {
        Self {
            word: Padded(AtomicU64::new(STIRRED)),
            lag_max_ns: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
        }
    }

    /// The shared time if it is being refreshed, else a precise one.
    #[inline]
    pub fn coarse(&self, read: impl FnOnce() -> u64) -> u64 {
        // ORDERING: Acquire, here and in `precise`, pairs with the Release in `advance`: who takes a time
        // finds its lag on record, and reads the source no earlier than whoever moved it. That it never
        // steps back is the word's own modification order.
        let seen = self.word.0.load(Ordering::Acquire);
        if seen & STATE == RUNNING { seen >> STATE_BITS } else { self.precise(read) }
    }

    /// A precise time. Moves the shared one if that is more than a tick behind, answers the
    /// refresher's marks, and heals a stall.
    #[cold]
    #[inline(never)]
    pub fn precise(&self, read: impl FnOnce() -> u64) -> u64 {
        let now = read();
        let seen = self.word.0.load(Ordering::Acquire);
        let (shared, state) = (seen >> STATE_BITS, seen & STATE);
        // A source that steps back is overruled by the time that others have seen already.
        let now = now.max(shared);
        let lag = now - shared;
        let next_state = match state {
            RUNNING if lag > STALL_NS => STIRRED,
            RUNNING if lag > TICK_NS => RUNNING,
            PROBE => RUNNING,
            ASLEEP => STIRRED,
            _ => return now,
        };
        if self.advance(seen, now, next_state) && state == RUNNING && next_state == STIRRED {
            self.stalls.fetch_add(1, Ordering::Relaxed);
        }
        now
    }

    /// One visit of the refresher. Returns how long it may sleep, in nanoseconds.
    pub fn visit(&self, refresher: &mut Refresher, read: impl Fn() -> u64) -> u64 {
        loop {
            let seen = self.word.0.load(Ordering::Acquire);
            let (shared, state) = (seen >> STATE_BITS, seen & STATE);
            let now = read().max(shared);
            let next_state = match state {
                PROBE | ASLEEP => ASLEEP,
                _ if (refresher.visits + 1).is_multiple_of(VISITS_PER_PROBE) => PROBE,
                _ => RUNNING,
            };
            if !self.advance(seen, now, next_state) {
                continue;
            }
            if state == RUNNING {
                // Between the reading and the step, checks went on by the old time.
                self.lag_max_ns.fetch_max(read().saturating_sub(shared), Ordering::Relaxed);
            }
            refresher.visits += 1;
            refresher.sleep_ns = match next_state {
                ASLEEP => (refresher.sleep_ns * 2).clamp(2 * TICK_NS, SLEEP_NS_MAX),
                _ => TICK_NS,
            };
            return refresher.sleep_ns;
        }
    }

    /// Moves the word from what was seen to `now` and `state`; a step away from RUNNING is a lag that
    /// checks may have seen.
    fn advance(&self, seen: u64, now: u64, state: u64) -> bool {
        let next = (now << STATE_BITS) | state;
        debug_assert!(next >> STATE_BITS >= seen >> STATE_BITS);
        if seen & STATE == RUNNING {
            // On record before the step: whoever sees the new time sees what the old one was worth.
            // ORDERING: Relaxed, published by the exchange below.
            self.lag_max_ns.fetch_max(now - (seen >> STATE_BITS), Ordering::Relaxed);
        }
        // ORDERING: Release pairs with the Acquire in `coarse` and `precise`.
        self.word.0.compare_exchange(seen, next, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The longest that the shared time ever stood still while checks took it, in nanoseconds.
    pub fn lag_max_ns(&self) -> u64 {
        self.lag_max_ns.load(Ordering::Relaxed)
    }

    /// How often a stopped refresher was noticed and healed.
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    /// A shared time on a source that the test moves.
    struct Bench {
        time: SharedTime,
        refresher: Refresher,
        now: u64,
    }

    impl Bench {
        fn new() -> Self {
            Self { time: SharedTime::new(), refresher: Refresher::default(), now: 0 }
        }
        fn coarse(&self) -> u64 {
            self.time.coarse(|| self.now)
        }
        fn precise(&self) -> u64 {
            self.time.precise(|| self.now)
        }
        fn visit(&mut self) -> u64 {
            self.time.visit(&mut self.refresher, || self.now)
        }
        fn state(&self) -> u64 {
            self.time.word.0.load(Ordering::Relaxed) & STATE
        }
        /// Visits, with a check in front of each, until the refresher plants its mark.
        fn run_until_probe(&mut self) {
            for _ in 0..1_000 {
                if self.state() == PROBE {
                    return;
                }
                self.now += TICK_NS;
                self.coarse();
                self.visit();
            }
            panic!("no mark in a thousand visits");
        }
    }

    #[test]
    fn without_a_refresher_every_read_is_precise() {
        let mut bench = Bench::new();
        for now in [0, 1, 5_000_000_000, 5_000_000_001] {
            bench.now = now;
            assert_eq!(bench.coarse(), now);
        }
        assert_eq!(bench.time.lag_max_ns(), 0);
    }

    #[test]
    fn a_coarse_time_lags_and_never_leads() {
        let mut bench = Bench::new();
        bench.visit();
        bench.now = 999_999;
        assert_eq!(bench.coarse(), 0);
        assert_eq!(bench.precise(), 999_999);
        assert_eq!(bench.coarse(), 0, "less than a tick behind, a precise read leaves it");
        bench.now = TICK_NS + 1;
        assert_eq!(bench.precise(), TICK_NS + 1);
        assert_eq!(bench.coarse(), TICK_NS + 1, "more than a tick behind, it moves it");
        assert_eq!(bench.time.lag_max_ns(), TICK_NS + 1);
        assert_eq!(bench.time.stalls(), 0);
    }

    #[test]
    fn a_tick_and_a_stall_end_where_they_say() {
        let mut bench = Bench::new();
        bench.now = TICK_NS;
        bench.visit();
        bench.now += TICK_NS;
        assert_eq!(bench.precise(), 2 * TICK_NS);
        assert_eq!(bench.coarse(), TICK_NS, "no more than a tick behind: it is left");
        bench.now = TICK_NS + STALL_NS;
        assert_eq!(bench.precise(), bench.now);
        assert_eq!((bench.state(), bench.time.stalls()), (RUNNING, 0), "no more than a stall's length");
        assert_eq!(bench.time.lag_max_ns(), STALL_NS);
        bench.now += STALL_NS + 1;
        assert_eq!(bench.precise(), bench.now);
        assert_eq!((bench.state(), bench.time.stalls()), (STIRRED, 1));
        assert_eq!(bench.time.lag_max_ns(), STALL_NS + 1);
    }

    #[test]
    fn a_check_that_meets_the_mark_keeps_the_refresher_awake() {
        let mut bench = Bench::new();
        bench.run_until_probe();
        bench.now += TICK_NS / 2;
        assert_eq!(bench.coarse(), bench.now, "precisely");
        assert_eq!(bench.state(), RUNNING);
        assert_eq!(bench.visit(), TICK_NS);
        assert_eq!(bench.state(), RUNNING);
    }

    /// After a fork there is a new one, which knows nothing of the pace of the old.
    #[test]
    fn another_refresher_that_finds_the_process_asleep_begins_with_two_ticks() {
        let mut bench = Bench::new();
        bench.run_until_probe();
        for _ in 0..5 {
            bench.visit();
        }
        bench.refresher = Refresher::default();
        let sleeps: Vec<u64> = (0..3).map(|_| bench.visit() / TICK_NS).collect();
        assert_eq!(sleeps, [2, 4, 8]);
    }

    #[test]
    fn a_stall_is_noticed_healed_and_counted_once() {
        let mut bench = Bench::new();
        bench.visit();
        bench.now = 10 * STALL_NS;
        assert_eq!(bench.coarse(), 0, "nobody has noticed yet");
        assert_eq!(bench.precise(), 10 * STALL_NS);
        assert_eq!((bench.time.stalls(), bench.time.lag_max_ns()), (1, 10 * STALL_NS));
        bench.now += 10 * STALL_NS;
        assert_eq!(bench.coarse(), bench.now, "from here on checks read precisely");
        assert_eq!((bench.time.stalls(), bench.time.lag_max_ns()), (1, 10 * STALL_NS));
        bench.visit();
        let refreshed = bench.now;
        bench.now += 1;
        assert_eq!(bench.coarse(), refreshed, "the refresher is back");
    }

    #[test]
    fn an_idle_process_sleeps_longer_up_to_a_second() {
        let mut bench = Bench::new();
        bench.run_until_probe();
        let sleeps: Vec<u64> = (0..12).map(|_| bench.visit() / TICK_NS).collect();
        assert_eq!(sleeps, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000]);
    }

    #[test]
    fn a_check_after_idleness_is_precise_until_the_refresher_wakes() {
        let mut bench = Bench::new();
        bench.run_until_probe();
        bench.visit();
        assert_eq!(bench.state(), ASLEEP);
        let lag = bench.time.lag_max_ns();
        for _ in 0..3 {
            bench.now += 300_000_000;
            assert_eq!(bench.coarse(), bench.now);
            assert_eq!(bench.state(), STIRRED);
        }
        assert_eq!(bench.visit(), TICK_NS, "back to its usual pace");
        assert_eq!(bench.state(), RUNNING);
        assert_eq!(bench.time.lag_max_ns(), lag, "no check used a stale time meanwhile");
    }

    #[test]
    fn a_source_that_steps_back_does_not_take_the_time_with_it() {
        let mut bench = Bench::new();
        bench.now = 5 * TICK_NS;
        bench.visit();
        bench.now = 2 * TICK_NS;
        assert_eq!(bench.precise(), 5 * TICK_NS);
        bench.visit();
        assert_eq!(bench.coarse(), 5 * TICK_NS);
    }
}

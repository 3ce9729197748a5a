//! Snapshots taken while others check.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tidegate::{Limit, Limiter, Manual, Rate, Window};

use crate::common::{Dice, secs};

const KEYS: u64 = 300;
const BURST: u64 = 2_000;

/// How many checks of each key have begun, and how many were admitted.
struct Log {
    begun: Vec<AtomicU64>,
    admitted: Vec<AtomicU64>,
}

impl Log {
    fn new() -> Self {
        let zeroes = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        Self { begun: zeroes(), admitted: zeroes() }
    }

    fn read(counts: &[AtomicU64]) -> Vec<u64> {
        counts.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

/// Threads that check until the work is done; the work saves and restores.
fn while_threads_check(limiter: &Limiter, log: &Log, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                while !is_over.load(Ordering::Relaxed) {
                    // Some keys are asked more often than others.
                    let key = (dice.roll(KEYS) * dice.roll(KEYS) / KEYS) as usize;
                    log.begun[key].fetch_add(1, Ordering::SeqCst);
                    if limiter.allow(&key) {
                        log.admitted[key].fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        work();
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Nothing comes back while the test runs. What was admitted before a save began is in it, so what the restored
/// limiter still admits is at most the limit less that; and no more is charged in it than was asked for by its end.
#[test]
fn only_what_is_charged_meanwhile_is_forgiven() {
    for limit in [
        Limit::bucket(Rate::per_day(1), BURST),
        Limit::window(Window::new(BURST, secs(7 * 86_400))).count_refused(false),
    ] {
        let builder = || Limiter::builder(limit).max_keys(1_000).leases(false);
        let (limiter, log) = (builder().build().unwrap(), Log::new());
        while_threads_check(&limiter, &log, || {
            let mut before = Log::read(&log.admitted);
            while before.iter().sum::<u64>() < 200_000 {
                before = Log::read(&log.admitted);
                let mut snapshot = Vec::new();
                limiter.save(&mut snapshot).unwrap();
                let after = Log::read(&log.begun);
                let restored = builder().restore(&snapshot[..]).unwrap();
                for (key, (&admitted, &begun)) in before.iter().zip(&after).enumerate() {
                    let used = BURST - restored.peek(&key).remaining();
                    assert!(used >= admitted.min(BURST), "key {key}: {used} of {admitted} are in it");
                    assert!(used <= begun, "key {key}: {used} are in it, {begun} were asked for");
                }
            }
        });
    }
}

/// The same with leases: what a thread has leased counts as spent.
#[test]
fn leased_tokens_count_as_spent() {
    let limit = Limit::bucket(Rate::per_day(1), BURST);
    let builder = || Limiter::builder(limit).max_keys(1_000);
    let (limiter, log) = (builder().build().unwrap(), Log::new());
    while_threads_check(&limiter, &log, || {
        let mut before = Log::read(&log.admitted);
        while before.iter().sum::<u64>() < 200_000 {
            (0..5_usize).for_each(|key| limiter.warm(&key));
            before = Log::read(&log.admitted);
            let mut snapshot = Vec::new();
            limiter.save(&mut snapshot).unwrap();
            let restored = builder().restore(&snapshot[..]).unwrap();
            for (key, &admitted) in before.iter().enumerate() {
                let used = BURST - restored.peek(&key).remaining();
                assert!(used >= admitted.min(BURST), "key {key}: {used} of {admitted} are in it");
            }
        }
    });
}

/// Keys that are evicted and come back, all the time and everywhere: each snapshot is a good one.
#[test]
fn a_table_in_turmoil_is_saved_whole() {
    let limit = Limit::bucket(Rate::per_day(1), 10);
    let builder = || Limiter::builder(limit).max_keys(20);
    let (limiter, log) = (builder().build().unwrap(), Log::new());
    while_threads_check(&limiter, &log, || {
        for _ in 0..3_000 {
            let mut snapshot = Vec::new();
            let keys = limiter.save(&mut snapshot).unwrap();
            let restored =
                builder().restore(&snapshot[..]).unwrap_or_else(|error| panic!("{keys} keys: {error}"));
            assert_eq!(restored.save(io::sink()).unwrap(), keys);
        }
    });
    assert!(limiter.stats().forced_evictions > 1_000, "there was turmoil");
}

/// Has others evict keys and the evicted come back, whenever a part of the snapshot is written.
struct Busy<'a> {
    limiter: &'a Limiter<Manual>,
    written: Vec<u8>,
    keys: u64,
}

impl Write for Busy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(bytes);
        // Newcomers that owe more than the first comers, who then come back, the last one first, to where there is room.
        (self.keys..3 * self.keys).for_each(|key| _ = self.limiter.check_n(&key, 3));
        (0..self.keys).rev().for_each(|key| _ = self.limiter.check_n(&key, 4));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A key that is read, evicted, and comes back to a slot that is read later would be in the snapshot twice, and make it
/// one that nobody can restore.
#[test]
fn a_key_that_is_met_twice_is_saved_once() {
    let limit = Limit::bucket(Rate::per_day(1), 10);
    let builder = || Limiter::builder(limit).max_keys(1_000).seed(1);
    let limiter = builder().clock(Manual::new()).build().unwrap();
    (0..1_600_u64).for_each(|key| _ = limiter.check(&key));
    let mut busy = Busy { limiter: &limiter, written: Vec::new(), keys: 1_600 };
    let keys = limiter.save(&mut busy).unwrap();
    let restored = builder().clock(Manual::new()).restore(&busy.written[..]).unwrap();
    assert!(keys > 1_400 && limiter.stats().forced_evictions > 1_600);
    assert_eq!(restored.save(io::sink()).unwrap(), keys);
}

/// A check that races with a save is held up by nothing: the writer may stand still.
#[test]
fn a_writer_that_stands_still_holds_up_nobody() {
    struct Still(std::sync::mpsc::Receiver<()>);
    impl Write for Still {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv_timeout(Duration::from_secs(60)).map_err(io::Error::other)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let limiter = Limiter::builder(Limit::bucket(Rate::per_day(1), 10)).max_keys(100).build().unwrap();
    assert!(limiter.allow(&1));
    let (go, still) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let limiter = &limiter;
        let saving = scope.spawn(move || limiter.save(Still(still)).unwrap());
        assert!((2..50).all(|key| limiter.allow(&key)));
        assert!(go.send(()).is_ok(), "it is still at it");
        assert!(saving.join().unwrap() > 0);
    });
}

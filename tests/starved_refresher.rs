//! The refresher starved on real threads: every core is taken several times over, and its own thread comes last. What
//! is admitted keeps to the stated bound with the lag on record in it, and whatever is due is admitted all the same.
//!
//! The lag on record is the process's, so these tests have a process of their own. They assert no absolute time.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{LEASE, at_once};
use tidegate::{Clock, ExactLimiter, Limit, Limiter, Precise, Rate, Ticking, Window};

/// Threads that ask for the key whose bound is looked at, and how often a thread is refused before it stops.
const THREADS: usize = 4;
const REFUSALS: u64 = 3;
/// How long each test has the cores for itself.
const SPAN: Duration = Duration::from_millis(900);
/// A key of its own in every limiter.
const KEY: u64 = 7;

/// Tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Puts the refresher last in line for a core. Elsewhere it is starved by the number of threads alone.
fn put_the_refresher_last() {
    #[cfg(target_os = "linux")]
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        if std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "tidegate-clock")
        {
            let id = task.file_name().into_string().unwrap().parse().unwrap();
            // SAFETY: plain numbers; it changes the priority of a thread of this process.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, 19) }, 0);
        }
    }
}

/// Keeps all cores busy with checks that are admitted, so that none of them reads the precise clock, while `work` runs.
fn with_all_cores_busy(work: impl FnOnce()) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let is_over = AtomicBool::new(false);
    let endless = Limiter::builder(Limit::bucket(Rate::per_second(10_000_000_000), 1 << 30)).build().unwrap();
    put_the_refresher_last();
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for number in 0..4 * cores {
            let (is_over, endless) = (&is_over, &endless);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    for _ in 0..1_000 {
                        assert!(endless.allow(&number));
                    }
                }
            });
        }
        // The others must end when this panics.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

/// Again and again: waits until the key is as good as new, then lets all threads ask until they are refused. `bound` is
/// what may be admitted in a time that includes the lag, `least` what is due at once.
fn admits(allow: impl Fn() -> bool + Sync, rest: Duration, least: u64, bound: impl Fn(Duration) -> u64) {
    // A counter that leaves the shared time as it is.
    let (counter, ticking) = (Precise::new(), Ticking::new());
    with_all_cores_busy(|| {
        let until = Instant::now() + SPAN;
        let (mut rounds, mut closest) = (0, 0.0_f64);
        while Instant::now() < until {
            thread::sleep(rest);
            let before = counter.precise();
            let admitted: u64 = at_once(THREADS, |_| {
                let (mut admitted, mut refused) = (0, 0);
                while refused < REFUSALS {
                    let passed = allow();
                    admitted += u64::from(passed);
                    refused += u64::from(!passed);
                }
                admitted
            })
            .into_iter()
            .sum();
            let elapsed = Duration::from_nanos(counter.precise() - before);
            let (lag, stalls) = (ticking.lag_max(), ticking.stalls());
            let most = bound(elapsed + lag + LEASE) + THREADS as u64;
            assert!(
                admitted <= most,
                "{admitted} in {elapsed:?}, lag {lag:?}, {stalls} stalls: bound {most}"
            );
            assert!(
                admitted >= least,
                "{admitted} in {elapsed:?}, lag {lag:?}, {stalls} stalls: {least} are due"
            );
            rounds += 1;
            closest = closest.max(admitted as f64 / most as f64);
        }
        let (lag, stalls) = (ticking.lag_max(), ticking.stalls());
        println!("{rounds} rounds, lag {lag:?}, {stalls} stalls, {closest:.3} of the bound at most");
    });
}

/// 20 ms to fill, from a time that may be late when the threads begin.
const RATE: u64 = 100_000;
const BURST: u64 = 2_000;

fn bucket() -> Limit {
    Limit::bucket(Rate::per_second(RATE), BURST)
}

fn bucket_bound(time: Duration) -> u64 {
    BURST + (u128::from(RATE) * time.as_nanos() / 1_000_000_000) as u64
}

#[test]
fn a_bucket_keeps_its_bound_while_the_refresher_starves() {
    let limiter = Limiter::builder(bucket()).build().unwrap();
    admits(|| limiter.allow(&KEY), Duration::from_millis(21), BURST, bucket_bound);
}

#[test]
fn an_exact_bucket_keeps_its_bound_while_the_refresher_starves() {
    let limiter = ExactLimiter::<u64>::builder(bucket()).build().unwrap();
    admits(|| limiter.allow(&KEY), Duration::from_millis(21), BURST, bucket_bound);
}

#[test]
fn a_window_keeps_its_bound_while_the_refresher_starves() {
    const LIMIT: u64 = 1_000;
    let period = Duration::from_millis(20);
    let limiter = Limiter::builder(Limit::window(Window::new(LIMIT, period))).build().unwrap();
    let bound = |time: Duration| LIMIT * (time.as_nanos().div_ceil(period.as_nanos()) as u64 + 1);
    admits(|| limiter.allow(&KEY), Duration::from_millis(21), LIMIT, bound);
}

//! What the shipped clocks promise, on the machine's own counter where they read it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Instant;

use super::*;

const MILLISECOND: u64 = 1_000_000;

/// Says what it must and nothing else.
struct Plain;

impl Clock for Plain {
    fn coarse(&self) -> u64 {
        7
    }
    fn precise(&self) -> u64 {
        7
    }
    fn unix(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_clock_promises_nothing_unless_told() {
    assert_eq!((Plain.lag_bound_ns(), Plain.never_steps_back()), (None, false));
    assert_eq!((Plain.lag_max(), Plain.stalls()), (Duration::ZERO, 0));
}

/// Asserts that `read` moves on with the machine's time, give or take a thousandth.
#[track_caller]
fn assert_keeps_time(read: impl Fn() -> u64) {
    let (outer, before) = (Instant::now(), read());
    let inner = Instant::now();
    while inner.elapsed() < Duration::from_millis(2) {}
    let inner_ns = saturating_ns(inner.elapsed());
    let passed_ns = read() - before;
    let outer_ns = saturating_ns(outer.elapsed());
    assert!(passed_ns >= inner_ns - inner_ns / 1_000, "{passed_ns} ns, at least {inner_ns}");
    assert!(passed_ns <= outer_ns + outer_ns / 1_000, "{passed_ns} ns, at most {outer_ns}");
}

#[test]
fn precise_readings_keep_time() {
    let (precise, ticking) = (Precise::new(), Ticking::new());
    assert_keeps_time(|| precise.precise());
    assert_keeps_time(|| precise.coarse());
    assert_keeps_time(|| ticking.precise());
}

/// Waits until `happens`, which a starved thread may put off.
#[track_caller]
fn eventually(mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(30), "never");
        thread::yield_now();
    }
}

#[test]
fn coarse_readings_move_on_and_never_lead() {
    let clock = Ticking::new();
    let first = clock.coarse();
    eventually(|| {
        let coarse = clock.coarse();
        assert!(coarse <= clock.precise());
        coarse >= first + 5 * MILLISECOND
    });
    eventually(|| clock.coarse() > first && clock.lag_max() > Duration::ZERO);
    assert!(clock.never_steps_back());
}

/// However many limiters ask for it.
#[cfg(target_os = "linux")]
#[test]
fn the_process_has_one_refresher() {
    for _ in 0..3 {
        let _ = Ticking::new();
    }
    let refreshers = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "tidegate-clock").count()
    };
    // A thread bears its name when it has begun to run.
    eventually(|| refreshers() > 0);
    assert_eq!(refreshers(), 1);
}

#[test]
fn stalls_and_the_lag_are_those_of_the_shared_time() {
    let (counter, time) = (Counter::new(), SharedTime::new());
    let process: &'static Process =
        Box::leak(Box::new(Process { counter, time, started_in: AtomicU64::new(0) }));
    let clock = Ticking { process };
    let mut refresher = Refresher::default();
    for nth in 1..=3 {
        // It visits, and not again for ten times as long as a stall takes.
        let visited = nth * 100 * STALL_NS;
        process.time.visit(&mut refresher, || visited);
        process.time.precise(|| visited + 10 * STALL_NS);
        assert_eq!((clock.stalls(), clock.lag_max()), (nth, Duration::from_millis(500)));
    }
}

/// A thread's first refusal and each 64th after it read the counter.
#[test]
fn each_64th_refusal_of_a_thread_trusts_no_lag() {
    let clock = Ticking::new();
    let asked = thread::spawn(move || (0..130).map(|_| clock.lag_bound_ns()).collect::<Vec<_>>());
    for (nth, bound) in asked.join().unwrap().into_iter().enumerate() {
        assert_eq!(bound, if nth % 64 == 0 { None } else { Some(50 * MILLISECOND) }, "{nth}");
    }
}

#[test]
fn clocks_without_a_lag_say_so() {
    assert_eq!((Precise::new().lag_bound_ns(), Manual::new().lag_bound_ns()), (Some(0), Some(0)));
}

#[test]
fn wall_time_is_the_systems() {
    let since_epoch = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for unix in [&|| Ticking::new().unix(), &|| Precise::new().unix()] as [&dyn Fn() -> Duration; 2] {
        let (before, now, after) = (since_epoch(), unix(), since_epoch());
        // A second's grace, should the wall be set meanwhile.
        assert!(now + Duration::from_secs(1) >= before && now <= after + Duration::from_secs(1), "{now:?}");
    }
}

#[test]
fn a_manual_clock_stops_at_its_end_and_tells_its_time() {
    let clock = Manual::new();
    clock.advance(Duration::from_secs(5));
    assert_eq!(clock.elapsed(), Duration::from_secs(5));
    let end = (1 << 63) - 1;
    clock.set(Duration::MAX);
    assert_eq!(clock.precise(), end);
    clock.set(Duration::from_nanos(end - 1));
    assert_eq!(clock.precise(), end - 1);
    clock.advance(Duration::from_nanos(2));
    assert_eq!(clock.precise(), end);
}

//! Churn, forks and extremes: what was tried and held.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidegate::internals::Rule;
use tidegate::{Alignment, Clock, ExactLimiter, Limit, Manual, Precise, Rate, Ticking, Window};

fn rss_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
}

fn churn(max_keys: usize, threads: u64, seconds: u64) {
    let limit = Limit::window(Window::new(5, Duration::from_micros(200))).align(Alignment::PerKey);
    let limiter =
        ExactLimiter::<u64>::builder(limit).max_keys(max_keys).clock(Precise::new()).build().unwrap();
    let stop = AtomicBool::new(false);
    let [full, passed, hot] = [const { AtomicU64::new(0) }; 3];
    let began = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let (limiter, stop, full, passed, hot) = (&limiter, &stop, &full, &passed, &hot);
            scope.spawn(move || {
                let mut key = (thread + 1) << 48;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..256 {
                        key += 1;
                        match limiter.check(&key) {
                            Ok(_) => passed.fetch_add(1, Ordering::Relaxed),
                            Err(_) => full.fetch_add(1, Ordering::Relaxed),
                        };
                        if limiter.allow(&1) {
                            hot.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        let mut line = Vec::new();
        for _ in 0..seconds {
            thread::sleep(Duration::from_secs(1));
            line.push(rss_kib() / 1024);
            assert!(limiter.len() <= max_keys);
        }
        stop.store(true, Ordering::Relaxed);
        eprintln!("max_keys {max_keys}: RSS MiB {line:?}");
    });
    let periods = began.elapsed().as_micros() as u64 / 200 + 2;
    let hot = hot.into_inner();
    eprintln!("  passed {passed:?} full {full:?} hot {hot} of at most {}", 5 * periods);
    assert!(hot <= 5 * periods);
    // No place is lost: once all is idle, as many new keys as there are places find room.
    thread::sleep(Duration::from_millis(2));
    let slow = Instant::now();
    let mut lost = 0;
    for key in 0..max_keys as u64 {
        lost += u64::from(!limiter.allow(&(key + (1 << 40))));
    }
    eprintln!("  {lost} without room, {:?}, len {}", slow.elapsed(), limiter.len());
    if max_keys <= 64 {
        assert_eq!(lost, 0);
    }
}

#[test]
#[ignore = "takes a minute"]
fn churn_tiny_and_large() {
    let seconds = std::env::var("SECONDS_EACH").map_or(12, |text| text.parse().unwrap());
    let only: Option<usize> = std::env::var("ONLY_KEYS").ok().map(|text| text.parse().unwrap());
    for max_keys in
        [1, 4, 64, 4_096, 1_000_000].into_iter().filter(|keys| only.is_none_or(|only| only == *keys))
    {
        churn(max_keys, 3, seconds);
    }
}

/// In a forked child there is no refresher: what it admits stays within the bound with the lag on record.
#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_keeps_its_bounds() {
    for again in [false, true] {
        let limit = Limit::bucket(Rate::per_second(1000), 10);
        let limiter = ExactLimiter::<u32>::builder(limit).build().unwrap();
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            let _ = limiter.allow(&7);
        }
        // SAFETY: the child only checks, and leaves by _exit.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            if again {
                let _ = Ticking::new();
            }
            let began = Instant::now();
            let mut passed = 0_u64;
            while began.elapsed() < Duration::from_millis(400) {
                passed += u64::from(limiter.allow(&7));
            }
            let most = 10 + (1000.0 * (began.elapsed() + limiter.clock().lag_max()).as_secs_f64()) as u64 + 1;
            eprintln!(
                "child {again}: {passed} of at most {most}, lag {:?}, stalls {}",
                limiter.clock().lag_max(),
                limiter.clock().stalls()
            );
            let code = if passed > most {
                1
            } else if passed < 150 {
                2
            } else {
                0
            };
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "again: {again}");
    }
}

fn wild() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0_u64),
        Just(1),
        Just(2),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        Just(1 << 62),
        Just((1 << 62) - 1),
        Just(1 << 63),
        any::<u64>(),
        (0..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift),
        (0..64_u32, 0..3_u64).prop_map(|(shift, off)| (1_u64 << shift).wrapping_add(off).wrapping_sub(1)),
    ]
}
fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => wild().prop_map(Duration::from_nanos), 1 => Just(Duration::MAX), 1 => wild().prop_map(|s| Duration::new(s, 999_999_999))]
}
fn align() -> impl Strategy<Value = Alignment> {
    prop_oneof![Just(Alignment::Clock), Just(Alignment::PerKey), Just(Alignment::FirstRequest)]
}
fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (wild(), span(), wild()).prop_map(|(n, p, b)| Limit::bucket(Rate::new(n, p), b)),
        (wild(), span(), align(), any::<bool>())
            .prop_map(|(n, p, a, c)| Limit::window(Window::new(n, p)).align(a).count_refused(c)),
        (prop_oneof![wild(), 1..100_u64], span(), align(), any::<bool>())
            .prop_map(|(n, p, a, c)| Limit::sliding_window(Window::new(n, p)).align(a).count_refused(c)),
        (wild(), wild(), wild(), wild(), align(), any::<bool>()).prop_map(|(n, m, p, r, a, c)| {
            let (n, m) = (n.min(m), n.max(m));
            Limit::burst_sustain(
                Window::new(n, Duration::from_nanos(p)),
                Window::new(m, Duration::from_nanos(p.saturating_mul(r.max(2)))),
            )
            .align(a)
            .count_refused(c)
        }),
        (1..50_u64, 1..500_u64, 1..1_000_000_000_u64, 2..100_000_000_u64, align(), any::<bool>()).prop_map(
            |(n, m, p, r, a, c)| {
                Limit::burst_sustain(
                    Window::new(n, Duration::from_nanos(p)),
                    Window::new(n + m, Duration::from_nanos(p * r)),
                )
                .align(a)
                .count_refused(c)
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40_000, failure_persistence: None, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// Nothing panics or overflows, and `retry_after` is exact to the nanosecond.
    #[test]
    fn extremes(limit in limits(), steps in prop::collection::vec((wild(), wild(), any::<bool>(), 0..3_u32), 1..12), unix in wild(), wall in prop::option::of(wild())) {
        let clock = Manual::at_unix(Duration::from_nanos(unix));
        let Ok(limiter) = ExactLimiter::<u32>::builder(limit).max_keys(2).seed(1).clock(clock.clone()).build() else {
            return Ok(());
        };
        if let Some(wall) = wall { clock.set_unix(Duration::from_nanos(wall)); }
        for (time, cost, set, key) in steps {
            if set { clock.set(Duration::from_nanos(time)) } else { clock.advance(Duration::from_nanos(time >> 20)) }
            let cost = if cost % 3 == 0 { 1 } else { cost };
            match limiter.check_n(&key, cost) {
                Ok(pass) => { let _ = (format!("{pass:?}"), pass.limit(), pass.remaining(), pass.next_after(), pass.reset_after()); }
                Err(denied) => { let _ = (format!("{denied:?} {denied}"), denied.limit(), denied.observed(), denied.next_after(), denied.reset_after(), denied.retry_after_secs());
                    prop_assert!(denied.remaining() < cost, "remaining {} cost {}", denied.remaining(), cost);
                    for w in denied.windows().iter() { prop_assert!(w.observed_max >= w.observed); }
                }
            }
        }
    }

    /// The pure word, at any moment and on any word that is a value.
    #[test]
    fn any_word(limit in limits(), word in wild(), time in wild(), cost in wild(), finger in any::<u64>()) {
        let Ok(rule) = Rule::new(&limit) else { return Ok(()) };
        let moment = rule.time().units(time) + rule.phase(finger);
        let _ = rule.decide(0, moment, cost);
        // A word that some earlier or later moment left.
        let other = rule.time().units(word) + rule.phase(finger);
        let left = rule.decide(0, other, 1).next;
        let decided = rule.decide(left, moment, cost);
        prop_assert!(decided.next < 1 << 62);
        let _ = (rule.parts(decided.next, moment), rule.debt(left, moment), rule.is_idle(left, moment), rule.idle_from(left), rule.retry_at(left, moment, cost));
        let at = rule.retry_at(decided.next, moment, cost).1;
        if let Some(ns) = rule.time().first_ns_at(at.saturating_sub(rule.phase(finger))) {
            let now = time.min(rule.time().end_ns());
            if matches!(decided.outcome, tidegate::internals::Outcome::Exhausted) {
                prop_assert!(ns > now, "a wait of nothing");
                let then = |ns: u64| rule.decide(decided.next, rule.time().units(ns) + rule.phase(finger), cost).outcome;
                prop_assert_eq!(then(ns), tidegate::internals::Outcome::Pass);
                prop_assert_ne!(then(ns - 1), tidegate::internals::Outcome::Pass);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever way the clock jumps, a key is never admitted more than the time between the earliest and the latest
    /// reading is worth.
    #[test]
    fn a_clock_that_jumps_admits_nothing_more(
        steps in prop::collection::vec((0..60_000_u64, 0..4_u32, 1..4_u64), 1..200),
        align in align(), kind in 0..3_u32, count in any::<bool>(), max_keys in 1..4_usize, coherent in any::<bool>(),
    ) {
        const START: u64 = 100_000;
        let clock = Manual::new();
        let window = Window::new(5, Duration::from_secs(1));
        let limit = match kind {
            0 => Limit::bucket(Rate::per_second(2), 5),
            1 => Limit::window(window),
            _ => Limit::burst_sustain(window, Window::new(12, Duration::from_secs(4))),
        }.align(align).count_refused(count);
        let limiter = ExactLimiter::<u32>::builder(limit).max_keys(max_keys).clock(clock.clone()).build().unwrap();
        let (mut first, mut last) = (u64::MAX, 0);
        let mut now = START;
        let mut admitted = [0_u64; 4];
        for (ms, key, cost) in steps {
            now = if coherent { START + (now - START).saturating_add(ms / 20).saturating_sub(1_500) } else { START + ms / 4 };
            clock.set(Duration::from_millis(now));
            first = first.min(now);
            last = last.max(now);
            let was = limiter.check_n(&key, cost);
            if was.is_ok() { admitted[key as usize] += cost; }
        }
        for (key, admitted) in admitted.into_iter().enumerate() {
            let most = match (kind, align) {
                (0, _) => 5 + 2 * (last - first) / 1_000,
                // Cut at both ends by the phase; 63/64 of a period at least when a window opens at a request.
                (1, _) => 5 * ((last - first) * 64 / 63 / 1_000 + 2),
                _ => (5 * ((last - first) * 64 / 63 / 1_000 + 2)).min(12 * ((last - first) * 256 / 255 / 4_000 + 2)),
            };
            prop_assert!(admitted <= most, "key {key}: {admitted} > {most} in {} ms", last - first);
        }
    }
}

/// What a newcomer costs in a table whose keys all owe something.
#[test]
#[ignore = "a figure"]
fn cost_of_full() {
    let limit = Limit::bucket(Rate::per_hour(1), 1);
    let limiter = ExactLimiter::<u64>::builder(limit).max_keys(1_000_000).build().unwrap();
    for key in 0..1_000_000 {
        assert!(limiter.allow(&key));
    }
    for name in ["known, refused", "newcomer, full"] {
        let began = Instant::now();
        for key in 0..200_000_u64 {
            let key = if name.starts_with("known") { key * 5 } else { key + (1 << 40) };
            assert!(!limiter.allow(&key));
        }
        eprintln!("{name}: {} ns", began.elapsed().as_nanos() / 200_000);
    }
}

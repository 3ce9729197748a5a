//! Where a restored limiter's time stands, and that it does not run out.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Alignment, Clock, Limit, Limiter, Manual, Rate, Window};

use crate::common::limits;
use crate::{builder, clock_at, each_kind, restored, saved, secs};

const YEAR: u64 = 31_557_600;
/// What every limiter has before it.
const LEAST: Duration = secs(7 * 366 * 86_400);

/// 30 in each minute of the wall. At 10:00:40 the window is used up; the wall is set forward or back while nobody runs.
#[test]
fn windows_on_the_wall_end_on_its_edges() {
    let limit = Limit::window(Window::new(30, secs(60))).align(Alignment::Clock);
    let limiter = builder(limit).clock(Manual::at_unix(secs(36_040))).build().unwrap();
    assert!(limiter.check_n("ada", 30).is_ok());
    let snapshot = saved(&limiter);
    // At 10:00:41 it takes 19 s more, at 10:01:00 a window begins, and at 10:00:30 it takes 30 s.
    for (unix, wait) in
        [(36_041, Some(19)), (36_059, Some(1)), (36_060, None), (36_030, Some(30)), (90_001, None)]
    {
        let restored = restored(limit, secs(unix), &snapshot).unwrap();
        let told = restored.check("ada").err().and_then(|denied| denied.retry_after());
        assert_eq!(told, wait.map(secs), "at {unix}");
        if unix >= 36_040 {
            assert_eq!(restored.check("bob").unwrap().reset_after(), secs(60 - unix % 60), "at {unix}");
        }
    }
}

/// The counter ran 2 s ahead of the wall when it was saved, and no window has ended since.
#[test]
fn a_drift_is_made_good() {
    let limit = Limit::window(Window::new(30, secs(60))).align(Alignment::Clock);
    let clock = Manual::at_unix(secs(36_000));
    let limiter = builder(limit).clock(clock.clone()).build().unwrap();
    clock.advance(secs(42));
    clock.set_unix(secs(36_040));
    assert!(limiter.check_n("ada", 30).is_ok());
    let restored = restored(limit, secs(36_045), &saved(&limiter)).unwrap();
    assert_eq!(restored.check("ada").unwrap_err().retry_after(), Some(secs(15)));
}

/// A clock that has stepped back leaves words that are ahead of it: no damage.
#[test]
fn a_clock_that_has_stepped_back_is_restored_as_it_stood() {
    for (limit, alignment) in each_kind()
        .into_iter()
        .flat_map(|limit| [(limit, Alignment::PerKey), (limit, Alignment::FirstRequest)])
    {
        let limit = limit.align(alignment);
        let clock = clock_at(secs(100_000), secs(200_000));
        let limiter = builder(limit).clock(clock.clone()).build().unwrap();
        (0..20_u32).for_each(|_| _ = limiter.check(&7));
        clock.set(secs(99_000));
        let twin = limiter.check(&7).unwrap_err().retry_after();
        let restored = restored(limit, secs(199_000), &saved(&limiter)).unwrap();
        assert_eq!(restored.check(&7).unwrap_err().retry_after(), twin, "{limit:?}");
    }
}

/// A key that was idle is not in the snapshot. If the clock then stands before it was, it still does not begin anew.
#[test]
fn who_was_idle_does_not_begin_before_the_snapshot() {
    let limit = Limit::window(Window::new(30, secs(60))).align(Alignment::Clock);
    let limiter = builder(limit).clock(Manual::at_unix(secs(36_040))).build().unwrap();
    assert!(limiter.check_n("ada", 30).is_ok());
    limiter.clock().advance(secs(30)); // 10:01:10, ada is idle
    let snapshot = saved(&limiter);
    let restored = restored(limit, secs(36_050), &snapshot).unwrap(); // the wall says 10:00:50
    assert!(restored.check_n("ada", 30).is_ok(), "in the window of 10:01");
    restored.clock().advance(secs(10));
    assert!(!restored.allow("ada"), "which does not open twice");
    restored.clock().advance(secs(60));
    assert!(restored.allow("ada"));
}

/// The same where time begins anew, and the key's window is too long ago to be told.
#[test]
fn who_was_idle_does_not_begin_before_a_new_beginning() {
    let limit = Limit::window(Window::new(30, secs(60))).align(Alignment::FirstRequest);
    let limiter = builder(limit).clock(Manual::at_unix(secs(5))).build().unwrap();
    limiter.clock().advance(secs(30 * YEAR + 45));
    assert!(limiter.check_n("ada", 30).is_ok());
    let clock = clock_at(secs(5_000), limiter.clock().unix() + secs(600));
    let restored = builder(limit).clock(clock).restore(&saved(&limiter)[..]).unwrap();
    restored.clock().set(secs(4_000));
    assert!(restored.check_n("ada", 30).is_ok(), "in the window that begins with the restart");
    restored.clock().set(secs(4_990));
    assert!(!restored.allow("ada"), "which does not open before it");
    restored.clock().set(secs(5_060));
    assert!(restored.allow("ada"));
}

/// Restarts for a century and more, with debts that outlive each of them.
#[test]
fn time_does_not_run_out_over_a_century_of_restarts() {
    let day = 86_400;
    let limits = [
        Limit::bucket(Rate::per_day(1), 100),
        Limit::bucket(Rate::new(7, secs(365 * day)), 5),
        Limit::bucket(Rate::per_second(10_000_000_000), u64::MAX >> 24),
        Limit::window(Window::new(9, secs(90 * day))),
        Limit::window(Window::new(9, secs(90 * day))).align(Alignment::Clock),
        Limit::window(Window::new(9, secs(90 * day))).align(Alignment::FirstRequest),
        Limit::window(Window::new(9, secs(2_500 * day))),
        Limit::burst_sustain(Window::new(5, secs(3 * day)), Window::new(9, secs(90 * day))),
        // So large a count leaves seven years beside it.
        Limit::window(Window::new((1 << 34) - 2, secs(1))),
    ];
    for limit in limits {
        let mut limiter = builder(limit).clock(Manual::at_unix(secs(1_000))).build().unwrap();
        for restart in 0..900_u64 {
            if limiter.clock().unix() > secs(250 * YEAR) {
                break;
            }
            assert!(limiter.horizon() >= LEAST, "{limit:?}, restart {restart}: {:?}", limiter.horizon());
            let all = limiter.peek(&restart).remaining();
            assert!(limiter.check_n(&restart, all).is_ok());
            let denied = limiter.check(&restart).unwrap_err();
            let wait =
                denied.retry_after().unwrap_or_else(|| panic!("{limit:?}, restart {restart}: {denied:?}"));
            let down = wait / 3;
            let unix = limiter.clock().unix() + down;
            limiter =
                builder(limit).clock(clock_at(secs(restart), unix)).restore(&saved(&limiter)[..]).unwrap();
            let told =
                limiter.check(&restart).err().and_then(|denied| denied.retry_after()).unwrap_or_default();
            let slack = 2 * limiter.resolution() + Duration::from_nanos(2);
            let due = wait - down;
            assert!(
                told >= due.saturating_sub(slack) && told <= due + slack,
                "{limit:?}: {told:?}, {due:?} is due"
            );
            limiter.clock().advance(told);
            assert!(limiter.allow(&restart), "{limit:?}, restart {restart}");
            limiter.clock().advance(secs(YEAR / 8));
            // The longest of these periods leaves no time for another one.
            limiter = restored(limit, limiter.clock().unix(), &saved(&limiter)).unwrap();
        }
    }
}

/// A snapshot from before the limiter's end, restored after it: nothing is owed any more, and time begins anew.
#[test]
fn a_downtime_of_a_century_begins_anew() {
    for limit in each_kind().into_iter().flat_map(|limit| {
        [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest].map(|alignment| limit.align(alignment))
    }) {
        let limiter = builder(limit).clock(Manual::at_unix(secs(7))).build().unwrap();
        (0..20_u32).for_each(|_| _ = limiter.check(&7));
        let restored = restored(limit, secs(100 * YEAR), &saved(&limiter)).unwrap();
        assert!(restored.allow(&7), "{limit:?}");
        assert!(restored.horizon() >= LEAST);
        (0..20_u32).for_each(|_| _ = restored.check(&7));
        let wait = restored.check(&7).unwrap_err().retry_after().unwrap();
        restored.clock().advance(wait);
        assert!(restored.allow(&7), "{limit:?}: its time runs");
    }
}

/// One whose time has stood still at its end is healed by a restart, and owes what it owed.
#[test]
fn the_end_of_time_ends_with_a_restart() {
    let limit = Limit::bucket(Rate::per_minute(6), 5);
    let limiter = builder(limit).clock(Manual::at_unix(secs(7))).build().unwrap();
    limiter.clock().advance(secs(100 * YEAR));
    assert!(limiter.check_n(&7, 5).is_ok());
    limiter.clock().advance(secs(YEAR));
    assert!(!limiter.allow(&7));
    let restored = restored(limit, limiter.clock().unix(), &saved(&limiter)).unwrap();
    assert_eq!(restored.check(&7).unwrap_err().retry_after_secs(), 10);
    restored.clock().advance(secs(10));
    assert!(restored.allow(&7));
}

proptest! {
    /// Thirty years on, so that a restored limiter's time begins anew: still the same answers, and waits to the
    /// nanosecond.
    #[test]
    fn a_time_that_begins_anew_owes_the_same(
        limit in limits(12),
        costs in prop::collection::vec((0..8_u16, 0..9_u64, 0..4_000_000_000_u64), 1..40),
        future in prop::collection::vec((0..8_u16, 0..9_u64, 0..4_000_000_000_u64), 1..40),
        (unix, down_ns) in (0..2_000_000_000_u64, prop_oneof![Just(0), 0..9_000_000_000_u64]),
    ) {
        let twin = builder(limit).clock(Manual::at_unix(secs(unix))).build().unwrap();
        twin.clock().advance(secs(30 * YEAR));
        let ask = |limiter: &Limiter<Manual>, (key, cost, ns): (u16, u64, u64)| {
            limiter.clock().advance(Duration::from_nanos(ns));
            let answer = limiter.check_n(&key, cost);
            let standing = limiter.peek(&key);
            let retry = answer.err().and_then(|denied| denied.retry_after());
            (answer.is_ok(), standing.remaining(), retry.unwrap_or_default(), standing.reset_after())
        };
        for step in costs {
            ask(&twin, step);
        }
        let snapshot = saved(&twin);
        twin.clock().advance(Duration::from_nanos(down_ns));
        let restored = restored(limit, twin.clock().unix(), &snapshot).unwrap();
        prop_assert!(twin.horizon() - secs(30 * YEAR) < LEAST && restored.horizon() >= LEAST);
        for step in future {
            let (theirs, ours) = (ask(&twin, step), ask(&restored, step));
            prop_assert_eq!((theirs.0, theirs.1), (ours.0, ours.1));
            // An opening may come to stand on the next step of its grid, a 64th of a second at most.
            let opens = limit == limit.align(Alignment::FirstRequest);
            let near = if opens { secs(1) / 64 } else { Duration::from_nanos(1) };
            prop_assert!(ours.2.abs_diff(theirs.2) <= near && ours.3.abs_diff(theirs.3) <= near, "{:?} {:?}", ours, theirs);
        }
    }
}

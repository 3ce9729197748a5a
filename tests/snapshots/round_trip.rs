//! Saved and restored, a limiter answers as its twin that went on.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Alignment, Limit, Limiter, Manual, OnFull, Rate, Window};

use crate::common::limits;
use crate::{MAX_KEYS, builder, clock_at, each_kind, restored, saved, secs};

/// 1 token in 10 s, 5 at once; 4 are used at 1 000 s of the wall, and it is saved 15 s later: two and a half are owed.
#[test]
fn a_bucket_owes_what_it_owed_less_the_downtime() {
    let limit = Limit::bucket(Rate::per_minute(6), 5);
    let clock = Manual::at_unix(secs(1_000));
    let limiter = builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.check_n("ada", 4).is_ok());
    assert!(limiter.check_n("bob", 1).is_ok());
    clock.advance(secs(15));
    let mut snapshot = Vec::new();
    assert_eq!(limiter.save(&mut snapshot).unwrap(), 1, "bob is idle");
    for (unix, remaining) in [(1_015, 2), (1_019, 2), (1_020, 3), (1_040, 5), (9_000, 5), (3, 2)] {
        let restored = restored(limit, secs(unix), &snapshot).unwrap();
        assert_eq!(restored.peek("ada").remaining(), remaining, "at {unix}");
        assert_eq!(restored.peek("bob").remaining(), 5);
    }
}

#[test]
fn an_empty_limiter_is_restored_empty() {
    for limit in each_kind() {
        let limiter = builder(limit).clock(Manual::new()).build().unwrap();
        let snapshot = saved(&limiter);
        assert_eq!(snapshot.len(), 123 + 8 + 32 + 4);
        let restored = restored(limit, Duration::ZERO, &snapshot).unwrap();
        assert_eq!((restored.stats().live_estimate, restored.limit()), (0, limit));
    }
}

#[test]
fn what_is_of_the_builder_is_the_builders() {
    let limit = Limit::bucket(Rate::per_hour(1), 4);
    let clock = Manual::at_unix(secs(50));
    let limiter = builder(limit).seed(3).clock(clock).build().unwrap();
    assert!(limiter.check_n("ada", 4).is_ok());
    let with = builder(limit).seed(3).on_full(OnFull::Refuse).prefault(true).leases(false);
    let restored = with.clock(Manual::at_unix(secs(50))).restore(&saved(&limiter)[..]).unwrap();
    assert!(!restored.allow("ada"));
    assert_eq!((restored.max_keys(), restored.stats().claims), (MAX_KEYS, 0));
}

/// Random seeds are the snapshot's: keys are found, and a second generation finds them too.
#[test]
fn random_seeds_go_along() {
    let limit = Limit::window(Window::new(2, secs(3_600)));
    let limiter = Limiter::builder(limit).max_keys(1_000).build().unwrap();
    (0..500_u32).for_each(|key| assert!(limiter.check_n(&key, 2).is_ok()));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    assert_eq!(limiter.save(&mut first).unwrap(), 500);
    let restored = Limiter::builder(limit).max_keys(1_000).restore(&first[..]).unwrap();
    assert_eq!(restored.save(&mut second).unwrap(), 500);
    let again = Limiter::builder(limit).max_keys(1_000).restore(&second[..]).unwrap();
    assert!((0..500_u32).all(|key| !restored.allow(&key) && !again.allow(&key)));
    assert_eq!(first[12..44], second[12..44], "the seeds");
}

/// What happens next: time moves on, or a key asks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Advance(u64),
    Check { key: u16, cost: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let advance =
        prop_oneof![0..1_000_u64, 0..1_000_000_000_u64, 0..70_000_000_000_u64].prop_map(Step::Advance);
    let check = (0..8_u16, prop_oneof![4 => Just(1), 1 => 0..12_u64])
        .prop_map(|(key, cost)| Step::Check { key, cost });
    prop::collection::vec(prop_oneof![1 => advance, 3 => check], 1..80)
}

fn play(limiter: &Limiter<Manual>, steps: &[Step]) -> Vec<String> {
    let mut answers = Vec::new();
    for step in steps {
        match *step {
            Step::Advance(ns) => limiter.clock().advance(Duration::from_nanos(ns)),
            Step::Check { key, cost } => answers.push(format!("{:?}", limiter.check_n(&key, cost))),
        }
    }
    answers
}

/// A limiter with a history, at `unix` of the wall and whatever its clock reads.
fn with_history(limit: Limit, unix: u64, history: &[Step]) -> Limiter<Manual> {
    let clock = clock_at(secs(unix % 1_013), secs(unix));
    let limiter = builder(limit).clock(clock).build().unwrap();
    play(&limiter, history);
    limiter
}

fn downtimes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..1_000_000_000_u64, 0..700_000_000_000_u64, 0..4 * 31_557_600_000_000_000_u64]
}

proptest! {
    /// On a clock of another origin.
    #[test]
    fn every_answer_after_a_downtime_is_the_twins(
        limit in limits(12),
        (history, future) in (steps(), steps()),
        (unix, origin) in (0..2_000_000_000_u64, 0..2_000_000_000_u64),
        down_ns in downtimes(),
    ) {
        let twin = with_history(limit, unix, &history);
        let snapshot = saved(&twin);
        twin.clock().advance(Duration::from_nanos(down_ns));
        let clock = clock_at(secs(origin), tidegate::Clock::unix(twin.clock()));
        let restored = builder(limit).clock(clock).restore(&snapshot[..]).unwrap();
        prop_assert_eq!(play(&restored, &future), play(&twin, &future));
    }

    /// Where windows have nothing to do with the wall, no time has been.
    #[test]
    fn a_wall_that_was_set_back_is_no_downtime(
        limit in limits(12).prop_filter("not on the wall", |limit| {
            *limit != limit.align(Alignment::Clock) || format!("{limit:?}").contains("Bucket")
        }),
        (history, future) in (steps(), steps()),
        (unix, back) in (0..2_000_000_000_u64, 0..2_000_000_000_u64),
    ) {
        let twin = with_history(limit, unix, &history);
        let snapshot = saved(&twin);
        let unix = tidegate::Clock::unix(twin.clock()).saturating_sub(secs(back));
        let restored = builder(limit).clock(Manual::at_unix(unix)).restore(&snapshot[..]).unwrap();
        prop_assert_eq!(play(&restored, &future), play(&twin, &future));
    }

    /// On the wall a limiter at work follows at a window's end: from one longest period on both stand at the same time.
    #[test]
    fn a_wall_that_was_set_is_followed_as_by_a_limiter_at_work(
        limit in limits(12).prop_map(|limit| limit.align(Alignment::Clock)),
        (history, future) in (steps(), steps()),
        (unix, back_ns) in (10_000..2_000_000_000_u64, 0..9_000_000_000_u64),
    ) {
        let twin = with_history(limit, unix, &history);
        let snapshot = saved(&twin);
        let wall = tidegate::Clock::unix(twin.clock()) - Duration::from_nanos(back_ns);
        twin.clock().set_unix(wall);
        let restored = builder(limit).clock(Manual::at_unix(wall)).restore(&snapshot[..]).unwrap();
        // A bucket has no windows that would follow.
        let later = secs(4);
        twin.clock().advance(later);
        restored.clock().advance(later);
        prop_assert_eq!(play(&restored, &future), play(&twin, &future));
    }
}

/// Debts, places in line and windows that were charged above their limit come back as they were.
#[test]
fn a_debt_comes_back() {
    let bucket = Limit::bucket(Rate::per_second(1), 5).debt_max(10);
    let windows =
        Limit::burst_sustain(Window::new(3, secs(15)), Window::new(9, secs(300))).align(Alignment::Clock);
    for limit in [bucket, windows.count_refused(false), Limit::sliding_window(Window::new(5, secs(60)))] {
        let limiter = builder(limit).clock(Manual::at_unix(secs(1_000))).build().unwrap();
        let _ = limiter.charge("ada", 12).unwrap();
        _ = limiter.reserve("ada", 4, secs(60));
        let receipt = limiter.charge("bob", 6).unwrap();
        assert!(limiter.refund(receipt) > 0);
        let restored =
            builder(limit).clock(Manual::at_unix(secs(1_001))).restore(&saved(&limiter)[..]).unwrap();
        limiter.clock().advance(secs(1));
        for key in ["ada", "bob"] {
            let (was, is) = (limiter.peek(key), restored.peek(key));
            assert_eq!((was.remaining(), was.debt()), (is.remaining(), is.debt()), "{limit:?}");
            assert_eq!((was.retry_after(1), was.reset_after()), (is.retry_after(1), is.reset_after()));
        }
        assert!(restored.peek("ada").debt() > 0 && !restored.allow("ada"));
    }
}

/// What is saved is of the limit that is in force, and so is who restores it.
#[test]
fn a_limit_that_was_changed_is_the_one_that_is_saved() {
    let limit = |burst| Limit::bucket(Rate::per_second(1), burst);
    let limiter = builder(limit(5)).clock(Manual::at_unix(secs(1_000))).build().unwrap();
    for changes in 1..5 {
        limiter.set_limit(limit(5 + changes), tidegate::CarryOver::KeepUsed).unwrap();
        assert!(limiter.allow("ada"));
        let snapshot = saved(&limiter);
        let error = builder(limit(5)).clock(Manual::at_unix(secs(1_000))).restore(&snapshot[..]).unwrap_err();
        assert!(matches!(error, tidegate::RestoreError::Limit { field: "burst", .. }), "{error}");
        let restored =
            builder(limit(5 + changes)).clock(Manual::at_unix(secs(1_000))).restore(&snapshot[..]).unwrap();
        assert_eq!(restored.peek("ada").remaining(), 5);
        assert_eq!(restored.peek("ada").reset_after(), limiter.peek("ada").reset_after());
    }
}

/// Counts that were carried over in proportion, and a debt that reaches beyond the end of time, are words like any other.
#[test]
fn whatever_a_limiter_leaves_can_be_restored() {
    let limit = |burst| {
        Limit::burst_sustain(Window::new(burst, secs(15)), Window::new(100, secs(300)))
            .align(Alignment::Clock)
    };
    let limiter = builder(limit(30)).clock(Manual::at_unix(secs(1_000))).build().unwrap();
    assert!(limiter.check_n("ada", 10).is_ok());
    limiter.set_limit(limit(60), tidegate::CarryOver::Proportional).unwrap();
    let restored =
        builder(limit(60)).clock(Manual::at_unix(secs(1_000))).restore(&saved(&limiter)[..]).unwrap();
    assert_eq!(restored.peek("ada").remaining(), 40);

    let endless = Limit::bucket(Rate::per_day(1), 1).debt_max(u64::MAX);
    let limiter = builder(endless).clock(Manual::at_unix(secs(1_000))).build().unwrap();
    let _ = limiter.charge("ada", u64::MAX).unwrap();
    let restored =
        builder(endless).clock(Manual::at_unix(secs(1_000))).restore(&saved(&limiter)[..]).unwrap();
    assert_eq!(restored.peek("ada").debt(), limiter.peek("ada").debt());
}

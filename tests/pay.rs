//! Charging what is known only afterwards, and giving back: `charge`, `take`, `refund`, `refund_key`, `reset`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{SEED, at_once, limits, secs};
use proptest::prelude::*;
use tidegate::{
    Alignment, Clock, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Reason, Receipt, SingleLimiter,
    Window,
};

fn limiter(limit: Limit) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    (Limiter::builder(limit).seed(SEED).clock(clock.clone()).build().unwrap(), clock)
}

/// One token a second, five at once, a debt of three.
fn five() -> Limit {
    Limit::bucket(Rate::per_second(1), 5).debt_max(3)
}

#[test]
fn a_bucket_is_charged_down_to_its_debt() {
    let (limiter, clock) = limiter(five());
    let first = limiter.charge("a", 4).unwrap();
    assert_eq!(
        (first.charged(), first.uncharged(), first.debt(), first.standing().remaining()),
        (4, 0, 0, 1)
    );
    let second = limiter.charge("a", 3).unwrap();
    assert_eq!((second.charged(), second.debt(), second.standing().remaining()), (3, 2, 0));
    let third = limiter.charge("a", 9).unwrap();
    assert_eq!((third.charged(), third.uncharged(), third.debt()), (1, 8, 3));
    let fourth = limiter.charge("a", u64::MAX).unwrap();
    assert_eq!((fourth.charged(), fourth.uncharged(), fourth.debt()), (0, u64::MAX, 3));
    // Three to be level, one to pass.
    let denied = limiter.check("a").unwrap_err();
    assert_eq!((denied.reason(), denied.retry_after()), (Reason::Exhausted, Some(secs(4))));
    clock.advance(secs(4) - Duration::from_nanos(1));
    assert!(!limiter.allow("a"));
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.allow("a"));
    assert_eq!(limiter.peek("a").debt(), 0);
}

#[test]
fn without_a_debt_a_charge_takes_what_is_there() {
    let (limiter, _) = limiter(five().debt_max(0));
    let receipt = limiter.charge("a", 7).unwrap();
    assert_eq!((receipt.charged(), receipt.uncharged(), receipt.debt()), (5, 2, 0));
}

#[test]
fn the_debt_is_as_large_as_the_burst_unless_told() {
    let (limiter, _) = limiter(Limit::bucket(Rate::per_second(1), 5));
    assert_eq!(limiter.charge("a", 100).unwrap().debt(), 5);
}

#[test]
fn a_debt_without_end_stays_in_the_word() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_day(1), 1).debt_max(u64::MAX));
    let receipt = limiter.charge("a", u64::MAX).unwrap();
    assert!(receipt.charged() > 365 * 30 && receipt.uncharged() > 0);
    clock.advance(secs(86_400 * 365));
    let denied = limiter.check("a").unwrap_err();
    assert_eq!((denied.reason(), denied.remaining()), (Reason::Exhausted, 0));
    assert!(limiter.allow("b"));
}

#[test]
fn windows_count_every_charge_and_forget_it() {
    let limit =
        Limit::burst_sustain(Window::new(3, secs(15)), Window::new(9, secs(300))).align(Alignment::Clock);
    let (limiter, clock) = limiter(limit);
    let receipt = limiter.charge("a", 8).unwrap();
    assert_eq!((receipt.charged(), receipt.debt(), receipt.standing().remaining()), (8, 5, 0));
    assert_eq!(
        limiter.check("a").unwrap_err().retry_after(),
        Some(secs(300)),
        "it is the ninth of the sustain window"
    );
    clock.set(secs(15));
    // 8 and the refused one are in the sustain window.
    assert_eq!(limiter.peek("a").remaining(), 0);
    clock.set(secs(300));
    assert_eq!(limiter.peek("a").remaining(), 3);
    assert_eq!(limiter.refund(receipt), 0, "both of its windows are over");
}

#[test]
fn a_receipt_is_worth_what_has_not_come_back() {
    let (limiter, clock) = limiter(five());
    let receipt = limiter.charge("a", 4).unwrap();
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(limiter.refund(receipt), 3, "two and a half, rounded up");
    assert_eq!(limiter.peek("a").remaining(), 5);
    let receipt = limiter.charge("a", 4).unwrap();
    clock.advance(secs(4));
    let _ = limiter.charge("a", 5).unwrap();
    assert_eq!(limiter.refund(receipt), 0, "all of it came back, and was spent again");
    assert_eq!(limiter.peek("a").remaining(), 0);
}

/// Two receipts, the earlier given back first: the later is not worth what the bucket was full without.
#[test]
fn receipts_given_back_out_of_order_mint_nothing() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(1), 10));
    let [a, b] = [5, 5].map(|cost| limiter.take("k", cost).unwrap());
    assert_eq!(limiter.refund(a), 5);
    clock.advance(secs(5));
    let _ = limiter.take("k", 5).unwrap();
    assert_eq!(limiter.refund(b), 0);
    assert_eq!(limiter.peek("k").remaining(), 5);
}

#[test]
fn a_receipt_is_good_in_each_window_that_has_not_ended() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let limit =
            Limit::burst_sustain(Window::new(3, secs(15)), Window::new(9, secs(300))).align(alignment);
        let (limiter, clock) = limiter(limit);
        let [a, b] = [2, 1].map(|cost| limiter.take("k", cost).unwrap());
        let observed =
            || limiter.peek("k").windows().iter().map(|window| window.observed).collect::<Vec<_>>();
        assert_eq!((limiter.refund(b), observed()), (1, vec![2, 2]));
        clock.advance(secs(16));
        let _ = limiter.take("k", 3).unwrap();
        assert_eq!((limiter.refund(a), observed()), (2, vec![3, 3]), "only the sustain window is the same");
    }
}

#[test]
fn a_sliding_window_gives_back_what_still_weighs() {
    let (limiter, clock) = limiter(Limit::sliding_window(Window::new(10, secs(10))).align(Alignment::Clock));
    let [a, b, c] = [4, 2, 1].map(|cost| limiter.take("k", cost).unwrap());
    assert_eq!((limiter.refund(c), limiter.peek("k").remaining()), (1, 4));
    clock.set(secs(15));
    assert_eq!(limiter.peek("k").remaining(), 7, "six weigh half");
    assert_eq!((limiter.refund(b), limiter.peek("k").remaining()), (2, 8));
    let all = limiter.charge("k", 12).unwrap();
    assert_eq!((all.charged(), all.debt()), (12, 4));
    clock.set(secs(20));
    assert_eq!((limiter.refund(a), limiter.peek("k").remaining()), (0, 0), "two windows ago");
    assert_eq!((limiter.refund(all), limiter.peek("k").remaining()), (12, 10));
}

#[test]
fn a_count_at_its_end_gives_nothing_back() {
    let (limiter, _) = limiter(Limit::window(Window::new(3, secs(1 << 24))).align(Alignment::Clock));
    let receipt = limiter.take("a", 2).unwrap();
    let all = limiter.charge("a", u64::MAX >> 1).unwrap();
    assert!(all.uncharged() > 0);
    assert_eq!((limiter.refund(receipt), limiter.refund_key("a", 5), limiter.refund(all)), (0, 0, 0));
}

#[test]
fn take_counts_no_refusal() {
    let limit = Limit::window(Window::new(2, secs(60))).align(Alignment::Clock);
    let (limiter, _) = limiter(limit);
    let _ = limiter.take("a", 2).unwrap();
    let denied = limiter.take("a", 1).unwrap_err();
    assert_eq!(
        (denied.reason(), denied.observed(), denied.retry_after()),
        (Reason::Exhausted, 2, Some(secs(60)))
    );
    // Though 2 of 2 are no more than are allowed.
    assert!(denied.windows()[0].refuses);
    assert_eq!(limiter.take("a", 3).unwrap_err().reason(), Reason::TooLarge);
    assert_eq!(limiter.peek("a").windows()[0].observed, 2);
    assert_eq!(limiter.take("a", 0).unwrap().charged(), 0);
}

#[test]
fn a_refund_by_key_gives_no_more_than_is_used() {
    let (limiter, clock) = limiter(five());
    assert_eq!(limiter.refund_key("a", 9), 0, "never seen");
    let _ = limiter.charge("a", 3).unwrap();
    assert_eq!((limiter.refund_key("a", 2), limiter.peek("a").remaining()), (2, 4));
    assert_eq!((limiter.refund_key("a", u64::MAX), limiter.peek("a").remaining()), (1, 5));
    clock.advance(secs(1));
    assert_eq!(limiter.refund_key("a", 1), 0);
}

#[test]
fn a_key_that_is_reset_is_fresh_and_its_receipts_are_void() {
    for limit in [five(), Limit::window(Window::new(5, secs(60))).align(Alignment::Clock)] {
        let (limiter, clock) = limiter(limit);
        let receipt = limiter.charge("a", 5).unwrap();
        assert!(!limiter.allow("a"));
        assert!(limiter.reset("a") && limiter.reset("never seen"));
        assert_eq!(limiter.peek("a").remaining(), 5);
        let _ = limiter.take("a", 2).unwrap();
        assert_eq!((limiter.refund(receipt), limiter.peek("a").remaining()), (0, 3));
        let exact = ExactLimiter::<String>::builder(limit).clock(clock.clone()).build().unwrap();
        let single = SingleLimiter::builder(limit).clock(clock).build().unwrap();
        let receipts = (exact.charge("a", 5).unwrap(), single.charge(5).unwrap());
        assert!(exact.reset("a") && exact.reset("b") && single.reset());
        assert_eq!(exact.len(), 1, "a reset creates no key");
        assert!(exact.allow("a") && single.allow());
        assert_eq!((exact.refund(receipts.0), single.refund(receipts.1)), (0, 0));
    }
}

#[test]
fn a_receipt_is_good_at_its_own_limiter_only() {
    let (one, _) = limiter(five());
    let (two, clock) = limiter(five());
    let single = SingleLimiter::builder(five()).clock(clock).build().unwrap();
    let _ = (two.charge("a", 5).unwrap(), single.charge(5).unwrap());
    assert_eq!(two.refund(one.charge("a", 5).unwrap()), 0);
    assert_eq!(single.refund(one.charge("a", 5).unwrap()), 0);
}

/// The slot changes hands: what was paid for the last owner is nothing to the next, nor to the first who comes back.
#[test]
fn a_receipt_of_an_evicted_key_is_void() {
    let clock = Manual::new();
    let limiter = Limiter::builder(Limit::bucket(Rate::per_hour(1), 100)).max_keys(1).seed(SEED).clock(clock);
    let limiter = limiter.build().unwrap();
    let receipt = limiter.charge(&0, 10).unwrap();
    for key in 1..200 {
        _ = limiter.take(&key, 50);
    }
    assert_eq!(limiter.peek(&0).remaining(), 100, "evicted");
    let _ = limiter.take(&0, 50);
    let before = limiter.peek(&0).remaining();
    assert_eq!((limiter.refund(receipt), limiter.peek(&0).remaining()), (0, before));
}

#[test]
fn no_room_is_no_charge() {
    let limit = Limit::bucket(Rate::per_hour(1), 100);
    for (on_full, charged) in [(OnFull::Refuse, None), (OnFull::Admit, Some(0))] {
        let limiter = Limiter::builder(limit).max_keys(1).on_full(on_full).seed(SEED).clock(Manual::new());
        let limiter = limiter.build().unwrap();
        let answers = (0..100).map(|key| limiter.charge(&key, 90)).collect::<Vec<_>>();
        let last = answers.last().unwrap();
        assert_eq!(last.as_ref().map(Receipt::charged).ok(), charged);
        assert!(last.as_ref().err().is_none_or(|denied| denied.reason() == Reason::Full));
    }
}

/// Threads that know a key to be dry learn that it is not.
#[test]
fn who_knows_a_key_to_be_dry_learns_that_it_is_not() {
    let (limiter, _) = limiter(Limit::bucket(Rate::per_hour(1), 5));
    type Give = fn(&Limiter<Manual>, Receipt) -> bool;
    let ways: [Give; 2] = [|limiter, _| limiter.reset("a"), |limiter, receipt| limiter.refund(receipt) > 0];
    for give in ways {
        let receipt = limiter.charge("a", 5).unwrap();
        limiter.warm("a");
        assert!(!limiter.allow("a") && !limiter.allow("a"), "refused by the thread's own memory");
        assert!(give(&limiter, receipt));
        assert!(limiter.allow("a"));
        assert!(limiter.reset("a"));
    }
    let receipt = limiter.charge("a", 5).unwrap();
    limiter.warm("a");
    assert!(!limiter.allow("a") && !limiter.allow("a"));
    assert!(limiter.refund_key("a", 1) == 1 && limiter.allow("a"));
    drop(receipt);
}

/// A clock that only lags, as the shipped one does, and never steps back.
#[derive(Debug)]
struct Steady(Manual);

impl Clock for Steady {
    fn coarse(&self) -> u64 {
        self.0.coarse()
    }
    fn precise(&self) -> u64 {
        self.0.precise()
    }
    fn unix(&self) -> Duration {
        self.0.unix()
    }
    fn lag_bound_ns(&self) -> Option<u64> {
        Some(50_000_000)
    }
    fn never_steps_back(&self) -> bool {
        true
    }
}

/// A word that a debt has put far ahead proves no time: waits are not counted from what it would prove.
#[test]
fn the_wait_of_a_debtor_is_whole_on_a_clock_that_never_steps_back() {
    let clock = Manual::new();
    let limiter = Limiter::builder(five()).clock(Steady(clock.clone())).build().unwrap();
    let _ = limiter.charge("a", 8).unwrap();
    assert_eq!(limiter.check("a").unwrap_err().retry_after(), Some(secs(4)));
    assert_eq!(limiter.check_n("a", 0).unwrap().next_after(), secs(4));
    assert_eq!((limiter.peek("a").retry_after(1), limiter.peek("a").debt()), (Some(secs(4)), 3));
    clock.advance(secs(4));
    assert!(limiter.allow("a"));
}

/// A bucket that owes, in the plainest numbers: parts of a token, a period's nanoseconds each.
struct Debtor {
    rate: u128,
    burst: u128,
    debt: u128,
    owed: u128,
}

const TOKEN: u128 = 1_000_000_000;

impl Debtor {
    fn pass(&mut self, ns: u128) {
        self.owed = self.owed.saturating_sub(self.rate * ns);
    }

    fn take(&mut self, cost: u128) -> bool {
        let fits = cost == 0 || self.owed + cost * TOKEN <= self.burst * TOKEN;
        self.owed += if fits { cost * TOKEN } else { 0 };
        fits
    }

    fn charge(&mut self, cost: u128) -> u128 {
        let charged = cost.min(((self.burst + self.debt) * TOKEN).saturating_sub(self.owed) / TOKEN);
        self.owed += charged * TOKEN;
        charged
    }

    fn seen(&self) -> (u128, u128) {
        let used = self.owed.div_ceil(TOKEN);
        (self.burst.saturating_sub(used), used.saturating_sub(self.burst))
    }
}

proptest! {
    #[test]
    fn charges_and_debts_are_the_twins(
        rate in prop::sample::select(vec![1_u64, 2, 5, 10, 1_000, 1_000_000_000]),
        burst in 1..50_u64,
        debt in 0..60_u64,
        steps in prop::collection::vec((0..4_000_000_000_u64, any::<bool>(), 0..40_u64), 1..60),
    ) {
        let limit = Limit::bucket(Rate::per_second(rate), burst).debt_max(debt);
        let (limiter, clock) = limiter(limit);
        let single = SingleLimiter::builder(limit).clock(clock.clone()).build().unwrap();
        let mut twin = Debtor { rate: rate.into(), burst: burst.into(), debt: debt.into(), owed: 0 };
        for (wait_ns, is_charge, cost) in steps {
            clock.advance(Duration::from_nanos(wait_ns / rate.min(1_000)));
            twin.pass((wait_ns / rate.min(1_000)).into());
            if is_charge {
                let receipt = limiter.charge("a", cost).unwrap();
                prop_assert_eq!(single.charge(cost).unwrap().charged(), receipt.charged());
                prop_assert_eq!(u128::from(receipt.charged()), twin.charge(cost.into()));
                prop_assert_eq!((receipt.standing().remaining().into(), receipt.debt().into()), twin.seen());
            } else {
                let answer = limiter.take("a", cost);
                prop_assert_eq!(single.check_n(cost).is_ok(), answer.is_ok());
                prop_assert_eq!(answer.is_ok(), twin.take(cost.into()));
            }
            let seen = limiter.peek("a");
            prop_assert_eq!((seen.remaining().into(), seen.debt().into()), twin.seen());
        }
    }

    /// However charges and refunds follow each other, a refund leaves no more than if its charge had never been made. (A
    /// window that opened at a first request stays open, and ends, though that is given back.)
    #[test]
    fn a_refund_leaves_no_more_than_if_the_charge_had_not_been_made(
        limit in limits(40),
        aligned in any::<bool>(),
        steps in prop::collection::vec((0..3_u8, 0..700_000_000_u64, 1..12_u64, any::<prop::sample::Index>()), 1..60),
    ) {
        let limit = limit.align(if aligned { Alignment::Clock } else { Alignment::PerKey });
        let (limiter, clock) = limiter(limit);
        let (mut kept, mut charges) = (Vec::new(), Vec::<(usize, Duration, u64)>::new());
        let mut made = 0;
        for (what, wait_ns, cost, which) in steps {
            clock.advance(Duration::from_nanos(wait_ns));
            made += 1;
            match what {
                0 if !kept.is_empty() => {
                    let (charge, receipt): (usize, Receipt) = kept.swap_remove(which.index(kept.len()));
                    if limiter.refund(receipt) > 0 {
                        charges.retain(|&(number, ..)| number != charge);
                    }
                }
                1 => {
                    let receipt = limiter.charge("a", cost).unwrap();
                    charges.push((made, clock.elapsed(), receipt.charged()));
                    kept.push((made, receipt));
                }
                _ => {
                    if let Ok(receipt) = limiter.take("a", cost) {
                        charges.push((made, clock.elapsed(), cost));
                        kept.push((made, receipt));
                    }
                }
            }
            let (without, its_clock) = self::limiter(limit);
            for &(_, at, cost) in &charges {
                its_clock.set(at);
                prop_assert_eq!(without.charge("a", cost).unwrap().uncharged(), 0);
            }
            its_clock.set(clock.elapsed());
            let (with, without) = (limiter.peek("a"), without.peek("a"));
            prop_assert!(with.remaining() <= without.remaining(), "{with:?} {without:?}");
            for (with, without) in with.windows().iter().zip(&without.windows()) {
                prop_assert!(with.observed >= without.observed, "{with:?} {without:?}");
            }
        }
    }
}

/// Threads that take, charge and give back on one key: at the end exactly what was kept is used.
#[test]
fn at_the_end_what_was_kept_is_used() {
    const THREADS: usize = 4;
    let limit = Limit::window(Window::new(1 << 30, secs(86_400))).align(Alignment::Clock);
    let bucket = Limit::bucket(Rate::per_day(1), 1 << 30);
    for limit in [limit, bucket] {
        let clock = Manual::new();
        let slots = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
        let exact = ExactLimiter::<String>::builder(limit).clock(clock.clone()).build().unwrap();
        let single = SingleLimiter::builder(limit).clock(clock.clone()).build().unwrap();
        let kept = AtomicU64::new(0);
        at_once(THREADS, |thread| {
            for round in 0..2_000 {
                let cost = (round * 7 + thread as u64) % 5 + 1;
                let receipts = (slots.take("k", cost), exact.charge("k", cost), single.take(cost));
                let receipts = (receipts.0.unwrap(), receipts.1.unwrap(), receipts.2.unwrap());
                if (round + thread as u64).is_multiple_of(3) {
                    kept.fetch_add(cost, Ordering::Relaxed);
                    drop(receipts);
                } else {
                    let back =
                        [slots.refund(receipts.0), exact.refund(receipts.1), single.refund(receipts.2)];
                    assert_eq!(back, [cost; 3]);
                }
            }
        });
        let left = (1 << 30) - kept.into_inner();
        let seen = [slots.peek("k"), exact.peek("k"), single.peek()].map(|seen| seen.remaining());
        assert_eq!(seen, [left; 3]);
    }
}

/// Threads that race to be a new key's first claim slots for it side by side, and all but one are freed: a receipt finds the
/// one that it was charged in.
#[test]
fn a_receipt_of_a_new_key_finds_its_slot_among_those_that_threads_claim_for_it() {
    for _ in 0..100 {
        let limiter =
            Limiter::builder(Limit::bucket(Rate::per_hour(1), 100)).max_keys(4_096).clock(Manual::new());
        let limiter = limiter.build().unwrap();
        at_once(4, |_| {
            for key in 0..500 {
                let receipt = limiter.take(&key, 2).unwrap();
                assert_eq!(limiter.refund(receipt), 2, "key {key}");
            }
        });
    }
}

/// Part of a receipt, as when an estimate was too high; and never more than the whole is still good for.
#[test]
fn a_part_of_a_receipt_is_given_back_once() {
    let (limiter, clock) = limiter(Limit::bucket(Rate::per_second(1), 10));
    let [all, late, none] = [4, 4, 1].map(|cost| limiter.take("a", cost).unwrap());
    assert_eq!((limiter.refund_part(none, 0), limiter.peek("a").remaining()), (0, 1));
    assert_eq!((limiter.refund_part(all, 3), limiter.peek("a").remaining()), (3, 4));
    clock.advance(secs(3));
    assert_eq!(
        (limiter.refund_part(late, 2), limiter.peek("a").remaining()),
        (1, 8),
        "three of its four are back"
    );
    let (windows, _) = self::limiter(Limit::window(Window::new(10, secs(60))).align(Alignment::Clock));
    let receipt = windows.take("a", 8).unwrap();
    assert_eq!((windows.refund_part(receipt, 3), windows.peek("a").remaining()), (3, 5));
}

//! Ways in which limits beside each other can go wrong: waits, receipts, counts and rates that one takes from another.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "small numbers of a test, which fails by panicking"
)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{SEED, secs};
use tidegate::{
    Alignment, CarryOver, Clock, ConfigError, ExactLimiter, Limit, Limiter, Manual, OnFull, Rate, Window,
};

const DAY: Duration = Duration::from_secs(86_400);

fn bucket(tokens: u64, period: Duration, burst: u64) -> Limit {
    Limit::bucket(Rate::new(tokens, period), burst)
}

fn per_second(rate: u64, burst: u64) -> Limit {
    Limit::bucket(Rate::per_second(rate), burst)
}

fn limiter(limit: Limit, max_tiers: u8) -> (Limiter<Manual>, Manual) {
    let clock = Manual::new();
    let builder = Limiter::builder(limit).max_keys(1_000).max_tiers(max_tiers).seed(SEED);
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// `retry_after`: "the same request passes then". Ada was last charged by the slow limit; a refusal by the fast one leaves her
/// word, and so her rate, with the slow one. She is told 100 ms, and is refused for ten hours.
#[test]
fn a_wait_told_by_a_faster_tier_is_enough() {
    let (limiter, clock) = limiter(bucket(1, secs(3_600), 10), 1);
    let paid = limiter.tier(per_second(100, 100)).unwrap();
    assert!(limiter.check_n("ada", 10).is_ok());
    let wait = limiter.check_in(paid, "ada", 100).unwrap_err().retry_after().unwrap();
    assert_eq!(wait, millis(100));
    for round in 0..1_000 {
        clock.advance(wait);
        if limiter.check_in(paid, "ada", 100).is_ok() {
            assert_eq!(round, 0, "{round} waits of {wait:?}");
            return;
        }
    }
    panic!("refused after 1 000 waits of {wait:?}");
}

/// The same by an override of a higher rate and a lower burst, for the simplest check there is, in both limiters.
#[test]
fn an_override_of_a_higher_rate_refills_at_it() {
    let own = bucket(1, secs(3_600), 10);
    let (slots, clock) = limiter(own, 1);
    let exact = ExactLimiter::<String>::builder(own).max_tiers(1).clock(clock.clone()).build().unwrap();
    assert!(slots.check_n("ada", 10).is_ok() && exact.check_n("ada", 10).is_ok());
    slots.set_override("ada", per_second(5, 5)).unwrap();
    exact.set_override("ada", per_second(5, 5)).unwrap();
    let waits = [slots.check("ada"), exact.check("ada")].map(|answer| answer.unwrap_err().retry_after());
    assert_eq!(waits, [Some(millis(1_200)); 2]);
    clock.advance(millis(1_200));
    assert_eq!([slots.allow("ada"), exact.allow("ada")], [true; 2]);
}

/// And "fails a nanosecond earlier": a wait told by a slower limit is told as if that had charged last. (It is 41 s in
/// `a_key_has_one_count_whichever_tier_it_is_asked_by`, and the check passes after 4.1 s.)
#[test]
fn a_wait_told_by_a_slower_tier_is_the_shortest() {
    let (limiter, clock) = limiter(per_second(1, 10), 1);
    let paid = limiter.tier(per_second(10, 100)).unwrap();
    assert!(limiter.check_in(paid, "ada", 50).is_ok());
    let wait = limiter.check("ada").unwrap_err().retry_after().unwrap();
    clock.advance(wait - secs(1));
    assert!(!limiter.allow("ada"), "{wait:?}");
}

/// "A refund leaves no more than there would be had the charge never been made." What came back since is reckoned by the rate of
/// the tier that paid, though it came back at that of another.
#[test]
fn a_refund_after_a_charge_by_a_faster_tier_mints_nothing() {
    let run = |is_charged: bool| {
        let (limiter, clock) = limiter(bucket(1, DAY, 100), 1);
        let fast = limiter.tier(per_second(10, 100)).unwrap();
        let receipt = is_charged.then(|| limiter.take("ada", 50).unwrap());
        assert!(limiter.check_in(fast, "ada", 1).is_ok());
        clock.advance(secs(5));
        assert!(limiter.check_in(fast, "ada", 99).is_ok());
        if let Some(receipt) = receipt {
            limiter.refund(receipt);
        }
        limiter.peek_in(fast, "ada").remaining()
    };
    assert_eq!(run(false), 1);
    assert!(run(true) <= 1, "{} are left after a refund", run(true));
}

/// An override "decides every check of the key". A receipt of before gives one token back, and takes the word to the tier that paid:
/// all that the override's limit (10 a day) had charged comes back at 1 000 a second.
#[test]
fn a_refund_does_not_take_an_overridden_key_back_to_the_limit_before() {
    let (limiter, clock) = limiter(per_second(1_000, 1_000), 1);
    let slow = bucket(10, DAY, 10);
    limiter.set_override("somebody", slow).unwrap();
    let receipt = limiter.take("eve", 1).unwrap();
    limiter.set_override("eve", slow).unwrap(); // a limit that there is: no change
    assert_eq!((0..20).filter(|_| limiter.allow("eve")).count(), 9);
    assert_eq!(limiter.refund(receipt), 1);
    clock.advance(millis(100));
    assert_eq!((0..20).filter(|_| limiter.allow("eve")).count(), 1, "what was given back");
}

/// `refund_key` and its like know the limiter's own limit only: one token given to a customer in a tier, and what she owes comes
/// back at the rate of a limit that she was never charged by.
#[test]
fn a_gift_does_not_change_the_rate_of_what_comes_back() {
    let (limiter, clock) = limiter(bucket(1, secs(3_600), 10), 1);
    let paid = limiter.tier(per_second(100, 100)).unwrap();
    assert!(limiter.check_in(paid, "ada", 100).is_ok());
    assert_eq!(limiter.refund_key("ada", 1), 1);
    clock.advance(secs(1));
    assert_eq!(limiter.peek_in(paid, "ada").remaining(), 100);
}

/// "In each window that has not ended all" is given back. A check by a tier with wider counts, so a coarser grid of openings,
/// rounds the opening, by which the receipt's window is then not found again.
#[test]
fn a_receipt_of_an_open_window_is_good_after_a_check_by_another_tier() {
    let limit = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::FirstRequest);
    let (limiter, clock) = limiter(limit(10), 1);
    let large = limiter.tier(limit(1_000_000)).unwrap();
    clock.advance(Duration::from_nanos(12_345_678_901));
    let receipt = limiter.take("ada", 5).unwrap();
    assert!(limiter.check_in(large, "ada", 1).is_ok());
    assert_eq!(limiter.refund(receipt), 5);
}

/// A place can be cancelled only if nothing was charged since. By rates that differ the word comes to the same number again.
#[test]
fn a_place_is_not_cancelled_after_another_tier_has_charged() {
    let (limiter, clock) = limiter(per_second(1, 10), 1);
    let fast = limiter.tier(per_second(2, 100)).unwrap();
    let _first = limiter.reserve("ada", 10, secs(0)).unwrap();
    let second = limiter.reserve("ada", 10, secs(10)).unwrap();
    assert!(limiter.check_in(fast, "ada", 1).is_ok());
    clock.advance(secs(1));
    assert!(!limiter.cancel(second), "not the last: one more was charged");
}

/// "What a key has used by one tier's limit it has used by every other, as many requests." A small tier's word counts to 63: when
/// refused checks have come to that, all of a million is used in the large one.
#[test]
fn a_refusal_by_a_small_tier_uses_up_no_large_one() {
    let first = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::FirstRequest);
    let (limiter, _) = limiter(first(1_000_000), 1);
    let small = limiter.tier(first(1)).unwrap();
    assert!(limiter.check_n("ada", 10).is_ok());
    for _ in 0..60 {
        assert!(limiter.check_in(small, "ada", 1).is_err());
    }
    assert_eq!(limiter.peek("ada").remaining(), 1_000_000 - 70);
}

/// A refused request counts, as the limit says. One that is refused by a small tier whose word cannot count any further does not,
/// though the key's own word could.
#[test]
fn a_refusal_by_a_small_tier_counts() {
    let first = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::FirstRequest);
    let (limiter, _) = limiter(first(1_000_000), 1);
    let small = limiter.tier(first(1)).unwrap();
    assert!(limiter.check_n("ada", 100).is_ok());
    assert!(limiter.check_in(small, "ada", 1).is_err());
    assert_eq!(limiter.peek("ada").remaining(), 1_000_000 - 101);
}

/// The same, and nobody asked for ada by a small limit: the place of her override goes to eve's, and her count goes through
/// eve's word on its way to the limiter's own.
#[test]
fn a_place_that_goes_to_another_key_uses_nothing_up() {
    let first = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::FirstRequest);
    let (limiter, _) = limiter(first(1_000), 1);
    limiter.set_override("ada", first(2_000)).unwrap();
    assert!(limiter.check_n("ada", 100).is_ok());
    limiter.clear_override("ada");
    assert_eq!(limiter.peek("ada").remaining(), 900);
    limiter.set_override("eve", first(1)).unwrap();
    assert_eq!(limiter.peek("ada").remaining(), 900);
}

/// The same for buckets: eve's limit takes decades for what ada has used, which is cut, and then all is used.
#[test]
fn a_place_that_goes_to_another_key_uses_no_bucket_up() {
    let (limiter, _) = limiter(per_second(100_000, 100_000), 1);
    limiter.set_override("ada", per_second(100_001, 100_000)).unwrap();
    assert!(limiter.check_n("ada", 50_000).is_ok());
    limiter.clear_override("ada");
    assert_eq!(limiter.peek("ada").remaining(), 50_000);
    limiter.set_override("eve", bucket(1, DAY, 1)).unwrap();
    assert!(limiter.peek("ada").remaining() >= 49_999, "{}", limiter.peek("ada").remaining());
}

/// Of a newcomer that `OnFull::Admit` lets pass, the pass tells the limiter's own limit and not the one that was asked for.
#[test]
fn who_passes_uncounted_is_told_its_own_limit() {
    let limiter = Limiter::builder(per_second(1, 10))
        .max_keys(1)
        .max_tiers(1)
        .seed(SEED)
        .on_full(OnFull::Admit)
        .clock(Manual::new())
        .build()
        .unwrap();
    let paid = limiter.tier(per_second(10, 100)).unwrap();
    for key in 0..5_000_u32 {
        let pass = limiter.check_in(paid, &key, 90).unwrap();
        assert_eq!(pass.limit(), 100, "key {key} of {:?}", limiter.stats());
    }
}

/// `iter`, `retain` and `remove` tell by the limit of the last charge, `peek` and every check by the override.
#[test]
fn walks_tell_a_key_by_its_override() {
    let exact = ExactLimiter::<String>::builder(per_second(1, 10)).max_tiers(1).clock(Manual::new());
    let exact = exact.build().unwrap();
    assert!(exact.check_n("ada", 10).is_ok());
    exact.set_override("ada", per_second(1, 100)).unwrap();
    assert_eq!(exact.peek("ada").remaining(), 90);
    assert_eq!(exact.iter().next().unwrap().1.remaining(), 90);
    assert_eq!(exact.remove("ada").unwrap().remaining(), 90);
}

/// A place for an override is taken "as long as some key has it". The only one who has it cannot be given another.
#[test]
fn the_override_of_a_key_is_replaced_in_its_place() {
    let (limiter, _) = limiter(per_second(1, 10), 1);
    limiter.set_override("ada", per_second(2, 20)).unwrap();
    assert_eq!(limiter.set_override("ada", per_second(3, 30)), Ok(()));
}

type Hook = Box<dyn FnOnce() + Send>;

/// A clock at whose next readings, of either kind, something happens.
#[derive(Clone, Default)]
struct Hooked {
    ns: Arc<AtomicU64>,
    /// Readings until then.
    after: Arc<AtomicU64>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Hooked {
    fn nth(&self, nth: u64, hook: impl FnOnce() + Send + 'static) {
        self.after.store(nth, Ordering::SeqCst);
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    fn read(&self) -> u64 {
        let mut hook = None;
        if self.hook.lock().unwrap().is_some() && self.after.fetch_sub(1, Ordering::SeqCst) == 0 {
            hook = self.hook.lock().unwrap().take();
        }
        if let Some(hook) = hook {
            hook();
        }
        self.ns.load(Ordering::SeqCst)
    }
}

impl Clock for Hooked {
    fn coarse(&self) -> u64 {
        self.read()
    }

    fn precise(&self) -> u64 {
        self.read()
    }

    fn unix(&self) -> Duration {
        secs(1_000)
    }
}

/// A clock that panics in the walk costs a place for good: "whoever panicked with it has left no tier half made".
#[test]
fn a_clock_that_panics_costs_no_place() {
    let clock = Hooked::default();
    let builder = Limiter::builder(per_second(1, 10)).max_tiers(1).max_keys(100).seed(SEED);
    let limiter = builder.clock(clock.clone()).build().unwrap();
    assert!(limiter.check_n("ada", 2).is_ok());
    clock.nth(1, || panic!("the clock"));
    let first = catch_unwind(AssertUnwindSafe(|| limiter.set_override("eve", per_second(2, 20))));
    assert!(first.is_err(), "{first:?}");
    assert_eq!(limiter.override_of("eve"), None);
    assert_eq!(limiter.set_override("eve", per_second(2, 20)), Ok(()));
}

/// `clear_override` changes no limit, and yet waits for whoever makes an override: asked from a clock, for ever.
#[test]
fn an_override_is_taken_away_from_within_a_clock() {
    let clock = Hooked::default();
    let builder = Limiter::builder(per_second(1, 10)).max_tiers(1).max_keys(100).seed(SEED);
    let limiter = Arc::new(builder.clock(clock.clone()).build().unwrap());
    let other = Arc::clone(&limiter);
    clock.nth(0, move || _ = other.clear_override("ada"));
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        limiter.set_override("ada", per_second(2, 20)).unwrap();
        done.send(()).unwrap();
    });
    assert!(is_done.recv_timeout(secs(5)).is_ok(), "a deadlock");
}

/// Errors tell what would be accepted, with fewer bits too.
#[test]
fn the_largest_that_an_error_allows_is_accepted() {
    for tiers in [0, 1, 3, 200, 255] {
        let build =
            |limit: Limit| Limiter::builder(limit).max_keys(10).max_tiers(tiers).clock(Manual::new()).build();
        for rate in [Rate::per_second(3), Rate::per_day(1), Rate::new(1_000_003, millis(17))] {
            let Err(ConfigError::BurstTooLarge { burst_max, .. }) =
                build(Limit::bucket(rate, u64::MAX)).map(drop)
            else {
                panic!("{tiers} {rate:?}")
            };
            assert!(build(Limit::bucket(rate, burst_max)).is_ok(), "{tiers} {rate:?} {burst_max}");
        }
        let Err(ConfigError::RateTooHigh { per_second_max, .. }) = build(per_second(u64::MAX, 1)).map(drop)
        else {
            panic!("{tiers}")
        };
        assert!(build(per_second(per_second_max as u64, 1)).is_ok(), "{tiers} {per_second_max}");
        for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
            let window = |limit| Limit::window(Window::new(limit, secs(1))).align(alignment);
            let Err(error) = build(window(u64::MAX)).map(drop) else { panic!("{tiers} {alignment:?}") };
            let ConfigError::TooWide { limit_max, .. } = error else { panic!("{tiers} {error}") };
            assert!(build(window(limit_max)).is_ok(), "{tiers} {alignment:?} {limit_max}");
            assert!(
                tiers == 0 || !error.to_string().contains("62-bit"),
                "{tiers} tiers leave fewer bits: {error}"
            );
        }
    }
}

#[test]
fn no_room_is_told_by_the_tier() {
    let exact = ExactLimiter::<u32>::builder(per_second(1, 10)).max_keys(2).max_tiers(1).clock(Manual::new());
    let exact = exact.build().unwrap();
    let paid = exact.tier(per_second(10, 100)).unwrap();
    assert!(exact.check_n(&1, 10).is_ok() && exact.check_in(paid, &2, 10).is_ok());
    let full = exact.check_in(paid, &3, 1).unwrap_err();
    assert_eq!((full.limit(), full.retry_after().unwrap().as_secs()), (100, 1));
}

#[test]
fn the_first_tier_ends_leases_and_dry_marks() {
    let (limiter, _) = limiter(per_second(1, 1_000_000), 1);
    limiter.warm("ada");
    for _ in 0..10_000 {
        assert!(limiter.allow("ada"));
    }
    let used = 1_000_000 - limiter.peek("ada").remaining();
    limiter.set_override("ada", per_second(1, used)).unwrap();
    // What is leased may still be spent.
    let passed = (0..10_000).filter(|_| limiter.allow("ada")).count();
    assert!(10_000 + passed as u64 <= used, "{passed}");
    limiter.set_limit(per_second(1, 2_000_000), CarryOver::KeepUsed).unwrap();
    assert!(!limiter.allow("ada"));
}

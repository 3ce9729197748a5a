//! A check of a known key allocates nothing, whether it passes or is refused, leases or spends a lease; nor does a charge,
//! or what gives back.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;
mod counting;

use std::hint::black_box;

use common::secs;
use counting::allocations;
use tidegate::{
    Alignment, Clock, Denied, ExactLimiter, Limit, Limiter, Manual, Pass, Precise, Rate, SingleLimiter,
    Ticking, Window, all,
};

const KEYS: [&str; 4] = ["client-1", "client-2", "client-3", "client-4"];

fn limits(calls: u64) -> Vec<Limit> {
    let window = Window::new(calls, secs(3_600));
    let mut limits = vec![Limit::bucket(Rate::new(calls, secs(3_600)), calls)];
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        limits.push(Limit::window(window).align(alignment));
        let sustain = Window::new(calls, secs(36_000));
        limits.push(Limit::burst_sustain(window, sustain).align(alignment));
    }
    limits
}

/// Warms up every key, then checks all of them again and again, and counts: on both limiters.
fn allocations_of<C: Clock + Clone>(limit: Limit, clock: C, passes: bool) -> u64 {
    let exact = ExactLimiter::<String>::builder(limit).clock(clock.clone()).build().unwrap();
    let slots = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    let staggering = Limiter::builder(limit).stagger(true).clock(clock).build().unwrap();
    allocations_by(|key| exact.check(key), passes)
        + allocations_by(|key| slots.check(key), passes)
        + allocations_by(|key| staggering.check(key), passes)
}

fn allocations_by(check: impl Fn(&str) -> Result<Pass, Denied>, passes: bool) -> u64 {
    for key in KEYS {
        assert!(check(key).is_ok());
        assert_eq!(check(key).is_ok(), passes);
    }
    allocations(|| {
        for _ in 0..25_000 {
            for key in KEYS {
                let answer = black_box(check(key));
                assert_eq!(answer.is_ok(), passes);
                match answer {
                    Ok(pass) => drop(black_box((pass.remaining(), pass.windows()))),
                    Err(denied) => drop(black_box((denied.retry_after(), denied.windows()))),
                }
            }
        }
    })
}

/// The slot table allocates for nobody after it was built, whoever comes and goes.
#[test]
fn newcomers_and_evictions_of_the_slot_table_allocate_nothing() {
    let limit = Limit::bucket(Rate::per_hour(1), 4);
    let limiter = Limiter::builder(limit).max_keys(64).clock(Manual::new()).build().unwrap();
    let work = || assert!((0..100_000_u64).filter(|key| limiter.allow(key)).count() > 0);
    assert_eq!(allocations(work), 0);
    assert!(limiter.stats().forced_evictions > 0);
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(7)))), 1);
    assert_eq!(allocations(|| drop(black_box(String::from("seven")))), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn an_admitted_check_allocates_nothing() {
    for limit in limits(1 << 15) {
        assert_eq!(allocations_of(limit, Manual::new(), true), 0, "{limit:?}");
        // On the real clock no window may end in mid-test, as one on the wall clock's hours could.
        let limit = limit.align(Alignment::FirstRequest);
        assert_eq!(allocations_of(limit, Ticking::new(), true), 0, "{limit:?}");
        assert_eq!(allocations_of(limit, Precise::new(), true), 0, "{limit:?}");
    }
}

#[test]
fn a_refused_check_allocates_nothing() {
    for limit in limits(1) {
        assert_eq!(allocations_of(limit, Manual::new(), false), 0, "{limit:?}");
        // On the real clock no window may end in mid-test, as one on the wall clock's hours could.
        let limit = limit.align(Alignment::FirstRequest);
        assert_eq!(allocations_of(limit, Ticking::new(), false), 0, "{limit:?}");
        assert_eq!(allocations_of(limit, Precise::new(), false), 0, "{limit:?}");
    }
}

#[test]
fn a_refusal_for_want_of_room_and_one_too_large_allocate_nothing() {
    let limit = Limit::bucket(Rate::per_hour(1), 2);
    let limiter = ExactLimiter::<String>::builder(limit).max_keys(1).clock(Manual::new());
    let limiter = limiter.build().unwrap();
    assert!(limiter.allow("resident"));
    assert!(!limiter.allow("stranger"));
    let refused = allocations(|| {
        for _ in 0..10_000 {
            assert!(limiter.check("stranger").is_err());
            assert!(limiter.check_n("resident", 3).is_err());
        }
    });
    assert_eq!(refused, 0);
}

/// A thread's first loss, lease, spent token and refusal of a hot key, and batches.
#[test]
fn hot_keys_and_batches_allocate_nothing() {
    let limit = Limit::bucket(Rate::per_hour(1), 100_000);
    let limiter = Limiter::builder(limit).clock(Manual::new()).build().unwrap();
    let single = SingleLimiter::builder(limit).clock(Manual::new()).build().unwrap();
    let keys = [1_u64; 40];
    let made = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            allocations(|| {
                limiter.warm(&1_u64);
                single.warm();
                let mut answers = 0;
                for _ in 0..3_000 {
                    limiter.check_many(&keys, |answer| answers += usize::from(answer.is_ok()));
                    for _ in &keys {
                        answers += usize::from(single.allow());
                    }
                }
                black_box(answers);
                assert!(!limiter.allow(&1_u64) && !single.allow());
                black_box(limiter.peek(&1_u64));
            })
        });
        first.join().unwrap()
    });
    assert_eq!(made, 0);
}

/// What is charged afterwards, given back and reserved, and several limits at once.
#[test]
fn orders_of_a_known_key_and_all_that_passes_allocate_nothing() {
    for limit in limits(1 << 15) {
        let limiter = Limiter::builder(limit).clock(Manual::new()).build().unwrap();
        let single = SingleLimiter::builder(limit).clock(Manual::new()).build().unwrap();
        assert!(limiter.allow("a") && limiter.allow("b") && single.allow());
        let has_turns = limiter.reserve("a", 1, secs(1)).is_ok_and(|place| limiter.cancel(place));
        let made = allocations(|| {
            for _ in 0..1_000 {
                let taken = (limiter.take("a", 2).unwrap(), single.take(2).unwrap());
                assert_eq!((limiter.refund(taken.0), single.refund(taken.1)), (2, 2));
                let charged = (limiter.charge("a", 3).unwrap(), single.charge(3).unwrap());
                assert_eq!((limiter.refund(charged.0), single.refund(charged.1)), (3, 3));
                if has_turns {
                    let places = (limiter.reserve("a", 1, secs(1)), single.reserve(1, secs(1)));
                    assert!(limiter.cancel(places.0.unwrap()) && single.cancel(places.1.unwrap()));
                }
                black_box((limiter.peek("a").remaining(), single.peek().remaining()));
                let pass = all([&limiter.against("a"), &single.against(), &limiter.against_n("b", 2)]);
                black_box(pass.unwrap().remaining());
                assert_eq!((limiter.refund_key("a", 1), single.refund_tokens(1)), (1, 1));
                assert!(limiter.reset("b"));
            }
        });
        assert_eq!(made, 0, "{limit:?}");
    }
}

/// Eight rules at once, the text of their keys hashed as it stands: passed, refused, in shadow, exempt, and looked at; with
/// events noted and without.
#[cfg(feature = "policy")]
#[test]
fn a_policy_of_eight_rules_allocates_nothing() {
    use tidegate::policy::*;
    let rule = |number: usize, limit: Limit| Rule {
        name: format!("rule-{number}"),
        matcher: Matcher {
            apis: vec![
                [Pattern::Exact("profile".to_owned()), Pattern::Glob("*fi*".to_owned())][number % 2].clone(),
            ],
            attributes: vec![("plan".to_owned(), vec![Pattern::Prefix("go".to_owned())])],
        },
        key: vec![
            KeyPart::User,
            KeyPart::Title,
            KeyPart::ClientIp { v4_bits: 24, v6_bits: 64 },
            KeyPart::Entity,
        ],
        limits: vec![limit],
        exempt: Exempt {
            titles: vec![if number == 7 { "chess" } else { "legacy" }.to_owned()],
            ..Exempt::default()
        },
        overrides: Vec::new(),
        shadow: number == 6,
        cost: Cost::Attribute("tokens".to_owned()),
        on_refusal: OnRefusal::Count,
        retry: None,
        warn_percent: 80,
        max_keys: 1_000,
        on_full: tidegate::OnFull::EvictLeast,
    };
    let attributes = [("plan", "gold"), ("tokens", "2")];
    let request = Request::new("profile").user("ada").title("chess").attributes(&attributes);
    let request = request.client_ip("192.0.2.1".parse().unwrap());
    for (counting, told) in [Counting::EveryRule, Counting::AllOrNothing]
        .into_iter()
        .flat_map(|counting| [(counting, false), (counting, true)])
    {
        for calls in [1 << 13, 1 << 5] {
            let rules =
                (0..8).zip(limits(calls).into_iter().cycle()).map(|(number, limit)| rule(number, limit));
            let rules = Rules { counting, rules: rules.collect(), ..Rules::default() };
            let builder = Policy::builder(rules).clock(Manual::new());
            let builder = if told { builder.events(EventSettings::new()) } else { builder };
            let policy = builder.build().unwrap();
            // The first pin of a thread makes its place among all threads; the first refusal of a limit, its counts of them.
            assert!(policy.check(&request).is_allowed());
            if calls < 5_000 {
                while policy.check(&request).refusing().count() < 6 {}
            }
            let made = allocations(|| {
                let mut allowed = 0;
                for _ in 0..2_000 {
                    let verdict = black_box(policy.check(&request));
                    allowed += u64::from(verdict.is_allowed());
                    black_box((
                        verdict.retry_after(),
                        verdict.nearest().is_some(),
                        verdict.rules().any(|rule| rule.warns()),
                    ));
                    assert_eq!(verdict.rules().count(), 8);
                    black_box(policy.peek(&request).is_allowed());
                }
                assert_eq!(allowed == 2_000, calls > 5_000);
            });
            assert_eq!(made, 0, "{counting:?}, {calls}, {told}");
        }
    }
}

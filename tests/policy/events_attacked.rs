//! Events where somebody tries to hide in them: what takes the room of others, what is told of shadow rules, functions of the
//! host's that call back or panic.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::{Cost, Event, EventKind, EventSettings, KeyPart, Policy, Request, Rule};
use tidegate::{Alignment, Limit, Manual, Rate, Window, WindowName};

use super::events::{by_user, drained, told};
use super::{rule, rule_for, rules};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn of_key<'a>(events: &'a [Event], key: &'a str) -> impl Iterator<Item = &'a Event> {
    events.iter().filter(move |event| event.key.as_deref() == Some(key))
}

/// Keys that stay above their threshold, and were told of, take the places of those who are refused.
#[test]
fn keys_that_are_warned_already_starve_no_refusal() {
    let (policy, clock) = told(rules(vec![
        rule_for("busy", vec![KeyPart::User], &[Limit::window(Window::new(1_000_000, DAY))]),
        rule_for("partner", vec![KeyPart::User], &[Limit::window(Window::new(1, MINUTE))]),
    ]));
    let users: Vec<_> = (0..60).map(|number| format!("user-{number}")).collect();
    for user in &users {
        _ = policy.charge(&Request::new("busy").user(user), 900_000);
    }
    let mut kinds = Vec::new();
    let mut refusals = 0;
    for _ in 0..400 {
        clock.advance(Duration::from_millis(250));
        for user in &users {
            assert!(policy.check(&Request::new("busy").user(user)).is_allowed());
        }
        let ada = Request::new("partner").user("ada");
        refusals += u64::from(!policy.check(&ada).is_allowed());
        kinds.extend(of_key(&drained(&policy), "ada").map(|event| event.kind));
    }
    let dropped = policy.counts().unwrap().events_dropped;
    assert!(
        kinds.contains(&EventKind::Refused),
        "{refusals} refusals in 100 s: {kinds:?}; dropped {dropped}"
    );
}

/// A hundred keys that are refused all the time take all places of one that is refused for the first time.
#[test]
fn keys_that_are_refused_already_starve_nobody() {
    let (policy, clock) = told(by_user(&[Limit::window(Window::new(1, MINUTE))]));
    let users: Vec<_> = (0..100).map(|number| format!("user-{number}")).collect();
    let (mut kinds, mut refusals) = (Vec::new(), 0);
    for tick in 0..400 {
        clock.advance(Duration::from_millis(250));
        for user in &users {
            _ = policy.check(&Request::new("x").user(user));
        }
        if tick > 20 {
            for _ in 0..20 {
                refusals += u64::from(!policy.check(&Request::new("x").user("ada")).is_allowed());
            }
        }
        kinds.extend(of_key(&drained(&policy), "ada").map(|event| event.kind));
    }
    assert!(kinds.contains(&EventKind::Refused), "{refusals} refusals in 95 s: {kinds:?}");
}

/// 4 096 keys under a limit of a day keep all other rules from being told of for a day.
#[test]
fn a_long_period_blinds_no_other_rule() {
    let (policy, clock) = told(rules(vec![
        Rule {
            max_keys: 10_000,
            ..rule_for(
                "day",
                vec![KeyPart::User],
                &[Limit::window(Window::new(1, DAY)).align(Alignment::FirstRequest)],
            )
        },
        rule_for("partner", vec![KeyPart::User], &[Limit::window(Window::new(1, MINUTE))]),
    ]));
    for number in 0..4_200 {
        let user = format!("user-{number}");
        (0..2).for_each(|_| drop(policy.check(&Request::new("day").user(&user))));
        if number % 20 == 0 {
            clock.advance(Duration::from_millis(250));
            drained(&policy);
        }
    }
    let mut told_of = 0;
    for _ in 0..10 {
        clock.advance(DAY / 12);
        let ada = Request::new("partner").user("ada");
        (0..5).for_each(|_| drop(policy.check(&ada)));
        told_of += of_key(&drained(&policy), "ada").count();
    }
    assert!(told_of > 0, "a day of refusals, none told");
}

/// What a shadow rule would have refused is told as refused when the rule has gone.
#[test]
fn a_shadow_rule_that_goes_refused_nobody() {
    let shadow = || Rule {
        shadow: true,
        ..rule("watch", vec![KeyPart::User], &[Limit::window(Window::new(1, MINUTE))])
    };
    let other = || rule("other", vec![KeyPart::User], &[Limit::window(Window::new(100, MINUTE))]);
    let (policy, _) = told(rules(vec![shadow(), other()]));
    (0..5).for_each(|_| assert!(policy.check(&Request::new("x").user("ada")).is_allowed()));
    assert!(drained(&policy).iter().all(|event| event.is_shadow));
    (0..5).for_each(|_| assert!(policy.check(&Request::new("x").user("ada")).is_allowed()));
    policy.replace(rules(vec![other()])).unwrap();
    let events = drained(&policy);
    let offender = policy.offenders(1).remove(0);
    assert!(offender.is_shadow && events.iter().all(|event| event.is_shadow), "{offender:?} {events:?}");
}

/// And a rule that is put in force tells what it only watched as refusals.
#[test]
fn what_was_watched_is_no_refusal_when_the_rule_is_in_force() {
    let rule = |shadow| {
        let limit = Limit::window(Window::new(1, MINUTE));
        rules(vec![Rule { shadow, ..rule("user", vec![KeyPart::User], &[limit]) }])
    };
    let (policy, _) = told(rule(true));
    (0..5).for_each(|_| assert!(policy.check(&Request::new("x").user("ada")).is_allowed()));
    policy.replace(rule(false)).unwrap();
    assert!(drained(&policy).iter().all(|event| event.is_shadow), "nobody was refused");
}

/// "the same for each event of a key in one rule".
#[test]
fn a_key_has_one_fingerprint_in_a_rule() {
    let (policy, _) =
        told(by_user(&[Limit::window(Window::new(1, MINUTE)), Limit::window(Window::new(1, 2 * MINUTE))]));
    (0..2).for_each(|_| drop(policy.check(&Request::new("x").user("ada"))));
    let prints: BTreeSet<u64> = drained(&policy).iter().map(|event| event.fingerprint).collect();
    assert_eq!(prints.len(), 1, "{prints:?}");
}

/// In a flood a key is refused, and refused no time at all; and recovers while it is refused each second.
#[test]
fn a_refused_key_was_refused_once_at_least() {
    let never = Rule {
        cost: Cost::Fixed(3),
        ..rule("flood", vec![KeyPart::User], &[Limit::bucket(Rate::per_second(1), 2)])
    };
    let (policy, clock) = told(rules(vec![never]));
    let mut nothing = 0;
    for round in 0..40 {
        for _ in 0..20 {
            assert!(!policy.check(&Request::new("x").user("ada")).is_allowed());
        }
        for number in 0..60_000 {
            _ = policy.check(&Request::new("x").user(&format!("{round}-{number}")));
        }
        clock.advance(Duration::from_millis(250));
        for event in drained(&policy) {
            nothing += u64::from(event.kind == EventKind::Refused && event.refused == 0);
        }
    }
    assert_eq!(nothing, 0);
}

/// Callbacks may call anything.
#[test]
fn callbacks_call_back() {
    let clock = Manual::at_unix(Duration::from_secs(1_000_000));
    let cell: Arc<std::sync::OnceLock<std::sync::Weak<Policy<Manual>>>> = Arc::default();
    let inside = Arc::clone(&cell);
    let settings = EventSettings::new().redact(move |_, key| {
        if let Some(policy) = inside.get().and_then(std::sync::Weak::upgrade) {
            _ = policy.check(&Request::new("x").user("bob"));
            _ = policy.counts();
            _ = policy.offenders(0);
            policy.replace(by_user(&[Limit::window(Window::new(1, MINUTE))])).unwrap();
        }
        key.to_owned()
    });
    let policy = Policy::builder(by_user(&[Limit::window(Window::new(1, MINUTE))]))
        .clock(clock)
        .events(settings)
        .build()
        .unwrap();
    let policy = Arc::new(policy);
    cell.set(Arc::downgrade(&policy)).unwrap();
    (0..2).for_each(|_| drop(policy.check(&Request::new("x").user("ada"))));
    policy.drain_events(|_| {
        policy.drain_events(|_| ());
        _ = policy.check(&Request::new("x").user("cyd"));
    });
}

/// A function that panics for one key loses what happened to all others, uncounted.
#[test]
fn a_redaction_that_panics_loses_no_other_event() {
    let clock = Manual::at_unix(Duration::from_secs(1_000_000));
    let settings = EventSettings::new().redact(|_, key| {
        assert!(key != "bad");
        key.to_owned()
    });
    let policy = Policy::builder(by_user(&[Limit::window(Window::new(1, MINUTE))]))
        .clock(clock)
        .events(settings)
        .build()
        .unwrap();
    for user in ["ada", "bad", "cyd"] {
        (0..2).for_each(|_| drop(policy.check(&Request::new("x").user(user))));
    }
    let mut told = 0;
    let mut left_out = 0;
    policy.drain_events(|event| {
        told += 1;
        left_out += u64::from(event.key.is_none());
    });
    assert_eq!((told, left_out), (6, 2));
    // A listener that panics loses what it has not been given, and that is counted.
    (0..9)
        .for_each(|user| (0..2).for_each(|_| drop(policy.check(&Request::new("x").user(&user.to_string())))));
    let mut given = 0;
    let listener = std::panic::AssertUnwindSafe(|| {
        policy.drain_events(|_| {
            given += 1;
            assert!(given < 5, "it has enough");
        });
    });
    assert!(std::panic::catch_unwind(listener).is_err());
    assert_eq!(policy.counts().unwrap().events_dropped, 18 - 5);
}

/// A part of a key that is the host's own function runs while a tray is held; one that asks who is refused most hangs.
#[test]
fn a_custom_part_may_call_the_policy() {
    let clock = Manual::at_unix(Duration::from_secs(1_000_000));
    let cell: Arc<std::sync::OnceLock<std::sync::Weak<Policy<Manual>>>> = Arc::default();
    let inside = Arc::clone(&cell);
    let part = KeyPart::Custom(
        "tenant",
        Arc::new(move |_: &Request<'_>, hasher: &mut dyn std::hash::Hasher| {
            hasher.write_u8(1);
            if let Some(policy) = inside.get().and_then(std::sync::Weak::upgrade) {
                _ = policy.offenders(1);
            }
        }),
    );
    let limits = [Limit::window(Window::new(2, MINUTE))];
    let policy = Policy::builder(rules(vec![rule("own", vec![part], &limits)]))
        .clock(clock)
        .events(EventSettings::new());
    let policy = Arc::new(policy.build().unwrap());
    cell.set(Arc::downgrade(&policy)).unwrap();
    assert!(policy.check(&Request::new("x")).is_allowed(), "it may, where nothing is noted");
    let (told, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        (0..2).for_each(|_| drop(policy.check(&Request::new("x"))));
        told.send(())
    });
    assert!(is_done.recv_timeout(Duration::from_secs(5)).is_ok(), "a check that never ends");
}

/// Threads have trays of their own; what is told does not hang on whose is emptied first.
#[test]
fn what_happened_first_is_told_first_whoever_saw_it() {
    // Each way round: threads are numbered as they come.
    for swapped in [false, true] {
        let (policy, clock) = told(by_user(&[Limit::bucket(Rate::per_second(2), 5)]));
        let policy = Arc::new(policy);
        let ask = |times: usize| {
            let policy = Arc::clone(&policy);
            move || (0..times).for_each(|_| drop(policy.check(&Request::new("x").user("ada"))))
        };
        let (starts, started) = std::sync::mpsc::channel::<()>();
        // The later one has its number, and so its tray, before the earlier one if swapped.
        let later = |asks: Box<dyn FnOnce() + Send>, first: Box<dyn FnOnce() + Send>| {
            std::thread::spawn(move || {
                first();
                started.recv().unwrap();
                asks();
            })
        };
        let touch = ask(0);
        let number: Box<dyn FnOnce() + Send> = if swapped {
            let other = Policy::builder(by_user(&[Limit::window(Window::new(1, MINUTE))])).build().unwrap();
            Box::new(move || drop(other.check(&Request::new("x"))))
        } else {
            Box::new(touch)
        };
        let late = later(Box::new(ask(3)), number);
        std::thread::sleep(Duration::from_millis(20));
        std::thread::spawn(ask(6)).join().unwrap();
        clock.advance(Duration::from_millis(100));
        starts.send(()).unwrap();
        late.join().unwrap();
        let events = drained(&policy);
        let kinds: Vec<_> = events.iter().map(|event| (event.kind, event.refused)).collect();
        assert_eq!(kinds, [(EventKind::Warned, 0), (EventKind::Refused, 4)], "{swapped}");
        assert_eq!(events[1].retry_after, Some(Duration::from_millis(500)), "{swapped}");
        assert_eq!(events[0].at, events[1].at, "{swapped}");
    }
}

/// Bug class: counts that go by their place are told under the name of what stands there next.
#[test]
fn what_a_limit_refused_is_not_told_of_one_of_another_kind_in_its_place() {
    let pair = Limit::burst_sustain(Window::new(1, MINUTE / 4), Window::new(4, 5 * MINUTE));
    let (policy, _) = told(by_user(&[pair]));
    let ask = |times| (0..times).for_each(|_| drop(policy.check(&Request::new("x").user("ada"))));
    let refusals = || policy.counts().unwrap().rules[0].limits[0].refusals.clone();
    ask(7);
    assert_eq!(refusals(), [(WindowName::Burst, 2), (WindowName::Sustain, 4)]);
    policy.replace(by_user(&[Limit::bucket(Rate::per_hour(1), 1)])).unwrap();
    assert_eq!(refusals(), [(WindowName::Bucket, 0)]);
    ask(3);
    assert_eq!(refusals(), [(WindowName::Bucket, 2)]);
    policy.replace(by_user(&[pair])).unwrap();
    assert_eq!(refusals(), [(WindowName::Burst, 2), (WindowName::Sustain, 4)]);
}

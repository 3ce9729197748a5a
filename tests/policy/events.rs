//! What a policy tells its host: events, who is refused most, and counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::policy::{
    Cost, Counting, Event, EventKind, EventSettings, KeyPart, Policy, Request, Rule, Rules,
};
use tidegate::{Alignment, Limit, Manual, Rate, Reason, Window, WindowName};

use super::{common, rule, rule_for, rules};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn told(rules: Rules) -> (Policy<Manual>, Manual) {
    told_as(rules, EventSettings::new())
}

fn told_as(rules: Rules, settings: EventSettings) -> (Policy<Manual>, Manual) {
    let clock = Manual::at_unix(Duration::from_secs(1_000_000));
    let policy = Policy::builder(rules).seed(common::SEED).clock(clock.clone()).events(settings).build();
    (policy.unwrap_or_else(|error| panic!("{error}")), clock)
}

pub(crate) fn drained(policy: &Policy<Manual>) -> Vec<Event> {
    let mut events = Vec::new();
    policy.drain_events(|event| events.push(event));
    events
}

/// What of events is easily read: kind, key, used and refused.
fn short(events: &[Event]) -> Vec<(EventKind, String, u64, u64)> {
    let short = |event: &Event| {
        (event.kind, event.key.as_deref().unwrap_or("-").to_owned(), event.used, event.refused)
    };
    events.iter().map(short).collect()
}

pub(crate) fn by_user(limits: &[Limit]) -> Rules {
    rules(vec![rule("user", vec![KeyPart::User], limits)])
}

const ADA: Request<'_> = Request::new("x").user("ada");

#[test]
fn a_window_warns_refuses_goes_on_and_recovers() {
    // Ten a minute from the first request on, refused ones counted; a warning at 8.
    let (policy, clock) =
        told(by_user(&[Limit::window(Window::new(10, MINUTE)).align(Alignment::FirstRequest)]));
    let ask = |times| (0..times).for_each(|_| drop(policy.check(&ADA)));
    ask(7);
    assert_eq!(drained(&policy), []);
    ask(2);
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::Warned, "ada".to_owned(), 8, 0)]);
    let warned = &events[0];
    assert_eq!((&*warned.policy, &*warned.rule, warned.limit_number), ("test", "user", 0));
    assert_eq!((warned.window, warned.limit, warned.remaining), (WindowName::Window, 10, 2));
    assert_eq!((warned.period, warned.reason), (MINUTE, None));
    assert_eq!(warned.at, Duration::from_secs(1_000_000));
    assert!((warned.refill_per_s() - 10.0 / 60.0).abs() < 1e-12);

    clock.advance(20 * SECOND);
    ask(4);
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::Refused, "ada".to_owned(), 11, 3)]);
    assert_eq!((events[0].reason, events[0].retry_after), (Some(Reason::Exhausted), Some(40 * SECOND)));
    ask(2);
    assert_eq!(drained(&policy), [], "once a period");

    clock.advance(40 * SECOND);
    // The window ended at this nanosecond, and so did the period of events.
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::StillRefusing, "ada".to_owned(), 0, 2)]);
    clock.advance(MINUTE - Duration::from_nanos(1));
    assert_eq!(drained(&policy), []);
    clock.advance(Duration::from_nanos(1));
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::Recovered, "ada".to_owned(), 0, 5)]);
    assert_eq!(events[0].at, Duration::from_secs(1_000_120));
    assert_eq!(drained(&policy), []);

    // A new period has all of its own events.
    ask(11);
    let kinds: Vec<_> = drained(&policy).iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Warned, EventKind::Refused]);
}

#[test]
fn who_is_refused_once_is_refused_and_recovers() {
    let (policy, clock) = told(by_user(&[Limit::bucket(Rate::per_second(1), 5)]));
    (0..6).for_each(|_| drop(policy.check(&ADA)));
    let events = drained(&policy);
    assert_eq!(
        short(&events),
        [(EventKind::Warned, "ada".to_owned(), 4, 0), (EventKind::Refused, "ada".to_owned(), 5, 1)]
    );
    assert_eq!((events[1].window, events[1].limit), (WindowName::Bucket, 5));
    assert_eq!((events[1].retry_after, events[1].period), (Some(SECOND), 5 * SECOND));
    assert!((events[1].refill_per_s() - 1.0).abs() < 1e-12);
    // In the time in which an empty bucket fills.
    clock.advance(5 * SECOND);
    assert_eq!(short(&drained(&policy)), [(EventKind::Recovered, "ada".to_owned(), 0, 1)]);
}

/// Bug class: what is noted last of a key stands for all that is told of it.
#[test]
fn a_refusal_says_why_though_requests_pass_after_it() {
    let (policy, clock) = told(by_user(&[Limit::bucket(Rate::per_second(1), 5)]));
    (0..5).for_each(|_| drop(policy.check(&ADA)));
    assert_eq!(short(&drained(&policy)), [(EventKind::Warned, "ada".to_owned(), 4, 0)]);
    assert!(!policy.check(&ADA).is_allowed());
    clock.advance(SECOND);
    assert!(policy.check(&ADA).is_allowed());
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::Refused, "ada".to_owned(), 5, 1)]);
    assert_eq!((events[0].reason, events[0].retry_after), (Some(Reason::Exhausted), Some(SECOND)));
}

/// Bug class: a host that ends in the middle of a period tells nobody of the refusals in it.
#[test]
fn the_last_events_tell_what_no_event_has_told() {
    let (policy, clock) =
        told(by_user(&[Limit::window(Window::new(1, MINUTE)).align(Alignment::FirstRequest)]));
    let ask = |times| (0..times).for_each(|_| drop(policy.check(&ADA)));
    let last = || {
        let mut events = Vec::new();
        policy.drain_last_events(|event| events.push(event));
        let kinds: Vec<_> = events.iter().map(|event| (event.kind, event.refused)).collect();
        kinds
    };
    assert_eq!(last(), []);
    ask(3);
    assert_eq!(last(), [(EventKind::Warned, 0), (EventKind::Refused, 2)]);
    assert_eq!(last(), [], "all is told");
    ask(5);
    clock.advance(20 * SECOND);
    assert_eq!(drained(&policy), []);
    assert_eq!(last(), [(EventKind::StillRefusing, 5)]);
    ask(1);
    // The period goes on, and ends when it would have ended.
    clock.advance(40 * SECOND - Duration::from_nanos(1));
    assert_eq!(drained(&policy), []);
    clock.advance(Duration::from_nanos(1));
    let refused: Vec<_> = drained(&policy).iter().map(|event| (event.kind, event.refused)).collect();
    assert_eq!(refused, [(EventKind::StillRefusing, 1)]);
    clock.advance(MINUTE);
    assert_eq!(last(), [(EventKind::Recovered, 8)]);
}

#[test]
fn a_limit_without_room_for_the_cost_says_so() {
    let dear = Rule {
        cost: Cost::Fixed(7),
        ..rule("dear", vec![KeyPart::User], &[Limit::bucket(Rate::per_second(1), 5)])
    };
    let (policy, _) = told(rules(vec![dear]));
    assert!(!policy.check(&ADA).is_allowed());
    let events = drained(&policy);
    assert_eq!(
        (events[0].kind, events[0].reason, events[0].retry_after),
        (EventKind::Refused, Some(Reason::TooLarge), None)
    );
}

#[test]
fn every_road_tells() {
    let limit = [Limit::window(Window::new(1, MINUTE))];
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let all = || Rules { counting, ..by_user(&limit) };
        let kinds =
            |policy: &Policy<Manual>| drained(policy).iter().map(|event| event.kind).collect::<Vec<_>>();
        let expected = [EventKind::Warned, EventKind::Refused];
        let (policy, _) = told(all());
        assert_eq!([(); 2].map(|()| policy.check(&ADA).is_allowed()), [true, false]);
        assert_eq!(kinds(&policy), expected, "check, {counting:?}");
        let (policy, _) = told(all());
        assert_eq!([(); 2].map(|()| policy.allow(&ADA)), [true, false]);
        assert_eq!(kinds(&policy), expected, "allow, {counting:?}");
        let (policy, _) = told(all());
        _ = (policy.charge(&ADA, 1), policy.peek(&ADA));
        assert_eq!(kinds(&policy), [EventKind::Warned], "charge, {counting:?}");
        assert_eq!(policy.counts().unwrap().checks, 0, "a charge is no check");
    }
}

#[test]
fn a_changed_limit_warns_at_its_own_share() {
    let (policy, _) = told(by_user(&[Limit::bucket(Rate::per_hour(1), 10)]));
    let changes = policy.replace(by_user(&[Limit::bucket(Rate::per_hour(1), 20)])).unwrap();
    assert_eq!(changes.changed, ["user"]);
    (0..15).for_each(|_| drop(policy.check(&ADA)));
    assert_eq!(drained(&policy), []);
    _ = policy.check(&ADA);
    assert_eq!(short(&drained(&policy)), [(EventKind::Warned, "ada".to_owned(), 16, 0)]);
}

#[test]
fn keys_are_told_as_the_settings_say() {
    let limit = [Limit::window(Window::new(1, MINUTE))];
    let ask = |settings| {
        let (policy, _) = told_as(by_user(&limit), settings);
        (0..2).for_each(|_| drop(policy.check(&ADA)));
        (0..2).for_each(|_| drop(policy.check(&Request::new("x").user("bob"))));
        let events = drained(&policy);
        let offender = policy.offenders(1).remove(0);
        assert_eq!(events.iter().filter(|event| event.fingerprint == events[0].fingerprint).count(), 2);
        assert!(events.iter().any(|event| event.fingerprint == offender.fingerprint));
        assert!(events.iter().all(|event| event.fingerprint < 1 << 48));
        (events[0].key.clone(), offender.key.is_some())
    };
    assert_eq!(ask(EventSettings::new()), (Some("ada".into()), true));
    assert_eq!(ask(EventSettings::new().without_keys()), (None, false));
    let redacted = EventSettings::new().redact(|rule, key| format!("{rule}:{}", key.len()));
    assert_eq!(ask(redacted), (Some("user:3".into()), true));
}

#[test]
fn without_settings_nothing_is_told() {
    let (policy, _) = super::policy(by_user(&[Limit::window(Window::new(1, MINUTE))]));
    (0..9).for_each(|_| drop(policy.check(&ADA)));
    assert_eq!(drained(&policy), []);
    assert!(policy.offenders(9).is_empty() && policy.counts().is_none());
}

#[test]
fn a_rule_that_goes_tells_that_it_does_not_refuse_any_more() {
    let limit = Limit::window(Window::new(1, MINUTE));
    let both =
        || rules(vec![rule("a", vec![KeyPart::User], &[limit]), rule("b", vec![KeyPart::User], &[limit])]);
    let (policy, clock) = told(both());
    (0..4).for_each(|_| drop(policy.check(&ADA)));
    assert_eq!(drained(&policy).len(), 4);
    policy.replace(rules(vec![rule("a", vec![KeyPart::User], &[limit])])).unwrap();
    let events = drained(&policy);
    assert_eq!(short(&events), [(EventKind::Recovered, "ada".to_owned(), 0, 3)]);
    assert_eq!((&*events[0].rule, events[0].limit, events[0].remaining), ("b", 1, 1));
    // What was counted is not lost when it comes back.
    policy.replace(both()).unwrap();
    let counts = policy.counts().unwrap();
    let refused = |number: usize| counts.rules[number].limits[0].refusals.clone();
    assert_eq!((refused(0), refused(1)), (vec![(WindowName::Window, 3)], vec![(WindowName::Window, 3)]));
    assert_eq!((counts.checks, &*counts.rules[1].name), (4, "b"));
    clock.advance(MINUTE);
    assert_eq!(short(&drained(&policy)), [(EventKind::Recovered, "ada".to_owned(), 0, 3)]);
}

#[test]
fn refusals_are_counted_by_the_window_that_is_waited_for() {
    let pair = Limit::burst_sustain(Window::new(2, 15 * SECOND), Window::new(4, 300 * SECOND));
    let (policy, clock) = told(by_user(&[Limit::bucket(Rate::per_second(9), 9), pair]));
    (0..3).for_each(|_| drop(policy.check(&ADA)));
    clock.advance(20 * SECOND);
    (0..2).for_each(|_| drop(policy.check(&ADA)));
    let counts = policy.counts().unwrap();
    let limits = &counts.rules[0].limits;
    assert_eq!(limits[0].refusals, [(WindowName::Bucket, 0)]);
    assert_eq!(limits[1].refusals, [(WindowName::Burst, 1), (WindowName::Sustain, 1)]);
    assert_eq!((counts.events_dropped, counts.refusals_unseen, limits[1].stats.claims), (0, 0, 1));
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    let (policy, _) = told(by_user(&[Limit::window(Window::new(1, MINUTE))]));
    let users: Vec<_> = (0..60).map(|number| format!("user-{number}")).collect();
    for user in &users {
        let request = Request::new("x").user(user);
        (0..2).for_each(|_| drop(policy.check(&request)));
    }
    // A tray notes 48 answers, and no warning any more when it has 24: 12 users are warned, and 36 refused.
    assert_eq!(drained(&policy).len(), 48);
    assert_eq!(policy.counts().unwrap().events_dropped, 72);
    // They come again, and are told of then.
    for user in &users[36..] {
        _ = policy.check(&Request::new("x").user(user));
    }
    assert_eq!(drained(&policy).iter().filter(|event| event.kind == EventKind::Refused).count(), 24);
}

#[test]
fn a_long_key_is_cut_short() {
    let (policy, _) = told(by_user(&[Limit::window(Window::new(1, MINUTE))]));
    let long = "é".repeat(80);
    (0..2).for_each(|_| drop(policy.check(&Request::new("x").user(&long))));
    let key = drained(&policy)[0].key.clone().unwrap();
    assert!(key.len() <= 96 && key.ends_with('…') && key.starts_with("éé"), "{key}");
}

#[test]
fn an_event_reads_well() {
    let (policy, _) = told(by_user(&[Limit::bucket(Rate::per_second(1), 5)]));
    (0..6).for_each(|_| drop(policy.check(&ADA)));
    let lines: Vec<_> = drained(&policy).iter().map(ToString::to_string).collect();
    assert_eq!(lines[0], "warned by user: ada, 4 of 5 used in 5s");
    assert_eq!(lines[1], "refused by user: ada, 5 of 5 used in 5s, 1 refused, retry after 1s");
}

#[test]
fn offenders_come_in_order_with_their_bound() {
    let api = |name| rule_for(name, vec![KeyPart::User], &[Limit::window(Window::new(1, MINUTE))]);
    let (policy, clock) = told(rules(vec![api("x"), api("y")]));
    for (user, api, times) in [("ada", "x", 5), ("bob", "x", 9), ("ada", "y", 3)] {
        (0..=times).for_each(|_| drop(policy.check(&Request::new(api).user(user))));
    }
    let listed = |policy: &Policy<Manual>, most| {
        let line = |offender: tidegate::policy::Offender| {
            let key = offender.key.as_deref().unwrap_or("-").to_owned();
            (offender.rule.to_string(), key, offender.refused_least, offender.refused_most)
        };
        policy.offenders(most).into_iter().map(line).collect::<Vec<_>>()
    };
    let line = |rule: &str, user: &str, least, most| (rule.to_owned(), user.to_owned(), least, most);
    assert_eq!(listed(&policy, 9), [line("x", "bob", 9, 9), line("x", "ada", 5, 5), line("y", "ada", 3, 3)]);
    assert_eq!(listed(&policy, 1).len(), 1);
    assert!(listed(&policy, 0).is_empty());
    // A minute later they weigh half.
    clock.advance(MINUTE);
    assert_eq!(listed(&policy, 9), [line("x", "bob", 4, 5), line("x", "ada", 2, 3), line("y", "ada", 1, 2)]);
    clock.advance(400 * MINUTE);
    assert!(listed(&policy, 9).is_empty());
}

/// Ten million keys by Zipf's law, all refused.
#[test]
fn the_heaviest_of_a_flood_are_found() {
    const KEYS: f64 = 10_000_000.0;
    let never = Rule {
        cost: Cost::Fixed(2),
        ..rule("flood", vec![KeyPart::User], &[Limit::window(Window::new(1, MINUTE))])
    };
    let (policy, _) = told(rules(vec![never]));
    let mut truth = BTreeMap::<u64, u64>::new();
    let mut state = 1_u64;
    for _ in 0..1_500_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The inverse of the law's integral: rank 1 has about a sixteenth of all.
        let rank = KEYS.powf((state >> 11) as f64 / (1_u64 << 53) as f64) as u64;
        assert!(!policy.check(&Request::new("x").user(&rank.to_string())).is_allowed());
        *truth.entry(rank).or_default() += 1;
    }
    let found = policy.offenders(20);
    let keys: Vec<u64> = found.iter().filter_map(|offender| offender.key.as_deref()?.parse().ok()).collect();
    let mut ranks: Vec<_> = truth.iter().map(|(&rank, &count)| (count, rank)).collect();
    ranks.sort_unstable_by(|one, other| other.cmp(one));
    for (count, rank) in &ranks[..10] {
        assert!(keys.contains(rank), "{rank} was refused {count} times, and is not among {keys:?}");
    }
    // Each is within its own two numbers, and those are close: the sets' bound is a fifth of what fell on one, and less is usual.
    for offender in &found {
        let Some(true_count) = offender.key.as_deref().and_then(|key| truth.get(&key.parse().ok()?)) else {
            continue;
        };
        assert!(
            (offender.refused_least..=offender.refused_most).contains(true_count),
            "{offender:?} {true_count}"
        );
        assert!(offender.refused_most - offender.refused_least <= 1_500_000 / 256, "{offender:?}");
    }
}

#[test]
fn threads_that_refuse_at_once_are_all_counted() {
    const TIMES: u64 = 20_000;
    let limits = [Limit::window(Window::new(1, MINUTE))];
    let policy = Policy::builder(by_user(&limits)).events(EventSettings::new()).build().unwrap();
    let policy = Arc::new(policy);
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let policy = Arc::clone(&policy);
            std::thread::spawn(move || {
                let user = format!("user-{}", number % 3);
                let refused =
                    (0..TIMES).filter(|_| !policy.check(&Request::new("x").user(&user)).is_allowed());
                refused.count() as u64
            })
        })
        .collect();
    let mut events = Vec::new();
    while threads.iter().any(|thread| !thread.is_finished()) {
        policy.drain_events(|event| events.push(event));
    }
    let refused: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    policy.drain_events(|event| events.push(event));
    let counts = policy.counts().unwrap();
    assert_eq!(counts.checks, 12 * TIMES);
    assert_eq!(counts.rules[0].limits[0].refusals, [(WindowName::Window, refused)]);
    let seen: u64 = policy.offenders(9).iter().map(|offender| offender.refused_least).sum();
    assert_eq!(seen + counts.refusals_unseen, refused);
    let firsts = events.iter().filter(|event| event.kind == EventKind::Refused).count();
    assert_eq!(firsts, 3, "once for each key: {events:?}");
}

/// A step of a game: a pause in milliseconds, who asks, how often, and whether the host then listens.
type Step = (u64, u8, u8, bool);

proptest! {
    /// Whatever happens, each key's events come in a legal order, and their refusals add up.
    #[test]
    fn events_add_up(
        steps in prop::collection::vec((0_u64..40_000, 0_u8..4, 0_u8..12, any::<bool>()), 1..80),
        limit in prop_oneof![
            Just(Limit::window(Window::new(5, MINUTE))),
            Just(Limit::bucket(Rate::per_second(1), 5)),
            Just(Limit::sliding_window(Window::new(5, MINUTE))),
            Just(Limit::burst_sustain(Window::new(3, 15 * SECOND), Window::new(8, MINUTE))),
        ],
    ) {
        game(&steps, limit)?;
    }
}

fn game(steps: &[Step], limit: Limit) -> Result<(), TestCaseError> {
    const USERS: [&str; 4] = ["ada", "bob", "cyd", "dee"];
    let (policy, clock) = told(by_user(&[limit]));
    let mut refused = BTreeMap::<&str, u64>::new();
    let mut events = Vec::new();
    for &(pause_ms, user, times, listens) in steps {
        clock.advance(Duration::from_millis(pause_ms));
        let user = USERS[usize::from(user)];
        for _ in 0..times {
            let verdict = policy.check(&Request::new("x").user(user));
            *refused.entry(user).or_default() += u64::from(!verdict.is_allowed());
        }
        if listens {
            policy.drain_events(|event| events.push(event));
        }
    }
    // So long that every key recovers: a summary at most, and the end.
    for _ in 0..2 {
        clock.advance(20 * MINUTE);
        policy.drain_events(|event| events.push(event));
    }
    for user in USERS {
        let own: Vec<&Event> = events.iter().filter(|event| event.key.as_deref() == Some(user)).collect();
        let (mut is_refusing, mut since_refused, mut in_all) = (false, 0, 0);
        for event in own {
            match event.kind {
                EventKind::Warned => prop_assert!(!is_refusing, "{events:?}"),
                EventKind::Refused => {
                    prop_assert!(!is_refusing && event.refused > 0, "{events:?}");
                    (is_refusing, since_refused) = (true, event.refused);
                }
                EventKind::StillRefusing => {
                    prop_assert!(is_refusing && event.refused > 0, "{events:?}");
                    since_refused += event.refused;
                }
                EventKind::Recovered => {
                    prop_assert!(is_refusing && event.refused == since_refused, "{events:?}");
                    is_refusing = false;
                    in_all += since_refused;
                }
                _ => {}
            }
        }
        prop_assert!(!is_refusing, "{events:?}");
        prop_assert_eq!(in_all, refused.get(user).copied().unwrap_or(0), "{:?}", events);
    }
    Ok(())
}

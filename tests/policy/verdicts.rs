//! What a verdict says of rules, limits, waits and warnings.

use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::{
    Cost, Counting, Exempt, KeyPart, Matching, OnRefusal, Pattern, Policy, Request, Rule, Rules, Verdict,
};
use tidegate::{Alignment, Limit, Manual, OnFull, Rate, Reason, Window};

use super::{allowed, policy, refusing, rule, rule_for, rules};
use crate::common::secs;

fn window(limit: u64, period: u64) -> Limit {
    Limit::window(Window::new(limit, secs(period))).align(Alignment::Clock)
}

const ADA: Request<'_> = Request::new("x").user("ada").title("chess");

#[test]
fn verdicts_and_policies_are_shared() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Verdict>();
    is_shared::<Policy>();
    is_shared::<Policy<Manual>>();
}

#[test]
fn the_longest_wait_binds_and_the_smallest_share_is_nearest() {
    let user = vec![KeyPart::User];
    let all = vec![
        rule("day", user.clone(), &[window(4, 86_400), window(5, 60)]),
        rule("minute", user.clone(), &[window(2, 60)]),
        rule("wide", user, &[window(1_000, 10)]),
    ];
    let (policy, clock) = policy(rules(all));
    clock.set(secs(1));
    let verdict = policy.check(&ADA);
    assert!(verdict.is_allowed() && verdict.binding().is_none() && refusing(&verdict).is_empty());
    assert_eq!((verdict.retry_after(), verdict.retry_after_secs()), (Some(Duration::ZERO), 0));
    // 3 of 4, 4 of 5, 1 of 2, 999 of 1000.
    let nearest = verdict.nearest().unwrap();
    assert_eq!((nearest.rule().name(), nearest.number(), nearest.remaining()), ("minute", 0, 1));
    assert_eq!(nearest.limit(), window(2, 60));
    assert_eq!(allowed(&policy, &ADA, 2), 1);
    let verdict = policy.check(&ADA);
    // The last of the day's four was this one.
    assert_eq!((refusing(&verdict), verdict.retry_after()), (vec!["minute"], Some(secs(86_399))));
    assert_eq!(verdict.binding().unwrap().denied().unwrap().retry_after(), Some(secs(59)));
    let verdict = policy.check(&ADA);
    assert_eq!((refusing(&verdict), verdict.retry_after_secs()), (vec!["day", "minute"], 86_399));
    assert_eq!((verdict.binding().unwrap().rule().name(), verdict.binding().unwrap().number()), ("day", 0));
    assert_eq!(verdict.policy(), "test");
}

#[test]
fn a_wait_that_never_ends_is_the_longest() {
    let user = vec![KeyPart::User];
    let small = Rule { cost: Cost::OfRequest, ..rule("small", user.clone(), &[window(5, 60)]) };
    let (policy, _) = policy(rules(vec![rule("one", user, &[window(1, 60)]), small]));
    assert!(policy.check(&ADA).is_allowed());
    let verdict = policy.check(&ADA.cost(6));
    assert_eq!((refusing(&verdict), verdict.retry_after()), (vec!["one", "small"], None));
    let binding = verdict.binding().unwrap();
    assert_eq!((binding.rule().name(), binding.denied().unwrap().reason()), ("small", Reason::TooLarge));
    assert_eq!(verdict.retry_after_secs(), u64::MAX);
}

#[test]
fn a_rule_warns_from_its_share_on() {
    let tiers = [window(10, 60), window(100, 600)];
    let eighty = rule("eighty", vec![KeyPart::User], &tiers);
    let all = Rule { warn_percent: 100, name: "all".to_owned(), ..eighty.clone() };
    let one = Rule { warn_percent: 1, name: "one".to_owned(), ..eighty.clone() };
    let (policy, _) = policy(rules(vec![eighty, all, one]));
    for used in 1..=12_u64 {
        let verdict = policy.check(&ADA);
        let warns: Vec<bool> = verdict.rules().map(|rule| rule.warns()).collect();
        assert_eq!(warns, [used >= 8, used >= 10, true], "{used}");
        let percents: Vec<u64> =
            verdict.rules().next().unwrap().limits().map(|limit| limit.used_percent()).collect();
        assert_eq!(percents, [used * 10, used]);
    }
}

#[test]
fn a_shadow_rule_reports_and_never_refuses() {
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let shadow = Rule { shadow: true, ..rule("shadow", vec![KeyPart::User], &[window(2, 60)]) };
        let real = rule("real", vec![KeyPart::User], &[window(4, 60)]);
        let (policy, _) = policy(Rules { counting, ..rules(vec![shadow, real]) });
        let mut would = Vec::new();
        for number in 1..=6 {
            let verdict = policy.check(&ADA);
            assert_eq!(verdict.is_allowed(), number <= 4, "{counting:?}, {number}");
            assert!(refusing(&verdict).iter().all(|name| *name == "real"));
            let shadow = verdict.rules().next().unwrap();
            assert!(shadow.is_shadow() && !verdict.rules().nth(1).unwrap().is_shadow());
            would.push(shadow.refuses());
            assert!(verdict.nearest().unwrap().rule().name() == "real");
        }
        assert_eq!(would, [false, false, true, true, true, true], "{counting:?}");
    }
}

#[test]
fn refused_requests_count_as_the_rule_says() {
    for (on_refusal, observed) in [(OnRefusal::Count, 5), (OnRefusal::Ignore, 2)] {
        let (policy, _) = policy(rules(vec![Rule { on_refusal, ..rule("x", vec![], &[window(2, 60)]) }]));
        assert_eq!(allowed(&policy, &ADA, 5), 2);
        assert_eq!(policy.peek(&ADA).nearest().unwrap().windows()[0].observed, observed);
    }
}

#[test]
fn every_rule_counts_what_another_refuses() {
    let all = vec![rule("one", vec![], &[window(1, 60)]), rule("many", vec![], &[window(100, 60)])];
    let (policy, _) = policy(rules(all));
    assert_eq!(allowed(&policy, &ADA, 10), 1);
    let verdict = policy.peek(&ADA);
    assert_eq!(verdict.rules().nth(1).unwrap().limits().next().unwrap().remaining(), 90);
}

#[test]
fn a_cost_is_at_least_one() {
    let cost = |cost, request: &Request<'_>| {
        let (policy, _) = policy(rules(vec![Rule { cost, ..rule("x", vec![], &[window(100, 60)]) }]));
        100 - policy.check(request).nearest().unwrap().remaining()
    };
    let tokens = |value| [("tokens", value)];
    let by_tokens = || Cost::Attribute("tokens".to_owned());
    assert_eq!(cost(Cost::Fixed(7), &ADA.cost(3)), 7);
    assert_eq!(cost(Cost::Fixed(0), &ADA), 1);
    assert_eq!((cost(Cost::OfRequest, &ADA.cost(3)), cost(Cost::OfRequest, &ADA.cost(0))), (3, 1));
    assert_eq!(cost(by_tokens(), &ADA.attributes(&tokens("12"))), 12);
    assert_eq!(cost(by_tokens(), &ADA.attributes(&tokens("0"))), 1);
    assert_eq!(cost(by_tokens(), &ADA), 1);
}

#[test]
fn the_first_rule_in_order_is_asked_alone() {
    let exempt = Exempt { titles: vec!["legacy".to_owned()], ..Exempt::default() };
    let all = || {
        let first = Rule { exempt: exempt.clone(), ..rule_for("x", vec![], &[window(3, 60)]) };
        vec![first, rule("rest", vec![], &[window(1, 60)])]
    };
    let first = Rules { matching: Matching::First, ..rules(all()) };
    let (policy_first, _) = policy(first);
    assert_eq!(allowed(&policy_first, &ADA, 5), 3);
    assert_eq!(allowed(&policy_first, &Request::new("y"), 5), 1);
    // Left alone by the first, so asked by no other.
    assert_eq!(allowed(&policy_first, &ADA.title("legacy"), 5), 5);
    let (policy_all, _) = policy(rules(all()));
    assert_eq!(allowed(&policy_all, &ADA.title("legacy"), 5), 1);
}

/// All requests that lack a part of the key share one count, which is no other's.
#[test]
fn who_lacks_a_part_shares_one_count() {
    let (policy, _) = policy(rules(vec![rule("x", vec![KeyPart::User, KeyPart::Title], &[window(2, 60)])]));
    let anonymous = Request::new("x").title("chess");
    assert_eq!(allowed(&policy, &anonymous, 3) + allowed(&policy, &Request::new("y").title("chess"), 3), 2);
    assert_eq!(allowed(&policy, &anonymous.user(""), 3), 2);
    assert_eq!(policy.key_of("x", &anonymous).unwrap(), "-/chess");
    assert_eq!(policy.key_of("y", &anonymous), None);
}

#[test]
fn a_custom_part_is_what_its_function_writes() {
    let part = KeyPart::Custom(
        "device",
        Arc::new(|request, state| state.write(request.attribute("device").unwrap_or("").as_bytes())),
    );
    let (policy, _) = policy(rules(vec![rule("x", vec![part], &[window(1, 60)])]));
    let (one, two) = ([("device", "1")], [("device", "2")]);
    assert_eq!(allowed(&policy, &ADA.attributes(&one), 3), 1);
    assert_eq!(allowed(&policy, &ADA.attributes(&two), 3), 1);
}

#[test]
fn a_look_counts_nothing_and_a_charge_counts_all() {
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let bucket = Limit::bucket(Rate::per_hour(1), 10);
        let (policy, _) =
            policy(Rules { counting, ..rules(vec![rule("x", vec![], &[bucket, window(20, 60)])]) });
        for _ in 0..50 {
            assert!(policy.peek(&ADA).is_allowed());
        }
        let verdict = policy.charge(&ADA, 15);
        assert!(verdict.is_allowed());
        let remaining: Vec<u64> =
            verdict.rules().next().unwrap().limits().map(|limit| limit.remaining()).collect();
        assert_eq!(remaining, [0, 5]);
        let verdict = policy.peek(&ADA);
        assert!(!verdict.is_allowed());
        assert_eq!(verdict.retry_after(), policy.check(&ADA).retry_after());
        assert_eq!(policy.charge(&ADA, 0).rules().count(), 1);
    }
}

#[test]
fn a_table_without_room_refuses() {
    let one =
        Rule { max_keys: 1, on_full: OnFull::Refuse, ..rule("x", vec![KeyPart::User], &[window(1, 60)]) };
    let (policy, _) = policy(rules(vec![one]));
    let names: Vec<String> = (0..100).map(|number| format!("user-{number}")).collect();
    let full = names.iter().filter(|name| !policy.check(&Request::new("x").user(name)).is_allowed()).count();
    assert!(full > 0);
    let pattern = Pattern::Glob("user-*".to_owned());
    assert!(names.iter().all(|name| pattern.is_met_by(name)));
}

#[test]
fn a_condition_without_a_pattern_is_met_by_nothing() {
    let limit = Limit::bucket(tidegate::Rate::per_day(1), 1);
    let nothing = vec![("plan".to_owned(), Vec::new())];
    let mut never = rule("never", Vec::new(), &[limit]);
    never.matcher.attributes = nothing.clone();
    let mut always = rule("always", Vec::new(), &[limit]);
    always.exempt.attributes = nothing;
    let (policy, _) = policy(rules(vec![never, always]));
    let verdict = policy.check(&Request::new("x").attributes(&[("plan", "free")]));
    assert_eq!(
        verdict.rules().map(|rule| (rule.name(), rule.is_exempt())).collect::<Vec<_>>(),
        [("always", false)]
    );
}

/// Two policies that say the same, one asked for verdicts and one for yes or no.
#[test]
fn allow_says_what_a_verdict_says_and_counts_the_same() {
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let shadow = Rule { shadow: true, ..rule("shadow", vec![KeyPart::Title], &[window(3, 60)]) };
        let exempt = Exempt { titles: vec!["legacy".to_owned()], ..Exempt::default() };
        let users = Rule {
            exempt,
            cost: Cost::OfRequest,
            ..rule("user", vec![KeyPart::User], &[window(9, 60), window(20, 300)])
        };
        let all = || Rules {
            counting,
            ..rules(vec![users.clone(), shadow.clone(), rule("all", Vec::new(), &[window(40, 60)])])
        };
        let ((told, clock), (asked, other_clock)) = (policy(all()), policy(all()));
        let mut dice = crate::common::Dice::new(7);
        let mut allowed = 0;
        for _ in 0..2_000 {
            let (user, title) =
                (["ada", "bob", "eve"][dice.roll(3) as usize], ["chess", "legacy"][dice.roll(2) as usize]);
            let request = Request::new("x").user(user).title(title).cost(dice.roll(4));
            let is_allowed = told.check(&request).is_allowed();
            assert_eq!(asked.allow(&request), is_allowed, "{request:?}");
            allowed += u32::from(is_allowed);
            if dice.roll(20) == 0 {
                clock.advance(secs(7));
                other_clock.advance(secs(7));
            }
        }
        assert!((100..1_900).contains(&allowed), "{allowed}");
    }
}

/// What another rule refused is counted by this one all the same, and used it up: the wait is for both.
#[test]
fn a_limit_that_passed_may_be_what_is_waited_for() {
    let user = vec![KeyPart::User];
    let both = || vec![rule("a", user.clone(), &[window(1, 3)]), rule("b", user.clone(), &[window(2, 100)])];
    let (every, clock) = policy(rules(both()));
    assert_eq!(allowed(&every, &ADA, 1), 1);
    let verdict = every.check(&ADA);
    assert_eq!((refusing(&verdict), verdict.retry_after()), (vec!["a"], Some(secs(100))));
    assert_eq!(verdict.binding().unwrap().rule().name(), "a");
    clock.advance(secs(100));
    assert!(every.check(&ADA).is_allowed());
    // Where a refusal leaves all others as they were, there is room.
    let (together, clock) = policy(Rules { counting: Counting::AllOrNothing, ..rules(both()) });
    assert_eq!(allowed(&together, &ADA, 1), 1);
    assert_eq!(together.check(&ADA).retry_after(), Some(secs(3)));
    clock.advance(secs(3));
    assert!(together.check(&ADA).is_allowed());
}

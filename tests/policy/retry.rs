//! When those whom a rule refuses are told to come back.

use std::time::Duration;

use tidegate::policy::{Counting, KeyPart, Request, Retry, Rule, Rules};
use tidegate::{Limit, Rate};

use super::{policy, rule, rules};

const TEN_MS: Duration = Duration::from_millis(10);

fn network(v4_bits: u8, v6_bits: u8) -> KeyPart {
    KeyPart::ClientIp { v4_bits, v6_bits }
}

fn bucket() -> Limit {
    Limit::bucket(Rate::per_second(100), 1)
}

const REQUEST: Request<'_> = Request::new("x").title("chess");

#[test]
fn keys_of_many_callers_stagger_by_themselves() {
    use KeyPart::{Attribute, Entity, Namespace, Title, User};
    let shared: [Vec<KeyPart>; 7] = [
        vec![],
        vec![Title],
        vec![Namespace],
        vec![Title, Namespace],
        vec![network(24, 64)],
        vec![network(32, 48)],
        vec![network(0, 0), Title],
    ];
    let own: [Vec<KeyPart>; 6] = [
        vec![User],
        vec![User, Title],
        vec![Entity],
        vec![network(32, 64)],
        vec![network(32, 128), Title],
        vec![Attribute("api_key".to_owned())],
    ];
    for (keys, staggers) in [(&shared[..], true), (&own[..], false)] {
        for key in keys {
            let rule = rule("x", key.clone(), &[bucket()]);
            assert_eq!(rule.staggers(), staggers, "{key:?}");
            let said = |retry| Rule { retry: Some(retry), ..rule.clone() };
            assert_eq!((said(Retry::Exact).staggers(), said(Retry::Staggered).staggers()), (false, true));
            assert!(!Rule { shadow: true, ..said(Retry::Staggered) }.staggers(), "it tells nobody");
        }
    }
}

#[test]
fn a_verdict_tells_the_place_in_the_row() {
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let all = Rules { counting, ..rules(vec![rule("title", vec![KeyPart::Title], &[bucket()])]) };
        let (policy, _) = policy(all);
        let verdict = policy.check(&REQUEST);
        assert_eq!((verdict.is_allowed(), verdict.retry_after_staggered()), (true, Some(Duration::ZERO)));
        assert_eq!(policy.peek(&REQUEST).retry_after_staggered(), Some(TEN_MS));
        // Who is told nothing of a wait takes no place, unless what was charged has to be given back.
        assert!(!policy.allow(&REQUEST));
        let first = if counting == Counting::EveryRule { 1 } else { 2 };
        for place in first..=3 {
            let verdict = policy.check(&REQUEST);
            assert_eq!(verdict.retry_after(), Some(TEN_MS), "{counting:?}");
            assert_eq!(verdict.retry_after_staggered(), Some(place * TEN_MS), "{counting:?}");
        }
    }
}

#[test]
fn the_longest_of_all_waits_is_told() {
    let slow = Limit::bucket(Rate::per_second(1), 1);
    let all = vec![
        Rule { retry: Some(Retry::Exact), ..rule("all", vec![], &[slow]) },
        rule("title", vec![KeyPart::Title], &[bucket()]),
    ];
    let (policy, _) = policy(rules(all));
    assert!(policy.check(&REQUEST).is_allowed());
    let told = |_| policy.check(&REQUEST).retry_after_staggered();
    let waits: Vec<_> = (0..101).filter_map(told).collect();
    // A second for the one; the other's places are beyond it from the hundredth on.
    assert_eq!((waits[0], waits[99]), (Duration::from_secs(1), Duration::from_secs(1)));
    assert_eq!(waits[100], 101 * TEN_MS);
    assert_eq!(policy.check(&REQUEST).retry_after_staggered_secs(), 2);
}

#[test]
fn a_reload_may_change_it_and_keeps_what_was_used() {
    let said = |retry| rules(vec![Rule { retry: Some(retry), ..rule("all", vec![], &[bucket()]) }]);
    let (policy, _) = policy(said(Retry::Exact));
    assert!(policy.allow(&REQUEST));
    let wait = || policy.check(&REQUEST).retry_after_staggered();
    assert_eq!([wait(), wait()], [Some(TEN_MS); 2]);
    for _ in 0..2 {
        assert_eq!(policy.replace(said(Retry::Staggered)).unwrap().kept, ["all"]);
        assert_eq!(policy.rules()[0].retry, Some(Retry::Staggered), "those in force");
        let first = wait();
        assert_eq!(wait(), first.map(|first| first + TEN_MS));
        assert_eq!(policy.replace(said(Retry::Exact)).unwrap().kept, ["all"]);
        assert_eq!([wait(), wait()], [Some(TEN_MS); 2]);
    }
}

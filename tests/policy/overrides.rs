//! Keys with limits of their own.

use std::time::Duration;

use tidegate::policy::{Counting, Entity, EntityType, KeyPart, Override, Policy, Request, Rule, Rules};
use tidegate::{Alignment, Limit, Manual, Rate, Window};

use super::common::secs;
use super::{allowed, policy, rule, rules};

pub(crate) fn bucket(burst: u64) -> Limit {
    Limit::bucket(Rate::per_day(1), burst)
}

pub(crate) fn over(key: &[&str], limits: &[Limit]) -> Override {
    Override { key: key.iter().map(|&part| part.to_owned()).collect(), limits: limits.to_vec() }
}

/// One rule whose keys have five, but for those in `overrides`.
pub(crate) fn of(key: Vec<KeyPart>, overrides: Vec<Override>) -> Rules {
    rules(vec![Rule { overrides, ..rule("all", key, &[bucket(5)]) }])
}

#[test]
fn a_key_is_named_by_its_parts() {
    let key = vec![KeyPart::User, KeyPart::Title, KeyPart::ClientIp { v4_bits: 24, v6_bits: 64 }];
    let named = over(&["ada", "chess", "192.0.2.0/24"], &[bucket(9)]);
    let (policy, _) = policy(of(key, vec![named, over(&["bob", "go", "2001:db8::7"], &[bucket(2)])]));
    let request = |user, title, address: &str| {
        Request::new("x").user(user).title(title).client_ip(address.parse().unwrap())
    };
    assert_eq!(allowed(&policy, &request("ada", "chess", "192.0.2.77"), 20), 9);
    assert_eq!(allowed(&policy, &request("ada", "chess", "::ffff:192.0.2.9"), 20), 0, "the same network");
    assert_eq!(allowed(&policy, &request("ada", "chess", "192.0.3.77"), 20), 5);
    assert_eq!(allowed(&policy, &request("bob", "go", "2001:db8::1:2:3:4"), 20), 2);
    assert_eq!(allowed(&policy, &request("ada", "go", "192.0.2.77"), 20), 5);
    assert_eq!(allowed(&policy, &request("bob", "chess", "2001:db8::7"), 20), 5);
}

#[test]
fn entities_and_attributes_have_overrides_too() {
    let named = vec![over(&["192.0.2.1"], &[bucket(7)]), over(&["PLAYER"], &[bucket(8)])];
    let (entities, _) = policy(of(vec![KeyPart::Entity], named));
    let anonymous = Request::new("login").client_ip("192.0.2.1".parse().unwrap());
    assert_eq!(allowed(&entities, &anonymous, 20), 7);
    let player = Entity::new(EntityType::TitlePlayerAccount, "PLAYER");
    assert_eq!(allowed(&entities, &Request::new("login").caller(player).authenticated(true), 20), 8);

    let named = vec![over(&["gold"], &[bucket(11)])];
    let (by_plan, _) = policy(of(vec![KeyPart::Attribute("plan".to_owned())], named));
    let gold = [("plan", "gold")];
    let request = Request::new("x").attributes(&gold);
    assert_eq!(allowed(&by_plan, &request, 20), 11);
    assert_eq!(allowed(&by_plan, &Request::new("x"), 20), 5, "who has no plan");
}

#[test]
fn each_limit_of_a_rule_has_its_own_and_all_or_nothing_knows_them() {
    for counting in [Counting::EveryRule, Counting::AllOrNothing] {
        let window = |limit| Limit::window(Window::new(limit, secs(60))).align(Alignment::Clock);
        let overrides = vec![over(&["ada"], &[bucket(9), window(4)])];
        let rule = Rule { overrides, ..rule("two", vec![KeyPart::User], &[bucket(5), window(30)]) };
        let (policy, clock) = policy(Rules { counting, ..rules(vec![rule]) });
        assert_eq!(allowed(&policy, &Request::new("x").user("bob"), 20), 5);
        assert_eq!(allowed(&policy, &Request::new("x").user("ada"), 20), 4, "{counting:?}");
        clock.advance(secs(60));
        let left = if counting == Counting::EveryRule { 0 } else { 4 };
        assert_eq!(allowed(&policy, &Request::new("x").user("ada"), 20), left, "the bucket: {counting:?}");
    }
}

#[test]
fn a_reload_brings_changes_and_takes_overrides_and_what_was_used_stays_used() {
    let of = |named: &[(&str, u64)]| {
        of(vec![KeyPart::User], named.iter().map(|(user, burst)| over(&[user], &[bucket(*burst)])).collect())
    };
    let (policy, _) = policy(of(&[]));
    let ada = Request::new("x").user("ada");
    assert_eq!(allowed(&policy, &ada, 4), 4);
    let changes = policy.replace(of(&[("ada", 12), ("bob", 2)])).unwrap();
    assert_eq!(changes.changed, ["all"], "{changes:?}");
    assert_eq!(allowed(&policy, &ada, 20), 8, "of twelve four were used");
    assert_eq!(allowed(&policy, &Request::new("x").user("bob"), 20), 2);
    let changes = policy.replace(of(&[("ada", 14), ("eve", 2)])).unwrap();
    assert_eq!(changes.changed, ["all"], "{changes:?}");
    assert_eq!(allowed(&policy, &ada, 20), 2);
    assert_eq!(allowed(&policy, &Request::new("x").user("bob"), 20), 3, "of five two were used");
    assert_eq!(policy.replace(of(&[("ada", 14), ("eve", 2)])).unwrap().kept, ["all"]);
    assert_eq!(policy.replace(of(&[])).unwrap().changed, ["all"]);
    assert_eq!(allowed(&policy, &ada, 20), 0, "she has used fourteen of five");
    assert_eq!(allowed(&policy, &Request::new("x").user("eve"), 20), 5);
}

/// More different limits come and go than a limiter has room for at one time.
#[test]
fn places_are_given_again_over_many_reloads() {
    let (policy, _) = policy(of(vec![KeyPart::User], Vec::new()));
    for round in 1..40_u64 {
        let named = (0..3).map(|user| over(&[&format!("{round}-{user}")], &[bucket(100 * round + user)]));
        let changes = policy.replace(of(vec![KeyPart::User], named.collect())).unwrap();
        assert_eq!(changes.changed, ["all"]);
        let user = format!("{round}-2");
        assert_eq!(
            policy.peek(&Request::new("x").user(&user)).nearest().unwrap().remaining(),
            100 * round + 2
        );
    }
}

/// Neither the limits of before nor those of now are too many, but both together are; and a key that leaves a limit which
/// another still has does not make its place free.
#[test]
fn limits_that_change_need_no_room_beside_those_that_leave() {
    let of = |named: [(&str, u64); 4]| {
        of(vec![KeyPart::User], named.map(|(user, burst)| over(&[user], &[bucket(burst)])).to_vec())
    };
    let (policy, _) = policy(of([("ada", 10), ("bob", 10), ("eve", 20), ("joe", 30)]));
    assert_eq!(allowed(&policy, &Request::new("x").user("ada"), 7), 7);
    for (round, own) in [(1, 11), (2, 12), (3, 13)] {
        let changes = policy.replace(of([("ada", own), ("bob", own), ("eve", 20), ("joe", 30 + round)]));
        assert_eq!(changes.unwrap().changed, ["all"]);
        let left = |user| policy.peek(&Request::new("x").user(user)).nearest().unwrap().remaining();
        assert_eq!(["ada", "bob", "eve", "joe"].map(left), [own - 7, own, 20, 30 + round]);
    }
}

#[test]
fn what_no_override_can_be() {
    let key = || vec![KeyPart::User, KeyPart::ClientIp { v4_bits: 24, v6_bits: 64 }];
    let refused = |named: Override| Policy::new(of(key(), vec![named])).map(drop).unwrap_err().to_string();
    for (named, told) in [
        (over(&["ada"], &[bucket(1)]), "overrides[1].key is a list of 1; it must be a list of 2, one for"),
        (
            over(&["ada", "x"], &[bucket(1)]),
            "overrides[1].key[2] is \"x\"; it must be an address or a network",
        ),
        (
            over(&["ada", "192.0.2.0/16"], &[bucket(1)]),
            "overrides[1].key[2] is \"192.0.2.0/16\"; it must be an address, or a network of 24 bits",
        ),
        (over(&["ada", "192.0.2.0"], &[]), "overrides[1].limits is a list of 0; it must be a list of 1"),
        (over(&["ada", "192.0.2.0"], &[bucket(0)]), "overrides: limits[1]: burst is 0"),
        (
            over(&["ada", "192.0.2.0"], &[Limit::window(Window::new(1, secs(1)))]),
            "overrides: limits[1]: limit is a window; it must be a bucket",
        ),
    ] {
        let error = refused(named);
        assert!(error.starts_with(&format!("rule \"all\": {told}")), "{error}");
    }
    let many = (0..256_u64).map(|user| over(&[&user.to_string()], &[bucket(1 + user)])).collect();
    let error = Policy::new(of(vec![KeyPart::User], many)).map(drop).unwrap_err().to_string();
    assert!(error.contains("a list with 256 different limits; it must be one with at most 255"), "{error}");
}

/// A limit that leaves no room for tiers in its word is honoured where no override needs one.
#[test]
fn a_limit_as_wide_as_can_be_needs_no_room_for_overrides() {
    let wide = Limit::sliding_window(Window::new(131_000, Duration::from_secs(1)));
    let rule = rule("wide", vec![KeyPart::User], &[wide]);
    let (policy, _): (Policy<Manual>, _) = policy(rules(vec![rule.clone()]));
    assert!(policy.check(&Request::new("x").user("ada")).is_allowed());
    let overrides = vec![over(&["ada"], &[Limit::sliding_window(Window::new(9, Duration::from_secs(1)))])];
    let error = policy.replace(rules(vec![Rule { overrides, ..rule }])).unwrap_err().to_string();
    assert!(error.starts_with("rule \"wide\": limits[1]: window limit is 131000"), "{error}");
    assert!(policy.check(&Request::new("x").user("ada")).is_allowed(), "the old policy is in force");
}

//! The examples of the field, through rules.

use std::time::Duration;

use tidegate::policy::{Entity, EntityType, Exempt, KeyPart, Request, Rule, Rules};
use tidegate::{Alignment, Limit, Window, WindowName};

use super::{policy, rule, rule_for, rules};
use crate::common::secs;
use crate::common::twin::{Start, Windows};
use crate::common::{Dice, assert_same};

/// Fine-grained rate limiting: 30 in 15 s and 100 in 300 s for each user in each title; one title is older than that.
fn fine_grained() -> Rule {
    let limit = Limit::burst_sustain(Window::new(30, secs(15)), Window::new(100, secs(300)));
    let key = vec![KeyPart::User, KeyPart::Title];
    let exempt = Exempt { titles: vec!["legacy".to_owned()], ..Exempt::default() };
    Rule { exempt, ..rule_for("multiplayer-session", key, &[limit.align(Alignment::Clock)]) }
}

/// Start of the 15 s, requests; then accepted, and refused by burst only, by sustain only, by both.
const ROWS: [(u64, usize, [usize; 4]); 6] = [
    (0, 35, [30, 5, 0, 0]),
    (15, 28, [28, 0, 0, 0]),
    (30, 21, [21, 0, 0, 0]),
    (45, 36, [16, 0, 14, 6]),
    (60, 24, [0, 0, 24, 0]),
    (285, 4, [0, 0, 4, 0]),
];

#[test]
fn what_a_user_does_in_one_title_costs_nobody_else() {
    costs_nobody_else(rules(vec![fine_grained()]), "multiplayer-session");
}

/// The same through the table that ships, whose leaderboards have these limits.
#[test]
fn the_shipped_table_costs_nobody_else_either() {
    costs_nobody_else(Rules::default_policy(), "leaderboards");
    let (policy, _) = policy(Rules::default_policy());
    let legacy = Request::new("leaderboards").user("ada").title("legacy-title-0001");
    assert!((0..1_000).all(|_| policy.check(&legacy).is_allowed()));
    assert!(policy.check(&legacy).rules().all(|rule| rule.is_exempt()));
}

fn costs_nobody_else(rules: Rules, api: &str) {
    let (policy, clock) = policy(rules);
    let request = |user, title| Request::new(api).user(user).title(title);
    let mut accepted = 0;
    for (start, requests, expected) in ROWS {
        clock.set(secs(start));
        let mut counts = [0; 4];
        for number in 0..requests {
            if (start, number) == (45, 16) {
                clock.set(secs(50));
            }
            let verdict = policy.check(&request("ada", "chess"));
            let refuses = verdict.binding().map(|limit| {
                let refuses: Vec<bool> = limit.windows().iter().map(|window| window.refuses).collect();
                (refuses[0], refuses[1])
            });
            counts[match refuses {
                None => 0,
                Some((true, false)) => 1,
                Some((false, true)) => 2,
                Some(both) => {
                    assert_eq!(both, (true, true));
                    3
                }
            }] += 1;
            assert_eq!(verdict.is_allowed(), refuses.is_none());
            if start == 45 && !verdict.is_allowed() {
                // Sustain's end, whether or not burst refuses too.
                assert_eq!(verdict.retry_after(), Some(secs(250)));
                assert_eq!(verdict.binding().unwrap().denied().unwrap().binding(), WindowName::Sustain);
            }
        }
        assert_eq!(counts, expected, "{start}");
        accepted += counts[0];
        // Her other title, and the other user in both, have asked for 3 a row.
        for (user, title) in [("ada", "go"), ("bob", "chess"), ("bob", "go")] {
            assert!((0..3).all(|_| policy.check(&request(user, title)).is_allowed()), "{user}, {title}");
        }
    }
    assert_eq!(accepted, 95);
    assert_eq!(policy.peek(&request("bob", "chess")).nearest().unwrap().windows()[1].remaining, 100 - 18);
}

#[test]
fn a_title_that_is_exempt_is_left_alone() {
    let (policy, _) = policy(rules(vec![fine_grained()]));
    let request = Request::new("multiplayer-session").user("ada").title("legacy");
    for _ in 0..1_000 {
        let verdict = policy.check(&request);
        assert!(verdict.is_allowed() && verdict.is_matched());
        let rule = verdict.rules().next().unwrap();
        assert!(rule.is_exempt() && rule.limits().next().is_none());
    }
    let other = policy.check(&Request::new("people").user("ada").title("chess"));
    assert!(other.is_allowed() && !other.is_matched());
}

/// Each of the four cases is counted under its key: who shares it finds it used, and who does not, does not.
#[test]
fn the_four_keys_of_a_game_back_end() {
    let limit = Limit::window(Window::new(1, secs(60))).align(Alignment::Clock);
    let target = Entity::new(EntityType::TitlePlayerAccount, "25254A5AC4AEBA55");
    let of = |kind, id| Request::new("x").authenticated(true).caller(Entity::new(kind, id));
    let master = |id| of(EntityType::MasterPlayerAccount, id);
    let login = Request::new("x").client_ip("23.192.228.80".parse().unwrap());
    for (request, key, same, other) in [
        (
            login,
            "23.192.228.80",
            login.caller(target),
            Request::new("x").client_ip("23.192.228.81".parse().unwrap()),
        ),
        (
            master("408C36ADC841C0CD"),
            "408C36ADC841C0CD",
            master("408C36ADC841C0CD").target(target),
            master("25254A5AC4AEBA55"),
        ),
        (
            master("D5491A06D715E817").target(target),
            "D5491A06D715E817",
            master("D5491A06D715E817"),
            master("25254A5AC4AEBA55"),
        ),
        (
            of(EntityType::Title, "123").target(target),
            "25254A5AC4AEBA55",
            of(EntityType::TitlePlayerAccount, "25254A5AC4AEBA55"),
            of(EntityType::Title, "123"),
        ),
    ] {
        let (policy, _) = policy(rules(vec![rule("entity", vec![KeyPart::Entity], &[limit])]));
        assert_eq!(policy.key_of("entity", &request).unwrap(), key);
        assert!(policy.check(&request).is_allowed());
        assert!(!policy.check(&same).is_allowed(), "{key}");
        assert!(policy.check(&other).is_allowed(), "{key}");
    }
}

/// 10 in 15 s, 150 in 300 s and 3600 in 3600 s at once, each window open from its own first request.
#[test]
fn three_tiers_are_three_windows_of_their_own() {
    const TIERS: [(u64, u64); 3] = [(10, 15), (150, 300), (3_600, 3_600)];
    // A place on the grids of all three, a 15 · 2^-8 th of each period at least.
    const STEP_NS: u64 = 878_906_250;
    let limits = TIERS.map(|(limit, period)| {
        Limit::window(Window::new(limit, secs(period))).align(Alignment::FirstRequest)
    });
    let (policy, clock) = policy(rules(vec![rule("tiers", vec![KeyPart::User], &limits)]));
    let mut twins = TIERS.map(|(limit, period)| {
        let window = [(u128::from(limit), u128::from(period) * 1_000_000_000)];
        Windows::new(&window, Start::FirstRequest { grid: None }, true)
    });
    let (mut dice, mut now_ns, mut refused_by) = (Dice::new(1), 0, [0; 3]);
    for _ in 0..30_000 {
        if dice.roll(8) == 0 {
            // Now and then a pause that ends all windows.
            now_ns += STEP_NS * if dice.roll(1_500) == 0 { 5_000 } else { dice.roll(6) };
            clock.set(Duration::from_nanos(now_ns));
        }
        let user = ["ada", "bob"][dice.roll(2) as usize];
        let verdict = policy.check(&Request::new("data").user(user));
        let expected = twins.each_mut().map(|twin| twin.check(u64::from(user == "ada"), now_ns.into(), 1));
        let rule = verdict.rules().next().unwrap();
        for (limit, expected) in rule.limits().zip(&expected) {
            assert_same(&limit.answer(), expected, &(now_ns, user, limit.number()));
            refused_by[limit.number()] += u32::from(!expected.passed);
        }
        assert_eq!(verdict.is_allowed(), expected.iter().all(|decision| decision.passed));
        // One that this request has used up is waited for as well, if another refused it.
        let used_up =
            |decision: &crate::common::twin::Decision| (decision.remaining == 0).then_some(decision.next_ns);
        let waits = expected.iter().filter_map(|decision| decision.retry_ns.or_else(|| used_up(decision)));
        let wait_ns = if verdict.is_allowed() { 0 } else { waits.max().unwrap_or(0) };
        assert_eq!(verdict.retry_after().unwrap().as_nanos(), wait_ns);
    }
    assert!(refused_by.iter().all(|&refused| refused > 100), "{refused_by:?}");
}

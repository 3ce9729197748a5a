//! Rules of which all are charged or none.

use tidegate::policy::{Counting, KeyPart, Request, Rule, Rules};
use tidegate::{Alignment, Limit, Rate, Window};

use super::{allowed, policy, refusing, rule, rules};
use crate::common::{Dice, at_once, secs};

fn together(all: Vec<Rule>) -> Rules {
    Rules { counting: Counting::AllOrNothing, ..rules(all) }
}

fn window(limit: u64) -> Limit {
    Limit::window(Window::new(limit, secs(60))).align(Alignment::Clock)
}

#[test]
fn a_refusal_charges_none_of_the_rules() {
    let bucket = Limit::bucket(Rate::per_hour(1), 100);
    let all = vec![
        rule("all", vec![], &[window(50), bucket]),
        rule("user", vec![KeyPart::User], &[window(3)]),
        rule("title", vec![KeyPart::Title], &[window(4)]),
    ];
    let (policy, _) = policy(together(all));
    let ada = Request::new("x").user("ada").title("chess");
    assert_eq!(allowed(&policy, &ada, 10), 3);
    let verdict = policy.check(&ada);
    assert_eq!((refusing(&verdict), verdict.retry_after()), (vec!["user"], Some(secs(60))));
    let remaining: Vec<u64> =
        verdict.rules().flat_map(|rule| rule.limits()).map(|limit| limit.remaining()).collect();
    assert_eq!(remaining, [47, 97, 0, 1]);
    assert!(policy.check(&ada.user("bob")).is_allowed());
    // Both refuse now, and both are told, though the first of them ends the matter.
    assert_eq!(refusing(&policy.check(&ada)), ["user", "title"]);
}

/// A shadow rule is charged by itself, all of its limits or none, whatever becomes of the request.
#[test]
fn a_shadow_rule_is_charged_apart() {
    let shadow = Rule { shadow: true, ..rule("shadow", vec![], &[window(50), window(5)]) };
    let (policy, _) = policy(together(vec![shadow, rule("real", vec![], &[window(2)])]));
    assert_eq!(allowed(&policy, &Request::new("x"), 20), 2);
    let verdict = policy.check(&Request::new("x"));
    let remaining: Vec<u64> =
        verdict.rules().flat_map(|rule| rule.limits()).map(|limit| limit.remaining()).collect();
    assert_eq!(remaining, [45, 0, 0]);
}

/// At the end every limit has counted the requests that were allowed, and nothing else.
#[test]
fn at_the_end_all_have_counted_the_successes() {
    const USERS: [&str; 4] = ["ada", "bob", "cleo", "dan"];
    const TITLES: [&str; 2] = ["chess", "go"];
    let all = || {
        vec![
            rule("user", vec![KeyPart::User], &[window(700), Limit::bucket(Rate::per_day(1), 600)]),
            rule("title", vec![KeyPart::Title], &[window(900)]),
            rule("all", vec![], &[Limit::bucket(Rate::per_day(1), 1_500)]),
        ]
    };
    for seed in 0..20 {
        let (policy, _) = policy(together(all()));
        let successes = at_once(4, |thread| {
            let mut dice = Dice::new(seed * 4 + thread as u64);
            let mut successes = [[0_u64; 2]; 4];
            for _ in 0..2_000 {
                let (user, title) = (dice.roll(4) as usize, dice.roll(2) as usize);
                let request = Request::new("x").user(USERS[user]).title(TITLES[title]);
                successes[user][title] += u64::from(policy.check(&request).is_allowed());
            }
            successes
        });
        let sum = |user: Option<usize>, title: Option<usize>| -> u64 {
            let is_in = |at: usize, wanted: Option<usize>| wanted.is_none_or(|wanted| wanted == at);
            let cells = successes
                .iter()
                .flat_map(|of| (0..4).flat_map(move |u| (0..2).map(move |t| (u, t, of[u][t]))));
            cells.filter(|&(u, t, _)| is_in(u, user) && is_in(t, title)).map(|(_, _, count)| count).sum()
        };
        for (user, name) in USERS.iter().enumerate() {
            for (title, title_name) in TITLES.iter().enumerate() {
                let verdict = policy.peek(&Request::new("x").user(name).title(title_name));
                let used: Vec<u64> = verdict
                    .rules()
                    .flat_map(|rule| rule.limits())
                    .map(|limit| limit.windows()[0].observed)
                    .collect();
                let (of_user, of_title) = (sum(Some(user), None), sum(None, Some(title)));
                assert_eq!(used, [of_user, of_user, of_title, sum(None, None)], "{seed}");
            }
        }
        // Refunds were made: more was asked for than there was.
        assert!(sum(None, None) <= 1_500 && sum(None, None) > 1_400, "{}", sum(None, None));
    }
}

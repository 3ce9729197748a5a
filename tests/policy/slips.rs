//! Slips that a policy must not make: what nobody has proved, what is taken back, what is said and not so.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate::policy::{Cost, CustomKey, Entity, EntityType, Exempt, KeyPart, Policy, Request, Rule, Rules};
use tidegate::{Limit, Manual, Window};

use super::overrides::{bucket, of, over};
use super::{allowed, policy, rule, rules};

fn toml(text: &str) -> Rules {
    Rules::from_toml(text, "t.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

/// Who has proved nothing is not the caller that is exempt, nor a game server: it only says so.
#[test]
fn who_only_says_that_he_is_exempt_is_limited() {
    let by_type = Exempt { caller_types: vec![EntityType::GameServer], ..Exempt::default() };
    let by_id = Exempt { callers: vec!["admin".to_owned()], ..Exempt::default() };
    for exempt in [by_type, by_id] {
        let logins = Rule { exempt, ..rule("login", vec![KeyPart::Entity], &[bucket(5)]) };
        let (policy, _) = policy(rules(vec![logins]));
        let claimed = Entity::new(EntityType::GameServer, "admin");
        let request = Request::new("login").caller(claimed).client_ip([192, 0, 2, 1].into());
        assert!(!request.is_authenticated);
        assert_eq!(allowed(&policy, &request, 100), 5, "nobody has proved anything");
    }
}

/// Two keys share an override's limit; a reload raises it. The rule has three different limits before and after, as many as
/// there is room for, so that the reload must be taken.
#[test]
fn a_limit_that_two_keys_share_can_be_raised() {
    let of = |shared: u64| {
        let named = [("ada", shared), ("bob", shared), ("eve", 20), ("kim", 30)];
        of(vec![KeyPart::User], named.map(|(user, burst)| over(&[user], &[bucket(burst)])).to_vec())
    };
    let (policy, _) = policy(of(10));
    Policy::new(of(11)).map(drop).unwrap();
    let changes = policy.replace(of(11)).map_err(|error| error.to_string());
    assert!(changes.is_ok(), "{changes:?}");
    assert_eq!(allowed(&policy, &Request::new("x").user("ada"), 20), 11);
}

/// "What it has used counts in them, and stays used when an override comes, changes or goes with a reload."
#[test]
fn what_was_used_stays_used_where_all_places_are_taken() {
    let of = |ada: u64| {
        let named = [("ada", ada), ("eve", 200), ("kim", 300)];
        of(vec![KeyPart::User], named.map(|(user, burst)| over(&[user], &[bucket(burst)])).to_vec())
    };
    let (policy, _) = policy(of(100));
    let ada = Request::new("x").user("ada");
    assert_eq!(allowed(&policy, &ada, 90), 90);
    policy.replace(of(120)).unwrap();
    assert_eq!(allowed(&policy, &ada, 200), 30, "of 120 she has used 90");
}

/// A window's limit is raised to one that a policy may be built with.
#[test]
fn a_reload_takes_what_a_build_takes() {
    let window = |limit| Limit::window(Window::new(limit, Duration::from_secs(15)));
    let pair = |limit| {
        Limit::burst_sustain(
            Window::new(limit, Duration::from_secs(15)),
            Window::new(limit, Duration::from_secs(300)),
        )
    };
    let sliding = |limit| Limit::sliding_window(Window::new(limit, Duration::from_secs(1)));
    let kinds: [&dyn Fn(u64) -> Limit; 3] = [&window, &pair, &sliding];
    let mut refused = Vec::new();
    for make in kinds {
        for power in 1..40 {
            let of = |limit| rules(vec![rule("all", vec![KeyPart::User], &[make(limit)])]);
            let raised = 10_u64 << power;
            if Policy::builder(of(raised)).clock(Manual::new()).build().is_err() {
                break;
            }
            let (policy, _) = policy(of(10));
            if let Err(error) = policy.replace(of(raised)) {
                refused.push(error.to_string());
                break;
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

/// What a file may say, a policy can be built of: `tidegate check` finds no mistake in it.
#[test]
fn a_file_without_mistakes_can_be_put_in_force() {
    let nine = ["{ window = '5/1s' }"; 9].join(", ");
    let nine = format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimits = [{nine}]\n");
    let mut many = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '1/s', burst = 5 }\n".to_owned();
    for number in 0..256 {
        writeln!(
            many,
            "[[rule.override]]\nkey = 'u{number}'\nlimit = {{ rate = '1/s', burst = {} }}",
            number + 6
        )
        .unwrap();
    }
    let wide = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { sliding = '131000/1s' }\n\
                [[rule.override]]\nkey = 'ada'\nlimit = { sliding = '9/1s' }\n";
    let mut refused = Vec::new();
    for text in [&*nine, &*many, wide] {
        if let Ok(rules) = Rules::from_toml(text, "t.toml")
            && let Err(error) = Policy::builder(rules).clock(Manual::new()).build()
        {
            refused.push(error.to_string());
        }
    }
    assert!(refused.is_empty(), "read without a mistake, and not built: {refused:#?}");
}

/// Each limit counts whatever others refuse, so that what another lets through is no bound on what a limit counts: nothing is
/// said to be never reached.
#[test]
fn a_limit_that_others_do_not_bound_is_not_said_never_to_refuse() {
    for limits in [
        "{ window = '5/1s', opens = 'clock' }, { window = '300/1m', opens = 'clock' }",
        "{ rate = '1/s', burst = 10 }, { window = '70/1m' }",
        "{ window = '5/1s', opens = 'clock' }, { rate = '5/s', burst = 10 }",
    ] {
        let rule =
            format!("[[rule]]\nname = 'a'\nkey = 'user'\non_refusal = 'ignore'\nlimits = [{limits}]\n");
        assert!(toml(&rule).warnings().is_empty(), "{limits}");
        let together = toml(&format!("counting = 'all-or-nothing'\n{rule}"));
        assert!(together.warnings()[0].says().contains("can never refuse"), "{limits}");
        let (policy, clock) = policy(together);
        let request = Request::new("x").user("ada");
        _ = allowed(&policy, &request, 500);
        clock.advance(Duration::from_secs(1));
        let verdict = policy.check(&request);
        let refused = verdict.rules().flat_map(|rule| rule.limits().collect::<Vec<_>>());
        assert!(
            refused.filter(|limit| limit.denied().is_some()).all(|limit| limit.number() != 1),
            "{limits}"
        );
    }
}

/// The same of a key with an override: the warning is about the rule's own numbers, and says "never".
#[test]
fn a_limit_that_binds_an_override_is_not_said_never_to_refuse() {
    let rules = toml(
        "[[rule]]\nname = 'a'\nkey = 'user'\non_refusal = 'ignore'\nlimit = { burst = '10/15s', sustain = '200/5m' }\n\
         [[rule.override]]\nkey = 'ada'\nlimit = { burst = '150/15s', sustain = '200/5m' }\n",
    );
    let warnings = rules.warnings();
    let (policy, clock) = policy(rules);
    let ada = Request::new("x").user("ada");
    let mut passed = 0;
    for _ in 0..3 {
        passed += allowed(&policy, &ada, 150);
        clock.advance(Duration::from_secs(15));
    }
    assert!(passed < 450, "the sustain window has refused");
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// Under `first`, a request that the first rule leaves alone is asked of no other (docs of `Policy`): the second is never asked.
#[test]
fn a_rule_behind_one_with_exemptions_is_warned_of() {
    let limit = "key = 'user'\nlimit = { rate = '1/s', burst = 5 }";
    let rules = toml(&format!(
        "matching = 'first'\n[[rule]]\nname = 'one'\n{limit}\nexempt = {{ title = 't' }}\n[[rule]]\nname = 'two'\n{limit}\n"
    ));
    let warnings = rules.warnings();
    let (policy, _) = policy(rules);
    let verdict = policy.check(&Request::new("x").user("ada").title("t"));
    assert_eq!(verdict.rules().filter(|rule| rule.name() == "two").count(), 0, "never asked");
    assert!(!warnings.is_empty(), "rule two is never asked, and nothing says so");
}

/// Under `all-or-nothing` no refusal is counted, whatever the rule says; the sentence that `tidegate check` prints says it is.
#[test]
fn the_sentence_is_true_of_all_or_nothing() {
    let rules = toml(
        "counting = 'all-or-nothing'\n[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { window = '5/1m', opens = 'clock' }\n",
    );
    let sentence = rules.sentences().remove(0);
    let (policy, _) = policy(rules);
    _ = allowed(&policy, &Request::new("x").user("ada"), 20);
    let verdict = policy.peek(&Request::new("x").user("ada"));
    assert_eq!(verdict.nearest().unwrap().windows()[0].observed, 5);
    assert!(!sentence.contains("refused requests count"), "{sentence}");
}

/// "may make 100 requests in any 15 s": what it weighs is an estimate, and it lets nearly twice as many through.
#[test]
fn the_sentence_is_true_of_a_sliding_window() {
    let rules =
        toml("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { sliding = '100/15s', opens = 'clock' }\n");
    let sentence = rules.sentences().remove(0);
    let (policy, clock) = policy(rules);
    let ada = Request::new("x").user("ada");
    clock.set(Duration::from_millis(14_999));
    let mut passed = allowed(&policy, &ada, 200);
    // The window of 15 s from 14.999 s on.
    for at in (15_000..29_900).step_by(100) {
        clock.set(Duration::from_millis(at));
        passed += allowed(&policy, &ada, 200);
    }
    assert!(passed <= 100 || !sentence.contains("in any 15 s"), "{passed} in 14.9 s: {sentence}");
}

/// `key_of` tells an IPv6 client of `entity` as its network; an override of that text is taken for an id and never applies.
#[test]
fn a_network_is_a_key_of_entity_as_key_of_tells_it() {
    let address = "2001:db8::7".parse().unwrap();
    let request = Request::new("x").client_ip(address);
    let (plain, _) = policy(of(vec![KeyPart::Entity], Vec::new()));
    let told = plain.key_of("all", &request).unwrap();
    let built = Policy::builder(of(vec![KeyPart::Entity], vec![over(&[&told], &[bucket(9)])]))
        .clock(Manual::new())
        .build();
    // It may be refused, but not be taken and ignored.
    if let Ok(policy) = built {
        assert_eq!(allowed(&policy, &request, 20), 9, "the override of {told}");
    }
}

/// "A key has one override": two spellings of one client of `entity` are not seen, and the last silently wins; of code, not even
/// two of one spelling are.
#[test]
fn two_overrides_of_one_key_are_told() {
    let text = "[[rule]]\nname = 'a'\nkey = 'entity'\nlimit = { rate = '1/s', burst = 5 }\n\
                [[rule.override]]\nkey = '192.0.2.7'\nlimit = { rate = '1/s', burst = 6 }\n\
                [[rule.override]]\nkey = '::ffff:192.0.2.7'\nlimit = { rate = '1/s', burst = 700 }\n";
    assert!(Rules::from_toml(text, "t.toml").is_err(), "two spellings in a file");
    let named = vec![over(&["ada"], &[bucket(6)]), over(&["ada"], &[bucket(700)])];
    assert!(Policy::new(of(vec![KeyPart::User], named)).is_err(), "of code");
}

/// "the number in it; 1 where there is none": there is one, and it is not 1.
#[test]
fn a_number_in_an_attribute_is_not_forgiven() {
    let rule = Rule {
        cost: Cost::Attribute("tokens".to_owned()),
        ..rule("all", vec![KeyPart::User], &[bucket(10)])
    };
    for number in ["5000.0", "+5000", " 5000", "5e3"] {
        let (policy, _) = policy(rules(vec![rule.clone()]));
        let attributes = [("tokens", number)];
        let request = Request::new("x").user("ada").attributes(&attributes);
        assert_eq!(allowed(&policy, &request, 100), 0, "{number:?} of 10 fits");
    }
}

/// "What is not needed any more is freed when the last check that may see it has ended": no check is under way here.
#[test]
fn what_is_replaced_is_freed() {
    let function: CustomKey = Arc::new(|_, _| ());
    let weak: Weak<_> = Arc::downgrade(&function);
    let (policy, _) = policy(of(vec![KeyPart::Custom("f", function)], Vec::new()));
    policy.replace(of(vec![KeyPart::User], Vec::new())).unwrap();
    // Other tests of this process may be in the middle of a check.
    for _ in 0..1_000 {
        if weak.upgrade().is_none() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
        policy.replace(of(vec![KeyPart::User], Vec::new())).unwrap();
    }
    panic!("kept, though no check is under way");
}

/// "An error: the rules in force stay so, with what was used." The first rule's limit is lowered, the second rule's change fails,
/// and the first is raised again.
#[test]
fn a_reload_that_fails_half_way_gives_nothing_back() {
    let of = |first: Limit, shared: u64| {
        let named = [("ada", shared), ("bob", shared), ("eve", 20), ("kim", 30)];
        let overrides = named.map(|(user, burst)| over(&[user], &[bucket(burst)])).to_vec();
        rules(vec![
            rule("first", vec![KeyPart::User], &[first]),
            Rule { overrides, shadow: true, ..rule("second", vec![KeyPart::User], &[bucket(5)]) },
        ])
    };
    let window = |limit| Limit::window(Window::new(limit, Duration::from_secs(86_400)));
    for (large, small) in [
        (bucket(100), bucket(10)),
        (window(100), window(10)),
        (bucket(100).debt_max(0), bucket(10).debt_max(0)),
    ] {
        let (policy, _) = policy(of(large, 10));
        let zoe = Request::new("x").user("zoe");
        assert_eq!(allowed(&policy, &zoe, 90), 90);
        let error = policy.replace(of(small, 11));
        if error.is_err() {
            let after = policy.peek(&zoe).rules().next().unwrap().limits().next().unwrap().remaining();
            assert_eq!(after, 10, "of 100 she has used 90: {large:?}");
        }
    }
}

/// What the reader takes for a length of time, the schema does too. (Its pattern ends with a unit.)
#[test]
fn a_blank_at_the_end_is_no_time() {
    for period in ["15s ", "1h 30m  "] {
        let text = format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {{ window = '5/{period}' }}\n");
        assert!(
            Rules::from_toml(&text, "t.toml").is_err(),
            "{period:?} is read, and is none of the schema's"
        );
    }
}

/// A place in a message of `Policy::new` and one in a message of `Rules::read` are counted alike.
#[test]
fn places_in_lists_are_counted_alike() {
    let zero = "[[rule]]\nname = 'a'\nkey = 'user'\nlimits = [{ rate = '1/s', burst = 5 }, { window = '5/3650000d' }]\n";
    let read = Rules::from_toml(zero, "t.toml").unwrap_err().to_string();
    assert!(read.contains("limits[2]") || read.contains("limits[1]"), "{read}");
    let limits = [bucket(5), Limit::window(Window::new(0, Duration::from_secs(1)))];
    let built =
        Policy::new(rules(vec![rule("a", vec![KeyPart::User], &limits)])).map(drop).unwrap_err().to_string();
    let number = |text: &str| text.split("limits[").nth(1).map(|rest| rest[..1].to_owned());
    assert_eq!(number(&read), number(&built), "{read}\n{built}");
}

/// A policy whose numbers follow a load is replaced once a second: after 65 535 different ones no new number is taken any more,
/// though the limiter could be made anew. Takes some minutes.
#[test]
#[ignore = "minutes"]
fn the_seventy_thousandth_reload_is_taken_too() {
    let of =
        |burst: u64| rules(vec![Rule { max_keys: 16, ..rule("all", vec![KeyPart::User], &[bucket(burst)]) }]);
    let (policy, _) = policy(of(1));
    for burst in 2..66_000 {
        policy.replace(of(burst)).unwrap_or_else(|error| panic!("reload {burst}: {error}"));
    }
}

//! What is written is read as the same rules, in both spellings.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate::policy::{
    Cost, Counting, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Override, Pattern, Policy,
    RefusalBody, Rule, Rules,
};
use tidegate::{Alignment, Limit, Manual, OnFull, Rate, Window};

use super::{same, toml};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,8}",
        "(exact:|prefx:|glob:|attribute:)?[a+*? ]{1,4}",
        "[ -~]{1,8}",
        "\\PC{1,6}",
        "[\\x00-\\x20\\x7f\"'\\\\]{1,4}x",
    ]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let kinds: [fn(String) -> Pattern; 3] = [Pattern::Exact, Pattern::Prefix, Pattern::Glob];
    (select(kinds.to_vec()), prop_oneof![text(), Just(String::new())]).prop_map(|(kind, text)| kind(text))
}

fn attributes() -> impl Strategy<Value = Vec<(String, Vec<Pattern>)>> {
    proptest::collection::btree_map(text(), vec(pattern(), 0..3), 0..3)
        .prop_map(|all| all.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

fn key_part() -> impl Strategy<Value = KeyPart> {
    prop_oneof![
        Just(KeyPart::Title),
        Just(KeyPart::Namespace),
        Just(KeyPart::User),
        Just(KeyPart::Entity),
        (0..=32_u8, 0..=128_u8).prop_map(|(v4_bits, v6_bits)| KeyPart::ClientIp { v4_bits, v6_bits }),
        Just(KeyPart::ClientIp { v4_bits: 32, v6_bits: 64 }),
        text().prop_map(KeyPart::Attribute),
    ]
}

fn key() -> impl Strategy<Value = Vec<KeyPart>> {
    vec(key_part(), 0..4)
}

/// Without the parts that stand before: no key has one twice.
fn distinct(parts: Vec<KeyPart>) -> Vec<KeyPart> {
    let mut kept: Vec<KeyPart> = Vec::new();
    for part in parts {
        if kept.iter().all(|known| format!("{known:?}") != format!("{part:?}")) {
            kept.push(part);
        }
    }
    kept
}

/// A limit that a limiter honours, twice: as the rule has it and as an override may.
fn limit() -> impl Strategy<Value = (Limit, Limit)> {
    let ms = Duration::from_millis;
    let aligned = select(vec![Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest]);
    let bucket = (1..1_000_u64, 1..1_000_000_u64, 2..1_000_u64, option::of(0..2_u64)).prop_map(
        move |(tokens, period, burst, debt)| {
            let make = |tokens, burst| {
                let limit = Limit::bucket(Rate::new(tokens, ms(period)), burst);
                debt.map_or(limit, |debt| limit.debt_max(debt))
            };
            (make(tokens, burst), make(tokens + 1, burst + 1))
        },
    );
    let window = (1..1_000_u64, 1..1_000_000_u64, aligned.clone()).prop_map(move |(limit, period, to)| {
        let make = |limit| Limit::window(Window::new(limit, ms(period))).align(to);
        (make(limit), make(limit + 1))
    });
    let sliding = (1..100_u64, 1..1_000_000_u64, any::<bool>()).prop_map(move |(limit, period, clock)| {
        let to = if clock { Alignment::Clock } else { Alignment::PerKey };
        let make = |limit| Limit::sliding_window(Window::new(limit, ms(period))).align(to);
        (make(limit), make(limit + 1))
    });
    let pair = (1..100_u64, 0..100_u64, 1..100_000_u64, 2..20_u64, aligned).prop_map(
        move |(burst, more, period, times, to)| {
            let make = |burst| {
                let sustain = Window::new(burst + more, ms(period * times));
                Limit::burst_sustain(Window::new(burst, ms(period)), sustain).align(to)
            };
            (make(burst), make(burst + 1))
        },
    );
    prop_oneof![bucket, window, sliding, pair]
}

fn exempt() -> impl Strategy<Value = Exempt> {
    let types = vec![EntityType::Title, EntityType::GameServer, EntityType::Other, EntityType::Character];
    let ids = || vec(text(), 0..3);
    (ids(), ids(), ids(), vec(select(types), 0..2), vec(pattern(), 0..2), attributes()).prop_map(
        |(titles, namespaces, callers, caller_types, apis, attributes)| Exempt {
            titles,
            namespaces,
            callers,
            caller_types,
            apis,
            attributes,
        },
    )
}

/// The text of one part of an override's key, the `number`th of its rule.
fn part_text(part: &KeyPart, number: usize) -> String {
    match part {
        KeyPart::ClientIp { v6_bits, .. } if *v6_bits < 64 => String::new(),
        KeyPart::ClientIp { .. } => format!("2001:db8:0:{number}::/64"),
        _ => format!("\"{number}\" + é"),
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let cost = prop_oneof![
        (1..5_u64).prop_map(Cost::Fixed),
        Just(Cost::OfRequest),
        text().prop_map(Cost::Attribute),
        Just(Cost::Fixed(u64::MAX)),
    ];
    let on_full = select(vec![OnFull::EvictLeast, OnFull::Refuse, OnFull::Inherit, OnFull::Admit]);
    let what = (vec(pattern(), 0..3), attributes(), key(), vec(limit(), 1..4), exempt(), 0..3_usize);
    let how = (any::<bool>(), cost, any::<bool>(), 1..=100_u8, select(vec![1, 100_000, 1 << 32]), on_full);
    (what, how).prop_map(|(what, how)| {
        let (apis, attributes, mut key, limits, exempt, overrides) = what;
        let (shadow, cost, counts, warn_percent, max_keys, on_full) = how;
        if overrides > 0 {
            key.iter_mut().for_each(|part| {
                if let KeyPart::ClientIp { v6_bits, .. } = part {
                    *v6_bits = 64;
                }
            });
        }
        let key = distinct(key);
        let settled = |limit: Limit| {
            if format!("{limit:?}").contains("Bucket") { limit } else { limit.count_refused(counts) }
        };
        let overrides = if key.is_empty() { 0 } else { overrides };
        let overrides = (0..overrides).map(|number| Override {
            key: key.iter().map(|part| part_text(part, number)).collect(),
            limits: limits.iter().map(|&(_, other)| settled(other)).collect(),
        });
        Rule {
            name: String::new(),
            matcher: Matcher { apis, attributes },
            overrides: overrides.collect(),
            key,
            limits: limits.iter().map(|&(limit, _)| settled(limit)).collect(),
            exempt,
            shadow,
            cost,
            on_refusal: if counts { OnRefusal::Count } else { OnRefusal::Ignore },
            warn_percent,
            max_keys,
            on_full,
        }
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let named = vec((text(), rule()), 0..4).prop_map(|rules| {
        let name = |(number, (text, rule)): (usize, (String, Rule))| Rule {
            name: format!("{text}{number}"),
            ..rule
        };
        rules.into_iter().enumerate().map(name).collect::<Vec<_>>()
    });
    let body = prop_oneof![
        Just(None),
        Just(Some(RefusalBody::Fgrl)),
        Just(Some(RefusalBody::FgrlLimitType)),
        Just(Some(RefusalBody::GameBackend)),
        Just(Some(RefusalBody::Problem)),
        Just(Some(RefusalBody::Text)),
    ];
    (prop_oneof![text(), Just(String::new())], any::<bool>(), any::<bool>(), body, named).prop_map(
        |(name, all, first, body, rules)| Rules {
            name,
            counting: if all { Counting::AllOrNothing } else { Counting::EveryRule },
            matching: if first { Matching::First } else { Matching::All },
            body,
            rules,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(rules in rules()) {
        let written = rules.to_toml().unwrap();
        let read = Rules::from_toml(&written, "written.toml");
        prop_assert!(read.is_ok(), "{}\n{written}", read.unwrap_err());
        same(&read.unwrap(), &rules);
        let written = rules.to_json().unwrap();
        let read = Rules::from_json(&written, "written.json");
        prop_assert!(read.is_ok(), "{}\n{written}", read.unwrap_err());
        same(&read.unwrap(), &rules);
        // What is read can be put in force.
        let mut small = rules.clone();
        small.rules.iter_mut().for_each(|rule| rule.max_keys = rule.max_keys.min(100));
        let built = Policy::builder(small).clock(Manual::new()).build();
        prop_assert!(built.is_ok(), "{}\n{written}", built.unwrap_err());
        // Whoever reads a policy is told it in one line each, without a panic.
        let _ = rules.warnings();
        for rule in &rules.rules {
            prop_assert!(rule.sentence().ends_with('.'));
        }
    }
}

#[test]
fn the_shipped_ones_are_written_and_read() {
    for (name, text) in super::shipped() {
        let rules = Rules::from_toml(&text, &name).unwrap();
        same(&toml(&rules.to_toml().unwrap()), &rules);
        same(&Rules::from_json(&rules.to_json().unwrap(), "t").unwrap(), &rules);
    }
}

#[test]
fn a_function_cannot_be_written() {
    let mut rules = Rules::default_policy();
    rules.rules[1].key.push(KeyPart::Custom("mine", std::sync::Arc::new(|_, _| {})));
    let error = rules.to_toml().unwrap_err();
    assert_eq!((error.rule(), rules.to_json()), ("stats-write", Err(error.clone())));
    assert!(error.to_string().contains("rule \"stats-write\" has a key with a part that is a function"));
}

//! How much memory each limiter takes for a key: `cargo test --test bytes_a_key -- --nocapture` prints it.
//!
//! Counted is what is asked for and not given back; what the system's allocator adds to each block (an `ExactLimiter`
//! has one for each key) is not. One test, since the count is of the whole process.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod counting;

use std::hash::Hash;

use counting::held_bytes;
use tidegate::{CarryOver, ExactLimiter, Limit, Limiter, Manual, Rate};

/// Bytes a key of both limiters, each built for as many keys as there are and full of them.
fn bytes_a_key<K: Hash + Eq + Clone>(keys: usize, key: impl Fn(usize) -> K) -> [f64; 2] {
    let limit = Limit::bucket(Rate::per_hour(1), 2);
    let keys: Vec<K> = (0..keys).map(key).collect();
    let share = |bytes: usize| bytes as f64 / keys.len() as f64;
    let before = held_bytes();
    let slots = Limiter::builder(limit).max_keys(keys.len()).seed(1).clock(Manual::new()).build().unwrap();
    let there = keys.iter().filter(|key| slots.allow(key)).count();
    assert!(there > keys.len() * 99 / 100, "{there} of {} have room", keys.len());
    let slots_bytes = held_bytes() - before;
    assert_eq!(share(slots_bytes).floor(), share(slots.bytes()).floor());
    drop(slots);
    assert_eq!(held_bytes(), before);

    let builder = ExactLimiter::<K>::builder(limit).max_keys(keys.len()).seed(1).clock(Manual::new());
    let exact = builder.build().unwrap();
    assert!(keys.iter().all(|key| exact.allow(key)));
    let exact_bytes = held_bytes() - before;
    [slots_bytes, exact_bytes].map(share)
}

/// What a policy notes of a flood of refusals, by ever new keys with long texts, takes as much memory as when nobody listens
/// as when somebody does.
#[cfg(feature = "policy")]
fn what_a_policy_notes_is_bounded() {
    use tidegate::policy::{Cost, EventSettings, KeyPart, Policy, Request, Rule, Rules};

    let rules = || {
        let limit = Limit::bucket(Rate::per_hour(1), 2);
        let rule = Rule {
            cost: Cost::Fixed(3),
            max_keys: 10,
            ..Rule::new("flood", vec![KeyPart::User], vec![limit])
        };
        Rules { rules: vec![rule], ..Rules::default() }
    };
    let padding = "x".repeat(200);
    for listens in [false, true] {
        let plain = held_bytes();
        let policy = Policy::builder(rules()).clock(Manual::new()).build().unwrap();
        let plain = held_bytes() - plain;
        drop(policy);
        let before = held_bytes() + plain;
        let policy =
            Policy::builder(rules()).clock(Manual::new()).events(EventSettings::new()).build().unwrap();
        let at_rest = held_bytes() - before;
        for key in 0..300_000 {
            let user = format!("{key}{padding}");
            // Each comes twice, so that none is as good as another.
            (0..=key % 2).for_each(|_| assert!(!policy.allow(&Request::new("x").user(&user))));
            if listens && key % 40 == 0 {
                policy.drain_events(|_| ());
            }
        }
        assert_eq!(policy.offenders(20).len(), 20);
        let after = held_bytes() - before;
        println!("what a policy notes: {at_rest} bytes at rest, {after} after a flood (drained: {listens})");
        // A megabyte for who is refused most, and another for 4 096 keys whose periods run.
        assert!(at_rest < 1_000_000, "{at_rest}");
        assert!(after < if listens { 3_000_000 } else { 1_000_000 }, "{after}");
    }
}

/// An `ExactLimiter` whose keys come and go gives back what they took.
fn removed_keys_are_freed() {
    const KEYS: usize = 1_000;
    let limit = Limit::bucket(Rate::per_hour(1), 2);
    let before = held_bytes();
    let builder = ExactLimiter::<String>::builder(limit).max_keys(KEYS).clock(Manual::new());
    let limiter = builder.build().unwrap();
    let mut most = 0;
    for round in 0..200 {
        (0..KEYS).for_each(|key| assert!(limiter.allow(&format!("key {key} of round {round}"))));
        most = most.max(held_bytes() - before);
        if round % 2 == 0 {
            assert_eq!(limiter.retain(|_, _| false), KEYS);
        } else {
            let told: Vec<String> = limiter.iter().map(|(key, _)| key).collect();
            assert!(told.iter().all(|key| limiter.remove(key.as_str()).is_some()));
        }
    }
    println!("1,000 text keys replaced 200 times: {most} bytes were held at most");
    // 200,000 keys of 80 bytes and more came by; some wait to be freed together, and there may be an old index.
    assert!(most < 250 * KEYS, "{most} bytes");
    drop(limiter);
    assert!(held_bytes() - before < 64 * 1_024, "{} bytes are left", held_bytes() - before);
}

/// What an override takes, and a set of limits that was once in force.
fn overrides_and_sets_of_limits() {
    const KEYS: u64 = 100_000;
    const CHANGES: u64 = 1_000;
    let limit = |burst| Limit::bucket(Rate::per_hour(1), burst);
    let limiter = Limiter::builder(limit(2)).max_keys(16).max_tiers(9).clock(Manual::new()).build().unwrap();
    limiter.set_override(&KEYS, limit(3)).unwrap();
    let before = held_bytes();
    (0..KEYS).for_each(|key| limiter.set_override(&key, limit(3)).unwrap());
    let each = (held_bytes() - before) as f64 / KEYS as f64;
    println!("an override: {each:.1} bytes");
    assert!((25.0..75.0).contains(&each), "{each}");

    for tiers in [0, 8] {
        let (builder, clock) = (Limiter::builder(limit(2)).max_keys(16).max_tiers(tiers), Manual::new());
        let limiter = builder.clock(clock).build().unwrap();
        (0..tiers).for_each(|_| _ = limiter.tier(limit(5)).unwrap());
        let before = held_bytes();
        (0..CHANGES).for_each(|more| limiter.set_limit(limit(10 + more), CarryOver::KeepUsed).unwrap());
        let each = (held_bytes() - before) as f64 / (CHANGES * (1 + u64::from(tiers))) as f64;
        println!("a change with {tiers} tiers: {each:.1} bytes for each limit");
        assert!((100.0..250.0).contains(&each), "{each}");
    }
}

#[test]
fn both_limiters_take_what_their_pages_say() {
    println!("bytes a key               Limiter  ExactLimiter");
    for keys in [1_000, 100_000, 1_000_000, 1_500_000] {
        let numbers = bytes_a_key(keys, |number| number as u64);
        let texts = bytes_a_key(keys, |number| format!("client-{number:09}"));
        for (name, [slots, exact]) in [("numbers", numbers), ("16-byte texts", texts)] {
            println!("{keys:>9} {name:<14}  {slots:>7.1}  {exact:>12.1}");
            assert!((24.0..26.5).contains(&slots), "{slots}");
        }
        // An entry of 32, a place of 8, and 12 to 24 of an index whose size is a power of two.
        assert!(keys < 100_000 || (52.0..64.0).contains(&numbers[1]), "{numbers:?}");
        let text = texts[1] - numbers[1];
        assert!(
            (30.0..34.0).contains(&text),
            "a text is {text} bytes more: 16 and what a String is more than a number"
        );
    }
    removed_keys_are_freed();
    #[cfg(feature = "policy")]
    what_a_policy_notes_is_bounded();
    overrides_and_sets_of_limits();
}

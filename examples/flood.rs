//! Floods the slot table: keys that have used up their limit must outlive any number of newcomers.
//!
//! ```console
//! $ cargo run --release --example flood
//! ```

#![allow(clippy::cast_possible_truncation, reason = "a few million keys fit")]

use std::time::Instant;

use tidegate::{ConfigError, Limit, Limiter, Rate, Reason};

/// Keys that the table has room for.
const MAX_KEYS: usize = 1_000_000;
/// The limit of each: nothing worth speaking of comes back while the example runs.
const BURST: u64 = 10;

fn limiter() -> Result<Limiter, ConfigError> {
    Limiter::builder(Limit::bucket(Rate::per_hour(1), BURST)).max_keys(MAX_KEYS).build()
}

fn main() -> Result<(), ConfigError> {
    // A quick look takes a tenth: `FLOOD=5 cargo run --release --example flood`, in millions.
    let millions = std::env::var("FLOOD")
        .map_or(50, |text| text.parse::<u64>().expect("FLOOD: a whole number of millions").max(1));
    one_shot_keys(millions * 1_000_000)?;
    drained_keys(3 * MAX_KEYS as u64)?;
    exactly_full()
}

/// Drained keys, then a flood of keys that each ask once.
fn one_shot_keys(flood: u64) -> Result<(), ConfigError> {
    let limiter = limiter()?;
    let drained = 0..1_000_u64;
    let refused = drained.clone().filter(|key| limiter.check_n(key, BURST).is_err()).count();
    assert_eq!(refused, 0);

    let start = Instant::now();
    let turned_away = (0..flood).filter(|key| !limiter.allow(&(key + 1_000_000))).count();
    let ns = start.elapsed().as_nanos() / u128::from(flood);
    let let_in = drained.clone().filter(|key| limiter.allow(key)).count();
    let stats = limiter.stats();
    println!("{} drained keys, then {flood} keys that ask once, {ns} ns each:", drained.count());
    println!("  newcomers refused {turned_away}, drained keys let in early {let_in}");
    println!(
        "  evicted by force {}, forgiving {:.0} limits in all",
        stats.forced_evictions, stats.forgiven_limits
    );
    assert_eq!((turned_away, let_in), (0, 0));
    Ok(())
}

/// Three times as many keys as there is room for, each drained at once.
fn drained_keys(keys: u64) -> Result<(), ConfigError> {
    let limiter = limiter()?;
    let mut is_in = vec![false; keys as usize];
    let mut full = 0_u64;
    for (key, is_in) in is_in.iter_mut().enumerate() {
        match limiter.check_n(&(key as u64), BURST) {
            Ok(_) => *is_in = true,
            Err(denied) => full += u64::from(denied.reason() == Reason::Full),
        }
    }
    let reset =
        is_in.iter().enumerate().filter(|&(key, is_in)| *is_in && limiter.allow(&(key as u64))).count();
    let stats = limiter.stats();
    println!("{keys} keys, each drained, in a table for {MAX_KEYS}:");
    println!("  taken in {}, answered Full {full}, reset {reset}", keys - full);
    assert_eq!((stats.full, stats.forced_evictions, reset), (full, 0, 0));
    Ok(())
}

/// As many keys as there is room for, each drained.
fn exactly_full() -> Result<(), ConfigError> {
    let limiter = limiter()?;
    let full = (0..MAX_KEYS as u64).filter(|key| limiter.check_n(key, BURST).is_err()).count();
    println!("exactly {MAX_KEYS} keys, each drained:");
    println!("  answered Full {full}, {:.4} %", full as f64 * 100.0 / MAX_KEYS as f64);
    assert!(full <= MAX_KEYS / 1_000);
    Ok(())
}

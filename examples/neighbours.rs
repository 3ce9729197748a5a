//! What a flood costs its neighbours: one thread checks 100 known keys and times each check, alone and while another
//! pours new keys through the same table. A thousand keys were drained before; none may be let in.
//!
//! `cargo run --release --example neighbours`

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate::{ConfigError, Limit, Limiter, Rate};

const MAX_KEYS: usize = 1_000_000;
const BURST: u64 = 1_000_000;
const KNOWN: u64 = 100;
/// Where the drained keys and the newcomers begin.
const DRAINED: u64 = 1_000;
const NEWCOMERS: u64 = 1 << 32;
/// How long each of several turns lasts, alone and beside the flood.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 6;

fn main() -> Result<(), ConfigError> {
    let limit = Limit::bucket(Rate::per_hour(1), BURST);
    let limiter = Limiter::builder(limit).max_keys(MAX_KEYS).prefault(true).build()?;
    for key in DRAINED..2 * DRAINED {
        assert!(limiter.check_n(&key, BURST).is_ok());
    }
    // The table is full before anything is timed.
    let mut newcomers = NEWCOMERS..;
    assert!(newcomers.by_ref().take(2 * MAX_KEYS).all(|key| limiter.allow(&key)));

    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let mut poured = 0;
    for _ in 0..TURNS {
        alone.push(Latencies::of(&limiter));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for key in newcomers.by_ref() {
                    assert!(limiter.allow(&key));
                    poured += 1;
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            beside.push(Latencies::of(&limiter));
            is_over.store(true, Ordering::Relaxed);
        });
    }
    let let_in = (DRAINED..2 * DRAINED).filter(|key| limiter.allow(key)).count();

    println!(
        "{KNOWN} known keys, timed one check at a time (the reading of the time in it), {TURNS} turns of {TURN:?}"
    );
    println!("{:>14} {:>8} {:>8} {:>8}", "", "median", "p99", "p99.9");
    let median = |turns: &[Latencies], part: fn(&Latencies) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(part).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for (name, turns) in [("alone", &alone), ("beside a flood", &beside)] {
        let [p50, p99, p999] = [|it: &Latencies| it.p50, |it: &Latencies| it.p99, |it: &Latencies| it.p999]
            .map(|part| median(turns, part));
        println!("{name:>14} {p50:>5.0} ns {p99:>5.0} ns {p999:>5.0} ns");
    }
    let mut ratios: Vec<f64> = beside.iter().zip(&alone).map(|(it, before)| it.p999 / before.p999).collect();
    ratios.sort_by(f64::total_cmp);
    println!("p99.9 beside ÷ alone, of turns that follow each other: {ratios:.1?}");
    println!("{poured} newcomers; {let_in} of {DRAINED} drained keys let in early");
    assert_eq!(let_in, 0);
    Ok(())
}

/// Percentiles of one turn, in nanoseconds.
struct Latencies {
    p50: f64,
    p99: f64,
    p999: f64,
}

impl Latencies {
    fn of(limiter: &Limiter) -> Self {
        let start = Instant::now();
        let mut ns = Vec::with_capacity(1 << 24);
        let mut before = start;
        for key in (0..KNOWN).cycle() {
            let passes = limiter.allow(&key);
            let after = Instant::now();
            assert!(passes, "a known key with most of its burst left");
            ns.push((after - before).as_nanos() as f64);
            before = after;
            if after - start > TURN || ns.len() == ns.capacity() {
                break;
            }
        }
        ns.sort_by(f64::total_cmp);
        let at = |thousandths: usize| ns[(ns.len() - 1) * thousandths / 1000];
        Self { p50: at(500), p99: at(990), p999: at(999) }
    }
}

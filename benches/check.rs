//! One check of an `ExactLimiter`, the clock included: admitted and refused, in a cache and out of it.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidegate::{Alignment, ExactLimiter, Limit, Rate, Window};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits that admit whatever is timed here, and owe something the whole time, so that no key is idle.
const ADMITTING: [(&str, Limit); 2] = [
    ("bucket", Limit::bucket(Rate::per_minute(6), 100_000_000)),
    ("burst + sustain", Limit::burst_sustain(Window::new(1_000_000, HOUR), Window::new(4_000_000, DAY))),
];

/// Limits that one request uses up. Windows open with it: of a million keys with windows of their own, a few
/// would begin anew every second.
const REFUSING: [(&str, Limit); 2] = [
    ("bucket", Limit::bucket(Rate::per_day(1), 1)),
    (
        "burst + sustain",
        Limit::burst_sustain(Window::new(1, HOUR), Window::new(1, DAY)).align(Alignment::FirstRequest),
    ),
];

const KEYS: [(&str, u64); 2] = [("1 k keys", 1_000), ("1 M keys", 1_000_000)];

/// Keys in a stream, a power of two. A stream is read in order, so the next key is always at hand.
const STREAM_LEN: usize = 1 << 20;

fn admitted(criterion: &mut Criterion) {
    time(criterion, "admitted", &ADMITTING, true);
}

fn refused(criterion: &mut Criterion) {
    time(criterion, "refused", &REFUSING, false);
}

fn time(criterion: &mut Criterion, name: &str, limits: &[(&str, Limit)], admits: bool) {
    let mut group = criterion.benchmark_group(name);
    for &(limit_name, limit) in limits {
        for (keys_name, keys) in KEYS {
            let limiter = filled(limit, keys);
            let stream = stream(keys);
            let mut at = 0;
            group.bench_function(BenchmarkId::new(limit_name, keys_name), |bencher| {
                bencher.iter(|| {
                    at = (at + 1) % STREAM_LEN;
                    let answer = limiter.check(black_box(&stream[at]));
                    assert_eq!(answer.is_ok(), admits, "a decision that is not the one to time");
                });
            });
        }
    }
    group.finish();
}

/// A limiter in which every key has made one request.
fn filled(limit: Limit, keys: u64) -> ExactLimiter<u64> {
    let max_keys = usize::try_from(keys).expect("it is at most a million");
    let limiter = ExactLimiter::builder(limit).max_keys(max_keys).build().expect("a sound limit");
    for key in 0..keys {
        assert!(limiter.allow(&key), "the first request of a key passes");
    }
    assert_eq!(limiter.len(), max_keys, "no key is forgotten while the limiter is filled");
    limiter
}

/// Keys in an order without pattern, the same in every run.
fn stream(keys: u64) -> Vec<u64> {
    let mut state = 1_u64;
    let next = || {
        // A linear congruential generator with Knuth's constants, of which the high half is good.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 32) * keys) >> 32
    };
    std::iter::repeat_with(next).take(STREAM_LEN).collect()
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(50);
    targets = admitted, refused
}
criterion_main!(benches);

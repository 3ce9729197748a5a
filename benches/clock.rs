//! What it costs to ask for the time, by each clock and by the standard library for comparison.

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tidegate::{Clock, Precise, Ticking};

fn clock(criterion: &mut Criterion) {
    let (ticking, precise) = (Ticking::new(), Precise::new());
    let mut group = criterion.benchmark_group("clock");
    group.bench_function("Ticking, coarse", |bencher| bencher.iter(|| ticking.coarse()));
    group.bench_function("Ticking, precise", |bencher| bencher.iter(|| ticking.precise()));
    group.bench_function("Precise", |bencher| bencher.iter(|| precise.coarse()));
    group.bench_function("std Instant", |bencher| bencher.iter(Instant::now));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).sample_size(50);
    targets = clock
}
criterion_main!(benches);

//! What a place in a row costs a refusal: refusals of one key a second with staggering ÷ without, each with the wait that it tells
//! and with nothing read of it, on one thread and on all cores. A plain harness: both are timed in one round, turn and turn
//! about, and the figure is the median of the rounds' ratios.
//!
//! ```console
//! $ cargo bench -p tidegate --bench stagger
//! ```

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a bench may stop at the first surprise")]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tidegate::{Denied, Limit, Limiter, Rate, Window};

const REFUSALS: usize = 200_000;
const ROUNDS: usize = 31;

/// A limiter whose only key has nothing left for a long time.
fn dry(limit: Limit, stagger: bool) -> Limiter {
    let limiter = Limiter::builder(limit).max_keys(1_000).stagger(stagger).build().unwrap();
    assert!(limiter.check_n("title", 100).is_ok() && !limiter.allow("title"));
    limiter
}

/// Refusals a second, of so many threads together; each reads its own clock.
fn per_second(limiter: &Limiter, threads: usize, read: fn(&Denied) -> Duration) -> f64 {
    let start = Barrier::new(threads);
    let work = || {
        start.wait();
        let begun = Instant::now();
        for _ in 0..REFUSALS {
            let denied = limiter.check("title").unwrap_err();
            black_box(read(&denied));
        }
        begun.elapsed().as_secs_f64()
    };
    let times: Vec<f64> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    times.iter().map(|seconds| REFUSALS as f64 / seconds).sum()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let hour = Duration::from_secs(3_600);
    let limits = [
        ("bucket", Limit::bucket(Rate::per_hour(1), 100)),
        ("window", Limit::window(Window::new(100, hour))),
        ("burst + sustain", Limit::burst_sustain(Window::new(100, hour), Window::new(200, 20 * hour))),
    ];
    let told: fn(&Denied) -> Duration = |denied| denied.retry_after_staggered().unwrap();
    let nothing: fn(&Denied) -> Duration = |_| Duration::ZERO;
    println!("refusals a second with staggering ÷ without, medians of {ROUNDS} rounds\n");
    println!("{:<16} {:>7}  {:<14} {:>14} {:>6}", "limit", "threads", "read of it", "ns without", "÷");
    for (name, limit) in limits {
        for (read_name, read) in [("the wait", told), ("nothing", nothing)] {
            for threads in [1, cores] {
                let (without, with) = (dry(limit, false), dry(limit, true));
                let mut rates = (Vec::new(), Vec::new());
                for round in 0..ROUNDS {
                    let mut both = [0.0, 0.0];
                    for turn in 0..2 {
                        let which = (round + turn) % 2;
                        both[which] = per_second([&without, &with][which], threads, read);
                    }
                    rates.0.push(threads as f64 / both[0] * 1e9);
                    rates.1.push(both[1] / both[0]);
                }
                let (ns, ratio) = (median(rates.0), median(rates.1));
                println!("{name:<16} {threads:>7}  {read_name:<14} {ns:>14.1} {ratio:>6.2}");
            }
        }
    }
}

//! A soak: many threads on the real clock, on tables so small that keys come and go all the time, with random costs and
//! pauses. What each key is admitted is held against the bound of `docs/contract.md`; one above it, and the status is
//! not zero.
//!
//! ```console
//! $ cargo run --release --example soak -- --seconds 600
//! ```
//!
//! Without an argument it runs for 20 s.

#![allow(clippy::cast_possible_truncation, reason = "numbers of its own, all small")]

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tidegate::{
    Alignment, Clock, ConfigError, Denied, ExactLimiter, Limit, Limiter, OnFull, Pass, Precise, Rate, Reason,
    Stats, Ticking, Window,
};

const THREADS: usize = 8;
/// How long a bucket's leased tokens may be kept.
const LEASE: Duration = Duration::from_millis(1);
const PROGRESS: Duration = Duration::from_secs(10);
/// Keys that a table of either kind has room for: one window of slots, and as many places.
const ROOM: u64 = 32;
/// Keys that are asked for again and again, and those of them that are drained where nothing comes back.
const KEYS: u64 = ROOM + 8;
const DRAINED: u64 = ROOM / 2;
/// Newcomers that nobody has seen before, nor will again.
const NEWCOMERS: u64 = 1 << 32;

/// What a limit lets a key have in a time.
#[derive(Clone, Copy)]
enum Shape {
    Bucket { per_second: u64, burst: u64 },
    Day { burst: u64 },
    Window { limit: u64, ms: u64, align: Alignment },
    Nested { burst: u64, ms: u64, sustain: u64, sustain_ms: u64, align: Alignment },
}

use Shape::{Bucket, Day, Nested};

impl Shape {
    fn limit(self) -> Limit {
        let window = |limit, ms| Window::new(limit, Duration::from_millis(ms));
        match self {
            Bucket { per_second, burst } => Limit::bucket(Rate::per_second(per_second), burst),
            Day { burst } => Limit::bucket(Rate::per_day(1), burst),
            Self::Window { limit, ms, align } => Limit::window(window(limit, ms)).align(align),
            Nested { burst, ms, sustain, sustain_ms, align } => {
                let limit = Limit::burst_sustain(window(burst, ms), window(sustain, sustain_ms));
                limit.align(align).count_refused(false)
            }
        }
    }

    /// The most that fits at once.
    fn burst(self) -> u64 {
        match self {
            Bucket { burst, .. } | Day { burst } | Nested { burst, .. } => burst,
            Self::Window { limit, .. } => limit,
        }
    }

    /// The bound for one key, in a time that includes the lag.
    fn most(self, time: Duration) -> u64 {
        let refilled =
            |tokens: u64, period: Duration| (u128::from(tokens) * time.as_nanos() / period.as_nanos()) as u64;
        let windows = |limit: u64, ms: u64, short: Duration| {
            let period = Duration::from_millis(ms) - short;
            limit * (time.as_nanos().div_ceil(period.as_nanos()) as u64 + 1)
        };
        // A window that opens at a request may be short by a step of its grid, a 64th of the burst period at most.
        let short = |ms, align| match align {
            Alignment::FirstRequest => Duration::from_millis(ms) / 64,
            _ => Duration::ZERO,
        };
        match self {
            Bucket { per_second, burst } => burst + refilled(per_second, Duration::from_secs(1)),
            Day { burst } => burst + refilled(1, Duration::from_secs(86_400)),
            Self::Window { limit, ms, align } => windows(limit, ms, short(ms, align)),
            Nested { burst, ms, sustain, sustain_ms, align } => {
                let short = short(ms, align);
                windows(burst, ms, short).min(windows(sustain, sustain_ms, short))
            }
        }
    }
}

/// What is held against the bound.
#[derive(Clone, Copy, PartialEq)]
enum Law {
    /// Each key, but for what forced evictions forgave.
    Keys,
    /// The sum over all keys: each slot admits what one bucket would, and what was forgiven.
    Sum,
    /// Keys that were drained to begin with, which nothing may evict; and the sum.
    Drained,
}

/// A limiter, and what it was asked and has admitted.
struct Scene {
    name: &'static str,
    shape: Shape,
    law: Law,
    /// Of a hundred checks, those by newcomers.
    newcomers: u64,
    has_lag: bool,
    resolution: Duration,
    check: Box<dyn Fn(u64, u64) -> Result<Pass, Denied> + Send + Sync>,
    stats: Box<dyn Fn() -> Stats + Send + Sync>,
    /// By key, in this turn and in all; and by all newcomers together.
    in_turn: Vec<AtomicU64>,
    in_all: Vec<u64>,
    by_newcomers: AtomicU64,
    next_newcomer: AtomicU64,
    checks: AtomicU64,
    passed: AtomicU64,
    full: AtomicU64,
    over: usize,
    /// How near a key (or the sum) came to the bound of a turn, and of the whole.
    nearest: f64,
    began_ns: u64,
}

impl Scene {
    fn slots<C: Clock + 'static>(
        name: &'static str,
        shape: Shape,
        on_full: OnFull,
        clock: C,
    ) -> Result<Self, ConfigError> {
        let limiter = Limiter::builder(shape.limit()).max_keys(1).on_full(on_full).clock(clock).build()?;
        let limiter: &'static Limiter<C> = Box::leak(Box::new(limiter));
        let check = Box::new(|key, cost| limiter.check_n(&key, cost));
        Ok(Self::new(name, shape, limiter.clock(), limiter.resolution(), check, Box::new(|| limiter.stats())))
    }

    fn exact<C: Clock + 'static>(name: &'static str, shape: Shape, clock: C) -> Result<Self, ConfigError> {
        let builder = ExactLimiter::<u64>::builder(shape.limit()).max_keys(ROOM as usize);
        let limiter: &'static ExactLimiter<u64, C> = Box::leak(Box::new(builder.clock(clock).build()?));
        let check = Box::new(|key, cost| limiter.check_n(&key, cost));
        Ok(Self::new(name, shape, limiter.clock(), limiter.resolution(), check, Box::new(Stats::default)))
    }

    fn new(
        name: &'static str,
        shape: Shape,
        clock: &impl Clock,
        resolution: Duration,
        check: Box<dyn Fn(u64, u64) -> Result<Pass, Denied> + Send + Sync>,
        stats: Box<dyn Fn() -> Stats + Send + Sync>,
    ) -> Self {
        Self {
            name,
            shape,
            law: Law::Keys,
            newcomers: 0,
            has_lag: clock.lag_max() > Duration::ZERO,
            resolution,
            check,
            stats,
            in_turn: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            in_all: vec![0; KEYS as usize],
            by_newcomers: AtomicU64::new(0),
            next_newcomer: AtomicU64::new(NEWCOMERS),
            checks: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            full: AtomicU64::new(0),
            over: 0,
            nearest: 0.0,
            began_ns: 0,
        }
    }
}

/// Every pair of table and limit, on the shared clock or the precise one.
fn scenes() -> Result<Vec<Scene>, ConfigError> {
    use Alignment::{Clock as OnClock, FirstRequest, PerKey};
    let (ticking, precise) = (Ticking::new, Precise::new);
    let bucket = Bucket { per_second: 20_000, burst: 50 };
    let window = |align| Shape::Window { limit: 20, ms: 25, align };
    let nested = |align| Nested { burst: 20, ms: 25, sustain: 100, sustain_ms: 200, align };
    let day = Day { burst: 40 };
    let flood = |scene: Scene, law| Scene { law, newcomers: 60, ..scene };
    Ok(vec![
        Scene::slots("slots, bucket", bucket, OnFull::Refuse, ticking())?,
        Scene::slots("slots, bucket, precise", bucket, OnFull::Refuse, precise())?,
        flood(Scene::slots("slots, bucket, flood", bucket, OnFull::EvictLeast, ticking())?, Law::Sum),
        flood(Scene::slots("slots, bucket, inherit", bucket, OnFull::Inherit, ticking())?, Law::Sum),
        flood(Scene::slots("slots, drained, flood", day, OnFull::EvictLeast, ticking())?, Law::Drained),
        flood(Scene::slots("slots, drained, inherit", day, OnFull::Inherit, ticking())?, Law::Drained),
        Scene::slots("slots, window, clock", window(OnClock), OnFull::Refuse, ticking())?,
        Scene::slots("slots, window, per key", window(PerKey), OnFull::Refuse, ticking())?,
        Scene::slots("slots, window, lazy", window(FirstRequest), OnFull::Refuse, precise())?,
        Scene::slots("slots, nested, per key", nested(PerKey), OnFull::Refuse, ticking())?,
        Scene::slots("slots, nested, lazy", nested(FirstRequest), OnFull::EvictLeast, ticking())?,
        Scene::exact("exact, bucket", bucket, ticking())?,
        flood(Scene::exact("exact, bucket, flood", bucket, precise())?, Law::Sum),
        Scene::exact("exact, window, clock", window(OnClock), ticking())?,
        Scene::exact("exact, window, per key", window(PerKey), precise())?,
        Scene::exact("exact, nested, per key", nested(PerKey), ticking())?,
        Scene::exact("exact, nested, lazy", nested(FirstRequest), ticking())?,
    ])
}

/// Numbers that look random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Stops for a moment now and then, and sometimes for longer than a tick of the shared clock.
    fn maybe_pause(&mut self) {
        match self.roll(1 << 16) {
            0 => thread::sleep(Duration::from_micros(self.roll(30_000))),
            1..32 => thread::sleep(Duration::from_micros(self.roll(500))),
            32..1_024 => thread::yield_now(),
            _ => {}
        }
    }
}

impl Scene {
    /// Drained keys are drained before anybody else comes.
    fn begin(&mut self, counter: &Precise) {
        self.began_ns = counter.precise();
        if self.law == Law::Drained {
            for key in 0..DRAINED {
                assert!((self.check)(key, self.shape.burst()).is_ok());
                self.in_all[key as usize] = self.shape.burst();
            }
        }
    }

    /// One check by one thread: of one of two that many ask for, of any, or of a newcomer.
    fn ask(&self, dice: &mut Dice) {
        let is_new = dice.roll(100) < self.newcomers;
        let key = match dice.roll(2) {
            _ if is_new => self.next_newcomer.fetch_add(1, Relaxed),
            0 => dice.roll(2),
            _ => dice.roll(KEYS),
        };
        let burst = self.shape.burst();
        let cost = match dice.roll(64) {
            0 => 0,
            1 => burst,
            2 => burst + 1 + dice.roll(u64::MAX - burst - 1),
            3..16 => 1 + dice.roll(burst / 4),
            _ => 1,
        };
        self.checks.fetch_add(1, Relaxed);
        match (self.check)(key, cost) {
            Ok(_) if is_new => {
                self.passed.fetch_add(1, Relaxed);
                self.by_newcomers.fetch_add(cost, Relaxed);
            }
            Ok(_) => {
                self.passed.fetch_add(1, Relaxed);
                self.in_turn[key as usize].fetch_add(cost, Relaxed);
            }
            Err(denied) => {
                self.full.fetch_add(u64::from(denied.reason() == Reason::Full), Relaxed);
            }
        }
    }

    /// All threads at this scene for a while; then what came of it is held against the bound. No thread is in a check
    /// at either end, so nothing is tardy.
    fn turn(&mut self, span: Duration, seed: u64, counter: &Precise, ticking: Ticking) {
        let forgiven_before = (self.stats)().forgiven_limits;
        let before_ns = counter.precise();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS as u64 {
                let (scene, start) = (&*self, &start);
                scope.spawn(move || {
                    let mut dice = Dice(seed ^ (thread << 56));
                    start.wait();
                    let until = Instant::now() + span;
                    while Instant::now() < until {
                        for _ in 0..32 {
                            scene.ask(&mut dice);
                            dice.maybe_pause();
                        }
                    }
                });
            }
        });
        let after_ns = counter.precise();
        let lag = if self.has_lag { ticking.lag_max() } else { Duration::ZERO };
        let lease = if matches!(self.shape, Shape::Bucket { .. }) { LEASE } else { Duration::ZERO };
        let lag = lag + lease + self.resolution;
        let since = |ns: u64| Duration::from_nanos(after_ns - ns) + lag;
        let most_in_turn = self.shape.most(since(before_ns));
        let most_in_all = self.shape.most(since(self.began_ns));
        let burst = self.shape.burst() as f64;
        let forgiven_in_all = (self.stats)().forgiven_limits * burst;
        let forgiven_in_turn = forgiven_in_all - forgiven_before * burst;

        let in_turn: Vec<u64> =
            self.in_turn.iter_mut().map(|count| std::mem::take(count.get_mut())).collect();
        self.in_all.iter_mut().zip(&in_turn).for_each(|(all, turn)| *all += turn);
        let in_all = self.in_all.clone();
        let sum = in_turn.iter().sum::<u64>() + self.by_newcomers.swap(0, Relaxed);
        match self.law {
            Law::Keys => {
                self.hold("in a turn", &in_turn, most_in_turn, forgiven_in_turn);
                self.hold("in all", &in_all, most_in_all, forgiven_in_all);
            }
            Law::Drained => self.hold("in all", &in_all[..DRAINED as usize], most_in_all, 0.0),
            Law::Sum => {}
        }
        if self.law != Law::Keys {
            self.hold("together", &[sum], ROOM * most_in_turn, forgiven_in_turn);
        }
    }

    /// Where a key may have been forced out, what that forgave is its own to spend again.
    fn hold(&mut self, when: &str, admitted: &[u64], most: u64, forgiven: f64) {
        let over: Vec<_> = admitted.iter().enumerate().filter(|&(_, &admitted)| admitted > most).collect();
        let excess: u64 = over.iter().map(|&(_, admitted)| admitted - most).sum();
        let largest = admitted.iter().max().map_or(0, |&admitted| admitted);
        self.nearest = self.nearest.max(largest as f64 / (most as f64 + forgiven));
        if excess as f64 > forgiven {
            println!("{}: above {most} {when}, {forgiven} forgiven, (key, admitted): {over:?}", self.name);
            self.over += over.len();
        }
    }
}

/// The number after `--seconds`.
fn seconds() -> Result<u64, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(20),
        ["--seconds", number] => number.parse().map_err(|error| format!("--seconds {number}: {error}")),
        _ => Err("usage: soak [--seconds NUMBER]".into()),
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let span = Duration::from_secs(seconds()?);
    let (counter, ticking) = (Precise::new(), Ticking::new());
    // The clock's thread runs by then, and its lag is on record.
    thread::sleep(Duration::from_millis(20));
    let mut scenes = scenes()?;
    scenes.iter_mut().for_each(|scene| scene.begin(&counter));
    let mut dice = Dice(std::process::id().into());
    let start = Instant::now();
    let mut next_line = PROGRESS;
    let mut number = 0;
    // Every scene has its turn, however short the run.
    while start.elapsed() < span || number < scenes.len() {
        let scene = number % scenes.len();
        number += 1;
        let turn = Duration::from_millis(20 + dice.roll(1_500));
        scenes[scene].turn(turn, dice.roll(u64::MAX), &counter, ticking);
        if start.elapsed() >= next_line {
            next_line += PROGRESS;
            print_sum(start, &scenes, ticking);
        }
    }

    println!(
        "{:<24} {:>12} {:>11} {:>12} {:>10} {:>11} {:>9} {:>8} {:>5}",
        "", "checks", "passed", "refused", "forced out", "Full", "exhausted", "nearest", "over"
    );
    for scene in &scenes {
        let (checks, passed) = (scene.checks.load(Relaxed), scene.passed.load(Relaxed));
        let stats = (scene.stats)();
        println!(
            "{:<24} {checks:>12} {passed:>11} {:>12} {:>10} {:>11} {:>9} {:>8.3} {:>5}",
            scene.name,
            checks - passed,
            stats.forced_evictions,
            scene.full.load(Relaxed),
            stats.exhausted,
            scene.nearest,
            scene.over
        );
    }
    print_sum(start, &scenes, ticking);
    Ok(if scenes.iter().all(|scene| scene.over == 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_sum(start: Instant, scenes: &[Scene], ticking: Ticking) {
    println!(
        "{:>5} s: {:>12} checks, {:>11} passed, {} over their bound; lag {:.1?} at most, {} stalls",
        start.elapsed().as_secs(),
        scenes.iter().map(|scene| scene.checks.load(Relaxed)).sum::<u64>(),
        scenes.iter().map(|scene| scene.passed.load(Relaxed)).sum::<u64>(),
        scenes.iter().map(|scene| scene.over).sum::<usize>(),
        ticking.lag_max(),
        ticking.stalls()
    );
}

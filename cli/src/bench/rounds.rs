//! How the timing is done: in rounds that every workload takes part in, with every number of threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::workload::{Timed, Workload, WrongAnswer};

/// Fewer rounds than this have no median worth the name.
const ROUNDS_MIN: usize = 3;

/// So many rounds, unless slices would be longer or shorter than is useful.
const ROUNDS_WANTED: u32 = 12;

/// Shorter slices are mostly the start of threads; longer ones make rounds few, and tell no more.
const SLICE_MIN: Duration = Duration::from_millis(5);
const SLICE_MAX: Duration = Duration::from_millis(50);

/// How far, in chunks of keys, one slice begins after the one before it: odd and no near fraction of a stream, so
/// that a slice meets keys which were not checked for long.
const PLACE_STEP: usize = 1_265;

/// How far from each other the threads of a slice begin.
const PLACE_THREADS: usize = 673;

/// A workload with so many threads.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// The workload.
    pub workload: &'a Workload<'a>,
    /// Threads that check at once.
    pub threads: usize,
}

/// What all rounds came to.
#[derive(Debug)]
pub struct Rounds {
    /// How long each thread checked in each round.
    pub slice: Duration,
    /// Checks a second of all threads together: for each round, for each cell.
    pub checks_per_s: Vec<Vec<f64>>,
    /// Checks that were timed, and found answered as they must be: for each cell.
    pub checks: Vec<u64>,
}

/// Times all cells in rounds, as many as fit into `budget`, but at least three; `next` is told what comes.
pub(super) fn rounds<'a>(
    cells: &[Cell<'a>],
    budget: Duration,
    mut next: impl FnMut(Cell<'a>),
) -> Result<Rounds, WrongAnswer> {
    let began = Instant::now();
    let slices = u32::try_from(cells.len().max(1)).unwrap_or(u32::MAX).saturating_mul(ROUNDS_WANTED);
    let slice = (budget / slices).clamp(SLICE_MIN, SLICE_MAX);
    let mut rounds = Rounds { slice, checks_per_s: Vec::new(), checks: vec![0; cells.len()] };
    let mut longest = Duration::ZERO;
    // The first round is there to warm up and is dropped.
    for number in 0.. {
        if number > ROUNDS_MIN && began.elapsed() + longest > budget {
            break;
        }
        let round_began = Instant::now();
        let mut round = vec![0.0; cells.len()];
        for turn in 0..cells.len() {
            // Whoever comes first finds the machine as the last round left it: take turns at that.
            let at = (number + turn) % cells.len();
            next(cells[at]);
            let timed = cells[at].slice(slice, number * cells.len() + turn)?;
            round[at] = timed.iter().map(|timed| timed.checks as f64 / timed.elapsed.as_secs_f64()).sum();
            if number > 0 {
                rounds.checks[at] += timed.iter().map(|timed| timed.checks).sum::<u64>();
            }
        }
        longest = longest.max(round_began.elapsed());
        if number > 0 {
            rounds.checks_per_s.push(round);
        }
    }
    Ok(rounds)
}

impl Cell<'_> {
    /// One slice: what each thread did, provided that every check was answered as it must be.
    fn slice(&self, slice: Duration, number: usize) -> Result<Vec<Timed>, WrongAnswer> {
        let (waiting, begun) = (&AtomicUsize::new(self.threads), &OnceLock::new());
        let timed: Vec<Timed> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let place = number * PLACE_STEP + thread * PLACE_THREADS;
                    scope.spawn(move || {
                        start_together(waiting);
                        self.workload.timed(begun, slice, place)
                    })
                })
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.map(|timed| timed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let checks = timed.iter().map(|timed| timed.checks).sum();
        self.workload.asserted(checks, timed.iter().map(|timed| timed.passed).sum())?;
        Ok(timed)
    }
}

/// Returns on every thread at once, when the last of so many has come. It spins, since a thread that has to be
/// woken starts tens of microseconds late, and the first one has no rival until then.
pub fn start_together(waiting: &AtomicUsize) {
    // ORDERING: Relaxed. Nothing is passed on but the count itself.
    waiting.fetch_sub(1, Ordering::Relaxed);
    let mut spins = 0_u32;
    while waiting.load(Ordering::Relaxed) > 0 {
        std::hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(1 << 12) {
            // There may be fewer free cores than threads.
            std::thread::yield_now();
        }
    }
}

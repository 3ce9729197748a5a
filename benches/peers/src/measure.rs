//! How the timing is done: rounds, threads, and the statistics of what they took.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::contestants::{self, Contestant, OURS};
use crate::workload::{STREAM_LEN, Workload};

/// Fewer rounds than this have no spread worth the name.
const ROUNDS_MIN: usize = 3;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Checks of each thread in one round of one contestant. Divides [`STREAM_LEN`].
    pub(crate) checks: usize,
    pub(crate) rounds_max: usize,
    /// All workloads together begin no round after this, once each has had its least.
    pub(crate) time_max: Duration,
}

/// A contestant whose type is hidden from the rounds but not from the timed loop, so that `check` is
/// inlined there as it would be in a server.
pub(crate) trait Runner {
    fn name(&self) -> &'static str;

    /// Checks every key once, all of which must pass and be held.
    fn fill(&self, keys: u32) -> Result<(), Box<dyn Error>>;

    /// Checks each stream on a thread of its own.
    fn round(&self, streams: &[&[u32]]) -> Result<Round, Box<dyn Error>>;
}

/// What one round of one contestant came to.
pub(crate) struct Round {
    /// Nanoseconds a check, the mean of what each thread read from its own clock.
    ns: f64,
    admitted: u64,
}

pub(crate) struct Timed<C>(C);

impl<C: Contestant + 'static> Timed<C> {
    pub(crate) fn boxed(workload: &Workload) -> Result<Box<dyn Runner>, Box<dyn Error>> {
        Ok(Box::new(Self(C::build(workload)?)))
    }
}

impl<C: Contestant> Runner for Timed<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn fill(&self, keys: u32) -> Result<(), Box<dyn Error>> {
        if !(0..keys).all(|key| self.0.check(key.into())) {
            return Err(format!("{} refused the first check of a key", C::NAME).into());
        }
        // A limiter that has dropped keys meanwhile would be timed on a smaller table.
        match self.0.keys_held() {
            Some(held) if held != usize::try_from(keys)? => {
                Err(format!("{} holds {held} of {keys} keys", C::NAME).into())
            }
            _ => Ok(()),
        }
    }

    fn round(&self, streams: &[&[u32]]) -> Result<Round, Box<dyn Error>> {
        let waiting = AtomicUsize::new(streams.len());
        let threads: Vec<(f64, u64)> = std::thread::scope(|scope| {
            let threads: Vec<_> = streams
                .iter()
                .map(|stream| {
                    let waiting = &waiting;
                    scope.spawn(move || {
                        start_together(waiting);
                        self.timed_loop(stream)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a check panicked"))
                .collect::<Result<_, _>>()
        })?;
        let ns = threads.iter().map(|(ns, _)| ns).sum::<f64>() / threads.len() as f64;
        let admitted = threads.iter().map(|(_, admitted)| admitted).sum();
        Ok(Round { ns, admitted })
    }
}

impl<C: Contestant> Timed<C> {
    /// Nanoseconds a check on this thread, and how many passed. A function of its own, so that each
    /// contestant's loop can be found in a profile.
    #[inline(never)]
    fn timed_loop(&self, stream: &[u32]) -> (f64, u64) {
        let contestant = black_box(&self.0);
        let mut admitted = 0;
        let start = Instant::now();
        for &key in stream {
            admitted += u64::from(contestant.check(key.into()));
        }
        (start.elapsed().as_nanos() as f64 / stream.len() as f64, admitted)
    }
}

/// Returns on every thread at once, when the last has come. It spins, since a thread that has to be woken
/// starts tens of microseconds late, and the first one has no rival until then.
fn start_together(waiting: &AtomicUsize) {
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

/// One contestant in one workload.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) threads: usize,
    pub(crate) contestant: &'static str,
    /// Nanoseconds a check: the median of the rounds.
    pub(crate) ns: f64,
    /// The contestant's time ÷ ours: the median of the rounds' own ratios.
    pub(crate) ratio: f64,
    /// The distance between the quartiles of those ratios.
    pub(crate) spread: f64,
}

/// Times every contestant under one workload, in rounds that all take part in, until `time_max`.
pub(crate) fn workload(
    workload: &Workload,
    pace: &Pace,
    time_max: Duration,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let start = Instant::now();
    let streams = workload.streams()?;
    let runners = contestants::line_up(workload)?;
    for runner in &runners {
        runner.fill(workload.keys)?;
    }

    // Rounds of contestants: the first is there to warm up and is dropped.
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    while rounds.len() <= ROUNDS_MIN || (rounds.len() <= pace.rounds_max && start.elapsed() < time_max) {
        let number = rounds.len();
        let from = number * pace.checks % STREAM_LEN;
        let parts: Vec<&[u32]> = streams.iter().map(|stream| &stream[from..from + pace.checks]).collect();
        let mut round = vec![0.0; runners.len()];
        for turn in 0..runners.len() {
            // Whoever comes first finds the machine as the last round left it: take turns at that.
            let index = (number + turn) % runners.len();
            round[index] = checked_round(runners[index].as_ref(), workload, &parts)?;
        }
        rounds.push(round);
    }
    rounds.remove(0);

    let ours = runners.iter().position(|runner| runner.name() == OURS).ok_or("we are missing")?;
    Ok(runners
        .iter()
        .enumerate()
        .map(|(index, runner)| {
            let ns = Quartiles::of(rounds.iter().map(|round| round[index]));
            let ratio = Quartiles::of(rounds.iter().map(|round| round[index] / round[ours]));
            Row {
                workload: workload.name,
                threads: workload.threads,
                contestant: runner.name(),
                ns: ns.median,
                ratio: ratio.median,
                spread: ratio.upper - ratio.lower,
            }
        })
        .collect())
}

/// One round's nanoseconds, provided that every check was decided as the workload says.
fn checked_round(runner: &dyn Runner, workload: &Workload, parts: &[&[u32]]) -> Result<f64, Box<dyn Error>> {
    let round = runner.round(parts)?;
    let checks: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let expected = if workload.admits { checks } else { 0 };
    if round.admitted != expected {
        return Err(format!(
            "{}: {} admitted {} of {checks} checks, not {expected}",
            workload.name,
            runner.name(),
            round.admitted,
        )
        .into());
    }
    Ok(round.ns)
}

struct Quartiles {
    lower: f64,
    median: f64,
    upper: f64,
}

impl Quartiles {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self {
            lower: quantile(&values, 0.25),
            median: quantile(&values, 0.5),
            upper: quantile(&values, 0.75),
        }
    }
}

/// The value below which the given share of `sorted` lies, between two neighbours in proportion.
/// `sorted` is not empty.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    #[allow(clippy::cast_possible_truncation)] // within the slice
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::{Quartiles, quantile};

    #[test]
    fn quartiles_lie_between_neighbours_in_proportion() {
        let quartiles = Quartiles::of([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!((quartiles.lower, quartiles.median, quartiles.upper), (1.75, 2.5, 3.25));
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
    }
}

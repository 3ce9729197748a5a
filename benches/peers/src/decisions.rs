//! Whether each contestant admits what its limit says, on real clocks and with real threads: a limiter that
//! forgets to refuse is quick.

use std::error::Error;
use std::time::{Duration, Instant};

use crate::contestants::{self, Entry, OURS};
use crate::runner::Runner;
use crate::stream::{Part, Stream};
use crate::workload::{Setup, TokenLimit};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// So many keys that some share what they are counted in, where keys are not told apart.
const KEYS: u32 = 100_000;

/// Nothing comes back while these are asked for.
const BURST_OF_1000: TokenLimit = TokenLimit { tokens: 1, period: DAY, burst: 1_000 };
const BURST_OF_3: TokenLimit = TokenLimit { tokens: 1, period: DAY, burst: 3 };

/// How often the last token of a burst is fought for.
const TRIES: usize = 8;

/// A whole burst each second, which whoever counts in windows can be told as well.
const SECOND: TokenLimit = TokenLimit { tokens: 10_000, period: Duration::from_secs(1), burst: 10_000 };

/// From when to when all threads ask, after the contestant was built: around the end of a window.
const EDGE: (Duration, Duration) = (Duration::from_millis(970), Duration::from_millis(1_030));

/// How far apart the contestants are built, so that each one's edge comes when nobody else is asked.
const APART: Duration = Duration::from_millis(100);

/// Admitted ÷ due, of one contestant.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) contestant: &'static str,
    /// One key that all threads want: its burst.
    pub(crate) one_key: f64,
    /// Many keys, each asked for more often than it may: their bursts.
    pub(crate) many_keys: f64,
    /// One key as fast as can be for a moment, in which a second ends: a burst, and what came back.
    pub(crate) edge: f64,
    /// By how much `one_key` and `many_keys` may be above 1: what came back meanwhile.
    came_back: [f64; 2],
    /// The same for `many_keys`: what evictions forgave, by the contestant's own count.
    forgiven: f64,
    /// The same for `edge`: threads may read the clock in one order and decide in another, a token each.
    in_flight: f64,
}

impl Verdict {
    pub(crate) fn admits_too_many(&self) -> bool {
        self.one_key > 1.0 + self.came_back[0]
            || self.many_keys > 1.0 + self.came_back[1] + self.forgiven
            || self.edge > 1.0 + self.in_flight
    }

    /// Refuses what nothing but another key can have used up.
    fn refuses_too_many(&self) -> bool {
        self.one_key < 1.0 || self.many_keys < 1.0
    }
}

/// An error if one of ours admits more than is due, or refuses what is.
pub(crate) fn assert_ours(verdicts: &[Verdict]) -> Result<(), Box<dyn Error>> {
    let mut ours = verdicts.iter().filter(|verdict| OURS.contains(&verdict.contestant));
    match ours.find(|verdict| verdict.admits_too_many() || verdict.refuses_too_many()) {
        Some(wrong) => Err(format!("not what is due: {wrong:?}").into()),
        None => Ok(()),
    }
}

/// Asks everybody.
pub(crate) fn verdicts(threads: usize) -> Result<Vec<Verdict>, Box<dyn Error>> {
    let entries = contestants::for_ids(false);
    let edges = edges(&entries, threads)?;
    let mut verdicts = Vec::new();
    for (entry, edge) in entries.iter().zip(edges) {
        let mut one_key = drained(*entry, BURST_OF_1000, 1, 4_000, threads)?;
        for _ in 1..TRIES {
            // A race is won only now and then: the try that admitted most counts.
            let again = drained(*entry, BURST_OF_1000, 1, 4_000, threads)?;
            if again.share - again.came_back > one_key.share - one_key.came_back {
                one_key = again;
            }
        }
        let many_keys = drained(*entry, BURST_OF_3, KEYS, 4, threads)?;
        verdicts.push(Verdict {
            contestant: many_keys.runner.name(),
            one_key: one_key.share,
            many_keys: many_keys.share,
            edge,
            came_back: [one_key.came_back, many_keys.came_back],
            forgiven: many_keys.runner.forgiven_limits() / f64::from(KEYS),
            in_flight: threads as f64 / f64::from(SECOND.burst),
        });
    }
    Ok(verdicts)
}

/// A contestant whose bursts are spent.
struct Drained {
    runner: Box<dyn Runner>,
    /// Admitted, in bursts of all keys.
    share: f64,
    /// Whole tokens that came back to each key meanwhile, in bursts.
    came_back: f64,
}

/// Every thread asks for all of `keys` so many `times`, more than `limit` allows.
fn drained(
    entry: Entry,
    limit: TokenLimit,
    keys: u32,
    times: u32,
    threads: usize,
) -> Result<Drained, Box<dyn Error>> {
    let streams: Vec<_> = (0..u32::try_from(threads)?).map(|thread| rotations(keys, times, thread)).collect();
    let parts: Vec<_> = streams.iter().map(Stream::whole).collect();
    let runner = entry(&Setup { keys, limit, flooded: false, seed: None })?;
    let start = Instant::now();
    let admitted = runner.round(&parts, false)?.admitted as f64;
    let burst = f64::from(limit.burst);
    let came_back = runner.comes_back(&limit, start.elapsed()).floor() / burst;
    Ok(Drained { runner, share: admitted / (burst * f64::from(keys)), came_back })
}

/// All of `keys` so many `times`, each thread beginning elsewhere.
fn rotations(keys: u32, times: u32, thread: u32) -> Stream {
    let first = thread.wrapping_mul(0x9e37_79b9) % keys;
    Stream::of((0..times).flat_map(|_| (first..keys).chain(0..first)).collect())
}

/// Admitted ÷ due of each contestant around the end of its second.
fn edges(entries: &[Entry], threads: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut built: Vec<(Box<dyn Runner>, Instant)> = Vec::new();
    for entry in entries {
        if let Some((_, last)) = built.last() {
            sleep_until(*last + APART);
        }
        let runner = entry(&Setup { keys: 1, limit: SECOND, flooded: false, seed: None })?;
        built.push((runner, Instant::now()));
    }
    let stream = Stream::of(vec![0; 20_000]);
    let parts: Vec<Part<'_>> = vec![stream.whole(); threads];
    built
        .iter()
        .map(|(runner, at)| {
            sleep_until(*at + EDGE.0);
            let (start, mut admitted) = (Instant::now(), 0);
            while admitted == 0 || at.elapsed() < EDGE.1 {
                admitted += runner.round(&parts, false)?.admitted;
            }
            let due = f64::from(SECOND.burst) + runner.comes_back(&SECOND, start.elapsed());
            Ok(admitted as f64 / due)
        })
        .collect()
}

fn sleep_until(when: Instant) {
    std::thread::sleep(when.saturating_duration_since(Instant::now()));
}

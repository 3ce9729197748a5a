//! Everything that a report says, as plain data: what `--json` prints is this, field by field.

use std::time::Duration;

use serde::{Serialize, Serializer};
use tidegate::ConfigError;

use super::Outcome;
use super::engine::{Answer, Engine, outcome, used_percent};
use super::headroom::Headroom;
use super::strips::{Part, Strips};
use super::timeline::{Timeline, span_without_strays};
use crate::key::ClientKey;
use crate::log::read::{Event, Log, Skips};

/// The result of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Where the log came from.
    pub source: String,
    /// The limit, in the spelling of the command line.
    pub limit: String,
    /// Where windows begin; `None` when the limit has none.
    pub align: Option<&'static str>,
    /// Whether refused requests use up windows; `None` when the limit has none.
    pub refusals_count: Option<bool>,
    /// What keys were hashed with.
    pub seed: u64,
    /// All lines of the log.
    pub lines: u64,
    /// Lines that are no requests.
    pub skipped: u64,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The refused, by what refused them.
    pub refused_by: RefusedBy,
    /// Distinct clients.
    pub clients: u64,
    /// Clients of which at least one request was refused.
    pub clients_refused: u64,
    /// The clients refused most, at most as many as asked for.
    pub top: Vec<TopClient>,
    /// First and last request; `None` without requests.
    pub span: Option<Span>,
    /// What clients used of each part of the limit, at their peaks.
    pub headroom: Vec<Headroom>,
    /// The requests by time.
    pub timeline: Timeline,
    /// The same as it is drawn.
    #[serde(skip)]
    pub strips: Strips,
    /// How many lines were skipped for each reason, the commonest first.
    pub skipped_by: Vec<SkippedBy>,
    /// The first few of the skipped lines.
    pub skipped_first: Vec<SkippedLine>,
    /// Why the log could not be read to its end, if so.
    pub incomplete: Option<String>,
}

/// Refused requests by what refused them; the sum is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusedBy {
    /// By the burst window alone.
    pub burst: u64,
    /// By the sustain window alone.
    pub sustain: u64,
    /// By both windows at once.
    pub both: u64,
    /// By a limit that has one part: a bucket or a window.
    pub limit: u64,
    /// For want of room for the client.
    pub full: u64,
}

/// One client among those refused most.
#[derive(Clone, Debug, Serialize)]
pub struct TopClient {
    /// The client.
    pub client: String,
    /// Its requests that passed.
    pub passed: u64,
    /// Its requests that were refused.
    pub refused: u64,
    /// The refused, by what refused them.
    pub refused_by: RefusedBy,
}

/// The time from the first request to the last.
///
/// In JSON these are seconds, with a fraction where there is one: nanoseconds since 1970 are more than
/// the 2^53 up to which many readers of JSON keep whole numbers exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first, in nanoseconds since the Unix epoch.
    #[serde(rename = "first_unix_s", serialize_with = "as_seconds")]
    pub first_unix_ns: u64,
    /// The last, in nanoseconds since the Unix epoch.
    #[serde(rename = "last_unix_s", serialize_with = "as_seconds")]
    pub last_unix_ns: u64,
}

fn as_seconds<S: Serializer>(unix_ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    const SECOND_NS: u64 = 1_000_000_000;
    if unix_ns.is_multiple_of(SECOND_NS) {
        serializer.serialize_u64(unix_ns / SECOND_NS)
    } else {
        serializer.serialize_f64(Duration::from_nanos(*unix_ns).as_secs_f64())
    }
}

/// Lines skipped for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedBy {
    /// The reason.
    pub reason: &'static str,
    /// How many lines.
    pub lines: u64,
}

/// One skipped line.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedLine {
    /// Its number, from 1.
    pub line: u64,
    /// What was wrong with it.
    pub reason: String,
}

impl RefusedBy {
    pub(super) fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => {}
            Outcome::Burst => self.burst += 1,
            Outcome::Sustain => self.sustain += 1,
            Outcome::Both => self.both += 1,
            Outcome::Limit => self.limit += 1,
            Outcome::Full => self.full += 1,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.burst + self.sustain + self.both + self.limit + self.full
    }
}

/// How much of the result to keep.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// What the parts of the limit are called.
    pub parts: &'static [&'static str],
    /// How many of the clients refused most.
    pub top: usize,
    /// The most slots that the timeline may have.
    pub slots_max: usize,
}

/// Replays a log and sums it up; the fields that describe the run itself are left to the caller.
///
/// # Errors
///
/// What the engine finds wrong with the limit.
pub fn summarize(
    log: &Log,
    engine: &Engine,
    detail: Detail,
    tick: impl FnMut(usize),
) -> Result<Summary, ConfigError> {
    let mut tally = Tally::new(log, detail.slots_max);
    engine.replay(log, |event, answer| tally.add(event, answer), tick)?;
    let mut summary = tally.sum(&log.keys, detail.parts, detail.top);
    summary.lines = log.lines;
    summary.skipped = log.skips.total;
    (summary.skipped_by, summary.skipped_first) = skips_of(&log.skips);
    if let (Some(first), Some(last)) = (log.events.first(), log.events.last()) {
        let (first_unix_ns, last_unix_ns) = (first.at_unix_ns, last.at_unix_ns);
        summary.span = Some(Span { first_unix_ns, last_unix_ns });
    }
    Ok(summary)
}

/// Skipped lines by reason, the commonest first, and the first few one by one.
pub(super) fn skips_of(skips: &Skips) -> (Vec<SkippedBy>, Vec<SkippedLine>) {
    let by_kind = skips.by_kind.iter().map(|(reason, lines)| SkippedBy { reason, lines: *lines });
    let mut skipped_by: Vec<SkippedBy> = by_kind.collect();
    skipped_by.sort_by_key(|skipped| std::cmp::Reverse(skipped.lines));
    let first = skips.first.iter();
    let first = first.map(|(line, error)| SkippedLine { line: *line, reason: error.to_string() });
    (skipped_by, first.collect())
}

/// Counts by client and by time while requests are replayed.
struct Tally {
    passed: Vec<u64>,
    refused: Vec<RefusedBy>,
    /// The highest share that each client used, by part of the limit.
    peaks: [Vec<u32>; 2],
    timeline: Timeline,
    strips: Strips,
}

impl Tally {
    fn new(log: &Log, slots_max: usize) -> Self {
        let span = span_without_strays(&log.events, |event| event.at_unix_ns);
        let timeline =
            span.map_or_else(Timeline::default, |(first, last)| Timeline::spanning(first, last, slots_max));
        Tally {
            passed: vec![0; log.keys.len()],
            refused: vec![RefusedBy::default(); log.keys.len()],
            peaks: [vec![0; log.keys.len()], vec![0; log.keys.len()]],
            timeline,
            strips: Strips::spanning(span, [String::new()]),
        }
    }

    fn add(&mut self, event: Event, answer: &Answer) {
        for (peaks, used) in self.peaks.iter_mut().zip(used_percent(answer)) {
            let peak = &mut peaks[event.key as usize];
            *peak = used.max(*peak);
        }
        self.count(event, outcome(answer));
    }

    fn count(&mut self, event: Event, outcome: Outcome) {
        let key = event.key as usize;
        self.strips.add(0, event.at_unix_ns, Part::of(outcome));
        let passed = outcome == Outcome::Passed;
        if passed {
            self.passed[key] += 1;
        } else {
            self.refused[key].add(outcome);
        }
        match self.timeline.slot_mut(event.at_unix_ns) {
            Some(slot) => {
                slot.passed += u64::from(passed);
                slot.refused += u64::from(!passed);
            }
            None => self.timeline.outside += 1,
        }
    }

    fn sum(self, keys: &[ClientKey], parts: &[&'static str], top: usize) -> Summary {
        let mut summary = Summary { timeline: self.timeline, strips: self.strips, ..Summary::default() };
        if !keys.is_empty() {
            let [first, second] = self.peaks;
            let parts = match parts {
                [one] => vec![(*one, first)],
                _ => vec![("burst limit", first), ("sustain limit", second)],
            };
            let headroom = parts.into_iter().map(|(part, peaks)| Headroom::of_clients(part, peaks));
            summary.headroom = headroom.collect();
        }
        summary.clients = keys.len() as u64;
        summary.passed = self.passed.iter().sum();
        let mut most: Vec<(u64, usize)> = Vec::new();
        for (key, refused) in self.refused.iter().enumerate() {
            let by = &mut summary.refused_by;
            by.burst += refused.burst;
            by.sustain += refused.sustain;
            by.both += refused.both;
            by.limit += refused.limit;
            by.full += refused.full;
            if refused.total() > 0 {
                most.push((refused.total(), key));
            }
        }
        summary.refused = summary.refused_by.total();
        summary.clients_refused = most.len() as u64;
        // Among equals the one that came first in the log stands first.
        most.sort_by_key(|(refused, key)| (std::cmp::Reverse(*refused), *key));
        for (refused, key) in most.into_iter().take(top) {
            summary.top.push(TopClient {
                client: keys[key].to_string(),
                passed: self.passed[key],
                refused,
                refused_by: self.refused[key],
            });
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_the_most_refused_stand_first() {
        let events: Vec<Event> =
            (0..6).map(|at| Event { at_unix_ns: u64::from(at) * 1_000_000_000, key: at % 3 }).collect();
        let keys = ["a", "b", "c"].map(ClientKey::from_client).to_vec();
        let log = Log { events, keys, lines: 6, ..Log::default() };
        let mut tally = Tally::new(&log, 60);
        let outcomes =
            [Outcome::Passed, Outcome::Burst, Outcome::Full, Outcome::Passed, Outcome::Limit, Outcome::Both];
        for (event, outcome) in log.events.iter().zip(outcomes) {
            tally.count(*event, outcome);
        }
        let summary = tally.sum(&log.keys, &["bucket"], 1);
        assert_eq!((summary.passed, summary.refused), (2, 4));
        let by = RefusedBy { burst: 1, sustain: 0, both: 1, limit: 1, full: 1 };
        assert_eq!(summary.refused_by, by);
        assert_eq!((summary.clients, summary.clients_refused), (3, 2));
        assert_eq!(summary.top.len(), 1);
        assert_eq!((summary.top[0].client.as_str(), summary.top[0].refused), ("b", 2));
        let timed: u64 = summary.timeline.slots.iter().map(|slot| slot.passed + slot.refused).sum();
        assert_eq!(timed, 6);
    }
}

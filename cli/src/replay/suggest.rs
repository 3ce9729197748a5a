//! Limits that would have suited a log: the smallest that refuse at most a share of its clients.
//!
//! Every candidate is put to the engine, on the whole log. Two of them are enough to bisect on:
//!
//! * **What is measured.** The search keeps a limit that refuses few enough clients and one that refuses too many, and ends
//!   when they are neighbours. Both were replayed: whatever the limits in between would do, the proposal keeps within the
//!   share, and one less does not.
//! * **What is argued.** No smaller limit would do either, for a larger limit refuses no client that a smaller one does
//!   not. Up to its first refusal a client's state is the same under both but for the limit: all of its requests passed.
//!   So its counts are the same, and a count above the larger limit is above the smaller one; and its bucket holds at
//!   least as much under a larger rate or burst (the larger of two levels stays the larger: both gain, by no less; both
//!   are capped, by no less; both pay one). Its first refusal comes no earlier, or never.
//! * **Where that does not hold.** Windows that open at a client's first request open on a grid that is the coarser the
//!   larger the limit is (at most 1/64 of the period). There a smaller limit might do by chance. The proposal still
//!   keeps within the share.
//!
//! Which of many pairs is proposed: of windows, first the smallest sustain limit, with a burst limit that is never reached
//! before it, then the smallest burst limit beside it. Of buckets that fill up in a minute the smallest; then, with its
//! burst, the smallest rate in whole tokens a minute, and with that rate the smallest burst. Either is such that neither
//! of its two numbers can be one less.

use std::cmp::Reverse;

use indicatif::HumanCount;
use serde::Serialize;
use tidegate::ConfigError;

use super::engine::{Answer, Engine, outcome};
use super::summary::{RefusedBy, SkippedBy, SkippedLine, Span, skips_of};
use crate::args::Align;
use crate::limit_spec::LimitSpec;
use crate::log::read::{Event, Log};

/// The periods of the windows that are proposed.
const BURST_S: u64 = 15;
const SUSTAIN_S: u64 = 300;

/// Of how many sustain windows a log must tell to tell anything.
const WINDOWS_MIN: u64 = 10;

/// A share of clients, exact to a ten-thousandth of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    parts_per_million: u32,
}

impl Share {
    const ALL: u32 = 1_000_000;

    /// How many of so many clients that is, rounded down.
    pub fn of(self, clients: u64) -> u64 {
        let part = u128::from(clients) * u128::from(self.parts_per_million) / u128::from(Self::ALL);
        u64::try_from(part).unwrap_or(clients)
    }

    /// In percent.
    pub fn percent(self) -> f64 {
        f64::from(self.parts_per_million) / 10_000.0
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    /// Percent, from 0 to 100 with at most four decimals; the sign may be left out.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it must be a share of the clients in percent, from 0% to 100%, as 0.1%".to_owned();
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 4 || whole.len() > 3 {
            return Err(wrong());
        }
        let parts_per_million = format!("{whole}{decimals:0<4}").parse().map_err(|_| wrong())?;
        if parts_per_million > Self::ALL { Err(wrong()) } else { Ok(Self { parts_per_million }) }
    }
}

/// What all candidates have in common.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How many clients may be refused.
    pub share: Share,
    /// Where windows begin.
    pub align: Align,
    /// Whether refused requests use up windows.
    pub count_refused: bool,
    /// What clients are hashed with.
    pub seed: u64,
    /// Whether to keep clients whole.
    pub exact: bool,
    /// How many of the clients with the most requests to list.
    pub top: usize,
}

impl Terms {
    fn engine(&self, limit: LimitSpec) -> Engine {
        let counts = self.count_refused && limit.may_count_refused();
        Engine {
            limit: limit.to_limit().align(self.align.to_alignment()).count_refused(counts),
            memory: limit.memory(),
            seed: self.seed,
            max_keys: None,
            exact: self.exact,
        }
    }

    /// What to add to a command line to try a limit on the same terms.
    fn arguments(&self, limit: LimitSpec) -> String {
        let mut line = format!("--limit {limit}");
        if matches!(limit, LimitSpec::BurstSustain { .. }) {
            if self.align != Align::Clock {
                line += &format!(" --align {}", self.align.name());
            }
            if !self.count_refused {
                line += " --free-refusals";
            }
            if self.align == Align::PerKey && self.seed != 0 {
                line += &format!(" --seed {}", self.seed);
            }
        }
        line
    }
}

/// Everything that a report of suggestions says, as plain data: what `--json` prints is this, field by field.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Suggestions {
    /// Where the log came from.
    pub source: String,
    /// Where windows begin.
    pub align: &'static str,
    /// Whether refused requests use up windows.
    pub refusals_count: bool,
    /// What clients were hashed with.
    pub seed: u64,
    /// All lines of the log.
    pub lines: u64,
    /// Lines that are no requests.
    pub skipped: u64,
    /// Lines that are.
    pub requests: u64,
    /// Distinct clients.
    pub clients: u64,
    /// The share of the clients that may be refused, in percent.
    pub share_percent: f64,
    /// How many clients that is.
    pub clients_allowed: u64,
    /// First and last request; `None` without requests.
    pub span: Option<Span>,
    /// Why the proposals tell less than they seem to.
    pub doubts: Vec<String>,
    /// Windows and a bucket; none for a log without requests.
    pub proposals: Vec<Proposal>,
    /// The clients with the most requests, and what the proposals cost them.
    pub heaviest: Vec<Heavy>,
    /// How many lines were skipped for each reason, the commonest first.
    pub skipped_by: Vec<SkippedBy>,
    /// The first few of the skipped lines.
    pub skipped_first: Vec<SkippedLine>,
    /// Why the log could not be read to its end, if so.
    pub incomplete: Option<String>,
}

/// A limit, and what it did to the log.
#[derive(Clone, Debug, Serialize)]
pub struct Proposal {
    /// The limit, in the spelling of the command line.
    pub limit: String,
    /// The same as arguments that try it on the same terms.
    pub arguments: String,
    /// How many times the log was replayed to find it.
    pub replays: u64,
    /// Clients of which at least one request was refused.
    pub clients_refused: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Those by what refused them.
    pub refused_by: RefusedBy,
}

/// One of the clients with the most requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heavy {
    /// The client.
    pub client: String,
    /// Its requests.
    pub requests: u64,
    /// How many of them each proposal refuses, in the order of the proposals.
    pub refused: Vec<u64>,
}

/// Finds limits for a log; where it came from is left to the caller. `tick` is told from time to time how many requests
/// of the replay under way are done.
///
/// # Errors
///
/// What the engine finds wrong with a limit that the log would need.
pub fn suggest(log: &Log, terms: &Terms, tick: impl FnMut(usize)) -> Result<Suggestions, ConfigError> {
    let mut trial = Trial::new(log, terms, tick);
    let mut found = Suggestions {
        align: terms.align.name(),
        refusals_count: terms.count_refused,
        seed: terms.seed,
        lines: log.lines,
        skipped: log.skips.total,
        requests: log.events.len() as u64,
        clients: log.keys.len() as u64,
        share_percent: terms.share.percent(),
        clients_allowed: trial.allowed,
        incomplete: log
            .broken
            .as_ref()
            .map(|(line, error)| format!("reading stopped in line {line}: {error}")),
        ..Suggestions::default()
    };
    (found.skipped_by, found.skipped_first) = skips_of(&log.skips);
    let (Some(first), Some(last)) = (log.events.first(), log.events.last()) else {
        return Ok(found);
    };
    let span = Span { first_unix_ns: first.at_unix_ns, last_unix_ns: last.at_unix_ns };
    found.span = Some(span);
    found.doubts = doubts(terms.share, found.clients, span);
    let mut refused_of = Vec::new();
    for find in [Trial::windows, Trial::bucket] {
        trial.replays = 0;
        let limit = find(&mut trial)?;
        let replays = trial.replays;
        // One more replay: what is told is what this limit did, not what the search made of it.
        let checked = trial.replay(limit)?;
        refused_of.push(checked.by_client.iter().map(RefusedBy::total).collect::<Vec<u64>>());
        found.proposals.push(Proposal {
            limit: limit.to_string(),
            arguments: terms.arguments(limit),
            replays,
            clients_refused: checked.clients_refused(),
            refused: checked.total.total(),
            refused_by: checked.total,
        });
    }
    found.heaviest = heaviest(log, &trial.requests, terms.top, &refused_of);
    Ok(found)
}

/// What makes proposals doubtful.
fn doubts(share: Share, clients: u64, span: Span) -> Vec<String> {
    let mut doubts = Vec::new();
    let percent = share.percent();
    if share.parts_per_million == Share::ALL {
        doubts.push("every client may be refused, so that the smallest limits of all do".to_owned());
    } else if share.parts_per_million > 0 && share.of(clients) == 0 {
        let needed = u64::from(Share::ALL).div_ceil(u64::from(share.parts_per_million));
        doubts.push(format!(
            "{percent} % of {clients} is less than one client, so that nobody may be refused; \
             it takes {} clients, or a larger share",
            HumanCount(needed)
        ));
    }
    let seconds = (span.last_unix_ns - span.first_unix_ns) / 1_000_000_000;
    if seconds < WINDOWS_MIN * SUSTAIN_S {
        doubts.push(format!(
            "the log covers {} s, less than {WINDOWS_MIN} sustain windows of {SUSTAIN_S} s; \
             a longer one may need larger limits",
            HumanCount(seconds)
        ));
    }
    doubts
}

/// The clients with the most requests; among equals the one that came first in the log stands first.
fn heaviest(log: &Log, requests: &[u64], top: usize, refused_of: &[Vec<u64>]) -> Vec<Heavy> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|key| Reverse(requests[*key]));
    let heavy = |key: usize| Heavy {
        client: log.keys[key].to_string(),
        requests: requests[key],
        refused: refused_of.iter().map(|refused| refused[key]).collect(),
    };
    order.into_iter().take(top).map(heavy).collect()
}

/// What one limit did.
struct Refusals {
    by_client: Vec<RefusedBy>,
    total: RefusedBy,
}

impl Refusals {
    fn clients_refused(&self) -> u64 {
        self.by_client.iter().filter(|by| by.total() > 0).count() as u64
    }
}

/// Limits tried on one log.
struct Trial<'a, T> {
    log: &'a Log,
    terms: &'a Terms,
    tick: T,
    /// How many clients may be refused.
    allowed: u64,
    /// Of each client.
    requests: Vec<u64>,
    replays: u64,
}

impl<'a, T: FnMut(usize)> Trial<'a, T> {
    fn new(log: &'a Log, terms: &'a Terms, tick: T) -> Self {
        let mut requests = vec![0; log.keys.len()];
        log.events.iter().for_each(|event| requests[event.key as usize] += 1);
        Self { log, terms, tick, allowed: terms.share.of(log.keys.len() as u64), requests, replays: 0 }
    }

    fn windows(&mut self) -> Result<LimitSpec, ConfigError> {
        let sustain =
            self.smallest(None, |sustain| LimitSpec::windows(sustain, BURST_S, sustain, SUSTAIN_S))?;
        let burst =
            self.smallest(Some(sustain), |burst| LimitSpec::windows(burst, BURST_S, sustain, SUSTAIN_S))?;
        Ok(LimitSpec::windows(burst, BURST_S, sustain, SUSTAIN_S))
    }

    fn bucket(&mut self) -> Result<LimitSpec, ConfigError> {
        let filling = self.smallest(None, |tokens| LimitSpec::tokens_a_minute(tokens, tokens))?;
        let rate = self.smallest(Some(filling), |rate| LimitSpec::tokens_a_minute(rate, filling))?;
        let burst = self.smallest(Some(filling), |burst| LimitSpec::tokens_a_minute(rate, burst))?;
        Ok(LimitSpec::tokens_a_minute(rate, burst))
    }

    /// The smallest number, from 1, of which the limit refuses few enough clients; `enough` is one, if it is known.
    fn smallest(
        &mut self,
        enough: Option<u64>,
        limit: impl Fn(u64) -> LimitSpec,
    ) -> Result<u64, ConfigError> {
        let mut too_small = 0;
        let mut enough = match enough {
            Some(enough) => enough,
            None => {
                // Doubled until it is enough: no limit is tried that is more than twice as large as needed.
                let mut number = 1;
                while !self.is_enough(limit(number))? {
                    too_small = number;
                    number *= 2;
                }
                number
            }
        };
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if self.is_enough(limit(middle))? { enough = middle } else { too_small = middle }
        }
        Ok(enough)
    }

    fn is_enough(&mut self, limit: LimitSpec) -> Result<bool, ConfigError> {
        Ok(self.replay(limit)?.clients_refused() <= self.allowed)
    }

    fn replay(&mut self, limit: LimitSpec) -> Result<Refusals, ConfigError> {
        self.replays += 1;
        let mut by_client = vec![RefusedBy::default(); self.log.keys.len()];
        let mut total = RefusedBy::default();
        let count = |event: Event, answer: &Answer| {
            let outcome = outcome(answer);
            by_client[event.key as usize].add(outcome);
            total.add(outcome);
        };
        self.terms.engine(limit).replay(self.log, count, &mut self.tick)?;
        Ok(Refusals { by_client, total })
    }
}

#[cfg(test)]
mod tests;

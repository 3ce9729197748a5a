//! What is told of a play: counted attempt by attempt, summed up at its end.

use std::collections::VecDeque;

use serde::Serialize;

use super::cast::{Cast, Manner};
use super::contestant::{Kind, Shares, Wait};
use super::play::{Answer, Attempt};
use super::reader::size;
use super::scenario::{S, Scenario};

/// What one contestant did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// What limits.
    pub limit: Kind,
    /// What the refused are told.
    pub wait: Wait,
    /// Requests asked, each as often as it was; always `admitted + refused`.
    pub offered: u64,
    /// Requests that got through.
    pub admitted: u64,
    /// Refusals.
    pub refused: u64,
    /// The most that got through in any second, over what the limit admits in a second.
    pub peak_second: f64,
    /// The most that got through in any span of a window's period, over its limit; of windows alone.
    pub peak_period: Option<f64>,
    /// The most devices that obey and came back in any second, over what refills in a second.
    pub second_wave: f64,
    /// The same, of all devices.
    pub second_wave_all: f64,
    /// Refusals for each request that got through, among those who obey, of what was first asked for since the storm began.
    pub refusals_per_success: f64,
    /// From the beginning of the storm until the last of its requests got through, in seconds.
    pub all_served_s: f64,
    /// What the other clients met.
    pub others: Others,
    /// Jain's index of the shares of each client's requests (the partner is one client) that got through in time: 1 if
    /// all fare alike, 1/n if one of n has everything. 1 where nobody gets through in time.
    pub fairness: f64,
    /// Second after second.
    #[serde(skip)]
    pub timeline: Vec<Slot>,
}

/// What the other clients met: requests that they first asked for while the storm is watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Others {
    /// How many requests.
    pub requests: u64,
    /// The share that got through at the first attempt.
    pub at_once: f64,
    /// The share that got through while the client waited gladly.
    pub in_time: f64,
    /// The wait that 99 of 100 stay within, in seconds.
    pub p99_s: f64,
}

/// What happened in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Requests that got through.
    pub admitted: u64,
    /// Requests that did not.
    pub refused: u64,
}

/// The most that fell in any span of a length, told in the order of time. A span has its beginning and not its end.
#[derive(Debug)]
pub(super) struct Peak {
    span_ns: u64,
    inside: VecDeque<u64>,
    most: usize,
}

impl Peak {
    pub(super) fn new(span_ns: u64) -> Self {
        Peak { span_ns, inside: VecDeque::new(), most: 0 }
    }

    pub(super) fn add(&mut self, at_ns: u64) {
        while self.inside.front().is_some_and(|first| at_ns - first >= self.span_ns) {
            self.inside.pop_front();
        }
        self.inside.push_back(at_ns);
        self.most = self.most.max(self.inside.len());
    }

    pub(super) fn most(&self) -> f64 {
        self.most as f64
    }
}

/// How a client's requests fared that are followed.
#[derive(Clone, Copy, Debug, Default)]
struct Fared {
    asked: u64,
    in_time: u64,
}

/// Counts as a play goes on.
pub(super) struct Tally<'a> {
    scenario: &'a Scenario,
    cast: &'a Cast,
    timeline: Vec<Slot>,
    peak_second: Peak,
    peak_period: Peak,
    returned: Peak,
    returned_all: Peak,
    /// Of those who obey, since the storm began.
    obedient: Slot,
    last_sync_ns: u64,
    /// The partner, then each other client.
    fared: Vec<Fared>,
    at_once: u64,
    waits_ns: Vec<u64>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(scenario: &'a Scenario, cast: &'a Cast) -> Self {
        Tally {
            scenario,
            cast,
            timeline: Vec::new(),
            peak_second: Peak::new(S),
            peak_period: Peak::new(scenario.limits.period_s * S),
            returned: Peak::new(S),
            returned_all: Peak::new(S),
            obedient: Slot::default(),
            last_sync_ns: scenario.storm_ns(),
            fared: vec![Fared::default(); 1 + size(scenario.traffic.others)],
            at_once: 0,
            waits_ns: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, attempt: &Attempt) {
        let passed = attempt.answer == Answer::Passed;
        let second = size(attempt.at_ns / S);
        if self.timeline.len() <= second {
            self.timeline.resize(second + 1, Slot::default());
        }
        count(&mut self.timeline[second], passed);
        let manner = self.cast.manner(attempt.caller);
        if passed {
            self.peak_second.add(attempt.at_ns);
            self.peak_period.add(attempt.at_ns);
            if attempt.is_sync {
                self.last_sync_ns = attempt.at_ns;
            }
        }
        if attempt.refusals > 0 && self.is_device(attempt.caller) {
            self.returned_all.add(attempt.at_ns);
            if manner.obeys() {
                self.returned.add(attempt.at_ns);
            }
        }
        if attempt.first_ns >= self.scenario.storm_ns() {
            self.since_the_storm(attempt, manner, passed);
        }
    }

    fn is_device(&self, caller: u32) -> bool {
        u64::from(caller) < self.scenario.traffic.devices
    }

    fn since_the_storm(&mut self, attempt: &Attempt, manner: Manner, passed: bool) {
        if manner.obeys() {
            count(&mut self.obedient, passed);
        }
        let watched_ns = self.scenario.measure.watch_s * S;
        if !passed || attempt.first_ns - self.scenario.storm_ns() >= watched_ns {
            return;
        }
        let wait_ns = attempt.at_ns - attempt.first_ns;
        let devices = self.scenario.traffic.devices;
        let client = u64::from(attempt.caller + 1).saturating_sub(devices);
        let fared = &mut self.fared[size(client)];
        fared.asked += 1;
        fared.in_time += u64::from(wait_ns <= self.scenario.measure.patience_s * S);
        if !self.is_device(attempt.caller) {
            self.at_once += u64::from(attempt.refusals == 0);
            self.waits_ns.push(wait_ns);
        }
    }

    pub(super) fn figures(mut self, limit: Kind, wait: Wait) -> Figures {
        let shares = Shares::new(self.scenario);
        let capacity = self.scenario.limits.capacity_per_s as f64;
        let refill = if limit == Kind::BucketForEach { shares.partner.per_s() } else { capacity };
        let (admitted, refused) = self
            .timeline
            .iter()
            .fold((0, 0), |(admitted, refused), slot| (admitted + slot.admitted, refused + slot.refused));
        self.waits_ns.sort_unstable();
        let requests = self.waits_ns.len() as u64;
        let others = &self.fared[1..];
        let in_time = others.iter().map(|fared| fared.in_time).sum();
        Figures {
            limit,
            wait,
            offered: admitted + refused,
            admitted,
            refused,
            peak_second: self.peak_second.most() / capacity,
            peak_period: limit.is_window().then(|| self.peak_period.most() / shares.window as f64),
            second_wave: self.returned.most() / refill,
            second_wave_all: self.returned_all.most() / refill,
            refusals_per_success: ratio(self.obedient.refused, self.obedient.admitted),
            all_served_s: (self.last_sync_ns - self.scenario.storm_ns()) as f64 / S as f64,
            others: Others {
                requests,
                at_once: ratio(self.at_once, requests),
                in_time: ratio(in_time, requests),
                p99_s: percentile(&self.waits_ns, 99) as f64 / S as f64,
            },
            fairness: jain(&self.fared),
            timeline: self.timeline,
        }
    }
}

fn count(slot: &mut Slot, passed: bool) {
    let counter = if passed { &mut slot.admitted } else { &mut slot.refused };
    *counter += 1;
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The least of sorted values that so many percent of them do not exceed; 0 of none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1).and_then(|at| sorted.get(at)).copied().unwrap_or(0)
}

/// (Σx)² / (n · Σx²) over the shares of those who asked for something.
fn jain(fared: &[Fared]) -> f64 {
    let shares = fared.iter().filter(|fared| fared.asked > 0).map(|fared| ratio(fared.in_time, fared.asked));
    let (count, sum, squares) = shares.fold((0.0, 0.0, 0.0), |(count, sum, squares), share| {
        (count + 1.0, sum + share, squares + share * share)
    });
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(span_ns: u64, times: &[u64]) -> f64 {
        let mut peak = Peak::new(span_ns);
        times.iter().for_each(|at_ns| peak.add(*at_ns));
        peak.most()
    }

    #[test]
    fn a_span_has_its_beginning_and_not_its_end() {
        assert_eq!(peak(10, &[]), 0.0);
        // From 9 on, and from 10 on.
        assert_eq!(peak(10, &[0, 9, 10, 10, 19]), 3.0);
        assert_eq!(peak(10, &[0, 10, 20]), 1.0);
        assert_eq!(peak(10, &[5, 5, 5]), 3.0);
    }

    #[test]
    fn ninety_nine_of_a_hundred_wait_no_longer() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 99), 99);
        assert_eq!((percentile(&[7], 99), percentile(&[], 99)), (7, 0));
        assert_eq!(percentile(&[1, 2], 99), 2);
    }

    #[test]
    fn jains_index_by_hand() {
        let of = |shares: &[(u64, u64)]| {
            let fared: Vec<Fared> = shares.iter().map(|&(in_time, asked)| Fared { asked, in_time }).collect();
            jain(&fared)
        };
        assert_eq!(of(&[(2, 2), (5, 5)]), 1.0);
        // One of four has everything.
        assert_eq!(of(&[(9, 9), (0, 1), (0, 2), (0, 3)]), 0.25);
        // Shares 1 and 1/2: (3/2)² / (2 · 5/4).
        assert_eq!(of(&[(2, 2), (1, 2), (0, 0)]), 0.9);
        assert_eq!(of(&[(0, 1), (0, 0)]), 1.0);
    }
}

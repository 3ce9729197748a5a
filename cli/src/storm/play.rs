//! The play: requests in the order of time, each decided by the engine, and refused ones asked again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Failure;
use super::cast::{Cast, Manner, below};
use super::contestant::{Kind, Server, Wait, ms};
use super::scenario::{Clients, Scenario};
use crate::sample::Dice;

/// More than these are no storm that anybody waits for.
const ATTEMPTS_MAX: u64 = 50_000_000;

/// Sets the dice of the play apart from those of the cast.
const PLAY: u64 = 0x9e37_79b9;

/// One time that a request was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Nanoseconds since the play began.
    pub at_ns: u64,
    /// Numbers requests in the order in which they were first asked for.
    pub request: usize,
    /// Who asks; devices come first.
    pub caller: u32,
    /// Whether it is one of the storm's, and not of the calm.
    pub is_sync: bool,
    /// When it was asked for the first time.
    pub first_ns: u64,
    /// How often it was refused before.
    pub refusals: u32,
    /// What came of it.
    pub answer: Answer,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It got through.
    Passed,
    /// It was refused, with this wait, if one was told, in nanoseconds.
    Refused(Option<u64>),
}

/// A request under way.
#[derive(Clone, Copy)]
struct Request {
    caller: u32,
    is_sync: bool,
    /// How many more the device has to do after this one.
    left: u64,
    first_ns: u64,
    refusals: u32,
}

/// When, which number (so that what is due at one time is done in the order in which it was put down), whose.
type Due = Reverse<(u64, u64, usize)>;

struct Play<'a> {
    scenario: &'a Scenario,
    cast: &'a Cast,
    dice: Dice,
    requests: Vec<Request>,
    due: BinaryHeap<Due>,
    number: u64,
}

/// Plays the storm against one limit with one way of telling waits, and shows `seen` every attempt in the order of time.
///
/// # Errors
/// A limit that the engine cannot keep, or a storm that does not end.
pub fn play(
    scenario: &Scenario,
    cast: &Cast,
    (kind, wait): (Kind, Wait),
    mut seen: impl FnMut(&Attempt),
) -> Result<(), Failure> {
    let server = Server::new(scenario, kind, wait)?;
    let mut play = Play::new(scenario, cast);
    let mut attempts = 0;
    while let Some(Reverse((at_ns, _, number))) = play.due.pop() {
        attempts += 1;
        if attempts > ATTEMPTS_MAX {
            return Err(Failure::Endless { kind, wait, attempts: ATTEMPTS_MAX });
        }
        let Request { caller, is_sync, first_ns, refusals, left } = play.requests[number];
        let answer = match server.decide(caller, at_ns) {
            Ok(()) => Answer::Passed,
            Err(told_ns) => Answer::Refused(told_ns),
        };
        seen(&Attempt { at_ns, request: number, caller, is_sync, first_ns, refusals, answer });
        match answer {
            Answer::Passed if left > 0 => {
                let next_ns = at_ns + ms(scenario.storm.pace_ms);
                play.begin(Request {
                    first_ns: next_ns,
                    refusals: 0,
                    left: left - 1,
                    ..play.requests[number]
                });
            }
            Answer::Passed => {}
            Answer::Refused(told_ns) => {
                let wait_ns = play.wait_ns(cast.manner(caller), told_ns, refusals);
                play.requests[number].refusals += 1;
                play.put(at_ns.saturating_add(wait_ns), number);
            }
        }
    }
    Ok(())
}

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario, cast: &'a Cast) -> Self {
        let dice = Dice::new(scenario.seed ^ PLAY);
        let mut play = Play { scenario, cast, dice, requests: Vec::new(), due: BinaryHeap::new(), number: 0 };
        for arrival in &cast.calm {
            let (caller, first_ns) = (arrival.caller, arrival.at_ns);
            play.begin(Request { caller, is_sync: false, left: 0, first_ns, refusals: 0 });
        }
        let left = scenario.storm.requests - 1;
        for (caller, &first_ns) in (0..).zip(&play.cast.wakes_ns) {
            play.begin(Request { caller, is_sync: true, left, first_ns, refusals: 0 });
        }
        play
    }

    fn begin(&mut self, request: Request) {
        self.requests.push(request);
        self.put(request.first_ns, self.requests.len() - 1);
    }

    fn put(&mut self, at_ns: u64, request: usize) {
        self.number += 1;
        self.due.push(Reverse((at_ns, self.number, request)));
    }

    /// How long after a refusal the client asks again: once the answer has reached it, what it does then, and
    /// never less.
    fn wait_ns(&mut self, manner: Manner, told_ns: Option<u64>, refusals: u32) -> u64 {
        let Clients { round_trip_ms_min, round_trip_ms_max, later_percent, .. } = self.scenario.clients;
        let clients = &self.scenario.clients;
        let spread_ns = ms(round_trip_ms_max - round_trip_ms_min);
        let round_trip_ns = ms(round_trip_ms_min) + below(&mut self.dice, spread_ns);
        let told_ns = told_ns.unwrap_or(ms(clients.habit_ms));
        let pause_ns = match manner {
            Manner::Obey => told_ns,
            Manner::ObeyLater => {
                told_ns.saturating_add(below(&mut self.dice, percent(told_ns, later_percent)))
            }
            Manner::BackOff => {
                let doubled = ms(clients.back_off_first_ms).saturating_mul(1 << refusals.min(31));
                doubled.min(ms(clients.back_off_last_ms))
            }
            Manner::Insist => ms(clients.insist_ms),
        };
        round_trip_ns.saturating_add(pause_ns)
    }
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

//! Who asks: when the calm's requests come, and what each client does when it is refused.

use super::contestant::ms;
use super::reader::size;
use super::scenario::{Clients, S, Scenario};
use crate::sample::Dice;

/// What a client does when it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Comes back when it is told to.
    Obey,
    /// Comes back up to a share of the wait later than it is told to.
    ObeyLater,
    /// Does not listen, and waits twice as long each time.
    BackOff,
    /// Does not listen, and asks again at once.
    Insist,
}

impl Manner {
    /// Whether it heeds the wait.
    pub fn obeys(self) -> bool {
        matches!(self, Manner::Obey | Manner::ObeyLater)
    }
}

/// A request of the calm, before anybody limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at_ns: u64,
    pub(super) caller: u32,
}

/// What all contestants meet alike.
#[derive(Debug)]
pub struct Cast {
    /// Of each caller, devices first.
    manners: Vec<Manner>,
    /// In the order of time.
    pub(super) calm: Vec<Arrival>,
    /// When each device begins.
    pub(super) wakes_ns: Vec<u64>,
}

impl Cast {
    /// What a caller does when it is refused.
    pub fn manner(&self, caller: u32) -> Manner {
        self.manners[caller as usize]
    }

    /// Draws the cast of a scenario by its seed.
    pub fn new(scenario: &Scenario) -> Self {
        let mut dice = Dice::new(scenario.seed);
        let (devices, callers) = (size(scenario.traffic.devices), scenario.callers());
        let mut manners = drawn(&scenario.clients, devices, &mut dice);
        manners.extend(drawn(&scenario.clients, callers - devices, &mut dice));
        let mut calm = Vec::new();
        let traffic = &scenario.traffic;
        let mut flow = |per_s: u64, from: u64, count: u64| {
            for _ in 0..per_s * traffic.length_s {
                let caller = from + below(&mut dice, count);
                let at_ns = below(&mut dice, traffic.length_s * S);
                calm.push(Arrival { at_ns, caller: u32::try_from(caller).unwrap_or(u32::MAX) });
            }
        };
        flow(traffic.device_requests_per_s, 0, traffic.devices);
        flow(traffic.other_requests_per_s, traffic.devices, traffic.others);
        calm.sort_by_key(|arrival| arrival.at_ns);
        let spread_ns = ms(scenario.storm.spread_ms);
        let wakes_ns = (0..devices).map(|_| scenario.storm_ns() + below(&mut dice, spread_ns)).collect();
        Cast { manners, calm, wakes_ns }
    }
}

/// So many clients, shares of which behave as the scenario says, in an order that the dice choose.
fn drawn(clients: &Clients, count: usize, dice: &mut Dice) -> Vec<Manner> {
    let shares = [
        (Manner::Obey, clients.obey_percent),
        (Manner::ObeyLater, clients.obey_later_percent),
        (Manner::BackOff, clients.back_off_percent),
        (Manner::Insist, clients.insist_percent),
    ];
    let (mut all, mut percent) = (Vec::with_capacity(count), 0);
    for (manner, share) in shares {
        percent += share;
        all.resize(count * size(percent) / 100, manner);
    }
    for at in (1..count).rev() {
        all.swap(at, size(below(dice, at as u64 + 1)));
    }
    all
}

/// A number below `end`, as likely as any other to one part in 2^32; of a large range, every so many-th.
pub(super) fn below(dice: &mut Dice, end: u64) -> u64 {
    let drawn = u128::from(dice.below(u32::MAX));
    u64::try_from((drawn * u128::from(end)) >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_scenario_to_one_client() {
        let scenario = Scenario::bundled();
        let cast = Cast::new(&scenario);
        let count = |from: usize, until: usize, manner: Manner| {
            cast.manners[from..until].iter().filter(|other| **other == manner).count()
        };
        let all = [Manner::Obey, Manner::ObeyLater, Manner::BackOff, Manner::Insist];
        assert_eq!(all.map(|manner| count(0, 1_600, manner)), [1_120, 160, 240, 80]);
        assert_eq!(all.map(|manner| count(1_600, 1_800, manner)), [140, 20, 30, 10]);
        assert_eq!(drawn(&scenario.clients, 1, &mut Dice::new(1)).len(), 1);
    }

    #[test]
    fn the_calm_is_as_busy_as_it_is_said_to_be_and_devices_wake_in_a_second() {
        let cast = Cast::new(&Scenario::bundled());
        assert_eq!(cast.calm.len(), 40 * 600);
        assert!(cast.calm.is_sorted_by_key(|arrival| arrival.at_ns));
        let devices = cast.calm.iter().filter(|arrival| arrival.caller < 1_600).count();
        assert_eq!(devices, 30 * 600);
        let halves = cast.calm.partition_point(|arrival| arrival.at_ns < 300 * S);
        assert!((11_500..12_500).contains(&halves), "{halves}");
        assert!(cast.wakes_ns.iter().all(|at_ns| (90 * S..91 * S).contains(at_ns)));
    }
}

//! The shared time between the refresher and checks.
#![cfg(tidegate_loom)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::internals::{Refresher, STALL_NS, SharedTime, TICK_NS};
use tidegate::{Clock, Manual};
use tidegate_loom_tests::{EXECUTIONS_LEAST, explore_rotated, in_threads};

struct Shared {
    time: SharedTime,
    source: Manual,
    refresher: Mutex<Refresher>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { time: SharedTime::new(), source: Manual::new(), refresher: Mutex::default() })
    }
    /// One visit of the refresher; how long it would sleep.
    fn visit(&self) -> u64 {
        self.time.visit(&mut self.refresher.lock().expect("one refresher"), || self.source.coarse())
    }
    fn coarse(&self) -> u64 {
        self.time.coarse(|| self.source.coarse())
    }
    fn precise(&self) -> u64 {
        self.time.precise(|| self.source.coarse())
    }
    fn pass_time(&self, ns: u64) {
        self.source.advance(Duration::from_nanos(ns));
    }
}

/// Whatever the refresher and a precise read do meanwhile: a coarse reading never leads the source,
/// and lags it by no more than the lag that is on record once the time has moved on.
#[test]
fn a_reading_lags_by_what_is_recorded_and_never_leads() {
    explore_rotated("lag is recorded", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let shared = Shared::new();
        shared.visit();
        let it = shared.clone();
        let lags = in_threads(roles, move |role| match role {
            0 => {
                it.pass_time(2 * TICK_NS);
                it.visit();
                it.pass_time(2 * TICK_NS);
                it.visit();
                0
            }
            1 => {
                let reading = || {
                    let before = it.source.coarse();
                    let reading = it.coarse();
                    assert!(reading <= it.source.coarse());
                    before.saturating_sub(reading)
                };
                reading().max(reading())
            }
            _ => {
                assert!(it.precise() <= it.source.coarse());
                0
            }
        });
        shared.pass_time(2 * TICK_NS);
        shared.precise();
        assert!(lags[1] <= shared.time.lag_max_ns(), "a lag of {} ns", lags[1]);
    });
}

/// While the refresher sleeps longer than a tick, nobody takes a time that it is not refreshing:
/// a check that starts after it has gone to sleep reads precisely, whatever other checks did before.
#[test]
fn nobody_takes_the_time_of_a_sleeper() {
    explore_rotated("nobody takes the time of a sleeper", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let shared = Shared::new();
        shared.visit();
        shared.pass_time(2 * TICK_NS);
        let it = shared.clone();
        let slept = in_threads(roles, move |role| match role {
            0 => {
                let mut slept = TICK_NS;
                for _ in 0..3 {
                    slept = it.visit();
                }
                slept
            }
            _ => {
                it.coarse();
                it.precise();
                0
            }
        });
        shared.pass_time(STALL_NS / 2);
        if slept[0] > TICK_NS {
            assert_eq!(shared.coarse(), shared.source.coarse(), "the refresher sleeps {} ns", slept[0]);
        }
    });
}

/// A stall that several threads meet at once is counted once, and its length is on record before
/// anybody is told the new time.
#[test]
fn a_stall_is_healed_once() {
    explore_rotated("a stall is healed once", EXECUTIONS_LEAST, |roles: [usize; 3]| {
        let shared = Shared::new();
        shared.visit();
        // A check answers the mark, so that the refresher is thought to be running.
        shared.pass_time(1);
        shared.coarse();
        shared.pass_time(3 * STALL_NS);
        let it = shared.clone();
        in_threads(roles, move |_| {
            assert!(it.precise() > 3 * STALL_NS);
            assert!(it.coarse() > 3 * STALL_NS, "precise from here on");
            assert!(it.time.lag_max_ns() >= 3 * STALL_NS);
        });
        assert_eq!(shared.time.stalls(), 1);
    });
}

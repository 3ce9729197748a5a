//! Windows on the wall clock, on a clock whose own scale is off by some parts in a million, as a processor's time
//! stamp counter is: their edges follow the wall, forward only.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::time::Duration;

use common::secs;
use tidegate::{Alignment, Clock, ExactLimiter, Limit, Manual, Window};

/// Parts in a million by which the scale of the processors at hand is off.
const DRIFT_PPM: i64 = 28;

/// A clock moved by hand, beside a wall clock that runs `ppm` parts in a million faster.
#[derive(Clone)]
struct Drifting {
    own: Manual,
    ppm: i64,
}

impl Drifting {
    fn wall_ns(&self) -> i128 {
        let own_ns = i128::try_from(self.own.elapsed().as_nanos()).unwrap();
        let start_ns = 1_700_000_000_000_000_000;
        start_ns + own_ns + own_ns * i128::from(self.ppm) / 1_000_000
    }
}

impl Clock for Drifting {
    fn coarse(&self) -> u64 {
        self.own.coarse()
    }

    fn precise(&self) -> u64 {
        self.own.precise()
    }

    fn unix(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.wall_ns()).unwrap())
    }

    fn lag_max(&self) -> Duration {
        Duration::ZERO
    }
}

/// Three days of four requests a window: how far from the wall's edge each window ended, and how many passed.
fn three_days(ppm: i64, period: Duration) -> (Vec<Duration>, u64) {
    let clock = Drifting { own: Manual::new(), ppm };
    let limit = Limit::window(Window::new(2, period)).align(Alignment::Clock);
    let limiter = ExactLimiter::<u64>::builder(limit).clock(clock.clone()).build().unwrap();
    let period_ns = i128::try_from(period.as_nanos()).unwrap();
    let (mut errors, mut admitted) = (Vec::new(), 0);
    while clock.own.elapsed() < secs(3 * 86_400) {
        let left = match limiter.check(&7) {
            Ok(pass) => {
                admitted += 1;
                pass.next_after()
            }
            Err(denied) => denied.next_after(),
        };
        let end_ns = clock.wall_ns() + i128::try_from(left.as_nanos()).unwrap();
        let past_ns = end_ns.rem_euclid(period_ns);
        let error_ns = past_ns.min(period_ns - past_ns);
        errors.push(Duration::from_nanos(u64::try_from(error_ns).unwrap()));
        clock.own.advance(period / 4);
    }
    (errors, admitted)
}

#[test]
fn edges_follow_a_wall_clock_that_runs_faster() {
    for period in [secs(15), secs(300)] {
        let (errors, admitted) = three_days(DRIFT_PPM, period);
        // Uncorrected, three days come to seven seconds.
        let worst = errors.iter().max().unwrap();
        let allowed = period * 2 * u32::try_from(DRIFT_PPM).unwrap() / 1_000_000;
        assert!(*worst <= allowed, "{period:?}: {worst:?} off, {allowed:?} allowed");
        let windows = 3 * 86_400 / period.as_secs();
        assert!(admitted >= 2 * windows && admitted <= 2 * (windows + 2), "{admitted} in {windows}");
    }
}

#[test]
fn a_wall_clock_that_runs_slower_never_opens_a_window_twice() {
    for period in [secs(15), secs(300)] {
        let (_, admitted) = three_days(-DRIFT_PPM, period);
        let windows = 3 * 86_400 / period.as_secs();
        assert!(admitted <= 2 * (windows + 2), "{admitted} in {windows}");
        assert!(admitted >= 2 * (windows - 2), "{admitted} in {windows}");
    }
}

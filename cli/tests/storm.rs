//! The play behind `tidegate storm`, attempt by attempt, and its figures.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::HashMap;
use std::sync::LazyLock;

use tidegate_cli::storm::cast::{Cast, Manner};
use tidegate_cli::storm::contestant::{Kind, Wait};
use tidegate_cli::storm::figures::Figures;
use tidegate_cli::storm::play::{Answer, Attempt, play};
use tidegate_cli::storm::scenario::Scenario;
use tidegate_cli::storm::{Report, run};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A tenth of the default storm.
const SMALL: &str = include_str!("small_storm.toml");

fn small() -> Scenario {
    Scenario::from_toml(SMALL, "small.toml").unwrap()
}

fn attempts(scenario: &Scenario, contestant: (Kind, Wait)) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    play(scenario, &Cast::new(scenario), contestant, |attempt| attempts.push(*attempt)).unwrap();
    attempts
}

fn contestants() -> impl Iterator<Item = (Kind, Wait)> {
    Kind::ALL.into_iter().flat_map(|kind| Wait::ALL.map(|wait| (kind, wait)))
}

/// The default storm, played once for all tests.
static DEFAULT: LazyLock<Report> = LazyLock::new(|| run(&Scenario::bundled()).unwrap());

fn of(kind: Kind, wait: Wait) -> &'static Figures {
    DEFAULT.contestants.iter().find(|figures| (figures.limit, figures.wait) == (kind, wait)).unwrap()
}

#[test]
fn every_request_gets_through_exactly_once_and_the_patient_are_patient() {
    let scenario = small();
    let cast = Cast::new(&scenario);
    for contestant in contestants() {
        let attempts = attempts(&scenario, contestant);
        assert!(attempts.is_sorted_by_key(|attempt| attempt.at_ns));
        let mut by_request: HashMap<usize, Vec<Attempt>> = HashMap::new();
        attempts.iter().for_each(|attempt| by_request.entry(attempt.request).or_default().push(*attempt));
        assert_eq!(by_request.len(), 4 * 60 + 160 * 4, "{contestant:?}");
        for attempts in by_request.values() {
            let (last, before) = attempts.split_last().unwrap();
            assert_eq!(last.answer, Answer::Passed);
            assert!(before.iter().all(|attempt| attempt.answer != Answer::Passed), "{before:?}");
            assert_eq!(attempts[0].at_ns, attempts[0].first_ns);
            for (at, pair) in attempts.windows(2).enumerate() {
                assert_eq!(pair[1].refusals, u32::try_from(at).unwrap() + 1);
                let waited_ns = pair[1].at_ns - pair[0].at_ns;
                let Answer::Refused(told) = pair[0].answer else { panic!() };
                let least_ns = match cast.manner(pair[0].caller) {
                    Manner::Obey | Manner::ObeyLater => told.unwrap_or(S),
                    Manner::BackOff => S << at.min(5),
                    Manner::Insist => 100 * MS,
                };
                // The answer takes 20 to 80 ms to the client; only some come later than that.
                let most_ns = match cast.manner(pair[0].caller) {
                    Manner::ObeyLater => least_ns + least_ns / 5,
                    _ => least_ns,
                };
                let range = least_ns + 20 * MS..most_ns + 80 * MS;
                assert!(range.contains(&waited_ns), "{contestant:?}: {pair:?}");
            }
        }
    }
}

#[test]
fn a_device_asks_for_its_next_a_second_after_it_got_through() {
    let scenario = small();
    for contestant in [(Kind::FixedWindow, Wait::Exact), (Kind::BucketForEach, Wait::Staggered)] {
        let mut begun: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut passed: HashMap<u32, Vec<u64>> = HashMap::new();
        for attempt in attempts(&scenario, contestant).iter().filter(|attempt| attempt.is_sync) {
            if attempt.refusals == 0 {
                begun.entry(attempt.caller).or_default().push(attempt.first_ns);
            }
            if attempt.answer == Answer::Passed {
                passed.entry(attempt.caller).or_default().push(attempt.at_ns);
            }
        }
        assert_eq!((begun.len(), passed.len()), (160, 160));
        for (caller, begun) in begun {
            assert!((13 * S..14 * S).contains(&begun[0]));
            let due: Vec<u64> = passed[&caller][..3].iter().map(|at_ns| at_ns + S).collect();
            assert_eq!(begun[1..], due);
        }
    }
}

/// Whether any span from one pass to another has more than `burst + per_s · Δ`, counted in the plainest way.
fn exceeds(times_ns: &[u64], burst: f64, per_s: f64) -> bool {
    (0..times_ns.len()).any(|from| {
        times_ns[from..].iter().zip(1..).any(|(at_ns, count)| {
            let span_s = (at_ns - times_ns[from]) as f64 / S as f64;
            f64::from(count) > burst + per_s * span_s + 1e-6
        })
    })
}

#[test]
fn nothing_is_admitted_beyond_a_limit() {
    let scenario = small();
    for (kind, wait) in contestants() {
        let mut passed: HashMap<u32, Vec<u64>> = HashMap::new();
        for attempt in attempts(&scenario, (kind, wait)) {
            if attempt.answer == Answer::Passed {
                // Devices are one client; clients are one where they share a limit.
                let client = if kind == Kind::BucketForEach { attempt.caller.max(159) } else { 159 };
                passed.entry(client).or_default().push(attempt.at_ns);
            }
        }
        for (client, times_ns) in passed {
            match kind {
                Kind::FixedWindow => {
                    let mut periods: HashMap<u64, u32> = HashMap::new();
                    times_ns.iter().for_each(|at_ns| *periods.entry(at_ns / (10 * S)).or_default() += 1);
                    assert!(periods.values().all(|count| *count <= 100), "{wait:?} {periods:?}");
                }
                Kind::SlidingWindow => assert!(!exceeds(&times_ns, 100.0, 10.0), "{wait:?}"),
                Kind::BucketForAll => assert!(!exceeds(&times_ns, 10.0, 10.0), "{wait:?}"),
                Kind::BucketForEach if client == 159 => assert!(!exceeds(&times_ns, 8.0, 8.0), "{wait:?}"),
                Kind::BucketForEach => assert!(!exceeds(&times_ns, 2.0, 0.1), "{wait:?}"),
            }
        }
    }
}

#[test]
fn figures_are_those_of_the_attempts() {
    let scenario = small();
    let cast = Cast::new(&scenario);
    for figures in run(&scenario).unwrap().contestants {
        let attempts = attempts(&scenario, (figures.limit, figures.wait));
        let count =
            |keep: &dyn Fn(&Attempt) -> bool| attempts.iter().filter(|attempt| keep(attempt)).count() as u64;
        let passed = |attempt: &Attempt| attempt.answer == Answer::Passed;
        assert_eq!(figures.offered, count(&|_| true));
        assert_eq!(figures.admitted, count(&passed));
        assert_eq!(figures.offered, figures.admitted + figures.refused);
        let slots: u64 = figures.timeline.iter().map(|slot| slot.admitted + slot.refused).sum();
        assert_eq!(slots, figures.offered);
        let obedient = |attempt: &Attempt| cast.manner(attempt.caller).obeys() && attempt.first_ns >= 13 * S;
        let wasted = count(&|attempt| obedient(attempt) && !passed(attempt)) as f64
            / count(&|attempt| obedient(attempt) && passed(attempt)) as f64;
        assert_eq!(figures.refusals_per_success, wasted);
        let last = attempts.iter().rfind(|attempt| attempt.is_sync).unwrap();
        assert_eq!(figures.all_served_s, (last.at_ns - 13 * S) as f64 / S as f64);
        // The most in a second, from each attempt on.
        let most = |keep: &dyn Fn(&Attempt) -> bool, span_ns: u64| {
            let times: Vec<u64> = attempts.iter().filter(|attempt| keep(attempt)).map(|a| a.at_ns).collect();
            let within = |from: &u64| times.iter().filter(|at| (*from..from + span_ns).contains(at)).count();
            times.iter().map(within).max().unwrap() as f64
        };
        assert_eq!(figures.peak_second, most(&passed, S) / 10.0);
        assert_eq!(figures.peak_period.is_some(), figures.limit.is_window());
        if let Some(peak) = figures.peak_period {
            assert_eq!(peak, most(&passed, 10 * S) / 100.0);
        }
        if figures.wait != Wait::Exact {
            let refill = if figures.limit == Kind::BucketForEach { 8.0 } else { 10.0 };
            let returned = |attempt: &Attempt| {
                attempt.refusals > 0 && attempt.caller < 160 && cast.manner(attempt.caller).obeys()
            };
            assert_eq!(figures.second_wave, most(&returned, S) / refill);
        }
    }
}

#[test]
fn the_default_storm_shows_what_it_is_for() {
    let fixed = of(Kind::FixedWindow, Wait::PeriodEnd);
    assert!((1.9..=2.0).contains(&fixed.peak_period.unwrap()), "{fixed:?}");
    // A fixed window's shortest wait is its end.
    let exact = of(Kind::FixedWindow, Wait::Exact);
    assert_eq!((fixed.second_wave, fixed.all_served_s), (exact.second_wave, exact.all_served_s));
    for kind in Kind::ALL {
        let ends = of(kind, Wait::PeriodEnd);
        assert!(ends.second_wave >= 10.0, "{ends:?}");
        let staggered = of(kind, Wait::Staggered);
        assert!(staggered.second_wave <= 1.2, "{staggered:?}");
        assert!(staggered.refusals_per_success <= 1.1, "{staggered:?}");
    }
    for wait in Wait::ALL {
        let each = of(Kind::BucketForEach, wait);
        assert!(each.others.at_once >= 0.999 && each.others.in_time >= 0.999, "{each:?}");
    }
    for wait in [Wait::None, Wait::Exact] {
        let all = of(Kind::BucketForAll, wait);
        assert!(all.others.at_once < 0.05 && all.others.in_time < 0.25, "{all:?}");
    }
}

#[test]
fn a_seed_decides_everything() {
    let scenario = small();
    let report = run(&scenario).unwrap();
    assert_eq!(report, run(&scenario).unwrap());
    let other = Scenario { seed: 6, ..scenario };
    assert_ne!(report.contestants, run(&other).unwrap().contestants);
}

#[test]
fn whole_seconds_are_the_exact_wait_rounded_up() {
    let mut scenario = small();
    let first_wait = |scenario: &Scenario, wait: Wait| {
        let attempts = attempts(scenario, (Kind::BucketForAll, wait));
        let told = attempts.iter().find_map(|attempt| match attempt.answer {
            Answer::Refused(told) => told,
            Answer::Passed => None,
        });
        let all = attempts.iter().all(|attempt| match attempt.answer {
            Answer::Refused(Some(told_ns)) => told_ns >= S && told_ns % S == 0,
            _ => true,
        });
        (told.unwrap(), all)
    };
    // Until the first refusal both are the same play.
    let (exact_ns, _) = first_wait(&scenario, Wait::Staggered);
    scenario.limits.told = tidegate_cli::storm::scenario::Told::WholeSeconds;
    assert_eq!(first_wait(&scenario, Wait::Staggered), (exact_ns.div_ceil(S) * S, true));
    assert!(first_wait(&scenario, Wait::Exact).1 && first_wait(&scenario, Wait::PeriodEnd).1);
}

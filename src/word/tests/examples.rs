//! Single cases: saturation, phases, errors and the edges of the layout.

use super::*;

fn rule(limit: Limit) -> Rule {
    Rule::new(&limit).unwrap()
}

fn windows(burst: u64, sustain: u64) -> Limit {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(300));
    Limit::burst_sustain(Window::new(burst, short), Window::new(sustain, long))
}

/// A count at its capacity stays there, refuses, and leaves its neighbours alone.
#[test]
fn saturated_counts_refuse_and_never_carry() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let rule = rule(windows(3, 5).align(alignment));
        let Kind::Windows(Windows::Fixed(windowed)) = rule.kind else { panic!("not windowed") };
        let layout = *windowed.layout();
        let now = rule.time().units(900 * SECOND);
        let mut word = 0;
        for _ in 0..200_000 {
            word = rule.decide(word, now, 3).next;
        }
        let opened = layout.unpack(rule.decide(0, now, 1).next);
        let counts = layout.unpack(word);
        assert_eq!((counts.time, counts.index), (opened.time, opened.index));
        assert_eq!(counts.burst, layout.burst_max().min(600_000));
        assert_eq!(counts.sustain, layout.sustain_max().min(600_000));
        let saturated = layout.pack(Counts { burst: u64::MAX, sustain: u64::MAX, ..opened });
        let refused = rule.decide(saturated, now, 1);
        assert_eq!(refused.next, saturated);
        assert_eq!(refused.outcome, Outcome::Exhausted);
        assert_eq!(rule.refusing(saturated, now, 1, true), Refusing { first: true, sustain: true });
    }
}

/// Six of ten, 4 s into a window of 10 s: in the next one they weigh 6 · 10/10, then 6 · 6/10 = 3.6, so 4; the one after
/// has forgotten them.
#[test]
fn what_a_sliding_window_counted_weighs_less_and_less_in_the_next() {
    let rule = rule(Limit::sliding_window(Window::new(10, Duration::from_secs(10))));
    let part = |word, seconds: u64| {
        let part = rule.parts(word, rule.time().units(seconds * SECOND))[0];
        (part.used, rule.time().span_ns(part.next), rule.time().span_ns(part.reset))
    };
    let word = rule.decide(0, rule.time().units(1_004 * SECOND), 6).next;
    let ms = |ms: u64| ms * 1_000_000;
    // One of six less from a sixth of the next window on, that is after 1.666 666 667 s, rounded up.
    assert_eq!(part(word, 1_004), (6, ms(1_011_666) + 666_667, ms(1_020_000)));
    assert_eq!(part(word, 1_009), part(word, 1_004), "nothing changes before the window's end");
    assert_eq!(part(word, 1_010), part(word, 1_004), "and nothing at it");
    assert_eq!(part(word, 1_014), (4, ms(1_015_000), ms(1_020_000)));
    // Three more on top: those stay for the rest of the window, and weigh in the next.
    let more = rule.decide(word, rule.time().units(1_014 * SECOND), 3);
    assert_eq!(more.outcome, Outcome::Pass);
    assert_eq!(part(more.next, 1_014), (7, ms(1_015_000), ms(1_030_000)));
    assert_eq!(part(more.next, 1_020), (3, ms(1_023_333) + 333_334, ms(1_030_000)));
    assert_eq!(part(word, 1_020), (0, ms(1_020_000), ms(1_020_000)));
    // Of ten seven are used; what asks for four waits for one of the six, and what asks for ten for all.
    let now = rule.time().units(1_014 * SECOND);
    let retry = |cost| rule.time().span_ns(rule.retry_at(more.next, now, cost).1);
    let told = [1_015_000_000_000, 1_016_666_666_667, 1_018_333_333_334, 1_020_000_000_000];
    assert_eq!([4, 5, 6, 7].map(retry), told);
    assert_eq!(retry(8), ms(1_023_333) + 333_334, "one of the three is forgotten: 8 and 2");
    assert_eq!(retry(10), ms(1_030_000));
    assert_eq!(rule.idle_from(more.next), rule.time().units(1_030 * SECOND));
}

/// A word that counts in a later window than now has all of its counts weigh in full.
#[test]
fn a_sliding_window_from_the_future_weighs_as_if_no_time_had_passed_in_it() {
    let rule = rule(Limit::sliding_window(Window::new(10, Duration::from_secs(10))));
    let at = |seconds: u64| rule.time().units(seconds * SECOND);
    let word = rule.decide(rule.decide(0, at(1_000), 6).next, at(1_015), 5).next;
    assert_eq!(rule.parts(word, at(1_015))[0].used, 8, "6 · 5/10 and 5");
    for seconds in [10, 995, 1_005, 1_010] {
        assert_eq!(rule.parts(word, at(seconds))[0].used, 11, "6 and 5 at {seconds} s");
        assert_eq!(rule.decide(word, at(seconds), 1), Decided { outcome: Outcome::Exhausted, next: word });
    }
    let spent = rule.decide(word, at(1_015), 2).next;
    assert_eq!(rule.decide(spent, at(1_011), 1).outcome, Outcome::Exhausted);
    assert_eq!(rule.decide(spent, at(1_015), 1).outcome, Outcome::Exhausted, "nothing was minted");
}

/// A count at its capacity refuses in its own window and, where it is counted in full, at the start of the next; and it
/// becomes the previous count as it is.
#[test]
fn saturated_counts_of_a_sliding_window_refuse_and_never_carry() {
    let rule = rule(Limit::sliding_window(Window::new(10, Duration::from_secs(1))).count_refused(true));
    let Kind::Windows(Windows::Sliding(sliding)) = rule.kind else { panic!("not sliding") };
    let layout = *sliding.layout();
    let at = |ms: u64| rule.time().units(ms * 1_000_000);
    let mut word = 0;
    for _ in 0..100_000 {
        word = rule.decide(word, at(900_000), 10).next;
    }
    let counts = SlidingCounts { window: 900, previous: 0, current: layout.count_max() };
    assert_eq!(layout.unpack(word), counts);
    assert!(layout.count_max() < 1_000_000);
    let refused = rule.decide(word, at(900_999), 1);
    assert_eq!(refused, Decided { outcome: Outcome::Exhausted, next: word });
    let part = rule.parts(word, at(900_000))[0];
    assert_eq!((part.used, part.used_max), (layout.count_max(), layout.count_max()));
    assert_eq!(rule.refusing(word, at(900_000), 1, true), Refusing { first: true, sustain: false });
    let next = rule.decide(word, at(901_000), 1);
    assert_eq!(next.outcome, Outcome::Exhausted);
    let counts = SlidingCounts { window: 901, previous: layout.count_max(), current: 1 };
    assert_eq!(layout.unpack(next.next), counts);
    assert_eq!(rule.parts(next.next, at(901_000))[0].used, layout.count_max(), "where it stays");
    let both = layout.pack(SlidingCounts { window: 901, previous: u64::MAX, current: u64::MAX });
    assert_eq!(rule.decide(both, at(901_999), 1), Decided { outcome: Outcome::Exhausted, next: both });
}

/// A sliding window builds for the largest limit that the error allows, and says why it does not open with a request.
#[test]
fn each_slip_in_a_sliding_window_has_its_error() {
    let sliding = |limit, period| Limit::sliding_window(Window::new(limit, period));
    let built = |limit: Limit| Rule::new(&limit).map(|_| ());
    let second = Duration::from_secs(1);
    assert_eq!(built(sliding(0, second)), Err(ConfigError::Zero { field: "window limit" }));
    assert_eq!(built(sliding(1, Duration::ZERO)), Err(ConfigError::ZeroPeriod { field: "window period" }));
    let from_request = sliding(1, second).align(Alignment::FirstRequest);
    assert_eq!(built(from_request), Err(ConfigError::SlidingFromFirstRequest));
    let longest = Duration::from_nanos(HORIZON_LEAST_NS);
    assert_eq!(built(sliding(1, longest)), Ok(()));
    let too_long = built(sliding(1, longest + Duration::from_nanos(1)));
    assert!(
        matches!(too_long, Err(ConfigError::BeyondHorizon { field: "window period", .. })),
        "{too_long:?}"
    );
    for (period, limit_max_told) in [
        (second, 131_070),
        (Duration::from_secs(60), 1_048_574),
        (Duration::from_millis(1), 4_094),
        (Duration::from_nanos(1), 2),
    ] {
        let built = Rule::new(&sliding(u64::MAX, period));
        let Err(ConfigError::TooWide { field: "window limit", limit_max, other: None, .. }) = built else {
            panic!("{built:?}")
        };
        assert_eq!(limit_max, limit_max_told);
        assert!(Rule::new(&sliding(limit_max, period)).is_ok());
        assert!(Rule::new(&sliding(limit_max + 1, period)).is_err());
    }
}

/// The furthest phase at the end of time still has its place in the word of a sliding window, and what it waits for too.
#[test]
fn the_last_moment_of_all_fits_the_word_of_a_sliding_window() {
    for period_ns in [HORIZON_WANTED_NS / ((1 << 26) - 4), HORIZON_LEAST_NS, 1 << 20] {
        let rule = rule(Limit::sliding_window(Window::new(3, Duration::from_nanos(period_ns))));
        let last = rule.moment(u64::MAX, u64::MAX);
        let word = rule.decide(0, last, 2).next;
        assert!(word <= VALUE_MAX);
        assert_eq!(rule.parts(word, last).map(|part| part.used), [2, 2]);
        assert_eq!(rule.decide(word, last, 2).outcome, Outcome::Exhausted);
        assert!(rule.retry_at(word, last, 3).1 > last && rule.idle_from(word) > last);
    }
}

/// A thousand keys do not start again in one instant: their phases spread over the whole period.
#[test]
fn phases_spread_over_the_longest_period() {
    let rule = rule(windows(30, 100));
    let period = rule.parts(0, rule.time().units(900 * SECOND))[1].period;
    let mut phases: Vec<u64> = (0..1000_u64).map(|key| rule.phase(key * ((1 << 48) / 1000))).collect();
    phases.dedup();
    assert_eq!(phases.len(), 1000);
    assert!(phases.iter().all(|&phase| phase < period));
    assert!(phases[999] > period - period / 500);
    assert_eq!(self::rule(windows(30, 100).align(Alignment::Clock)).phase(u64::MAX), 0);
}

/// Wall time is tied to windows on the clock alone: by the burst period, and by the longest.
#[test]
fn only_windows_on_the_clock_are_tied_to_the_wall() {
    let (single, both) = (Window::new(3, Duration::from_secs(15)), windows(3, 5));
    let wall = |limit: Limit, alignment| Rule::wall_periods_ns(&limit.align(alignment));
    assert_eq!(wall(Limit::window(single), Alignment::Clock), Some((15 * SECOND, 15 * SECOND)));
    assert_eq!(wall(both, Alignment::Clock), Some((15 * SECOND, 300 * SECOND)));
    for alignment in [Alignment::PerKey, Alignment::FirstRequest] {
        assert_eq!(wall(Limit::window(single), alignment), None);
        assert_eq!(wall(both, alignment), None);
    }
    let sliding = Limit::sliding_window(single);
    assert_eq!(wall(sliding, Alignment::Clock), Some((15 * SECOND, 15 * SECOND)));
    assert_eq!(wall(sliding, Alignment::PerKey), None);
    assert_eq!(wall(Limit::bucket(Rate::per_second(1), 1), Alignment::Clock), None);
}

/// The grid of openings: never coarser than 1/64 of the burst period, finer when bits allow.
#[test]
fn the_grid_of_openings_is_fine() {
    for limit in
        [windows(30, 100), windows(1_000, 10_000), Limit::window(Window::new(100, Duration::from_secs(60)))]
    {
        let Kind::Windows(Windows::Fixed(windowed)) = rule(limit.align(Alignment::FirstRequest)).kind else {
            panic!("not windowed")
        };
        assert!(windowed.layout().grid_bits() >= 6);
    }
    let opens = rule(windows(30, 100).align(Alignment::FirstRequest));
    for ns in [900 * SECOND, 907 * SECOND + 7, 914_999_999_999] {
        let now = opens.time().units(ns);
        let part = opens.parts(opens.decide(0, now, 1).next, now)[0];
        assert!((part.period - part.period / 64..=part.period).contains(&(part.next - now)), "at {ns} ns");
    }
    let Kind::Windows(Windows::Fixed(windowed)) = opens.kind else { panic!() };
    assert!(windowed.layout().grid_bits() >= 10, "{}", windowed.layout().grid_bits());
}

/// Which windows refuse, and which of them is waited for.
#[test]
fn a_refusal_names_the_windows_that_it_comes_from() {
    let (burst, sustain, both) = (
        Refusing { first: true, sustain: false },
        Refusing { first: false, sustain: true },
        Refusing { first: true, sustain: true },
    );
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        for count_refused in [true, false] {
            let rule = rule(windows(3, 5).align(alignment).count_refused(count_refused));
            let now = rule.time().units(900 * SECOND);
            let later = rule.time().units(915 * SECOND);
            for (cost, refusing) in [(4, burst), (5, burst), (6, both)] {
                assert_eq!(rule.decide(0, now, cost), Decided { outcome: Outcome::TooLarge, next: 0 });
                assert_eq!(rule.refusing(0, now, cost, true), refusing);
            }
            assert_eq!(rule.retry_at(0, now, 3), (WindowName::Burst, now), "nothing to wait for");
            let used = rule.decide(0, now, 3);
            assert_eq!(used.outcome, Outcome::Pass);
            let refused = |word: u64, moment: u64, cost: u64| {
                let decided = rule.decide(word, moment, cost);
                assert_eq!(decided.outcome, Outcome::Exhausted);
                let waits_for = rule.retry_at(decided.next, moment, cost).0;
                (decided.next, rule.refusing(decided.next, moment, cost, true), waits_for)
            };
            if count_refused {
                // 3 + 1, then 3 + 2, then 3 + 3 of 3 and 5.
                let (word, refusing, waits_for) = refused(used.next, now, 1);
                assert_eq!((refusing, waits_for), (burst, WindowName::Burst));
                let (word, refusing, waits_for) = refused(word, now, 1);
                assert_eq!((refusing, waits_for), (burst, WindowName::Sustain), "none is left of 5");
                let (word, refusing, waits_for) = refused(word, now, 1);
                assert_eq!((refusing, waits_for), (both, WindowName::Sustain));
                let (_, refusing, waits_for) = refused(word, later, 1);
                assert_eq!((refusing, waits_for), (sustain, WindowName::Sustain));
            } else {
                for (cost, refusing, waits_for) in
                    [(2, burst, WindowName::Burst), (3, both, WindowName::Sustain)]
                {
                    assert_eq!(refused(used.next, now, cost), (used.next, refusing, waits_for));
                }
                assert_eq!(refused(used.next, later, 3), (used.next, sustain, WindowName::Sustain));
                assert_eq!(rule.decide(used.next, later, 2).outcome, Outcome::Pass);
            }
        }
    }
    let equal = rule(windows(3, 3));
    let now = equal.time().units(900 * SECOND);
    assert_eq!(equal.decide(0, now, 3).outcome, Outcome::Pass, "all of both");
    assert_eq!(equal.decide(0, now, 4).outcome, Outcome::TooLarge);
    assert_eq!(equal.refusing(0, now, 4, true), both);
    let single = rule(Limit::window(Window::new(3, Duration::from_secs(15))));
    let now = single.time().units(900 * SECOND);
    let word = single.decide(single.decide(0, now, 3).next, now, 1).next;
    assert_eq!(single.refusing(word, now, 1, true), burst);
    assert_eq!(single.retry_at(word, now, 1).0, WindowName::Window);
}

#[test]
fn each_slip_in_a_pair_of_windows_has_its_error() {
    let pair = |burst: (u64, u64), sustain: (u64, u64)| {
        let window = |(limit, seconds)| Window::new(limit, Duration::from_secs(seconds));
        Rule::new(&Limit::burst_sustain(window(burst), window(sustain))).map(|_| ())
    };
    let seconds = Duration::from_secs;
    assert_eq!(pair((0, 15), (5, 300)), Err(ConfigError::Zero { field: "burst limit" }));
    assert_eq!(pair((3, 15), (0, 300)), Err(ConfigError::Zero { field: "sustain limit" }));
    assert_eq!(pair((3, 0), (5, 300)), Err(ConfigError::ZeroPeriod { field: "burst period" }));
    assert_eq!(pair((3, 15), (5, 0)), Err(ConfigError::ZeroPeriod { field: "sustain period" }));
    for sustain in [1, 14, 15, 16, 299, 301] {
        let error = ConfigError::NotAMultiple { burst: seconds(15), sustain: seconds(sustain) };
        assert_eq!(pair((3, 15), (5, sustain)), Err(error));
    }
    assert_eq!(pair((3, 15), (2, 300)), Err(ConfigError::SustainBelowBurst { burst: 3, sustain: 2 }));
    assert_eq!(pair((3, 15), (3, 30)), Ok(()));
}

/// Time lasts for the wanted 36 years from the latest start, two longest periods above 0; and the counts get every
/// bit that its periods leave.
#[test]
fn time_takes_its_bits_and_counts_the_rest() {
    for alignment in [Alignment::Clock, Alignment::PerKey] {
        let rule = rule(windows(3, 5).align(alignment));
        assert_eq!(rule.time().end_ns(), HORIZON_WANTED_NS + 2 * 300 * SECOND);
        // Beside the shorter horizon, for limits that would not fit otherwise.
        let end_ns = HORIZON_LEAST_NS + 2 * 300 * SECOND;
        let ticks = end_ns / (15 * SECOND) + 20;
        let free = VALUE_BITS - (u64::BITS - ticks.leading_zeros());
        let built = Rule::new(&windows(3, u64::MAX).align(alignment));
        let Err(ConfigError::TooWide { limit_max, .. }) = built else { panic!("{built:?}") };
        assert_eq!(limit_max, (1 << (free - 3)) - 2, "4 has three bits");
    }
}

/// The furthest phase at the end of time still has its place in the word.
#[test]
fn the_last_moment_of_all_fits_the_word() {
    // Burst periods to the end of time: 10 less than 2^26, and up to 20 more with a phase.
    let period = Duration::from_nanos(HORIZON_WANTED_NS / ((1 << 26) - 50));
    for alignment in [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest] {
        let rule =
            rule(Limit::burst_sustain(Window::new(3, period), Window::new(5, period * 20)).align(alignment));
        let last = rule.moment(u64::MAX, u64::MAX);
        let word = rule.decide(0, last, 2).next;
        assert!(word <= VALUE_MAX);
        assert_eq!(rule.parts(word, last).map(|part| part.used), [2, 2]);
        assert_eq!(rule.decide(word, last, 2).outcome, Outcome::Exhausted);
    }
}

/// Windows whose time leaves no room for any count are told so, not that their limit may be 0.
#[test]
fn periods_that_leave_no_count_are_the_error() {
    let limit = Limit::burst_sustain(
        Window::new(3, Duration::from_nanos(1)),
        Window::new(5, Duration::from_secs(4_000_000)),
    );
    let built = Rule::new(&limit.align(Alignment::FirstRequest));
    assert!(matches!(built, Err(ConfigError::PeriodsTooWide { .. })), "{built:?}");
}

/// What the error says would fit does fit, and one more does not.
#[test]
fn the_largest_limit_that_an_error_allows_builds() {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(300));
    let both = |burst, sustain| Limit::burst_sustain(Window::new(burst, short), Window::new(sustain, long));
    for (burst, sustain) in
        [(1_000_000_000, 10_000_000_000), (10, 1 << 50), (1 << 40, 1 << 40), (1 << 60, 1 << 60)]
    {
        for alignment in [Alignment::Clock, Alignment::FirstRequest] {
            let limit = both(burst, sustain).align(alignment);
            let Err(ConfigError::TooWide { field, limit_max, other: Some((_, other)), .. }) =
                Rule::new(&limit)
            else {
                panic!("{limit:?}")
            };
            let lowered = |by: u64| match field {
                "burst limit" => both(limit_max + by, other).align(alignment),
                _ => both(other, limit_max + by).align(alignment),
            };
            assert!(Rule::new(&lowered(0)).is_ok(), "{:?}", lowered(0));
            assert!(Rule::new(&lowered(1)).is_err(), "{:?}", lowered(1));
        }
    }
    // Beside a sustain limit that leaves room, it is the burst limit that is too large.
    let built = Rule::new(&both(200_000_000, 1_000_000_000).align(Alignment::Clock));
    assert!(matches!(built, Err(ConfigError::TooWide { field: "burst limit", .. })), "{built:?}");
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let limit = |count| Limit::window(Window::new(count, short)).align(alignment);
        let Err(ConfigError::TooWide { limit_max, .. }) = Rule::new(&limit(u64::MAX)) else {
            panic!("it fits")
        };
        assert!(Rule::new(&limit(limit_max)).is_ok() && Rule::new(&limit(limit_max + 1)).is_err());
    }
}

/// A sliding window's word counts in two windows: the last one there is, shifted by a phase, and what is counted in that is
/// forgotten two windows later.
#[test]
fn a_sliding_window_lasts_to_the_end_of_time() {
    for value_bits in [58, 60, VALUE_BITS] {
        let horizon_ns = horizon_wanted_ns(value_bits);
        // Up to seven years, and where the number of the last window is just a power of two.
        let long = (1..700).map(|part| HORIZON_LEAST_NS / 700 * part);
        let tight = (12..30).map(|bits| horizon_ns / ((1 << bits) - 2) + 1);
        let mut built = 0;
        for period_ns in long.chain(tight) {
            let window = Window::new(1, Duration::from_nanos(period_ns));
            let limit = Limit::sliding_window(window).align(Alignment::PerKey);
            let Ok(rule) = Rule::narrow(&limit, value_bits) else { continue };
            built += 1;
            let last = rule.moment(rule.time().end_ns(), u64::MAX);
            let decided = rule.decide(0, last, 1);
            assert_eq!(decided.outcome, Outcome::Pass);
            assert_eq!(rule.parts(decided.next, last)[0].used, 1, "{value_bits} bits, {period_ns} ns");
            let forgotten = rule.idle_from(decided.next);
            assert!(
                forgotten > last && forgotten <= value_max(value_bits),
                "{value_bits} bits, {period_ns} ns"
            );
        }
        assert!(built > 20, "{value_bits} bits: {built}");
    }
}

/// From the latest start: two periods above 0.
#[test]
fn a_sliding_window_lasts_for_36_years() {
    for days in [1, 400] {
        let period = Duration::from_secs(days * 86_400);
        let rule = rule(Limit::sliding_window(Window::new(10, period)));
        let period_ns = u64::try_from(period.as_nanos()).unwrap();
        assert!(rule.time().end_ns() - 2 * period_ns >= HORIZON_WANTED_NS, "{days} days");
    }
}

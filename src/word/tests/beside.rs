//! A word that goes from one limit to another.

use super::*;

const MINUTE: u64 = 60 * SECOND;
const NOW: u64 = 1_000 * MINUTE;
/// As a limiter of a few tiers leaves.
const BITS: u32 = VALUE_BITS - 3;

fn window(limit: u64) -> Window {
    Window::new(limit, Duration::from_secs(60))
}

fn pair(burst: u64, sustain: u64) -> Limit {
    Limit::burst_sustain(Window::new(burst, Duration::from_secs(15)), window(sustain))
}

fn used(rule: &Rule, word: u64) -> [u64; 2] {
    rule.parts(word, rule.moment(NOW, 0)).map(|part| part.used)
}

/// The largest limit that an error names is taken, with the same windows, and one more is not.
#[test]
fn limits_beside_each_other_count_in_the_same_bits() {
    const WIDE: u64 = 1 << 40;
    // Of a period for which a shorter time would leave a bit more to count in.
    let sliding = |limit| Limit::sliding_window(Window::new(limit, Duration::from_secs(30)));
    let burst = |limit: u64| pair(limit, limit.max(5_000));
    type Case<'a> = (Limit, &'a dyn Fn(u64) -> Limit, &'a str, Option<(&'a str, u64)>);
    let cases: [Case<'_>; 4] = [
        (Limit::window(window(5)), &|limit| Limit::window(window(limit)), "window limit", None),
        (sliding(5), &sliding, "window limit", None),
        (pair(5, 5_000), &burst, "burst limit", Some(("sustain limit", WIDE))),
        (pair(5, 9), &|limit| pair(5, limit), "sustain limit", Some(("burst limit", 5))),
    ];
    for (limit, other, name, beside) in cases {
        let rule = Rule::narrow(&limit.count_refused(true), BITS).unwrap();
        let try_it = |limit| rule.beside(&other(limit).count_refused(false));
        let ConfigError::TooWide { field, limit, limit_max, other } = try_it(WIDE).unwrap_err() else {
            panic!("{name}")
        };
        assert_eq!((field, limit, other), (name, WIDE, beside));
        assert!(try_it(limit_max + 1).is_err(), "{name}: {limit_max}");
        let word = rule.decide(0, rule.moment(NOW, 0), 3).next;
        for limit in [7, limit_max] {
            let rule = try_it(limit).unwrap();
            let part = rule.parts(word, rule.moment(NOW, 0))[usize::from(name == "sustain limit")];
            assert_eq!((part.limit, part.used_max), (limit, limit_max + 1), "{name}");
            assert_eq!(used(&rule, word), [3, 3], "{name}");
            assert!(!matches!(&rule.kind, Kind::Windows(windows) if windows.counts_refused()));
        }
    }
    let none = Rule::narrow(&sliding(5), BITS).unwrap().beside(&sliding(0));
    assert_eq!(none.unwrap_err(), ConfigError::Zero { field: "window limit" });
}

/// Two tokens a second, and one in ten seconds.
#[test]
fn what_another_bucket_refills_is_as_many_tokens() {
    let [fast, slow] = [120, 6].map(|rate| Rule::new(&Limit::bucket(Rate::per_minute(rate), 4)).unwrap());
    let tokens = |rule: &Rule, tokens: u64| {
        let Kind::Bucket(bucket) = rule.kind else { panic!("no bucket") };
        tokens * bucket.interval()
    };
    assert_eq!(slow.refilled_by(&fast, NOW, NOW + 3 * SECOND), tokens(&slow, 6));
    assert_eq!(fast.refilled_by(&slow, NOW, NOW + 30 * SECOND), tokens(&fast, 3));
    assert_eq!(fast.refilled_by(&slow, NOW, NOW - SECOND), 0);
    let window = Rule::new(&Limit::window(window(5))).unwrap();
    assert_eq!(window.refilled_by(&fast, NOW, NOW + SECOND), 0);
}

/// What six of ten come to under a limit of five, or what is left of them.
#[test]
fn what_is_used_is_carried_over_as_told() {
    let first = |limit| Limit::window(window(limit)).align(Alignment::FirstRequest);
    let bucket = |limit| Limit::bucket(Rate::per_minute(limit), limit);
    let kinds: [&dyn Fn(u64) -> Limit; 5] = [
        &bucket,
        &first,
        &|limit| pair(limit, limit),
        &|limit| pair(limit, limit).align(Alignment::FirstRequest),
        &|limit| Limit::sliding_window(window(limit)),
    ];
    for (kind, limit) in kinds.into_iter().enumerate() {
        let [ten, five] = [10, 5].map(|tokens| Rule::new(&limit(tokens)).unwrap());
        let word = |rule: &Rule, cost| rule.carry_out(Order::Charge(cost), 0, NOW, 0).next;
        let carried = |to: &Rule, from: &Rule, carry_over, word| {
            let adopted = to.adopt(from, carry_over, word, NOW);
            (to.overdrawn(adopted, to.moment(NOW, 0)), used(to, adopted)[0], adopted == 0)
        };
        let six = word(&ten, 6);
        let is_bucket = kind == 0;
        let kept = if is_bucket { 5 } else { 6 };
        assert_eq!(carried(&five, &ten, CarryOver::KeepUsed, six), (1, kept, false), "{kind}");
        assert_eq!(carried(&five, &ten, CarryOver::Proportional, six), (0, 3, false), "{kind}");
        assert_eq!(carried(&ten, &five, CarryOver::Proportional, word(&five, 3)), (0, 6, false), "{kind}");
        assert_eq!(carried(&five, &ten, CarryOver::Reset, six), (0, 0, true), "{kind}");
        assert_eq!(carried(&five, &ten, CarryOver::KeepUsed, 0), (0, 0, true), "{kind}");
        if !is_bucket {
            // A count at its end is at least that under any limit, and stays there.
            let end = ten.carry_out(Order::Charge(u64::MAX), 0, NOW, 0).next;
            let adopted = five.adopt(&ten, CarryOver::Proportional, end, NOW);
            let part = five.parts(adopted, five.moment(NOW, 0))[0];
            assert_eq!(part.used, part.used_max, "{kind}");
        }
    }
}

/// A word at its end may be of a longer debt than it can tell.
#[test]
fn a_debt_that_was_cut_uses_the_whole_burst() {
    let rule = |burst| Rule::new(&Limit::bucket(Rate::per_minute(60), burst)).unwrap();
    let from = rule(4);
    let (end_ns, last) = (from.time().end_ns(), from.time().value_max());
    let Kind::Bucket(bucket) = from.kind else { panic!("no bucket") };
    let seen = (last - from.time().units(end_ns)) / bucket.interval();
    let to = rule(2 * seen);
    let adopted = to.adopt(&from, CarryOver::KeepUsed, last, end_ns);
    assert_eq!(to.remaining(adopted, to.time().units(end_ns)), 0);
}

/// A grid of openings is as fine as there are bits for, and a window that goes to another stays where it was.
#[test]
fn an_opening_goes_to_another_grid() {
    let rules = [3, 300_000].map(|limit| {
        let limit = Limit::window(window(limit)).align(Alignment::FirstRequest);
        Rule::narrow(&limit, 54).unwrap()
    });
    let grids = rules.map(|rule| match rule.kind {
        Kind::Windows(Windows::Fixed(windowed)) => windowed.layout().grid_bits(),
        _ => panic!("not windowed"),
    });
    assert!(grids[0] > grids[1], "{grids:?}");
    let ns = NOW + 20 * SECOND;
    for [from, to] in [[rules[0], rules[1]], [rules[1], rules[0]]] {
        let word = from.decide(0, from.moment(ns, 0), 2).next;
        let adopted = to.adopt(&from, CarryOver::KeepUsed, word, ns);
        let ends =
            [(from, word), (to, adopted)].map(|(rule, word)| rule.time().span_ns(rule.idle_from(word)));
        assert!(ends[0].abs_diff(ends[1]) <= MINUTE / 64, "{ends:?}");
        assert_eq!(used(&to, adopted)[0], 2);
    }
}

/// Ten a minute leave six seconds between two, fifty an hour 72.
#[test]
fn those_who_wait_come_back_as_far_apart_as_their_cost_takes() {
    let hour = Window::new(50, Duration::from_secs(3_600));
    let both = Limit::burst_sustain(Window::new(10, Duration::from_secs(60)), hour);
    let cases = [
        (Limit::bucket(Rate::per_minute(10), 4), WindowName::Bucket, 6),
        (Limit::window(window(10)), WindowName::Window, 6),
        (Limit::sliding_window(window(10)), WindowName::Sliding, 6),
        (both, WindowName::Burst, 6),
        (both, WindowName::Sustain, 72),
    ];
    for (limit, part, seconds) in cases {
        let rule = Rule::new(&limit).unwrap();
        for (cost, times) in [(0, 1), (1, 1), (3, 3)] {
            let apart = rule.spacing(part, cost).abs_diff(rule.time().units(seconds * times * SECOND));
            assert!(apart <= 1, "{part:?}, cost {cost}: {apart} off");
        }
        let lease_ns = if part == WindowName::Bucket { 1_000_000 } else { 1 };
        assert_eq!(rule.lease_ns(), lease_ns);
        assert_eq!(rule.spacing(WindowName::Burst, u64::MAX), u64::MAX);
    }
}

#[test]
fn the_first_window_is_the_first_part() {
    let limits = [
        Limit::bucket(Rate::per_minute(10), 4),
        Limit::window(window(10)),
        Limit::sliding_window(window(10)),
        pair(3, 5),
    ];
    for limit in limits {
        let rule = Rule::new(&limit).unwrap();
        assert_eq!(rule.first_window(), rule.parts(0, NOW)[0].name);
    }
}

#[test]
fn a_sliding_windows_phases_are_spread_over_its_period() {
    let rule = |alignment| Rule::new(&Limit::sliding_window(window(10)).align(alignment)).unwrap();
    let (aligned, shifted) = (rule(Alignment::Clock), rule(Alignment::PerKey));
    let last = (1 << 48) - 1;
    let period = shifted.time().units(MINUTE);
    assert_eq!((aligned.phase(last), shifted.phase(0)), (0, 0));
    assert_eq!(shifted.phase(1 << 47), period / 2);
    assert!((period / 100 * 99..period).contains(&shifted.phase(last)));
}

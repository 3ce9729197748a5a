//! Words that come from outside, and words that are moved in time.

use super::*;

const MINUTE: u64 = 60 * SECOND;

fn rule(limit: Limit) -> Rule {
    Rule::new(&limit).unwrap()
}

fn windows(alignment: Alignment) -> Limit {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(60));
    Limit::burst_sustain(Window::new(3, short), Window::new(5, long)).align(alignment)
}

/// What a word means does not change, or snapshots of version 1 come to mean something else: then the version counts up.
#[test]
fn words_of_version_1_keep_their_numbers() {
    let word = |limit: Limit| {
        let rule = rule(limit);
        rule.decide(0, rule.moment(100 * MINUTE + 20 * SECOND, 0xe234_5678_9abc), 2).next
    };
    let bucket = Limit::bucket(Rate::per_minute(6), 5);
    let window = |alignment| Limit::window(Window::new(5, Duration::from_secs(60))).align(alignment);
    let expected = [
        (bucket, 0x12e0_0000_0000),
        (window(Alignment::Clock), 0x0c80_0000_0002),
        (window(Alignment::PerKey), 0x0ca0_0000_0002),
        (window(Alignment::FirstRequest), 0x0c8a_aaaa_aa82),
        (windows(Alignment::Clock), 0x0c88_0008_0002),
        (windows(Alignment::FirstRequest), 0x0c8a_aaaa_0102),
    ];
    assert_eq!(expected.map(|(limit, _)| word(limit)), expected.map(|(_, word)| word));
}

/// A bucket of four tokens may stand four ahead, and a window's word begins with its window.
#[test]
fn a_word_can_be_left_from_its_time_on() {
    let rule_of = |limit| (rule(limit), rule(limit).time().units(100 * MINUTE));
    let (bucket, now) = rule_of(Limit::bucket(Rate::per_minute(60), 4));
    let full = bucket.decide(0, now, 4).next;
    assert!(bucket.can_leave(full, now) && !bucket.can_leave(full, now - 1));
    assert!(!bucket.can_leave(0, now) && bucket.can_leave(1, now));
    assert!(!bucket.can_leave(full | 1 << 62, now));
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let (both, now) = rule_of(windows(alignment));
        let word = both.decide(0, now, 2).next;
        assert!(both.can_leave(word, now) && both.can_leave(word, now + 1));
        assert!(!both.can_leave(word, now - 1), "{alignment:?}");
        assert!(!both.can_leave(0, now) && !both.can_leave(word | 1 << 62, now));
        // The burst after it: from 15 s on.
        let burst = both.time().units(100 * MINUTE + 15 * SECOND);
        let word = both.decide(word, burst, 1).next;
        assert!(both.can_leave(word, burst) && !both.can_leave(word, burst - 1), "{alignment:?}");
    }
}

#[test]
fn any_counts_can_be_left_but_no_burst_that_there_is_not() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let rule = rule(windows(alignment));
        let Kind::Windows(Windows::Fixed(windowed)) = rule.kind else { panic!("not windowed") };
        let (layout, now) = (*windowed.layout(), rule.time().units(100 * MINUTE));
        let opened = layout.unpack(rule.decide(0, now, 1).next);
        let can = |burst, sustain| rule.can_leave(layout.pack(Counts { burst, sustain, ..opened }), now);
        assert!(can(1, 1) && can(3, 3) && can(3, 5));
        assert!(can(2, 1), "after a change of the limit in proportion");
        assert_eq!(
            [can(4, 4), can(3, 6), can(4, 6)],
            [true; 3],
            "more than the limits, by a charge or refusals"
        );
        assert!(can(u64::MAX, u64::MAX) && can(3, u64::MAX) && can(u64::MAX, 3), "counts at their ends");
        if alignment == Alignment::FirstRequest {
            let late = |index| rule.can_leave(layout.pack(Counts { index, ..opened }), 2 * now);
            assert!(late(3) && layout.unpack(layout.pack(Counts { index: 3, ..opened })).index == 3);
        }
    }
    // Five bursts take three bits, which could say that it is the eighth.
    let five = Limit::burst_sustain(
        Window::new(3, Duration::from_secs(15)),
        Window::new(5, Duration::from_secs(75)),
    );
    let rule = rule(five.align(Alignment::FirstRequest));
    let Kind::Windows(Windows::Fixed(windowed)) = rule.kind else { panic!("not windowed") };
    let now = rule.time().units(100 * MINUTE);
    let opened = windowed.layout().unpack(rule.decide(0, now, 1).next);
    let late = |index| rule.can_leave(windowed.layout().pack(Counts { index, ..opened }), 2 * now);
    assert_eq!([4, 5, 7].map(late), [true, false, false]);
}

#[test]
fn time_begins_anew_a_longest_period_above_0() {
    let bucket = rule(Limit::bucket(Rate::per_minute(6), 5));
    let token = bucket.time().units(10 * SECOND);
    let (start, units) = bucket.begin_anew(100 * MINUTE, MINUTE);
    assert_eq!((start, units), (MINUTE, 99 * 6 * token));
    assert_eq!(bucket.earlier(100 * 6 * token, units), Some(6 * token));
    assert_eq!([units, units - 1, 1].map(|word| bucket.earlier(word, units)), [None; 3]);
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let both = rule(windows(alignment));
        let now_ns = 100 * MINUTE + 20 * SECOND;
        let (start, units) = both.begin_anew(now_ns, MINUTE);
        assert_eq!((start, units), (MINUTE + 20 * SECOND, both.time().units(99 * MINUTE)));
        let at = |ns| both.decide(0, both.time().units(ns), 2).next;
        assert_eq!(both.earlier(at(now_ns), units), Some(at(start)));
        assert_eq!(both.earlier(at(99 * MINUTE), units), Some(at(0)));
        assert_eq!(both.earlier(at(98 * MINUTE), units), None, "{alignment:?}");
        assert_eq!(both.earlier(at(now_ns), 0), Some(at(now_ns)));
        assert_eq!(both.begin_anew(30 * SECOND, MINUTE), (30 * SECOND, 0));
        assert_eq!(both.earlier(at(now_ns), both.begin_anew(u64::MAX, MINUTE).1), None);
    }
}

proptest! {
    #[test]
    fn a_word_can_be_left_at_its_moment_and_later((rule, word, now) in histories(), later in 0..VALUE_MAX >> 1) {
        prop_assert_eq!(rule.can_leave(word, now), word != 0);
        prop_assert_eq!(rule.can_leave(word, now + later), word != 0);
        let left_at = rule.left_at(word);
        prop_assert!(word == 0 || left_at == 0 || !rule.can_leave(word, left_at - 1));
    }

    #[test]
    fn an_earlier_word_owes_the_same_earlier((rule, word, now) in histories(), periods in 0..5_u64, cost in 0..300_u64) {
        // One longest period is left, as after `begin_anew`.
        let (units, longest) = match &rule.kind {
            Kind::Bucket(_) => (periods * (now / 6), 0),
            Kind::Windows(windows) => (periods * windows.longest(), windows.longest()),
        };
        prop_assume!(word != 0 && units + longest <= now);
        match rule.earlier(word, units) {
            Some(earlier) => {
                let (theirs, ours) = (rule.decide(word, now, cost), rule.decide(earlier, now - units, cost));
                prop_assert_eq!(theirs.outcome, ours.outcome);
                prop_assert_eq!(rule.debt(theirs.next, now), rule.debt(ours.next, now - units));
                prop_assert_eq!(rule.idle_from(theirs.next), rule.idle_from(ours.next) + units);
            }
            None => prop_assert!(rule.is_idle(word, now)),
        }
    }
}

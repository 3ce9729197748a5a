use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::key::ClientKey;

const NS: u64 = 1_000_000_000;
/// 2 March 2026, 09:00 UTC: the beginning of a window of 15 s, and of 300 s.
const NINE_S: u64 = 1_772_442_000;

/// A log of clients by number, at seconds after nine.
fn log(requests: &[(u32, u64)]) -> Log {
    let mut events: Vec<Event> = Vec::new();
    let mut keys: Vec<ClientKey> = Vec::new();
    let mut numbers = HashMap::new();
    for (client, second) in requests {
        let key = *numbers.entry(*client).or_insert_with(|| {
            keys.push(ClientKey::from_client(&format!("client-{client}")));
            u32::try_from(keys.len() - 1).unwrap()
        });
        events.push(Event { at_unix_ns: (NINE_S + second) * NS, key });
    }
    events.sort_by_key(|event| event.at_unix_ns);
    Log { lines: events.len() as u64, events, keys, ..Log::default() }
}

fn terms(share: &str) -> Terms {
    Terms {
        share: share.parse().unwrap(),
        align: Align::Clock,
        count_refused: true,
        seed: 0,
        exact: false,
        top: 3,
    }
}

fn limits(found: &Suggestions) -> Vec<&str> {
    found.proposals.iter().map(|proposal| &*proposal.limit).collect()
}

#[test]
fn limits_by_hand() {
    // Client 1: four at once, and two more in the next 15 s. Client 2: two in one second.
    let log = log(&[(1, 0), (1, 0), (1, 0), (1, 0), (1, 16), (1, 17), (2, 3), (2, 3)]);
    let found = suggest(&log, &terms("0%"), |_| {}).unwrap();
    // Six in 300 s, four of them in 15 s. A bucket of four that fills in a minute has one token back after 15 s, and a
    // second one only after 30; so a bucket of five that fills in a minute (5 a minute: 1.4 tokens after 17 s, one was
    // left) has room, and with its burst of five 4 a minute do (1.13 after 17 s), and 3 a minute have not (0.85).
    assert_eq!(limits(&found), ["burst-sustain:4/15s,6/300s", "bucket:4/m,5"]);
    assert!(found.proposals.iter().all(|proposal| (proposal.clients_refused, proposal.refused) == (0, 0)));

    let half = suggest(&log, &terms("50%"), |_| {}).unwrap();
    assert_eq!(
        (half.clients_allowed, limits(&half)),
        (1, vec!["burst-sustain:2/15s,2/300s", "bucket:1/m,2"])
    );
    // Of client 1 the windows refuse all but two (refused requests count), and the bucket the same four: 17 s bring back
    // 0.28 of a token.
    let heavy = |client: &str, requests, refused: [u64; 2]| Heavy {
        client: client.to_owned(),
        requests,
        refused: refused.to_vec(),
    };
    assert_eq!(half.heaviest, [heavy("client-1", 6, [4, 4]), heavy("client-2", 2, [0, 0])]);
    let windows = &half.proposals[0];
    assert_eq!((windows.clients_refused, windows.refused_by.burst, windows.refused_by.total()), (1, 0, 4));
}

#[test]
fn all_may_be_refused_or_nobody() {
    let log = log(&[(1, 0), (1, 0), (2, 0)]);
    let all = suggest(&log, &terms("100%"), |_| {}).unwrap();
    assert_eq!(limits(&all), ["burst-sustain:1/15s,1/300s", "bucket:1/m,1"]);
    assert!(all.doubts[0].starts_with("every client may be refused"), "{:?}", all.doubts);
    let none = suggest(&log, &terms("0"), |_| {}).unwrap();
    assert_eq!(limits(&none), ["burst-sustain:2/15s,2/300s", "bucket:1/m,2"]);
    assert!(
        !none.doubts.iter().any(|doubt| doubt.contains("less than one client")),
        "that is what was asked"
    );
}

#[test]
fn a_log_without_requests_has_no_limits() {
    let found = suggest(&log(&[]), &terms("0.1%"), |_| {}).unwrap();
    assert!(found.proposals.is_empty() && found.heaviest.is_empty() && found.span.is_none());
}

#[test]
fn a_log_that_tells_little_says_so() {
    let short = suggest(&log(&[(1, 0), (2, 2_999)]), &terms("0.1%"), |_| {}).unwrap();
    assert_eq!(
        short.doubts,
        [
            "0.1 % of 2 is less than one client, so that nobody may be refused; it takes 1,000 clients, or a larger share",
            "the log covers 2,999 s, less than 10 sustain windows of 300 s; a longer one may need larger limits",
        ]
    );
    let long = suggest(&log(&[(1, 0), (2, 3_000)]), &terms("50%"), |_| {}).unwrap();
    assert_eq!(long.doubts, Vec::<String>::new());
}

#[test]
fn shares_are_exact_and_in_percent() {
    let parts = |text: &str| text.parse::<Share>().map(|share| share.parts_per_million);
    for (text, expected) in
        [("0.1%", 1_000), ("0", 0), ("100 %", 1_000_000), ("33.3333", 333_333), ("0.0001%", 1)]
    {
        assert_eq!(parts(text), Ok(expected), "{text}");
    }
    for text in ["", "%", "-1%", "100.0001%", "1e1", "0.00001", "1.%", ".5", "9999", "+1"] {
        assert!(parts(text).is_err(), "{text}");
    }
    let share: Share = "0.1%".parse().unwrap();
    assert_eq!(
        [0, 999, 1_000, 1_999, u64::MAX].map(|clients| share.of(clients)),
        [0, 0, 1, 1, u64::MAX / 1_000]
    );
}

#[test]
fn the_arguments_try_a_limit_on_the_same_terms() {
    let terms = Terms { align: Align::PerKey, count_refused: false, seed: 7, ..terms("0%") };
    let windows = terms.arguments(LimitSpec::windows(30, 15, 100, 300));
    assert_eq!(windows, "--limit burst-sustain:30/15s,100/300s --align per-key --free-refusals --seed 7");
    assert_eq!(terms.arguments(LimitSpec::tokens_a_minute(6, 9)), "--limit bucket:6/m,9");
}

/// How many clients windows at whole periods refuse, counted in the plainest way.
fn refused_by_windows(requests: &[(u32, u64)], burst: u64, sustain: u64) -> u64 {
    let mut most = HashMap::<u32, bool>::new();
    let mut counts = HashMap::<(u32, u64, u64), u64>::new();
    for (client, second) in requests {
        for (period, limit) in [(15, burst), (300, sustain)] {
            let count = counts.entry((*client, period, second / period)).or_default();
            *count += 1;
            *most.entry(*client).or_default() |= *count > limit;
        }
    }
    most.values().filter(|refused| **refused).count() as u64
}

/// How many clients a bucket refuses: tokens in sixtieths, so that a second brings back a whole number of them.
fn refused_by_bucket(requests: &[(u32, u64)], a_minute: u64, burst: u64) -> u64 {
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|(_, second)| *second);
    let mut buckets = HashMap::<u32, (u64, u64, bool)>::new();
    for (client, second) in sorted {
        let (held, at, refused) = buckets.entry(client).or_insert((burst * 60, second, false));
        *held = (*held + (second - *at) * a_minute).min(burst * 60);
        *at = second;
        match held.checked_sub(60) {
            Some(left) => *held = left,
            None => *refused = true,
        }
    }
    buckets.values().filter(|(_, _, refused)| *refused).count() as u64
}

/// A log of few clients, some of them busy, over so many seconds.
fn some_log() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let request = (0_u32..6, 0_u64..700).prop_map(|(client, second)| (client * client / 5, second));
    let at_once = (0_u32..6, Just(42_u64));
    prop::collection::vec(prop_oneof![3 => request, 1 => at_once], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// No smaller limit refuses few enough clients; the proposal does. Both by the twin.
    #[test]
    fn proposals_are_those_of_brute_force(requests in some_log(), percent in 0_u32..=100) {
        let log = log(&requests);
        let terms = terms(&percent.to_string());
        let found = suggest(&log, &terms, |_| {}).unwrap();
        let allowed = log.keys.len() as u64 * u64::from(percent) / 100;
        prop_assert_eq!(found.clients_allowed, allowed);
        let number = |spec: &str| -> Vec<u64> {
            spec.split([':', '/', ',']).filter_map(|part| part.parse().ok()).collect()
        };
        let [burst, sustain] = number(&found.proposals[0].limit)[..] else { panic!() };
        let refused = refused_by_windows(&requests, burst, sustain);
        prop_assert!(refused <= allowed);
        prop_assert_eq!(found.proposals[0].clients_refused, refused);
        for smaller in 1..sustain {
            prop_assert!(refused_by_windows(&requests, u64::MAX, smaller) > allowed, "sustain {}", smaller);
        }
        for smaller in 1..burst {
            prop_assert!(refused_by_windows(&requests, smaller, sustain) > allowed, "burst {}", smaller);
        }
        let [rate, burst] = number(&found.proposals[1].limit)[..] else { panic!() };
        let refused = refused_by_bucket(&requests, rate, burst);
        prop_assert!(refused <= allowed);
        prop_assert_eq!(found.proposals[1].clients_refused, refused);
        for smaller in 1..rate {
            prop_assert!(refused_by_bucket(&requests, smaller, burst) > allowed, "rate {}", smaller);
        }
        for smaller in 1..burst {
            prop_assert!(refused_by_bucket(&requests, rate, smaller) > allowed, "burst {}", smaller);
        }
    }

    /// Wherever windows begin, and whether or not refused requests count, the proposal keeps within the share.
    #[test]
    fn proposals_keep_within_the_share(
        requests in some_log(), percent in 0_u32..=100, align in 0_usize..3, count_refused: bool, exact: bool
    ) {
        let log = log(&requests);
        let align = [Align::Clock, Align::PerKey, Align::FirstRequest][align];
        let terms = Terms { align, count_refused, exact, ..terms(&percent.to_string()) };
        let found = suggest(&log, &terms, |_| {}).unwrap();
        for proposal in &found.proposals {
            prop_assert!(proposal.clients_refused <= found.clients_allowed, "{}", proposal.arguments);
            prop_assert_eq!(proposal.refused_by.full, 0);
        }
    }
}

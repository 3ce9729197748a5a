//! Snapshots with right checksums that nobody has saved: what no limiter leaves is an error, and nothing panics.

use proptest::prelude::*;
use tidegate::{Alignment, Limit, Manual, Rate, RestoreError, Window};

use crate::{builder, each_kind, restored, saved, secs};

/// Bytes of the header, its checksum among them.
const HEADER: usize = 123;
const SELF_TEST: usize = 44;
const KEY: usize = 24;

/// CRC-32 bit by bit: the polynomial of IEEE 802.3, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
    })
}

/// Makes both checksums right again.
fn seal(snapshot: &mut [u8]) {
    let end = snapshot.len() - 4;
    for at in [HEADER - 4, end] {
        let sum = crc32(&snapshot[..at]);
        snapshot[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

fn put(snapshot: &mut [u8], at: usize, number: u64) {
    snapshot[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn get(snapshot: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(snapshot[at..at + 8].try_into().unwrap())
}

/// Two keys, at 1 000 s of the wall.
fn two_keys(limit: Limit) -> Vec<u8> {
    let limiter = builder(limit).clock(Manual::at_unix(secs(1_000))).build().unwrap();
    assert!(limiter.check_n("ada", 2).is_ok() && limiter.check_n("bob", 2).is_ok());
    saved(&limiter)
}

fn error(limit: Limit, edit: impl FnOnce(&mut Vec<u8>)) -> RestoreError {
    let mut snapshot = two_keys(limit);
    edit(&mut snapshot);
    seal(&mut snapshot);
    restored(limit, secs(1_000), &snapshot).unwrap_err()
}

#[test]
fn the_checksum_is_crc_32() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the published check value");
    for limit in each_kind() {
        let mut snapshot = two_keys(limit);
        let before = snapshot.clone();
        seal(&mut snapshot);
        assert_eq!(snapshot, before);
    }
}

#[test]
fn hashes_that_come_out_otherwise_are_an_error() {
    for number in 0..4 {
        let error = error(each_kind()[0], |snapshot| snapshot[SELF_TEST + 8 * number] ^= 1);
        assert!(matches!(error, RestoreError::Hashes), "{error}");
        assert!(error.to_string().contains("processor"), "{error}");
    }
    // So are other seeds beside the hashes of these.
    assert!(matches!(error(each_kind()[0], |snapshot| snapshot[12] ^= 1), RestoreError::Hashes));
}

#[test]
fn another_version_is_told() {
    let error = error(each_kind()[0], |snapshot| snapshot[8] = 2);
    assert!(matches!(error, RestoreError::Version { found: 2, known: 1 }), "{error}");
}

#[test]
fn a_kind_of_limit_that_is_not_known_is_told() {
    let error = error(each_kind()[0], |snapshot| snapshot[76] = 9);
    assert!(
        matches!(&error, RestoreError::Limit { field: "kind", saved, .. } if saved == "unknown (9)"),
        "{error}"
    );
}

type Edit<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_slot_that_could_not_be_is_an_error() {
    let (first, second) = (HEADER, HEADER + KEY);
    let slots = 8 * 4 + 64 * 24 / 16; // more than there are
    for limit in each_kind() {
        let edits: [(&str, Edit<'_>); 10] = [
            ("no fingerprint", &|snapshot| put(snapshot, first + 8, 0)),
            ("a fingerprint of 49 bits", &|snapshot| put(snapshot, first + 8, 1 << 48)),
            ("a mark of the table's", &|snapshot| put(snapshot, first + 16, 1 << 63)),
            ("of another limit's generation", &|snapshot| {
                let word = get(snapshot, first + 16);
                put(snapshot, first + 16, word | 1 << 62);
            }),
            ("the word of nobody", &|snapshot| put(snapshot, first + 16, 0)),
            ("a word of the far future", &|snapshot| put(snapshot, first + 16, (1 << 62) - 1)),
            ("one slot twice", &|snapshot| {
                let number = get(snapshot, first);
                put(snapshot, second, number);
            }),
            ("slots in disorder", &|snapshot| {
                let keys = snapshot[first..second + KEY].to_vec();
                snapshot[first..second].copy_from_slice(&keys[KEY..]);
                snapshot[second..second + KEY].copy_from_slice(&keys[..KEY]);
            }),
            ("a slot beyond the table", &|snapshot| put(snapshot, second, slots)),
            ("a key twice", &|snapshot| {
                let [fingerprint, number] = [get(snapshot, first + 8), get(snapshot, first)];
                put(snapshot, second, number + 1);
                put(snapshot, second + 8, fingerprint);
            }),
        ];
        for (what, edit) in edits {
            let error = error(limit, edit);
            assert!(matches!(error, RestoreError::Slot { .. }), "{what} under {limit:?}: {error}");
        }
    }
}

/// The two slots of one fingerprint are those of two keys, if no key may stand in both.
#[test]
fn one_fingerprint_in_two_windows_is_two_keys() {
    let limit = each_kind()[0];
    for (apart, is_error) in [(31, true), (35, false), (40, false)] {
        let mut snapshot = two_keys(limit);
        put(&mut snapshot, HEADER, 0);
        put(&mut snapshot, HEADER + KEY, apart);
        let fingerprint = get(&snapshot, HEADER + 8);
        put(&mut snapshot, HEADER + KEY + 8, fingerprint);
        seal(&mut snapshot);
        assert_eq!(restored(limit, secs(1_000), &snapshot).is_err(), is_error, "{apart}");
    }
}

/// A word that a bucket left two nanoseconds later, or a window in its next period, was not left before the snapshot was taken.
#[test]
fn a_word_from_after_the_snapshot_is_an_error() {
    let windows = [Window::new(4, secs(1)), Window::new(9, secs(4))];
    let limits = [
        (Limit::bucket(Rate::per_second(1_000), 4), 2),
        (Limit::window(windows[0]).align(Alignment::Clock), 1_000_000_000),
        (Limit::window(windows[0]), 1_000_000_000),
        (Limit::window(windows[0]).align(Alignment::FirstRequest), 1_000_000_000),
        (Limit::burst_sustain(windows[0], windows[1]), 1_000_000_000),
        (Limit::burst_sustain(windows[0], windows[1]).align(Alignment::FirstRequest), 1_000_000_000),
    ];
    for (limit, later_ns) in limits {
        let limiter = builder(limit).seed(1).clock(Manual::at_unix(secs(1_000))).build().unwrap();
        assert!(limiter.check_n("ada", 4).is_ok());
        let snapshot = saved(&limiter);
        limiter.clock().advance(std::time::Duration::from_nanos(later_ns));
        let _ = limiter.check_n("ada", 4);
        // A bucket that is asked again has refused: another key's word is as good.
        assert!(limiter.check_n("bob", 4).is_ok());
        let later = saved(&limiter);
        let phased = if get(&later, HEADER + 8) == get(&snapshot, HEADER + 8) { [0, 1] } else { [1, 0] };
        let word = phased.map(|key| get(&later, HEADER + KEY * key + 16))[usize::from(limit == limits[0].0)];
        let mut edited = snapshot.clone();
        put(&mut edited, HEADER + 16, word);
        seal(&mut edited);
        assert!(
            matches!(restored(limit, secs(1_000), &edited).unwrap_err(), RestoreError::Slot { .. }),
            "{limit:?}"
        );
        assert!(restored(limit, secs(1_000), &snapshot).is_ok());
    }
}

#[test]
fn times_that_contradict_each_other_are_an_error() {
    for limit in each_kind() {
        let trailer = |snapshot: &[u8]| snapshot.len() - 36;
        // latest before now, or before what was evicted
        let latest = |snapshot: &mut Vec<u8>| {
            let at = trailer(snapshot);
            let now = get(snapshot, at);
            put(snapshot, at + 16, now - 1);
        };
        let evicted = |snapshot: &mut Vec<u8>| {
            let at = trailer(snapshot);
            let latest = get(snapshot, at + 16);
            put(snapshot, at + 24, latest + 1);
        };
        assert!(matches!(error(limit, latest), RestoreError::Times));
        assert!(matches!(error(limit, evicted), RestoreError::Times));
    }
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..200_u64,
        (0..64_u32, 0..3_u64).prop_map(|(power, less)| (1 << power) - less.min(1)),
        Just(u64::MAX)
    ]
}

proptest! {
    /// Whatever is accepted works: it decides, stands, saves, and is restored again.
    #[test]
    fn nothing_made_up_panics(
        numbers in prop::collection::vec((0..11_usize, any_number()), 1..5),
        kind in 0..3_usize,
        alignment in 0..3_usize,
        count_refused in any::<bool>(),
        unix in any_number(),
    ) {
        let alignment = [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest][alignment];
        let limit = each_kind()[kind].align(alignment).count_refused(count_refused);
        let mut snapshot = two_keys(limit);
        for (place, number) in numbers {
            let at = HEADER + 8 * place;
            // A word with an edit of its own passes more often.
            let number = if place % 3 == 2 { get(&snapshot, at) ^ (1 << (number % 64)) } else { number };
            put(&mut snapshot, at, number);
        }
        seal(&mut snapshot);
        let unix = std::time::Duration::from_nanos(unix);
        if let Ok(limiter) = restored(limit, unix, &snapshot) {
            for key in ["ada", "bob", "eve", "ada"] {
                let _ = limiter.check_n(key, 2).map_err(|denied| denied.retry_after());
                let _ = limiter.peek(key).reset_after();
            }
            limiter.clock().advance(secs(40));
            let again = saved(&limiter);
            prop_assert!(restored(limit, unix, &again).is_ok());
        }
    }
}

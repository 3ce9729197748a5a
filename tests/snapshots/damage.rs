//! Damage is an error: never a panic, and never a limiter.

use std::io::{self, Read, Write};
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Alignment, Limit, Limiter, Manual, Rate, RestoreError, Window};

use crate::{MAX_KEYS, builder, each_kind, restored, saved, secs};

/// A small snapshot of three keys.
fn small(limit: Limit) -> Vec<u8> {
    let limiter = builder(limit).clock(Manual::at_unix(secs(1_000))).build().unwrap();
    for key in ["ada", "bob", "eve"] {
        assert!(limiter.check_n(key, 2).is_ok());
    }
    let snapshot = saved(&limiter);
    assert_eq!(snapshot.len(), 123 + 3 * 24 + 8 + 32 + 4);
    let restored = restored(limit, secs(1_000), &snapshot).unwrap();
    assert_eq!(restored.peek("ada").remaining() + 2, restored.peek("another").remaining());
    snapshot
}

#[test]
fn a_snapshot_that_is_cut_anywhere_is_an_error() {
    for limit in each_kind() {
        let snapshot = small(limit);
        for length in 0..snapshot.len() {
            let error = restored(limit, secs(1_000), &snapshot[..length]).unwrap_err();
            assert!(matches!(error, RestoreError::Truncated), "cut at {length}: {error}");
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    for limit in each_kind() {
        let mut snapshot = small(limit);
        for bit in 0..8 * snapshot.len() {
            snapshot[bit / 8] ^= 1 << (bit % 8);
            let error = restored(limit, secs(1_000), &snapshot).map(drop).unwrap_err();
            let fits = match (bit / 8, &error) {
                (0..8, RestoreError::NotASnapshot) | (8..12, RestoreError::Version { known: 1, .. }) => true,
                (12.., RestoreError::Checksum) => true,
                // The mark of the end of the keys is no such mark any more.
                (195..203, RestoreError::Truncated) => true,
                _ => false,
            };
            assert!(fits, "bit {bit}: {error}");
            snapshot[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    let limit = each_kind()[0];
    let mut snapshot = small(limit);
    snapshot.push(0);
    assert!(matches!(restored(limit, secs(1_000), &snapshot).unwrap_err(), RestoreError::TrailingBytes));
    let twice = [small(limit), small(limit)].concat();
    assert!(matches!(restored(limit, secs(1_000), &twice).unwrap_err(), RestoreError::TrailingBytes));
}

#[test]
fn another_limit_is_named_with_both_values() {
    let window = |limit, seconds| Limit::window(Window::new(limit, secs(seconds)));
    let both = |burst, short, sustain, long| {
        Limit::burst_sustain(Window::new(burst, secs(short)), Window::new(sustain, secs(long)))
    };
    let bucket = |tokens, burst| Limit::bucket(Rate::per_minute(tokens), burst);
    let cases = [
        (bucket(6, 5), bucket(7, 5), "rate", "6", "7"),
        (bucket(6, 5), bucket(6, 4), "burst", "5", "4"),
        (bucket(6, 5), Limit::bucket(Rate::per_hour(6), 5), "rate period", "60s", "3600s"),
        (bucket(6, 5), window(6, 60), "kind", "a bucket", "a window"),
        (window(6, 60), bucket(6, 5), "kind", "a window", "a bucket"),
        (window(6, 60), window(5, 60), "window limit", "6", "5"),
        (window(6, 60), window(6, 61), "window period", "60s", "61s"),
        (window(6, 60), window(6, 60).count_refused(false), "count_refused", "true", "false"),
        (window(6, 60), window(6, 60).align(Alignment::Clock), "alignment", "PerKey", "Clock"),
        (window(6, 60), window(6, 60).align(Alignment::FirstRequest), "alignment", "PerKey", "FirstRequest"),
        (both(3, 5, 9, 50), window(3, 5), "kind", "burst + sustain windows", "a window"),
        (both(3, 5, 9, 50), both(2, 5, 9, 50), "burst limit", "3", "2"),
        (both(3, 5, 9, 50), both(3, 2, 9, 50), "burst period", "5s", "2s"),
        (both(3, 5, 9, 50), both(3, 5, 8, 50), "sustain limit", "9", "8"),
        (both(3, 5, 9, 50), both(3, 5, 9, 55), "sustain period", "50s", "55s"),
    ];
    for (limit, other, expected_field, expected_saved, expected_given) in cases {
        let error = restored(other, secs(1_000), &small(limit)).unwrap_err();
        let text = error.to_string();
        let RestoreError::Limit { field, saved, given } = error else { panic!("{text}") };
        assert_eq!((field, saved.as_str(), given.as_str()), (expected_field, expected_saved, expected_given));
        assert!([field, &saved, &given].iter().all(|part| text.contains(part)), "{text}");
    }
    // A bucket has no windows to align.
    let aligned = bucket(6, 5).align(Alignment::Clock).count_refused(false);
    assert!(restored(aligned, secs(1_000), &small(bucket(6, 5))).is_ok());
}

#[test]
fn another_max_keys_or_seed_is_an_error() {
    let limit = each_kind()[0];
    let snapshot = small(limit);
    for given in [1, MAX_KEYS - 1, MAX_KEYS + 1, 1 << 40] {
        let clock = Manual::at_unix(secs(1_000));
        let error = Limiter::builder(limit).max_keys(given).clock(clock).restore(&snapshot[..]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RestoreError::MaxKeys { saved: 64, given: told } if told == given), "{text}");
        assert!(text.contains("64") && text.contains(&given.to_string()), "{text}");
    }
    let seeded = builder(limit).seed(5).clock(Manual::at_unix(secs(1_000))).restore(&snapshot[..]);
    assert!(matches!(seeded.unwrap_err(), RestoreError::Seed));
}

#[test]
fn a_builder_that_builds_nothing_restores_nothing() {
    let snapshot = small(each_kind()[0]);
    let limit = Limit::bucket(Rate::per_minute(6), 0);
    let error = restored(limit, secs(1_000), &snapshot).unwrap_err();
    assert!(matches!(error, RestoreError::Config(_)) && error.to_string().contains("burst"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

/// Gives or takes so many bytes, then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let given = small(each_kind()[0]).len() - self.0;
        let snapshot = small(each_kind()[0]);
        let count = bytes.len().min(self.0);
        bytes[..count].copy_from_slice(&snapshot[..count]);
        self.0 -= count;
        if count == 0 { Err(io::Error::other(format!("{given} bytes short"))) } else { Ok(count) }
    }
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 { Err(io::Error::other("the disk is full")) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_reader_and_writer_fail_with_is_told() {
    let limit = each_kind()[0];
    let clock = Manual::at_unix(secs(1_000));
    let error = builder(limit).clock(clock.clone()).restore(Failing(100)).unwrap_err();
    assert!(
        matches!(&error, RestoreError::Io(error) if error.to_string().contains("bytes short")),
        "{error}"
    );
    let limiter = builder(limit).clock(clock).build().unwrap();
    assert!(limiter.allow("ada"));
    for room in 0..123 + 24 + 8 + 32 + 4 {
        assert_eq!(limiter.save(Failing(room)).unwrap_err().to_string(), "the disk is full", "{room}");
    }
    assert_eq!(limiter.save(Failing(123 + 24 + 8 + 32 + 4)).unwrap(), 1);
}

/// Zeroes without an end are no snapshot, and take no memory.
#[test]
fn a_reader_without_an_end_is_an_error() {
    let limit = each_kind()[0];
    let error = builder(limit).restore(io::repeat(0)).unwrap_err();
    assert!(matches!(error, RestoreError::NotASnapshot), "{error}");
    let head = small(limit)[..123].to_vec();
    let error = builder(limit).restore(Read::chain(&head[..], io::repeat(1))).unwrap_err();
    assert!(matches!(error, RestoreError::Slot { .. }), "{error}");
}

proptest! {
    #[test]
    fn any_damage_is_an_error(
        edits in prop::collection::vec((0..239_usize, any::<u8>()), 1..6),
        cut in prop_oneof![3 => Just(None), 1 => (0..239_usize).prop_map(Some)],
        kind in 0..3_usize,
    ) {
        let limit = each_kind()[kind];
        let snapshot = small(limit);
        let mut damaged = snapshot.clone();
        for (at, byte) in edits {
            damaged[at] = byte;
        }
        if let Some(length) = cut {
            damaged.truncate(length);
        }
        prop_assert_eq!(restored(limit, secs(1_000), &damaged).is_ok(), damaged == snapshot);
    }

    #[test]
    fn any_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400), with_head in any::<bool>()) {
        let limit = each_kind()[1];
        let head = if with_head { small(limit)[..123].to_vec() } else { Vec::new() };
        prop_assert!(restored(limit, Duration::ZERO, &[head, bytes].concat()).is_err());
    }
}

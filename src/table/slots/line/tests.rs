//! The marks of a slot are told apart, and give back what they carry.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::word::WHOLE_DEBT;

const FINGERPRINTS: [u64; 3] = [1, 0x1234_5678_9abc, (1 << FINGERPRINT_BITS) - 1];
const GENERATIONS: [u64; 4] = [0, 1, 0x8000, GENERATION];

#[test]
fn a_fingerprint_is_the_low_48_bits_and_never_0() {
    for (hash, expected) in [(0, 1), (1, 1), (2, 2), (1 << 48, 1), (u64::MAX, (1 << 48) - 1)] {
        assert_eq!(fingerprint(hash), expected);
    }
}

#[test]
fn a_pending_mark_is_for_one_generation_and_keeps_its_debt() {
    for generation in GENERATIONS {
        let named = (FINGERPRINTS[1] << 16) | generation;
        for debt in [0, 1, 0xffff, WHOLE_DEBT] {
            let mark = pending(named, debt);
            assert!(!is_value(mark) && !is_free(mark) && mark != CLAIMED);
            assert!(is_pending_for(mark, named));
            for bit in 0..16 {
                assert!(!is_pending_for(mark, named ^ (1 << bit)), "bit {bit}");
            }
            assert_eq!(carried_debt(mark), debt);
            let free = freed(mark);
            assert!(is_free(free) && !is_value(free) && free != CLAIMED);
            assert_eq!(carried_debt(free), debt);
        }
    }
}

#[test]
fn nothing_but_a_pending_mark_is_pending_and_nothing_but_a_free_one_free() {
    for generation in GENERATIONS {
        for value in [generation, 1 << 61 | generation, 1 << 62 | generation, 3 << 61 | generation] {
            assert!(is_value(value) && !is_pending_for(value, generation) && !is_free(value));
        }
        for mark in [FREE, CLAIMED, CLAIMED | 1 << 61] {
            assert!(!is_value(mark | generation) && !is_pending_for(mark | generation, generation));
        }
        assert!(!is_free(CLAIMED | generation) && !is_free(CLAIMED | 1 << 61 | generation));
    }
    assert!(is_free(FREE));
}

#[test]
fn the_next_owner_is_named_with_the_next_generation() {
    for fingerprint in FINGERPRINTS {
        for (last, next) in [(0, 1), (0x7fff, 0x8000), (GENERATION, 0)] {
            let named = next_owner((FINGERPRINTS[1] << 16) | last, fingerprint);
            assert_eq!((owner(named), named & GENERATION), (fingerprint, next));
            assert!(names(named, fingerprint) && !names(named, fingerprint ^ 2));
        }
    }
}

#[test]
fn a_line_is_64_bytes_and_a_table_has_room_for_its_keys() {
    for max_keys in [1, 2, 3, 8, 1_000, 4_095] {
        let lines = Lines::new(max_keys).unwrap();
        let starts = (max_keys * 24).div_ceil(64);
        assert!(lines.slots() >= (starts + LINES_PER_WINDOW - 1) * SLOTS_PER_LINE);
        assert!(lines.bytes() <= (starts + LINES_PER_WINDOW) * 64);
        let first = |hash| std::ptr::from_ref(lines.window(hash).slot(0).fingerprint) as usize;
        assert_eq!(first(0) % 64, 0);
        assert_eq!(first(0), std::ptr::from_ref(lines.slot(0).fingerprint) as usize);
        assert_eq!(first(u64::MAX) - first(0), (starts - 1) * 64, "the last window");
        assert!(lines.bytes() >= lines.slots() * 16);
        let at = |word: &AtomicU64| std::ptr::from_ref(word) as usize - first(0);
        for number in [0, 1, 5, lines.slots() - 1] {
            let slot = lines.slot(number);
            assert_eq!((at(slot.fingerprint), at(slot.word)), (16 * number, 16 * number + 8));
            let slot = lines.window(0).slot(number % SLOTS_PER_WINDOW);
            assert_eq!(at(slot.word), at(slot.fingerprint) + 8);
            assert_eq!(at(slot.fingerprint), 16 * (number % SLOTS_PER_WINDOW));
        }
    }
}

/// The slots of a window that bear a name are found in any place, and a guess finds its line's.
#[test]
fn a_name_is_found_where_it_stands() {
    let lines = Lines::new(1_000).unwrap();
    let window = lines.window(1 << 63);
    for number in 0..SLOTS_PER_WINDOW {
        let slot = window.slot(number);
        slot.fingerprint.store(next_owner(0, 77), Ordering::Relaxed);
        assert_eq!(window.naming(77), 1 << number);
        let guessed = window.guess(number / SLOTS_PER_LINE, 77);
        assert!(std::ptr::eq(guessed.word, slot.word), "{number}");
        slot.fingerprint.store(0, Ordering::Relaxed);
    }
    assert_eq!(window.naming(77), 0);
}

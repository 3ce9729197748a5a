//! Where checks leave what they have seen, and the host picks it up.
//!
//! ```text
//! a refusal, or a pass above the threshold    tray of the thread, one of eight    the host, now and then
//! ────────────────────────────────────────    ───────────────────────────────    ─────────────────────────────
//! counts its id in a tray that is free   ──►  how often by id (`Frequent`)   ──►  sums (`Frequent`) ► offenders
//! notes the answer if the id is new      ──►  up to 96 answers               ──►  who stands how (`Tracker`) ► events
//! ```
//!
//! * **Nobody waits.** A tray is behind a lock that is only ever tried: a thread has a tray of its own, and takes the next one
//!   while that is being emptied or, where there are more threads than trays, is in another's hand. If all are in hand the refusal
//!   stays unseen here, which is counted. (The count of refusals by rule is made apart, and misses none.) The host tries again
//!   until it gets each tray: whoever holds one is done within a purge of it.
//! * **Memory is bounded.** What does not fit a tray or the tracker is dropped, and counted.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use super::frequent::Frequent;
use super::label::Label;
use crate::answer::{Denied, Pass};
use crate::policy::shares::thread_number;
use crate::sync::{Ordering, Padded, Tally};

/// Trays; more would only be needed by more cores that refuse at the same instant.
const TRAYS: usize = 8;
/// Ids that a tray counts.
const TRAY_IDS: usize = 448;
/// Answers that a tray notes between two visits of the host: so many of keys that are new to it,
const TRAY_NOTES_NEW: usize = 48;
/// and then of keys that come often.
const TRAY_NOTES: usize = 96;
/// So often.
const OFTEN: u64 = 32;
/// In an id: it says that the key has been noted for a warning.
const WARNED: u64 = 1 << 63;

/// A limit of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the rule's name; a name keeps its own for as long as the policy lives.
    pub(crate) rule: u32,
    /// The limit's number among the rule's.
    pub(crate) limit: u8,
}

/// A key under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) place: Place,
    /// The key's hash.
    pub(crate) hash: u64,
}

impl Subject {
    /// What the trays and all that follows know it by.
    #[inline]
    pub(super) fn id(&self) -> u64 {
        let Place { rule, limit } = self.place;
        // Keys of rules that count by the same key have the same hash.
        let spread =
            (u64::from(rule) << 8 | u64::from(limit)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (self.hash ^ spread) & !WARNED
    }
}

/// An answer worth telling of.
#[derive(Clone, Copy)]
pub(super) struct Note {
    pub(super) subject: Subject,
    /// When, by the policy's clock.
    pub(super) ns: u64,
    pub(super) answer: Result<Pass, Denied>,
    pub(super) label: Label,
}

/// An answer to a check.
pub(crate) struct Seen<'a, T> {
    pub(crate) subject: Subject,
    /// When, by the policy's clock.
    pub(crate) ns: u64,
    pub(crate) answer: &'a T,
}

/// What a thread leaves.
pub(super) struct Tray {
    pub(super) counts: Frequent<Place>,
    pub(super) notes: Vec<Note>,
    /// Notes that there was no room for.
    pub(super) dropped: u64,
}

impl Tray {
    fn new() -> Self {
        Self { counts: Frequent::new(TRAY_IDS), notes: Vec::with_capacity(TRAY_NOTES), dropped: 0 }
    }

    #[inline(never)]
    fn note(&mut self, most: usize, note: impl FnOnce() -> Note) {
        if self.notes.len() < most {
            self.notes.push(note());
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

/// The trays.
pub(crate) struct Desk {
    trays: Box<[Padded<Mutex<Tray>>]>,
    /// Requests decided, by thread.
    checks: Box<[Padded<Tally>]>,
    unseen: Tally,
}

impl Desk {
    pub(super) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let counts = (2 * cores).next_power_of_two().min(64);
        Self {
            trays: (0..TRAYS).map(|_| Padded(Mutex::new(Tray::new()))).collect(),
            checks: (0..counts).map(|_| Padded(Tally::new(0))).collect(),
            unseen: Tally::new(0),
        }
    }

    /// A request was decided.
    #[inline]
    pub(crate) fn checked(&self) {
        // ORDERING: Relaxed: it is a count, and orders nothing.
        self.checks[thread_number() & (self.checks.len() - 1)].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests decided so far.
    pub(super) fn checks(&self) -> u64 {
        // ORDERING: Relaxed: as in `checked`.
        self.checks.iter().map(|count| count.0.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// A request was refused; the key's text is asked for only where it is noted.
    pub(crate) fn refused(&self, seen: Seen<'_, Denied>, label: impl FnOnce() -> Label) {
        let Seen { subject, ns, answer } = seen;
        let is_seen = self.with_tray(|tray| {
            let most = match tray.counts.add(subject.id(), 1, subject.place) {
                None => TRAY_NOTES_NEW,
                Some(before) if before + 1 == OFTEN => TRAY_NOTES,
                Some(_) => return,
            };
            tray.note(most, || Note { subject, ns, answer: Err(*answer), label: label() });
        });
        if !is_seen {
            // ORDERING: Relaxed: as in `checked`.
            self.unseen.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request passed, and left the key above its threshold. If no tray is free the key's next one tells of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn warned(&self, seen: Seen<'_, Pass>, label: impl FnOnce() -> Label) {
        let Seen { subject, ns, answer } = seen;
        self.with_tray(|tray| {
            if tray.counts.add(subject.id() | WARNED, 0, subject.place).is_none() {
                tray.note(TRAY_NOTES_NEW, || Note { subject, ns, answer: Ok(*answer), label: label() });
            }
        });
    }

    /// Refusals that no tray was free for.
    pub(super) fn unseen(&self) -> u64 {
        // ORDERING: Relaxed: as in `checked`.
        self.unseen.load(Ordering::Relaxed)
    }

    /// Does something with a tray that is free, the thread's own if it is; whether there was one.
    fn with_tray(&self, act: impl FnOnce(&mut Tray)) -> bool {
        let first = thread_number();
        let free = (0..TRAYS).find_map(|next| attempt(&self.trays[(first + next) % TRAYS].0));
        let is_free = free.is_some();
        if let Some(mut tray) = free {
            act(&mut tray);
        }
        is_free
    }

    /// Visits each tray in turn. Of the host alone.
    pub(super) fn visit(&self, mut visit: impl FnMut(&mut Tray)) {
        for tray in &self.trays {
            let mut held = loop {
                match attempt(&tray.0) {
                    Some(held) => break held,
                    None => thread::yield_now(),
                }
            };
            visit(&mut held);
        }
    }
}

/// The tray, if nobody has it. Who panicked with it in hand has left nothing half done: it counts, and no more.
fn attempt(tray: &Mutex<Tray>) -> Option<MutexGuard<'_, Tray>> {
    match tray.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(PoisonError::into_inner(held)),
        Err(TryLockError::WouldBlock) => None,
    }
}

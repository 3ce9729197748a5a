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
//!   until it gets each tray: whoever holds one is done in no time.
//! * **Memory is bounded.** What does not fit a tray or the tracker is dropped, and counted.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use super::frequent::{Added, Frequent};
use super::label::Label;
use super::tallies::Tallies;
use crate::answer::{Denied, Pass};
use crate::policy::shares::thread_number;
use crate::sync::{Ordering, Padded, Tally};

/// Trays; more would only be needed by more cores that refuse at the same instant.
const TRAYS: usize = 8;
/// Ids that a tray counts, and that are counted over all trays.
pub(super) const IDS: usize = 2048;
/// Answers that a tray notes between two visits of the host: so many of keys that are new to it,
const TRAY_NOTES_NEW: usize = 48;
/// and then of keys that come often.
const TRAY_NOTES: usize = 96;
/// So often.
const OFTEN: u64 = 32;
/// In an id: it says that the key has been noted for a warning.
const WARNED: u64 = 1 << 63;

/// A limit of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        // No id is 0.
        (self.hash ^ spread) & !WARNED | 1 << 62
    }
}

/// An answer worth telling of.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    pub(crate) subject: Subject,
    /// When, by the policy's clock.
    pub(crate) ns: u64,
    pub(crate) answer: Result<Pass, Denied>,
    pub(crate) label: Label,
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
        Self { counts: Frequent::new(IDS), notes: Vec::with_capacity(TRAY_NOTES), dropped: 0 }
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
    /// Requests decided.
    checks: Tallies<1>,
    unseen: Tally,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            trays: (0..TRAYS).map(|_| Padded(Mutex::new(Tray::new()))).collect(),
            checks: Tallies::new(),
            unseen: Tally::new(0),
        }
    }

    /// A request was decided.
    #[inline]
    pub(crate) fn checked(&self) {
        self.checks.add(0);
    }

    /// Requests decided so far.
    pub(super) fn checks(&self) -> u64 {
        self.checks.of(0)
    }

    /// A request was refused; the note is made only where there is room for it.
    pub(crate) fn refused(&self, subject: Subject, note: impl FnOnce() -> Note) {
        let is_seen = self.with_tray(|tray| {
            let most = match tray.counts.add(subject.id(), 1, subject.place) {
                Added::New => TRAY_NOTES_NEW,
                Added::Before(before) if before + 1 == OFTEN => TRAY_NOTES,
                Added::Before(_) => return,
                Added::NoRoom => 0,
            };
            tray.note(most, note);
        });
        if !is_seen {
            // ORDERING: Relaxed: it is a count, and orders nothing.
            self.unseen.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request passed, and left the key above its threshold. If no tray is free the key's next one tells of it.
    pub(crate) fn warned(&self, subject: Subject, note: impl FnOnce() -> Note) {
        self.with_tray(|tray| {
            if tray.counts.add(subject.id() | WARNED, 0, subject.place) == Added::New {
                tray.note(TRAY_NOTES_NEW, note);
            }
        });
    }

    /// Refusals that no tray was free for.
    pub(super) fn unseen(&self) -> u64 {
        // ORDERING: Relaxed: as in `refused`.
        self.unseen.load(Ordering::Relaxed)
    }

    /// Does something with a tray that is free, the thread's own if it is; whether there was one.
    #[inline(always)]
    fn with_tray(&self, act: impl FnOnce(&mut Tray)) -> bool {
        let own = thread_number();
        let Some(mut tray) = attempt(&self.trays[own % TRAYS].0).or_else(|| self.another(own)) else {
            return false;
        };
        act(&mut tray);
        true
    }

    #[cold]
    #[inline(never)]
    fn another(&self, own: usize) -> Option<MutexGuard<'_, Tray>> {
        (1..TRAYS).find_map(|next| attempt(&self.trays[(own + next) % TRAYS].0))
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

/// The tray, if nobody has it, which is most often so. Who panicked with it in hand has left nothing half done: it counts, and no more.
#[inline(always)]
fn attempt(tray: &Mutex<Tray>) -> Option<MutexGuard<'_, Tray>> {
    match tray.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(PoisonError::into_inner(held)),
        Err(TryLockError::WouldBlock) => None,
    }
}

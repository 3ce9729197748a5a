//! Where checks leave what they have seen, and the host picks it up.
//!
//! ```text
//! a refusal, or a pass above the threshold    tray of the thread, one of eight    the host, now and then
//! ────────────────────────────────────────    ───────────────────────────────    ─────────────────────────────
//! counts its id in a tray that is free   ──►  how often by id (`Frequent`)   ──►  sums (`Frequent`) ► offenders
//! notes the answer if the id is new      ──►  up to 96 answers               ──►  who stands how (`Tracker`) ► events
//! ```
//!
//! * **Nobody waits.** A tray is held by one thread at a time, and who finds it held goes on: a thread has a tray of its own, and takes the next one
//!   while that is being emptied or, where there are more threads than trays, is in another's hand. If all are in hand the refusal
//!   stays unseen here, which is counted. (The count of refusals by rule is made apart, and misses none.) The host tries again
//!   until it gets each tray: whoever holds one is done in no time.
//! * **Memory is bounded.** What does not fit a tray or the tracker is dropped, and counted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::frequent::{Added, Frequent};
use super::label::Label;
use super::tallies::Tallies;
use crate::answer::{Denied, Pass};
use crate::hold::{Held, Hold};
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
/// A tray's notes of warnings, of all of them: who is refused comes first.
const TRAY_NOTES_WARNED: usize = 24;
/// In an id: it says that the key has been noted for a warning.
pub(super) const WARNED: u64 = 1 << 63;

/// A limit of a rule, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    /// The limit's number among those of the rule, whose name has this number; a name keeps its own for as long as the policy lives.
    #[inline]
    pub(crate) fn new(rule: u32, limit: u8) -> Self {
        Self(u64::from(rule) << 8 | u64::from(limit))
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Keys of rules that count by the same key have the same hash; this tells them apart.
    #[inline]
    fn spread(self) -> u64 {
        self.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// What of a key's hash stands in its id: the same in all limits.
    pub(super) fn key_of(self, id: u64) -> u64 {
        (id ^ self.spread()) & ((1 << 62) - 1)
    }

    pub(super) fn of_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn rule(self) -> u32 {
        u32::try_from(self.0 >> 8).unwrap_or(u32::MAX)
    }

    pub(crate) fn limit(self) -> u8 {
        self.0.to_le_bytes()[0]
    }
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
        // No id is 0.
        (self.hash ^ self.place.spread()) & !WARNED | 1 << 62
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

impl Note {
    /// What its tray knows it by.
    pub(super) fn id(&self) -> u64 {
        self.subject.id() | if self.answer.is_ok() { WARNED } else { 0 }
    }
}

/// What threads leave, one at a time.
struct Tray {
    hold: Hold,
    counts: Frequent,
    /// Locked by who holds the tray alone.
    notes: Mutex<Vec<Note>>,
    /// Notes that there was no room for.
    dropped: Tally,
}

/// A tray, held until this is dropped.
pub(super) struct HeldTray<'a> {
    tray: &'a Tray,
    _held: Held<'a>,
}

impl Tray {
    fn new() -> Self {
        Self {
            hold: Hold::new(),
            counts: Frequent::new(IDS),
            notes: Mutex::new(Vec::with_capacity(TRAY_NOTES)),
            dropped: Tally::new(0),
        }
    }

    /// The tray, if nobody has it.
    #[inline(always)]
    fn hold(&self) -> Option<HeldTray<'_>> {
        Some(HeldTray { tray: self, _held: self.hold.attempt()? })
    }
}

impl HeldTray<'_> {
    #[inline(always)]
    pub(super) fn counts(&self) -> &Frequent {
        &self.tray.counts
    }

    /// Its notes, which nobody else asks for now. Who panicked with them in hand has left some of them, each whole.
    pub(super) fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        self.tray.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many notes there was no room for since this was last asked.
    pub(super) fn take_dropped(&self) -> u64 {
        // ORDERING: Relaxed: whoever holds the tray sees what the one before left.
        self.tray.dropped.swap(0, Ordering::Relaxed)
    }

    #[inline(never)]
    fn note(&self, most: usize, note: impl FnOnce() -> Note) {
        let mut notes = self.notes();
        if notes.len() < most {
            notes.push(note());
        } else {
            // ORDERING: Relaxed: as in `take_dropped`.
            self.tray.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The trays.
pub(crate) struct Desk {
    trays: Box<[Padded<Tray>]>,
    /// Requests decided.
    checks: Tallies<1>,
    unseen: Tally,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            trays: (0..TRAYS).map(|_| Padded(Tray::new())).collect(),
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
        let Some(tray) = self.free() else {
            // ORDERING: Relaxed: it is a count, and orders nothing.
            self.unseen.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let most = match tray.counts().add(subject.id(), 1, subject.place.word()) {
            Added::New => TRAY_NOTES_NEW,
            Added::Before(before) if before + 1 == OFTEN => TRAY_NOTES,
            Added::Before(_) => return,
            Added::NoRoom => 0,
        };
        tray.note(most, note);
    }

    /// A request passed, and left the key above its threshold. If no tray is free the key's next one tells of it.
    pub(crate) fn warned(&self, subject: Subject, note: impl FnOnce() -> Note) {
        let Some(tray) = self.free() else { return };
        match tray.counts().add(subject.id() | WARNED, 0, subject.place.word()) {
            Added::New => tray.note(TRAY_NOTES_WARNED, note),
            Added::NoRoom => tray.note(0, note),
            Added::Before(_) => {}
        }
    }

    /// Refusals that no tray was free for.
    pub(super) fn unseen(&self) -> u64 {
        // ORDERING: Relaxed: as in `refused`.
        self.unseen.load(Ordering::Relaxed)
    }

    /// A tray that is free, the thread's own if it is.
    #[inline(always)]
    fn free(&self) -> Option<HeldTray<'_>> {
        let own = thread_number();
        self.trays[own % TRAYS].0.hold().or_else(|| self.another(own))
    }

    #[cold]
    #[inline(never)]
    fn another(&self, own: usize) -> Option<HeldTray<'_>> {
        (1..TRAYS).find_map(|next| self.trays[(own + next) % TRAYS].0.hold())
    }

    /// Has a key noted the next time that it is refused. Of the host alone.
    pub(super) fn forget(&self, id: u64) {
        self.visit(|tray| tray.counts().forget(id));
    }

    /// Visits each tray in turn. Of the host alone.
    pub(super) fn visit(&self, mut visit: impl FnMut(HeldTray<'_>)) {
        for tray in &self.trays {
            let held = loop {
                match tray.0.hold() {
                    Some(held) => break held,
                    None => thread::yield_now(),
                }
            };
            visit(held);
        }
    }
}

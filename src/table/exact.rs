//! The exact table: whole keys in a concurrent map, a word to each, never more than `max_keys`.
//!
//! # Protocol
//!
//! * **Paths.** *Check*: find the key's entry, charge its word in one exchange. *New key*: take a
//!   place, note the hash in it, insert an entry whose word is [`PENDING`], promote it. *Promote*, by whoever
//!   finds it: read the time, exchange the mark for a first word that is charged already. *Evict*, only when
//!   no place is free: let the hand visit places until a word is idle; seal it, remove its entry, put
//!   the place back. Evicting earlier would throw out keys that pause for a moment and come back.
//! * **Sealing.** An idle word is exchanged for [`SEALED`] before its entry leaves the map. If a check
//!   charges it first, the seal fails and the key stays. If the seal comes first, the check finds no
//!   value there, charges nothing, helps to remove the entry and starts again. So no check is ever
//!   charged to an entry that others cannot find.
//! * **Forgetting** (`exact/walk.rs`), because someone asks for it: the word is exchanged for [`SEALED`] whatever
//!   it is, or only if it is still the one that was judged. A check is charged to the entry before that, and
//!   what it was charged is in the word that the exchange gives back, or to a new entry after it. A pending
//!   entry may be sealed as well: who would promote it starts again.
//! * **Sealed is for good.** An entry never leaves that state, so "remove it if it is sealed" removes
//!   the very entry, though the same key may have come back meanwhile under the same hash and in the
//!   same place. Exactly one thread's removal succeeds, and that one puts the place back.
//! * **Two threads on one new key.** The map takes one entry; the other thread puts its place back and
//!   is charged on the winner's word.
//! * **A thread that stops** in between leaves at most a sealed entry, which the next check of its key
//!   removes, a pending one, which the next check promotes, or a reserved place. The table waits for
//!   nobody. papaya does, rarely, on the road of a newcomer: it locks while it makes a larger or cleaner
//!   index, and lets others help to copy.
//! * **Time.** Idleness may be judged by any reading: a late clock keeps a key longer. But a word that is
//!   gone can no longer say that a window has ended or a token was spent, and a clock may step back, or a
//!   thread hold an old reading. So each eviction leaves its time in `evicted_ns` before it seals, and the
//!   promoter reads that after it has seen the mark: **no key begins before it was last evicted**, nor
//!   before anyone else was; at most it waits for the clock to come back to it. Who forgets a key leaves no
//!   time: that is a fresh start on purpose, and no reason for other keys to wait.

mod walk;

use std::borrow::Borrow;

pub use walk::Seen;

use super::places::{LIVE, Places, Reserved};
use super::{Answer, Ask, Engine, Full, InTier, Ordered, TierNumber};
use crate::sync::{AtomicU64, Ordering, Padded, fence};
use crate::time::Clock;
use crate::word::{Order, TABLE_BIT};

/// The word of an entry that is leaving the map.
pub const SEALED: u64 = TABLE_BIT;
/// The word of an entry that has not begun: any check of its key may promote it.
const PENDING: u64 = TABLE_BIT | 1;

/// Places visited before a new key is turned away.
#[cfg(not(tidegate_loom))]
const VISITS_WHEN_FULL: usize = 64;
#[cfg(tidegate_loom)]
const VISITS_WHEN_FULL: usize = 1;
/// How often a check starts again because its entry was leaving, or another thread inserted first.
#[cfg(not(tidegate_loom))]
const ATTEMPTS: usize = 16;
#[cfg(tidegate_loom)]
const ATTEMPTS: usize = 5;

/// A key as the map holds it.
#[derive(Debug)]
pub struct Stored<K> {
    /// Hash of the key, marked as live.
    pub hash: u64,
    /// The entry's place.
    pub place: u32,
    /// The key itself.
    pub key: K,
}

/// An entry found in the map.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'g> {
    /// The entry's place.
    pub place: u32,
    /// The key's word.
    pub word: &'g AtomicU64,
}

/// What the table needs of a concurrent map. papaya is the one that ships; a loom model brings its
/// own of two slots.
pub trait Map<K> {
    /// Keeps what was found alive.
    type Guard<'m>
    where
        Self: 'm;

    /// Begins an access.
    fn guard(&self) -> Self::Guard<'_>;

    /// The entry of a key.
    fn get<'g, Q>(&'g self, hash: u64, key: &Q, guard: &'g Self::Guard<'_>) -> Option<Entry<'g>>
    where
        K: Borrow<Q> + 'g,
        Q: Eq + ?Sized;

    /// Key and word of the entry with this hash in this place.
    fn get_at<'g>(
        &'g self,
        hash: u64,
        place: u32,
        guard: &'g Self::Guard<'_>,
    ) -> Option<(&'g K, &'g AtomicU64)>
    where
        K: 'g;

    /// Inserts an entry; false, and nothing changed, if the key has one.
    fn insert(&self, stored: Stored<K>, word: u64, guard: &Self::Guard<'_>) -> bool;

    /// Removes the entry with this hash in this place if its word is [`SEALED`]; true for the one
    /// caller who did.
    fn remove_sealed(&self, hash: u64, place: u32, guard: &Self::Guard<'_>) -> bool;

    /// Entries in the map.
    fn count(&self) -> usize;
}

/// Words by whole key.
#[derive(Debug)]
pub struct ExactTable<M> {
    map: M,
    places: Places,
    /// The latest time, in the limiter's nanoseconds, by which a key was judged idle and evicted.
    evicted_ns: Padded<AtomicU64>,
}

impl<M> ExactTable<M> {
    /// A table of at most `max_keys` keys in an empty map.
    pub fn new(map: M, max_keys: usize) -> Self {
        Self { map, places: Places::new(max_keys), evicted_ns: Padded(AtomicU64::new(0)) }
    }

    /// The most keys it holds.
    pub fn max_keys(&self) -> usize {
        self.places.count()
    }

    /// Its map, for models to look into.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Its places, for models to count.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Keys it holds.
    pub fn keys<K>(&self) -> usize
    where
        M: Map<K>,
    {
        // The map adds up counters that move meanwhile, and may be ahead for an instant.
        self.map.count().min(self.max_keys())
    }

    /// Decides a request of `cost` for a key, and charges it.
    #[inline]
    pub fn check<K, Q, C>(&self, engine: &Engine<C>, hash: u64, key: &Q, cost: u64) -> Answer
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        let hash = hash | LIVE;
        let guard = self.map.guard();
        if let Some(entry) = self.map.get(hash, key, &guard)
            && let Ok(charged) = engine.charge_once(entry.word, engine.coarse_ns(), hash, cost, || true)
        {
            return Answer::Decided(charged);
        }
        self.look_everywhere(engine, hash, key, cost, &guard).into()
    }

    /// Decides a request of `cost` for a key by a tier's rule, and charges it.
    pub fn check_in<K, Q, C>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        key: &Q,
        cost: u64,
        tier: TierNumber,
    ) -> Answer
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        let ask = InTier { ask: cost, tier };
        self.look_everywhere(engine, hash | LIVE, key, ask, &self.map.guard()).into()
    }

    /// Carries out an order for a key.
    ///
    /// # Errors
    /// [`Full`] if it would create the key, and there is no room.
    pub fn order<K, Q, C>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        key: &Q,
        order: impl Into<InTier<Order>>,
    ) -> Result<Ordered, Full>
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        self.look_everywhere(engine, hash | LIVE, key, order.into(), &self.map.guard())
    }

    /// Carries out an order on the entry in this place, if one with this hash is still there and `is_good` after the
    /// order too.
    pub fn order_on<K, C>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        place: u64,
        order: impl Into<InTier<Order>>,
        is_good: &dyn Fn() -> bool,
    ) -> Option<Ordered>
    where
        M: Map<K>,
        C: Clock,
    {
        let guard = self.map.guard();
        let (_, word) = self.map.get_at(hash | LIVE, u32::try_from(place).ok()?, &guard)?;
        engine.order(word, hash | LIVE, order, place, is_good)
    }

    /// The word of a key as it stands, and the precise time just after it was read; 0 if the key has none, as a fresh
    /// one. Changes nothing.
    pub fn peek<K, Q, C>(&self, engine: &Engine<C>, hash: u64, key: &Q) -> (u64, u64)
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ?Sized,
        C: Clock,
    {
        let guard = self.map.guard();
        let entry = self.map.get(hash | LIVE, key, &guard);
        // ORDERING: Relaxed: one word, and nothing is read by it.
        let word = entry.map_or(0, |entry| entry.word.load(Ordering::Relaxed));
        (if word & TABLE_BIT == 0 { word } else { 0 }, engine.precise_ns())
    }

    /// Carries it out on the key's entry, whatever state that is in, or on a new one.
    #[cold]
    #[inline(never)]
    fn look_everywhere<K, Q, C, A>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        key: &Q,
        ask: A,
        guard: &M::Guard<'_>,
    ) -> Result<A::Answer, Full>
    where
        M: Map<K>,
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
        A: Ask,
    {
        let (ns, tier) = (engine.coarse_ns(), ask.tier());
        let fresh = || ask.decide(engine.era_in(ask.tier()), 0, ns, hash, 0);
        // A cost of 0, or one that can never fit, is not remembered and creates no key.
        let is_remembered = || engine.eras.bare(fresh().0) != 0;
        for _ in 0..ATTEMPTS {
            let Some(entry) = self.map.get(hash, key, guard) else {
                if !is_remembered() {
                    return Ok(fresh().1);
                }
                self.insert(hash, self.reserve(engine, tier, guard)?, key, guard);
                continue;
            };
            // ORDERING: Acquire pairs with the Release of a seal: the time by which the word was found idle
            // is in `evicted_ns`.
            match entry.word.load(Ordering::Acquire) {
                SEALED => self.remove(hash, entry.place, guard),
                PENDING if !is_remembered() => return Ok(fresh().1),
                PENDING => {
                    if let Some(answer) = self.promote(engine, entry, hash, ask) {
                        return Ok(answer);
                    }
                }
                _ => {
                    let owner = entry.place.into();
                    if let Some(answer) =
                        ask.carry_out(engine, tier, (entry.word, hash), owner, || true, |_| {})
                    {
                        return Ok(answer);
                    }
                }
            }
        }
        let ns = engine.precise_ns();
        Err(Full { ns, room_at_ns: ns, tier })
    }

    /// Puts a pending entry for the key into the map, unless it has one by now.
    fn insert<K, Q>(&self, hash: u64, reserved: Reserved<'_>, key: &Q, guard: &M::Guard<'_>)
    where
        M: Map<K>,
        Q: ToOwned<Owned = K> + ?Sized,
    {
        let place = reserved.place();
        let key = key.to_owned();
        // Before the key can be found: once it can, its place may be put back by who evicts it.
        self.places.occupy(place, hash);
        if self.map.insert(Stored { hash, place, key }, PENDING, guard) {
            reserved.keep();
        }
    }

    /// Gives a pending entry its first word, with the request carried out already.
    pub(super) fn promote<C: Clock, A: Ask>(
        &self,
        engine: &Engine<C>,
        entry: Entry<'_>,
        hash: u64,
        ask: A,
    ) -> Option<A::Answer> {
        // ORDERING: Relaxed: the entry was found by an Acquire of the map's, and its key's last eviction
        // came before that entry.
        let ns = engine.precise_ns().max(self.evicted_ns.0.load(Ordering::Relaxed));
        // ORDERING: SeqCst: whoever changes the limit finds the mark, or is found here; see `eras`.
        fence(Ordering::SeqCst);
        let era = engine.era_in(ask.tier());
        let first = era.rule.begin(era.rule.moment(ns, hash), 0);
        let (next, answer) = ask.decide(era, first, ns, hash, entry.place.into());
        // ORDERING: AcqRel, as in `charge`.
        let promoted = entry.word.compare_exchange(PENDING, next, Ordering::AcqRel, Ordering::Acquire);
        promoted.is_ok().then_some(answer)
    }

    /// A place for a new key, an idle key's if need be; or when the first of the keys looked at becomes
    /// idle.
    fn reserve<K, C>(
        &self,
        engine: &Engine<C>,
        tier: TierNumber,
        guard: &M::Guard<'_>,
    ) -> Result<Reserved<'_>, Full>
    where
        M: Map<K>,
        C: Clock,
    {
        if let Some(reserved) = self.places.reserve() {
            return Ok(reserved);
        }
        let ns = engine.precise_ns();
        let mut room_at_ns = None;
        for _ in 0..VISITS_WHEN_FULL {
            let idle_at_ns = self.visit(engine, ns, guard);
            room_at_ns = room_at_ns.into_iter().chain(idle_at_ns).min();
            if let Some(reserved) = self.places.reserve() {
                return Ok(reserved);
            }
        }
        // Nothing learnt: the places were changing hands. Try again at once.
        Err(Full { ns, room_at_ns: room_at_ns.unwrap_or(ns).max(ns), tier })
    }

    /// Lets the hand visit one place and evicts its key if that is idle; else says when it will be
    /// (`u64::MAX`: beyond the horizon).
    fn visit<K, C>(&self, engine: &Engine<C>, ns: u64, guard: &M::Guard<'_>) -> Option<u64>
    where
        M: Map<K>,
        C: Clock,
    {
        let (place, hash) = self.places.visit()?;
        let (_, word) = self.map.get_at(hash, place, guard)?;
        // ORDERING: Relaxed, as in `charge`: seal and charge are exchanges of one word, whose own order
        // decides which came first.
        let seen = word.load(Ordering::Relaxed);
        let era = engine.era().of(seen);
        let (rule, value) = (era.rule, era.value(seen, ns));
        match seen {
            SEALED => {
                self.remove(hash, place, guard);
                return None;
            }
            PENDING => return None,
            _ if rule.is_idle(value, rule.moment(ns, hash)) => {}
            _ => {
                let idle_at = rule.idle_from(value).saturating_sub(rule.phase(hash));
                let idle_at_ns = rule.time().first_ns_at(idle_at);
                return Some(idle_at_ns.unwrap_or(u64::MAX));
            }
        }
        // ORDERING: Relaxed, published by the seal.
        self.evicted_ns.0.fetch_max(ns, Ordering::Relaxed);
        if seal(word, seen) {
            self.remove(hash, place, guard);
        }
        None
    }

    /// Removes a sealed entry, unless another thread was faster.
    fn remove<K>(&self, hash: u64, place: u32, guard: &M::Guard<'_>)
    where
        M: Map<K>,
    {
        if self.map.remove_sealed(hash, place, guard) {
            self.places.put(place);
        }
    }
}

/// Seals a word if it is still `value`.
fn seal(word: &AtomicU64, value: u64) -> bool {
    // ORDERING: Release pairs with a check that finds the seal, and with the map's own
    // Acquire for one that finds the key missing.
    word.compare_exchange(value, SEALED, Ordering::Release, Ordering::Relaxed).is_ok()
}

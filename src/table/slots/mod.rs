//! The slot table: a fixed array of lines, four slots to a line, a key in one of 32 neighbouring slots.
//!
//! # Protocol
//!
//! **Paths**
//!
//! * *Check*: find the slot that names the key; read fingerprint word and word; decide; exchange the
//!   word; **read the fingerprint word once more**. Only if it is unchanged does the exchange count.
//! * *New key*: claim a slot, publish it as pending, then resolve.
//! * *Claim*: judge a word: FREE, a value that is idle, or (by force) the value that owes least. Exchange
//!   it for CLAIMED: the slot is now one thread's alone. Only then read its fingerprint word, store the
//!   new fingerprint with the next generation, and store pending with it. A generation read before the
//!   slot was one's own could make two marks that look alike.
//! * *Resolve*, by whoever meets a pending slot of its own key: scan, fence, scan again; go on only if
//!   both scans agree, **in the generations of pending slots too**. If there is a value, pending slots are
//!   freed. Else all but the lowest are freed, each by an exchange that must succeed, and only then is the
//!   lowest promoted: exchanged for its first value, which is charged with the request already. Pending slots
//!   beyond the fourth are freed when they are met, without two scans: whoever has one in hand loses a race.
//!
//! **Collisions**
//!
//! * *Two claims of one victim*: one exchange succeeds.
//! * *Two claims for one key*: both publish, each fences, each scans. Whoever scans later sees both; the
//!   lower wins for everybody, since it is promoted only after the other has been freed.
//! * *A claim of the key's own slot*: another thread may have published it since it was found missing. Who
//!   looks for room and meets it looks again, so that no key evicts itself.
//! * *A debt that was inherited and not needed*: a slot that is freed keeps what its claimer took over, and
//!   passes it on to who claims it next.
//! * *Check against takeover*: the check's exchange fails, or it fell on the stranger's word, which had
//!   reached the same number. Then the fingerprint word has changed, and the check starts again. The
//!   stranger may have paid one: losing a race may cost a token, it never hands one out.
//! * *A thread that stops*: before publication it costs one slot until it goes on, and nobody waits; after
//!   it, anybody who wants the key finishes for it.
//!
//! **ABA.** Pending words and fingerprint words carry the slot's generation, which only who holds CLAIMED
//! moves on; a mark comes back after 65 536 claims of one slot between two steps of one thread. A value
//! may well come back: what was judged is a number, and it holds for whoever owns that number. The one
//! exception is a phase (`Alignment::PerKey`), which is the owner's: if the owner has changed between the
//! judgement and the claim, the eviction is counted as a forced one.
//!
//! **Time.** A word that is gone can no longer say that a window has ended: each takeover leaves its time
//! in `evicted_ns` before it claims (or, by force, the start of the victim's window, if a clock that stepped back
//! has made that later), and no new key begins before it. The promoter reads the clock
//! after it saw the mark; the first value is that time, never 0, so that it is not idle at once.
//!
//! **Orderings.** Fingerprint words are stored with Release and read with Acquire; words are exchanged
//! with AcqRel: who finds a value or a mark finds the fingerprint word that was stored before it. The
//! fences between publication and the scans, and between the two scans, are SeqCst: of two threads that
//! each publish and then scan, one at least sees the other's.

mod claim;
#[cfg(feature = "snapshot")]
mod copies;
mod line;
mod look;
mod once;
mod stats;
#[cfg(tidegate_loom)]
mod stops;

#[cfg(feature = "snapshot")]
pub use copies::Copied;
pub use line::Lines;
use line::{
    CLAIMED, LINES_PER_WINDOW, SLOTS_PER_WINDOW, Slot, carried_debt, fingerprint, freed, is_pending,
    is_value, next_owner, owner, tenant, tenure,
};
use look::{Request, Sighting, bits, is_still, name_of, value};
pub use stats::Stats;
use stats::{Counter, Counters};

use super::{Answer, Ask, Engine, Era, Full, Hot, InTier, Missed, Ordered, TierNumber};
use crate::sync::{AtomicU64, Ordering, Padded, fence};
use crate::time::Clock;
use crate::word::{Order, WHOLE_DEBT};

/// How often a check starts again before it gives up with `Full`.
#[cfg(not(tidegate_loom))]
const ATTEMPTS: usize = 16;
#[cfg(tidegate_loom)]
const ATTEMPTS: usize = 4;

/// What to do with a new key when every slot it may stand in is taken by a key that owes something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFull {
    /// The key that owes least makes room, if it owes at most half its limit; what it owed is forgiven
    /// and counted. Else the newcomer is refused with [`Reason::Full`](crate::Reason::Full).
    #[default]
    EvictLeast,
    /// The newcomer is refused with [`Reason::Full`](crate::Reason::Full); nobody is forgiven, but for a rare race of
    /// two claims under `Alignment::PerKey`, which is counted.
    Refuse,
    /// As `EvictLeast`, but the newcomer starts with the share that its victim owed, so that the table as a whole
    /// forgives nothing. The victim itself begins anew when it comes back.
    Inherit,
    /// The newcomer passes, uncounted: **the limit does not hold for it**, nor for a check that loses every
    /// race.
    Admit,
}

/// Words by fingerprint.
#[derive(Debug)]
pub struct SlotTable {
    lines: Lines,
    on_full: OnFull,
    hot: Hot,
    /// The latest time, in the limiter's nanoseconds, by which a value was judged and taken over.
    evicted_ns: Padded<AtomicU64>,
    counters: Counters,
}

impl SlotTable {
    /// A table with room for `max_keys`; `None` if there is not as much memory.
    pub fn new(max_keys: usize, on_full: OnFull, hot: Hot) -> Option<Self> {
        let lines = Lines::new(max_keys)?;
        Some(Self { lines, on_full, hot, evicted_ns: Padded::default(), counters: Counters::default() })
    }

    /// Its lines.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Its heat.
    pub fn hot(&self) -> &Hot {
        &self.hot
    }

    /// The part of a hash that names its key, and that its phase is taken from.
    #[inline]
    pub fn fingerprint(hash: u64) -> u64 {
        fingerprint(hash)
    }

    /// What it has counted, and an estimate of the keys that owe something now.
    pub fn stats<C: Clock>(&self, engine: &Engine<C>) -> Stats {
        const SAMPLE: usize = 4_096;
        let slots = self.lines.slots();
        // Odd, so that every place in a line is sampled: the first ones fill up first.
        let step = slots.div_ceil(SAMPLE) | 1;
        let now_ns = engine.precise_ns();
        let is_live = |slot: &Slot<'_>| {
            // ORDERING: Acquire, both: the word is this owner's or a later one's.
            let named = owner(slot.fingerprint.load(Ordering::Acquire));
            let word = slot.word.load(Ordering::Acquire);
            let era = engine.era().of(word);
            is_value(word) && !era.rule.is_idle(era.value(word, now_ns), era.rule.moment(now_ns, named))
        };
        let sample = (0..slots).step_by(step).map(|number| self.lines.slot(number));
        let (looked_at, live) =
            sample.fold((0, 0), |(all, live), slot| (all + 1, live + u64::from(is_live(&slot))));
        let sum = |counter| self.counters.sum(counter);
        let (forced_evictions, ended) = (sum(Counter::Forced), self.hot.ended());
        Stats {
            live_estimate: u64::try_from(u128::from(live) * slots as u128 / u128::from(looked_at.max(1_u64)))
                .unwrap_or(u64::MAX),
            claims: sum(Counter::Claims) + forced_evictions,
            forced_evictions,
            forgiven_limits: sum(Counter::Forgiven) as f64 / f64::from(WHOLE_DEBT),
            full: sum(Counter::Full),
            untracked: sum(Counter::Untracked),
            exhausted: sum(Counter::Exhausted),
            leases: ended.leases,
            lapsed: ended.lapsed,
            clock_stalls: engine.clock.stalls(),
        }
    }

    /// Decides a request of `cost` for the key of this hash, and charges it, after [`check_once`](Self::check_once)
    /// has `missed`.
    #[cold]
    #[inline(never)]
    pub fn check_on<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64, missed: Missed) -> Answer {
        let fingerprint = fingerprint(hash);
        let window = self.lines.window(hash);
        let request = Request { engine, hot: &self.hot, window, hash, fingerprint, ask: cost };
        // Most keys that are not in the first line are in the second. Beyond, all lines are fetched at once.
        for line in 0..LINES_PER_WINDOW.min(2) {
            let slot = window.guess(line, fingerprint);
            let Some(before) = name_of(slot, fingerprint) else { continue };
            let is_ours = || is_still(slot, before);
            let missed = match line {
                0 => missed,
                _ => match engine.charge_once(slot.word, engine.coarse_ns(), fingerprint, cost, is_ours) {
                    Ok(charged) => return Answer::Decided(charged),
                    Err(missed) => missed,
                },
            };
            match self.hot.charge_on(engine, slot.word, fingerprint, cost, missed, is_ours) {
                Some(charged) => return Answer::Decided(charged),
                None => break,
            }
        }
        self.look_everywhere(request).into()
    }

    /// Decides a request of `cost` for the key of this hash by a tier's rule, and charges it.
    pub fn check_in<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64, tier: TierNumber) -> Answer {
        let (fingerprint, window) = (fingerprint(hash), self.lines.window(hash));
        for line in 0..LINES_PER_WINDOW.min(2) {
            let slot = window.guess(line, fingerprint);
            let Some(before) = name_of(slot, fingerprint) else { continue };
            let is_ours = || is_still(slot, before);
            match engine.charge_in(tier, slot.word, fingerprint, cost, is_ours, |_| {}) {
                Some(charged) => return Answer::Decided(charged),
                None => break,
            }
        }
        let ask = InTier { ask: cost, tier };
        self.look_everywhere(Request { engine, hot: &self.hot, window, hash, fingerprint, ask }).into()
    }

    /// Carries out an order for the key of this hash.
    ///
    /// # Errors
    /// [`Full`] if it would create the key, and there is no room.
    #[cold]
    pub fn order<C: Clock>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        order: impl Into<InTier<Order>>,
    ) -> Result<Ordered, Full> {
        let (fingerprint, window, ask) = (fingerprint(hash), self.lines.window(hash), order.into());
        self.look_everywhere(Request { engine, hot: &self.hot, window, hash, fingerprint, ask })
    }

    /// Carries out an order on the slot that an earlier one was carried out on (its `owner`), if it is still the key's by the
    /// same claim, and `is_good` after the order too.
    pub fn order_on<C: Clock>(
        &self,
        engine: &Engine<C>,
        hash: u64,
        owner: u64,
        order: impl Into<InTier<Order>>,
        is_good: &dyn Fn() -> bool,
    ) -> Option<Ordered> {
        let (fingerprint, window) = (fingerprint(hash), self.lines.window(hash));
        let (number, named) = tenant(owner, fingerprint);
        let slot = (number < SLOTS_PER_WINDOW).then(|| window.slot(number))?;
        if !is_still(slot, named) {
            return None;
        }
        engine.order(slot.word, fingerprint, order, owner, || is_still(slot, named) && is_good())
    }

    /// Has every word adopted by a new era, and every slot freed that is pending: who resolves one may not know of it.
    pub fn walk<C: Clock>(&self, engine: &Engine<C>, era: Era<'_>) {
        for number in 0..self.lines.slots() {
            let slot = self.lines.slot(number);
            // ORDERING: Acquire, both: a mark is freed with its own slot's generation. A slot that is nobody's yet has no
            // word to adopt; who claims it later makes its first value of the new era.
            if slot.fingerprint.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut word = slot.word.load(Ordering::Acquire);
            while is_pending(word) && !free(slot, word) {
                word = slot.word.load(Ordering::Acquire);
            }
            engine.adopt(slot.word, era);
        }
    }

    /// The word of the key of this hash as it stands, and the precise time just after it was read; 0 if the key has no
    /// value, as a fresh one. Changes nothing.
    pub fn peek<C: Clock>(&self, engine: &Engine<C>, hash: u64) -> (u64, u64) {
        let (window, fingerprint) = (self.lines.window(hash), fingerprint(hash));
        let word =
            bits(window.naming(fingerprint)).find_map(|number| value(window.slot(number), fingerprint));
        (word.unwrap_or(0), engine.precise_ns())
    }

    /// Carries the request out in whichever slot the key has, or gets.
    fn look_everywhere<C: Clock, A: Ask>(&self, request: Request<'_, C, A>) -> Result<A::Answer, Full> {
        let Request { engine, fingerprint, ask, .. } = request;
        let fresh = || ask.decide(engine.era_in(ask.tier()), 0, engine.coarse_ns(), fingerprint, 0);
        // A cost of 0, or one that can never fit, is not remembered and creates no key.
        let is_remembered = || engine.eras.bare(fresh().0) != 0;
        for _ in 0..ATTEMPTS {
            let Some(seen) = request.look() else { continue };
            if seen.pending != 0 && is_remembered() {
                if let Some(answer) = self.resolve(request, &seen) {
                    return Ok(answer);
                }
            } else if let Some(number) = bits(seen.values).next() {
                if let Some(answer) = request.carry_out(number) {
                    return Ok(answer);
                }
            } else if !is_remembered() {
                return Ok(fresh().1);
            } else if let Err(room_at_ns) = self.claim(request) {
                return self.no_room(request, room_at_ns);
            }
        }
        self.counters.add(request.hash, Counter::Exhausted, 1);
        let ns = engine.precise_ns();
        self.no_room(request, ns)
    }

    /// Settles which of the key's slots is the one. Either charges it, or makes the caller look again.
    fn resolve<C: Clock, A: Ask>(&self, request: Request<'_, C, A>, seen: &Sighting) -> Option<A::Answer> {
        let Request { engine, window, fingerprint, ask, .. } = request;
        // ORDERING: SeqCst, between the two scans; see the head of this file.
        fence(Ordering::SeqCst);
        let again = request.look()?;
        if seen != &again {
            return None;
        }
        let mut pending =
            bits(seen.pending).zip(seen.marks).map(|(number, mark)| (window.slot(number), mark));
        if let Some(number) = bits(seen.values).next() {
            pending.for_each(|(slot, mark)| {
                free(slot, mark);
            });
            return request.carry_out(number);
        }
        let (lowest, mark) = pending.next()?;
        if !pending.all(|(slot, mark)| free(slot, mark)) {
            return None;
        }
        // ORDERING: Relaxed: whoever evicted this key stored its time before the fingerprint word of the
        // slot's next owner, which the scans read with Acquire.
        let ns = engine.precise_ns().max(self.evicted_ns.0.load(Ordering::Relaxed));
        // After the fence: whoever changes the limit finds the mark, or is found here.
        let era = engine.era_in(ask.tier());
        let first = era.rule.begin(era.rule.moment(ns, fingerprint), carried_debt(mark));
        // ORDERING: Acquire, as in `name_of`. While the word is this mark nobody has claimed the slot, so the
        // fingerprint word still names this key.
        let named = lowest.fingerprint.load(Ordering::Acquire);
        let tenure = tenure(seen.pending.trailing_zeros() as usize, named);
        let (next, answer) = ask.decide(era, first, ns, fingerprint, tenure);
        // ORDERING: AcqRel, as every exchange of a word here.
        let promoted = lowest.word.compare_exchange(mark, next, Ordering::AcqRel, Ordering::Acquire);
        promoted.is_ok().then_some(answer)
    }

    /// The answer for a new key without a slot.
    fn no_room<C: Clock, A: Ask>(
        &self,
        request: Request<'_, C, A>,
        room_at_ns: u64,
    ) -> Result<A::Answer, Full> {
        let ns = request.engine.precise_ns();
        if self.on_full == OnFull::Admit {
            self.counters.add(request.hash, Counter::Untracked, 1);
            return Ok(A::uncounted(ns, request.engine.era_in(request.ask.tier()).word(0)));
        }
        self.counters.add(request.hash, Counter::Full, 1);
        Err(Full { ns, room_at_ns: room_at_ns.max(ns), tier: request.ask.tier() })
    }
}

/// Frees a pending slot, and leaves no name in it that would lead checks astray. False if somebody else
/// has promoted or freed it.
fn free(slot: Slot<'_>, mark: u64) -> bool {
    // ORDERING: AcqRel, as every exchange of a word here.
    if slot.word.compare_exchange(mark, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return false;
    }
    let named = slot.fingerprint.load(Ordering::Acquire);
    // ORDERING: Release, both: who reads FREE, and claims, reads this generation.
    slot.fingerprint.store(next_owner(named, 0), Ordering::Release);
    slot.word.store(freed(mark), Ordering::Release);
    true
}

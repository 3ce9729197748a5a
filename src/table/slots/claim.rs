//! Claiming a slot for a new key.

use std::hint::select_unpredictable;

use super::line::{
    CLAIMED, SLOTS_PER_WINDOW, Slot, carried_debt, is_free, is_value, next_owner, owner, pending,
};
use super::stats::Counter;
use super::{ATTEMPTS, OnFull, Request, SlotTable};
use crate::sync::{Ordering, fence};
use crate::time::Clock;
use crate::word::{Rule, WHOLE_DEBT};

/// A slot that may be claimed, and the word by which it was judged.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    slot: Slot<'a>,
    /// The fingerprint word at the time.
    named: u64,
    word: u64,
    /// What the word is worth by the rule that is in force, if it is a value.
    value: u64,
    rule: &'a Rule,
}

/// What the window has to offer a new key, by number of the slot.
struct Offer<'a> {
    /// The key itself has a slot meanwhile.
    own: bool,
    /// A slot that is nobody's, or else the one that has been idle longest.
    free: Option<usize>,
    /// The slot whose owner owes least, and the word that says so.
    least: Option<(usize, u64)>,
    /// When the first of the others becomes idle, in unshifted units.
    room_at: u64,
    /// By whose time.
    rule: &'a Rule,
    /// Whether who owes least at one time does at every time.
    ranks_for_good: bool,
}

impl SlotTable {
    /// Publishes a pending slot for the request's key, unless another thread has; or says when one of the
    /// window's keys becomes idle, in the limiter's nanoseconds.
    pub(super) fn claim<C: Clock, A: Copy>(&self, request: Request<'_, C, A>) -> Result<(), u64> {
        let engine = request.engine;
        let evicts = matches!(self.on_full, OnFull::EvictLeast | OnFull::Inherit);
        let mut ns = engine.coarse_ns();
        let mut is_precise = false;
        for _ in 0..ATTEMPTS {
            let offer = offer(request, ns);
            if offer.own {
                return Ok(());
            }
            if offer.free.is_none() && !is_precise {
                ns = engine.precise_ns();
                is_precise = true;
                // One of them may be idle by now, or another owe least.
                if !offer.ranks_for_good || offer.rule.time().units(ns) >= offer.room_at {
                    continue;
                }
            }
            let room_at_ns = || offer.rule.time().first_ns_at(offer.room_at).unwrap_or(u64::MAX);
            let least = offer.least.filter(|_| evicts && offer.free.is_none());
            let Some(number) = offer.free.or(least.map(|(number, _)| number)) else {
                return Err(room_at_ns());
            };
            // Judged again, by a word that the claim then holds it to.
            match judge(request, number, ns) {
                // Taken, or charged, meanwhile: look again.
                Some((Candidate { word, .. }, Some(_))) if least.is_none_or(|(_, ranked)| word != ranked) => {
                }
                Some((_, Some(debt))) if debt > WHOLE_DEBT / 2 => return Err(room_at_ns()),
                Some((candidate, forced)) if self.take(request, candidate, ns, forced) => return Ok(()),
                _ => {}
            }
        }
        Err(ns)
    }

    /// Claims the candidate and publishes it for the request's key, unless another thread was faster.
    fn take<C: Clock, A: Copy>(
        &self,
        request: Request<'_, C, A>,
        candidate: Candidate<'_>,
        ns: u64,
        forced: Option<u32>,
    ) -> bool {
        let Candidate { slot, word, .. } = candidate;
        if is_value(word) && word != 0 {
            let ns = if forced.is_some() { left_at_ns(candidate).max(ns) } else { ns };
            // ORDERING: Relaxed, published by the exchange below. The load keeps a flood from writing the
            // same time over and over.
            if self.evicted_ns.0.load(Ordering::Relaxed) < ns {
                self.evicted_ns.0.fetch_max(ns, Ordering::Relaxed);
            }
        }
        // ORDERING: AcqRel: the slot is ours from here, with all that its last owner wrote.
        if slot.word.compare_exchange(word, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let last = slot.fingerprint.load(Ordering::Acquire);
        let evicted = Self::evicted(last, candidate, ns, forced);
        let inherits = self.on_full == OnFull::Inherit;
        self.counters.add(request.hash, if evicted.is_some() { Counter::Forced } else { Counter::Claims }, 1);
        if let Some(debt) = evicted.filter(|_| !inherits) {
            self.counters.add(request.hash, Counter::Forgiven, u64::from(debt));
        }
        let left = if is_free(word) { carried_debt(word) } else { evicted.unwrap_or(0) };
        publish(slot, last, request.fingerprint, if inherits { left } else { 0 });
        true
    }

    /// What the slot's last owner owed, if it was evicted for want of an idle one.
    fn evicted(last: u64, judged: Candidate<'_>, ns: u64, forced: Option<u32>) -> Option<u32> {
        if !is_value(judged.word) || owner(last) == owner(judged.named) {
            return forced;
        }
        // The number was judged with the phase of an owner who has left meanwhile.
        let debt = judged.rule.debt(judged.value, judged.rule.moment(ns, owner(last)));
        (debt > 0 || forced.is_some()).then_some(debt)
    }
}

/// Makes a claimed slot `fingerprint`'s, pending. `last` is the fingerprint word, read after the claim.
pub(super) fn publish(slot: Slot<'_>, last: u64, fingerprint: u64, debt: u32) {
    let next = next_owner(last, fingerprint);
    // ORDERING: Release, both: who reads the mark reads the fingerprint word with its generation.
    slot.fingerprint.store(next, Ordering::Release);
    slot.word.store(pending(next, debt), Ordering::Release);
    // ORDERING: SeqCst, between publication and the scans; see the head of `slots`.
    fence(Ordering::SeqCst);
}

/// A slot that may be claimed, and what its owner owes unless it is nobody's or idle.
fn judge<'a, C: Clock, A: Copy>(
    request: Request<'a, C, A>,
    number: usize,
    ns: u64,
) -> Option<(Candidate<'a>, Option<u32>)> {
    let candidate = read(request, number, ns);
    let Candidate { named, word, value, rule, .. } = candidate;
    if owner(named) == request.fingerprint {
        return None;
    }
    if candidate.is_nobodys() {
        return Some((candidate, None));
    }
    let moment = rule.moment(ns, owner(named));
    is_value(word).then(|| (candidate, (rule.idle_from(value) > moment).then(|| rule.debt(value, moment))))
}

/// When the window began that a value counts in, in the limiter's nanoseconds. After the clock has stepped back that is
/// later than now, and only the value knew that the windows before it were used.
fn left_at_ns(judged: Candidate<'_>) -> u64 {
    let rule = judged.rule;
    let left_at = rule.left_at(judged.value).saturating_sub(rule.phase(owner(judged.named)));
    // A bucket that owes half at most was never left later than now.
    if rule.ranks_for_good() { 0 } else { rule.time().first_ns_at(left_at).unwrap_or(0) }
}

/// A slot's word and the name that goes with it.
#[inline]
fn read<'a, C, A: Copy>(request: Request<'a, C, A>, number: usize, ns: u64) -> Candidate<'a> {
    let slot = request.window.slot(number);
    // ORDERING: Acquire, both, and in this order: the word's owner or a later one is named. The other way
    // round a value could be read under its slot's last name; it would then fail the second judgement.
    let word = slot.word.load(Ordering::Acquire);
    let named = slot.fingerprint.load(Ordering::Acquire);
    // By the rule that the word names: by another it might seem to owe less than it does.
    let era = request.engine.era().of(word);
    Candidate { slot, named, word, value: era.value(word, ns), rule: era.rule }
}

/// From when on its owner owes nothing, in unshifted units, and its rank at `now`.
#[inline(always)]
fn ranked(candidate: Candidate<'_>, now: u64) -> (u64, u64) {
    let Candidate { named, value, rule, .. } = candidate;
    let phase = rule.phase(owner(named));
    (rule.idle_from(value).saturating_sub(phase), rule.rank(value, now + phase))
}

/// The same where rules differ in their units: all in those of one rule, and ranked by the share that is owed.
#[cold]
fn ranked_in_tiers(candidate: Candidate<'_>, ns: u64, units_of: &Rule) -> (u64, u64) {
    let Candidate { named, value, rule, .. } = candidate;
    let moment = rule.moment(ns, owner(named));
    let (idle_from, now) = (rule.idle_from(value), units_of.time().units(ns));
    let later_ns = rule.time().span_ns(idle_from.saturating_sub(rule.phase(owner(named))));
    let idle_from = match idle_from <= moment {
        true => units_of.time().units(later_ns).min(now),
        // Rounded up, and never before it is.
        false => (units_of.time().units(later_ns) + 1).max(now + 1),
    };
    (idle_from, u64::from(rule.debt(value, moment)))
}

impl Candidate<'_> {
    fn is_nobodys(&self) -> bool {
        is_free(self.word) || (self.word == 0 && owner(self.named) == 0)
    }
}

/// Looks through the window for room.
fn offer<'a, C: Clock, A: Copy>(request: Request<'a, C, A>, ns: u64) -> Offer<'a> {
    let era = request.engine.era();
    let rule = era.rule;
    let ranks_for_good = rule.ranks_for_good() && era.is_alone();
    let now = rule.time().units(ns);
    let (mut idle, mut idle_from_least) = (None, u64::MAX);
    // No rank is as high as this: a value has 63 bits.
    let (mut least, mut word_least, mut rank_least) = (0, 0, u64::MAX);
    let mut room_at = u64::MAX;
    for number in 0..SLOTS_PER_WINDOW {
        let candidate = read(request, number, ns);
        let Candidate { named, word, .. } = candidate;
        if owner(named) == request.fingerprint && word != CLAIMED {
            return Offer { own: true, free: None, least: None, room_at, rule, ranks_for_good };
        }
        if candidate.is_nobodys() {
            return Offer { own: false, free: Some(number), least: None, room_at, rule, ranks_for_good };
        }
        if !is_value(word) {
            continue;
        }
        let (idle_from, rank) =
            if era.is_alone() { ranked(candidate, now) } else { ranked_in_tiers(candidate, ns, rule) };
        if idle_from <= now {
            if idle_from < idle_from_least {
                (idle, idle_from_least) = (Some(number), idle_from);
            }
            continue;
        }
        room_at = room_at.min(idle_from);
        // Which one is least is a matter of luck: no branch on it.
        let is_less = rank < rank_least;
        least = select_unpredictable(is_less, number, least);
        word_least = select_unpredictable(is_less, word, word_least);
        rank_least = select_unpredictable(is_less, rank, rank_least);
    }
    let least = (rank_least < u64::MAX).then_some((least, word_least));
    Offer { own: false, free: idle, least, room_at, rule, ranks_for_good }
}

//! What an engine does with a word by whatever limit is in force: the slower road of a charge, orders, and the walk of a
//! change. The protocol stands at the head of `eras.rs`.

use super::{Attempt, CHARGES, Engine, Era, InTier, Ordered, TierNumber};
use crate::sync::{AtomicU64, Ordering};
use crate::time::Clock;
use crate::word::{CarryOver, Decided, Done, Order, Outcome, Paid, TABLE_BIT};

impl<C: Clock> Engine<C> {
    /// An attempt to charge by whatever limit of the tier is in force, and to adopt the word if another one wrote it. A refusal is
    /// only sure by a precise reading.
    pub(super) fn attempt_in_era(
        &self,
        tier: TierNumber,
        word: &AtomicU64,
        (ns, key, cost): (u64, u64, u64),
        is_precise: bool,
    ) -> (Attempt, u64) {
        // ORDERING: as in `attempt`; the era after the word.
        let seen = word.load(Ordering::Acquire);
        if seen & TABLE_BIT != 0 {
            return (Attempt::Mark, seen);
        }
        let era = self.era_in(tier);
        let is_foreign = era.is_foreign(seen);
        if is_foreign && !is_precise {
            // What came back until now came back at the rate before.
            return (Attempt::Doubtful, seen);
        }
        let value = era.value(seen, ns);
        let Decided { outcome, next } = era.rule.decide(value, era.rule.moment(ns, key), cost);
        if outcome == Outcome::Exhausted && !is_precise {
            return (Attempt::Doubtful, seen);
        }
        // Who is refused is told a wait by this rule, and what comes back must come back by it.
        let stays = next == value && !(is_foreign && outcome == Outcome::Exhausted);
        let next = era.word(next);
        if stays {
            return (Attempt::Done { outcome, seen }, next);
        }
        if word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return (Attempt::Lost, seen);
        }
        self.keep_up(word, next, era, ns);
        (Attempt::Done { outcome, seen }, next)
    }

    /// After an exchange that left `written` by `era`: if the limit was changed meanwhile, the walk may have passed the word
    /// before, and (its number having come back in a second change) nobody would adopt it.
    fn keep_up<'e>(&'e self, word: &AtomicU64, mut written: u64, mut era: Era<'e>, ns: u64) {
        loop {
            let now = self.era_in(era.tier());
            if now.number() == era.number() {
                return;
            }
            let next = now.word(now.value_of(era, written, ns));
            // ORDERING: AcqRel, as every exchange of a word. Who was faster has adopted it. If nobody was, it may have been
            // exchanged by a number that has come back, once more.
            if word.compare_exchange(written, next, Ordering::AcqRel, Ordering::Acquire).is_err() {
                return;
            }
            (written, era) = (next, now);
        }
    }

    /// Carries out an order on a shared word of `key` (its fingerprint), by the precise clock. `None` as for
    /// [`charge`](Self::charge); what the order took from a stranger is put back then.
    pub fn order(
        &self,
        word: &AtomicU64,
        key: u64,
        order: impl Into<InTier<Order>>,
        owner: u64,
        is_ours: impl Fn() -> bool,
    ) -> Option<Ordered> {
        let InTier { ask: order, tier } = order.into();
        for _ in 0..CHARGES {
            let ns = self.precise_ns();
            // ORDERING: Acquire, and AcqRel at the exchange, as in `attempt`.
            let before = word.load(Ordering::Acquire);
            if before & TABLE_BIT != 0 {
                return None;
            }
            // What gives back leaves the word to the tier that has it, whichever paid.
            let paid_by = self.era_in(tier);
            let left_by = if order.charges() { paid_by } else { paid_by.of(before) };
            let era = if order.is_of_receipt() { paid_by } else { left_by };
            let value = era.value(before, ns);
            let done = match order {
                // Another tier has been asked since.
                Order::Cancel { .. } if left_by.tier() != era.tier() => {
                    Done::nothing(Outcome::Exhausted, value)
                }
                Order::Refund(paid, most) => {
                    let refilled = if era.is_alone() { 0 } else { era.refilled_at_most(paid.ns, ns) };
                    era.rule.carry_out(Order::Refund(Paid { refilled, ..paid }, most), value, ns, key)
                }
                _ => era.rule.carry_out(order, value, ns, key),
            };
            let next = left_by.word(left_by.value_by(era, done.next, ns));
            let is_told = era.is_foreign(before) && done.outcome == Outcome::Exhausted && order.charges();
            if done.next != value || is_told {
                if word.compare_exchange(before, next, Ordering::AcqRel, Ordering::Acquire).is_err() {
                    continue;
                }
                self.keep_up(word, next, left_by, ns);
            }
            if is_ours() {
                let was_dry = era.rule.dry_until(value, era.rule.moment(ns, key)).is_some();
                return Some(Ordered { done: Done { next, ..done }, ns, was_dry, owner });
            }
            if order.charges() {
                self.fell_on_stranger(word, before, next);
            } else {
                self.put_back(word, (ns, key), era, (value, done.next));
            }
            return None;
        }
        None
    }

    /// Gives a stranger's word back what was taken from it, in `era`, when a value of `before` became `next`.
    fn put_back(&self, word: &AtomicU64, (ns, key): (u64, u64), era: Era<'_>, (before, next): (u64, u64)) {
        // ORDERING: AcqRel, as every exchange of a word. A mark means that the stranger is gone.
        let put_back = |seen| {
            if seen & TABLE_BIT != 0 {
                return None;
            }
            let now = self.era_in(era.tier());
            let [before, next] = [before, next].map(|value| match now.number() == era.number() {
                true => value,
                false => now.rule.adopt(era.rule, CarryOver::KeepUsed, value, ns),
            });
            let moment = now.rule.moment(ns, key);
            Some(now.word(now.rule.put_back(now.value(seen, ns), moment, before, next)))
        };
        _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, put_back);
    }

    /// Has a word adopted by the era, if it is a value of the one before: what the walk of a change does.
    pub fn adopt(&self, word: &AtomicU64, era: Era<'_>) {
        // ORDERING: AcqRel, as every exchange of a word: a charge that was made meanwhile is seen, or has adopted it.
        let adopted =
            |seen| (seen & TABLE_BIT == 0 && era.is_past(seen)).then(|| era.kept(seen, self.precise_ns()));
        _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, adopted);
    }
}

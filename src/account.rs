//! What all limiters do with a key beside checking it: charge it whatever it has, give back, reserve, begin anew.
//! The limiters say how an order reaches the key's word.

use std::time::Duration;

use crate::answer::{Denied, Snapshot};
use crate::decision::Reason;
use crate::receipt::{Receipt, Reservation};
use crate::settings::Core;
use crate::table::{Answer, Charged, Full, Hot, InTier, Ordered, Resets, TierNumber};
use crate::time::Clock;
use crate::time::timebase::saturating_ns;
use crate::word::{Decided, Order, Paid};

/// Which key, in the two ways that tables name it.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) hash: u64,
    /// What its phase is taken from.
    pub(crate) fingerprint: u64,
    /// Whose limit it has.
    pub(crate) tier: TierNumber,
}

impl<C: Clock> Core<C> {
    /// Charges `cost` as far as the debt allows.
    pub(crate) fn charge(
        &self,
        key: Named,
        cost: u64,
        order: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> Result<Receipt, Denied> {
        self.engine.note_debts();
        self.pay(key, cost, Order::Charge(cost), order)
    }

    /// Charges `cost` if it fits, and counts no refusal.
    pub(crate) fn take(
        &self,
        key: Named,
        cost: u64,
        order: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> Result<Receipt, Denied> {
        self.pay(key, cost, Order::Take(cost), order)
    }

    /// Charges `cost` for a turn that comes after `wait_max` at most.
    pub(crate) fn reserve(
        &self,
        key: Named,
        cost: u64,
        wait_max: Duration,
        order: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> Result<Reservation, Denied> {
        if self.engine.rule.turn(0).is_none() {
            // So it is under every limit that may follow.
            let standing = self.standing_in(
                self.engine.era_in(key.tier),
                (0, self.engine.precise_ns()),
                key.fingerprint,
            );
            return Err(Denied {
                snapshot: standing.snapshot,
                cost,
                reason: Reason::Unsupported,
                back_at_ns: 0,
                is_counted: false,
            });
        }
        self.engine.note_debts();
        let order_of = Order::Reserve { cost, wait_ns_max: saturating_ns(wait_max) };
        let receipt = self.pay(key, cost, order_of, order)?;
        let Snapshot { rule, word, ns, .. } = receipt.snapshot;
        let turn_ns = rule.turn(word).and_then(|turn| rule.time().first_ns_at(turn));
        let wait_ns = if cost == 0 { 0 } else { turn_ns.unwrap_or(0).saturating_sub(ns) };
        Ok(Reservation { receipt, wait: Duration::from_nanos(wait_ns) })
    }

    fn pay(
        &self,
        key: Named,
        cost: u64,
        order: Order,
        carry_out: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> Result<Receipt, Denied> {
        let (resets, changes) = (self.resets.count(key.hash), self.engine.eras.changes());
        // Who asks for a turn in line has no need of a place in another.
        let has_place = matches!(order, Order::Take(_));
        let ordered = carry_out(InTier { ask: order, tier: key.tier })
            .map_err(|full| self.no_room(full, key.fingerprint, cost))?;
        let Ordered { done, ns, owner, .. } = ordered;
        let decided = Decided { outcome: done.outcome, next: done.next };
        let answer = Answer::Decided(Charged { decided, ns });
        let place_ns = if has_place { self.place(&answer, key.fingerprint, cost) } else { 0 };
        let told = self.respond_placed(answer, place_ns, key.fingerprint, cost);
        let pass = told.map_err(|denied| Denied { is_counted: false, ..denied })?;
        Ok(Receipt {
            snapshot: Snapshot { is_steady: false, ..pass.snapshot },
            limiter: self.number,
            hash: key.hash,
            tier: key.tier,
            owner,
            resets,
            changes,
            asked: cost,
            charged: done.tokens,
        })
    }

    /// Gives back what the receipt is still good for, `most` at most; how much.
    pub(crate) fn refund(
        &self,
        receipt: &Receipt,
        most: u64,
        hot: Option<&Hot>,
        carry_out: impl FnOnce(InTier<Order>, &dyn Fn() -> bool) -> Option<Ordered>,
    ) -> u64 {
        let Snapshot { word, ns, .. } = receipt.snapshot;
        let order = Order::Refund(Paid { tokens: receipt.charged, word, ns, refilled: 0 }, most);
        self.note_gift(receipt.hash);
        let back = self.give_back(receipt, hot, order, Resets::is_same_life, carry_out);
        self.note_gift(receipt.hash);
        back
    }

    /// Gives a reservation back, if it was the last; whether it was. That its word is the one that it left says so only if
    /// nothing was given back since: a later charge may have come to the same number.
    pub(crate) fn cancel(
        &self,
        reservation: &Reservation,
        hot: Option<&Hot>,
        carry_out: impl FnOnce(InTier<Order>, &dyn Fn() -> bool) -> Option<Ordered>,
    ) -> bool {
        let receipt = &reservation.receipt;
        let order = Order::Cancel { left: receipt.snapshot.word, tokens: receipt.charged };
        self.give_back(receipt, hot, order, |then, now| then == now, carry_out) > 0
    }

    fn give_back(
        &self,
        receipt: &Receipt,
        hot: Option<&Hot>,
        order: Order,
        is_valid: impl Fn(u64, u64) -> bool,
        carry_out: impl FnOnce(InTier<Order>, &dyn Fn() -> bool) -> Option<Ordered>,
    ) -> u64 {
        let is_good = || {
            receipt.changes == self.engine.eras.changes()
                && is_valid(receipt.resets, self.resets.count(receipt.hash))
        };
        if receipt.limiter != self.number || receipt.charged == 0 || !is_good() {
            return 0;
        }
        carry_out(InTier { ask: order, tier: receipt.tier }, &is_good)
            .map_or(0, |ordered| Self::gave(ordered, hot))
    }

    /// Gives back up to `tokens` of what the key has used, whoever paid it; how much.
    pub(crate) fn credit(
        &self,
        tokens: u64,
        key: Named,
        hot: Option<&Hot>,
        order: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> u64 {
        self.note_gift(key.hash);
        let order_of = InTier { ask: Order::Credit(tokens), tier: key.tier };
        let back = order(order_of).map_or(0, |ordered| Self::gave(ordered, hot));
        self.note_gift(key.hash);
        back
    }

    /// Something is given back to a key of this hash, in whose line somebody may wait.
    fn note_gift(&self, hash: u64) {
        if self.engine.has_debts() {
            self.resets.gave(hash);
        }
    }

    /// Makes the key one that was never seen. False if too many races were lost.
    pub(crate) fn reset(
        &self,
        key: Named,
        hot: Option<&Hot>,
        order: impl FnOnce(InTier<Order>) -> Result<Ordered, Full>,
    ) -> bool {
        let ordered = self.resets.around(key.hash, || order(InTier { ask: Order::Reset, tier: key.tier }));
        self.stagger.forget(key.fingerprint);
        ordered.map(|ordered| Self::gave(ordered, hot)).is_ok()
    }

    /// Something was given back to a key, perhaps one that threads knew to be dry.
    fn gave(ordered: Ordered, hot: Option<&Hot>) -> u64 {
        if let Some(hot) = hot
            && ordered.was_dry
        {
            hot.wet();
        }
        ordered.done.tokens
    }
}

//! The road of nearly every check: one attempt, or none.

use super::line::fingerprint;
use super::stats::Counter;
use super::{SlotTable, bits, is_still, name_of};
use crate::table::{Answer, Charged, Engine, Lease, Missed};
use crate::time::Clock;

impl SlotTable {
    /// Decides a request of `cost` for the key of this hash, and charges it.
    #[inline(always)]
    pub fn check<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64) -> Answer {
        match self.check_once(engine, hash, cost) {
            Ok(charged) => Answer::Decided(charged),
            Err(missed) => self.check_on(engine, hash, cost, missed),
        }
    }

    /// Decides a request of `cost` for the key of this hash, and charges it, if that is a matter of a lease, or of
    /// one attempt on a slot of the key's first line.
    #[inline(always)]
    pub fn check_once<C: Clock>(&self, engine: &Engine<C>, hash: u64, cost: u64) -> Result<Charged, Missed> {
        let fingerprint = fingerprint(hash);
        let ns = engine.coarse_ns();
        if self.hot.is_hot(ns) {
            if let Some(charged) = self.hot.spend(fingerprint, ns, cost) {
                return Ok(charged);
            }
            if let Some(charged) = self.check_hot(engine, hash, ns, cost) {
                return Ok(charged);
            }
        }
        let slot = self.lines.window(hash).guess(0, fingerprint);
        let before = name_of(slot, fingerprint).ok_or(Missed::NotOurs)?;
        engine.charge_once(slot.word, ns, fingerprint, cost, || is_still(slot, before))
    }

    /// The check of a key that the thread has a shard for, but no lease that is enough. `None` if it has no shard,
    /// or one attempt does not settle it.
    #[cold]
    #[inline(never)]
    fn check_hot<C: Clock>(&self, engine: &Engine<C>, hash: u64, ns: u64, cost: u64) -> Option<Charged> {
        let key = fingerprint(hash);
        self.hot.shard(key, |shard| {
            if let Some(ended) = self.hot.roll(shard, ns) {
                self.counters.add(hash, Counter::Leases, ended.leases);
                self.counters.add(hash, Counter::Lapsed, ended.lapsed);
            }
            if cost == 0 {
                return None;
            }
            let mut precise_ns = None;
            if shard.is_dry(engine.rule.moment(ns, key)) {
                let ns = match engine.clock.lag_bound_ns() {
                    Some(lag_ns) if shard.is_dry(engine.rule.moment(ns.saturating_add(lag_ns), key)) => ns,
                    _ => engine.precise_ns(),
                };
                let moment = engine.rule.moment(ns, key);
                if shard.is_dry(moment) {
                    return Some(Charged { decided: engine.rule.decide(shard.dry(), moment, cost), ns });
                }
                precise_ns = Some(ns);
            }
            let window = self.lines.window(hash);
            let first = window.guess(0, key);
            let (slot, before) = match name_of(first, key) {
                Some(before) => (first, before),
                None => {
                    let other = window.slot(bits(window.naming(key)).next()?);
                    (other, name_of(other, key)?)
                }
            };
            let is_ours = || is_still(slot, before);
            let lost = |ns| self.hot.lost(key, ns);
            let precisely = |ns| engine.charge_precisely(slot.word, ns, key, cost, is_ours, lost);
            let lease = match precise_ns {
                Some(ns) => Lease { charged: precisely(ns)?, tokens: 0 },
                None => match engine.lease_once(slot.word, ns, key, cost, shard.lease_max(), is_ours) {
                    Ok(lease) => lease,
                    Err(Missed::Doubtful) => Lease { charged: precisely(engine.precise_ns())?, tokens: 0 },
                    Err(missed) => {
                        if missed == Missed::Lost {
                            lost(ns);
                        }
                        return None;
                    }
                },
            };
            self.hot.note(&engine.rule, shard, cost, lease);
            Some(lease.charged)
        })
    }
}

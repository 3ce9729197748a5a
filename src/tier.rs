//! [`Tier`]: a limit beside the limiter's own, and what all limiters do with one.

use std::hash::Hash;

use crate::error::ConfigError;
use crate::limit::Limit;
use crate::settings::Core;
use crate::table::{Change, Era, Hot, OWN, Overrides, TierNumber};
use crate::time::Clock;
use crate::word::CarryOver;

/// A limit that a limiter has beside its own, for some of its keys: a plan that is paid for, callers of one's own. Made by
/// the limiter's `tier`, and given at the check.
///
/// A key has one count, whichever limit it is checked by: what it has used under one it has used under another, as many
/// tokens or requests. So who changes to a higher tier gets what that allows less what was used, and who changes to a lower
/// one may owe more than its whole limit. What comes back does so at the rate of the one that the key was last asked by,
/// whether that let it pass or not; looking (`peek`, a cost of 0) and giving back change nothing in that. So a wait that is told holds for
/// who asks by the same limit again.
///
/// A receipt is good for what it paid less what any of the limiter's limits can have refilled since.
///
/// A tier of another limiter stands for the limiter's own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tier {
    limiter: u64,
    number: TierNumber,
}

impl<C: Clock> Core<C> {
    /// The number of a tier here.
    pub(crate) fn number_of(&self, tier: Tier) -> TierNumber {
        if tier.limiter == self.number { tier.number } else { OWN }
    }

    /// Makes a tier.
    pub(crate) fn tier<K: Hash + Eq>(
        &self,
        overrides: &Overrides<K>,
        limit: Limit,
        hot: Option<&Hot>,
        walk: impl Fn(Era<'_>),
    ) -> Result<Tier, ConfigError> {
        let mut turn = overrides.turn();
        let number = self.change(Change::Tier(limit), CarryOver::KeepUsed, hot, walk)?;
        turn.name(number);
        Ok(Tier { limiter: self.number, number })
    }

    /// The limit of a tier now.
    pub(crate) fn limit_of(&self, number: TierNumber) -> Limit {
        self.engine.eras.limit(number).unwrap_or(self.limit)
    }

    /// Changes the limit of a tier.
    pub(crate) fn set_tier_limit(
        &self,
        tier: Tier,
        limit: Limit,
        hot: Option<&Hot>,
        walk: impl Fn(Era<'_>),
    ) -> Result<(), ConfigError> {
        if tier.limiter != self.number {
            return Err(ConfigError::ForeignTier);
        }
        self.change(Change::Of(tier.number, limit), CarryOver::KeepUsed, hot, walk).map(drop)
    }

    /// Gives a key a limit of its own: by a tier that other overrides of this limit have, a new one, or one that none needs
    /// any more.
    pub(crate) fn set_override<K: Hash + Eq>(
        &self,
        overrides: &Overrides<K>,
        key: K,
        limit: Limit,
        hot: Option<&Hot>,
        walk: impl Fn(Era<'_>),
    ) -> Result<(), ConfigError> {
        let turn = overrides.turn();
        let eras = &self.engine.eras;
        let alike = turn.unnamed(eras.tiers()).find(|&tier| eras.limit(tier) == Some(limit));
        let tier = match alike {
            Some(tier) => tier,
            None => match self.change(Change::Tier(limit), CarryOver::KeepUsed, hot, &walk) {
                Ok(tier) => tier,
                Err(full @ ConfigError::TooManyTiers { .. }) => {
                    let unused = turn.unused_but_by(&key, eras.tiers()).ok_or(full)?;
                    // In the key's own place its limit changes. What was used in another's goes back to the limiter's own.
                    let is_own = overrides.get(&key) == Some(unused);
                    let change = if is_own { Change::Of } else { Change::Anew };
                    self.change(change(unused, limit), CarryOver::KeepUsed, hot, &walk)?
                }
                Err(error) => return Err(error),
            },
        };
        turn.set(key, tier);
        Ok(())
    }
}

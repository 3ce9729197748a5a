//! The rules that a limiter decides by: one for each tier, and one set of them after another as limits are changed.
//!
//! # Tiers
//!
//! A limiter that was built for tiers gives its values fewer bits. Those above say which tier's rule left the value; 0 is
//! the limiter's own. A check by another tier adopts the word in its own exchange, and what was used stays used. So a key has one
//! count, whichever of its tiers it is asked for, and who evicts a key judges it by the rule that its word names. A tier
//! is made by a change like any other.
//!
//! # Changes
//!
//! * A word says by bit 62 whether a set of rules with an even or an odd number wrote it. A change has two steps: the **flip**
//!   publishes the next set, and the **walk** adopts every word that the one before wrote. Changes take turns, so no
//!   word is ever of a third set.
//! * Who reads a word reads the era **after** it: the word's rule is then the era's, or the one before. If the limit is
//!   changed once more in between, the walk has changed the word, and the exchange fails.
//! * A word of the rule before is adopted by whoever decides on it, in its own exchange. No check waits. Who finds after
//!   its exchange that the era has gone on adopts what it wrote: the walk may have passed the word, and a second change
//!   have brought its number back.
//! * Every rule is kept for as long as the limiter lives, so that nobody needs a guard to read one. A limit that
//!   comes back takes the place that it had.
//!
//! **Orderings.** The flip is a Release store, the era an Acquire load: a word of the new rule is found only with its era.
//! A mark has no rule: who makes a value of one has a SeqCst fence between finding it and reading the era, and the
//! walk has one between the flip and its look at the mark. So either the walk finds the mark, or its promoter finds
//! the new era.

use std::sync::Mutex;

mod sets;

use sets::{List, Set};

use crate::error::ConfigError;
use crate::limit::Limit;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::time::timebase::{HORIZON_LEAST_NS, beyond_horizon, value_max};
use crate::word::{CarryOver, Rule, TABLE_BIT, VALUE_BITS, VALUE_MAX};

/// Bit 62 of a word.
const ERA_BIT: u64 = VALUE_MAX + 1;
/// Sets of rules are numbered by so many bits.
const INDEX_BITS: u32 = 16;
const INDEX: u64 = (1 << INDEX_BITS) - 1;

/// The changes are counted from this bit of the state on.
const CHANGES_SHIFT: u32 = 2 * INDEX_BITS + 2;
/// Set in the state from the first change on: the bit by which a word is a mark, so that a check asks for both at once.
const CHANGED: u64 = TABLE_BIT;

/// A tier's number; 0 is the limiter's own limit.
pub type TierNumber = u8;
/// The limiter's own limit.
pub const OWN: TierNumber = 0;

/// The rule of a tier, and how to tell its words from those of other tiers and of the set before.
#[derive(Clone, Copy)]
pub struct Era<'e> {
    /// What decides.
    pub rule: &'e Rule,
    tier: TierNumber,
    /// A tier whose words the walk gives to the limiter's own rule; `OWN`: none.
    recalled: TierNumber,
    eras: &'e Eras,
    first: &'e Rule,
    state: u64,
}

impl<'e> Era<'e> {
    /// Changes of limits so far.
    #[inline]
    pub fn number(&self) -> u64 {
        number(self.state)
    }

    /// Whose rule it is.
    pub fn tier(&self) -> TierNumber {
        self.tier
    }

    /// The same set of rules, and another tier's of them; the limiter's own rule if there is no such tier.
    #[inline]
    pub fn within(&self, tier: TierNumber) -> Self {
        let (rule, tier) = self.eras.rule(self.first, self.state & INDEX, tier);
        Self { rule, tier, ..*self }
    }

    /// The same set of rules, and of them the one that a word names.
    #[inline]
    pub fn of(&self, word: u64) -> Self {
        let tier = self.eras.tier_of(word);
        if tier == self.tier { *self } else { self.within(tier) }
    }

    /// What the walk leaves of a word that is past: the same tier's, but of one that is recalled the limiter's own.
    pub fn kept(&self, word: u64, ns: u64) -> u64 {
        let its = self.of(word);
        if its.tier == OWN || its.tier != self.recalled {
            return its.word(its.value(word, ns));
        }
        let own = self.within(OWN);
        own.word(own.rule.adopt(its.before(), CarryOver::KeepUsed, self.eras.bare(word), ns))
    }

    /// A value of another tier's in the terms of this one's rule.
    pub fn value_by(&self, era: Self, value: u64, ns: u64) -> u64 {
        if era.tier == self.tier { value } else { self.rule.adopt(era.rule, CarryOver::KeepUsed, value, ns) }
    }

    /// The most that any tier's rule can have refilled between two times of the limiter's, in units of this one's.
    pub fn refilled_at_most(&self, from_ns: u64, to_ns: u64) -> u64 {
        let set = self.eras.set(self.state & INDEX);
        let rules = set.into_iter().flat_map(|set| std::iter::once(&set.own).chain(&set.tiers));
        rules.map(|rule| self.rule.refilled_by(rule, from_ns, to_ns)).max().unwrap_or(0)
    }

    /// Whether there is but one rule, so that all words can be compared as they are.
    pub fn is_alone(&self) -> bool {
        self.eras.tag_bits == 0
    }

    #[inline]
    fn bit(&self) -> u64 {
        (self.number() & 1) << VALUE_BITS
    }

    /// Whether a word that was read before the era is of the set before.
    #[inline]
    pub fn is_past(&self, word: u64) -> bool {
        self.state != 0 && word & ERA_BIT != self.bit()
    }

    /// Whether a word that was read before the era is of another rule, and has to be adopted.
    #[inline]
    pub fn is_foreign(&self, word: u64) -> bool {
        self.is_past(word) || self.eras.tier_of(word) != self.tier
    }

    /// The value of a word that was read before the era was: in the terms of its rule.
    #[inline]
    pub fn value(&self, word: u64, ns: u64) -> u64 {
        if self.is_foreign(word) { self.adopted(word, ns) } else { self.eras.bare(word) }
    }

    #[cold]
    fn adopted(&self, word: u64, ns: u64) -> u64 {
        let value = self.eras.bare(word);
        let its = self.of(word);
        let value = match self.is_past(word) {
            true => its.rule.adopt(its.before(), self.carry_over(), value, ns),
            false => value,
        };
        self.value_by(its, value, ns)
    }

    /// The value of a word that was written in an era before, of the same tier.
    pub fn value_of(&self, era: Era<'_>, word: u64, ns: u64) -> u64 {
        if era.number() + 1 == self.number() {
            return self.value(word, ns);
        }
        self.rule.adopt(era.rule, CarryOver::KeepUsed, self.eras.bare(word), ns)
    }

    /// The word for a value. A key that was never seen has none.
    #[inline]
    pub fn word(&self, value: u64) -> u64 {
        value | self.bit() | self.eras.tag(self.tier)
    }

    /// The rule that wrote a word.
    #[inline(never)]
    pub fn writer(&self, word: u64) -> &'e Rule {
        let its = self.of(word);
        if self.is_past(word) { its.before() } else { its.rule }
    }

    #[cold]
    fn before(&self) -> &'e Rule {
        self.eras.rule(self.first, self.state >> INDEX_BITS & INDEX, self.tier).0
    }

    fn carry_over(&self) -> CarryOver {
        match self.state >> (2 * INDEX_BITS) & 3 {
            0 => CarryOver::KeepUsed,
            1 => CarryOver::Proportional,
            _ => CarryOver::Reset,
        }
    }
}

/// How many changes a state counts. (After 2^29 it begins at 0 again, a year of sixteen a second; what matters is whether two
/// are the same, and which one is odd.)
#[inline]
fn number(state: u64) -> u64 {
    (state & !CHANGED) >> CHANGES_SHIFT
}

/// What of the limits is to be another.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The limit of this tier.
    Of(TierNumber, Limit),
    /// The same, of a tier that was other keys' until now: what they have used goes back to the limiter's own limit.
    Anew(TierNumber, Limit),
    /// There is one tier more.
    Tier(Limit),
}

/// The limits that came after the one that the limiter was built with, and those of tiers.
#[derive(Debug, Default)]
pub struct Eras {
    /// How many changes there were, what is carried over at the last, and the numbers of the sets before it and
    /// after it: `[1 | changes: 29 | carry over: 2 | before: 16 | now: 16]`. 0: no limit was ever changed.
    state: AtomicU64,
    later: List,
    /// Tiers that there may be.
    tiers_max: TierNumber,
    /// Bits of a word that name them, below bit 62.
    tag_bits: u8,
    /// Held by who changes a limit. Nobody who checks knows it.
    changing: Mutex<()>,
}

impl Eras {
    /// Eras of a limiter that may be given so many tiers.
    pub fn with_tiers(tiers_max: TierNumber) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "8 at most")]
        let tag_bits = (TierNumber::BITS - tiers_max.leading_zeros()) as u8;
        Self { tiers_max, tag_bits, ..Self::default() }
    }

    /// Bits that a value may have beside as many tiers.
    pub fn value_bits(&self) -> u32 {
        VALUE_BITS - u32::from(self.tag_bits)
    }

    /// Tiers that there may be.
    pub fn tiers_max(&self) -> TierNumber {
        self.tiers_max
    }

    /// The tier that a word names.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "of 8 bits at most")]
    fn tier_of(&self, word: u64) -> TierNumber {
        ((word & VALUE_MAX) >> self.value_bits()) as TierNumber
    }

    #[inline]
    fn tag(&self, tier: TierNumber) -> u64 {
        u64::from(tier) << self.value_bits()
    }

    /// A word without what it says of its rule.
    #[inline]
    pub fn bare(&self, word: u64) -> u64 {
        word & value_max(self.value_bits())
    }

    /// 0 as long as no limit was ever changed; to be read after a word.
    #[inline(always)]
    pub fn state(&self) -> u64 {
        // ORDERING: Acquire pairs with the flip.
        self.state.load(Ordering::Acquire)
    }

    /// Whether a limit was ever changed, or a tier made; to be asked after a word was read.
    #[inline(always)]
    pub fn is_changed(&self) -> bool {
        self.state() != 0
    }

    /// How often a limit was changed.
    pub fn changes(&self) -> u64 {
        number(self.state())
    }

    /// The era now; to be read after the word.
    #[inline]
    pub fn now<'e>(&'e self, first: &'e Rule, tier: TierNumber) -> Era<'e> {
        self.era(first, self.state(), tier)
    }

    #[inline]
    fn era<'e>(&'e self, first: &'e Rule, state: u64, tier: TierNumber) -> Era<'e> {
        let (rule, tier) = self.rule(first, state & INDEX, tier);
        Era { rule, tier, recalled: OWN, eras: self, first, state }
    }

    /// A rule of a set that a state names, which has been made before. Where the tier is none of the set, the limiter's own.
    #[inline]
    fn rule<'e>(&'e self, first: &'e Rule, index: u64, tier: TierNumber) -> (&'e Rule, TierNumber) {
        let Some(set) = self.set(index) else { return (first, OWN) };
        let its = usize::from(tier).checked_sub(1).and_then(|place| set.tiers.get(place));
        its.map_or((&set.own, OWN), |rule| (rule, tier))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "of INDEX_BITS")]
    fn set(&self, index: u64) -> Option<&Set> {
        self.later.get(index as usize)
    }

    /// The limit of a tier now; `None` if it is the limiter's own and was never changed, or is the first again.
    pub fn limit(&self, tier: TierNumber) -> Option<Limit> {
        self.set(self.state() & INDEX).and_then(|set| set.limits.get(usize::from(tier)).copied())
    }

    /// Runs `work` while nobody changes a limit.
    #[cfg(feature = "snapshot")]
    pub fn while_unchanged<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work()
    }

    /// Changes a limit at `now_ns` of the limiter's time, if it is another, or adds one; `first` is what the limiter was built
    /// with. `walk` is then given the new era, and has to adopt all words that are past. Returns whose limit it was.
    ///
    /// # Errors
    /// The limit cannot be honoured, does not follow the one before, or is one too many.
    pub fn change(
        &self,
        (first, rule): (Limit, &Rule),
        change: Change,
        carry_over: CarryOver,
        now_ns: u64,
        walk: impl Fn(Era<'_>),
    ) -> Result<TierNumber, ConfigError> {
        let (Change::Of(_, limit) | Change::Anew(_, limit) | Change::Tier(limit)) = change;
        self.ready(&limit, (&first, rule), now_ns)?;
        let _turn = self.changing.lock().unwrap_or_else(|poisoned| {
            // The clock has panicked in the last walk. Its words first.
            walk(self.now(rule, OWN));
            self.changing.clear_poison();
            poisoned.into_inner()
        });
        // ORDERING: Relaxed: only who has the turn changes it.
        let state = self.state.load(Ordering::Relaxed);
        let mut limits = self.set(state & INDEX).map_or_else(|| vec![first], |set| set.limits.to_vec());
        let tier = match change {
            Change::Of(tier, limit) | Change::Anew(tier, limit) => {
                let Some(its) = limits.get_mut(usize::from(tier)) else { return Ok(tier) };
                // Who asks for a reset means it.
                if *its == limit && carry_over != CarryOver::Reset {
                    return Ok(tier);
                }
                *its = limit;
                tier
            }
            Change::Tier(limit) => {
                let tier = TierNumber::try_from(limits.len()).ok().filter(|&tier| tier <= self.tiers_max);
                limits.push(limit);
                tier.ok_or(ConfigError::TooManyTiers { tiers_max: self.tiers_max.into() })?
            }
        };
        let index = self.index_of(&limits, (&first, rule))?;
        let changes = number(state) + 1;
        let carry_over = match carry_over {
            CarryOver::KeepUsed => 0,
            CarryOver::Proportional => 1,
            CarryOver::Reset => 2,
        };
        let next = ((changes << 2 | carry_over) << INDEX_BITS | state & INDEX) << INDEX_BITS | index as u64;
        let next = next | CHANGED;
        // ORDERING: Release: the flip. SeqCst, the fence: see the head of this file.
        self.state.store(next, Ordering::Release);
        fence(Ordering::SeqCst);
        let recalled = if matches!(change, Change::Anew(..)) { tier } else { OWN };
        walk(Era { recalled, ..self.era(rule, next, OWN) });
        Ok(tier)
    }

    /// Whether a limit may come after the `first` one at `now_ns`.
    fn ready(&self, limit: &Limit, (first, rule): (&Limit, &Rule), now_ns: u64) -> Result<(), ConfigError> {
        limit.follows(first)?;
        let rule = self.rule_of(rule, limit)?;
        // Its time ends seven years from now at the earliest, as that of a limiter which is built.
        if rule.time().end_ns().saturating_sub(now_ns) < HORIZON_LEAST_NS {
            let left_ns = u128::from(rule.time().end_ns().saturating_sub(HORIZON_LEAST_NS));
            return Err(beyond_horizon("the limiter's age", u128::from(now_ns), left_ns));
        }
        Ok(())
    }

    /// A limit that follows the first one, ready to decide. Where there may be tiers, its windows have the first one's layout.
    ///
    /// # Errors
    /// It cannot be honoured.
    pub fn rule_of(&self, first: &Rule, limit: &Limit) -> Result<Rule, ConfigError> {
        if self.tag_bits == 0 { Rule::new(limit) } else { first.beside(limit) }
    }

    /// Whether another few sets of limits may come.
    pub fn has_place(&self) -> bool {
        self.later.get((1 << INDEX_BITS) - 1_024).is_none()
    }

    /// Tiers that there are.
    pub fn tiers(&self) -> TierNumber {
        let set = self.set(self.state() & INDEX);
        set.map_or(0, |set| TierNumber::try_from(set.tiers.len()).unwrap_or(TierNumber::MAX))
    }

    /// The number of the set of these limits, which is made if it is new. To be asked by who has the turn.
    fn index_of(&self, limits: &[Limit], (first, rule): (&Limit, &Rule)) -> Result<usize, ConfigError> {
        if limits == [*first] {
            return Ok(0);
        }
        if let Some((index, _)) = self.later.iter().find(|(_, set)| *set.limits == *limits) {
            return Ok(index);
        }
        let index = self.later.iter().count() + 1;
        if index >= 1 << INDEX_BITS {
            return Err(ConfigError::TooManyLimits { limits_max: (1 << INDEX_BITS) - 1 });
        }
        let rules = limits.iter().map(|limit| self.rule_of(rule, limit));
        let rules = rules.collect::<Result<Vec<_>, _>>()?;
        let Some((own, tiers)) = rules.split_first() else { return Ok(0) };
        self.later.put(index, Set { limits: limits.into(), own: *own, tiers: tiers.into() });
        Ok(index)
    }
}

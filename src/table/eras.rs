//! The rules that a limiter decides by, one after another, as its limit is changed.
//!
//! # Protocol
//!
//! * A word says by bit 62 whether a rule with an even or an odd number wrote it. A change has two steps: the **flip**
//!   publishes the next rule, and the **walk** adopts every word that the rule before wrote. Changes take turns, so no
//!   word is ever of a third rule.
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

use std::sync::{Mutex, OnceLock};

use crate::error::ConfigError;
use crate::limit::Limit;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::time::timebase::{HORIZON_LEAST_NS, beyond_horizon};
use crate::word::{CarryOver, Rule, TABLE_BIT, VALUE_BITS, VALUE_MAX};

/// Bit 62 of a word.
const ERA_BIT: u64 = VALUE_MAX + 1;
/// Rules are numbered by so many bits.
const INDEX_BITS: u32 = 16;
const INDEX: u64 = (1 << INDEX_BITS) - 1;

/// The changes are counted from this bit of the state on.
const CHANGES_SHIFT: u32 = 2 * INDEX_BITS + 2;
/// Set in the state from the first change on: the bit by which a word is a mark, so that a check asks for both at once.
const CHANGED: u64 = TABLE_BIT;

/// A rule, and how to tell its words from those of the one before it.
#[derive(Clone, Copy)]
pub struct Era<'e> {
    /// What decides.
    pub rule: &'e Rule,
    eras: &'e Eras,
    first: &'e Rule,
    state: u64,
}

impl<'e> Era<'e> {
    /// Changes of the limit so far.
    #[inline]
    pub fn number(&self) -> u64 {
        number(self.state)
    }

    #[inline]
    fn bit(&self) -> u64 {
        (self.number() & 1) << VALUE_BITS
    }

    /// Whether a word that was read before the era is of the rule before, and has to be adopted.
    #[inline]
    pub fn is_past(&self, word: u64) -> bool {
        self.state != 0 && word & ERA_BIT != self.bit()
    }

    /// The value of a word that was read before the era was: in the terms of its rule.
    #[inline]
    pub fn value(&self, word: u64, ns: u64) -> u64 {
        let value = word & VALUE_MAX;
        if self.is_past(word) { self.rule.adopt(self.before(), self.carry_over(), value, ns) } else { value }
    }

    /// The value of a word that was written in an era before.
    pub fn value_of(&self, era: Era<'_>, word: u64, ns: u64) -> u64 {
        if era.number() + 1 == self.number() {
            return self.value(word, ns);
        }
        self.rule.adopt(era.rule, CarryOver::KeepUsed, word & VALUE_MAX, ns)
    }

    /// The word for a value. A key that was never seen has none.
    #[inline]
    pub fn word(&self, value: u64) -> u64 {
        value | self.bit()
    }

    /// The rule that wrote a word.
    pub fn writer(&self, word: u64) -> &'e Rule {
        if self.is_past(word) { self.before() } else { self.rule }
    }

    #[cold]
    fn before(&self) -> &'e Rule {
        self.eras.rule(self.first, self.state >> INDEX_BITS & INDEX)
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

/// A limit, ready to decide.
#[derive(Debug)]
struct Made {
    limit: Limit,
    rule: Rule,
}

/// Rules in the order in which they first came, from 1: the first 1, the next 2, the next 4 in a chunk.
#[derive(Debug, Default)]
struct List([OnceLock<Box<[OnceLock<Made>]>>; INDEX_BITS as usize]);

impl List {
    #[inline]
    fn get(&self, index: usize) -> Option<&Made> {
        let chunk = index.checked_ilog2()?;
        self.0[chunk as usize].get()?[index - (1 << chunk)].get()
    }

    /// Puts the rule of this number, which is the next, into its place.
    fn set(&self, index: usize, made: Made) {
        let chunk = index.ilog2();
        let size = 1 << chunk;
        let chunk = self.0[chunk as usize].get_or_init(|| (0..size).map(|_| OnceLock::new()).collect());
        _ = chunk[index - size].set(made);
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &Made)> {
        (1..1 << INDEX_BITS).map_while(|index| Some((index, self.get(index)?)))
    }
}

/// The limits that came after the one that the limiter was built with.
#[derive(Debug, Default)]
pub struct Eras {
    /// How many changes there were, what is carried over at the last, and the numbers of the rules before it and
    /// after it: `[1 | changes: 29 | carry over: 2 | before: 16 | now: 16]`. 0: the limit was never changed.
    state: AtomicU64,
    later: List,
    /// Held by who changes the limit. Nobody who checks knows it.
    changing: Mutex<()>,
}

impl Eras {
    /// 0 as long as the limit was never changed; to be read after a word.
    #[inline(always)]
    pub fn state(&self) -> u64 {
        // ORDERING: Acquire pairs with the flip.
        self.state.load(Ordering::Acquire)
    }

    /// Whether the limit was ever changed; to be asked after a word was read.
    #[inline(always)]
    pub fn is_changed(&self) -> bool {
        self.state() != 0
    }

    /// How often the limit was changed.
    pub fn changes(&self) -> u64 {
        number(self.state())
    }

    /// The era now; to be read after the word.
    #[inline]
    pub fn now<'e>(&'e self, first: &'e Rule) -> Era<'e> {
        self.era(first, self.state())
    }

    #[inline]
    fn era<'e>(&'e self, first: &'e Rule, state: u64) -> Era<'e> {
        Era { rule: self.rule(first, state & INDEX), eras: self, first, state }
    }

    /// A rule that a state names, which has been made before.
    #[inline]
    fn rule<'e>(&'e self, first: &'e Rule, index: u64) -> &'e Rule {
        self.made(index).map_or(first, |made| &made.rule)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "of INDEX_BITS")]
    fn made(&self, index: u64) -> Option<&Made> {
        self.later.get(index as usize)
    }

    /// The limit now; `None` if it was never changed, or is the first again.
    pub fn limit(&self) -> Option<Limit> {
        self.made(self.state() & INDEX).map(|made| made.limit)
    }

    /// Runs `work` while nobody changes the limit.
    #[cfg(feature = "snapshot")]
    pub fn while_unchanged<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work()
    }

    /// Changes the limit from the `first` that the limiter was built with, or the latest, to `limit` at `now_ns` of the limiter's
    /// time, if it is another; `walk` is then given the new era, and has to adopt all words that are past.
    ///
    /// # Errors
    /// The limit cannot be honoured, or does not follow the one before.
    pub fn change(
        &self,
        (first, rule): (Limit, &Rule),
        limit: Limit,
        carry_over: CarryOver,
        now_ns: u64,
        walk: impl Fn(Era<'_>),
    ) -> Result<(), ConfigError> {
        limit.follows(&first)?;
        let made = Rule::new(&limit)?;
        // Its time ends seven years from now at the earliest, as that of a limiter which is built.
        if made.time().end_ns().saturating_sub(now_ns) < HORIZON_LEAST_NS {
            let left_ns = u128::from(made.time().end_ns().saturating_sub(HORIZON_LEAST_NS));
            return Err(beyond_horizon("the limiter's age", u128::from(now_ns), left_ns));
        }
        let _turn = self.changing.lock().unwrap_or_else(|poisoned| {
            // The clock has panicked in the last walk. Its words first.
            walk(self.now(rule));
            self.changing.clear_poison();
            poisoned.into_inner()
        });
        // Who asks for a reset means it.
        if self.limit().unwrap_or(first) == limit && carry_over != CarryOver::Reset {
            return Ok(());
        }
        let known = self.later.iter().find(|(_, made)| made.limit == limit).map(|(index, _)| index);
        let index = if limit == first { Some(0) } else { known };
        let index = match index {
            Some(index) => index,
            None => {
                let index = self.later.iter().count() + 1;
                if index >= 1 << INDEX_BITS {
                    return Err(ConfigError::TooManyLimits { limits_max: (1 << INDEX_BITS) - 1 });
                }
                self.later.set(index, Made { limit, rule: made });
                index
            }
        };
        let state = self.state.load(Ordering::Relaxed);
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
        walk(self.era(rule, next));
        Ok(())
    }
}

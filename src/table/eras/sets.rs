//! Sets of rules, each kept for as long as the limiter lives, so that nobody needs a guard to read one.

use std::sync::OnceLock;

use super::INDEX_BITS;
use crate::limit::Limit;
use crate::word::Rule;

/// The limits at one time, ready to decide.
#[derive(Debug)]
pub(super) struct Set {
    /// The limiter's own, and those of the tiers.
    pub(super) limits: Box<[Limit]>,
    pub(super) own: Rule,
    pub(super) tiers: Box<[Rule]>,
}

/// Sets in the order in which they first came, from 1: the first 1, the next 2, the next 4 in a chunk.
#[derive(Debug, Default)]
pub(super) struct List([OnceLock<Box<[OnceLock<Set>]>>; INDEX_BITS as usize]);

impl List {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Set> {
        let chunk = index.checked_ilog2()?;
        self.0[chunk as usize].get()?[index - (1 << chunk)].get()
    }

    /// Puts the set of this number, which is the next, into its place.
    pub(super) fn put(&self, index: usize, set: Set) {
        let chunk = index.ilog2();
        let size = 1 << chunk;
        let chunk = self.0[chunk as usize].get_or_init(|| (0..size).map(|_| OnceLock::new()).collect());
        _ = chunk[index - size].set(set);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Set)> {
        (1..1 << INDEX_BITS).map_while(|index| Some((index, self.get(index)?)))
    }
}

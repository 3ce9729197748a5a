//! How often a rule refused, by limit and window: exact.

use std::sync::OnceLock;

use super::tallies::Tallies;
use crate::answer::Denied;
use crate::decision::{WindowName, Windows};

/// Of eight limits with two windows each.
const COUNTS: usize = 16;

/// The counts of one rule, for as long as the policy lives.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Made at the first refusal: most rules of many never refuse.
    counts: OnceLock<Tallies<COUNTS>>,
}

impl Refusals {
    /// A limit of this number refused.
    #[inline]
    pub(crate) fn add(&self, limit: u8, denied: &Denied) {
        let is_second = denied.snapshot.rule.has_sustain() && denied.binding() == WindowName::Sustain;
        let counts = self.counts.get_or_init(Tallies::new);
        counts.add(2 * usize::from(limit) + usize::from(is_second));
    }

    /// What a limit has refused, for each of its windows.
    pub(crate) fn of(&self, limit: usize, windows: &Windows) -> Vec<(WindowName, u64)> {
        let count = |at: usize| self.counts.get().map_or(0, |counts| counts.of(2 * limit + at));
        windows.iter().enumerate().map(|(at, window)| (window.name, count(at))).collect()
    }
}

//! How often a rule refused, by limit and window: exact.

use std::sync::OnceLock;

use super::tallies::Tallies;
use crate::answer::Denied;
use crate::decision::{WindowName, Windows};
use crate::policy::book::LIMITS_MAX;

/// Names of windows: a limit that a reload puts in the place of another may have other windows.
const NAMES: usize = WindowName::Sliding as usize + 1;

/// The counts of one rule, for as long as the policy lives.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Of each limit, made at its first refusal: most limits of many never refuse.
    limits: [OnceLock<Tallies<NAMES>>; LIMITS_MAX],
}

impl Refusals {
    /// A limit of this number refused.
    #[inline]
    pub(crate) fn add(&self, limit: u8, denied: &Denied) {
        let Some(counts) = self.limits.get(usize::from(limit)) else { return };
        let name = match denied.snapshot.rule.first_window() {
            WindowName::Burst => denied.binding(),
            only => only,
        };
        counts.get_or_init(Tallies::new).add(name as usize);
    }

    /// What a limit has refused, for each of its windows.
    pub(crate) fn of(&self, limit: usize, windows: &Windows) -> Vec<(WindowName, u64)> {
        let counts = self.limits.get(limit).and_then(OnceLock::get);
        let count = |name: WindowName| counts.map_or(0, |counts| counts.of(name as usize));
        windows.iter().map(|window| (window.name, count(window.name))).collect()
    }
}

//! Rules by number: a name keeps its number, and what was counted under it, for as long as the policy lives.
//!
//! A rule that only watches is another than the one of the same name that is in force: what the one would have refused, the other
//! has not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::refusals::Refusals;

/// A rule's name.
#[derive(Default)]
pub(crate) struct NamedRule {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) is_shadow: bool,
    pub(crate) refusals: Refusals,
}

/// All names that rules of the policy ever had.
#[derive(Default)]
pub(crate) struct Names {
    /// Whether anybody will ask for them; if not none is kept.
    are_kept: bool,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    by_number: Vec<Arc<NamedRule>>,
    numbers: BTreeMap<(Arc<str>, bool), usize>,
}

impl Names {
    pub(crate) fn new(are_kept: bool) -> Self {
        Self { are_kept, ..Self::default() }
    }

    /// The rule of this name.
    pub(crate) fn of(&self, name: &str, is_shadow: bool) -> Arc<NamedRule> {
        let mut all = self.all();
        let key = (Arc::from(name), is_shadow);
        if let Some(rule) = all.numbers.get(&key).and_then(|&number| all.by_number.get(number)) {
            return Arc::clone(rule);
        }
        let at = all.by_number.len();
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        let rule = Arc::new(NamedRule {
            number,
            name: Arc::clone(&key.0),
            is_shadow,
            refusals: Refusals::default(),
        });
        if self.are_kept {
            all.numbers.insert(key, at);
            all.by_number.push(Arc::clone(&rule));
        }
        rule
    }

    /// The rule of this number; one without a name if there is none.
    pub(crate) fn named(&self, number: u32) -> Arc<NamedRule> {
        let all = self.all();
        let rule = usize::try_from(number).ok().and_then(|number| all.by_number.get(number));
        rule.map_or_else(Arc::default, Arc::clone)
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Rules by number: a name keeps its number and what was counted under it for as long as the policy lives.

use std::sync::{Arc, Mutex, PoisonError};

use super::refusals::Refusals;

/// A rule's name.
pub(crate) struct NamedRule {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) refusals: Refusals,
}

/// All names that rules of the policy ever had.
#[derive(Default)]
pub(crate) struct Names {
    by_number: Mutex<Vec<Arc<NamedRule>>>,
}

impl Names {
    /// The rule of this name.
    pub(crate) fn of(&self, name: &str) -> Arc<NamedRule> {
        let mut rules = self.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rule) = rules.iter().find(|rule| *rule.name == *name) {
            return Arc::clone(rule);
        }
        let number = u32::try_from(rules.len()).unwrap_or(u32::MAX);
        let rule = Arc::new(NamedRule { number, name: name.into(), refusals: Refusals::default() });
        rules.push(Arc::clone(&rule));
        rule
    }

    /// The name of this number.
    pub(crate) fn name(&self, number: u32) -> Arc<str> {
        let rules = self.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        let rule = usize::try_from(number).ok().and_then(|number| rules.get(number));
        rule.map_or_else(|| "".into(), |rule| Arc::clone(&rule.name))
    }
}

//! What a reload did to the rules, by name.

/// What became of the rules when one policy replaced another: each rule of either stands in one of these lists, by its
/// name, in the order of the policy that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Every limit is as it was, and goes on counting. Other things that the rule says may have changed.
    pub kept: Vec<String>,
    /// At least one limit has another number or has gone; those that are there go on with what their keys have used.
    pub changed: Vec<String>,
    /// At least one limit begins with nothing used: the rule is new, or its key, `max_keys` or `on_full` are others, or
    /// a limit is of another kind, period or alignment.
    pub anew: Vec<String>,
    /// The rule is gone, and its counts with it.
    pub removed: Vec<String>,
}

/// What became of one rule.
pub(super) enum Change {
    Kept,
    Changed,
    Anew,
}

impl Changes {
    pub(super) fn add(&mut self, name: &str, change: Change) {
        let list = match change {
            Change::Kept => &mut self.kept,
            Change::Changed => &mut self.changed,
            Change::Anew => &mut self.anew,
        };
        list.push(name.to_owned());
    }
}

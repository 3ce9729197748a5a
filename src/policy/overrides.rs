//! Keys that have other limits: from what a rule says to what its limiters do.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::error::PolicyError;
use super::key::{Named, is_same};
use super::rule::{OnRefusal, Override, Rule};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::table::Eras;
use crate::time::Clock;
use crate::word::{self, CarryOver};

/// Different limits that the overrides of one rule may have beside each of its own.
const DIFFERENT_MAX: usize = u8::MAX as usize;
/// Room that a limiter is made with, so that a reload may bring overrides without beginning anew: as much as leaves its times
/// exact to the nanosecond.
const DIFFERENT_WONT: u8 = 3;

/// Something to change in a limiter that is in use.
pub(super) struct Edit<C> {
    pub(super) limiter: Arc<Limiter<C>>,
    pub(super) to: To,
    pub(super) rule: String,
    pub(super) number: usize,
}

#[derive(Clone, Copy)]
pub(super) enum To {
    /// Another limit.
    Limit(Limit),
    /// Another limit for the key of this hash, or none.
    Override(u64, Option<Limit>),
}

impl<C> Edit<C> {
    pub(super) fn error(&self, error: ConfigError) -> PolicyError {
        match self.to {
            To::Limit(_) => PolicyError::limit_of(&self.rule, self.number, error),
            To::Override(..) => PolicyError::override_of(&self.rule, self.number, error),
        }
    }
}

impl<C: Clock> Edit<C> {
    /// Makes the change; what would undo it.
    pub(super) fn make(&self) -> Result<To, ConfigError> {
        match self.to {
            To::Limit(limit) => {
                let before = self.limiter.limit();
                self.limiter.set_limit(limit, CarryOver::KeepUsed)?;
                Ok(To::Limit(before))
            }
            To::Override(hash, limit) => {
                let before = self.limiter.override_of_hashed(hash);
                match limit {
                    Some(limit) => self.limiter.set_override_hashed(hash, limit)?,
                    None => {
                        self.limiter.clear_override_hashed(hash);
                    }
                }
                Ok(To::Override(hash, before))
            }
        }
    }
}

/// The limit of an override, which says whether refused requests count as the rule's does.
fn limit(rule: &Rule, over: &Override, number: usize) -> Limit {
    over.limits[number].count_refused(rule.on_refusal == OnRefusal::Count)
}

/// Checks what a rule says of overrides, but for whether a limiter can honour the limits.
pub(super) fn check(rule: &Rule) -> Result<(), PolicyError> {
    let mut known = HashMap::new();
    for (at, over) in rule.overrides.iter().enumerate() {
        let error = |field: &str, value: String, allowed: String| {
            Err(PolicyError::field_of(
                Some(&rule.name),
                format!("overrides[{}].{field}", at + 1),
                value,
                allowed,
            ))
        };
        if over.limits.len() != rule.limits.len() {
            let allowed = format!("a list of {}, one for each of the rule's", rule.limits.len());
            return error("limits", format!("a list of {}", over.limits.len()), allowed);
        }
        if rule.key.is_empty() || over.key.len() != rule.key.len() {
            let allowed = format!("a list of {}, one for each part of the rule's", rule.key.len());
            return error("key", format!("a list of {}", over.key.len()), allowed);
        }
        let named = match Named::new(&rule.key, &over.key) {
            Ok(named) => named,
            Err((part, allowed)) => {
                return error(&format!("key[{}]", part + 1), format!("{:?}", over.key[part]), allowed);
            }
        };
        if let Some(first) = known.insert(named.values(), at) {
            let allowed = format!("another than that of overrides[{}]: a key has one override", first + 1);
            return error("key", format!("{:?}", over.key), allowed);
        }
        for (number, base) in rule.limits.iter().enumerate() {
            let limit = limit(rule, over, number);
            let is_honoured = limit.follows(base).and_then(|()| word::Rule::new(&limit).map(drop));
            is_honoured.map_err(|error| PolicyError::override_of(&rule.name, number, error))?;
        }
    }
    (0..rule.limits.len()).try_for_each(|number| check_beside(rule, number))?;
    match (0..rule.limits.len()).map(|number| different(rule, number)).max() {
        Some(count) if count > DIFFERENT_MAX => Err(PolicyError::field_of(
            Some(&rule.name),
            "overrides",
            format!("a list with {count} different limits"),
            format!("one with at most {DIFFERENT_MAX}; any number of keys may share each"),
        )),
        _ => Ok(()),
    }
}

/// Checks that a limit of the rule leaves room in its word for those of the overrides beside it.
fn check_beside(rule: &Rule, number: usize) -> Result<(), PolicyError> {
    let Ok(needed) = u8::try_from(different(rule, number)) else { return Ok(()) };
    if needed == 0 {
        return Ok(());
    }
    let own = word::Rule::narrow(&rule.limits[number], Eras::with_tiers(needed).value_bits());
    let own = own.map_err(|error| PolicyError::limit_of(&rule.name, number, error))?;
    rule.overrides.iter().try_for_each(|over| {
        let beside = own.beside(&limit(rule, over, number)).map(drop);
        beside.map_err(|error| PolicyError::override_of(&rule.name, number, error))
    })
}

/// How many different limits the overrides of a rule have in the place of one of its own.
fn different(rule: &Rule, number: usize) -> usize {
    rule.overrides.iter().map(|over| limit(rule, over, number)).collect::<HashSet<_>>().len()
}

/// Whether a limiter has room for what the overrides need in the place of one of the rule's limits.
pub(super) fn is_room<C>(limiter: &Limiter<C>, rule: &Rule, number: usize) -> bool {
    usize::from(limiter.core.engine.eras.tiers_max()) >= different(rule, number)
}

/// Makes a limiter with room for overrides to come if its limit leaves that, and with the rule's.
pub(super) fn make<C: Clock>(
    rule: &Rule,
    number: usize,
    build: impl Fn(u8) -> Result<Limiter<C>, ConfigError>,
) -> Result<Limiter<C>, PolicyError> {
    let needed = u8::try_from(different(rule, number)).unwrap_or(u8::MAX);
    let limiter = build(needed.max(DIFFERENT_WONT)).or_else(|_| build(needed));
    let limiter = limiter.map_err(|error| PolicyError::limit_of(&rule.name, number, error))?;
    for (hash, limit) in keys(&limiter, rule, number) {
        let set = limiter.set_override_hashed(hash, limit);
        set.map_err(|error| PolicyError::override_of(&rule.name, number, error))?;
    }
    Ok(limiter)
}

/// The keys that have another limit in the place of one of the rule's, by their hashes, and that limit.
fn keys<C: Clock>(limiter: &Limiter<C>, rule: &Rule, number: usize) -> HashMap<u64, Limit> {
    let named = |over: &Override| Named::new(&rule.key, &over.key).ok().map(|key| limiter.hash_of(&key));
    let of = |over: &Override| Some((named(over)?, limit(rule, over, number)));
    rule.overrides.iter().filter_map(of).collect()
}

/// What has to change in a limiter that goes on from a rule of before: first all that is not overridden any more.
pub(super) fn edits<C: Clock>(
    limiter: &Arc<Limiter<C>>,
    (rule, number): (&Rule, usize),
    old: &Rule,
) -> Vec<Edit<C>> {
    debug_assert!(rule.key.iter().zip(&old.key).all(|(one, other)| is_same(one, other)));
    let now = keys(limiter, rule, number);
    let before = old.overrides.iter().filter_map(|over| Named::new(&old.key, &over.key).ok());
    let before: HashSet<u64> = before.map(|key| limiter.hash_of(&key)).collect();
    let is_other = |&(&hash, &limit): &(&u64, &Limit)| limiter.override_of_hashed(hash) != Some(limit);
    let other: Vec<(u64, Limit)> = now.iter().filter(is_other).map(|(&hash, &limit)| (hash, limit)).collect();
    // While they change one by one, the limits of before and of now are there beside each other. Where there is no room
    // for that, the keys that change go by the rule's own meanwhile.
    let left = other.iter().filter_map(|&(hash, _)| limiter.override_of_hashed(hash));
    let meanwhile: HashSet<Limit> = now.values().copied().chain(left).collect();
    let is_room = meanwhile.len() <= usize::from(limiter.core.engine.eras.tiers_max());
    let is_gone =
        |hash: &u64| !now.contains_key(hash) || !is_room && other.iter().any(|(other, _)| other == hash);
    let gone = before.into_iter().filter(is_gone).map(|hash| To::Override(hash, None));
    let other = other.iter().map(|&(hash, limit)| To::Override(hash, Some(limit)));
    let edit = |to| Edit { limiter: Arc::clone(limiter), to, rule: rule.name.clone(), number };
    gone.chain(other).map(edit).collect()
}

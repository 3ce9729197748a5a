//! A policy made ready to decide: checked, indexed, with a limiter for each limit. Immutable; a reload makes another one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changes::{Change, Changes};
use super::error::PolicyError;
use super::events::Names;
use super::key;
use super::matcher::{Exemptions, Matchers};
use super::noting::Noting;
use super::overrides::{self, Edit, To};
use super::rule::{Counting, KeyPart, OnRefusal, Rule, Rules};
use super::shares::Shares;
use super::verdict::{Told, ToldRule};
use crate::error::ConfigError;
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::table::Hashing;
use crate::time::Clock;

/// Limits that one rule may have.
pub(super) const LIMITS_MAX: usize = 8;

/// What limiters are made with.
pub(super) struct Making<C> {
    pub(super) clock: C,
    /// Every limiter hashes by it, so that a key that several rules share is hashed once for all of them.
    pub(super) seed: u64,
    /// What custom parts of keys are hashed with, the same for as long as the policy lives.
    pub(super) digests: Hashing,
    /// What rules are numbered by.
    pub(super) names: Arc<Names>,
}

/// All that a request needs.
pub(super) struct Book<C> {
    pub(super) counting: Counting,
    pub(super) matchers: Matchers,
    pub(super) rules: Box<[Ruling<C>]>,
    pub(super) digests: Hashing,
    pub(super) told: Shares<Told>,
}

/// A rule, made ready.
pub(super) struct Ruling<C> {
    pub(super) rule: Rule,
    pub(super) exemptions: Exemptions,
    /// Rules of the same number make the same key of every request.
    pub(super) key_number: usize,
    /// One for each limit, in their order.
    pub(super) limiters: Limiters<C>,
    pub(super) noting: Noting,
}

type Limiters<C> = Box<[Arc<Limiter<C>>]>;

impl<C: Clock + Clone> Book<C> {
    /// Checks everything, keeps what it can of the limiters of `before`, and makes the others. Nothing that is in use is
    /// touched.
    pub(super) fn new(
        rules: Rules,
        making: &Making<C>,
        before: Option<&Self>,
    ) -> Result<(Self, Vec<Edit<C>>, Changes), PolicyError> {
        check_names(&rules)?;
        let (mut rulings, mut edits, mut changes) = (Vec::<Ruling<C>>::new(), Vec::new(), Changes::default());
        for rule in rules.rules {
            check(&rule)?;
            let old = before.and_then(|book| book.rules.iter().find(|old| old.rule.name == rule.name));
            let (limiters, change) = limiters(&rule, making, old, &mut edits)?;
            changes.add(&rule.name, change);
            let alike = rulings.iter().position(|other| has_same_key(&other.rule, &rule));
            let key_number = alike.unwrap_or(rulings.len());
            let noting = Noting::new(&making.names, &rule, &limiters);
            rulings.push(Ruling {
                exemptions: Exemptions::new(&rule.exempt),
                key_number,
                limiters,
                noting,
                rule,
            });
        }
        if let Some(book) = before {
            let is_gone = |name: &String| !rulings.iter().any(|ruling| ruling.rule.name == *name);
            let names = book.rules.iter().map(|old| old.rule.name.clone());
            changes.removed = names.filter(is_gone).collect();
        }
        let told = Told {
            name: rules.name,
            body: rules.body,
            rules: rulings.iter().map(|ruling| told(&ruling.rule)).collect(),
        };
        let book = Self {
            counting: rules.counting,
            matchers: Matchers::new(rules.matching, rulings.iter().map(|ruling| &ruling.rule.matcher)),
            rules: rulings.into_boxed_slice(),
            digests: making.digests.clone(),
            told: Shares::new(told),
        };
        Ok((book, edits, changes))
    }
}

impl<C> Book<C> {
    /// The policy's name.
    pub(super) fn policy_name(&self) -> &str {
        self.told.value().name.as_str()
    }
}

fn told(rule: &Rule) -> ToldRule {
    ToldRule {
        name: rule.name.clone(),
        is_shadow: rule.shadow,
        warn_percent: rule.warn_percent,
        limits: (0..rule.limits.len()).map(|number| limit(rule, number)).collect(),
    }
}

/// A limit of the rule, which says whether refused requests count.
fn limit(rule: &Rule, number: usize) -> Limit {
    rule.limits[number].count_refused(rule.on_refusal == OnRefusal::Count)
}

/// The limiters of a rule: those of the rule of before that can go on, and new ones for the rest.
fn limiters<C: Clock + Clone>(
    rule: &Rule,
    making: &Making<C>,
    old: Option<&Ruling<C>>,
    edits: &mut Vec<Edit<C>>,
) -> Result<(Limiters<C>, Change), PolicyError> {
    let limits: Vec<Limit> = (0..rule.limits.len()).map(|number| limit(rule, number)).collect();
    let mut left: Vec<&Arc<Limiter<C>>> = match old {
        Some(old) if counts_alike(&old.rule, rule) => old.limiters.iter().collect(),
        _ => Vec::new(),
    };
    let mut take = |is_fit: &dyn Fn(&Limiter<C>) -> bool| {
        let at = left.iter().position(|limiter| is_fit(limiter))?;
        Some(Arc::clone(left.remove(at)))
    };
    // The limits that are as they were come first, so that none of their limiters goes to another limit.
    let mut kept: Vec<Option<Arc<Limiter<C>>>> = (limits.iter().enumerate())
        .map(|(number, limit)| {
            take(&|limiter| limiter.limit() == *limit && overrides::is_room(limiter, rule, number))
        })
        .collect();
    let (mut is_changed, mut is_anew) = (false, false);
    for (number, (limit, kept)) in limits.iter().zip(&mut kept).enumerate() {
        if kept.is_some() {
            continue;
        }
        let is_fit = |limiter: &Limiter<C>| {
            let engine = &limiter.core.engine;
            limit.follows(&limiter.core.limit).is_ok()
                && overrides::is_room(limiter, rule, number)
                && engine.eras.rule_of(&engine.rule, limit).is_ok()
                && engine.eras.has_place()
        };
        let limiter = match take(&is_fit) {
            Some(limiter) => {
                let (limiter_to_edit, name) = (Arc::clone(&limiter), rule.name.clone());
                edits.push(Edit { limiter: limiter_to_edit, to: To::Limit(*limit), rule: name, number });
                is_changed = true;
                limiter
            }
            None => {
                is_anew = true;
                Arc::new(overrides::make(rule, number, |tiers| make(rule, *limit, tiers, making))?)
            }
        };
        *kept = Some(limiter);
    }
    let edited = edits.len();
    if let Some(old) = old.filter(|old| counts_alike(&old.rule, rule)) {
        let known = |limiter: &Arc<Limiter<C>>| old.limiters.iter().any(|other| Arc::ptr_eq(other, limiter));
        for (number, limiter) in kept.iter().flatten().enumerate().filter(|(_, limiter)| known(limiter)) {
            edits.extend(overrides::edits(limiter, (rule, number), &old.rule));
        }
    }
    is_changed |= edits.len() > edited;
    let change = match (is_anew, is_changed || !left.is_empty()) {
        (true, _) => Change::Anew,
        (false, true) => Change::Changed,
        (false, false) => Change::Kept,
    };
    Ok((kept.into_iter().flatten().collect(), change))
}

fn make<C: Clock + Clone>(
    rule: &Rule,
    limit: Limit,
    max_tiers: u8,
    making: &Making<C>,
) -> Result<Limiter<C>, ConfigError> {
    let builder = Limiter::builder(limit).max_keys(rule.max_keys).max_tiers(max_tiers).on_full(rule.on_full);
    let builder = builder.stagger(rule.staggers());
    builder.seed(making.seed).clock(making.clock.clone()).build()
}

/// Whether what one rule has counted means the same under the other: the same keys, in tables of the same kind.
fn counts_alike(one: &Rule, other: &Rule) -> bool {
    has_same_key(one, other) && (one.max_keys, one.on_full) == (other.max_keys, other.on_full)
}

fn has_same_key(one: &Rule, other: &Rule) -> bool {
    one.key.len() == other.key.len()
        && one.key.iter().zip(&other.key).all(|(one, other)| key::is_same(one, other))
}

fn check_names(rules: &Rules) -> Result<(), PolicyError> {
    if u32::try_from(rules.rules.len()).is_err() {
        return Err(PolicyError::field_of(None, "rules", rules.rules.len(), "at most 2^32 - 1 of them"));
    }
    let mut names = BTreeSet::new();
    for rule in &rules.rules {
        if rule.name.is_empty() {
            return Err(PolicyError::field_of(Some(&rule.name), "name", "empty", "a text"));
        }
        if !names.insert(&rule.name) {
            return Err(PolicyError::field_of(Some(&rule.name), "name", "that of another rule", "unique"));
        }
    }
    Ok(())
}

/// What the rule says apart from its limits, which the limiters check.
pub(super) fn check(rule: &Rule) -> Result<(), PolicyError> {
    let error = |field: String, value: String, allowed: &str| {
        Err(PolicyError::field_of(Some(&rule.name), field, value, allowed))
    };
    if !(1..=LIMITS_MAX).contains(&rule.limits.len()) {
        return error("limits".to_owned(), format!("a list of {}", rule.limits.len()), "a list of 1 to 8");
    }
    if !(1..=100).contains(&rule.warn_percent) {
        return error("warn_percent".to_owned(), rule.warn_percent.to_string(), "1 to 100");
    }
    for part in &rule.key {
        if let KeyPart::ClientIp { v4_bits, v6_bits } = part {
            if *v4_bits > 32 {
                return error("client_ip v4_bits".to_owned(), v4_bits.to_string(), "0 to 32");
            }
            if *v6_bits > 128 {
                return error("client_ip v6_bits".to_owned(), v6_bits.to_string(), "0 to 128");
            }
        }
    }
    overrides::check(rule)
}

//! Which rules are about a request, without asking each of them.
//!
//! Rules are found by what the API's name must be. A name that some rule has as an exact one leads to all rules that it
//! meets, which are found out when the policy is built: that is one look-up. Of any other name a prefix, and what a glob
//! begins with, are found by one look-up for each length that such beginnings have and that is no longer than the name. Rules
//! for whichever API are found by an attribute that must have one of some exact values, if they have such a condition. What is
//! left is asked each time: rules for every request, and globs that begin with a sign. All other conditions are asked of what
//! was found.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::glob::{self, Glob};
use super::names::{Names, names};
use super::request::Request;
use super::rule::{EntityType, Exempt, Matcher, Matching, Pattern};

/// The numbers of the rules that are about a request, in their order.
pub(super) type Found = SmallVec<[u32; 8]>;

/// Every rule's matcher, indexed.
pub(super) struct Matchers {
    matching: Matching,
    /// What is asked of a rule that was found: its attributes.
    conditions: Box<[Conditions]>,
    /// By a name that some rule has as an exact one: all rules whose patterns it meets, in their order.
    exact: Names<Vec<u32>>,
    beginnings: Beginnings,
    /// By an attribute's name, and its value.
    attributes: Box<[(String, Names<Vec<u32>>)]>,
    always: Vec<u32>,
}

/// What is found by how the API's name begins, and globs that begin with a sign.
struct Beginnings {
    /// By their length in bytes, the shortest first.
    by_length: Box<[(usize, Names<Beginning>)]>,
    rest: Vec<(Glob, u32)>,
}

type Conditions = Vec<(String, Vec<Pattern>)>;

/// What begins with one text.
#[derive(Default)]
struct Beginning {
    /// These rules want no more than that.
    rules: Vec<u32>,
    globs: Vec<(Glob, u32)>,
}

impl Pattern {
    /// Whether it is met by all of a text.
    pub fn is_met_by(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => text.starts_with(&**prefix),
            Self::Glob(pattern) => glob::is_met(pattern, text),
        }
    }
}

fn is_any_met(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_met_by(text))
}

fn has(request: &Request<'_>, (name, patterns): &(String, Vec<Pattern>)) -> bool {
    request.attribute(name).is_some_and(|value| is_any_met(patterns, value))
}

/// Where rules are sorted in.
#[derive(Default)]
struct Index {
    exact: Vec<(String, u32)>,
    beginnings: Vec<(String, Entry)>,
    attributes: Vec<(String, Vec<(String, u32)>)>,
    always: Beginning,
}

enum Entry {
    Rule(u32),
    Glob(Glob, u32),
}

impl Beginning {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Rule(rule) => self.rules.push(rule),
            Entry::Glob(pattern, rule) => self.globs.push((pattern, rule)),
        }
    }
}

impl Index {
    fn add(&mut self, rule: u32, matcher: &Matcher) {
        for pattern in &matcher.apis {
            match pattern {
                Pattern::Exact(name) => self.exact.push((name.clone(), rule)),
                Pattern::Prefix(prefix) => self.begin(prefix, Entry::Rule(rule)),
                Pattern::Glob(pattern) => {
                    let prefix = glob::literal_prefix(pattern);
                    match &pattern[prefix.len()..] {
                        "" => self.exact.push((pattern.clone(), rule)),
                        "*" => self.begin(prefix, Entry::Rule(rule)),
                        _ => self.begin(prefix, Entry::Glob(Glob::new(pattern), rule)),
                    }
                }
            }
        }
        if matcher.apis.is_empty() {
            self.add_for_any_api(rule, matcher);
        }
    }

    fn begin(&mut self, prefix: &str, entry: Entry) {
        if prefix.is_empty() {
            self.always.add(entry);
        } else {
            self.beginnings.push((prefix.to_owned(), entry));
        }
    }

    fn add_for_any_api(&mut self, rule: u32, matcher: &Matcher) {
        let exact = |pattern: &Pattern| match pattern {
            Pattern::Exact(value) => Some((value.clone(), rule)),
            _ => None,
        };
        let values = matcher.attributes.iter().find_map(|(name, patterns)| {
            Some((name, patterns.iter().map(exact).collect::<Option<Vec<_>>>()?))
        });
        let Some((name, values)) = values else {
            self.always.rules.push(rule);
            return;
        };
        match self.attributes.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => all.extend(values),
            None => self.attributes.push((name.clone(), values)),
        }
    }
}

impl Matchers {
    pub(super) fn new<'a>(matching: Matching, matchers: impl Iterator<Item = &'a Matcher>) -> Self {
        let (mut index, mut conditions) = (Index::default(), Vec::new());
        for (rule, matcher) in (0..).zip(matchers) {
            index.add(rule, matcher);
            conditions.push(matcher.attributes.clone());
        }
        let mut lengths: Vec<usize> = index.beginnings.iter().map(|(prefix, _)| prefix.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut by_length: Vec<Vec<(String, Entry)>> = lengths.iter().map(|_| Vec::new()).collect();
        for (prefix, entry) in index.beginnings {
            let at = lengths.partition_point(|&length| length < prefix.len());
            by_length[at].push((prefix, entry));
        }
        let beginnings_of = |texts| names(texts, Beginning::add);
        let beginnings = Beginnings {
            by_length: lengths.into_iter().zip(by_length.into_iter().map(beginnings_of)).collect(),
            rest: index.always.globs,
        };
        // What else an exact name meets is known beforehand.
        let mut exact = index.exact;
        let known: BTreeSet<String> = exact.iter().map(|(name, _)| name.clone()).collect();
        for name in known {
            beginnings.each(&name, |rule| exact.push((name.clone(), rule)));
        }
        let add = |rules: &mut Vec<u32>, rule| {
            if let Err(at) = rules.binary_search(&rule) {
                rules.insert(at, rule);
            }
        };
        Self {
            exact: names(exact, add),
            attributes: (index.attributes.into_iter())
                .map(|(name, values)| (name, names(values, Vec::push)))
                .collect(),
            beginnings,
            always: index.always.rules,
            conditions: conditions.into_boxed_slice(),
            matching,
        }
    }

    /// Finds the rules that are about the request; `found` is empty before. Allocates nothing for up to 8.
    #[inline]
    pub(super) fn find(&self, request: &Request<'_>, found: &mut Found) {
        let is_met =
            |rule: u32| self.conditions[rule as usize].iter().all(|condition| has(request, condition));
        if self.always.is_empty()
            && self.attributes.is_empty()
            && let Some(rules) = self.exact.get(request.api)
        {
            // They are in order already.
            let most = if self.matching == Matching::First { 1 } else { usize::MAX };
            for &rule in rules.iter().filter(|&&rule| is_met(rule)).take(most) {
                found.push(rule);
            }
            return;
        }
        match self.matching {
            Matching::All => self.each_candidate(request, |rule| {
                let at = match found.last() {
                    Some(&last) if last >= rule => found.partition_point(|&known| known < rule),
                    _ => found.len(),
                };
                // Several patterns of one rule may have led here.
                if found.get(at) != Some(&rule) && is_met(rule) {
                    found.insert(at, rule);
                }
            }),
            Matching::First => self.each_candidate(request, |rule| {
                if found.first().is_none_or(|&first| rule < first) && is_met(rule) {
                    found.clear();
                    found.push(rule);
                }
            }),
        }
    }

    #[inline]
    fn each_candidate(&self, request: &Request<'_>, mut found: impl FnMut(u32)) {
        for &rule in &self.always {
            found(rule);
        }
        match self.exact.get(request.api) {
            Some(rules) => {
                for &rule in rules {
                    found(rule);
                }
            }
            None => self.beginnings.each(request.api, &mut found),
        }
        for (name, values) in &self.attributes {
            let rules = request.attribute(name).and_then(|value| values.get(value));
            for &rule in rules.map_or(&[][..], Vec::as_slice) {
                found(rule);
            }
        }
    }
}

impl Beginnings {
    fn each(&self, api: &str, mut found: impl FnMut(u32)) {
        for (length, names) in &self.by_length {
            if *length > api.len() {
                break;
            }
            // No prefix ends in the middle of a character.
            let Some(beginning) = api.get(..*length).and_then(|prefix| names.get(prefix)) else {
                continue;
            };
            for &rule in &beginning.rules {
                found(rule);
            }
            for (glob, rule) in &beginning.globs {
                if glob.is_met(api) {
                    found(*rule);
                }
            }
        }
        for (glob, rule) in &self.rest {
            if glob.is_met(api) {
                found(*rule);
            }
        }
    }
}

/// Whom a rule leaves alone, made ready to ask.
pub(super) struct Exemptions {
    is_nobody: bool,
    titles: Names<()>,
    namespaces: Names<()>,
    callers: Names<()>,
    rest: Exempt,
}

impl Exemptions {
    pub(super) fn new(exempt: &Exempt) -> Self {
        let names = |ids: &[String]| names(ids.iter().map(|id| (id.clone(), ())), |(), ()| {});
        let (titles, namespaces, callers) =
            (names(&exempt.titles), names(&exempt.namespaces), names(&exempt.callers));
        let is_nobody = *exempt == Exempt::default();
        // The ids are in the maps.
        let Exempt { caller_types, apis, attributes, .. } = exempt.clone();
        let rest = Exempt { caller_types, apis, attributes, ..Exempt::default() };
        Self { is_nobody, titles, namespaces, callers, rest }
    }

    /// Whether the request meets any of them.
    #[inline]
    pub(super) fn holds(&self, request: &Request<'_>) -> bool {
        !self.is_nobody && self.holds_for_somebody(request)
    }

    fn holds_for_somebody(&self, request: &Request<'_>) -> bool {
        let is_in = |names: &Names<()>, id: Option<&str>| id.is_some_and(|id| names.get(id).is_some());
        // Who has not proved who it is may say that it is anybody.
        let caller: Option<(&str, EntityType)> =
            request.caller.filter(|_| request.is_authenticated).map(|caller| (caller.id, caller.kind));
        is_in(&self.titles, request.title)
            || is_in(&self.namespaces, request.namespace)
            || is_in(&self.callers, caller.map(|(id, _)| id))
            || caller.is_some_and(|(_, kind)| self.rest.caller_types.contains(&kind))
            || is_any_met(&self.rest.apis, request.api)
            || self.rest.attributes.iter().any(|condition| has(request, condition))
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;

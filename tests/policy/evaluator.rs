//! A policy that asks every rule, puts every key together as text, and keeps a naive twin for each limit of each key. A
//! property test and a fuzz target include this file, beside `twin`.
//!
//! Its limits are those that carry over exactly, or nearly, whatever replaces them: tokens that take whole nanoseconds, and
//! windows on the wall clock. The rate of a bucket with overrides must stay: such a key has its new rate when it is next charged.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each of those who include this file uses a part of it, and none exports it"
)]

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tidegate::policy::{
    Changes, Cost, Counting, KeyPart, Matching, OnRefusal, Override, Pattern, Request, Rule, Rules, Verdict,
};
use tidegate::{Alignment, Denied, Limit, Pass, Rate, Window};

use super::twin::{Bucket, Decision, Start, Windows};

const SECOND_NS: u128 = 1_000_000_000;
/// The periods of burst and sustain, in seconds.
const PERIODS: [u64; 2] = [15, 60];

/// A limit by what it is made of, so that a twin can be made of it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many tokens a minute.
    Bucket {
        rate: u64,
        burst: u64,
    },
    /// A period in seconds.
    Window {
        limit: u64,
        period: u64,
    },
    BurstSustain {
        burst: u64,
        sustain: u64,
    },
}

/// One key's.
#[derive(Clone, Debug)]
enum Twin {
    Bucket(Bucket),
    Windows(Windows),
}

impl Kind {
    fn limit(self) -> Limit {
        let window = |limit, period| Window::new(limit, Duration::from_secs(period));
        match self {
            Self::Bucket { rate, burst } => Limit::bucket(Rate::per_minute(rate), burst),
            Self::Window { limit, period } => Limit::window(window(limit, period)).align(Alignment::Clock),
            Self::BurstSustain { burst, sustain } => {
                let [short, long] = PERIODS;
                Limit::burst_sustain(window(burst, short), window(sustain, long)).align(Alignment::Clock)
            }
        }
    }

    fn twin(self) -> Twin {
        let windows = |windows: &[(u64, u64)]| {
            let terms = |&(limit, period): &(u64, u64)| (limit.into(), u128::from(period) * SECOND_NS);
            let windows: Vec<(u128, u128)> = windows.iter().map(terms).collect();
            Twin::Windows(Windows::new(&windows, Start::Tiled { shift_ns: 0 }, true))
        };
        match self {
            Self::Bucket { rate, burst } => {
                Twin::Bucket(Bucket::new(rate.into(), 60 * SECOND_NS, burst.into()))
            }
            Self::Window { limit, period } => windows(&[(limit, period)]),
            Self::BurstSustain { burst, sustain } => windows(&[(burst, PERIODS[0]), (sustain, PERIODS[1])]),
        }
    }

    /// Of the same kind and periods, with other numbers.
    #[must_use]
    pub fn with(self, first: u64, more: u64) -> Self {
        match self {
            Self::Bucket { rate, .. } => Self::Bucket { rate, burst: first },
            Self::Window { period, .. } => Self::Window { limit: first, period },
            Self::BurstSustain { .. } => Self::BurstSustain { burst: first, sustain: first + more },
        }
    }

    /// At another rate, if it has one.
    #[must_use]
    pub fn at_rate(self, tokens: u64) -> Self {
        match self {
            Self::Bucket { burst, .. } => Self::Bucket { rate: tokens, burst },
            other => other,
        }
    }

    /// Whether a limiter of one may go on with the other.
    fn follows(self, other: Self) -> bool {
        match (self, other) {
            (Self::Window { period, .. }, Self::Window { period: other, .. }) => period == other,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }
}

/// A rule as it was drawn; what `rule` says of limits and overrides does not matter.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub rule: Rule,
    pub kinds: Vec<Kind>,
    /// Keys, part by part, and their limits.
    pub overrides: Vec<(Vec<String>, Vec<Kind>)>,
}

impl Drawn {
    /// A rule for every request.
    pub fn new(name: String, key: Vec<KeyPart>, kinds: Vec<Kind>) -> Self {
        let rule = Rule { max_keys: 1_000, ..Rule::new(name, key, Vec::new()) };
        Self { rule, kinds, overrides: Vec::new() }
    }

    fn rule(&self) -> Rule {
        let limits = |kinds: &[Kind]| kinds.iter().map(|kind| kind.limit()).collect();
        let over =
            |(key, kinds): &(Vec<String>, Vec<Kind>)| Override { key: key.clone(), limits: limits(kinds) };
        Rule {
            limits: limits(&self.kinds),
            overrides: self.last_overrides().map(over).collect(),
            ..self.rule.clone()
        }
    }

    /// A key has one override: of those that were drawn for it the last.
    fn last_overrides(&self) -> impl Iterator<Item = &(Vec<String>, Vec<Kind>)> {
        let all = &self.overrides;
        all.iter()
            .enumerate()
            .filter(|(at, over)| all[at + 1..].iter().all(|later| later.0 != over.0))
            .map(|(_, over)| over)
    }

    fn overrides_of(&self, limit: usize) -> BTreeMap<String, Kind> {
        let named = |(key, kinds): &(Vec<String>, Vec<Kind>)| {
            let parts: Vec<Option<&str>> = key.iter().map(|part| Some(part.as_str())).collect();
            (format!("{parts:?}"), kinds[limit])
        };
        self.overrides.iter().map(named).collect()
    }
}

/// A policy as it was drawn.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub counting: Counting,
    pub matching: Matching,
    pub rules: Vec<Drawn>,
}

impl Plan {
    pub fn rules(&self) -> Rules {
        let rules = self.rules.iter().map(Drawn::rule).collect();
        Rules { counting: self.counting, matching: self.matching, rules, ..Rules::default() }
    }
}

/// One limit of one rule, and what each key has used of it.
#[derive(Clone)]
struct Count {
    kind: Kind,
    /// As the rule says; under `AllOrNothing` it does not matter.
    on_refusal: OnRefusal,
    overrides: BTreeMap<String, Kind>,
    keys: HashMap<String, Twin>,
}

impl Count {
    fn new(kind: Kind, on_refusal: OnRefusal, overrides: BTreeMap<String, Kind>) -> Self {
        Self { kind, on_refusal, overrides, keys: HashMap::new() }
    }

    fn of(kind: Kind, overrides: &BTreeMap<String, Kind>, key: &str) -> Kind {
        overrides.get(key).copied().unwrap_or(kind)
    }

    fn check(&mut self, key: &str, now_ns: u128, cost: u64, counts_refused: bool) -> Decision {
        let kind = Self::of(self.kind, &self.overrides, key);
        match self.keys.entry(key.to_owned()).or_insert_with(|| kind.twin()) {
            Twin::Bucket(bucket) => bucket.check(0, now_ns, cost.into()),
            Twin::Windows(windows) => {
                windows.set_count_refused(counts_refused);
                windows.check(0, now_ns, cost.into())
            }
        }
    }

    /// Goes on with other numbers: what was used stays used.
    fn turn(&mut self, kind: Kind, on_refusal: OnRefusal, overrides: BTreeMap<String, Kind>, now_ns: u128) {
        for (key, twin) in &mut self.keys {
            match (Self::of(kind, &overrides, key), twin) {
                (Kind::Bucket { rate, burst }, Twin::Bucket(bucket)) => {
                    bucket.turn(rate.into(), burst.into(), now_ns);
                }
                (Kind::Window { limit, .. }, Twin::Windows(windows)) => windows.turn(&[limit.into()]),
                (Kind::BurstSustain { burst, sustain }, Twin::Windows(windows)) => {
                    windows.turn(&[burst.into(), sustain.into()]);
                }
                (kind, twin) => unreachable!("{kind:?} does not follow {twin:?}"),
            }
        }
        (self.kind, self.on_refusal, self.overrides) = (kind, on_refusal, overrides);
    }
}

#[derive(Clone)]
struct Ruling {
    rule: Rule,
    counts: Vec<Count>,
}

/// What it says of one rule: nothing of one that leaves the request alone.
pub struct Said {
    name: String,
    is_shadow: bool,
    is_exempt: bool,
    decisions: Vec<Decision>,
    /// Until all its limits have room for the same request once more; `None` if one never has.
    again_ns: Option<u128>,
}

impl Said {
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    pub fn passes(&self) -> bool {
        self.decisions.iter().all(|decision| decision.passed)
    }
}

fn is_met(pattern: &Pattern, text: &str) -> bool {
    fn glob(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], rest) => rest.is_empty(),
            (['*', after @ ..], rest) => (0..=rest.len()).any(|taken| glob(after, &rest[taken..])),
            ([sign, after @ ..], [first, rest @ ..]) => (*sign == '?' || sign == first) && glob(after, rest),
            (_, []) => false,
        }
    }
    match pattern {
        Pattern::Exact(exact) => exact == text,
        Pattern::Prefix(prefix) => text.starts_with(prefix.as_str()),
        Pattern::Glob(pattern) => {
            glob(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
        }
    }
}

fn attribute<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    request.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| attribute.1)
}

impl Ruling {
    fn is_about(&self, request: &Request<'_>) -> bool {
        let matcher = &self.rule.matcher;
        (matcher.apis.is_empty() || matcher.apis.iter().any(|pattern| is_met(pattern, request.api)))
            && matcher.attributes.iter().all(|(name, patterns)| {
                attribute(request, name)
                    .is_some_and(|value| patterns.iter().any(|pattern| is_met(pattern, value)))
            })
    }

    fn is_exempt(&self, request: &Request<'_>) -> bool {
        request.title.is_some_and(|title| self.rule.exempt.titles.iter().any(|exempt| exempt == title))
    }

    fn key(&self, request: &Request<'_>) -> String {
        let part = |part: &KeyPart| match part {
            KeyPart::Title => request.title,
            KeyPart::User => request.caller.map(|caller| caller.id),
            KeyPart::Attribute(name) => attribute(request, name),
            _ => unreachable!("no such key here"),
        };
        format!("{:?}", self.rule.key.iter().map(part).collect::<Vec<_>>())
    }

    fn cost(&self, request: &Request<'_>) -> u64 {
        match &self.rule.cost {
            Cost::Fixed(cost) => *cost,
            Cost::OfRequest => request.cost,
            Cost::Attribute(name) => {
                attribute(request, name).map_or(1, |value| value.parse().unwrap_or(u64::MAX))
            }
        }
        .max(1)
    }

    /// Every limit for itself.
    fn check(&mut self, request: &Request<'_>, now_ns: u128, counting: Counting) -> Said {
        let (key, cost, is_exempt) = (self.key(request), self.cost(request), self.is_exempt(request));
        let counts_refused = counting == Counting::EveryRule && self.rule.on_refusal == OnRefusal::Count;
        let asked: &mut [Count] = if is_exempt { &mut [] } else { &mut self.counts };
        let decisions =
            asked.iter_mut().map(|count| count.check(&key, now_ns, cost, counts_refused)).collect();
        let (name, is_shadow) = (self.rule.name.clone(), self.rule.shadow);
        Said { name, is_shadow, is_exempt, decisions, again_ns: None }
    }

    /// Until each limit has room for the same request, as they stand; `None` if one never has.
    fn again_ns(&self, request: &Request<'_>, now_ns: u128) -> Option<u128> {
        // As one that counts no refusal says, which is of no consequence for what is only tried.
        let said = self.clone().check(request, now_ns, Counting::AllOrNothing);
        let waits = said.decisions.iter();
        waits
            .map(|decision| if decision.passed { Some(0) } else { decision.retry_ns })
            .try_fold(0, |longest, wait| Some(longest.max(wait?)))
    }
}

/// The naive policy.
#[derive(Clone, Default)]
pub struct Naive {
    counting: Counting,
    matching: Matching,
    rules: Vec<Ruling>,
}

impl Naive {
    pub fn new(plan: &Plan) -> Self {
        let mut naive = Self::default();
        naive.replace(plan, 0);
        naive
    }

    /// Puts another plan in force; what becomes of each rule.
    pub fn replace(&mut self, plan: &Plan, now_ns: u128) -> Changes {
        let (before, mut changes) = (std::mem::take(&mut self.rules), Changes::default());
        for drawn in &plan.rules {
            let old = before.iter().find(|old| old.rule.name == drawn.rule.name);
            let (counts, list) = follow(drawn, old, &mut changes, now_ns);
            list.push(drawn.rule.name.clone());
            self.rules.push(Ruling { rule: drawn.rule.clone(), counts });
        }
        let names = before.iter().map(|old| old.rule.name.clone());
        changes.removed =
            names.filter(|name| plan.rules.iter().all(|drawn| drawn.rule.name != *name)).collect();
        (self.counting, self.matching) = (plan.counting, plan.matching);
        changes
    }

    pub fn check(&mut self, request: &Request<'_>, now_ns: u128) -> Vec<Said> {
        let about = (0..self.rules.len()).filter(|&number| self.rules[number].is_about(request));
        let asked: Vec<usize> =
            about.take(if self.matching == Matching::First { 1 } else { self.rules.len() }).collect();
        let before = self.rules.clone();
        let mut said: Vec<Said> =
            (asked.iter()).map(|&number| self.rules[number].check(request, now_ns, self.counting)).collect();
        if self.counting == Counting::AllOrNothing {
            // All rules but the shadow ones are charged, or none; each shadow rule is charged, or not.
            let all_pass = said.iter().filter(|said| !said.is_shadow).all(Said::passes);
            for (said, &number) in said.iter().zip(&asked) {
                let is_charged = if said.is_shadow { said.passes() } else { all_pass };
                if !is_charged {
                    self.rules[number] = before[number].clone();
                }
            }
        }
        for (said, number) in said.iter_mut().zip(asked) {
            said.again_ns = self.rules[number].again_ns(request, now_ns);
        }
        said
    }

    /// Compares a verdict with what was said of the same request; `same` compares one limit's answer, where that is
    /// told exactly. Waits may differ by so much: a bucket whose rate changes rounds what is used to its units of time.
    pub fn assert_same(
        &self,
        verdict: &Verdict,
        said: &[Said],
        slack_ns: u128,
        same: impl Fn(&Result<Pass, Denied>, &Decision),
    ) {
        let found: Vec<&str> = verdict.rules().map(|rule| rule.name()).collect();
        let expected: Vec<&str> = said.iter().map(|said| said.name.as_str()).collect();
        assert_eq!(found, expected);
        let mut is_allowed = true;
        for (rule, said) in verdict.rules().zip(said) {
            assert_eq!((rule.is_exempt(), rule.is_shadow()), (said.is_exempt, said.is_shadow));
            assert_eq!(rule.limits().count(), said.decisions.len());
            for (limit, decision) in rule.limits().zip(&said.decisions) {
                assert_eq!(limit.denied().is_none(), decision.passed, "{}: {verdict:?}", rule.name());
                // Of all or none, a limit that was not charged tells of the key as it stands without the request.
                if self.counting == Counting::EveryRule {
                    same(&limit.answer(), decision);
                }
                is_allowed &= decision.passed || rule.is_shadow();
            }
        }
        assert_eq!(verdict.is_allowed(), is_allowed, "{verdict:?}");
        // What passed may have no room for another.
        let counted = said.iter().filter(|said| !said.is_shadow && !is_allowed);
        let wait_ns = counted.map(|said| said.again_ns).try_fold(0, |longest, wait| Some(longest.max(wait?)));
        let found_ns = verdict.retry_after().map(|wait| wait.as_nanos());
        let is_near = found_ns.zip(wait_ns).is_some_and(|(found, ns)| found.abs_diff(ns) <= slack_ns);
        assert!(is_near || found_ns == wait_ns, "{found_ns:?}, not {wait_ns:?}: {verdict:?}");
    }
}

/// The counts of a rule: each goes on from one that was the same, or else from one that it follows, or begins; and the
/// list of changes that it belongs in.
fn follow<'a>(
    drawn: &Drawn,
    old: Option<&Ruling>,
    changes: &'a mut Changes,
    now_ns: u128,
) -> (Vec<Count>, &'a mut Vec<String>) {
    let text = |key: &[KeyPart]| format!("{key:?}");
    let alike = old.filter(|old| text(&old.rule.key) == text(&drawn.rule.key));
    let mut left: Vec<Count> = alike.map(|old| old.counts.clone()).unwrap_or_default();
    let on_refusal = drawn.rule.on_refusal;
    let mut take = |is_fit: &dyn Fn(&Count) -> bool| left.iter().position(is_fit).map(|at| left.remove(at));
    let mut from: Vec<Option<Count>> = (drawn.kinds.iter())
        .map(|&kind| take(&|count| (count.kind, count.on_refusal) == (kind, on_refusal)))
        .collect();
    for (from, &kind) in from.iter_mut().zip(&drawn.kinds) {
        *from = from.take().or_else(|| take(&|count| kind.follows(count.kind)));
    }
    let (mut is_anew, mut is_changed) = (false, !left.is_empty());
    let counts = (from.into_iter().zip(&drawn.kinds).enumerate())
        .map(|(number, (from, &kind))| {
            let overrides = drawn.overrides_of(number);
            let Some(mut count) = from else {
                is_anew = true;
                return Count::new(kind, on_refusal, overrides);
            };
            // An override says too whether refused requests count.
            is_changed |= (count.kind, count.on_refusal, &count.overrides) != (kind, on_refusal, &overrides);
            count.turn(kind, on_refusal, overrides, now_ns);
            count
        })
        .collect();
    let list = match (is_anew, is_changed) {
        (true, _) => &mut changes.anew,
        (false, true) => &mut changes.changed,
        (false, false) => &mut changes.kept,
    };
    (counts, list)
}

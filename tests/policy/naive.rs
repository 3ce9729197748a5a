//! The whole of a policy beside one that asks every rule, puts every key together as text, and keeps a naive twin for
//! each limit.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::policy::{
    Cost, Counting, Exempt, KeyPart, Matcher, Matching, OnRefusal, Pattern, Request, Rule, Rules,
};
use tidegate::{Alignment, Limit, Rate, Window};

use super::{policy, rule};
use crate::common::steps::config;
use crate::common::twin::{Bucket, Decision, Start, Windows};
use crate::common::{assert_same, secs};

const SECOND_NS: u128 = 1_000_000_000;

/// A limit by what it is made of, so that a twin can be made of it too.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Bucket { rate: u64, burst: u64 },
    Window { limit: u64, period: u64 },
    BurstSustain { burst: u64, sustain: u64 },
}

#[derive(Clone, Debug)]
enum Twin {
    Bucket(Bucket),
    Windows(Windows),
}

impl Kind {
    fn limit(self) -> Limit {
        let window = |limit, period| Window::new(limit, secs(period));
        match self {
            Self::Bucket { rate, burst } => Limit::bucket(Rate::per_minute(rate), burst),
            Self::Window { limit, period } => Limit::window(window(limit, period)).align(Alignment::Clock),
            Self::BurstSustain { burst, sustain } => {
                Limit::burst_sustain(window(burst, 15), window(sustain, 60)).align(Alignment::Clock)
            }
        }
    }

    fn twin(self, counts_refused: bool) -> Twin {
        let windows = |windows: &[(u64, u64)]| {
            let windows: Vec<(u128, u128)> = windows
                .iter()
                .map(|&(limit, period)| (limit.into(), u128::from(period) * SECOND_NS))
                .collect();
            Twin::Windows(Windows::new(&windows, Start::Tiled { shift_ns: 0 }, counts_refused))
        };
        match self {
            Self::Bucket { rate, burst } => {
                Twin::Bucket(Bucket::new(rate.into(), 60 * SECOND_NS, burst.into()))
            }
            Self::Window { limit, period } => windows(&[(limit, period)]),
            Self::BurstSustain { burst, sustain } => windows(&[(burst, 15), (sustain, 60)]),
        }
    }
}

impl Twin {
    fn check(&mut self, key: u64, now_ns: u128, cost: u64) -> Decision {
        match self {
            Self::Bucket(bucket) => bucket.check(key, now_ns, cost.into()),
            Self::Windows(windows) => windows.check(key, now_ns, cost.into()),
        }
    }
}

/// A rule of the naive policy.
struct Naive {
    rule: Rule,
    keys: HashMap<String, u64>,
    twins: Vec<Twin>,
}

/// What it says of one rule: nothing of one that leaves the request alone.
struct Said {
    rule: usize,
    decisions: Vec<Decision>,
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

impl Naive {
    fn is_about(&self, request: &Request<'_>) -> bool {
        let matcher = &self.rule.matcher;
        (matcher.apis.is_empty() || matcher.apis.iter().any(|pattern| is_met(pattern, request.api)))
            && matcher.attributes.iter().all(|(name, patterns)| {
                let value = request.attributes.iter().find(|attribute| attribute.0 == name);
                value.is_some_and(|value| patterns.iter().any(|pattern| is_met(pattern, value.1)))
            })
    }

    fn is_exempt(&self, request: &Request<'_>) -> bool {
        request.title.is_some_and(|title| self.rule.exempt.titles.iter().any(|exempt| exempt == title))
    }

    fn key(&mut self, request: &Request<'_>) -> u64 {
        let parts: Vec<Option<&str>> = (self.rule.key.iter())
            .map(|part| match part {
                KeyPart::Title => request.title,
                KeyPart::User => request.caller.map(|caller| caller.id),
                KeyPart::Attribute(name) => request
                    .attributes
                    .iter()
                    .find(|attribute| attribute.0 == name)
                    .map(|attribute| attribute.1),
                _ => unreachable!("no such key here"),
            })
            .collect();
        let next = self.keys.len() as u64;
        *self.keys.entry(format!("{parts:?}")).or_insert(next)
    }

    fn cost(&self, request: &Request<'_>) -> u64 {
        match self.rule.cost {
            Cost::Fixed(cost) => cost.max(1),
            _ => request.cost.max(1),
        }
    }

    /// Every limit for itself.
    fn check(&mut self, request: &Request<'_>, now_ns: u128) -> Vec<Decision> {
        let (key, cost) = (self.key(request), self.cost(request));
        self.twins.iter_mut().map(|twin| twin.check(key, now_ns, cost)).collect()
    }
}

fn asked<'a>(all: &'a [Naive], matching: Matching, request: &'a Request<'_>) -> Vec<usize> {
    let about = (0..all.len()).filter(|&number| all[number].is_about(request));
    about.take(if matching == Matching::First { 1 } else { all.len() }).collect()
}

/// Every rule counts.
fn each(all: &mut [Naive], matching: Matching, request: &Request<'_>, now_ns: u128) -> Vec<Said> {
    let numbers = asked(all, matching, request);
    let decide = |rule: usize| {
        let naive = &mut all[rule];
        let decisions = if naive.is_exempt(request) { Vec::new() } else { naive.check(request, now_ns) };
        Said { rule, decisions }
    };
    numbers.into_iter().map(decide).collect()
}

/// All rules but the shadow ones are charged, or none; each shadow rule is charged, or not.
fn all_or_none(all: &mut [Naive], matching: Matching, request: &Request<'_>, now_ns: u128) -> Vec<Said> {
    let numbers = asked(all, matching, request);
    let before: Vec<Vec<Twin>> = all.iter().map(|naive| naive.twins.clone()).collect();
    let said = each(all, matching, request, now_ns);
    let passes = |said: &Said| said.decisions.iter().all(|decision| decision.passed);
    let all_pass = said.iter().filter(|said| !all[said.rule].rule.shadow).all(passes);
    for (said, number) in said.iter().zip(numbers) {
        let is_charged = if all[number].rule.shadow { passes(said) } else { all_pass };
        if !is_charged {
            all[number].twins.clone_from(&before[number]);
        }
    }
    said
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        // A token takes whole nanoseconds.
        (prop::sample::select(vec![1, 2, 3, 5, 6, 10, 12, 20]), 1..10_u64)
            .prop_map(|(rate, burst)| Kind::Bucket { rate, burst }),
        (1..10_u64, 1..30_u64).prop_map(|(limit, period)| Kind::Window { limit, period }),
        (1..6_u64, 0..10_u64).prop_map(|(burst, more)| Kind::BurstSustain { burst, sustain: burst + more }),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        "[rw]{1,2}".prop_map(Pattern::Exact),
        "[rw]{0,2}".prop_map(Pattern::Prefix),
        "[rw*?]{1,3}".prop_map(Pattern::Glob),
    ]
}

fn one_rule() -> impl Strategy<Value = (Rule, Vec<Kind>)> {
    let parts =
        prop_oneof![Just(KeyPart::User), Just(KeyPart::Title), Just(KeyPart::Attribute("plan".to_owned()))];
    let attributes = prop_oneof![
        3 => Just(Vec::new()),
        1 => "gold|free".prop_map(|value| vec![("plan".to_owned(), vec![Pattern::Exact(value)])]),
    ];
    let matcher = (prop::collection::vec(patterns(), 0..3), attributes)
        .prop_map(|(apis, attributes)| Matcher { apis, attributes });
    let cost = prop_oneof![2 => (0..3_u64).prop_map(Cost::Fixed), 1 => Just(Cost::OfRequest)];
    let exempt = prop_oneof![3 => Just(Vec::new()), 1 => Just(vec!["chess".to_owned()])]
        .prop_map(|titles| Exempt { titles, ..Exempt::default() });
    let settings = (cost, exempt, prop::bool::weighted(0.2), any::<bool>());
    (matcher, prop::collection::vec(parts, 0..3), prop::collection::vec(kinds(), 1..4), settings).prop_map(
        |(matcher, key, kinds, (cost, exempt, shadow, counts_refused))| {
            let limits: Vec<Limit> = kinds.iter().map(|kind| kind.limit()).collect();
            let on_refusal = if counts_refused { OnRefusal::Count } else { OnRefusal::Ignore };
            (Rule { matcher, cost, exempt, shadow, on_refusal, ..rule("", key, &limits) }, kinds)
        },
    )
}

/// A request and the milliseconds before it.
#[derive(Clone, Debug)]
struct Asked {
    wait_ms: u64,
    api: String,
    user: Option<String>,
    title: Option<String>,
    plan: Option<String>,
    cost: u64,
}

fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let wait = prop_oneof![3 => Just(0), 2 => 0..3_000_u64, 1 => 0..40_000_u64];
    let maybe = |texts: &'static str| prop::option::weighted(0.8, texts);
    let asked = (wait, "[rw]{1,2}", maybe("ada|bob|"), maybe("chess|go"), maybe("gold|free"), 0..5_u64);
    let asked = asked.prop_map(|(wait_ms, api, user, title, plan, cost)| Asked {
        wait_ms,
        api,
        user,
        title,
        plan,
        cost,
    });
    prop::collection::vec(asked, 1..60)
}

fn compare(counting: Counting, matching: Matching, all: Vec<(Rule, Vec<Kind>)>, history: &[Asked]) {
    let mut naive = Vec::new();
    for (number, (rule, kinds)) in all.into_iter().enumerate() {
        let counts_refused = counting == Counting::EveryRule && rule.on_refusal == OnRefusal::Count;
        let twins = kinds.iter().map(|kind| kind.twin(counts_refused)).collect();
        let rule = Rule { name: number.to_string(), ..rule };
        naive.push(Naive { rule, keys: HashMap::new(), twins });
    }
    let rules = naive.iter().map(|naive| naive.rule.clone()).collect();
    let (policy, clock) = policy(Rules { name: String::new(), counting, matching, rules });
    for asked in history {
        clock.advance(Duration::from_millis(asked.wait_ms));
        let now_ns = clock.elapsed().as_nanos();
        let attributes = asked.plan.as_deref().map(|plan| [("plan", plan)]);
        let mut request = Request::new(&asked.api).cost(asked.cost);
        request.title = asked.title.as_deref();
        if let Some(user) = &asked.user {
            request = request.user(user);
        }
        if let Some(attributes) = &attributes {
            request = request.attributes(attributes);
        }
        let said = match counting {
            Counting::EveryRule => each(&mut naive, matching, &request, now_ns),
            Counting::AllOrNothing => all_or_none(&mut naive, matching, &request, now_ns),
        };
        let verdict = policy.check(&request);
        let found: Vec<&str> = verdict.rules().map(|rule| rule.name()).collect();
        let expected: Vec<String> = said.iter().map(|said| said.rule.to_string()).collect();
        assert_eq!(found, expected, "{request:?}");
        let (mut is_allowed, mut wait_ns) = (true, Some(0));
        for (rule, said) in verdict.rules().zip(&said) {
            assert_eq!(rule.is_exempt(), said.decisions.is_empty());
            assert_eq!(rule.limits().count(), said.decisions.len());
            for (limit, decision) in rule.limits().zip(&said.decisions) {
                assert_eq!(limit.denied().is_none(), decision.passed, "{request:?}, {verdict:?}");
                if counting == Counting::EveryRule {
                    assert_same(&limit.answer(), decision, &request);
                }
                if !decision.passed && !rule.is_shadow() {
                    is_allowed = false;
                    wait_ns = wait_ns.zip(decision.retry_ns).map(|(one, other)| one.max(other));
                }
            }
        }
        assert_eq!(verdict.is_allowed(), is_allowed, "{request:?}, {verdict:?}");
        assert_eq!(verdict.retry_after().map(|wait| wait.as_nanos()), wait_ns, "{request:?}, {verdict:?}");
    }
}

fn matchings() -> impl Strategy<Value = Matching> {
    prop_oneof![2 => Just(Matching::All), 1 => Just(Matching::First)]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn every_verdict_is_the_naive_one(
        matching in matchings(),
        all in prop::collection::vec(one_rule(), 0..8),
        history in requests(),
    ) {
        compare(Counting::EveryRule, matching, all, &history);
    }

    #[test]
    fn every_verdict_of_all_or_nothing_is_the_naive_one(
        matching in matchings(),
        all in prop::collection::vec(one_rule(), 0..8),
        history in requests(),
    ) {
        compare(Counting::AllOrNothing, matching, all, &history);
    }
}

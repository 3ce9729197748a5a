//! The whole of a policy beside the naive one.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::policy::{Cost, Counting, Exempt, KeyPart, Matcher, Matching, OnRefusal, Pattern, Request};

use super::evaluator::{Drawn, Kind, Naive, Plan};
use super::policy;
use crate::common::assert_same_within;
use crate::common::steps::config;

/// A token takes whole nanoseconds.
const RATES: [u64; 8] = [1, 2, 3, 5, 6, 10, 12, 20];

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (prop::sample::select(RATES.to_vec()), 1..10_u64)
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

/// What an override says in the place of a limit, whatever that is: a rate and two numbers.
type Numbers = (u64, u64, u64);

/// Up to three overrides, as many as a limiter has room for: texts for two parts of a key, and numbers for three limits.
fn overrides() -> impl Strategy<Value = Vec<([String; 2], [Numbers; 3])>> {
    let part = || "ada|bob|chess|go|gold|free|";
    let numbers = || (prop::sample::select(RATES.to_vec()), 1..12_u64, 0..9_u64);
    let one = ([part(), part()], [numbers(), numbers(), numbers()]);
    prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(one, 1..4)]
}

fn one_rule() -> impl Strategy<Value = Drawn> {
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
    let counted = (prop::collection::vec(parts, 0..3), prop::collection::vec(kinds(), 1..4), overrides());
    (matcher, counted, settings).prop_map(
        |(matcher, (key, kinds, overrides), (cost, exempt, shadow, counts_refused))| {
            let on_refusal = if counts_refused { OnRefusal::Count } else { OnRefusal::Ignore };
            let mut drawn = Drawn::new(String::new(), key, kinds);
            for (texts, numbers) in overrides.into_iter().filter(|_| !drawn.rule.key.is_empty()) {
                let key = texts.into_iter().take(drawn.rule.key.len()).collect();
                let other =
                    |(kind, (rate, first, more)): (&Kind, Numbers)| kind.with(first, more).at_rate(rate);
                let kinds = drawn.kinds.iter().zip(numbers).map(other).collect();
                drawn.overrides.push((key, kinds));
            }
            Drawn {
                rule: tidegate::policy::Rule { matcher, cost, exempt, shadow, on_refusal, ..drawn.rule },
                ..drawn
            }
        },
    )
}

/// Rules named by their places.
fn plans(counting: impl Strategy<Value = Counting>) -> impl Strategy<Value = Plan> {
    let matching = prop_oneof![2 => Just(Matching::All), 1 => Just(Matching::First)];
    (counting, matching, prop::collection::vec(one_rule(), 0..8)).prop_map(
        |(counting, matching, mut rules)| {
            for (number, drawn) in rules.iter_mut().enumerate() {
                drawn.rule.name = number.to_string();
            }
            Plan { counting, matching, rules }
        },
    )
}

/// The same for policies that follow each other. Where there are overrides, rates stay: see the evaluator.
fn successors(do_rates_change: bool) -> impl Strategy<Value = Vec<Plan>> {
    let counting = prop_oneof![2 => Just(Counting::EveryRule), 1 => Just(Counting::AllOrNothing)];
    let adapt = move |mut plan: Plan| {
        for (number, drawn) in plan.rules.iter_mut().enumerate() {
            if do_rates_change {
                drawn.overrides.clear();
                continue;
            }
            let overridden = drawn.overrides.iter_mut().map(|over| &mut over.1);
            for kind in overridden.chain([&mut drawn.kinds]).flatten() {
                *kind = kind.at_rate(RATES[number]);
            }
        }
        plan
    };
    prop::collection::vec(plans(counting).prop_map(adapt), 2..6)
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

fn requests(most: usize) -> impl Strategy<Value = Vec<Asked>> {
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
    prop::collection::vec(asked, 1..most)
}

/// Plays a history with each plan in force, one after the other.
fn compare(plans: &[Plan], histories: &[Vec<Asked>], do_rates_change: bool) {
    // Off all edges, which a rounded wait would miss; and for each change as many nanoseconds as rates may differ by times.
    let (millisecond_ns, slack_ns) = if do_rates_change { (1_000_003, 100) } else { (1_000_000, 0) };
    let (policy, clock) = policy(plans[0].rules());
    let mut naive = Naive::new(&plans[0]);
    for (number, (plan, history)) in plans.iter().zip(histories).enumerate() {
        if number > 0 {
            let changes = policy.replace(plan.rules()).unwrap_or_else(|error| panic!("{error}: {plan:?}"));
            assert_eq!(changes, naive.replace(plan, clock.elapsed().as_nanos()), "{plan:?}");
        }
        for asked in history {
            clock.advance(Duration::from_nanos(asked.wait_ms * millisecond_ns));
            let attributes = asked.plan.as_deref().map(|plan| [("plan", plan)]);
            let mut request = Request::new(&asked.api).cost(asked.cost);
            request.title = asked.title.as_deref();
            if let Some(user) = &asked.user {
                request = request.user(user);
            }
            if let Some(attributes) = &attributes {
                request = request.attributes(attributes);
            }
            let said = naive.check(&request, clock.elapsed().as_nanos());
            let verdict = policy.check(&request);
            naive.assert_same(&verdict, &said, slack_ns, |answer, decision| {
                assert_same_within(slack_ns, answer, decision, &request);
            });
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn every_verdict_is_the_naive_one(plan in plans(Just(Counting::EveryRule)), history in requests(60)) {
        compare(&[plan], &[history], false);
    }

    #[test]
    fn every_verdict_of_all_or_nothing_is_the_naive_one(
        plan in plans(Just(Counting::AllOrNothing)),
        history in requests(60),
    ) {
        compare(&[plan], &[history], false);
    }

    #[test]
    fn every_verdict_after_reloads_is_the_naive_one(
        plans in successors(false),
        histories in prop::collection::vec(requests(25), 5),
    ) {
        compare(&plans, &histories, false);
    }

    #[test]
    fn every_verdict_after_changes_of_rates_is_the_naive_one(
        plans in successors(true),
        histories in prop::collection::vec(requests(25), 5),
    ) {
        compare(&plans, &histories, true);
    }
}

//! What an index finds is what asking every rule finds.

use proptest::prelude::*;

use super::*;
use crate::policy::{Entity, EntityType};

fn exact(text: &str) -> Pattern {
    Pattern::Exact(text.to_owned())
}

/// By asking every rule.
fn naive(matching: Matching, matchers: &[Matcher], request: &Request<'_>) -> Vec<u32> {
    let is_about = |matcher: &Matcher| {
        (matcher.apis.is_empty() || is_any_met(&matcher.apis, request.api))
            && matcher.attributes.iter().all(|(name, patterns)| {
                let value = request.attributes.iter().find(|(known, _)| known == name);
                value.is_some_and(|(_, value)| is_any_met(patterns, value))
            })
    };
    let mut found: Vec<u32> =
        (0..).zip(matchers).filter(|(_, matcher)| is_about(matcher)).map(|(number, _)| number).collect();
    if matching == Matching::First {
        found.truncate(1);
    }
    found
}

fn find(matching: Matching, matchers: &[Matcher], request: &Request<'_>) -> Vec<u32> {
    let mut found = Found::new();
    Matchers::new(matching, matchers.iter()).find(request, &mut found);
    found.to_vec()
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        "[abä]{0,3}".prop_map(Pattern::Exact),
        "[abä]{0,3}".prop_map(Pattern::Prefix),
        "[abä*?]{0,4}".prop_map(Pattern::Glob),
    ]
}

fn matchers() -> impl Strategy<Value = Matcher> {
    let attributes = prop::collection::vec(("[xy]", prop::collection::vec(patterns(), 1..3)), 0..3);
    (prop::collection::vec(patterns(), 0..3), attributes)
        .prop_map(|(apis, attributes)| Matcher { apis, attributes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn the_index_finds_what_asking_all_finds(
        all in prop::collection::vec(matchers(), 0..30),
        is_first: bool,
        api in "[abä]{0,5}",
        attributes in prop::collection::vec(("[xy]", "[abä]{0,3}"), 0..3),
    ) {
        let matching = if is_first { Matching::First } else { Matching::All };
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
        let request = Request::new(&api).attributes(&attributes);
        let found = find(matching, &all, &request);
        prop_assert_eq!(found, naive(matching, &all, &request));
    }
}

#[test]
fn rules_are_found_in_their_order_and_once() {
    let of = |apis: Vec<Pattern>| Matcher { apis, ..Matcher::default() };
    let matchers = [
        of(vec![Pattern::Glob("*file".to_owned())]),
        of(vec![exact("profile"), Pattern::Prefix("pro".to_owned()), Pattern::Prefix("profi".to_owned())]),
        of(vec![]),
        of(vec![exact("people")]),
        of(vec![Pattern::Prefix("profile".to_owned())]),
    ];
    let find = |matching, api| find(matching, &matchers, &Request::new(api));
    assert_eq!(find(Matching::All, "profile"), [0, 1, 2, 4]);
    assert_eq!(find(Matching::All, "people"), [2, 3]);
    assert_eq!(find(Matching::First, "profile"), [0]);
    assert_eq!(find(Matching::First, "provider"), [1]);
    assert_eq!(find(Matching::First, "x"), [2]);
}

#[test]
fn each_kind_of_exemption_holds() {
    let request = Request::new("profile").title("t").namespace("n").attributes(&[("plan", "gold")]);
    let request = request.caller(Entity::new(EntityType::GameServer, "server-1")).authenticated(true);
    let text = |id: &str| vec![id.to_owned()];
    let none = Exempt::default;
    for (exempt, holds) in [
        (none(), false),
        (Exempt { titles: text("t"), ..none() }, true),
        (Exempt { titles: text("n"), ..none() }, false),
        (Exempt { namespaces: text("n"), ..none() }, true),
        (Exempt { namespaces: text("t"), ..none() }, false),
        (Exempt { callers: text("server-1"), ..none() }, true),
        (Exempt { callers: text("server"), ..none() }, false),
        (Exempt { caller_types: vec![EntityType::GameServer], ..none() }, true),
        (Exempt { caller_types: vec![EntityType::Title], ..none() }, false),
        (Exempt { apis: vec![Pattern::Prefix("prof".to_owned())], ..none() }, true),
        (Exempt { apis: vec![exact("prof")], ..none() }, false),
        (Exempt { attributes: vec![("plan".to_owned(), vec![exact("gold")])], ..none() }, true),
        (Exempt { attributes: vec![("plan".to_owned(), vec![exact("free")])], ..none() }, false),
        (Exempt { attributes: vec![("tier".to_owned(), vec![exact("gold")])], ..none() }, false),
    ] {
        assert_eq!(Exemptions::new(&exempt).holds(&request), holds, "{exempt:?}");
        assert!(!Exemptions::new(&exempt).holds(&Request::new("other")), "{exempt:?}");
    }
}

//! What is odd is warned of, and what is not is left alone.

use super::toml;

/// The warnings of a policy of one rule with these fields.
fn warned(fields: &str) -> Vec<String> {
    let rules = toml(&format!("counting = 'all-or-nothing'\n[[rule]]\nname = 'a'\nkey = 'user'\n{fields}\n"));
    rules.warnings().iter().map(|warning| warning.says().to_owned()).collect()
}

#[test]
fn a_limit_that_can_never_refuse() {
    // Each by hand: what the other lets through in the window's time, and whether the window has room for it.
    let cases = [
        // 5 in each of 60 s of a minute that they tile: 300.
        ("{ window = '5/1s', opens = 'clock' }, { window = '300/1m', opens = 'clock' }", true),
        ("{ window = '5/1s', opens = 'clock' }, { window = '299/1m', opens = 'clock' }", false),
        ("{ window = '5/1s' }, { window = '300/1m' }", false),
        // Windows that open by themselves do not tile: 61 may touch a minute.
        (
            "{ window = '5/1s', opens = 'first-request' }, { window = '304/1m', opens = 'first-request' }",
            false,
        ),
        (
            "{ window = '5/1s', opens = 'first-request' }, { window = '305/1m', opens = 'first-request' }",
            true,
        ),
        // A burst of 10, and 60 that come back in a minute.
        ("{ rate = '1/s', burst = 10 }, { window = '70/1m' }", true),
        ("{ rate = '1/s', burst = 10 }, { window = '69/1m' }", false),
        ("{ burst = '10/15s', sustain = '200/5m' }", true),
        ("{ burst = '10/15s', sustain = '199/5m' }", false),
        // A sliding window weighs two periods: 10 and 120 that come back.
        ("{ rate = '1/s', burst = 10 }, { sliding = '130/1m' }", true),
        ("{ rate = '1/s', burst = 10 }, { sliding = '129/1m' }", false),
        // Two of one kind: the second says nothing more, and only one of two equal ones is odd.
        ("{ rate = '1/s', burst = 10 }, { rate = '2/s', burst = 10 }", true),
        ("{ rate = '1/s', burst = 10 }, { rate = '1/s', burst = 10 }", true),
        ("{ rate = '1/s', burst = 10 }, { rate = '2/s', burst = 9 }", false),
        // Across an edge twice the window's 5.
        ("{ window = '5/1s' }, { rate = '5/s', burst = 10 }", true),
        ("{ window = '5/1s' }, { rate = '5/s', burst = 9 }", false),
        ("{ window = '5/1s' }, { rate = '4/s', burst = 10 }", false),
    ];
    for (limits, odd) in cases {
        let told = warned(&format!("limits = [{limits}]\non_refusal = 'ignore'"));
        assert_eq!(told.len(), usize::from(odd), "{limits}: {told:?}");
        assert!(told.iter().all(|says| says.contains("can never refuse")), "{told:?}");
    }
    // Where each rule counts for itself refused requests count: they fill the long window.
    let pair = "limit = { burst = '10/15s', sustain = '200/5m' }";
    assert!(toml(&format!("[[rule]]\nname = 'a'\nkey = 'user'\n{pair}\n")).warnings().is_empty());
    assert_eq!(warned(pair).len(), 1, "and none count where all rules count a request or none");
}

#[test]
fn a_rule_that_nothing_reaches() {
    let limit = "limit = { rate = '1/s', burst = 5 }";
    for (fields, says) in [
        ("match = { attribute = { plan = [] } }", "matches nothing"),
        ("exempt = { api = '*' }", "limits nothing"),
        ("match = { api = ['a-b', 'a-c*'] }\nexempt = { api = 'a-*' }", "limits nothing"),
        ("match = { api = 'abc' }\nexempt = { api = 'a?c' }", "limits nothing"),
    ] {
        let told = warned(&format!("{limit}\n{fields}"));
        assert!(told.len() == 1 && told[0].starts_with(says), "{fields}: {told:?}");
    }
    for fields in [
        "match = { api = ['a-b', 'b'] }\nexempt = { api = 'a-*' }",
        "match = { api = 'a*' }\nexempt = { api = 'a-*' }",
        "exempt = { api = 'a*' }",
        "match = { api = 'abc' }\nexempt = { api = 'a?d' }",
    ] {
        assert!(warned(&format!("{limit}\n{fields}")).is_empty(), "{fields}");
    }
}

#[test]
fn a_rule_that_an_earlier_one_hides() {
    let limit = "key = 'user'\nlimit = { rate = '1/s', burst = 5 }";
    let hidden = |matching: &str, first: &str, second: &str| {
        let text = format!(
            "matching = '{matching}'\n[[rule]]\nname = 'one'\n{limit}\n{first}\n[[rule]]\nname = 'two'\n{limit}\n{second}\n"
        );
        let told = toml(&text).warnings();
        assert!(told.iter().all(|told| told.rule() == "two" && told.says().contains("\"one\"")), "{told:?}");
        !told.is_empty()
    };
    let api = |api: &str| format!("match = {{ api = {api} }}");
    assert!(hidden("first", "", ""));
    assert!(!hidden("all", "", ""));
    assert!(hidden("first", &api("'a*'"), &api("['ab', 'ac*', 'a?c']")));
    assert!(!hidden("first", &api("'a*'"), &api("['ab', 'b']")));
    assert!(!hidden("first", &api("'a*'"), ""));
    assert!(hidden("first", &api("'a?c*d'"), &api("'abcxd'")));
    let plan = |plan: &str| format!("match = {{ attribute = {{ plan = {plan} }} }}");
    assert!(hidden("first", &plan("'*'"), &plan("'free'")));
    assert!(!hidden("first", &plan("'free'"), &plan("['free', 'trial']")));
    assert!(!hidden("first", &plan("'*'"), ""));
    // What the first leaves alone no other is asked.
    assert!(hidden("first", "exempt = { title = 't' }", ""));
}

#[test]
fn a_cost_that_never_fits_and_a_table_too_small() {
    let bucket = "limit = { rate = '1/s', burst = 5 }";
    assert!(warned(&format!("{bucket}\ncost = 5")).is_empty());
    assert!(warned(&format!("{bucket}\ncost = 6"))[0].starts_with("a request costs 6, and a limit of 5"));
    let overrides: String = (0..3)
        .map(|number| format!("[[rule.override]]\nkey = '{number}'\nlimit = {{ rate = '1/s', burst = 6 }}\n"))
        .collect();
    assert!(warned(&format!("{bucket}\nmax_keys = 3\n{overrides}")).is_empty());
    assert!(
        warned(&format!("{bucket}\nmax_keys = 2\n{overrides}"))[0]
            .starts_with("max_keys is 2, and there are 3")
    );
    let address = |keys: u32| {
        toml(&format!("[[rule]]\nname = 'a'\nkey = 'user+client_ip'\n{bucket}\nmax_keys = {keys}\n"))
            .warnings()
            .len()
    };
    assert_eq!((address(9_999), address(10_000)), (1, 0));
}

#[test]
fn what_all_share_and_one_may_use_up() {
    let text = |counting: &str, more: &str| {
        format!(
            "counting = '{counting}'\n[[rule]]\nname = 'each'\nkey = 'user'\nlimit = {{ rate = '1/s', burst = 3 }}\n\
             [[rule]]\nname = 'all'\nkey = 'global'\nlimit = {{ window = '100/1m' }}\n{more}"
        )
    };
    let warns = |text: &str| toml(text).warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    let told = warns(&text("every-rule", ""));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("rule \"all\": counts what other rules refuse as well"), "{told:?}");
    assert!(warns(&text("all-or-nothing", "")).is_empty());
    assert!(warns(&text("every-rule", "shadow = true")).is_empty());
}

#[test]
fn an_attribute_that_is_spelt_two_ways() {
    let text = |name: &str| {
        format!(
            "[[rule]]\nname = 'a'\nmatch = {{ attribute = {{ api_key = '*' }} }}\nkey = 'attribute:{name}'\n\
             limit = {{ rate = '1/s', burst = 3 }}\n"
        )
    };
    let told = toml(&text("api-key")).warnings();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].says().starts_with("its key asks for attribute \"api-key\", and match for \"api_key\""));
    assert!(toml(&text("api_key")).warnings().is_empty());
    assert!(toml(&text("tenant")).warnings().is_empty());
}

//! What files say, in either spelling.

use std::path::PathBuf;

use tidegate::policy::{
    Cost, Counting, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Pattern, RefusalBody, Rules,
};
use tidegate::{Alignment, Limit, OnFull, Rate, Window};

use super::{same, secs, toml};

/// A rule with everything said, once in TOML and once in JSON.
const ALL_TOML: &str = r#"
name = "everything"
counting = "all-or-nothing"
matching = "first"
body = "game-backend"

[[rule]]
name = "all"
match.api = ["stats-*", "exact:a*", "v?/x", "plain"]
match.attribute.plan = "free"
match.attribute.kind = ["a*", "b"]
key = ["user+title", { client_ip = { v4_bits = 24 } }, { attribute = "a+b" }]
limits = [
    { rate = "1_000/s", burst = 2_000, debt_max = 0 },
    { window = { limit = 10, period = "1h30m" }, opens = "clock" },
    { sliding = "7/m" },
    { burst = "30/15s", sustain = "100/5m", opens = "first-request" },
]
on_refusal = "count"
shadow = true
cost = "attribute:tokens"
warn_percent = 100
max_keys = 5_000
on_full = "inherit"
[rule.exempt]
title = "t"
namespace = ["n", "m"]
caller = []
caller_type = ["title", "master-player-account"]
api = "*"
attribute = { vip = "yes" }
[[rule.override]]
key = ["u", "t", "192.0.2.9", "v"]
limits = [
    { rate = "1/s", burst = 1 },
    { window = "11/90m" },
    { sliding = "8/60s" },
    { burst = "31/15s", sustain = "101/300s" },
]
"#;

const ALL_JSON: &str = r#"{
"$schema": "policy.schema.json", "name": "everything", "counting": "all-or-nothing", "matching": "first", "body": "game-backend",
"rule": [{
  "name": "all",
  "match": {"api": ["stats-*", "exact:a*", "v?/x", "plain"], "attribute": {"plan": "free", "kind": ["a*", "b"]}},
  "key": ["user", "title", "client_ip/24/64", {"attribute": "a+b"}],
  "limits": [{"rate": "1000/1s", "burst": 2000, "debt_max": 0}, {"window": "10/90m", "opens": "clock"},
    {"sliding": "7/60s", "opens": "per-key"}, {"burst": "30/15s", "sustain": "100/300s", "opens": "first-request"}],
  "on_refusal": "count", "shadow": true, "cost": "attribute:tokens", "warn_percent": 100, "max_keys": 5000,
  "on_full": "inherit",
  "exempt": {"title": ["t"], "namespace": ["n", "m"], "caller_type": ["title", "master-player-account"],
    "api": ["*"], "attribute": {"vip": ["yes"]}},
  "override": [{"key": ["u", "t", "192.0.2.9", "v"], "limits": [{"rate": "1/s", "burst": 1}, {"window": "11/1h30m"},
    {"sliding": "8/m"}, {"burst": "31/15s", "sustain": "101/5m"}]}]
}]}"#;

#[test]
fn every_field_is_read() {
    let rules = toml(ALL_TOML);
    assert_eq!(
        (&*rules.name, rules.counting, rules.matching),
        ("everything", Counting::AllOrNothing, Matching::First)
    );
    assert_eq!(rules.body, Some(RefusalBody::GameBackend));
    let [rule] = &rules.rules[..] else { panic!() };
    let exact = |text: &str| Pattern::Exact(text.to_owned());
    let prefix = |text: &str| Pattern::Prefix(text.to_owned());
    assert_eq!(
        rule.matcher,
        Matcher {
            apis: vec![prefix("stats-"), exact("a*"), Pattern::Glob("v?/x".to_owned()), exact("plain")],
            attributes: vec![
                ("plan".to_owned(), vec![exact("free")]),
                ("kind".to_owned(), vec![prefix("a"), exact("b")]),
            ],
        }
    );
    let key: Vec<String> = rule.key.iter().map(|part| format!("{part:?}")).collect();
    assert_eq!(key, ["user", "title", "client_ip/24/64", "attribute:a+b"]);
    assert!(matches!(rule.key[2], KeyPart::ClientIp { v4_bits: 24, v6_bits: 64 }));
    let pair = |burst, sustain| {
        Limit::burst_sustain(Window::new(burst, secs(15)), Window::new(sustain, secs(300)))
            .align(Alignment::FirstRequest)
    };
    let minute = |limit| Limit::sliding_window(Window::new(limit, secs(60))).count_refused(true);
    let long = |limit| Limit::window(Window::new(limit, secs(5_400))).align(Alignment::Clock);
    assert_eq!(
        rule.limits,
        [Limit::bucket(Rate::per_second(1_000), 2_000).debt_max(0), long(10), minute(7), pair(30, 100)]
    );
    assert_eq!(rule.overrides.len(), 1);
    assert_eq!(rule.overrides[0].key, ["u", "t", "192.0.2.9", "v"]);
    assert_eq!(
        rule.overrides[0].limits,
        [Limit::bucket(Rate::per_second(1), 1), long(11), minute(8), pair(31, 101)]
    );
    assert_eq!(
        rule.exempt,
        Exempt {
            titles: vec!["t".to_owned()],
            namespaces: vec!["n".to_owned(), "m".to_owned()],
            callers: vec![],
            caller_types: vec![EntityType::Title, EntityType::MasterPlayerAccount],
            apis: vec![prefix("")],
            attributes: vec![("vip".to_owned(), vec![exact("yes")])],
        }
    );
    assert_eq!((rule.shadow, &rule.cost), (true, &Cost::Attribute("tokens".to_owned())));
    assert_eq!((rule.on_refusal, rule.on_full), (OnRefusal::Count, OnFull::Inherit));
    assert_eq!((rule.warn_percent, rule.max_keys), (100, 5_000));
}

#[test]
fn both_spellings_say_the_same() {
    same(&toml(ALL_TOML), &Rules::from_json(ALL_JSON, "test.json").unwrap());
}

#[test]
fn what_is_left_out_is_as_the_page_says() {
    let rules = toml("[[rule]]\nname = 'a'\nkey = 'global'\nlimit = { window = '5/s' }\n");
    assert_eq!((rules.counting, rules.matching, rules.body), (Counting::EveryRule, Matching::All, None));
    let rule = &rules.rules[0];
    assert!(rule.matcher == Matcher::default() && rule.key.is_empty() && rule.exempt == Exempt::default());
    assert_eq!(rule.limits, [Limit::window(Window::new(5, secs(1)))]);
    assert_eq!((rule.shadow, &rule.cost, rule.on_refusal), (false, &Cost::Fixed(1), OnRefusal::Count));
    assert_eq!((rule.warn_percent, rule.max_keys, rule.on_full), (80, 100_000, OnFull::EvictLeast));
}

#[test]
fn refused_requests_count_in_fixed_windows_and_not_in_sliding_ones() {
    let text = |limits: &str, more: &str| {
        toml(&format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimits = [{limits}]\n{more}")).rules.remove(0)
    };
    let fixed = Limit::window(Window::new(5, secs(1)));
    let sliding = Limit::sliding_window(Window::new(5, secs(1)));
    let rule = text("{ window = '5/s' }", "");
    assert_eq!((rule.on_refusal, &rule.limits[..]), (OnRefusal::Count, &[fixed][..]));
    let rule = text("{ window = '5/s' }", "on_refusal = 'ignore'");
    assert_eq!((rule.on_refusal, rule.limits[0]), (OnRefusal::Ignore, fixed.count_refused(false)));
    let rule = text("{ window = '5/s' }, { sliding = '5/s' }", "");
    assert_eq!(
        (rule.on_refusal, &rule.limits[..]),
        (OnRefusal::Ignore, &[fixed.count_refused(false), sliding][..])
    );
    let rule = text("{ sliding = '5/s' }", "on_refusal = 'count'");
    assert_eq!((rule.on_refusal, rule.limits[0]), (OnRefusal::Count, sliding.count_refused(true)));
}

#[test]
fn keys_are_parts_in_any_spelling() {
    let key = |key: &str| -> Result<Vec<String>, String> {
        let text = format!("[[rule]]\nname = 'a'\nkey = {key}\nlimit = {{ window = '5/s' }}\n");
        let rules = Rules::from_toml(&text, "t").map_err(|problems| problems.to_string())?;
        Ok(rules.rules[0].key.iter().map(|part| format!("{part:?}")).collect())
    };
    assert_eq!(key("'global'").unwrap(), [""; 0]);
    assert_eq!(key("' user + title '").unwrap(), ["user", "title"]);
    assert_eq!(key("['user', 'title+entity']").unwrap(), ["user", "title", "entity"]);
    assert_eq!(key("'client_ip'").unwrap(), ["client_ip/32/64"]);
    assert_eq!(key("{ client_ip = {} }").unwrap(), ["client_ip/32/64"]);
    assert_eq!(key("{ client_ip = { v6_bits = 0 } }").unwrap(), ["client_ip/32/0"]);
    assert_eq!(key("'attribute:x y'").unwrap(), ["attribute:x y"]);
    for (wrong, says) in [
        ("'user+user'", "key has user twice"),
        ("'user+'", "key has \"\"; it must be user"),
        ("'attribute:'", "key has \"attribute:\""),
        ("'user+global'", "\"global\" stands alone"),
        ("'client_ip/33/48'", "leading bits of IPv4 (0 to 32)"),
        ("'client_ip/24'", "leading bits of IPv4 (0 to 32)"),
        (
            "{ client_ip = { v4_bits = 33 } }",
            "key.client_ip.v4_bits is 33; it must be a whole number from 0 to 32",
        ),
        ("{ client_ip = {}, attribute = 'a' }", "key has both client_ip and attribute"),
        ("{}", "key is missing; it must be a table of either"),
        ("[]", "key is an empty list"),
        ("['user', 5]", "key[2] is 5; it must be a table of client_ip, attribute"),
        ("true", "key is true"),
    ] {
        let found = key(wrong).unwrap_err();
        assert!(found.contains(says) && found.lines().count() == 1, "{wrong}: {found}");
    }
}

#[test]
fn files_are_read_by_their_ending() {
    let folder = std::env::temp_dir().join(format!("tidegate-policies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    same(&Rules::read(write("a.toml", ALL_TOML.as_bytes())).unwrap(), &toml(ALL_TOML));
    same(&Rules::read(write("a.JSON", ALL_JSON.as_bytes())).unwrap(), &toml(ALL_TOML));
    let told = |path: PathBuf| Rules::read(path).unwrap_err().to_string();
    assert!(
        told(write("a.yaml", b"")).ends_with("a.yaml: the name of a policy file must end in .toml or .json")
    );
    assert!(told(folder.join("none.toml")).contains("none.toml: cannot be read: "));
    assert!(told(write("b.toml", b"a = 1\nb = '\xff'\n")).ends_with("b.toml: is not UTF-8 in line 2"));
    assert!(told(write("c.toml", &vec![b'\n'; (16 << 20) + 1])).contains("is longer than 16 MiB"));
    std::fs::remove_dir_all(&folder).unwrap();
}

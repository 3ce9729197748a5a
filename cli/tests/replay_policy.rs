//! `tidegate replay --policy` as a user meets it: figures worked by hand, complaints, and two policies compared.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::path::{Path, PathBuf};

use common::{json, replay, stderr, stdout, tidegate};
use serde_json::{Value, json};

/// Two searches in 10 s for each address; four requests in 10 s for all together, only watched.
const SHOP: &str = r#"
name = "shop"
[[rule]]
name = "search"
match = { api = "/search" }
key = "client_ip"
limit = { window = "2/10s", opens = "clock" }
exempt = { attribute = { user_agent = "watch*" } }
[[rule]]
name = "everything"
key = "global"
limit = { window = "4/10s", opens = "clock" }
shadow = true
[[rule]]
name = "orders"
match = { api = "/order" }
key = "user"
limit = { rate = "1/s", burst = 1 }
"#;

/// One search, and nobody is exempt.
const STRICT: &str = r#"
[[rule]]
name = "search"
match = { api = "/search" }
key = "client_ip"
limit = { window = "1/10s", opens = "clock" }
"#;

/// A policy in a file of the test's own.
fn policy(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

fn entry(client: &str, second: u32, path: &str, agent: &str) -> String {
    format!(
        "{client} - - [02/Mar/2026:09:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"{agent}\"\n"
    )
}

/// In the order in which a server writes lines, not of the requests.
fn shop_log() -> String {
    [
        entry("192.0.2.1", 10, "/search", "b"), // a new window: passes
        entry("192.0.2.1", 0, "/search?q=1", "b"),
        entry("192.0.2.1", 1, "/search", "b"), // the second of two
        "nonsense\n".to_owned(),
        entry("192.0.2.1", 2, "/search", "b"), // the third: refused, and counted
        entry("192.0.2.2", 3, "/search", "b"), // the fourth of all
        entry("192.0.2.2", 4, "/search", "watch/1"), // exempt; all together have no room from here on
        entry("192.0.2.3", 5, "/about", "b"),
    ]
    .concat()
}

#[test]
fn an_access_log_by_rule() {
    let shop = policy("by-rule", SHOP);
    let told = json(&["-", "--policy", shop.to_str().unwrap()], shop_log().as_bytes());
    for (name, expected) in
        [("lines", 8), ("skipped", 1), ("requests", 7), ("allowed", 6), ("refused", 1), ("unmatched", 0)]
    {
        assert_eq!(told[name], expected, "{name}");
    }
    let search = json!({
        "rule": "search", "shadow": false, "matched": 6, "exempt": 1, "passed": 4, "refused": 1, "refused_alone": 1,
        "shadow_refused": 0, "warned": 1, "cost_passed": 4, "cost_refused": 1, "keys": 2, "keys_refused": 1,
        "peak_percent": 150, "peak_key": "192.0.2.1",
    });
    let everything = json!({
        "rule": "everything", "shadow": true, "matched": 7, "exempt": 0, "passed": 5, "refused": 0, "refused_alone": 0,
        "shadow_refused": 2, "warned": 1, "cost_passed": 5, "cost_refused": 2, "keys": 1, "keys_refused": 1,
        "peak_percent": 150, "peak_key": "all together",
    });
    assert_eq!(told["rules"][0], search);
    assert_eq!(told["rules"][1], everything);
    assert_eq!((&told["rules"][2]["matched"], &told["rules"][2]["peak_percent"]), (&json!(0), &Value::Null));
    let key = |rule: &str, key: &str, shadow: bool, passed: u64, refused: u64| {
        json!({ "rule": rule, "key": key, "shadow": shadow, "passed": passed, "refused": refused,
            "cost_passed": passed, "cost_refused": refused })
    };
    let top =
        json!([key("everything", "all together", true, 5, 2), key("search", "192.0.2.1", false, 3, 1),]);
    assert_eq!((&told["top"], &told["keys_refused"]), (&top, &json!(2)));
    assert_eq!(told["missing"], json!(["user"]));
    assert_eq!(told["skipped_first"][0]["line"], 4);
}

#[test]
fn the_page_tells_the_same() {
    let shop = policy("page", SHOP);
    let page = stdout(&replay(&["-", "--policy", shop.to_str().unwrap()], shop_log().as_bytes()));
    for part in [
        "shop (",
        "  7 requests, 02 Mar 2026 09:00:00 to 09:00:10 UTC\n",
        "  rules ask for user; no request has it (see --map)\n",
        "  allowed                     6   85.7 %  █",
        "  search                     1  20.0 %       4  150 %     2             1      1\n",
        "  everything (shadow)        2  28.6 %       5  150 %     1             1      0\n",
        "  rules that no request matched: orders\n",
        "Refused: 2 keys\n",
        "Skipped: 1 line of 8\n",
    ] {
        assert!(page.contains(part), "{part:?}:\n{page}");
    }
    for columns in [40, 60, 80, 132] {
        let mut command = tidegate();
        command.args(["replay", "--policy"]).arg(&shop).env("COLUMNS", columns.to_string());
        let page = stdout(&command.output().unwrap());
        // A path is never broken.
        let wide = page.lines().skip_while(|line| !line.contains("requests,"));
        assert!(wide.clone().count() > 10);
        wide.for_each(|line| assert!(line.chars().count() <= columns, "{columns}: {line}"));
    }
}

/// 100 tokens at once and 10 in a second for each user.
const TOKENS: &str = r#"
[[rule]]
name = "tokens"
key = "user"
cost = "request"
limit = { rate = "10/s", burst = 100 }
"#;

const CALLS: &str = "\
at,who,in,out
2026-03-02 09:00:02.0000000,ada,20,10
2026-03-02 09:00:00.0000000,ada,60,30
2026-03-02 09:00:01.0000000,ada,15,10
2026-03-02 09:00:02.0000000,bob,,1
2026-03-02T09:00:02Z,bob,50,51
1772442003,bob,1
tomorrow,bob,1,1
";

const CALLS_MAP: [&str; 7] = ["-", "--map", "time=at", "--map", "user=who", "--map", "cost=in+out"];

#[test]
fn a_csv_file_with_sums_of_columns() {
    let path = policy("tokens", TOKENS);
    let args = [&CALLS_MAP[..], &["--format", "csv", "--policy", path.to_str().unwrap()]].concat();
    let told = json(&args, CALLS.as_bytes());
    // Ada: 90 of 100 pass; a second later 20 are there and 25 too many; another one later 30 of 30 pass. Bob asks for 101.
    assert_eq!((&told["allowed"], &told["refused"]), (&json!(2), &json!(2)));
    assert_eq!((&told["cost_allowed"], &told["cost_refused"]), (&json!(120), &json!(126)));
    let rule = &told["rules"][0];
    assert_eq!(
        (&rule["cost_passed"], &rule["cost_refused"], &rule["peak_percent"]),
        (&json!(120), &json!(126), &json!(100))
    );
    assert_eq!(
        (&rule["keys"], &rule["keys_refused"], &told["counts_cost"]),
        (&json!(2), &json!(2), &json!(true))
    );
    let skipped: Vec<String> = told["skipped_first"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| format!("{} {}", skipped["line"], skipped["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(skipped[..2], ["5 no \"in\"", "7 3 fields; the header has 4"]);
    assert!(skipped[2].starts_with("8 bad time \"tomorrow\": not a time as in "), "{skipped:?}");
    assert_eq!((&told["lines"], &told["missing"]), (&json!(7), &json!([])));
}

#[test]
fn json_lines_with_objects_in_objects() {
    let path = policy(
        "json",
        r#"
[[rule]]
name = "keys"
match = { api = "chat*" }
key = ["attribute:api_key", { client_ip = { v4_bits = 24 } }]
limit = { window = "1/1m", opens = "clock" }
"#,
    );
    let log = r#"
{"ts": 1772442000.5, "req": {"path": "chat/a"}, "ip": "192.0.2.1", "api_key": "k"}
{"ts": 1772442000500, "req": {"path": "chat/b"}, "ip": "192.0.2.77:443", "api_key": "k"}
{"ts": "2026-03-02T09:00:01Z", "req": {"path": "chat/c"}, "ip": "198.51.100.1", "api_key": "k"}
{"ts": 1772442002, "req": {"path": "models"}}
{"ts": 1772442003, "req":
"#;
    let args = ["-", "--policy", path.to_str().unwrap(), "--map", "api=req.path", "--map", "client_ip=ip"];
    let told = json(&args, log.trim_start().as_bytes());
    assert_eq!((&told["allowed"], &told["refused"], &told["unmatched"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!(told["top"][0]["key"], "k/192.0.2.0/24");
    assert_eq!(told["skipped"], 1);
}

#[test]
fn mappings_that_cannot_be_are_told_with_what_can() {
    let path = policy("mappings", TOKENS);
    let path = path.to_str().unwrap();
    for (args, expected) in [
        (
            &["--map", "usr=who"][..],
            "invalid value 'usr=who' for '--map <FIELD=SOURCE>': \"usr\" is no part of a request; did you mean \"user\"? Known: time, api, title,",
        ),
        (
            &["--map", "time=at", "--map", "user=whom"],
            "--map user=whom: the log has no field \"whom\"; did you mean \"who\"? Known: at, who, in, out",
        ),
        (&["--map", "time=at", "--map", "time=who"], "--map time=who: time is mapped twice"),
        (&["--map", "cost=in+"], "nothing that cost comes from"),
    ] {
        let output = replay(&[&["-", "--format", "csv", "--policy", path], args].concat(), CALLS.as_bytes());
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{args:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let output = replay(&["--policy", path, "--map", "user=whom"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Known: client, user, request, method, path,"), "{}", stderr(&output));
    let output = replay(&["--policy", path, "--map", "attribute:plan=path"], b"");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "tidegate: no rule asks for attribute:plan, which --map names\n");
    let jsonl = replay(&["-", "--policy", path, "--map", "user=whom"], b"{\"ts\": 1, \"who\": 2}\n");
    assert!(stderr(&jsonl).contains("did you mean \"who\"? Known: ts, who"), "{}", stderr(&jsonl));
}

#[test]
fn policies_that_cannot_be_used_are_told_before_reading() {
    let wrong = policy("wrong", "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { rate = '1/s', brust = 1 }\n");
    for args in [
        &["--policy", wrong.to_str().unwrap()][..],
        &["--policy", "default", "--compare", wrong.to_str().unwrap()],
    ] {
        let output = replay(&[&["no/such/access.log"], args].concat(), b"");
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.starts_with("tidegate: ") && told.contains("did you mean \"burst\"?"), "{told}");
    }
    for args in [
        &["--compare", "default"][..],
        &["--map", "api=path"],
        &["--policy", "default", "--limit", "bucket:1/s,1"],
    ] {
        assert_eq!(replay(args, b"").status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn two_policies_compared() {
    let (shop, strict) = (policy("compare-shop", SHOP), policy("compare-strict", STRICT));
    let (shop, strict) = (shop.to_str().unwrap(), strict.to_str().unwrap());
    let log = shop_log();
    let told = json(&["-", "--policy", shop, "--compare", strict], log.as_bytes());
    // The shop refuses the third search of 192.0.2.1; the strict one its second too, and the exempt one.
    for (name, expected) in [
        ("both_allowed", 4),
        ("both_refused", 1),
        ("lost", 2),
        ("gained", 0),
        ("losers_total", 2),
        ("gainers_total", 0),
    ] {
        assert_eq!(told[name], expected, "{name}");
    }
    assert_eq!(
        (&told["before"]["refused"], &told["after"]["refused"], &told["after"]["unmatched"]),
        (&json!(1), &json!(3), &json!(1))
    );
    let key = |key: &str, before: u64, after: u64| json!({ "rule": "search", "key": key, "refused_before": before, "refused_after": after });
    assert_eq!(told["losers"], json!([key("192.0.2.1", 1, 2), key("192.0.2.2", 0, 1)]));
    assert_eq!(told["rules"][0]["after"]["refused"], 3);
    assert_eq!((&told["rules"][1]["rule"], &told["rules"][1]["after"]), (&json!("everything"), &Value::Null));

    let back = json(&["-", "--policy", strict, "--compare", shop], log.as_bytes());
    assert_eq!((&back["gained"], &back["lost"], &back["cost_gained"]), (&json!(2), &json!(0), &json!(2)));
    assert_eq!(back["gainers"], json!([key("192.0.2.1", 2, 1), key("192.0.2.2", 1, 0)]));

    let page = stdout(&replay(&["-", "--policy", shop, "--compare", strict], log.as_bytes()));
    for part in
        ["  newly refused ", "Refused by rule\n", "Refused more often: 2 keys\n", "  192.0.2.2  search"]
    {
        assert!(page.contains(part), "{part:?}:\n{page}");
    }
    let same = json(&["-", "--policy", shop, "--compare", shop], log.as_bytes());
    assert_eq!((&same["gained"], &same["lost"], &same["losers"]), (&json!(0), &json!(0), &json!([])));
}

#[test]
fn a_clock_that_was_never_set_does_not_end_the_replay() {
    let path = policy(
        "stray",
        "[[rule]]\nname = 'a'\nkey = 'client_ip'\nlimit = { window = '1/1h', opens = 'first-request' }\n",
    );
    let stray = entry("192.0.2.1", 0, "/", "b").replace("2026", "1970");
    let again = entry("192.0.2.1", 2, "/", "b").replace("09:00", "10:00");
    let log = [stray.clone(), stray, entry("192.0.2.1", 0, "/", "b"), entry("192.0.2.1", 1, "/", "b"), again]
        .concat();
    // 56 years are more than a limiter's time lasts: on one begun in 1970 the hour of 2026 would never end.
    let told = json(&["-", "--policy", path.to_str().unwrap()], log.as_bytes());
    assert_eq!((&told["allowed"], &told["refused"]), (&json!(3), &json!(2)));
}

#[test]
fn the_default_policy_is_there() {
    let log = entry("192.0.2.1", 0, "profile", "b").repeat(12);
    let told =
        json(&["-", "--policy", "default", "--map", "user=client", "--map", "title='t'"], log.as_bytes());
    assert_eq!((&told["allowed"], &told["refused"]), (&json!(10), &json!(2)));
    assert_eq!(
        (&told["top"][0]["key"], &told["policy"]),
        (&json!("192.0.2.1/t"), &json!("the default policy"))
    );
    let told = json(&["-", "--policy", "default"], log.as_bytes());
    assert_eq!(told["missing"], json!(["title", "user"]));
}

#[test]
fn the_help_tells_every_field_of_the_json() {
    fn names(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                into.push(name.clone());
                names(value, into);
            }),
            Value::Array(values) => values.iter().for_each(|value| names(value, into)),
            _ => {}
        }
    }
    let help = stdout(&tidegate().args(["replay", "--help"]).output().unwrap());
    let (_, help) = help.split_once("JSON:").unwrap();
    let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let (shop, strict) = (policy("help-shop", SHOP), policy("help-strict", STRICT));
    let one = ["-", "--policy", shop.to_str().unwrap()];
    let two = [&one[..], &["--compare", strict.to_str().unwrap()]].concat();
    let mut fields = Vec::new();
    names(&json(&one, shop_log().as_bytes()), &mut fields);
    names(&json(&two, shop_log().as_bytes()), &mut fields);
    assert!(fields.len() > 80);
    for field in fields {
        assert!(words.contains(&field.as_str()), "{field}");
    }
}

//! Mistakes: each is told, with its place and how to mend it.

use tidegate::policy::Rules;

use super::{problems, toml};

#[test]
fn all_mistakes_are_told_at_once_each_with_its_place() {
    let text = "\
countin = 'every-rule'
[[rule]]
name = 'profile'
key = 'usr+title'
limit = { rate = '10', brust = 30 }
warn_percent = 101

[[rule]]
limit = { window = '5/s', opens = 'clok' }
shadow = 'yes'
";
    let found: Vec<String> = problems(text).iter().map(ToString::to_string).collect();
    let starts = [
        "test.toml:1:1: unknown field \"countin\"; did you mean \"counting\"? Known: name, counting, matching, body, rule",
        "test.toml:4:7: rule \"profile\": key has \"usr\"; did you mean \"user\"? It must be user, title, ",
        "test.toml:5:18: rule \"profile\": limit.rate is \"10\"; it must be tokens and the time",
        "test.toml:5:24: rule \"profile\": unknown field \"brust\" in limit; did you mean \"burst\"? Known: rate, burst, ",
        "test.toml:6:16: rule \"profile\": warn_percent is 101; it must be a whole number from 1 to 100",
        "test.toml:8:1: rule 2: name is missing; it must be text in quotes",
        "test.toml:8:1: rule 2: key is missing; it must be \"user\", ",
        "test.toml:9:35: rule 2: limit.opens is \"clok\"; did you mean \"clock\"? It must be \"per-key\", \"clock\" or \"first-request\"",
        "test.toml:10:10: rule 2: shadow is \"yes\"; it must be true or false",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}\n{start}");
    }
}

#[test]
fn a_problem_has_parts() {
    let problems =
        problems("[[rule]]\nname = 'é'\nkey = 'user'\nlimit = { window = '5/s', opens = 'Clock' }\n");
    assert_eq!(problems.len(), 1);
    let problem = problems.iter().next().unwrap();
    assert_eq!((problem.file(), problem.line(), problem.column()), ("test.toml", Some(4), Some(35)));
    assert_eq!((problem.rule(), problem.field()), (Some("rule \"é\""), "limit.opens"));
    assert_eq!((problem.found(), problem.suggestion()), (Some("\"Clock\""), Some("clock")));
    assert_eq!(problem.allowed(), Some("it must be \"per-key\", \"clock\" or \"first-request\""));
    assert_eq!(problem.says(), "limit.opens is \"Clock\"");
}

#[test]
fn columns_count_characters() {
    let found =
        problems("x = 'é€😀'  # ok\nname = ['é€😀', 5]\n[[rule]]\nname = 'é'\nkey = '€'; limit = 5\n");
    let places: Vec<_> = found.iter().map(|problem| (problem.line(), problem.column())).collect();
    assert_eq!(places[..2], [(Some(1), Some(1)), (Some(2), Some(8))], "{found}");
    assert_eq!(places.last(), Some(&(Some(5), Some(10))), "{found}");
}

#[test]
fn what_no_limiter_honours_is_told_with_its_field() {
    let cases = [
        (
            "{ burst = '30/15s', sustain = '20/5m' }",
            46,
            "limit.sustain: sustain limit is 20; it must be at least the burst limit, 30",
        ),
        (
            "{ burst = '30/15s', sustain = '100/20s' }",
            46,
            "limit.sustain: sustain period is 20s; it must be a whole multiple",
        ),
        ("{ window = '0/s' }", 27, "limit.window: window limit is 0; it must be at least 1"),
        ("{ window = '5/0s' }", 27, "limit.window: window period is 0 s; it must be at least 1 ns"),
        ("{ window = '5/36500d' }", 27, "limit.window: window period spans"),
        (
            "{ sliding = '5/s', opens = 'first-request' }",
            43,
            "limit.opens: alignment of a sliding window is \"first-request\"; it must be \"clock\" or \"per-key\"",
        ),
        (
            "{ rate = '100000000000/s', burst = 5 }",
            25,
            "limit.rate: rate is 100000000000 a second; it may be at most",
        ),
        (
            "{ rate = '1/h', burst = 18446744073709551615 }",
            40,
            "limit.burst: burst is 18446744073709551615; it may be at most",
        ),
        (
            "{ window = '18446744073709551615/s' }",
            27,
            "limit.window: window limit is 18446744073709551615; it may be at most",
        ),
    ];
    for (limit, column, says) in cases {
        let found =
            problems(&format!("[[rule]]\nname = 'a'\nkey = 'user'\nshadow = true\nlimit = {limit}\n"));
        assert_eq!(found.len(), 1, "{limit}: {found}");
        let problem = found.iter().next().unwrap().to_string();
        let place = format!("test.toml:5:{}: rule \"a\": ", column - 7);
        assert!(problem.starts_with(&format!("{place}{says}")), "{limit}: {problem}");
    }
}

#[test]
fn a_limit_is_of_one_kind() {
    let cases = [
        ("{}", "limit is missing; it must be one of { rate = "),
        ("{ burst = 5 }", "limit has burst alone; beside it must stand rate (a bucket) or sustain"),
        ("{ window = '5/s', sliding = '5/s' }", "limit has both window and sliding; a limit is of one kind"),
        ("{ rate = '5/s' }", "limit.burst is missing"),
        ("{ rate = '5/s', burst = '5/s' }", "limit.burst is \"5/s\"; it must be a whole number"),
        ("{ rate = '5/s', burst = 0 }", "limit.burst is 0; it must be a whole number from 1 to 2^64 - 1"),
        ("{ sustain = '5/s' }", "limit.burst is missing; it must be the short window"),
        ("{ burst = 5, sustain = '5/s' }", "limit.burst is 5; it must be how many in which time"),
        (
            "{ rate = '5/s', burst = 5, opens = 'clock' }",
            "limit.opens does not belong to a bucket; a bucket has rate, burst, debt_max",
        ),
        ("{ window = '5/s', debt_max = 5 }", "limit.debt_max does not belong to a window"),
        (
            "{ window = { limit = 5, period = 60 } }",
            "limit.window.period is 60; did you mean \"60s\"? It must be a length of time",
        ),
        ("{ window = { limit = 5 } }", "limit.window.period is missing"),
        ("{ window = 5 }", "limit.window is 5; it must be how many in which time"),
        ("'100/s'", "limit is \"100/s\"; did you mean { window = \"100/s\" }? It must be one of {"),
    ];
    for (limit, says) in cases {
        let found = problems(&format!("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {limit}\n"));
        assert_eq!(found.len(), 1, "{limit}: {found}");
        assert!(
            found.iter().next().unwrap().to_string().contains(&format!("rule \"a\": {says}")),
            "{limit}: {found}"
        );
    }
}

#[test]
fn rules_are_checked_as_wholes() {
    let good = "[[rule]]\nname = 'a'\nkey = 'client_ip/24/48+title'\nlimit = { window = '5/s' }\n";
    assert_eq!(toml(good).rules.len(), 1);
    let cases = [
        (
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = { window = '1/s' }",
            "name is \"a\"; it must be unique, and rule 1 in line 2 has it",
        ),
        (
            "[[rule]]\nname = ' '\nkey = 'user'\nlimit = { window = '1/s' }",
            "name is \" \"; it must be a text",
        ),
        ("cost = 0", "cost is 0; it must be a whole number from 1 to 2^64 - 1"),
        ("cost = -1", "cost is -1; it must be a whole number"),
        ("cost = 'requst'", "cost is \"requst\"; did you mean \"request\"?"),
        ("max_keys = 0", "max_keys is 0; it must be a whole number from 1 to 4294967296"),
        ("warn_percent = 0", "warn_percent is 0; it must be a whole number from 1 to 100"),
        ("match = { api = [] }", "match.api is an empty list; it must be"),
        (
            "match = { api = 'prefx:a' }",
            "match.api is \"prefx:a\"; did you mean \"prefix:a\"? If it is meant as it stands, write",
        ),
        ("exempt = { users = 'a' }", "unknown field \"users\" in exempt; known: title, namespace, caller, "),
        ("exempt = { caller_type = 'TitlePlayerAccount' }", "did you mean \"title-player-account\"?"),
        (
            "match = 'profile'",
            "match is \"profile\"; did you mean { api = \"profile\" }? It must be a table of api",
        ),
        ("limits = []", "both limit and limits are there"),
        ("override = { key = 'a' }", "override is a table; it must be a list"),
        (
            "[[rule.override]]\nkey = 'a'\nlimit = { window = '6/s' }",
            "override[1].key has 1 part; it must be a list of 2: client_ip/24/48, title",
        ),
        (
            "[[rule.override]]\nkey = ['a', 'b']\nlimit = { window = '6/s' }",
            "override[1].key is \"a\"; it must be an address",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.0/25', 'b']\nlimit = { window = '6/s' }",
            "its network of /24 (IPv6: /48)",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimit = { window = '6/2s' }",
            "override[1].limit: window period is 2s; it must be 1s, as the rule's is",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimit = { sliding = '6/s' }",
            "override[1].limit is a sliding window; it must be a window, as the rule's is",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimit = { window = '6/s', opens = 'clock' }",
            "override[1].limit.opens is another than the rule's; leave it out",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimits = [{ window = '6/s' }, { window = '7/s' }]",
            "override[1].limits has 2, and the rule has 1",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimit = { window = '6/s' }\n[[rule.override]]\nkey = ['192.0.2.9/24', 'b']\nlimit = { window = '7/s' }",
            "override[2] has a key that stands before",
        ),
        (
            "[[rule.override]]\nkey = ['192.0.2.1', 'b']\nlimit = { window = '0/s' }",
            "override[1].limit.window: window limit is 0",
        ),
    ];
    for (more, says) in cases {
        let found = problems(&format!("{good}{more}\n"));
        assert_eq!(found.len(), 1, "{more}: {found}");
        assert!(found.to_string().contains(says), "{more}: {found}");
    }
}

#[test]
fn broken_toml_is_told_with_the_rest_of_the_file() {
    let found = problems(
        "name = 'a\nmatchin = 'all'\n[[rule]]\nname = 'a'\nkey = 'usr'\nlimit = { window = '5/s' \nshadow = 5\n",
    );
    let lines: Vec<_> = found.iter().filter_map(tidegate::policy::Problem::line).collect();
    assert!(lines.contains(&1) && lines.contains(&2) && lines.contains(&5), "{found}");
    assert!(found.iter().any(|problem| problem.says().starts_with("syntax: ")), "{found}");
    let twice = problems("name = 'a'\nname = 'b'\nrule = []\n").to_string();
    assert!(twice.starts_with("test.toml:2:1: syntax: duplicate key"), "{twice}");
}

#[test]
fn nothing_is_too_deep() {
    let dots = format!("{}a = 1", "a.".repeat(100_000));
    assert!(problems(&dots).to_string().contains("a name of more than 17 parts"));
    let headers: String = (0..1_000).map(|_| format!("[{}a]\n", "a . ".repeat(16))).collect();
    assert!(!problems(&headers).to_string().is_empty());
    for text in [
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
    ] {
        assert!(Rules::from_toml(&text, "t").is_err());
        assert!(Rules::from_json(&text, "t").is_err());
    }
    // Strings and comments may have as many dots as they like.
    toml(&format!("name = '{0}' # {0}\nrule = []\n", ".".repeat(1_000)));
}

/// A `main` that returns them shows them by `{:?}`.
#[test]
fn they_read_the_same_wherever_they_are_printed() {
    let problems = Rules::from_toml("[[rule]]\nname = 'a'\nkye = 'user'\n", "test.toml").unwrap_err();
    assert_eq!(format!("{problems:?}"), problems.to_string());
}

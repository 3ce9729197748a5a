use super::*;

const FINE: &str = r#"
attempts_max = 5
retry_within_s = 60
attempt_timeout_s = 2.5
offenders = true

[[endpoint]]
name = "ada"
url = "https://hooks.example.com/limits"
secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
rules = ["profile", "shop-*"]
keys = ["ada"]
interval_s = 0.5

[[endpoint]]
name = "pager"
url = "http://10.0.0.7:8080/"
secrets_env = "PAGER_SECRETS"
allow_http = true
allow_networks = ["10.0.0.0/8"]
"#;

fn of(text: &str) -> Result<Webhooks, Vec<String>> {
    let both = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nwhsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    parse(text, "webhooks.toml", Path::new(""), |name| (name == "PAGER_SECRETS").then(|| both.to_owned()))
}

#[test]
fn a_file_says_what_the_builders_do() {
    let webhooks = of(FINE).unwrap();
    assert_eq!((webhooks.endpoints.len(), webhooks.offenders), (2, true));
    let told = format!("{:?} {:?}", webhooks.settings, webhooks.endpoints[0]);
    for part in
        ["attempts_max: 5", "retry_within: 60s", "2.5s", "500ms", "Glob(\"shop-*\")", "Exact(\"ada\")"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let cases = [
        (
            "interval_s = 0.5",
            "interval_s = 0",
            "webhooks.toml:13:14: interval_s is 0; it must be a number of seconds from 0.001 to 86400",
        ),
        (
            "attempts_max = 5",
            "attempts_max = 0",
            "webhooks.toml:2:16: attempts_max is 0; it must be a whole number from 1 to 100",
        ),
        (
            "offenders = true",
            "offenders = 11",
            "webhooks.toml:5:13: offenders is 11; it must be true or false",
        ),
        (
            "keys = [\"ada\"]",
            "key = [\"ada\"]",
            "webhooks.toml:12:1: unknown field \"key\" in [[endpoint]]; did you mean \"keys\"? Known: name, url, secrets, secrets_file, secrets_env, rules, keys, interval_s, allow_http, allow_networks",
        ),
        ("keys = [\"ada\"]", "keys = []", "webhooks.toml:12:8: keys must be a list of texts, at least one"),
        (
            "https://hooks",
            "http://hooks",
            "webhooks.toml:9:7: url: is plain http; allowed: https, or http with allow_http",
        ),
        (
            "[\"10.0.0.0/8\"]",
            "[\"10.1.0.0/16\"]",
            "webhooks.toml:17:7: url: 10.0.0.7 is not public; allowed: public addresses, and those in allow_networks",
        ),
        (
            "[\"10.0.0.0/8\"]",
            "[\"ten\"]",
            "webhooks.toml:20:18: allow_networks has \"ten\"; it must be networks, as 10.0.0.0/8",
        ),
        (
            "[\"whsec_Mf",
            "[\"whsec_!",
            "webhooks.toml:10:11: secrets: number 1: is no base64; allowed: whsec_ and 24 to 64 bytes in base64",
        ),
        (
            "\"PAGER_SECRETS\"",
            "\"NOBODY\"",
            "webhooks.toml:18:15: secrets_env names no variable of the environment",
        ),
        (
            "secrets_env = \"PAGER_SECRETS\"",
            "",
            "webhooks.toml:15:1: this endpoint must have one of secrets, secrets_file, secrets_env",
        ),
        (
            "name = \"pager\"",
            "name = \"ada\"",
            "webhooks.toml:15:1: name is \"ada\", which another endpoint has",
        ),
        ("name = \"pager\"", "", "webhooks.toml:15:1: this endpoint has no name"),
        (
            "allow_http = true",
            "allow_http = 1",
            "webhooks.toml:19:14: allow_http is 1; it must be true or false",
        ),
    ];
    for (right, wrong, told) in cases {
        assert!(FINE.contains(right), "{right}");
        assert_eq!(of(&FINE.replacen(right, wrong, 1)).unwrap_err(), [told], "{wrong}");
    }
    assert_eq!(of("").unwrap_err(), ["webhooks.toml:1:1: no endpoint; one begins with [[endpoint]]"]);
    assert!(of("[[endpoint]\n").unwrap_err()[0].starts_with("webhooks.toml:1:"));
    let two =
        FINE.replace("offenders = true", "offenders = 11").replace("attempts_max = 5", "attempts_max = 0");
    assert_eq!(of(&two).unwrap_err().len(), 2);
}

/// The page's file is one, and what it says is how things are by themselves.
#[test]
fn the_file_of_the_docs_is_read() {
    let page = include_str!("../../../../../docs/webhooks.md");
    let shown = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let text = shown.replace("secrets_file = \"ada.secrets\"", "secrets_env = \"PAGER_SECRETS\"");
    let webhooks = of(&text).unwrap();
    assert_eq!((webhooks.endpoints.len(), webhooks.offenders), (2, false));
    assert_eq!(format!("{:?}", webhooks.settings), format!("{:?}", WebhookSettings::new()));
}

#[test]
fn no_secret_is_told() {
    for wrong in [
        "secrets = \"whsec_hunter2\"",
        "secrets = [\"hunter2\"]",
        "secrets = [\"whsec_hunter2\"]",
        "secrets_env = \"whsec_hunter2\"",
        "secrets_file = \"whsec_hunter2\"",
    ] {
        let text = FINE.replace("secrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]", wrong);
        let told = of(&text).unwrap_err().join("\n");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

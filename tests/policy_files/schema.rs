//! The schema in `policies/` is the one that the code prints, and says of policies what the decoder says.

use serde_json::Value;
use tidegate::policy::{Rules, schema};

use super::{root, shipped};

/// Whether `value` is what `schema` allows, by the few keywords that ours has; `pattern` is left to editors.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    const KNOWN: [&str; 14] = [
        "$ref",
        "$defs",
        "$schema",
        "$id",
        "title",
        "description",
        "type",
        "pattern",
        "minimum",
        "maximum",
        "enum",
        "properties",
        "required",
        "additionalProperties",
    ];
    let words = schema.as_object().unwrap();
    let known = |word: &str| KNOWN.contains(&word) || ["items", "minItems", "anyOf"].contains(&word);
    words.iter().all(|(word, says)| {
        assert!(known(word), "{word}");
        match word.as_str() {
            "$ref" => is_valid(root, root.pointer(&says.as_str().unwrap()[1..]).unwrap(), value),
            "type" => match says.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_u64(),
                "boolean" => value.is_boolean(),
                other => panic!("{other}"),
            },
            "minimum" => value.as_u64() >= says.as_u64(),
            "maximum" => value.as_u64() <= says.as_u64(),
            "enum" => says.as_array().unwrap().contains(value),
            "required" => {
                says.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "items" => value.as_array().is_none_or(|all| all.iter().all(|item| is_valid(root, says, item))),
            "minItems" => value.as_array().is_none_or(|all| all.len() as u64 >= says.as_u64().unwrap()),
            "anyOf" => says.as_array().unwrap().iter().any(|one| is_valid(root, one, value)),
            "properties" | "additionalProperties" => value.as_object().is_none_or(|fields| {
                let own = &schema["properties"];
                fields.iter().all(|(name, field)| match (word.as_str(), own.get(name)) {
                    ("properties", Some(own)) => is_valid(root, own, field),
                    ("properties", None) | (_, Some(_)) => true,
                    (_, None) => says.as_bool().unwrap_or_else(|| is_valid(root, says, field)),
                })
            }),
            _ => true,
        }
    })
}

#[test]
fn the_schema_is_what_the_code_prints() {
    let path = root().join("policies/policy.schema.json");
    if std::env::var_os("TIDEGATE_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == schema(), "out of date: run this test with TIDEGATE_WRITE_SCHEMA=1 and commit the file");
}

#[test]
fn shipped_policies_are_valid() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for (name, text) in shipped() {
        let json = Rules::from_toml(&text, &name).unwrap().to_json().unwrap();
        assert!(is_valid(&schema, &schema, &serde_json::from_str(&json).unwrap()), "{name}: {json}");
    }
}

/// What the decoder and the schema both turn down, and what both take. Each is put beside a name, a key and a limit.
#[test]
fn the_schema_and_the_decoder_agree() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let cases = [
        (r#""shadow": true"#, true),
        (r#""shadow": "yes""#, false),
        (r#""shadw": true"#, false),
        (r#""warn_percent": 100"#, true),
        (r#""warn_percent": 0"#, false),
        (r#""warn_percent": 101"#, false),
        (r#""max_keys": 0"#, false),
        (r#""max_keys": 4294967297"#, false),
        (r#""cost": 0"#, false),
        (r#""cost": "request""#, true),
        (r#""cost": true"#, false),
        (r#""on_refusal": "ignore""#, true),
        (r#""on_refusal": "ignored""#, false),
        (r#""match": {"api": []}"#, false),
        (r#""match": {"api": "a*", "attribute": {"b": ["c"]}}"#, true),
        (r#""match": {"attribute": {"b": 5}}"#, false),
        (r#""exempt": {"title": [], "caller_type": ["group", "other"]}"#, true),
        (r#""exempt": {"caller_type": "robot"}"#, false),
        (r#""override": [{"key": "k", "limit": {"window": {"limit": 9, "period": "1s"}}}]"#, true),
        (r#""override": [{"limit": {"window": "9/s"}}]"#, false),
        (r#""override": [{"key": 7, "limit": {"window": "9/s"}}]"#, false),
        (r#""override": [{"key": "k", "limit": {"window": {"limit": 9}}}]"#, false),
        (r#""override": [{"key": "k", "limit": {"window": {"limit": 0, "period": "1s"}}}]"#, false),
    ];
    for (more, good) in cases {
        let rule = format!(r#"{{"name": "a", "key": "user", "limit": {{"window": "5/s"}}, {more}}}"#);
        let text = format!(r#"{{"rule": [{rule}]}}"#);
        let read = Rules::from_json(&text, "t");
        assert_eq!(read.is_ok(), good, "{more}: {read:?}");
        assert_eq!(is_valid(&schema, &schema, &serde_json::from_str(&text).unwrap()), good, "{more}");
    }
}

/// Every table that the decoder knows has the schema's fields and no others: what either does not know is unknown.
#[test]
fn every_field_of_the_schema_is_known_to_the_decoder() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let places = [
        ("policy", "{\"rule\": [], \"#\": 0}"),
        ("rule", "{\"rule\": [{\"#\": 0}]}"),
        ("match", "{\"rule\": [{\"match\": {\"#\": 0}}]}"),
        ("exempt", "{\"rule\": [{\"exempt\": {\"#\": 0}}]}"),
        ("override", "{\"rule\": [{\"override\": [{\"#\": 0}]}]}"),
        ("limit", "{\"rule\": [{\"limit\": {\"#\": 0}}]}"),
        ("window", "{\"rule\": [{\"limit\": {\"window\": {\"#\": 0}}}]}"),
        ("key_part", "{\"rule\": [{\"key\": {\"#\": 0}}]}"),
        ("prefixes", "{\"rule\": [{\"key\": {\"client_ip\": {\"#\": 0}}}]}"),
    ];
    assert_eq!(schema["$defs"].as_object().unwrap().len(), places.len());
    for (table, text) in places {
        let told = Rules::from_json(text, "t").unwrap_err();
        let unknown = told.iter().find(|problem| problem.says().contains("unknown field \"#\"")).unwrap();
        let mut known: Vec<&str> =
            unknown.allowed().unwrap().trim_start_matches("known: ").split(", ").collect();
        let fields = schema["$defs"][table]["properties"].as_object().unwrap();
        let mut names: Vec<&str> =
            fields.keys().map(String::as_str).filter(|name| *name != "$schema").collect();
        known.sort_unstable();
        names.sort_unstable();
        assert_eq!(known, names, "{table}");
    }
}

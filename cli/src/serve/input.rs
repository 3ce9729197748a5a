//! The body of `POST /check`: a request to be decided, by the names that policy files and `replay --map` use.

use std::borrow::Cow;
use std::net::IpAddr;

use tidegate::http::Facts;
use tidegate::policy::EntityType;

use super::json::{Json, clipped};
use super::problem::Mistake;
use crate::replay::policy::mapping::nearest;

/// What the body may have.
const FIELDS: [&str; 10] = [
    "api",
    "title",
    "namespace",
    "user",
    "caller",
    "target",
    "client_ip",
    "authenticated",
    "cost",
    "attributes",
];

/// What a caller or a target has.
const ENTITY_FIELDS: [&str; 2] = ["type", "id"];

/// The most attributes that a request may have.
pub(super) const ATTRIBUTES_MAX: usize = 64;

/// The most mistakes that are told; of more it is told how many. A body of nothing but mistakes would have an answer many times as
/// long as itself.
const MISTAKES_MAX: usize = 10;

/// What an address begins with that stands in a part's place: `/auth` counts by such texts, and nobody may make them up.
const STAND_IN: char = '⟨';

/// Reads a body.
///
/// # Errors
/// What is wrong with it: ten mistakes at most, and then how many more there are.
pub(super) fn read(body: &[u8]) -> Result<Facts<'static>, Vec<Mistake>> {
    let json: Json = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(error) => {
            return Err(vec![mistake("body", None, "JSON", &format!("the body is no JSON: {error}"))]);
        }
    };
    let mut reader = Reader { mistakes: Vec::new(), untold: 0 };
    let facts = match json {
        Json::Object(entries) => reader.facts(entries),
        other => {
            reader.wrong("body", &other, "an object");
            Facts::default()
        }
    };
    if reader.mistakes.is_empty() { Ok(facts) } else { Err(reader.told()) }
}

/// What a text may be.
const TEXT: &str = "a text that does not begin with ⟨";

fn is_text(value: &Json) -> bool {
    matches!(value, Json::Text(text) if !text.starts_with(STAND_IN))
}

fn mistake(field: &str, found: Option<String>, allowed: &str, detail: &str) -> Mistake {
    let field = clipped(field);
    Mistake { field, found, allowed: Some(allowed.to_owned()), nearest: None, detail: detail.to_owned() }
}

/// Collects what is wrong.
struct Reader {
    mistakes: Vec<Mistake>,
    /// How many more there are.
    untold: usize,
}

impl Reader {
    fn told(mut self) -> Vec<Mistake> {
        if self.untold > 0 {
            let detail = format!("{} more mistakes", self.untold);
            let field = "body".to_owned();
            self.mistakes.push(Mistake { field, found: None, allowed: None, nearest: None, detail });
        }
        self.mistakes
    }

    /// Whether another mistake is told; else it is counted.
    fn is_told(&mut self) -> bool {
        let is_told = self.mistakes.len() < MISTAKES_MAX;
        self.untold += usize::from(!is_told);
        is_told
    }

    fn facts(&mut self, entries: Vec<(String, Json)>) -> Facts<'static> {
        let mut facts = Facts::default();
        let entries = self.known("", entries, &FIELDS);
        let has = |name: &str| entries.iter().any(|(known, _)| known == name);
        if has("user") && has("caller") {
            self.say("caller", "user and caller are the same part: give one of them".to_owned());
        }
        if !has("api") {
            self.say("api", "api is missing: the name of the API, service or route".to_owned());
        }
        // Who has a caller is authenticated, unless told.
        facts.is_authenticated = has("user") || has("caller");
        for (name, value) in entries {
            match &*name {
                "api" => facts.api = self.text("api", value).map(Cow::Owned).unwrap_or_default(),
                "title" => facts.title = self.text("title", value).map(Cow::Owned),
                "namespace" => facts.namespace = self.text("namespace", value).map(Cow::Owned),
                "user" => {
                    let player = |id| (EntityType::TitlePlayerAccount, Cow::Owned(id));
                    facts.caller = self.text("user", value).map(player);
                }
                "caller" => facts.caller = self.entity("caller", value),
                "target" => facts.target = self.entity("target", value),
                "client_ip" => facts.client_ip = self.address(value),
                "authenticated" => match value {
                    Json::Bool(value) => facts.is_authenticated = value,
                    other => self.wrong("authenticated", &other, "true or false"),
                },
                "cost" => match value {
                    Json::Whole(cost) => facts.cost = Some(cost),
                    other => self.wrong("cost", &other, &format!("a whole number from 0 to {}", u64::MAX)),
                },
                _ => self.attributes(value, &mut facts),
            }
        }
        facts
    }

    /// The entries of an object whose names are known, each once; `null` is as good as left out.
    fn known(&mut self, of: &str, entries: Vec<(String, Json)>, names: &[&str]) -> Vec<(String, Json)> {
        let mut kept: Vec<(String, Json)> = Vec::new();
        for (name, value) in entries {
            let field = format!("{of}{}", clipped(&name));
            if !names.contains(&&*name) {
                if !self.is_told() {
                    continue;
                }
                let nearest = nearest(&name, names.iter().copied());
                let meant = nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or(".".to_owned());
                let known = names.join(", ");
                let detail = format!("unknown field {field:?}{meant} Known: {known}");
                let mut mistake = mistake(&field, None, &known, &detail);
                mistake.nearest = nearest.map(str::to_owned);
                self.mistakes.push(mistake);
            } else if kept.iter().any(|(known, _)| *known == name) {
                self.say(&field, format!("{field} is there twice"));
            } else {
                kept.push((name, value));
            }
        }
        kept.retain(|(_, value)| *value != Json::Null);
        kept
    }

    fn text(&mut self, field: &str, value: Json) -> Option<String> {
        match value {
            Json::Text(text) if !text.starts_with(STAND_IN) => return Some(text),
            // As a stand-in for whom nobody knows, it would be counted with them.
            other => self.wrong(field, &other, TEXT),
        }
        None
    }

    fn address(&mut self, value: Json) -> Option<IpAddr> {
        const ALLOWED: &str = "an IPv4 or IPv6 address as a text";
        if let Json::Text(text) = &value
            && let Ok(address) = text.parse()
        {
            return Some(address);
        }
        self.wrong("client_ip", &value, ALLOWED);
        None
    }

    fn entity(&mut self, field: &str, value: Json) -> Option<(EntityType, Cow<'static, str>)> {
        let Json::Object(entries) = value else {
            self.wrong(field, &value, "an object of type and id");
            return None;
        };
        let (mut kind, mut id) = (None, None);
        let entries = self.known(&format!("{field}."), entries, &ENTITY_FIELDS);
        for name in ENTITY_FIELDS {
            if !entries.iter().any(|(known, _)| known == name) {
                let field = format!("{field}.{name}");
                self.say(&field, format!("{field} is missing"));
            }
        }
        for (name, value) in entries {
            let field = format!("{field}.{name}");
            let Some(text) = self.text(&field, value) else { continue };
            if name == "id" {
                id = Some(Cow::Owned(text));
                continue;
            }
            match text.parse::<EntityType>() {
                Ok(known) => kind = Some(known),
                Err(_) => self.entity_type(&field, text),
            }
        }
        kind.zip(id)
    }

    fn entity_type(&mut self, field: &str, text: String) {
        // The library's words name every type; what it says of the value is said here.
        let error =
            clipped(&text).parse::<EntityType>().map_or_else(|error| error.to_string(), |_| String::new());
        let allowed = error.rsplit_once("must be ").map_or("a type of entity", |(_, allowed)| allowed);
        let names: Vec<&str> = allowed.trim_start_matches("one of ").split(", ").collect();
        let nearest = nearest(&text, names.into_iter()).map(str::to_owned);
        let told = self.mistakes.len();
        self.wrong(field, &Json::Text(text), allowed);
        if let (Some(last), Some(nearest)) = (self.mistakes.get_mut(told), nearest) {
            last.detail.push_str(&format!("; did you mean {nearest:?}?"));
            last.nearest = Some(nearest);
        }
    }

    fn attributes(&mut self, value: Json, facts: &mut Facts<'static>) {
        let Json::Object(entries) = value else {
            return self.wrong("attributes", &value, "an object of texts");
        };
        if entries.len() > ATTRIBUTES_MAX {
            let count = entries.len();
            return self.say("attributes", format!("{count} attributes; there may be {ATTRIBUTES_MAX}"));
        }
        for (at, (name, value)) in entries.iter().enumerate() {
            if entries[..at].iter().any(|(known, _)| known == name) {
                let field = format!("attributes.{}", clipped(name));
                self.say(&field, format!("{field} is there twice"));
            } else if !matches!(value, Json::Null) && !is_text(value) {
                self.wrong(&format!("attributes.{}", clipped(name)), value, TEXT);
            }
        }
        for (name, value) in entries {
            if let Json::Text(text) = value {
                facts.attributes.push((Cow::Owned(name), Cow::Owned(text)));
            }
        }
    }

    fn wrong(&mut self, field: &str, found: &Json, allowed: &str) {
        if !self.is_told() {
            return;
        }
        let told = found.told();
        let detail = format!("{field} is {told}; it must be {allowed}");
        self.mistakes.push(mistake(field, Some(told), allowed, &detail));
    }

    fn say(&mut self, field: &str, detail: String) {
        if !self.is_told() {
            return;
        }
        let field = clipped(field);
        self.mistakes.push(Mistake { field, found: None, allowed: None, nearest: None, detail });
    }
}

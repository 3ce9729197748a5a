//! Patterns, and what is made of them: which requests a rule is about, and which it leaves alone.

use super::fields::{ENTITY_TYPES, EXEMPT, MATCH, Shape};
use super::node::{Entry, Node, Value, quoted};
use super::problem::Problem;
use super::reader::{Fields, Reader, nearest};
use crate::policy::{Exempt, Matcher, Pattern};

const EXACT: &str = "exact:";
const PREFIX: &str = "prefix:";
const GLOB: &str = "glob:";

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The pattern that a text is.
pub(super) fn pattern(text: &str) -> Pattern {
    if let Some(exact) = text.strip_prefix(EXACT) {
        Pattern::Exact(exact.to_owned())
    } else if let Some(prefix) = text.strip_prefix(PREFIX) {
        Pattern::Prefix(prefix.to_owned())
    } else if let Some(glob) = text.strip_prefix(GLOB) {
        Pattern::Glob(glob.to_owned())
    } else if !is_wild(text) {
        Pattern::Exact(text.to_owned())
    } else {
        match text.strip_suffix('*') {
            Some(prefix) if !is_wild(prefix) => Pattern::Prefix(prefix.to_owned()),
            _ => Pattern::Glob(text.to_owned()),
        }
    }
}

/// The shortest text that is this pattern.
pub(super) fn pattern_text(wanted: &Pattern) -> String {
    let (short, long) = match wanted {
        Pattern::Exact(text) => (text.clone(), format!("{EXACT}{text}")),
        Pattern::Prefix(text) => (format!("{text}*"), format!("{PREFIX}{text}")),
        Pattern::Glob(text) => (text.clone(), format!("{GLOB}{text}")),
    };
    let is_slip = near_kind(&short).is_some();
    if pattern(&short) == *wanted && !is_slip { short } else { long }
}

/// The kind of pattern that a text like `prefx:stats-` was probably meant to name.
fn near_kind(text: &str) -> Option<&'static str> {
    let (kind, _) = text.split_once(':')?;
    let kinds = [EXACT, PREFIX, GLOB];
    if kinds.iter().any(|known| text.starts_with(known)) {
        None
    } else {
        nearest(kind, &["exact", "prefix", "glob"])
    }
}

impl Reader<'_> {
    pub(super) fn matcher(&mut self, rule: &Fields<'_>) -> Matcher {
        let Some(given) = rule.get("match") else { return Matcher::default() };
        if let Value::Text(api) = &given.node.value {
            let meant = format!("{{ api = {} }}", quoted(api));
            self.not_allowed(given.node, &rule.path("match"), &given.shape().allowed(), Some(&meant));
            return Matcher::default();
        }
        let Some(fields) = self.fields(given.node, &rule.path("match"), &MATCH) else {
            return Matcher::default();
        };
        Matcher { apis: self.patterns(&fields, "api"), attributes: self.attributes(&fields) }
    }

    pub(super) fn exempt(&mut self, rule: &Fields<'_>) -> Exempt {
        let Some(given) = rule.get("exempt") else { return Exempt::default() };
        let Some(fields) = self.fields(given.node, &rule.path("exempt"), &EXEMPT) else {
            return Exempt::default();
        };
        Exempt {
            titles: self.texts(&fields, "title"),
            namespaces: self.texts(&fields, "namespace"),
            callers: self.texts(&fields, "caller"),
            caller_types: self.choices(&fields, "caller_type", &ENTITY_TYPES),
            apis: self.patterns(&fields, "api"),
            attributes: self.attributes(&fields),
        }
    }

    fn patterns(&mut self, fields: &Fields<'_>, name: &str) -> Vec<Pattern> {
        let Some(given) = fields.get(name) else { return Vec::new() };
        self.patterns_in(given.node, &fields.path(name), given.shape())
    }

    fn attributes(&mut self, fields: &Fields<'_>) -> Vec<(String, Vec<Pattern>)> {
        let (entries, shape) = self.map(fields, "attribute");
        let Some(shape) = shape else { return Vec::new() };
        let path = fields.path("attribute");
        let pair = |entry: &Entry| {
            (entry.name.clone(), self.patterns_in(&entry.node, &format!("{path}.{}", entry.name), shape))
        };
        entries.iter().map(pair).collect()
    }

    fn patterns_in(&mut self, node: &Node, path: &str, shape: &Shape) -> Vec<Pattern> {
        let texts = self.texts_in(node, path, shape);
        for (node, text) in &texts {
            if let Some(kind) = near_kind(text) {
                let problem = Problem::new(path, format!("{path} is {}", quoted(text)))
                    .with_found(quoted(text))
                    .with_nearest(Some(
                        text.split_once(':').map_or(String::new(), |(_, rest)| format!("{kind}:{rest}")),
                    ))
                    .with_allowed(format!("if it is meant as it stands, write \"exact:{text}\""));
                self.report(node.at, problem);
            }
        }
        texts.iter().map(|(_, text)| pattern(text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pattern_is_what_it_looks_like() {
        let cases = [
            ("stats-read", Pattern::Exact("stats-read".into())),
            ("stats-*", Pattern::Prefix("stats-".into())),
            ("*", Pattern::Prefix(String::new())),
            ("stats-?", Pattern::Glob("stats-?".into())),
            ("*-read", Pattern::Glob("*-read".into())),
            ("a*b*", Pattern::Glob("a*b*".into())),
            ("prefix:a*b", Pattern::Prefix("a*b".into())),
            ("exact:a*", Pattern::Exact("a*".into())),
            ("glob:a", Pattern::Glob("a".into())),
            ("GET /v1/items", Pattern::Exact("GET /v1/items".into())),
        ];
        for (text, wanted) in cases {
            assert_eq!(pattern(text), wanted, "{text}");
            assert_eq!(pattern_text(&wanted), text);
        }
        assert_eq!(pattern_text(&Pattern::Prefix("a*b".into())), "prefix:a*b");
        assert_eq!(near_kind("prefx:stats"), Some("prefix"));
        assert_eq!(near_kind("https://a"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(kind in 0..3_u8, text in "(exact:|prefx:|glob:)?[a*?:]{0,4}") {
            let wanted = match kind {
                0 => Pattern::Exact(text),
                1 => Pattern::Prefix(text),
                _ => Pattern::Glob(text),
            };
            let written = pattern_text(&wanted);
            prop_assert_eq!(near_kind(&written), None);
            prop_assert_eq!(pattern(&written), wanted);
        }
    }
}

//! Rules back into text, TOML or JSON, which reads as the same rules. What is at its default is left out.

use std::fmt::{self, Write};

use super::fields::{BODIES, COUNTINGS, ENTITY_TYPES, MATCHINGS, ON_FULLS, ON_REFUSALS, OPENS};
use super::key::key_node;
use super::length;
use super::node::{Entry, Node, Value};
use super::pattern::pattern_text;
use crate::limit::{Alignment, Limit, Shape, Window};
use crate::policy::rule::WARN_PERCENT_DEFAULT;
use crate::policy::{Cost, Exempt, Matcher, OnRefusal, Override, Pattern, Rule, Rules};
use crate::settings::MAX_KEYS_DEFAULT;

/// Rules that no file can say: a key has a part that is a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    rule: String,
}

impl Unwritable {
    /// The name of the rule.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?} has a key with a part that is a function, which no file can say", self.rule)
    }
}

impl std::error::Error for Unwritable {}

impl Rules {
    /// The policy as TOML, one `[[rule]]` after the other. [`from_toml`](Self::from_toml) reads it as the same rules, if
    /// they are rules that a file may say: names are unique, numbers in their ranges. Whether refused requests count is
    /// written as the rule says it, not as its limits do.
    ///
    /// # Errors
    /// A key has a [`Custom`](super::super::KeyPart::Custom) part.
    pub fn to_toml(&self) -> Result<String, Unwritable> {
        let mut text = String::new();
        let (head, rules) = self.nodes()?;
        for (name, node) in &head {
            line(&mut text, name, node);
        }
        if rules.is_empty() {
            text.push_str("rule = []\n");
        }
        for rule in rules {
            text.push_str(if text.is_empty() { "[[rule]]\n" } else { "\n[[rule]]\n" });
            let Value::Table(entries) = &rule.value else { continue };
            for entry in entries.iter().filter(|entry| entry.name != "override") {
                line(&mut text, &entry.name, &entry.node);
            }
            // Overrides are many and long: a table each.
            for entry in entries.iter().filter(|entry| entry.name == "override") {
                let Value::List(items) = &entry.node.value else { continue };
                for item in items {
                    text.push_str("[[rule.override]]\n");
                    let Value::Table(entries) = &item.value else { continue };
                    entries.iter().for_each(|entry| line(&mut text, &entry.name, &entry.node));
                }
            }
        }
        Ok(text)
    }

    /// The policy as one line of JSON; see [`to_toml`](Self::to_toml).
    ///
    /// # Errors
    /// A key has a [`Custom`](super::super::KeyPart::Custom) part.
    pub fn to_json(&self) -> Result<String, Unwritable> {
        let (head, rules) = self.nodes()?;
        let rule = ("rule", Some(Node::new(Value::List(rules))));
        let all = head.into_iter().map(|(name, node)| (name, Some(node))).chain([rule]);
        Ok(json(&table(all)))
    }

    /// What stands before the rules, and the rules.
    fn nodes(&self) -> Result<(Head, Vec<Node>), Unwritable> {
        let head = [
            ("name", (!self.name.is_empty()).then(|| Node::text(self.name.clone()))),
            ("counting", unless_default(self.counting, &COUNTINGS)),
            ("matching", unless_default(self.matching, &MATCHINGS)),
            ("body", self.body.map(|body| Node::text(name_of(&body, &BODIES)))),
        ];
        let head = head.into_iter().filter_map(|(name, node)| Some((name, node?))).collect();
        let rules = self.rules.iter().map(rule).collect::<Result<_, _>>()?;
        Ok((head, rules))
    }
}

/// The fields that a policy has beside its rules.
type Head = Vec<(&'static str, Node)>;

/// A table of those fields that are there.
pub(super) fn table<N: Into<String>>(fields: impl IntoIterator<Item = (N, Option<Node>)>) -> Node {
    let entries =
        fields.into_iter().filter_map(|(name, node)| Some(Entry { name: name.into(), at: 0, node: node? }));
    Node::new(Value::Table(entries.collect()))
}

fn name_of<T: PartialEq>(value: &T, of: &[(&'static str, T)]) -> &'static str {
    of.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

fn unless_default<T: PartialEq + Default>(value: T, of: &[(&'static str, T)]) -> Option<Node> {
    (value != T::default()).then(|| Node::text(name_of(&value, of)))
}

fn list(items: Vec<Node>) -> Node {
    Node::new(Value::List(items))
}

/// One, or a list.
fn many(mut items: Vec<Node>) -> Node {
    if items.len() == 1 { items.remove(0) } else { list(items) }
}

fn some_texts(texts: &[String]) -> Option<Node> {
    (!texts.is_empty()).then(|| many(texts.iter().map(Node::text).collect()))
}

fn patterns(of: &[Pattern]) -> Node {
    many(of.iter().map(|pattern| Node::text(pattern_text(pattern))).collect())
}

fn some_patterns(of: &[Pattern]) -> Option<Node> {
    (!of.is_empty()).then(|| patterns(of))
}

fn attributes(of: &[(String, Vec<Pattern>)]) -> Option<Node> {
    (!of.is_empty()).then(|| table(of.iter().map(|(name, wanted)| (name.clone(), Some(patterns(wanted))))))
}

fn whole(number: u64) -> Node {
    Node::new(Value::Whole(number))
}

fn rule(rule: &Rule) -> Result<Node, Unwritable> {
    let key = key_node(&rule.key).ok_or_else(|| Unwritable { rule: rule.name.clone() })?;
    let slides = rule.limits.iter().any(|limit| matches!(limit.shape(), Shape::Sliding(_)));
    let on_refusal_default = if slides { OnRefusal::Ignore } else { OnRefusal::Count };
    let Matcher { apis, attributes: wanted } = &rule.matcher;
    let matcher = table([("api", some_patterns(apis)), ("attribute", attributes(wanted))]);
    let cost = match &rule.cost {
        Cost::Fixed(1) => None,
        Cost::Fixed(cost) => Some(whole(*cost)),
        Cost::OfRequest => Some(Node::text("request")),
        Cost::Attribute(name) => Some(Node::text(format!("attribute:{name}"))),
    };
    let limits = limits(&rule.limits, None);
    let overrides = rule.overrides.iter().map(|other| override_node(other, &rule.limits)).collect::<Vec<_>>();
    Ok(table([
        ("name", Some(Node::text(rule.name.clone()))),
        ("match", (rule.matcher != Matcher::default()).then_some(matcher)),
        ("key", Some(key)),
        limits,
        ("exempt", exempt(&rule.exempt)),
        ("shadow", rule.shadow.then_some(Node::new(Value::Bool(true)))),
        ("cost", cost),
        (
            "on_refusal",
            (rule.on_refusal != on_refusal_default)
                .then(|| Node::text(name_of(&rule.on_refusal, &ON_REFUSALS))),
        ),
        (
            "warn_percent",
            (rule.warn_percent != WARN_PERCENT_DEFAULT).then(|| whole(rule.warn_percent.into())),
        ),
        ("max_keys", (rule.max_keys != MAX_KEYS_DEFAULT).then(|| whole(rule.max_keys as u64))),
        ("on_full", unless_default(rule.on_full, &ON_FULLS)),
        ("override", (!overrides.is_empty()).then(|| list(overrides))),
    ]))
}

fn exempt(exempt: &Exempt) -> Option<Node> {
    let Exempt { titles, namespaces, callers, caller_types, apis, attributes: wanted } = exempt;
    let types = caller_types.iter().map(|kind| Node::text(name_of(kind, &ENTITY_TYPES))).collect::<Vec<_>>();
    let made = table([
        ("title", some_texts(titles)),
        ("namespace", some_texts(namespaces)),
        ("caller", some_texts(callers)),
        ("caller_type", (!types.is_empty()).then(|| many(types))),
        ("api", some_patterns(apis)),
        ("attribute", attributes(wanted)),
    ]);
    (*exempt != Exempt::default()).then_some(made)
}

fn override_node(other: &Override, base: &[Limit]) -> Node {
    table([
        ("key", Some(many(other.key.iter().map(Node::text).collect()))),
        limits(&other.limits, Some(base)),
    ])
}

fn limits(limits: &[Limit], base: Option<&[Limit]>) -> (&'static str, Option<Node>) {
    let opens = |at: usize| base.and_then(|base| base.get(at)).map_or(Alignment::default(), Limit::alignment);
    let mut nodes: Vec<Node> = limits.iter().enumerate().map(|(at, made)| limit(made, opens(at))).collect();
    if nodes.len() == 1 { ("limit", nodes.pop()) } else { ("limits", Some(list(nodes))) }
}

fn limit(limit: &Limit, opens_default: Alignment) -> Node {
    let quota = |number: u64, period| Some(Node::text(format!("{number}/{}", length::written(period))));
    let window = |window: Window| quota(window.limit(), window.period());
    let opens = limit.alignment();
    let opens = ("opens", (opens != opens_default).then(|| Node::text(name_of(&opens, &OPENS))));
    match limit.shape() {
        Shape::Bucket { rate, burst } => {
            let debt_max = limit.debt_max_of(burst);
            table([
                ("rate", quota(rate.tokens(), rate.period())),
                ("burst", Some(whole(burst))),
                ("debt_max", (debt_max != burst).then(|| whole(debt_max))),
            ])
        }
        Shape::Window(one) => table([("window", window(one)), opens]),
        Shape::Sliding(one) => table([("sliding", window(one)), opens]),
        Shape::BurstSustain { burst, sustain } => {
            table([("burst", window(burst)), ("sustain", window(sustain)), opens])
        }
    }
}

/// A line of TOML.
fn line(text: &mut String, name: &str, node: &Node) {
    let _ = writeln!(text, "{name} = {}", as_toml(node));
}

fn as_toml(node: &Node) -> String {
    match &node.value {
        Value::List(items) => format!("[{}]", items.iter().map(as_toml).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Table(entries) => {
            let field = |entry: &Entry| format!("{} = {}", toml_name(&entry.name), as_toml(&entry.node));
            format!("{{ {} }}", entries.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        _ => plain(node),
    }
}

fn toml_name(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { in_quotes(name) }
}

/// One line of JSON.
pub(super) fn json(node: &Node) -> String {
    match &node.value {
        Value::List(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) => {
            let field = |entry: &Entry| format!("{}: {}", in_quotes(&entry.name), json(&entry.node));
            format!("{{{}}}", entries.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        _ => plain(node),
    }
}

/// What both spellings write in one way.
fn plain(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => in_quotes(text),
        Value::Whole(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(written) | Value::Other(written) => written.clone(),
        Value::List(_) | Value::Table(_) => String::new(),
    }
}

/// A text in double quotes, with the escapes that TOML and JSON have in common.
pub(super) fn in_quotes(text: &str) -> String {
    let mut made = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => made.extend(['\\', character]),
            '\n' => made.push_str("\\n"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(made, "\\u{:04x}", u32::from(character));
            }
            _ => made.push(character),
        }
    }
    made.push('"');
    made
}

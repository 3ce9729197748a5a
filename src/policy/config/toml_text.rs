//! TOML into values with their places, as far as the text can be understood.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::node::{Entry, Node, Value};

/// What cannot be read as TOML: the byte, and what is wrong there.
pub(super) type Fault = (usize, String);

/// Dots in one key. The parser bounds how deep brackets nest, but not this, and every level takes some of the stack.
const DOTS_MAX: usize = 16;

/// What came of a text.
pub(super) struct Parsed {
    /// What could be read.
    pub(super) node: Option<Node>,
    /// What could not.
    pub(super) faults: Vec<Fault>,
    /// From where on what was read is not what was meant.
    pub(super) lost_from: Option<usize>,
}

/// Everything that could be read, and everything that could not.
pub(super) fn parse(text: &str) -> Parsed {
    if let Some(at) = too_many_dots(text) {
        let faults = vec![(at, format!("a name of more than {} parts", DOTS_MAX + 1))];
        return Parsed { node: None, faults, lost_from: None };
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<Fault> = errors
        .iter()
        .map(|error| (error.span().map_or(0, |span| span.start), in_words(error.message())))
        .collect();
    // All that follows a bracket without its partner is taken to stand in it, and every line is a fault.
    let open = if faults.is_empty() { None } else { unclosed(text) };
    if let Some((at, bracket)) = open {
        faults.retain(|&(other, _)| other < at);
        let partner = if bracket == '{' { '}' } else { ']' };
        faults.push((at, format!("this {bracket} has no {partner}, so that nothing after it could be read")));
    }
    let node = Node { at: table.span().start, value: table_value(table.get_ref()) };
    Parsed { node: Some(node), faults, lost_from: open.map(|(at, _)| at) }
}

/// The parser's words, where there are plainer ones.
fn in_words(message: &str) -> String {
    match message {
        "invalid basic string, expected `\"`" => "a text in quotes has no \" at its end".to_owned(),
        "invalid literal string, expected `'`" => "a text in quotes has no ' at its end".to_owned(),
        other => other.to_owned(),
    }
}

/// The first bracket that nothing closes.
fn unclosed(text: &str) -> Option<(usize, char)> {
    let mut open = Vec::new();
    for token in Source::new(text).lex() {
        let bracket = match token.kind() {
            TokenKind::LeftCurlyBracket | TokenKind::RightCurlyBracket => '{',
            TokenKind::LeftSquareBracket | TokenKind::RightSquareBracket => '[',
            _ => continue,
        };
        if matches!(token.kind(), TokenKind::LeftCurlyBracket | TokenKind::LeftSquareBracket) {
            open.push((token.span().start(), bracket));
        } else if open.last().is_some_and(|&(_, last)| last == bracket) {
            open.pop();
        }
    }
    open.first().copied()
}

/// Where a key with too many dots stands, if there is one.
fn too_many_dots(text: &str) -> Option<usize> {
    let mut dots = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::Whitespace
            | TokenKind::Atom
            | TokenKind::LiteralString
            | TokenKind::BasicString
            | TokenKind::MlLiteralString
            | TokenKind::MlBasicString => {}
            _ => dots = 0,
        }
        if dots > DOTS_MAX {
            return Some(token.span().start());
        }
    }
    None
}

fn table_value(table: &DeTable<'_>) -> Value {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(name, value)| Entry {
            name: name.get_ref().to_string(),
            at: name.span().start,
            node: node(value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.at);
    Value::Table(entries)
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let made = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) => Value::Whole(whole),
            Err(_) => Value::Number(number.to_string()),
        },
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(yes) => Value::Bool(*yes),
        DeValue::Datetime(time) => Value::Other(time.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
        DeValue::Table(table) => table_value(table),
    };
    Node { at: value.span().start, value: made }
}

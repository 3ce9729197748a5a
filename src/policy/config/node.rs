//! What the text of a file comes to before it is known to be a policy: values, each with its place. Both spellings, TOML
//! and JSON, are read into this, and written from it.

/// A value and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) value: Value,
}

/// A value of either spelling.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A whole number from 0 up.
    Whole(u64),
    /// Any other number, as it was written.
    Number(String),
    Bool(bool),
    List(Vec<Node>),
    /// In the order of the text, no name twice.
    Table(Vec<Entry>),
    /// What no field may be: a date, a null; as it was written.
    Other(String),
}

/// A field of a table: its name, where that stands, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) node: Node,
}

/// Characters of a text that a message shows.
const SHOWN_MAX: usize = 60;

/// A text between quotes, without control characters, cut where it gets long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}

impl Node {
    /// A value that stands in no text.
    pub(super) fn new(value: Value) -> Self {
        Self { at: 0, value }
    }

    /// A text that stands in no text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(Value::Text(text.into()))
    }

    /// What a message says was found.
    pub(super) fn found(&self) -> String {
        match &self.value {
            Value::Text(text) => quoted(text),
            Value::Whole(number) => number.to_string(),
            Value::Number(number) | Value::Other(number) => {
                quoted(number).trim_matches('"').replace("\\\"", "\"")
            }
            Value::Bool(yes) => yes.to_string(),
            Value::List(items) if items.is_empty() => "an empty list".to_owned(),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

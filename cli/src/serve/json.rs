//! JSON as it was written: with every key of an object, for one that stands twice is a mistake and not the last one's say.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(f64),
    Text(String),
    /// An array, of which it only matters that it is one.
    List,
    /// The keys in their order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// What it is, for messages: a text or number itself, of others the kind.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Text(text) => format!("{:?}", clipped(text)),
            Self::List => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// The most characters of a value that are told back.
const TOLD_MAX: usize = 60;

/// A text, or its beginning.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(TOLD_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        #[expect(clippy::cast_precision_loss, reason = "it is told in a message, and nothing else")]
        Ok(u64::try_from(value).map_or(Json::Number(value as f64), Json::Whole))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        while list.next_element::<Json>()?.is_some() {}
        Ok(Json::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = object.next_entry::<String, Json>()? {
            entries.push(entry);
        }
        Ok(Json::Object(entries))
    }
}

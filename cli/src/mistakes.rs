//! What is wrong with a file of TOML, all of it, each as `file:line:column: what`.

use std::fmt::Display;

use toml::de::DeValue;

/// How far a spelling may be from the one that was probably meant, as strsim counts it.
const SIMILAR_MIN: f64 = 0.7;

/// What was found so far.
pub(crate) struct Mistakes<'a> {
    text: &'a str,
    file: &'a str,
    /// Each, and the byte where.
    found: Vec<(usize, String)>,
}

impl<'a> Mistakes<'a> {
    /// None in this text of that file.
    pub(crate) fn new(text: &'a str, file: &'a str) -> Self {
        Self { text, file, found: Vec::new() }
    }

    /// What is wrong at a byte of the text.
    pub(crate) fn add(&mut self, at: usize, what: impl Display) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        // A name or a value may hold what would move the cursor.
        let shown = format!("{}:{line}:{column}: {what}", self.file);
        let shown = shown.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
        self.found.push((at, shown.collect()));
    }

    /// What is wrong with the file as a whole; told last.
    pub(crate) fn add_of_all(&mut self, what: impl Display) {
        self.found.push((usize::MAX, format!("{}: {what}", self.file)));
    }

    /// How many there are.
    #[cfg(feature = "webhook")]
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// All of them in the order of the file, as the error; the value if there are none.
    pub(crate) fn or<T>(mut self, value: T) -> Result<T, Vec<String>> {
        self.found.sort_by_key(|(at, _)| *at);
        let lines: Vec<String> = self.found.into_iter().map(|(_, line)| line).collect();
        if lines.is_empty() { Ok(value) } else { Err(lines) }
    }
}

/// The known spelling that comes nearest, if one is near.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().rev().map(|known| (strsim::jaro_winkler(name, known), *known));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= SIMILAR_MIN).map(|(_, known)| known)
}

/// A value as a message shows it; a list or a table is not shown.
pub(crate) fn shown(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(format!("\"{text}\"")),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

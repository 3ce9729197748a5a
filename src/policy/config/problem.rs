//! What is wrong with a policy file: everything at once, each with its place, and how to mend it.

use std::fmt;
use std::sync::Arc;

/// One thing that is wrong with a policy file.
///
/// It prints as one line: where, of which rule, what, and how to mend it.
///
/// ```
/// use tidegate::policy::Rules;
///
/// let text = "[[rule]]\nname = 'profile'\nkey = 'user'\nlimit = { rate = '10/s', brust = 30 }\n";
/// let problems = Rules::from_toml(text, "limits.toml").unwrap_err();
/// let first = problems.iter().next().unwrap();
/// assert_eq!((first.line(), first.column()), (Some(4), Some(26)));
/// assert_eq!(first.suggestion(), Some("burst"));
/// assert!(first.to_string().starts_with(
///     "limits.toml:4:26: rule \"profile\": unknown field \"brust\" in limit; did you mean \"burst\"? Known: rate, "
/// ));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    file: Arc<str>,
    place: Option<(usize, usize)>,
    rule: Option<String>,
    field: String,
    found: Option<String>,
    says: String,
    allowed: Option<String>,
    suggestion: Option<String>,
}

impl Problem {
    /// A problem with `field` (its path in the rule, or empty), put in a clause.
    pub(super) fn new(field: &str, says: impl Into<String>) -> Self {
        Self {
            file: Arc::from(""),
            place: None,
            rule: None,
            field: field.to_owned(),
            found: None,
            says: says.into(),
            allowed: None,
            suggestion: None,
        }
    }

    /// What stands there, as a message shows it.
    pub(super) fn with_found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// A clause about what could stand there.
    pub(super) fn with_allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// What was probably meant.
    pub(super) fn with_nearest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }

    pub(super) fn of_rule(mut self, rule: Option<&str>) -> Self {
        self.rule = rule.map(str::to_owned);
        self
    }

    pub(super) fn stands(mut self, file: &Arc<str>, place: Option<(usize, usize)>) -> Self {
        self.file = Arc::clone(file);
        self.place = place;
        self
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; none where the file could not be read.
    pub fn line(&self) -> Option<usize> {
        self.place.map(|(line, _)| line)
    }

    /// The column in characters, from 1; none where the file could not be read.
    pub fn column(&self) -> Option<usize> {
        self.place.map(|(_, column)| column)
    }

    /// The rule: `rule "profile"`, or `rule 3` of one without a name; none for what stands outside of rules.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// The field, as a path in its rule: `limit.burst`, `override[2].key`. Empty where no field is to blame.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What was found, as the message shows it; none where something is missing.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// What is wrong, in a clause.
    pub fn says(&self) -> &str {
        &self.says
    }

    /// What would be allowed, in a clause, if that can be told.
    pub fn allowed(&self) -> Option<&str> {
        self.allowed.as_deref()
    }

    /// The correct spelling that comes nearest, if one is near.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(rule) = &self.rule {
            write!(f, ": {rule}")?;
        }
        write!(f, ": {}", self.says)?;
        if let Some(suggestion) = &self.suggestion {
            // A piece of TOML has quotes of its own.
            let quote = if suggestion.contains('"') { "" } else { "\"" };
            write!(f, "; did you mean {quote}{suggestion}{quote}?")?;
        }
        match (&self.allowed, &self.suggestion) {
            (Some(allowed), None) => write!(f, "; {allowed}"),
            (Some(allowed), Some(_)) => {
                let mut letters = allowed.chars();
                let first = letters.next().map(|first| first.to_ascii_uppercase());
                write!(f, " {}{}", first.unwrap_or_default(), letters.as_str())
            }
            (None, _) => Ok(()),
        }
    }
}

/// Everything that is wrong with one policy file, in the order of the text; never empty.
///
/// It prints as one line a problem, without a newline at the end; for `{:?}` too, which is what a `main` that returns it shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Problems {
    /// Only what there is: an empty list is no `Problems`.
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty(), "a file without a problem");
        Self(problems)
    }

    /// The problems, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Where lines begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after).collect() }
    }

    /// The line and the column (in characters) of a byte, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= at);
        let start = self.starts[line.saturating_sub(1)];
        let before = self.text.as_bytes().get(start..at.min(self.text.len())).unwrap_or_default();
        // Every byte but those that go on with a character begins one.
        let column = before.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        (line, column + 1)
    }
}

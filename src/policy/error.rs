//! Why a policy could not be built.

use std::fmt;

use crate::error::ConfigError;

/// Something that a policy says and that cannot be honoured: the first that was found. The message names the rule, the
/// field, the value given and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    rule: Option<String>,
    problem: Box<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Field { field: String, value: String, allowed: String },
    Limit { field: String, error: ConfigError },
}

impl PolicyError {
    pub(super) fn field_of(
        rule: Option<&str>,
        field: impl Into<String>,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        let problem =
            Problem::Field { field: field.into(), value: value.to_string(), allowed: allowed.into() };
        Self { rule: rule.map(str::to_owned), problem: Box::new(problem) }
    }

    /// A limit of the rule, by its number from 0 (told from 1, as in a file), that no limiter can honour.
    pub(super) fn limit_of(rule: &str, number: usize, error: ConfigError) -> Self {
        let problem = Problem::Limit { field: format!("limits[{}]", number + 1), error };
        Self { rule: Some(rule.to_owned()), problem: Box::new(problem) }
    }

    /// The limit of an override in the place of the rule's limit of this number, that no limiter can honour beside it.
    pub(super) fn override_of(rule: &str, number: usize, error: ConfigError) -> Self {
        let problem = Problem::Limit { field: format!("overrides: limits[{}]", number + 1), error };
        Self { rule: Some(rule.to_owned()), problem: Box::new(problem) }
    }

    /// The name of the rule; none if the policy as a whole is wrong.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// What is wrong, without the rule's name.
    pub(super) fn says(&self) -> String {
        match &*self.problem {
            Problem::Field { field, value, allowed } => format!("{field} is {value}; it must be {allowed}"),
            Problem::Limit { field, error } => format!("{field}: {error}"),
        }
    }

    /// The field, as `warn_percent` or `limits[1]`, which is the first.
    pub fn field(&self) -> &str {
        match &*self.problem {
            Problem::Field { field, .. } | Problem::Limit { field, .. } => field,
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = &self.rule {
            write!(f, "rule {rule:?}: ")?;
        }
        f.write_str(&self.says())
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problem {
            Problem::Field { .. } => None,
            Problem::Limit { error, .. } => Some(error),
        }
    }
}

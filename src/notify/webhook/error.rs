//! Why webhooks cannot be started.

use std::fmt;

/// An endpoint or a setting that is wrong: which field of it, and what is allowed. It never tells a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookError {
    endpoint: Option<String>,
    field: &'static str,
    problem: String,
}

impl WebhookError {
    pub(super) fn of(endpoint: &str, field: &'static str, problem: impl fmt::Display) -> Self {
        Self { endpoint: Some(endpoint.to_owned()), field, problem: problem.to_string() }
    }

    pub(super) fn of_settings(field: &'static str, problem: impl fmt::Display) -> Self {
        Self { endpoint: None, field, problem: problem.to_string() }
    }

    /// The endpoint's name; `None` if it is about the settings.
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// The field, called as the builder's method is.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it, without its name.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => write!(f, "endpoint {endpoint:?}: {}: {}", self.field, self.problem),
            None => write!(f, "{}: {}", self.field, self.problem),
        }
    }
}

impl std::error::Error for WebhookError {}

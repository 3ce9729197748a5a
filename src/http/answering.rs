//! What a client is told.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::policy::Verdict;

/// How verdicts are told to clients: which fields, and which body a refusal has. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Answering {}

/// How the limits of a verdict are called in fields and bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// Unique in the policy.
    #[default]
    Full,
    /// `burst`, `sustain`, `bucket`, `window`, `sliding`.
    Windows,
}

/// Families of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// `RateLimit` and `RateLimit-Policy`.
    Draft,
}

/// The body of a refusal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body {
    /// One line of text.
    Text,
}

/// Fields of a response.
#[derive(Clone, Debug, Default)]
pub struct Fields {}

impl Fields {
    /// Sets them in a response.
    pub fn apply(self, headers: &mut HeaderMap) {
        _ = headers;
    }

    /// The fields one by one.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        std::iter::empty()
    }
}

impl Answering {
    /// The fields that tell how the caller stands, for an allowed and a refused request alike.
    pub fn fields(&self, verdict: &Verdict) -> Fields {
        _ = verdict;
        Fields {}
    }

    /// The whole response to a refused request, whose head may say what the client accepts.
    pub fn refusal(&self, verdict: &Verdict, request: &HeaderMap) -> Response<Bytes> {
        _ = (verdict, request);
        Response::new(Bytes::new())
    }
}

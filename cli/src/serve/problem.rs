//! Errors as clients are told them: problem details (RFC 9457), in one shape.

use axum::body::Body;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// The type of the bodies.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// That nobody may keep an answer: the next one is another.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// One thing that is wrong with a request, field by field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Mistake {
    /// The field, as `caller.type`.
    pub(super) field: String,
    /// What was found there, cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) found: Option<String>,
    /// What may stand there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed: Option<String>,
    /// The spelling that comes nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nearest: Option<String>,
    /// All of it in words.
    pub(super) detail: String,
}

#[derive(Serialize)]
struct Details<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Mistake],
}

/// An answer that says what went wrong.
pub(super) fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    mistakes(status, detail, &[])
}

/// The same with each mistake by itself.
pub(super) fn mistakes(status: StatusCode, detail: &str, errors: &[Mistake]) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Error");
    let details = Details { r#type: "about:blank", title, status: status.as_u16(), detail, errors };
    // Nothing in it has a serializer that fails.
    let body = serde_json::to_vec(&details).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

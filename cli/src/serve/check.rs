//! `POST /check`: a request told in JSON, and the verdict in JSON.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::State;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::LengthLimitError;
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate::policy::{LimitState, RuleState, Verdict};

use super::App;
use super::input;
use super::metrics::Asked;
use super::problem::{NO_STORE, mistakes, problem};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A verdict as JSON.
#[derive(Serialize)]
struct Shown<'v> {
    allowed: bool,
    retry_after_s: Option<Box<RawValue>>,
    retry_after_staggered_s: Option<Box<RawValue>>,
    rules: Vec<ShownRule<'v>>,
}

#[derive(Serialize)]
struct ShownRule<'v> {
    name: &'v str,
    shadow: bool,
    exempt: bool,
    refuses: bool,
    warns: bool,
    limits: Vec<ShownLimit>,
}

#[derive(Serialize)]
struct ShownLimit {
    windows: Vec<ShownWindow>,
}

#[derive(Serialize)]
struct ShownWindow {
    name: &'static str,
    limit: u64,
    period_s: Option<Box<RawValue>>,
    remaining: u64,
    observed: u64,
    next_after_s: Option<Box<RawValue>>,
    reset_after_s: Option<Box<RawValue>>,
    refuses: bool,
}

/// Decides what the body tells of.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        // A page in somebody's browser may send a form or a text to any server, but no JSON.
        let detail = "the body must be JSON, and Content-Type say so: application/json";
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    }
    let body = match read(body, app.bounds.body_bytes_max).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let facts = match input::read(&body) {
        Ok(facts) => facts,
        Err(errors) => {
            let details: Vec<&str> = errors.iter().map(|error| &*error.detail).collect();
            return mistakes(StatusCode::BAD_REQUEST, &details.join("\n"), &errors);
        }
    };
    facts.with_request(|request| {
        let verdict = app.policy.check(request);
        app.metrics.decided(Asked::Check, &verdict);
        let mut response = Response::new(Body::from(shown(&verdict)));
        app.answering.fields(&verdict).apply(response.headers_mut());
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = value.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json")
}

async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Response<Body>> {
    let too_long = || problem(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body may have {bytes_max} bytes"));
    // A client that tells the length need not send what nobody will read.
    if body.size_hint().lower() > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Err(too_long());
    }
    to_bytes(body, bytes_max).await.map_err(|error| {
        if error.source().is_some_and(|source| source.is::<LengthLimitError>()) {
            too_long()
        } else {
            problem(StatusCode::BAD_REQUEST, "the body ended before its time")
        }
    })
}

fn shown(verdict: &Verdict) -> Vec<u8> {
    let shown = Shown {
        allowed: verdict.is_allowed(),
        retry_after_s: verdict.retry_after().and_then(seconds),
        retry_after_staggered_s: verdict.retry_after_staggered().and_then(seconds),
        rules: verdict.rules().map(|rule| shown_rule(&rule)).collect(),
    };
    // Nothing in it has a serializer that fails.
    serde_json::to_vec(&shown).unwrap_or_default()
}

fn shown_rule<'v>(rule: &RuleState<'v>) -> ShownRule<'v> {
    ShownRule {
        name: rule.name(),
        shadow: rule.is_shadow(),
        exempt: rule.is_exempt(),
        refuses: rule.refuses(),
        warns: rule.warns(),
        limits: rule.limits().map(|limit| shown_limit(&limit)).collect(),
    }
}

fn shown_limit(limit: &LimitState<'_>) -> ShownLimit {
    let windows = limit.windows();
    let windows = windows.iter().map(|window| ShownWindow {
        name: window.name.as_str(),
        limit: window.limit,
        period_s: seconds(window.period),
        remaining: window.remaining,
        observed: window.observed,
        next_after_s: seconds(window.next_after),
        reset_after_s: seconds(window.reset_after),
        refuses: window.refuses,
    });
    ShownLimit { windows: windows.collect() }
}

/// A wait in seconds to the nanosecond, which no floating point number would keep; `None` for one that never ends.
fn seconds(wait: Duration) -> Option<Box<RawValue>> {
    if wait == Duration::MAX {
        return None;
    }
    let text = format!("{}.{:09}", wait.as_secs(), wait.subsec_nanos());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    RawValue::from_string(text.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        let told = |wait| seconds(wait).map(|told| told.get().to_owned());
        assert_eq!(told(Duration::ZERO).as_deref(), Some("0"));
        assert_eq!(told(Duration::from_secs(10)).as_deref(), Some("10"));
        assert_eq!(told(Duration::from_nanos(1)).as_deref(), Some("0.000000001"));
        assert_eq!(told(Duration::new(1 << 40, 999_999_999)).as_deref(), Some("1099511627776.999999999"));
        assert_eq!(told(Duration::MAX), None);
    }
}

//! `/auth`: what proxies ask before they let a request through.
//!
//! ```text
//! nginx auth_request    GET /auth              X-Original-URI, X-Original-Method
//! Traefik ForwardAuth   GET /auth              X-Forwarded-Uri, X-Forwarded-Method
//! Envoy ext_authz       the method, /auth/PATH
//! ```

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::header::{CACHE_CONTROL, HeaderMap};
use http::uri::{Parts, PathAndQuery};
use http::{HeaderName, Method, Request, Response, StatusCode, Uri};
use tidegate::http::{Extract, Extractor, Head, Missing, Source};

use super::App;
use super::advice::Given;
use super::json::clipped;
use super::metrics::Asked;
use super::problem::{NO_STORE, problem};
use crate::key::printable;

/// Where the path begins.
pub(super) const PREFIX: &str = "/auth";

/// Which fields tell the path and method that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    /// Those that are there. If both are and they contradict each other, nobody knows which one the proxy has written.
    Either,
    /// `X-Original-URI` and `X-Original-Method`.
    XOriginal,
    /// `X-Forwarded-Uri` and `X-Forwarded-Method`.
    XForwarded,
}

const X_ORIGINAL: [HeaderName; 2] =
    [HeaderName::from_static("x-original-uri"), HeaderName::from_static("x-original-method")];
const X_FORWARDED: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-uri"), HeaderName::from_static("x-forwarded-method")];

/// How requests to `/auth` are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// All parts but the cost.
    pub extractor: Extractor,
    /// Where the cost is read; 1 where nothing is said.
    pub cost: Option<Source>,
    /// Which fields tell what was asked for.
    pub original: Original,
    /// What of a request is known by that.
    pub given: Given,
}

/// Decides what a proxy asks about.
pub(super) async fn auth(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (mut parts, _) = request.into_parts();
    let status = match status(&parts.uri) {
        Ok(status) => status,
        Err(detail) => return problem(StatusCode::BAD_REQUEST, &detail),
    };
    match asked_for(&parts.uri, &parts.method, &parts.headers, app.reading.original) {
        Ok((method, uri)) => (parts.method, parts.uri) = (method, uri),
        Err(detail) => return problem(StatusCode::BAD_REQUEST, &detail),
    }
    let request = Request::from_parts(parts, ());
    let head = Head::of(&request);
    let mut facts = match app.reading.extractor.extract(head) {
        Ok(facts) => facts,
        Err(missing) => return lacking(&app, &missing, status),
    };
    if let Some(source) = &app.reading.cost {
        match cost(source, head) {
            Ok(cost) => facts.cost = cost,
            Err(detail) => return problem(StatusCode::BAD_REQUEST, &detail),
        }
    }
    facts.with_request(|asked| {
        let verdict = app.policy.check(asked);
        app.metrics.decided(Asked::Auth, &verdict);
        if verdict.is_allowed() {
            let mut response = go_on();
            app.answering.fields(&verdict).apply(response.headers_mut());
            return response;
        }
        let mut response = app.answering.refusal(&verdict, request.headers()).map(Body::from);
        if let Some(status) = status {
            *response.status_mut() = status;
        }
        response
    })
}

/// That the request may go on.
fn go_on() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// What becomes of a request that lacks a part.
fn lacking(app: &App, missing: &Missing, status: Option<StatusCode>) -> Response<Body> {
    app.metrics.lacked();
    match missing.status {
        None => go_on(),
        Some(by_itself) => problem(status.unwrap_or(by_itself), &missing.to_string()),
    }
}

/// The status that refusals are to have: that of `/auth` itself alone, for what follows a path is the client's.
fn status(uri: &Uri) -> Result<Option<StatusCode>, String> {
    let Some(query) = uri.query().filter(|query| uri.path() == PREFIX && !query.is_empty()) else {
        return Ok(None);
    };
    match query.strip_prefix("status=") {
        Some("401") => Ok(Some(StatusCode::UNAUTHORIZED)),
        Some("403") => Ok(Some(StatusCode::FORBIDDEN)),
        Some("429") => Ok(None),
        Some(other) => Err(format!("status is {:?}; it must be 401, 403 or 429", clipped(other))),
        None => {
            Err(format!("the query is {:?}; it must be status=401, status=403 or status=429", clipped(query)))
        }
    }
}

/// The method and URI that the client asked the proxy for.
fn asked_for(
    uri: &Uri,
    method: &Method,
    headers: &HeaderMap,
    original: Original,
) -> Result<(Method, Uri), String> {
    if let Some(rest) = uri.path_and_query().and_then(|all| all.as_str().strip_prefix(PREFIX))
        && rest.starts_with('/')
    {
        return Ok((method.clone(), to_uri(rest).ok_or("the path after /auth is no path")?));
    }
    let pairs: &[[HeaderName; 2]] = match original {
        Original::Either => &[X_ORIGINAL, X_FORWARDED],
        Original::XOriginal => &[X_ORIGINAL],
        Original::XForwarded => &[X_FORWARDED],
    };
    let mut found: Option<(Method, Uri)> = None;
    for [uri_field, method_field] in pairs {
        let Some(text) = only(headers, uri_field)? else { continue };
        let uri =
            to_uri(text).ok_or_else(|| format!("{uri_field} is {:?}; it must be a path", clipped(text)))?;
        let method = match only(headers, method_field)? {
            Some(text) => text
                .parse()
                .map_err(|_| format!("{method_field} is {:?}; it must be a method", clipped(text)))?,
            None => method.clone(),
        };
        let is_other = |(known_method, known_uri): &(Method, Uri)| {
            *known_uri != uri || (*known_method != method && headers.contains_key(method_field))
        };
        if found.as_ref().is_some_and(is_other) {
            return Err("X-Original-URI and X-Forwarded-Uri contradict each other; say with --original which of them \
                        the proxy writes"
                .to_owned());
        }
        found.get_or_insert((method, uri));
    }
    let names: Vec<&str> = pairs.iter().map(|[uri, _]| uri.as_str()).collect();
    found.ok_or_else(|| {
        format!("nothing says what was asked for: no {}, no path after /auth", names.join(", no "))
    })
}

/// A path with or without a query, or a whole URI.
fn to_uri(text: &str) -> Option<Uri> {
    if text.starts_with('/') {
        let mut parts = Parts::default();
        parts.path_and_query = Some(text.parse::<PathAndQuery>().ok()?);
        return Uri::from_parts(parts).ok();
    }
    // A server is asked with a whole URI by clients that take it for a proxy, and `*` for all of it.
    let uri: Uri = text.parse().ok()?;
    (text == "*" || (uri.scheme().is_some() && uri.path().starts_with('/'))).then_some(uri)
}

/// The text of a field that is there once; of two nobody knows which one the proxy has written.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{name} is there twice"));
    }
    value.to_str().map(Some).map_err(|_| format!("{name} is not in visible ASCII"))
}

fn cost(source: &Source, head: Head<'_>) -> Result<Option<u64>, String> {
    let Some(text) = source.read(head) else {
        return match source {
            // Who says something that cannot be read has not said nothing.
            Source::Header(name) if head.headers.contains_key(name) => {
                Err(format!("{name} cannot be read as a cost: it is empty, there twice, or no text"))
            }
            _ => Ok(None),
        };
    };
    let is_whole = text.bytes().all(|digit| digit.is_ascii_digit());
    match text.parse() {
        Ok(cost) if is_whole => Ok(Some(cost)),
        _ => Err(format!(
            "cost is {:?}; it must be a whole number from 0 to {}",
            printable(&clipped(&text)),
            u64::MAX
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn asked(uri: &str, fields: &[(&'static str, &str)], original: Original) -> Result<String, String> {
        let found = asked_for(&uri.parse().unwrap(), &Method::GET, &headers(fields), original);
        found.map(|(method, uri)| format!("{method} {uri}"))
    }

    #[test]
    fn each_proxy_tells_in_its_own_way() {
        let nginx = [("x-original-uri", "/a?b=c"), ("x-original-method", "POST")];
        assert_eq!(asked("/auth", &nginx, Original::Either).as_deref(), Ok("POST /a?b=c"));
        let traefik = [("x-forwarded-uri", "/a"), ("x-forwarded-method", "PUT")];
        assert_eq!(asked("/auth", &traefik, Original::Either).as_deref(), Ok("PUT /a"));
        assert_eq!(asked("/auth/a/b?c", &[], Original::Either).as_deref(), Ok("GET /a/b?c"));
        assert_eq!(asked("/auth//host/a", &[], Original::Either).as_deref(), Ok("GET //host/a"));
        assert_eq!(asked("/auth/", &[], Original::Either).as_deref(), Ok("GET /"));
        // What a client adds to a path changes nothing.
        assert_eq!(asked("/auth/a", &nginx, Original::Either).as_deref(), Ok("GET /a"));
    }

    #[test]
    fn whole_uris_are_read_too() {
        let of = |text| asked("/auth", &[("x-original-uri", text)], Original::Either);
        assert_eq!(to_uri("http://h/a?b").map(|uri| uri.path().to_owned()).as_deref(), Some("/a"));
        assert_eq!(of("*").as_deref(), Ok("GET *"));
        for text in ["host", "host:80", "a b", "", "mailto:x"] {
            assert!(of(text).is_err_and(|error| error.contains("it must be a path")), "{text}");
        }
    }

    #[test]
    fn fields_that_contradict_each_other_are_an_error() {
        let both = [("x-original-uri", "/a"), ("x-forwarded-uri", "/b")];
        assert!(asked("/auth", &both, Original::Either).is_err_and(|error| error.contains("contradict")));
        assert_eq!(asked("/auth", &both, Original::XOriginal).as_deref(), Ok("GET /a"));
        assert_eq!(asked("/auth", &both, Original::XForwarded).as_deref(), Ok("GET /b"));
        let same = [("x-original-uri", "/a"), ("x-original-method", "PUT"), ("x-forwarded-uri", "/a")];
        assert_eq!(asked("/auth", &same, Original::Either).as_deref(), Ok("PUT /a"));
        let twice = [("x-original-uri", "/a"), ("x-original-uri", "/a")];
        let mut fields = headers(&twice[..1]);
        fields.append("x-original-uri", "/b".parse().unwrap());
        let found = asked_for(&"/auth".parse().unwrap(), &Method::GET, &fields, Original::Either);
        assert!(found.is_err_and(|error| error.contains("twice")));
        assert!(asked("/auth", &[], Original::Either).is_err());
    }

    #[test]
    fn a_cost_is_a_whole_number_or_an_error() {
        let of = |values: &[&[u8]]| {
            let mut request = Request::get("/").body(()).unwrap();
            for value in values {
                request.headers_mut().append("x-cost", http::HeaderValue::from_bytes(value).unwrap());
            }
            cost(&Source::Header(HeaderName::from_static("x-cost")), Head::of(&request))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"0"]), Ok(Some(0)));
        assert_eq!(of(&[b"18446744073709551615"]), Ok(Some(u64::MAX)));
        for odd in [&b"+5"[..], b"-5", b"5.0", b" ", b"", b"\xff", b"18446744073709551616", "⟨1⟩".as_bytes()]
        {
            assert!(of(&[odd]).is_err(), "{odd:?}");
        }
        assert!(of(&[b"1", b"9"]).is_err_and(|error| error.contains("twice")));
    }

    #[test]
    fn the_status_is_one_of_three() {
        let of = |uri: &str| status(&uri.parse().unwrap());
        assert_eq!(of("/auth?status=403"), Ok(Some(StatusCode::FORBIDDEN)));
        assert_eq!(of("/auth?status=429"), Ok(None));
        assert!(of("/auth?status=200").is_err_and(|error| error.ends_with("401, 403 or 429")));
        assert!(of("/auth?stauts=403").is_err());
        // A client's own query.
        assert_eq!(of("/auth/a?status=200"), Ok(None));
    }
}

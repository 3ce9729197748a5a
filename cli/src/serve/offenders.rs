//! `GET /offenders`: the keys that are refused most, for who has the token of those who look after the server.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tidegate::policy::Offender;

use super::App;
use super::json::clipped;
use super::problem::{Mistake, NO_STORE, mistakes, problem};

/// Keys that are told unless a number is asked for, and at most.
const COUNT: usize = 20;
const COUNT_MAX: usize = 1000;

/// The shortest token: one of 16 characters cannot be found by trying.
const TOKEN_BYTES_MIN: usize = 16;
/// The longest, which fits the head of a request.
pub const TOKEN_BYTES_MAX: usize = 1024;

/// What who looks after the server has to know; of it the SHA-256 is kept.
#[derive(Clone, Copy)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// Of a text, without the white space around it.
    ///
    /// # Errors
    /// It has not 16 to 1024 characters, or others than those of visible ASCII.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let range = format!("it must have {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} characters");
        match text.len() {
            0 => Err(format!("it is empty; {range}")),
            length if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&length) => {
                Err(format!("it has {length} characters; {range}"))
            }
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err("it has other characters than the visible ones of ASCII, or white space".to_owned())
            }
            _ => Ok(Self(digest(text.as_bytes()))),
        }
    }

    /// Takes as long for any token of a length: all of both digests is looked at, and whoever could tell how much of a digest is
    /// right would know nothing of the token.
    fn is(&self, token: &[u8]) -> bool {
        let differing = self.0.iter().zip(digest(token)).fold(0, |differing, (a, b)| differing | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The answer: most refused first.
#[derive(Serialize)]
struct Shown<'a> {
    offenders: Vec<ShownOffender<'a>>,
}

#[derive(Serialize)]
struct ShownOffender<'a> {
    rule: &'a str,
    shadow: bool,
    limit_number: usize,
    key: Option<&'a str>,
    /// As the log has it; a number would lose digits in many a program.
    fingerprint: String,
    refused_least: u64,
    refused_most: u64,
}

impl<'a> From<&'a Offender> for ShownOffender<'a> {
    fn from(offender: &'a Offender) -> Self {
        Self {
            rule: &offender.rule,
            shadow: offender.is_shadow,
            limit_number: offender.limit_number,
            key: offender.key.as_deref(),
            fingerprint: format!("{:012x}", offender.fingerprint),
            refused_least: offender.refused_least,
            refused_most: offender.refused_most,
        }
    }
}

/// Tells who is refused most. There is a route to this only where there is a token.
pub(super) async fn offenders(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let given = bearer(request.headers());
    let is_known = app.admin_token.zip(given).is_some_and(|(token, given)| token.is(given));
    if !is_known {
        return unauthorized(given.is_some());
    }
    let count = match count(request.uri().query()) {
        Ok(count) => count,
        Err(mistake) => {
            let detail = mistake.detail.clone();
            return mistakes(StatusCode::BAD_REQUEST, &detail, &[mistake]);
        }
    };
    let offenders = app.policy.offenders(count);
    let shown = Shown { offenders: offenders.iter().map(ShownOffender::from).collect() };
    // Nothing in it has a serializer that fails.
    let mut response = Response::new(Body::from(serde_json::to_vec(&shown).unwrap_or_default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// The token of a request that has one, once (RFC 6750, 2.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// What is asked for (RFC 6750, 3): who has given no token is told of no error.
fn unauthorized(has_given: bool) -> Response<Body> {
    let (detail, asks) = if has_given {
        ("the token is another", "Bearer realm=\"tidegate\", error=\"invalid_token\"")
    } else {
        ("a token is required: Authorization: Bearer TOKEN", "Bearer realm=\"tidegate\"")
    };
    let mut response = problem(StatusCode::UNAUTHORIZED, detail);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(asks));
    response
}

/// How many are asked for.
fn count(query: Option<&str>) -> Result<usize, Mistake> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(COUNT) };
    let allowed = format!("a whole number from 1 to {COUNT_MAX}");
    let Some(text) = query.strip_prefix("n=").filter(|text| !text.contains('&')) else {
        let detail = format!("the query is {:?}; it must be n=NUMBER, once", clipped(query));
        return Err(Mistake {
            field: "query".to_owned(),
            found: Some(clipped(query)),
            allowed: Some("n=NUMBER".to_owned()),
            nearest: None,
            detail,
        });
    };
    let is_whole = text.bytes().all(|digit| digit.is_ascii_digit());
    match text.parse() {
        Ok(count) if is_whole && (1..=COUNT_MAX).contains(&count) => Ok(count),
        _ => Err(Mistake {
            field: "n".to_owned(),
            found: Some(clipped(text)),
            detail: format!("n is {:?}; it must be {allowed}", clipped(text)),
            allowed: Some(allowed),
            nearest: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_16_to_1024_visible_characters() {
        assert!(AdminToken::new(" 0123456789abcdef\n").is_ok_and(|token| token.is(b"0123456789abcdef")));
        assert!(AdminToken::new(&"x".repeat(1024)).is_ok());
        for (text, says) in [
            ("", "it is empty; it must have 16 to 1024 characters"),
            (" \n", "it is empty"),
            ("0123456789abcde", "it has 15 characters"),
            (&"x".repeat(1025), "it has 1025 characters"),
            ("0123456789 abcdef", "white space"),
            ("0123456789abcdeé", "visible"),
        ] {
            assert!(AdminToken::new(text).is_err_and(|error| error.contains(says)), "{text}");
        }
    }

    #[test]
    fn only_the_token_is_the_token() {
        let token = AdminToken::new("0123456789abcdef").unwrap();
        for other in ["", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "0123456789abcdef "] {
            assert!(!token.is(other.as_bytes()), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken(..)");
    }

    #[test]
    fn a_number_is_asked_for_once_and_in_range() {
        let of = |query| count(Some(query)).map_err(|mistake| mistake.field);
        assert_eq!(count(None), Ok(20));
        assert_eq!((of(""), of("n=1"), of("n=1000"), of("n=007")), (Ok(20), Ok(1), Ok(1000), Ok(7)));
        for wrong in ["n=0", "n=1001", "n=-1", "n=+1", "n=", "n=1.0", "n=99999999999999999999"] {
            assert_eq!(of(wrong), Err("n".to_owned()), "{wrong}");
        }
        for wrong in ["m=1", "n=1&n=2", "n=1&", "n", "1"] {
            assert_eq!(of(wrong), Err("query".to_owned()), "{wrong}");
        }
    }
}

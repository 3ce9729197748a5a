//! Where a part of a request is read.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use sha2::{Digest, Sha256};

use super::head::Head;
use super::path;

/// What an address begins with that stands in a part's place. No source gives a text that does.
pub(super) const STAND_IN: char = '⟨';

/// A function that reads a part of a request, or finds none.
pub type SourceFn = Arc<dyn for<'r> Fn(Head<'r>) -> Option<Cow<'r, str>> + Send + Sync>;

/// Where a part of a request is read.
///
/// What is read is absent if it is empty, or begins with `⟨`, as the addresses do that stand in for what is missing.
///
/// ```
/// use tidegate::http::Source;
///
/// let tenant = Source::function(|head| head.uri.host()?.split('.').next().map(Into::into));
/// # let request = http::Request::get("http://acme.example/").body(()).unwrap();
/// # assert_eq!(tenant.read(tidegate::http::Head::of(&request)).as_deref(), Some("acme"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Source {
    /// A field of the request, by name. It must be there once, in visible ASCII: of two nobody knows which one a proxy has
    /// written, and which one the client. **Anybody can write any field**: it says who calls only where something trusted has set
    /// it, and has removed what the client sent.
    Header(HeaderName),
    /// The token of `Authorization: Bearer`: the first 16 hexadecimal digits of its SHA-256, so that no log and no message
    /// shows the token. The token is **not verified**: anybody makes up as many as he likes, each with a count of its own,
    /// unless something before this has turned down those that are not good.
    Bearer,
    /// The path, one for all its spellings: octets such as `%61` are the characters that they stand for, `/` among them (not
    /// `%`, controls, and what is no UTF-8), several `/` are one, `.` and `..` are resolved, and a `/` at the end is none.
    /// Letters keep their case, and the query is no part of it. A server that reads paths in yet another way, say `;` as an end or `\` as a
    /// `/`, wants a [function](Self::function), or [`Route`](Self::Route).
    Path,
    /// The pattern that the path matched, `/users/{id}`, where axum routes (feature `axum`); else absent. The layer must be on the routes:
    /// axum tells the pattern to what `Router::layer` adds, not to what is around the whole router.
    Route,
    /// The method.
    Method,
    /// Always this text.
    Constant(Cow<'static, str>),
    /// What a function finds; see [`function`](Self::function).
    Function(SourceFn),
}

impl Source {
    /// What a function of one's own finds.
    pub fn function(
        function: impl for<'r> Fn(Head<'r>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    ) -> Self {
        Self::Function(Arc::new(function))
    }

    /// Reads it. Allocates for a token, and for a path that is not spelt the plain way.
    pub fn read<'r>(&'r self, head: Head<'r>) -> Option<Cow<'r, str>> {
        let text = match self {
            Self::Header(name) => Cow::Borrowed(only(head.headers, name)?),
            Self::Bearer => Cow::Owned(token_id(only(head.headers, &AUTHORIZATION)?)?),
            Self::Path => path::normal(head.uri.path()),
            Self::Route => Cow::Borrowed(head.route()?),
            Self::Method => Cow::Borrowed(head.method.as_str()),
            Self::Constant(text) => Cow::Borrowed(&**text),
            Self::Function(function) => function(head)?,
        };
        (!text.is_empty() && !text.starts_with(STAND_IN)).then_some(text)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => f.debug_tuple("Header").field(name).finish(),
            Self::Bearer => f.write_str("Bearer"),
            Self::Path => f.write_str("Path"),
            Self::Route => f.write_str("Route"),
            Self::Method => f.write_str("Method"),
            Self::Constant(text) => f.debug_tuple("Constant").field(text).finish(),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

/// The text of a field that is there once.
fn only<'r>(headers: &'r HeaderMap, name: &HeaderName) -> Option<&'r str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The first 16 hexadecimal digits of the SHA-256 of a bearer token.
fn token_id(authorization: &str) -> Option<String> {
    let (scheme, token) = authorization.split_once(' ')?;
    let token = token.trim_ascii();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return None;
    }
    let digest = Sha256::digest(token);
    Some(digest[..8].iter().map(|octet| format!("{octet:02x}")).collect())
}

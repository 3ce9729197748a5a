//! What a client is told: the fields of every answer, and the whole of a refusal.
//!
//! ```text
//! quota                 each window of each limit that counts, and its name
//! text                  names and numbers as RFC 9651 has them
//! draft · x_rate_limit  the families of fields
//! fields                the fields of one response
//! body · accept         what a refusal says, and which of it the client wants
//! ```

mod accept;
mod body;
mod draft;
mod fields;
mod quota;
mod text;
mod x_rate_limit;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use body::{Body, OwnBody};
use bytes::Bytes;
pub use fields::Fields;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use quota::Quotas;

use crate::answer::{Denied, Pass, whole_seconds};
use crate::policy::Verdict;

/// How verdicts are told to clients: which fields, and which body a refusal has. Cheap to clone.
///
/// Unless told otherwise it sends `RateLimit` and `RateLimit-Policy`, and with a refusal `Retry-After` and the body that the
/// policy names, or else the one that the client prefers.
///
/// ```
/// use tidegate::http::{Answering, Dialect};
/// use tidegate::policy::{Policy, Request, Rules};
///
/// let text = r#"
/// [[rule]]
/// name = "address"
/// key = "client_ip"
/// limit = { window = "2/1m", opens = "first-request" }
/// "#;
/// let policy = Policy::new(Rules::from_toml(text, "limits.toml")?)?;
/// let answering = Answering::new().dialects([Dialect::Draft, Dialect::XSeconds]);
///
/// let request = Request::new("basket").client_ip("192.0.2.7".parse()?);
/// let mut response = http::Response::new(());
/// answering.fields(&policy.check(&request)).apply(response.headers_mut());
/// assert_eq!(response.headers()["ratelimit-policy"], r#""window";q=2;w=60"#);
/// assert_eq!(response.headers()["ratelimit"], r#""window";r=1;t=60"#);
/// assert_eq!(response.headers()["x-ratelimit-remaining"], "1");
///
/// let (_, verdict) = (policy.check(&request), policy.check(&request));
/// let refusal = answering.refusal(&verdict, &http::HeaderMap::new());
/// assert_eq!(refusal.status(), 429);
/// assert_eq!(refusal.headers()["content-type"], "application/problem+json");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Answering {
    names: Names,
    dialects: Dialects,
    body: Option<Body>,
    wall: Wall,
}

/// How the windows of limits are called in fields and bodies.
///
/// A name is printable ASCII; any other character of a rule's name is told as `?`, and of a long name the first 128. No two
/// in one response are the same: one that another has already is followed by a dot and its place among all of them, from 1.
/// An answer of a limiter by itself has no rule to be called by: its windows are called as under [`Windows`](Self::Windows).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// As [`Windows`](Self::Windows) if the policy has one rule with one limit, else as [`Full`](Self::Full).
    #[default]
    Auto,
    /// The rule's name, unique in its policy. Of a rule with several limits the number of the limit follows, `.1` for the first;
    /// of a limit with two windows, `.burst` or `.sustain`.
    Full,
    /// `burst`, `sustain`, `bucket`, `window`, `sliding`.
    Windows,
}

/// Families of fields. Those of `X-` tell of one limit, the nearest, and of a refusal the one to wait for; they may be combined, and
/// are three fields in any case. No standard describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10, of all limits that count. A period that
    /// is no whole number of seconds has no `w`; of a bucket it is the time in which it fills. `t` is the wait until there is more
    /// quota, in seconds, rounded up, and left out where nothing is used.
    Draft,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from now: until there is more quota, and of a refusal
    /// until the same request passes.
    XSeconds,
    /// The same, with `X-RateLimit-Reset` in seconds of Unix time, whatever other dialects say.
    XEpoch,
    /// The same, with all limits that count behind the nearest one: `X-RateLimit-Limit: 10, 10;w=1, 1000;w=3600`.
    XEnvoy,
}

/// A set of dialects, a bit for each.
#[derive(Clone, Copy, Debug)]
struct Dialects(u8);

impl Default for Dialects {
    fn default() -> Self {
        Self::of([Dialect::Draft])
    }
}

impl Dialects {
    fn of(dialects: impl IntoIterator<Item = Dialect>) -> Self {
        Self(dialects.into_iter().fold(0, |all, dialect| all | 1 << dialect as u8))
    }

    fn has(self, dialect: Dialect) -> bool {
        self.0 & 1 << dialect as u8 != 0
    }

    fn has_x(self) -> bool {
        [Dialect::XSeconds, Dialect::XEpoch, Dialect::XEnvoy].into_iter().any(|dialect| self.has(dialect))
    }
}

/// What tells Unix time; the system's clock unless there is another.
#[derive(Clone, Default)]
struct Wall(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl Wall {
    fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }
}

impl fmt::Debug for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "own" } else { "system" })
    }
}

impl Answering {
    /// As a policy and a client without wishes have it: the draft's fields, names as short as they may be, and the body that
    /// policy or client prefers.
    pub fn new() -> Self {
        Self::default()
    }

    /// How limits are called.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// The families of fields that are sent, in the place of [`Dialect::Draft`]. With none, nothing but `Retry-After` of a refusal.
    #[must_use]
    pub fn dialects(mut self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.dialects = Dialects::of(dialects);
        self
    }

    /// The body of every refusal, whatever the policy and the client say.
    #[must_use]
    pub fn body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// What tells Unix time for [`Dialect::XEpoch`], in the place of the system's clock.
    #[must_use]
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall = Wall(Some(Arc::new(now)));
        self
    }

    /// The fields that tell how the caller stands, for an allowed and a refused request alike: of every limit that counts, shadow
    /// rules and those that leave the request alone left out. A refusal has `Retry-After`, in whole seconds, at least 1 and never
    /// earlier than the request passes (if nobody else comes first), but none where no wait is enough.
    pub fn fields<'a>(&self, answer: impl Into<Answer<'a>>) -> Fields {
        let answer = answer.into();
        self.fields_of(answer, &Quotas::of(answer, self.names))
    }

    fn fields_of<'a>(&self, answer: Answer<'a>, quotas: &Quotas<'a>) -> Fields {
        let mut fields = Fields::default();
        let mut buffer = text::buffer();
        if self.dialects.has(Dialect::Draft) {
            fields.add(&fields::POLICY, draft::policy(quotas, &mut buffer));
            fields.add(&fields::LIMIT, draft::limit(quotas, &mut buffer));
        }
        let binding = answer.binding();
        let retry_after = answer.retry_after();
        if self.dialects.has_x()
            && let Some(nearest) = x_rate_limit::nearest(binding, quotas)
        {
            // What a refused client waits for is that its request passes, not that any would.
            let wait = retry_after.or(nearest.next_after);
            let reset = if self.dialects.has(Dialect::XEpoch) {
                x_rate_limit::epoch_secs(self.wall.now(), wait.unwrap_or_default())
            } else {
                wait.map_or(0, whole_seconds)
            };
            let has_all = self.dialects.has(Dialect::XEnvoy);
            fields.add(&fields::X_LIMIT, x_rate_limit::limit(nearest, quotas, has_all, &mut buffer));
            fields.add(&fields::X_REMAINING, text::number(nearest.remaining, &mut buffer));
            fields.add(&fields::X_RESET, text::number(reset, &mut buffer));
        }
        let seconds = retry_after.and_then(|wait| text::number(whole_seconds(wait), &mut buffer));
        fields.add(&RETRY_AFTER, seconds);
        fields
    }

    /// The whole response to a refused request, whose head may say what the client accepts: the [fields](Self::fields), a body, and
    /// `Cache-Control: no-store`, as RFC 6585 has it.
    ///
    /// The status is 429 whatever the reason. A cost that never fits is too much for this client's quota, not for the server, so
    /// 413 would mislead; a table without room for another client is the limiter's state and not the server's, so 503 would make a
    /// proxy take the server out. In both cases it is the missing `Retry-After` that says that no wait is enough.
    pub fn refusal<'a>(&self, answer: impl Into<Answer<'a>>, request: &HeaderMap) -> Response<Bytes> {
        let answer = answer.into();
        let quotas = Quotas::of(answer, self.names);
        let of_policy = || answer.body_of_policy().map(Body::from);
        let body = self.body.clone().or_else(of_policy).unwrap_or_else(|| accept::preferred(request));
        let (content_type, text) = body.of(answer, &quotas);
        let mut response = Response::new(text);
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.fields_of(answer, &quotas).apply(headers);
        response
    }
}

/// What is told: a policy's verdict, or the answer of a limiter by itself. References to both turn into it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Answer<'a> {
    /// Of a policy.
    Verdict(&'a Verdict),
    /// Of a limiter that has admitted a request.
    Pass(&'a Pass),
    /// Of a limiter that has refused one.
    Denied(&'a Denied),
}

impl<'a> From<&'a Verdict> for Answer<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        Self::Verdict(verdict)
    }
}

impl<'a> From<&'a Pass> for Answer<'a> {
    fn from(pass: &'a Pass) -> Self {
        Self::Pass(pass)
    }
}

impl<'a> From<&'a Denied> for Answer<'a> {
    fn from(denied: &'a Denied) -> Self {
        Self::Denied(denied)
    }
}

impl<'a> From<&'a Result<Pass, Denied>> for Answer<'a> {
    fn from(answer: &'a Result<Pass, Denied>) -> Self {
        answer.as_ref().map_or_else(Self::Denied, Self::Pass)
    }
}

impl<'a> Answer<'a> {
    /// The refusal with the longest wait; `None` if the request may go on.
    pub fn binding(self) -> Option<&'a Denied> {
        match self {
            Self::Verdict(verdict) if verdict.is_allowed() => None,
            Self::Verdict(verdict) => verdict.binding().and_then(|limit| limit.denied()),
            Self::Pass(_) => None,
            Self::Denied(denied) => Some(denied),
        }
    }

    /// What a refused client is told to wait: the shortest wait after which the same request passes, if nobody else comes first, or
    /// a longer one where the refused are [staggered](Denied::retry_after_staggered). `None` if it passes now, and where no wait is enough.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Verdict(verdict) => verdict.retry_after_staggered().filter(|_| !verdict.is_allowed()),
            Self::Pass(_) => None,
            Self::Denied(denied) => denied.retry_after_staggered(),
        }
    }

    fn body_of_policy(self) -> Option<crate::policy::RefusalBody> {
        match self {
            Self::Verdict(verdict) => verdict.refusal_body(),
            _ => None,
        }
    }
}

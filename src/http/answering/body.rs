//! The bodies of refusals.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value, json};

use super::Answer;
use super::quota::{Quota, Quotas};
use crate::answer::{Denied, whole_seconds};
use crate::decision::{Reason, WindowName};
use crate::policy::RefusalBody;

/// The body of a refusal. All but [`Own`](Self::Own) tell of the limit with the longest wait, and there of the window to wait for.
#[derive(Clone)]
#[non_exhaustive]
pub enum Body {
    /// The JSON of fine-grained rate limiting for games: `version` 1, `currentRequests` (all that the period counts),
    /// `maxRequests`, `periodInSeconds` (rounded up), and `type`, which is `sustain` for that window and `burst` for any other, as its
    /// clients know these two words alone.
    Fgrl,
    /// The newer one of the same, with `limitType`, which is `Rate`, in the place of `type`.
    FgrlLimitType,
    /// The JSON of a game back end: `code` 429, `status`, `error`, `errorCode` 1199, `errorMessage` in words, and
    /// `retryAfterSeconds`, the same as `Retry-After` and like it left out where no wait is enough.
    GameBackend,
    /// Problem details (RFC 9457) of the type that draft-ietf-httpapi-ratelimit-headers-10 has for a quota that is exceeded:
    /// `type`, `title`, `status`, `detail` in words, and `violated-policies`, which names all limits that refuse as the fields do.
    Problem,
    /// One line of text.
    Text,
    /// What a function makes of it, as [`own`](Self::own) takes it.
    Own(OwnBody),
}

/// A function that makes a body, and says what type of content it is.
pub type OwnBody = Arc<dyn Fn(Answer<'_>) -> (HeaderValue, Bytes) + Send + Sync>;

impl Body {
    /// What this function makes of an answer: the type of the content, and the content.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::HeaderValue;
    /// use tidegate::http::{Answering, Body};
    /// use tidegate::{Limit, Rate, SingleLimiter};
    ///
    /// let body = Body::own(|answer| {
    ///     let wait = answer.retry_after().unwrap_or_default().as_secs();
    ///     (HeaderValue::from_static("text/csv"), Bytes::from(format!("wait\n{wait}\n")))
    /// });
    /// let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_hour(1), 1)).build()?;
    /// let _ = limiter.check();
    /// let refusal = Answering::new().body(body).refusal(&limiter.check(), &http::HeaderMap::new());
    /// assert_eq!(refusal.headers()["content-type"], "text/csv");
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn own(make: impl Fn(Answer<'_>) -> (HeaderValue, Bytes) + Send + Sync + 'static) -> Self {
        Self::Own(Arc::new(make))
    }

    /// The type of the content, and the content.
    pub(super) fn of<'a>(&self, answer: Answer<'a>, quotas: &Quotas<'a>) -> (HeaderValue, Bytes) {
        let refused = Refused::of(answer, quotas);
        let (content_type, text) = match self {
            Self::Own(make) => return make(answer),
            Self::Fgrl => (JSON, refused.fgrl("type", refused.fgrl_type()).to_string()),
            Self::FgrlLimitType => (JSON, refused.fgrl("limitType", "Rate").to_string()),
            Self::GameBackend => (JSON, refused.game_backend().to_string()),
            Self::Problem => ("application/problem+json", refused.problem(quotas).to_string()),
            Self::Text => ("text/plain; charset=utf-8", refused.words() + "\n"),
        };
        (HeaderValue::from_static(content_type), text.into())
    }
}

impl From<RefusalBody> for Body {
    fn from(body: RefusalBody) -> Self {
        match body {
            RefusalBody::Fgrl => Self::Fgrl,
            RefusalBody::FgrlLimitType => Self::FgrlLimitType,
            RefusalBody::GameBackend => Self::GameBackend,
            RefusalBody::Problem => Self::Problem,
            RefusalBody::Text => Self::Text,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fgrl => "Fgrl",
            Self::FgrlLimitType => "FgrlLimitType",
            Self::GameBackend => "GameBackend",
            Self::Problem => "Problem",
            Self::Text => "Text",
            Self::Own(_) => "Own",
        })
    }
}

const JSON: &str = "application/json";

/// What bodies tell of; nothing of an answer that is no refusal.
struct Refused<'q, 'a> {
    binding: Option<(&'a Denied, &'q [u8], &'q Quota<'a>)>,
    retry_after_secs: Option<u64>,
}

impl<'q, 'a> Refused<'q, 'a> {
    fn of(answer: Answer<'a>, quotas: &'q Quotas<'a>) -> Self {
        let binding = answer.binding().and_then(|denied| {
            let (name, quota) = quotas.binding(denied)?;
            Some((denied, name, quota))
        });
        Self { binding, retry_after_secs: answer.retry_after().map(whole_seconds) }
    }

    fn fgrl_type(&self) -> &'static str {
        match self.binding {
            Some((_, _, quota)) if quota.state.name == WindowName::Sustain => "sustain",
            _ => "burst",
        }
    }

    fn fgrl(&self, kind: &str, of_kind: &str) -> Value {
        let mut all = Map::new();
        all.insert("version".to_owned(), 1.into());
        all.insert(kind.to_owned(), of_kind.into());
        if let Some((_, _, Quota { state, .. })) = self.binding {
            all.insert("currentRequests".to_owned(), state.observed.into());
            all.insert("maxRequests".to_owned(), state.limit.into());
            all.insert("periodInSeconds".to_owned(), whole_seconds(state.period).into());
        }
        all.into()
    }

    fn game_backend(&self) -> Value {
        let mut all = json!({
            "code": 429,
            "status": "TooManyRequests",
            "error": "APIClientRequestRateLimitExceeded",
            "errorCode": 1199,
            "errorMessage": self.words(),
        });
        if let Some(seconds) = self.retry_after_secs {
            all["retryAfterSeconds"] = seconds.into();
        }
        all
    }

    fn problem(&self, quotas: &Quotas<'_>) -> Value {
        let violated = quotas.told().filter(|(_, quota)| quota.refuses).map(|(name, _)| shown(name));
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": self.words(),
            "violated-policies": violated.collect::<Vec<_>>(),
        })
    }

    /// Why, and when it is worth another try, in a sentence or two. One line.
    fn words(&self) -> String {
        let Some((denied, name, quota)) = self.binding else { return "Too many requests.".to_owned() };
        let (name, state) = (shown(name), &quota.state);
        let limit = match state.name {
            WindowName::Bucket => format!("of {} at once", state.limit),
            WindowName::Sliding => format!("of {} in any {}", state.limit, told(state.period)),
            _ => format!("of {} in {}", state.limit, told(state.period)),
        };
        let mut words = match denied.reason() {
            Reason::TooLarge => {
                format!("A cost of {} can never fit the limit \"{name}\" {limit}.", denied.cost)
            }
            Reason::Full => format!("There is no room to count one more client under the limit \"{name}\"."),
            _ => format!("The limit \"{name}\" {limit} is used up: {} used.", state.observed),
        };
        if let Some(seconds) = self.retry_after_secs {
            words.push_str(&format!(" Try again in {seconds} s."));
        }
        words
    }
}

/// A name, which is printable ASCII.
fn shown(name: &[u8]) -> String {
    name.iter().copied().map(char::from).collect()
}

/// `15 s`, `0.5 s`.
fn told(period: Duration) -> String {
    format!("{} s", period.as_secs_f64())
}

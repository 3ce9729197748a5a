//! The fields of one response.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields that tell a client how it stands, made by [`Answering::fields`](super::Answering::fields). Each is there or not, and
/// none is there twice.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    pub(super) policy: Option<HeaderValue>,
    pub(super) limit: Option<HeaderValue>,
    pub(super) x_limit: Option<HeaderValue>,
    pub(super) x_remaining: Option<HeaderValue>,
    pub(super) x_reset: Option<HeaderValue>,
    pub(super) retry_after: Option<HeaderValue>,
}

static POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

impl Fields {
    /// Sets them in a response, in the place of any of the same names.
    pub fn apply(self, headers: &mut HeaderMap) {
        let Self { policy, limit, x_limit, x_remaining, x_reset, retry_after } = self;
        let all = [
            (&POLICY, policy),
            (&LIMIT, limit),
            (&X_LIMIT, x_limit),
            (&X_REMAINING, x_remaining),
            (&X_RESET, x_reset),
            (&RETRY_AFTER, retry_after),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
    }

    /// The fields one by one.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let all = [
            (&POLICY, &self.policy),
            (&LIMIT, &self.limit),
            (&X_LIMIT, &self.x_limit),
            (&X_REMAINING, &self.x_remaining),
            (&X_RESET, &self.x_reset),
            (&RETRY_AFTER, &self.retry_after),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}

//! The fields of one response.

use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

/// The fields that tell a client how it stands, made by [`Answering::fields`](super::Answering::fields). Each is there or not, and
/// none is there twice.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Two are what an admitted request is told.
    all: SmallVec<[(&'static HeaderName, HeaderValue); 2]>,
}

pub(super) static POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(super) static LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) static X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) static X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) static X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

impl Fields {
    /// Adds one that is not there yet, if there is something to tell.
    pub(super) fn add(&mut self, name: &'static HeaderName, value: Option<HeaderValue>) {
        self.all.extend(value.map(|value| (name, value)));
    }

    /// Sets them in a response, in the place of any of the same names.
    pub fn apply(self, headers: &mut HeaderMap) {
        for (name, value) in self.all {
            headers.insert(name, value);
        }
    }

    /// The fields one by one.
    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.all.iter().map(|(name, value)| (*name, value))
    }
}

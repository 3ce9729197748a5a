//! From the head of a request to what a policy may ask of it.

use std::borrow::Cow;

use http::{Extensions, HeaderMap, HeaderName, Method, Request, Uri};

use super::client::ClientAddress;
use super::facts::{Facts, Missing};

/// A request without its body, borrowed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'r> {
    /// The method.
    pub method: &'r Method,
    /// What is asked for.
    pub uri: &'r Uri,
    /// The fields.
    pub headers: &'r HeaderMap,
    /// What the server knows besides.
    pub extensions: &'r Extensions,
}

impl<'r> Head<'r> {
    /// Of a request.
    pub fn of<B>(request: &'r Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

/// Says of a request what a policy may ask of it.
pub trait Extract: Send + Sync {
    /// What is known of the request.
    ///
    /// # Errors
    /// What it lacks, where it may not go on without.
    fn extract<'r>(&self, head: Head<'r>) -> Result<Facts<'r>, Missing>;
}

/// Where a part of a request is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// A field of the request, by name.
    Header(HeaderName),
    /// The token of `Authorization: Bearer`: the first 16 hexadecimal digits of its SHA-256.
    Bearer,
    /// The path.
    Path,
    /// The pattern that the path matched, where axum routes.
    Route,
    /// A function of one's own.
    From(for<'r> fn(Head<'r>) -> Option<Cow<'r, str>>),
}

/// What becomes of a request that lacks a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissing {
    /// It is counted by its address in that part's place.
    #[default]
    Address,
    /// It goes on uncounted.
    Allow,
    /// It is refused.
    Refuse,
}

/// An [`Extract`] of ready pieces.
#[derive(Clone, Debug, Default)]
pub struct Extractor {
    addresses: ClientAddress,
}

impl Extractor {
    /// How the address of the client is found.
    #[must_use]
    pub fn addresses(mut self, addresses: ClientAddress) -> Self {
        self.addresses = addresses;
        self
    }
}

impl Extract for Extractor {
    fn extract<'r>(&self, head: Head<'r>) -> Result<Facts<'r>, Missing> {
        Ok(Facts { api: head.uri.path().into(), ..Facts::default() })
    }
}

//! What is known of a request, borrowed from it or made.

use std::borrow::Cow;
use std::net::IpAddr;

use smallvec::SmallVec;

use crate::policy::{Entity, EntityType, Request};

/// What a policy may ask of a request, each part borrowed from it or made; see [`Request`], which is the same with everything borrowed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Facts<'r> {
    /// The name of the API, service or route.
    pub api: Cow<'r, str>,
    /// The title's id.
    pub title: Option<Cow<'r, str>>,
    /// The namespace's id.
    pub namespace: Option<Cow<'r, str>>,
    /// Who calls.
    pub caller: Option<(EntityType, Cow<'r, str>)>,
    /// Whom the call is about.
    pub target: Option<(EntityType, Cow<'r, str>)>,
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// Whether the caller has proved who it is.
    pub is_authenticated: bool,
    /// What the request costs, by its own account; 1 unless said.
    pub cost: Option<u64>,
    /// Anything else, by name.
    pub attributes: SmallVec<[(Cow<'r, str>, Cow<'r, str>); 4]>,
}

/// What a request lacks that its key needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The part, as policy files call it: `user`, `attribute:api_key`, …
    pub part: String,
}

impl Facts<'_> {
    /// Hands the request that they make to `then`.
    pub fn with_request<T>(&self, then: impl FnOnce(&Request<'_>) -> T) -> T {
        let attributes: SmallVec<[(&str, &str); 8]> =
            self.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut request =
            Request::new(&self.api).authenticated(self.is_authenticated).attributes(&attributes);
        request.title = self.title.as_deref();
        request.namespace = self.namespace.as_deref();
        request.caller = self.caller.as_ref().map(|(kind, id)| Entity::new(*kind, id));
        request.target = self.target.as_ref().map(|(kind, id)| Entity::new(*kind, id));
        request.client_ip = self.client_ip;
        request.cost = self.cost.unwrap_or(1);
        then(&request)
    }
}

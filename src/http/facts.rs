//! What is known of a request, borrowed from it or made.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use smallvec::SmallVec;

use crate::policy::{Entity, EntityType, Request};

/// What a policy may ask of a request, each part borrowed from it or made; see [`Request`], which is the same with everything
/// borrowed.
///
/// ```
/// use tidegate::http::Facts;
/// use tidegate::policy::EntityType;
///
/// let facts = Facts { title: Some("chess".into()), ..Facts::new("profile") };
/// let facts = facts.user("ada");
/// assert_eq!(facts.caller, Some((EntityType::TitlePlayerAccount, "ada".into())));
/// facts.with_request(|request| assert_eq!((request.title, request.cost), (Some("chess"), 1)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The client's address. All requests without one have one count in a rule by address.
    pub client_ip: Option<IpAddr>,
    /// Whether the caller has proved who it is.
    pub is_authenticated: bool,
    /// What the request costs, by its own account; 1 unless said.
    pub cost: Option<u64>,
    /// Anything else, by name.
    pub attributes: SmallVec<[(Cow<'r, str>, Cow<'r, str>); 4]>,
}

impl<'r> Facts<'r> {
    /// A request to an API of which nothing else is known.
    pub fn new(api: impl Into<Cow<'r, str>>) -> Self {
        Self { api: api.into(), ..Self::default() }
    }

    /// A player of this id calls, and has proved it; as [`Request::user`].
    #[must_use]
    pub fn user(mut self, id: impl Into<Cow<'r, str>>) -> Self {
        self.caller = Some((EntityType::TitlePlayerAccount, id.into()));
        self.is_authenticated = true;
        self
    }

    /// Adds an attribute. Of two with one name the first counts.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<Cow<'r, str>>, value: impl Into<Cow<'r, str>>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Hands the request that they make to `then`. Allocates only where there are more than 8 attributes.
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

    /// The same with nothing borrowed, for what outlives the request.
    pub fn into_owned(self) -> Facts<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Facts {
            api: own(self.api),
            title: self.title.map(own),
            namespace: self.namespace.map(own),
            caller: self.caller.map(|(kind, id)| (kind, own(id))),
            target: self.target.map(|(kind, id)| (kind, own(id))),
            client_ip: self.client_ip,
            is_authenticated: self.is_authenticated,
            cost: self.cost,
            attributes: self.attributes.into_iter().map(|(name, value)| (own(name), own(value))).collect(),
        }
    }
}

/// What a request lacks that its key needs, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The part, as policy files call it: `user`, `attribute:api_key`, …
    pub part: Cow<'static, str>,
    /// The status that it is refused with; `None`: it goes on, and nothing counts it.
    pub status: Option<StatusCode>,
}

impl Missing {
    /// The client has left out this part: the request is refused with 400, because waiting does not mend it, as a 429
    /// would say, and no challenge is offered, as a 401 must.
    pub fn refused(part: impl Into<Cow<'static, str>>) -> Self {
        Self { part: part.into(), status: Some(StatusCode::BAD_REQUEST) }
    }

    /// The server cannot tell this part, whatever the client sends: the request is refused with 500, for it is the server that
    /// is to be mended.
    pub fn unknown_to_server(part: impl Into<Cow<'static, str>>) -> Self {
        Self { part: part.into(), status: Some(StatusCode::INTERNAL_SERVER_ERROR) }
    }

    /// The request goes on without this part, and nothing counts it.
    pub fn uncounted(part: impl Into<Cow<'static, str>>) -> Self {
        Self { part: part.into(), status: None }
    }

    /// The whole response to the request, of one line of text, not to be stored; `None` if it goes on.
    pub fn refusal(&self) -> Option<Response<Bytes>> {
        let mut response = Response::new(Bytes::from(format!("{self}\n")));
        *response.status_mut() = self.status?;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(response)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, status } = self;
        if *status == Some(StatusCode::INTERNAL_SERVER_ERROR) {
            write!(
                f,
                "this server is not told the {part} of its requests: with axum, serve it with \
                 into_make_service_with_connect_info, elsewhere give each request a PeerAddress; or say that it is \
                 limited without_address"
            )
        } else {
            write!(f, "the request has no {part}, or more than one")
        }
    }
}

impl std::error::Error for Missing {}

//! The head of a request, and what servers know besides.

use std::net::{IpAddr, SocketAddr};

use http::{Extensions, HeaderMap, Method, Request, Uri};

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

    /// The address of the connection's other end: of a [`PeerAddress`] or a [`SocketAddr`] among the extensions or, with the
    /// feature `axum`, of axum's `ConnectInfo<SocketAddr>`, as `into_make_service_with_connect_info` adds it; of the first of
    /// them that is there.
    pub fn peer(&self) -> Option<IpAddr> {
        let ours = || self.extensions.get::<PeerAddress>().map(|peer| peer.0);
        let socket = || self.extensions.get::<SocketAddr>().map(SocketAddr::ip);
        ours().or_else(socket).or_else(|| connect_info(self.extensions))
    }

    /// The pattern that the path matched, where axum routes.
    pub(super) fn route(&self) -> Option<&'r str> {
        #[cfg(feature = "axum")]
        return self.extensions.get::<axum::extract::MatchedPath>().map(axum::extract::MatchedPath::as_str);
        #[cfg(not(feature = "axum"))]
        None
    }
}

/// The address of a connection's other end, as an extension of its requests: for servers that are not axum's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(pub IpAddr);

#[cfg(feature = "axum")]
fn connect_info(extensions: &Extensions) -> Option<IpAddr> {
    let info = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>();
    info.map(|info| info.0.ip())
}

#[cfg(not(feature = "axum"))]
fn connect_info(_: &Extensions) -> Option<IpAddr> {
    None
}

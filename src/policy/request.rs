//! A request as rules see it: borrowed, and built without allocation.

use std::net::IpAddr;

use super::rule::Entity;

/// What a policy may ask of a request. Everything is borrowed; what a server does not know it leaves out.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The name of the API, service or route.
    pub api: &'a str,
    /// The title's id.
    pub title: Option<&'a str>,
    /// The namespace's id.
    pub namespace: Option<&'a str>,
    /// Who calls.
    pub caller: Option<Entity<'a>>,
    /// Whom the call is about, if its body names one.
    pub target: Option<Entity<'a>>,
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// Whether the caller has proved who it is.
    pub is_authenticated: bool,
    /// What the request costs, by its own account; read where a rule says so.
    pub cost: u64,
    /// Anything else, by name.
    pub attributes: &'a [(&'a str, &'a str)],
}

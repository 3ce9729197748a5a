//! A request as rules see it: borrowed, and built without allocation.

use std::net::IpAddr;

use super::rule::{Entity, EntityType};

/// What a policy may ask of a request. Everything is borrowed; what a server does not know it leaves out.
///
/// ```
/// use tidegate::policy::{Entity, EntityType, Request};
///
/// let request = Request::new("profile")
///     .title("1717113201")
///     .caller(Entity::new(EntityType::TitlePlayerAccount, "408C36ADC841C0CD"))
///     .authenticated(true)
///     .attributes(&[("method", "GET")]);
/// assert_eq!(request.attribute("method"), Some("GET"));
/// ```
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

impl<'a> Request<'a> {
    /// A request to an API of which nothing else is known: nobody has proved who calls, and it costs 1.
    pub const fn new(api: &'a str) -> Self {
        Self {
            api,
            title: None,
            namespace: None,
            caller: None,
            target: None,
            client_ip: None,
            is_authenticated: false,
            cost: 1,
            attributes: &[],
        }
    }

    /// The title that it is made in.
    #[must_use]
    pub const fn title(mut self, id: &'a str) -> Self {
        self.title = Some(id);
        self
    }

    /// The namespace that it is made in.
    #[must_use]
    pub const fn namespace(mut self, id: &'a str) -> Self {
        self.namespace = Some(id);
        self
    }

    /// Who calls. Whether that is proved, [`authenticated`](Self::authenticated) says.
    #[must_use]
    pub const fn caller(mut self, caller: Entity<'a>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// A player of this id calls, and has proved it: short for a caller of type
    /// [`TitlePlayerAccount`](EntityType::TitlePlayerAccount) that is authenticated.
    #[must_use]
    pub const fn user(self, id: &'a str) -> Self {
        self.caller(Entity::new(EntityType::TitlePlayerAccount, id)).authenticated(true)
    }

    /// Whom the call is about.
    #[must_use]
    pub const fn target(mut self, target: Entity<'a>) -> Self {
        self.target = Some(target);
        self
    }

    /// The client's address, as a trusted proxy or the connection tells it.
    #[must_use]
    pub const fn client_ip(mut self, address: IpAddr) -> Self {
        self.client_ip = Some(address);
        self
    }

    /// Whether the caller has proved who it is.
    #[must_use]
    pub const fn authenticated(mut self, is_authenticated: bool) -> Self {
        self.is_authenticated = is_authenticated;
        self
    }

    /// What it costs, by its own account.
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Anything else, by name. Of two with one name the first counts.
    #[must_use]
    pub const fn attributes(mut self, attributes: &'a [(&'a str, &'a str)]) -> Self {
        self.attributes = attributes;
        self
    }

    /// The value of an attribute, if it has it.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }
}

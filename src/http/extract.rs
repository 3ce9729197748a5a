//! From the head of a request to what a policy may ask of it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use super::client::ClientAddress;
use super::facts::{Facts, Missing};
use super::head::Head;
use super::path;
use super::source::{STAND_IN, Source};
use crate::policy::EntityType;

/// The part that is an address.
const CLIENT_IP: &str = "client_ip";

/// Says of a request what a policy may ask of it. An [`Extractor`] does, or a function of one's own:
///
/// ```
/// use tidegate::http::{Extract, Facts, Head, Missing};
///
/// fn extract<'r>(head: Head<'r>) -> Result<Facts<'r>, Missing> {
///     let tenant = head.uri.host().ok_or(Missing::refused("title"))?;
///     Ok(Facts { title: Some(tenant.into()), client_ip: head.peer(), ..Facts::new("shop") })
/// }
///
/// fn takes(extract: impl Extract) {}
/// takes(extract);
/// ```
pub trait Extract: Send + Sync {
    /// What is known of the request.
    ///
    /// # Errors
    /// What it lacks, where it may not go on as any other, and what becomes of it.
    fn extract<'r>(&'r self, head: Head<'r>) -> Result<Facts<'r>, Missing>;
}

impl<F> Extract for F
where
    F: for<'r> Fn(Head<'r>) -> Result<Facts<'r>, Missing> + Send + Sync,
{
    fn extract<'r>(&'r self, head: Head<'r>) -> Result<Facts<'r>, Missing> {
        self(head)
    }
}

/// What becomes of a request that lacks a part which the [`Extractor`] was told to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissing {
    /// Its address stands in that part's place, as a text that no client can send: `⟨192.0.2.7⟩`, of IPv6 the network,
    /// `⟨2001:db8::/64⟩`. So who leaves a part out is counted with the others at that address that do, and nobody has proved to be
    /// somebody by it. Nothing stands in for the name of an API, of which rules are, nor where no address is known: the request is
    /// then refused, as below.
    #[default]
    Address,
    /// **It goes on, and no rule counts it**, those included that need no such part: whoever leaves it out has no limit. For a
    /// while of trying things out.
    Allow,
    /// It is refused, with 400 and a line that names the part: see [`Missing::refused`].
    Refuse,
}

/// An [`Extract`] of ready pieces.
///
/// Unless told, it knows of a request: its API, by axum's pattern of the route (`/users/{id}`) if there is one, else by its
/// [path](Source::Path); the attribute `method`; and the client's address, which is the connection's other end.
///
/// ```
/// use http::HeaderName;
/// use tidegate::http::{ClientAddress, Extract, Extractor, Forwarding, Head, PeerAddress, Source};
///
/// let extractor = Extractor::new()
///     .addresses(ClientAddress::behind(["10.0.0.0/8".parse()?], Forwarding::XForwardedFor))
///     .user(Source::Header(HeaderName::from_static("x-user")));
///
/// let peer = PeerAddress("10.0.0.1".parse()?);
/// let request = http::Request::get("/basket/?page=2").extension(peer).header("x-forwarded-for", "192.0.2.7");
/// let request = request.body(())?;
/// let facts = extractor.extract(Head::of(&request))?;
/// assert_eq!(facts.api, "/basket");
/// assert_eq!(facts.client_ip, Some("192.0.2.7".parse()?));
/// // It names no user: the address stands in, and has proved nothing.
/// assert_eq!(facts.caller.map(|(_, id)| id).as_deref(), Some("⟨192.0.2.7⟩"));
/// assert!(!facts.is_authenticated);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The address
///
/// A request must have one: where the server tells none (see [`Head::peer`]), each is refused with 500, because one count for all clients
/// together would be nobody's wish and none would be no limit. [`without_address`](Self::without_address) goes on without.
///
/// # Cost
///
/// Everything is borrowed from the request, but an id of a token, a path that is not spelt the plain way, and an address that stands in
/// for a part: each of these allocates one short text.
#[derive(Clone, Debug)]
pub struct Extractor {
    /// The route or else the path, if nothing is said.
    api: Option<Source>,
    title: Option<Source>,
    namespace: Option<Source>,
    caller: Option<(EntityType, Source)>,
    is_authenticated: bool,
    target: Option<(EntityType, Source)>,
    attributes: Vec<Attribute>,
    /// `None`: nobody has an address.
    addresses: Option<ClientAddress>,
    on_missing: OnMissing,
}

#[derive(Clone, Debug)]
struct Attribute {
    name: Cow<'static, str>,
    source: Source,
    may_lack: bool,
}

impl Default for Extractor {
    fn default() -> Self {
        Self {
            api: None,
            title: None,
            namespace: None,
            caller: None,
            is_authenticated: true,
            target: None,
            attributes: Vec::new(),
            addresses: Some(ClientAddress::default()),
            on_missing: OnMissing::default(),
        }
    }
}

impl Extractor {
    /// One that knows the API, the method and the address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the name of the API is read.
    #[must_use]
    pub fn api(mut self, source: Source) -> Self {
        self.api = Some(source);
        self
    }

    /// Where the title's id is read.
    #[must_use]
    pub fn title(mut self, source: Source) -> Self {
        self.title = Some(source);
        self
    }

    /// Where the namespace's id is read.
    #[must_use]
    pub fn namespace(mut self, source: Source) -> Self {
        self.namespace = Some(source);
        self
    }

    /// Where the id of the player is read that calls: a caller of type
    /// [`TitlePlayerAccount`](EntityType::TitlePlayerAccount). Who is named has proved it, unless
    /// [`authenticated`](Self::authenticated) says otherwise: so read it where something trusted has written it.
    #[must_use]
    pub fn user(self, source: Source) -> Self {
        self.caller(EntityType::TitlePlayerAccount, source)
    }

    /// The same of a caller of another type.
    #[must_use]
    pub fn caller(mut self, kind: EntityType, source: Source) -> Self {
        self.caller = Some((kind, source));
        self
    }

    /// Whether a caller who is named has proved to be it: `true` unless told.
    #[must_use]
    pub fn authenticated(mut self, is_authenticated: bool) -> Self {
        self.is_authenticated = is_authenticated;
        self
    }

    /// Where the id is read of whom the call is about. A request that names none is about nobody else: no part is missing.
    #[must_use]
    pub fn target(mut self, kind: EntityType, source: Source) -> Self {
        self.target = Some((kind, source));
        self
    }

    /// Where an attribute is read. Of two with one name the first counts that was told.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<Cow<'static, str>>, source: Source) -> Self {
        self.attributes.push(Attribute { name: name.into(), source, may_lack: false });
        self
    }

    /// The same of one that requests may well lack: it is then left out, and all that lack it have one count in a rule by it.
    #[must_use]
    pub fn attribute_if_any(mut self, name: impl Into<Cow<'static, str>>, source: Source) -> Self {
        self.attributes.push(Attribute { name: name.into(), source, may_lack: true });
        self
    }

    /// How the address of the client is found.
    #[must_use]
    pub fn addresses(mut self, addresses: ClientAddress) -> Self {
        self.addresses = Some(addresses);
        self
    }

    /// Leaves addresses out: a rule by `client_ip` then counts all clients together.
    #[must_use]
    pub fn without_address(mut self) -> Self {
        self.addresses = None;
        self
    }

    /// What becomes of a request that lacks what was to be read.
    #[must_use]
    pub fn on_missing(mut self, on_missing: OnMissing) -> Self {
        self.on_missing = on_missing;
        self
    }

    fn client_ip(&self, head: Head<'_>) -> Result<Option<IpAddr>, Missing> {
        let Some(addresses) = &self.addresses else { return Ok(None) };
        let peer = head.peer().ok_or(Missing::unknown_to_server(CLIENT_IP))?;
        let address = addresses.address(peer, head.headers);
        address.map(Some).ok_or_else(|| self.without(CLIENT_IP))
    }

    /// What becomes of a request that lacks a part for which nothing stands in.
    fn without(&self, part: impl Into<Cow<'static, str>>) -> Missing {
        match self.on_missing {
            OnMissing::Allow => Missing::uncounted(part),
            OnMissing::Address | OnMissing::Refuse => Missing::refused(part),
        }
    }

    /// What stands in for a part.
    fn stand_in<'r>(
        &self,
        address: Option<IpAddr>,
        part: impl FnOnce() -> Cow<'static, str>,
    ) -> Result<Cow<'r, str>, Missing> {
        match (self.on_missing, address) {
            (OnMissing::Address, Some(address)) => Ok(Cow::Owned(as_part(address))),
            _ => Err(self.without(part())),
        }
    }
}

impl Extract for Extractor {
    fn extract<'r>(&'r self, head: Head<'r>) -> Result<Facts<'r>, Missing> {
        let client_ip = self.client_ip(head)?;
        let api = match &self.api {
            Some(source) => source.read(head).ok_or_else(|| self.without("api"))?,
            None => head.route().map_or_else(|| path::normal(head.uri.path()), Cow::Borrowed),
        };
        let part = |source: &'r Source, name| {
            source.read(head).map_or_else(|| self.stand_in(client_ip, || Cow::Borrowed(name)), Ok)
        };
        let of = |source: &'r Option<Source>, name| source.as_ref().map(|it| part(it, name)).transpose();
        let mut facts = Facts::new(api);
        facts.client_ip = client_ip;
        facts.title = of(&self.title, "title")?;
        facts.namespace = of(&self.namespace, "namespace")?;
        if let Some((kind, source)) = &self.caller {
            let id = part(source, "user")?;
            facts.is_authenticated = self.is_authenticated && !id.starts_with(STAND_IN);
            facts.caller = Some((*kind, id));
        }
        facts.target = self.target.as_ref().and_then(|(kind, source)| Some((*kind, source.read(head)?)));
        for Attribute { name, source, may_lack } in &self.attributes {
            let value = match source.read(head) {
                None if *may_lack => continue,
                None => self.stand_in(client_ip, || format!("attribute:{name}").into())?,
                Some(value) => value,
            };
            facts.attributes.push((Cow::Borrowed(&**name), value));
        }
        facts.attributes.push((Cow::Borrowed("method"), Cow::Borrowed(head.method.as_str())));
        Ok(facts)
    }
}

/// An address as a text that no source gives: of IPv6 the network of the first 64 bits, which is one client's.
fn as_part(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{STAND_IN}{address}⟩"),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX));
            format!("{STAND_IN}{network}/64⟩")
        }
    }
}

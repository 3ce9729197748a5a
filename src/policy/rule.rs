//! What a policy says: plain values, as a file or a builder gives them. Nothing here is checked; a policy that is built from
//! them is.

use std::sync::Arc;

use crate::limit::Limit;
use crate::settings::MAX_KEYS_DEFAULT;
use crate::table::OnFull;

/// Everything that a policy says.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// What people call it.
    pub name: String,
    /// How the rules that match one request count it.
    pub counting: Counting,
    /// Which of the rules that match count it.
    pub matching: Matching,
    /// The body of a refusal over HTTP; `None`: what each client accepts.
    pub body: Option<RefusalBody>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
}

/// How the rules that match a request count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Each for itself, whether or not another refuses the request.
    #[default]
    EveryRule,
    /// All of them or, if one refuses, none.
    AllOrNothing,
}

/// Which of the rules that match a request are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matching {
    /// All of them.
    #[default]
    All,
    /// The first in their order.
    First,
}

/// What the body of a refusal over HTTP looks like, of those that a policy file can name. What stands in them the feature `http`
/// tells, which makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalBody {
    /// That of fine-grained rate limiting for games, whose `type` is `burst` or `sustain`.
    Fgrl,
    /// The newer one of the same, which has `limitType` in the place of `type`.
    FgrlLimitType,
    /// That of a game back end: a `code`, an `error` and an `errorCode`.
    GameBackend,
    /// Problem details (RFC 9457).
    Problem,
    /// One line of text.
    Text,
}

/// One rule: these requests, counted under this key, may be so many.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique in its policy; what a reload knows the rule by, and what clients are told where the policy has more than one limit.
    pub name: String,
    /// The requests that it is about.
    pub matcher: Matcher,
    /// What they are counted under; nothing: all of them together.
    pub key: Vec<KeyPart>,
    /// What each key may have; several limits at once, each with a count of its own.
    pub limits: Vec<Limit>,
    /// The requests that it leaves alone although they match.
    pub exempt: Exempt,
    /// Keys that have other limits.
    pub overrides: Vec<Override>,
    /// Decides and reports, and never refuses.
    pub shadow: bool,
    /// What a request costs.
    pub cost: Cost,
    /// Whether requests that it refuses count in its windows. (A bucket counts none.)
    pub on_refusal: OnRefusal,
    /// When those who are refused are told to come back; `None`: [`Retry::Staggered`] if the key is one that many callers share
    /// ([`staggers`](Self::staggers) tells), else [`Retry::Exact`].
    pub retry: Option<Retry>,
    /// The share of a limit, in percent, that is worth a warning: 1 to 100.
    pub warn_percent: u8,
    /// Keys that it has room for.
    pub max_keys: usize,
    /// What happens to a new key that finds no room.
    pub on_full: OnFull,
}

/// The share of a limit that is worth a warning, unless told.
pub(super) const WARN_PERCENT_DEFAULT: u8 = 80;

impl Rule {
    /// A rule about every request, with everything else as a file has it that says no more: it exempts nobody, a request costs 1,
    /// refused ones count, 80 % of a limit is worth a warning, and there is room for 100 000 keys.
    pub fn new(name: impl Into<String>, key: Vec<KeyPart>, limits: Vec<Limit>) -> Self {
        Self {
            name: name.into(),
            matcher: Matcher::default(),
            key,
            limits,
            exempt: Exempt::default(),
            overrides: Vec::new(),
            shadow: false,
            cost: Cost::Fixed(1),
            on_refusal: OnRefusal::default(),
            retry: None,
            warn_percent: WARN_PERCENT_DEFAULT,
            max_keys: MAX_KEYS_DEFAULT,
            on_full: OnFull::default(),
        }
    }

    /// Whether those whom it refuses are told to come back one after the other: as [`retry`](Self::retry) says, and by itself where
    /// nothing but a title, a namespace, a network of several clients or nothing at all makes the key. (A network of several has
    /// fewer than 32 bits of an IPv4 address, or fewer than 64 of an IPv6 one.) A rule that only watches tells nobody, and does not.
    pub fn staggers(&self) -> bool {
        let is_shared = |part: &KeyPart| match part {
            KeyPart::Title | KeyPart::Namespace => true,
            KeyPart::ClientIp { v4_bits, v6_bits } => *v4_bits < 32 || *v6_bits < 64,
            KeyPart::User | KeyPart::Entity | KeyPart::Attribute(_) | KeyPart::Custom(..) => false,
        };
        let is_told =
            self.retry.map_or_else(|| self.key.iter().all(is_shared), |retry| retry == Retry::Staggered);
        is_told && !self.shadow
    }
}

/// Which requests a rule is about: those that meet every condition given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// The API's (service's, route's) name is one of these; empty: any.
    pub apis: Vec<Pattern>,
    /// Each of these attributes is there and is one of the patterns beside it; nothing is one of none.
    pub attributes: Vec<(String, Vec<Pattern>)>,
}

/// A text to be met.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// This text and no other.
    Exact(String),
    /// Any text that begins so.
    Prefix(String),
    /// `*` stands for any number of characters, `?` for one.
    Glob(String),
}

/// A part of a key. A key is composed of one or several.
#[derive(Clone)]
pub enum KeyPart {
    /// The title's id.
    Title,
    /// The namespace's id.
    Namespace,
    /// The caller's id.
    User,
    /// The network that the client's address is in, by so many leading bits of it.
    ClientIp {
        /// Of an IPv4 address, 32 for all of it; 0: all addresses together.
        v4_bits: u8,
        /// Of an IPv6 address, 64 for the usual network of one client; 0 as above.
        v6_bits: u8,
    },
    /// Whom a game back end counts a call against: the address of a caller who is not authenticated; the caller if no target
    /// is named, or the caller is a player (`MasterPlayerAccount`, `TitlePlayerAccount`, `Character`); else the target.
    Entity,
    /// The value of an attribute.
    Attribute(String),
    /// What a function of the user's makes of a request, with a name for messages. Of code only; no file can say it.
    Custom(&'static str, CustomKey),
}

impl std::fmt::Debug for KeyPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Title => f.write_str("title"),
            Self::Namespace => f.write_str("namespace"),
            Self::User => f.write_str("user"),
            Self::ClientIp { v4_bits, v6_bits } => write!(f, "client_ip/{v4_bits}/{v6_bits}"),
            Self::Entity => f.write_str("entity"),
            Self::Attribute(name) => write!(f, "attribute:{name}"),
            Self::Custom(name, _) => write!(f, "custom:{name}"),
        }
    }
}

/// A function that makes a part of a key of a request.
pub type CustomKey = Arc<dyn Fn(&super::Request<'_>, &mut dyn std::hash::Hasher) + Send + Sync>;

/// The requests that a rule leaves alone: those that meet any of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exempt {
    /// Titles by id: those published before a date, for one.
    pub titles: Vec<String>,
    /// Namespaces by id.
    pub namespaces: Vec<String>,
    /// Callers by id; only where the request [is authenticated](super::Request::is_authenticated).
    pub callers: Vec<String>,
    /// Callers of these types; only where the request is authenticated.
    pub caller_types: Vec<EntityType>,
    /// APIs.
    pub apis: Vec<Pattern>,
    /// Attributes of which one has one of these values.
    pub attributes: Vec<(String, Vec<Pattern>)>,
}

/// Other limits for one key. What it has used counts in them, and stays used when an override comes, changes or goes with a
/// reload.
///
/// The overrides of a rule may have 255 different limits in the place of each of its own, shared by any number of keys. A reload that
/// brings more than three, or than there were at the start, makes that limit anew. (Each place takes from the bits that a
/// limit's counts have; see [`max_tiers`](crate::Builder::max_tiers).)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The key, part by part, each as text; an address part as a network, `192.0.2.0/24`, or an address in it.
    pub key: Vec<String>,
    /// As many as the rule has, and each of the same kind and periods as the rule's in its place.
    pub limits: Vec<Limit>,
}

/// What a request costs; never less than 1, so that no cost that somebody computes as 0 passes for free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The same for each.
    Fixed(u64),
    /// What the request says it costs.
    OfRequest,
    /// The number in an attribute, rounded up; 1 where there is none, and the most there is where what is there is no number: that
    /// fits no limit.
    Attribute(String),
}

/// Whether refused requests count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnRefusal {
    /// They do, as requests that pass do.
    #[default]
    Count,
    /// They do not.
    Ignore,
}

/// When those who are refused are told to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// As soon as the same request passes if nobody else comes first.
    Exact,
    /// One after the other, as what is refused comes back; see [`Builder::stagger`](crate::Builder::stagger).
    Staggered,
}

/// What a caller or a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntityType {
    /// A namespace (a publisher's).
    Namespace,
    /// A title.
    Title,
    /// A player over all titles of a namespace.
    MasterPlayerAccount,
    /// A player in one title.
    TitlePlayerAccount,
    /// A character of a player's.
    Character,
    /// A group of entities.
    Group,
    /// A server that a title runs.
    GameServer,
    /// Whatever else a back end knows, by its own name for it in an attribute.
    Other,
}

/// A caller or a target: what it is, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entity<'a> {
    /// What it is.
    pub kind: EntityType,
    /// Its id.
    pub id: &'a str,
}

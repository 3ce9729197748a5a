//! Where messages go, and of what.

use std::fmt;
use std::time::Duration;

use super::addresses::{Addresses, IpNet};
use super::error::WebhookError;
use super::post::Key;
use crate::policy::{Event, Offender, Pattern};

/// The shortest and the longest time between two messages.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(86_400));
/// The most secrets that sign at once. Two are enough for a rotation.
const SECRETS_MAX: usize = 4;
/// How long a name may be, in bytes.
const NAME_MAX: usize = 64;

/// One receiver of messages: a partner, or your own pager.
///
/// By itself it gets what happens to every key of every rule; [`rules`](Self::rules) and [`keys`](Self::keys) choose. **A partner's endpoint needs
/// `keys`**, or it is told of everybody.
///
/// ```
/// use tidegate::notify::Endpoint;
/// use tidegate::policy::Pattern;
///
/// let endpoint = Endpoint::new("ada", "https://hooks.example.com/limits")
///     .secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
///     .keys([Pattern::Exact("ada".to_owned())]);
/// # _ = endpoint;
/// ```
#[derive(Clone)]
#[must_use = "nothing is sent before webhooks are started with it"]
pub struct Endpoint {
    pub(super) name: String,
    pub(super) url: String,
    secrets: Vec<String>,
    rules: Vec<Pattern>,
    keys: Vec<Pattern>,
    pub(super) interval: Duration,
    allow_http: bool,
    allow_networks: Vec<IpNet>,
}

/// What an endpoint's task needs, checked.
pub(super) struct Checked {
    pub(super) url: reqwest::Url,
    pub(super) keys: Vec<Key>,
    pub(super) addresses: Addresses,
}

impl Endpoint {
    /// An endpoint of that name (1 to 64 bytes, no two of one name) which is posted to at `url`. It needs a [secret](Self::secret) too.
    ///
    /// The URL is absolute, `https` and without a user or password; a name in it must lead to a public address. See
    /// [`allow_http`](Self::allow_http) and [`allow_networks`](Self::allow_networks).
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            secrets: Vec::new(),
            rules: Vec::new(),
            keys: Vec::new(),
            interval: Duration::from_secs(60),
            allow_http: false,
            allow_networks: Vec::new(),
        }
    }

    /// One more secret to sign with, `whsec_` and 24 to 64 bytes in base64; 4 secrets at most. While a secret is changed give both, the new
    /// one first: each message carries a signature of each.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Only events of rules whose names meet one of these. None: of all rules.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Pattern>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Only events of keys whose texts, as [`Event::key`] has them, meet one of these; no event whose key is left out then. None: of all keys.
    ///
    /// A text is all that is looked at: where callers choose their own ids, one of them may choose an id that a pattern with a `*` meets. `Exact` is safe,
    /// with [`rules`](Self::rules) whose keys are of one kind.
    pub fn keys(mut self, keys: impl IntoIterator<Item = Pattern>) -> Self {
        self.keys.extend(keys);
        self
    }

    /// The least time from the end of one message to the next: 1 ms to a day, 60 s unless told. What happens meanwhile is told in the
    /// next one.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Lets the URL be plain `http`: what is sent can be read and changed on the way, though a change is seen by the signature.
    pub fn allow_http(mut self, allow: bool) -> Self {
        self.allow_http = allow;
        self
    }

    /// Networks that may be reached although they are not public: loopback, private, link-local and the other special ones of the IANA
    /// registries. None unless told.
    pub fn allow_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.allow_networks.extend(networks);
        self
    }

    /// Whether webhooks can be started with it, without starting any.
    ///
    /// # Errors
    /// What is wrong first, in the order name, interval, secrets, URL.
    pub fn validate(&self) -> Result<(), WebhookError> {
        self.check().map(|_| ())
    }

    pub(super) fn wants(&self, event: &Event) -> bool {
        self.is_about(&event.rule, event.key.as_deref())
    }

    pub(super) fn wants_offender(&self, offender: &Offender) -> bool {
        self.is_about(&offender.rule, offender.key.as_deref())
    }

    fn is_about(&self, rule: &str, key: Option<&str>) -> bool {
        let is_met = |patterns: &[Pattern], text: Option<&str>| {
            patterns.is_empty()
                || text.is_some_and(|text| patterns.iter().any(|pattern| pattern.is_met_by(text)))
        };
        is_met(&self.rules, Some(rule)) && is_met(&self.keys, key)
    }

    pub(super) fn check(&self) -> Result<Checked, WebhookError> {
        let error = |field, problem: &dyn fmt::Display| WebhookError::of(&self.name, field, problem);
        if !(1..=NAME_MAX).contains(&self.name.len()) {
            return Err(error(
                "name",
                &format_args!("is {} bytes; allowed: 1 to {NAME_MAX}", self.name.len()),
            ));
        }
        let (least, most) = INTERVALS;
        if !(least..=most).contains(&self.interval) {
            return Err(error(
                "interval",
                &format_args!("is {:?}; allowed: {least:?} to {most:?}", self.interval),
            ));
        }
        if !(1..=SECRETS_MAX).contains(&self.secrets.len()) {
            let problem = format_args!("{} given; allowed: 1 to {SECRETS_MAX}", self.secrets.len());
            return Err(error("secret", &problem));
        }
        let key = |(number, secret): (usize, &String)| {
            Key::new(secret)
                .map_err(|problem| error("secret", &format_args!("number {}: {problem}", number + 1)))
        };
        let keys = self.secrets.iter().enumerate().map(key).collect::<Result<_, _>>()?;
        let addresses = Addresses::new(self.allow_networks.clone());
        let url = self.checked_url(&addresses).map_err(|problem| error("url", &problem))?;
        Ok(Checked { url, keys, addresses })
    }

    fn checked_url(&self, addresses: &Addresses) -> Result<reqwest::Url, String> {
        let url = reqwest::Url::parse(&self.url).map_err(|why| format!("is no absolute URL: {why}"))?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            "http" => return Err("is plain http; allowed: https, or http with allow_http".to_owned()),
            other => return Err(format!("is of scheme {other:?}; allowed: https, or http with allow_http")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user or a password; allowed: none, messages are signed".to_owned());
        }
        // A literal address, however it was spelt, is asked of no resolver.
        if let Some(address) = addresses.literal(&url) {
            addresses.check(address).map_err(|refused| refused.to_string())?;
        }
        Ok(url)
    }
}

impl fmt::Debug for Endpoint {
    /// Without the secrets, and of the URL without what is often one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = reqwest::Url::parse(&self.url).ok();
        let origin = url.map(|url| url.origin().ascii_serialization());
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("origin", &origin)
            .field("rules", &self.rules)
            .field("keys", &self.keys)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{SECRET, event};
    use super::*;
    use crate::policy::EventKind;

    fn problem(endpoint: Endpoint) -> String {
        endpoint.check().err().expect("it is wrong").to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        let at = |url: &str| Endpoint::new("ada", url).secret(SECRET);
        let fine = at("https://hooks.example.com/limits");
        assert_eq!(fine.validate(), Ok(()));
        for (endpoint, told) in [
            (at("/limits"), "endpoint \"ada\": url: is no absolute URL: relative URL without a base"),
            (
                at("http://hooks.example.com"),
                "endpoint \"ada\": url: is plain http; allowed: https, or http with allow_http",
            ),
            (
                at("file:///etc/passwd"),
                "endpoint \"ada\": url: is of scheme \"file\"; allowed: https, or http with allow_http",
            ),
            (
                at("https://ada@example.com"),
                "endpoint \"ada\": url: has a user or a password; allowed: none, messages are signed",
            ),
            (
                fine.clone().interval(Duration::ZERO),
                "endpoint \"ada\": interval: is 0ns; allowed: 1ms to 86400s",
            ),
            (
                Endpoint::new("ada", "https://example.com"),
                "endpoint \"ada\": secret: 0 given; allowed: 1 to 4",
            ),
            (
                fine.clone().secret("whsec_c2hvcnQ="),
                "endpoint \"ada\": secret: number 2: has 5 bytes; allowed: 24 to 64 in base64",
            ),
            (
                fine.clone().secret("whsec_hunter 2"),
                "endpoint \"ada\": secret: number 2: is no base64; allowed: whsec_ and 24 to 64 bytes in base64",
            ),
        ] {
            assert_eq!(problem(endpoint), told);
        }
        assert!(
            problem(Endpoint::new("", "https://example.com")).contains("name: is 0 bytes; allowed: 1 to 64")
        );
        assert!(at("http://hooks.example.com").allow_http(true).check().is_ok());
    }

    /// However an address is spelt in a URL.
    #[test]
    fn literal_addresses_are_refused_at_once() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "10.0.0.7",
            "169.254.169.254",
            "[::1]",
            "[::ffff:10.0.0.7]",
            "[::ffff:7f00:1]",
            "[fd00::1]",
            "[fe80::1]",
            "[64:ff9b::a00:7]",
            "[2002:a00:7::]",
            "0.0.0.0",
            "100.64.0.1",
        ] {
            let endpoint = Endpoint::new("ada", format!("https://{host}/")).secret(SECRET);
            let told = problem(endpoint);
            assert!(told.contains("is not public"), "{host}: {told}");
        }
        let inside = Endpoint::new("ada", "https://[::ffff:10.0.0.7]/").secret(SECRET);
        assert!(inside.clone().allow_networks(["10.0.0.0/30".parse().unwrap()]).check().is_err());
        assert!(inside.allow_networks(["10.0.0.0/29".parse().unwrap()]).check().is_ok());
        assert!(Endpoint::new("ada", "https://8.8.8.8/").secret(SECRET).check().is_ok());
    }

    #[test]
    fn rules_and_keys_choose() {
        let prefix = |text: &str| Pattern::Prefix(text.to_owned());
        let all = Endpoint::new("ada", "https://example.com");
        let ada = all.clone().keys([prefix("ada")]).rules([prefix("pro"), prefix("shop")]);
        let of = |rule: &str, key: Option<&str>| {
            let mut event = event(EventKind::Refused, 1);
            (event.rule, event.key) = (rule.into(), key.map(Into::into));
            event
        };
        for (event, expected) in [
            (of("profile", Some("ada")), true),
            (of("shop", Some("ada:eu")), true),
            (of("address", Some("ada")), false),
            (of("profile", Some("user-bob")), false),
            (of("profile", None), false),
        ] {
            assert_eq!(ada.wants(&event), expected, "{event}");
            assert!(all.wants(&event));
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let shown = format!("{:?}", Endpoint::new("ada", "https://example.com/T0KEN?key=T1").secret(SECRET));
        assert!(shown.contains("https://example.com") && !shown.contains("T0KEN") && !shown.contains("T1"));
        assert!(!shown.contains(&SECRET[6..]));
    }
}

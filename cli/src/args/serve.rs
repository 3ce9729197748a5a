//! What `serve` is asked to do, and what its help says.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::UnknownArgumentValueParser;
use clap::{Args, ValueEnum};
use http::HeaderName;
use ipnet::IpNet;

use super::Color;
use crate::replay::policy::mapping::Part;

pub(super) const SERVE_LONG: &str = "\
Decide requests over HTTP: for programs, and for nginx, Traefik and Envoy.

Rules are those of a policy file, which is read again when it changes; without one, those that come with tidegate. \
HTTP/1.1 and HTTP/2 (prior knowledge) are spoken, in the clear. Whoever can reach the port can use up anybody's \
limits, so it listens to this machine alone unless told.";

pub(super) const SERVE_AFTER: &str = "\
Examples:
  tidegate serve
  tidegate serve --policy limits.toml \\
    --map user=x-user-id
  curl 127.0.0.1:8181/check --json '{\"api\":\"x\"}'

--help tells the endpoints and the exit statuses; docs/serve.md the settings of proxies.";

pub(super) const SERVE_AFTER_LONG: &str = "\
Examples:
  tidegate serve
    the rules that come with tidegate
  tidegate serve --policy limits.toml \\
    --map user=x-user-id --map title=x-title
    /auth reads who calls in these fields
  curl 127.0.0.1:8181/check --json '{\"api\":\"x\"}'
    one request decided
  kill -HUP PID
    the policy read again

Endpoints:
  POST /check
    JSON with api and, as far as they are known, \
title, namespace, user or caller (type, id), target \
(type, id), client_ip, authenticated, cost and \
attributes. The answer is 200 with the verdict in \
JSON, whether allowed or not.
  /auth, and any path that begins with /auth/
    for nginx auth_request, Traefik ForwardAuth and \
Envoy ext_authz. Allowed: 200. Refused: 429, or 403 \
or 401 at /auth?status=403 and /auth?status=401. \
The path, without its query, is the api.
  GET /health
    200 ready, 503 stopping
  GET /metrics
    for Prometheus
  GET /offenders?n=20
    the keys that are refused most; only with an admin \
token, as Authorization: Bearer TOKEN

Fields (--map PART=FIELD):
  A part is api, title, namespace, user, target, cost \
or attribute:NAME; a source is a field of the \
request, bearer (a digest of the token of \
Authorization), or a text in quotes for all.
  By itself, api is the path, and attribute:method \
the method. Who has a user is authenticated: map it \
to a field that the proxy sets and clients cannot.

Signals:
  SIGHUP reads the policy again; a file that is \
wrong leaves the rules in force. SIGTERM and SIGINT \
stop: what runs is finished. A second one ends at \
once.

Output:
  The address stands in the first line of standard \
output, as http://127.0.0.1:8181; the log is on \
standard error.

Exit status:
  0  stopped by a signal
  1  it cannot listen, or cannot run
  2  the policy or the command line is wrong
  130, 143
     ended at once by a second signal";

/// What `serve` is asked to do.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The policy, TOML or JSON; default is the one that comes with tidegate
    #[arg(short, long, value_name = "FILE", default_value = "default")]
    pub policy: PathBuf,

    /// Not known; a hint at what is.
    #[arg(hide = true, value_name = "FILE", value_parser = UnknownArgumentValueParser::suggest_arg("--policy"))]
    pub file: Option<String>,

    /// Not known; a hint at what is.
    #[arg(long, hide = true, value_parser = UnknownArgumentValueParser::suggest_arg("--listen"))]
    pub port: Option<String>,

    /// Where to listen; port 0 is any that is free
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8181", value_parser = address)]
    pub listen: SocketAddr,

    /// Where /auth reads a part of a request, as user=x-user-id; several are possible
    #[arg(short, long, value_name = "PART=FIELD")]
    pub map: Vec<PartArg>,

    /// What becomes of a request to /auth that lacks a part which --map names
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnMissingArg::Address)]
    pub on_missing: OnMissingArg,

    /// A network whose proxies are believed of whom they forward for; several are possible
    #[arg(long, value_name = "NETWORK", default_values = ["127.0.0.0/8", "::1/128"], value_parser = network)]
    pub trust_proxy: Vec<IpNet>,

    /// The field in which proxies say whom they forward for
    #[arg(long, value_enum, value_name = "FIELD", default_value_t = ForwardingArg::XForwardedFor)]
    pub forwarding: ForwardingArg,

    /// The field in which a proxy tells /auth what was asked for
    #[arg(long, value_enum, value_name = "FIELD", default_value_t = OriginalArg::Either)]
    pub original: OriginalArg,

    /// The fields that tell a client how it stands; several are possible
    #[arg(long, value_enum, value_name = "FAMILY", default_values_t = [FieldsArg::Draft])]
    pub fields: Vec<FieldsArg>,

    /// Do not read the policy again when its file changes, only on SIGHUP
    #[arg(long)]
    pub no_watch: bool,

    /// A file that says whom to tell what happened to which keys, and how; docs/webhooks.md
    #[cfg(feature = "webhook")]
    #[arg(long, value_name = "FILE")]
    pub webhooks: Option<PathBuf>,

    /// How the log on standard error is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogArg::Text)]
    pub log: LogArg,

    /// When to colour the log; auto heeds NO_COLOR and where the log goes
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,

    /// Tell keys in the log, not only their fingerprints
    #[arg(long)]
    pub log_keys: bool,

    /// A file with the token that /offenders asks for; else TIDEGATE_ADMIN_TOKEN is the token
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// Seconds that requests under way have after a signal to stop, and after them webhooks
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub stop_timeout: Duration,

    /// Seconds to go on accepting after a signal to stop, with /health saying so
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds)]
    pub stop_delay: Duration,

    /// Connections at a time; others wait in the system's queue
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,

    /// Requests at a time on one HTTP/2 connection
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_streams: u32,

    /// Fields of an HTTP/1.1 request
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(8..=1000))]
    pub max_headers: u16,

    /// Bytes of the head of a request
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(8192..=1_048_576))]
    pub max_header_bytes: u32,

    /// Bytes of the body of a request to /check
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(256..=1_048_576))]
    pub max_body_bytes: u32,

    /// Seconds for the head of a request
    #[arg(long, value_name = "S", default_value = "10", value_parser = some_seconds)]
    pub header_timeout: Duration,

    /// Seconds that a connection stays open without a request
    #[arg(long, value_name = "S", default_value = "75", value_parser = some_seconds)]
    pub idle_timeout: Duration,

    /// Seconds for the body of a request, and its answer
    #[arg(long, value_name = "S", default_value = "10", value_parser = some_seconds)]
    pub request_timeout: Duration,
}

/// One `--map`: a part of a request, and where it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartArg {
    /// The part.
    pub part: Part,
    /// Where it is read.
    pub source: PartSource,
}

/// Where a part is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartSource {
    /// A field.
    Field(HeaderName),
    /// The token of `Authorization: Bearer`.
    Bearer,
    /// The same for all.
    Constant(String),
}

impl FromStr for PartArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SHAPE: &str = "it must be like user=x-user-id, user=bearer or title='chess'";
        let (part, source) = text.split_once('=').ok_or_else(|| format!("no =; {SHAPE}"))?;
        let is_read = |part: &Part| {
            let others =
                [Part::Time, Part::CallerType, Part::TargetType, Part::ClientIp, Part::Authenticated];
            !others.contains(part)
        };
        if let Ok(other) = part.trim().parse::<Part>()
            && !is_read(&other)
        {
            let known = "api, title, namespace, user, target, cost, attribute:NAME";
            let instead = match other {
                Part::ClientIp => "; --trust-proxy and --forwarding say where it is",
                _ => "",
            };
            return Err(format!("{other} is not read in a field here{instead}; parts that are: {known}"));
        }
        let part = Part::named(part.trim(), is_read)?;
        let source = source.trim();
        let quoted = ['"', '\''].iter().find_map(|&quote| source.strip_prefix(quote)?.strip_suffix(quote));
        let source = match (quoted, source) {
            (Some(text), _) => PartSource::Constant(text.to_owned()),
            (None, name) if name.eq_ignore_ascii_case("bearer") => PartSource::Bearer,
            (None, name) => {
                let name = name.parse().map_err(|_| format!("{name:?} is no name of a field; {SHAPE}"))?;
                PartSource::Field(name)
            }
        };
        Ok(Self { part, source })
    }
}

/// What becomes of a request that lacks a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnMissingArg {
    /// Its address stands in for the part
    Address,
    /// It is allowed, and no rule counts it
    Allow,
    /// It is refused: 400, or the status that /auth?status= asks for
    Refuse,
}

/// Which field tells the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForwardingArg {
    /// X-Forwarded-For
    XForwardedFor,
    /// Forwarded, of RFC 7239
    Forwarded,
}

/// Which field tells what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OriginalArg {
    /// The one that is there; an error if both are and differ
    Either,
    /// X-Original-URI, as nginx is told to send
    XOriginalUri,
    /// X-Forwarded-Uri, as Traefik sends
    XForwardedUri,
}

/// A family of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FieldsArg {
    /// RateLimit and RateLimit-Policy, of the draft of the IETF
    Draft,
    /// X-RateLimit-Limit, -Remaining and -Reset, in seconds from now
    XSeconds,
    /// The same, in seconds since 1970
    XEpoch,
    /// The same as x-seconds, with all limits behind the nearest
    XEnvoy,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogArg {
    /// A line of text for each event
    Text,
    /// A line of JSON for each event
    Json,
}

/// The longest time that can be asked for, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().unwrap_or(f64::NAN);
    if (0.0..=SECONDS_MAX).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(format!("it must be a number of seconds from 0 to {SECONDS_MAX}, as 10 or 0.5"))
}

fn some_seconds(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(1);
    let time = seconds(text).ok().filter(|time| *time >= LEAST);
    time.ok_or_else(|| format!("it must be a number of seconds from 0.001 to {SECONDS_MAX}, as 10 or 0.5"))
}

/// An address of this machine, with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "it must be an IP address and a port, as 127.0.0.1:8181 or [::1]:8181".to_owned())
}

/// A network, or a single address.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse()
        .ok()
        .or_else(address)
        .ok_or_else(|| "it must be a network, as 10.0.0.0/8, or an address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_from_fields() {
        let of = |text: &str| text.parse::<PartArg>().map(|arg| arg.source);
        assert_eq!(of("user=X-User-Id"), Ok(PartSource::Field(HeaderName::from_static("x-user-id"))));
        for text in ["user=bearer", "user=Bearer", "user=BEARER"] {
            assert_eq!(of(text), Ok(PartSource::Bearer));
        }
        assert_eq!(of("title='chess'"), Ok(PartSource::Constant("chess".to_owned())));
        for (text, says) in [
            ("user", "no =; it must be like user=x-user-id"),
            (
                "usr=x",
                "\"usr\" is no part of a request; did you mean \"user\"? Known: api, title, namespace, user, target, cost, attribute:NAME",
            ),
            ("user=", "is no name of a field"),
            ("user=a b", "is no name of a field"),
            (
                "client_ip=x-real-ip",
                "client_ip is not read in a field here; --trust-proxy and --forwarding say",
            ),
        ] {
            assert!(of(text).is_err_and(|error| error.contains(says)), "{text}");
        }
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(some_seconds("86400"), Ok(Duration::from_secs(86_400)));
        assert!(["-1", "86401", "NaN", "inf", "1s", ""].into_iter().all(|text| seconds(text).is_err()));
        assert!(some_seconds("0").is_err() && seconds("0").is_ok());
    }

    #[test]
    fn an_address_to_listen_at_has_a_port() {
        assert_eq!(address("[::1]:0").map(|address| address.port()), Ok(0));
        for text in ["0.0.0.0", "localhost:8181", ":8181", "8181", "127.0.0.1:65536"] {
            assert!(address(text).is_err_and(|error| error.contains("and a port")), "{text}");
        }
    }

    #[test]
    fn an_address_is_a_network_of_its_own() {
        assert_eq!(network("10.0.0.1").map(|network| network.to_string()).as_deref(), Ok("10.0.0.1/32"));
        assert_eq!(network("::1").map(|network| network.to_string()).as_deref(), Ok("::1/128"));
        assert!(network("10.0.0.0/33").is_err());
    }
}

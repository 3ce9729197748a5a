//! Who is measured, and the server of each.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, Request};
use axum::routing::get;
use clap::ValueEnum;
use rate_net::tower::HeaderKey;
use tidegate::http::{Extractor, RateLimitLayer, Source};
use tidegate::policy::{Policy, Rules};
use tokio::net::TcpListener;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::KeyExtractor;
use tower_governor::{GovernorError, GovernorLayer};

/// The field that says who asks; wrk's script sends it.
pub(crate) const USER: &str = "x-user";

/// An axum server that answers "hello", with one layer or none; or the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contestant {
    /// No layer: what the others are measured by.
    Bare,
    /// tidegate's layer with a rule for each user.
    TidegateOne,
    /// tidegate's layer with three rules: for each user, for each address, for all together.
    TidegateThree,
    /// tower-governor's layer, a limit for each user.
    TowerGovernor,
    /// rate-net's layer, a limit for each user.
    RateNet,
    /// `tidegate serve`, asked as nginx asks it, with the three rules.
    Serve,
}

impl Contestant {
    /// All of them, the one first that the others are measured by.
    pub(crate) const ALL: [Self; 6] =
        [Self::Bare, Self::TidegateOne, Self::TidegateThree, Self::TowerGovernor, Self::RateNet, Self::Serve];

    /// What the table calls it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Bare => "axum alone",
            Self::TidegateOne => "tidegate, 1 rule",
            Self::TidegateThree => "tidegate, 3 rules",
            Self::TowerGovernor => "tower-governor, 1 limit",
            Self::RateNet => "rate-net, 1 limit",
            Self::Serve => "tidegate serve, 3 rules",
        }
    }

    /// What is asked of it.
    pub(crate) fn path(self) -> &'static str {
        if self == Self::Serve { "/auth" } else { "/" }
    }
}

/// A limit that nobody reaches in the time that is measured.
const PLENTY: u32 = 1_000_000_000;

pub(crate) const ONE_RULE: &str = r#"
[[rule]]
name = "user"
key = "user"
limit = { rate = "1000000000/s", burst = 1000000000 }
"#;

pub(crate) const TWO_MORE: &str = r#"
[[rule]]
name = "address"
key = "client_ip"
limit = { window = "1000000000/1m" }

[[rule]]
name = "all"
key = "global"
limit = { rate = "1000000000/s", burst = 1000000000 }
"#;

/// Serves on a port of the system's choice, which it prints, until standard input ends.
pub(crate) fn serve(contestant: Contestant) -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/", get(|| async { "hello" }));
    let app = match contestant {
        Contestant::Bare => app,
        Contestant::TidegateOne => app.layer(layer(ONE_RULE)?),
        Contestant::TidegateThree => app.layer(layer(&format!("{ONE_RULE}{TWO_MORE}"))?),
        Contestant::TowerGovernor => {
            let config = GovernorConfigBuilder::default()
                .per_nanosecond(1)
                .burst_size(PLENTY)
                .key_extractor(User)
                .use_headers()
                .finish()
                .ok_or("tower-governor refuses its limit")?;
            app.layer(GovernorLayer::new(config))
        }
        Contestant::RateNet => {
            let limiter =
                rate_net::RateLimiter::builder().quota(PLENTY, Duration::from_secs(1)).try_build()?;
            let key = HeaderKey::new(HeaderName::from_static(USER));
            app.layer(rate_net::tower::RateLimitLayer::new(limiter, key).with_policy("user"))
        }
        Contestant::Serve => return Err("the command is its own server".into()),
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        std::thread::spawn(|| {
            _ = io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
        Ok(())
    })
}

fn layer(policy: &str) -> Result<RateLimitLayer, Box<dyn Error>> {
    let policy = Arc::new(Policy::new(Rules::from_toml(policy, "bench.toml")?)?);
    let user = Extractor::default().user(Source::Header(HeaderName::from_static(USER)));
    Ok(RateLimitLayer::new(policy).extract(user))
}

/// tower-governor's key: the user, as the others have it.
#[derive(Clone, Debug)]
struct User;

impl KeyExtractor for User {
    type Key = String;

    fn extract<T>(&self, request: &Request<T>) -> Result<Self::Key, GovernorError> {
        let user = request.headers().get(USER).and_then(|user| user.to_str().ok());
        user.map(str::to_owned).ok_or(GovernorError::UnableToExtractKey)
    }
}

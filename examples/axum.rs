//! Rules by user and by address before a real server of axum's.
//!
//! ```text
//! cargo run --release --example axum --features axum                  # asks itself a few times, and ends
//! cargo run --release --example axum --features axum 127.0.0.1:8080   # serves until it is stopped
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::HeaderName;
use tidegate::http::{Extractor, RateLimitLayer, Source};
use tidegate::policy::{Policy, Rules};
use tokio::net::TcpListener;

/// In a file of its own it can be edited while the server runs: see `Policy::reload` and `policy::watch`.
const RULES: &str = r#"
counting = "all-or-nothing"     # who is refused by one rule uses up nothing in the other

[[rule]]
name = "user"
key = "user"
limit = { rate = "1/s", burst = 3 }

[[rule]]
name = "address"
key = "client_ip"
limit = { window = "6/1m", opens = "first-request" }
"#;

fn app() -> Result<Router, Box<dyn std::error::Error>> {
    let app = Router::new().route("/hello/{name}", get(|| async { "hello\n" }));

    // What a server adds: the rules, what they are asked about, and the layer. Only let something that you trust write `x-user`.
    let policy = Arc::new(Policy::new(Rules::from_toml(RULES, "limits.toml")?)?);
    let user = Source::Header(HeaderName::from_static("x-user"));
    let app = app.layer(RateLimitLayer::new(policy).extract(Extractor::new().user(user)));
    Ok(app)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let server = listener.local_addr()?;
    // With the other end of each connection, which the rule by address asks for.
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    println!("serving on http://{server}/hello/you");
    let serving = axum::serve(listener, service);
    if address.is_some() {
        serving.await?;
        return Ok(());
    }
    let serving = tokio::spawn(async move { serving.await });
    ask_a_few_times(server).await?;
    serving.abort();
    Ok(())
}

async fn ask_a_few_times(server: SocketAddr) -> Result<(), reqwest::Error> {
    // Built together with webhooks, reqwest has no cryptography of its own and takes the process's.
    _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    // Ada's bucket holds three; then Bob's; from one address six in all.
    for user in ["ada", "ada", "ada", "ada", "bob", "bob", "bob", "eve"] {
        let request = client.get(format!("http://{server}/hello/you")).header("x-user", user);
        let response = request.send().await?;
        println!("\n{user} gets {}", response.status());
        for name in ["ratelimit-policy", "ratelimit", "retry-after"] {
            if let Some(value) = response.headers().get(name).and_then(|value| value.to_str().ok()) {
                println!("  {name}: {value}");
            }
        }
        println!("  {}", response.text().await?.trim_end());
    }
    Ok(())
}

//! Answers to HTTP clients: the fields and bodies that tell them how they stand, and who they are.
//!
//! A server hands the head of a request to an [`Extract`], which says what a policy may ask of it ([`Facts`]); the policy
//! decides; [`Answering`] makes the fields of the response, and the whole response if it is refused. With the feature `tower`,
//! [`RateLimitLayer`] does all that before any service; with `axum`, it knows axum's routes and connections too. Five lines for a
//! server of axum's:
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! use std::net::SocketAddr;
//! use std::sync::Arc;
//!
//! use axum::{Router, routing::get};
//! use tidegate::http::{Extractor, RateLimitLayer, Source};
//! use tidegate::policy::{Policy, Rules};
//!
//! let app = Router::new().route("/hello", get(|| async { "hello" }));
//!
//! let rules = r#"rule = [{ name = "address", key = "client_ip", limit = { rate = "5/s", burst = 20 } }]"#;
//! let policy = Arc::new(Policy::new(Rules::from_toml(rules, "limits.toml")?)?); // of a file: Rules::read("limits.toml")?
//! let extractor = Extractor::new().user(Source::Bearer); // behind what turns down bad tokens
//! let app = app.layer(RateLimitLayer::new(policy).extract(extractor));
//! let service = app.into_make_service_with_connect_info::<SocketAddr>(); // for axum::serve(listener, service)
//! # _ = service;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/axum.rs` is a whole server. Behind proxies, [`ClientAddress`] tells which of them to believe.
//!
//! ```text
//! layer                              a service behind a policy
//! extract                            what is known of a request
//! source                             where a part of it is read
//! answering · client · facts · head · path
//! forwarded                          the texts of fields that proxies write
//! ```

mod answering;
mod client;
mod extract;
mod facts;
mod forwarded;
mod head;
#[cfg(feature = "tower")]
mod layer;
mod path;
mod source;

pub use answering::{Answer, Answering, Body, Dialect, Fields, Names, OwnBody};
pub use client::{Client, ClientAddress, Forwarding, IpNet, OnBroken};
pub use extract::{Extract, Extractor, OnMissing};
pub use facts::{Facts, Missing};
pub use head::{Head, PeerAddress};
#[cfg(feature = "tower")]
pub use layer::{Charge, Cost, RateLimit, RateLimitLayer, ResponseBody, ResponseFuture};
pub use source::{Source, SourceFn};

//! Telling others what a [policy](crate::policy::Policy) does: whoever looks after the server, and whom the limits concern.
//!
//! All of it begins with [`PolicyBuilder::events`](crate::policy::PolicyBuilder::events), and none of it is on the road of a
//! check: counts are read and events drained when the program says so.

#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "tracing")]
pub use self::log::Log;
#[cfg(feature = "metrics")]
pub use self::metrics::Metrics;
#[cfg(feature = "webhook")]
pub use self::webhook::{Endpoint, EndpointStatus, WebhookCounts, WebhookError, WebhookSettings, Webhooks};

#[cfg(feature = "webhook")]
#[doc = include_str!("../../docs/webhooks.md")]
pub mod webhooks {}

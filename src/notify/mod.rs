//! Telling others what limits did.

#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "webhook")]
pub use webhook::{Endpoint, EndpointStatus, WebhookCounts, WebhookError, WebhookSettings, Webhooks};

#[cfg(feature = "webhook")]
#[doc = include_str!("../../docs/webhooks.md")]
pub mod webhooks {}

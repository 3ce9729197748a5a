//! Webhooks: partners are told over HTTP what limits did to their keys.
//!
//! ```text
//! send: an event -> the pending ones of each endpoint that it concerns, under a lock held for moments
//! one task for each endpoint: waits for its turn, takes what is pending, posts it until it is accepted or given up
//! ```
//!
//! ```text
//! webhooks                 start, send, stop, how each endpoint stands
//! worker                   one endpoint's task
//! post · state             what goes over the wire · what send and the task share
//! payload · retry          the body · how long to wait
//! pending · addresses      what is to be told · where it may go
//! endpoint · settings · error
//! ```

mod addresses;
mod endpoint;
mod error;
mod payload;
mod pending;
mod post;
mod retry;
mod settings;
mod state;
mod webhooks;
mod worker;

#[cfg(test)]
mod made_up;

pub use endpoint::Endpoint;
pub use error::WebhookError;
pub use settings::WebhookSettings;
pub use state::{EndpointStatus, WebhookCounts};
pub use webhooks::Webhooks;

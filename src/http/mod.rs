//! Answers to HTTP clients: the fields and bodies that tell them how they stand, and who they are.
//!
//! A server hands the head of a request to an [`Extract`], which says what a policy may ask of it ([`Facts`]); the policy
//! decides; [`Answering`] makes the fields of the response, and the whole response if it is refused.

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
pub use client::{Client, ClientAddress, Forwarding, OnBroken};
pub use extract::{Extract, Extractor, OnMissing};
pub use facts::{Facts, Missing};
pub use head::{Head, PeerAddress};
#[cfg(feature = "tower")]
pub use layer::{Charge, Cost, RateLimit, RateLimitLayer, ResponseBody, ResponseFuture};
pub use source::{Source, SourceFn};

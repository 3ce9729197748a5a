//! The layer for tower.

use std::sync::Arc;

use crate::policy::Policy;
use crate::time::Ticking;

/// What a request has cost, as an extension of the response: it is charged on top of what the check counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(pub u64);

/// A [`tower::Layer`](tower_layer::Layer) that asks a policy before each request.
#[derive(Clone, Debug)]
pub struct RateLimitLayer<C = Ticking> {
    policy: Arc<Policy<C>>,
}

/// A service behind a policy.
#[derive(Clone, Debug)]
pub struct RateLimit<S, C = Ticking> {
    inner: S,
    policy: Arc<Policy<C>>,
}

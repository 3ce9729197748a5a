//! How events are made.

use std::fmt;
use std::sync::Arc;

/// Makes what is told of a key, given the rule's name and the key's text.
type Redact = dyn Fn(&str, &str) -> String + Send + Sync;

/// What becomes of a key's text.
#[derive(Clone, Default)]
pub(crate) enum Labels {
    #[default]
    Shown,
    LeftOut,
    Redacted(Arc<Redact>),
}

/// How a policy makes [events](crate::policy::Event): see [`PolicyBuilder::events`](crate::policy::PolicyBuilder::events).
#[derive(Clone, Default)]
#[must_use = "nothing is told before a policy is built with them"]
pub struct EventSettings {
    pub(crate) labels: Labels,
}

impl EventSettings {
    /// Events with their keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves the keys' texts out; a fingerprint tells keys apart.
    pub fn without_keys(mut self) -> Self {
        self.labels = Labels::LeftOut;
        self
    }

    /// Has a function make what is told of a key, given the rule's name and the key's text. It is called when events are drained,
    /// never by a check.
    pub fn redact(mut self, redact: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        self.labels = Labels::Redacted(Arc::new(redact));
        self
    }
}

impl fmt::Debug for EventSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = match self.labels {
            Labels::Shown => "shown",
            Labels::LeftOut => "left out",
            Labels::Redacted(_) => "redacted",
        };
        f.debug_struct("EventSettings").field("labels", &labels).finish()
    }
}

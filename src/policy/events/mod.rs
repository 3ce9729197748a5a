//! What a policy tells its host of: keys that near a limit, are refused, go on being refused, and recover.

mod event;
mod settings;

pub use event::{Counts, Event, EventKind, LimitCounts, Offender, RuleCounts};
pub use settings::EventSettings;

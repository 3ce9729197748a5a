//! What a policy tells its host of: keys that near a limit, are refused, go on being refused, and recover.
//!
//! ```text
//! event      what is told; settings: how
//! desk       where checks leave what they saw: trays
//! frequent   the sketch in a tray, and of all trays
//! label      a key's text without allocation; facts: how a limit stood; names: rules by number
//! tracker    from notes to events
//! noted      all that together, by the host's side
//! refusals   how often each rule refused
//! ```

mod desk;
mod event;
mod facts;
mod frequent;
mod label;
mod names;
mod noted;
mod refusals;
mod settings;
mod tracker;

pub(super) use desk::{Desk, Place, Seen, Subject};
pub use event::{Counts, Event, EventKind, LimitCounts, Offender, RuleCounts};
pub(super) use label::Label;
pub(super) use names::{NamedRule, Names};
pub(super) use noted::{InForce, Noted};
pub use settings::EventSettings;

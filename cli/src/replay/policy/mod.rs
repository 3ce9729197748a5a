//! A log put to a whole policy.
//!
//! ```text
//! mapping    which fields of the log make which parts of a request
//! requests   the log in memory, as requests
//! trial      every request decided at its time
//! tally      counted by rule and by key
//! summary    everything that a report says; compare: of two policies
//! ```

pub mod compare;
pub mod mapping;
pub mod requests;
pub mod summary;
pub mod tally;
pub mod trial;

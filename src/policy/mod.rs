//! Rules instead of single limiters: which requests are limited, under which key, by what.
//!
//! ```
//! use tidegate::policy::{Policy, Request, Rules};
//!
//! let text = r#"
//! [[rule]]
//! name = "address"
//! key = "client_ip"
//! limit = { rate = "2/s", burst = 5 }
//! "#;
//! // From a file: `Rules::read("limits.toml")?`.
//! let policy = Policy::new(Rules::from_toml(text, "limits.toml")?)?;
//!
//! let request = Request::new("basket").client_ip("192.0.2.7".parse()?);
//! let passed = (0..6).filter(|_| policy.check(&request).is_allowed()).count();
//! assert_eq!(passed, 5);
//! let verdict = policy.check(&request);
//! let limit = verdict.binding().expect("it is refused");
//! assert_eq!((limit.rule().name(), verdict.retry_after_secs()), ("address", 1));
//!
//! // Other rules while requests are decided; what was used stays used.
//! let changes = policy.replace(Rules::from_toml(&text.replace("5 }", "9 }"), "limits.toml")?)?;
//! assert_eq!(changes.changed, ["address"]);
//! assert!(policy.check(&request).is_allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How a file is written [`files`] tells; `examples/policy.rs` shows more of it at work.

mod book;
mod changes;
mod config;
mod engine;
mod entity;
mod error;
mod evaluate;
mod events;
mod file;
mod glob;
mod key;
mod matcher;
mod names;
mod noting;
mod overrides;
mod reload;
mod request;
mod rule;
mod shares;
mod verdict;
#[cfg(feature = "watch")]
mod watch;

use book::check as check_rule;
pub use changes::Changes;
pub use config::{Problem, Problems, Unwritable, Warning, schema};
pub use engine::{Policy, PolicyBuilder};
pub use entity::UnknownEntityType;
pub use error::PolicyError;
pub use events::{Counts, Event, EventKind, EventSettings, LimitCounts, Offender, RuleCounts};
pub use file::ReloadError;
pub use request::Request;
pub use rule::{
    Cost, Counting, CustomKey, Entity, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Override,
    Pattern, RefusalBody, Retry, Rule, Rules,
};
#[cfg(feature = "http")]
pub(crate) use verdict::compare_shares;
pub use verdict::{LimitState, RuleState, Verdict};
#[cfg(feature = "watch")]
pub use watch::{Watch, WatchError, watch};

#[doc = include_str!("../../docs/policy.md")]
pub mod files {}

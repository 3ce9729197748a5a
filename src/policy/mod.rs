//! Rules instead of single limiters: which requests are limited, under which key, by what.

mod book;
mod changes;
mod config;
mod engine;
mod entity;
mod error;
mod evaluate;
mod file;
mod glob;
mod key;
mod matcher;
mod names;
mod overrides;
mod reload;
mod request;
mod rule;
mod shares;
mod verdict;
#[cfg(feature = "watch")]
mod watch;

pub use changes::Changes;
pub use config::{Problem, Problems, Unwritable, Warning, schema};
pub use engine::{Policy, PolicyBuilder};
pub use entity::UnknownEntityType;
pub use error::PolicyError;
pub use file::ReloadError;
pub use request::Request;
pub use rule::{
    Cost, Counting, CustomKey, Entity, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Override,
    Pattern, Rule, Rules,
};
pub use verdict::{LimitState, RuleState, Verdict};
#[cfg(feature = "watch")]
pub use watch::{Watch, WatchError, watch};

#[doc = include_str!("../../docs/policy.md")]
pub mod files {}

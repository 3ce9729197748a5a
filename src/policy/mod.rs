//! Rules instead of single limiters: which requests are limited, under which key, by what.

mod config;
mod request;
mod rule;

pub use config::{Problem, Problems, Unwritable, Warning, schema};
pub use request::Request;
pub use rule::{
    Cost, Counting, CustomKey, Entity, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Override,
    Pattern, Rule, Rules,
};

#[doc = include_str!("../../docs/policy.md")]
pub mod files {}

//! Rules instead of single limiters: which requests are limited, under which key, by what.

mod request;
mod rule;

pub use request::Request;
pub use rule::{
    Cost, Counting, Entity, EntityType, Exempt, KeyPart, Matcher, Matching, OnRefusal, Override, Pattern,
    Rule, Rules,
};

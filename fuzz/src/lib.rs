//! What the fuzz targets share: the inputs they are made of, the two games that play a limiter
//! against its twin, the one that plays a table with little room, the one that charges and gives back, the one of
//! snapshots, the one of tiers, and the one of policies and of what they tell.

pub mod asked;
pub mod bucket;
pub mod input;
pub mod orders;
pub mod policies;
pub mod snapshot;
pub mod tables;
pub mod tiers;
pub mod windows;

#[path = "../../tests/policy/evaluator.rs"]
mod evaluator;
mod game;
#[path = "../../tests/common/same.rs"]
mod same;
mod told;
#[path = "../../tests/twin/mod.rs"]
mod twin;

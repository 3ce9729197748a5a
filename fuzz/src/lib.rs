//! What the fuzz targets share: the inputs they are made of, the two games that play a limiter
//! against its twin, the one that plays a table with little room, the one that charges and gives back, the one of
//! snapshots, and the one of tiers.

pub mod asked;
pub mod bucket;
pub mod input;
pub mod orders;
pub mod snapshot;
pub mod tables;
pub mod tiers;
pub mod windows;

mod game;
#[path = "../../tests/twin/mod.rs"]
mod twin;

//! What the fuzz targets share: the inputs they are made of, and the two games that play a limiter
//! against its twin.

pub mod bucket;
pub mod input;
pub mod windows;

mod game;
#[path = "../../tests/twin/mod.rs"]
mod twin;

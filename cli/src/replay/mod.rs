//! The replay itself: every request put to the engine ([`engine`]), counted by time ([`timeline`], and finer in [`strips`]),
//! by key ([`headroom`]) and summed up ([`summary`]); and the same with a whole policy ([`mod@policy`]).
//! Many replays find a limit that suits a log ([`mod@suggest`]).

pub mod engine;
pub mod headroom;
pub mod policy;
pub mod strips;
pub mod suggest;
pub mod summary;
pub mod timeline;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// The burst window refused it, the sustain window would not have.
    Burst,
    /// The sustain window refused it, the burst window would not have.
    Sustain,
    /// Both windows refused it.
    Both,
    /// The only part of a limit refused it: the bucket, or the single window.
    Limit,
    /// The limiter had no room for its client.
    Full,
}

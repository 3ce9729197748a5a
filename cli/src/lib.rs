//! The `tidegate` command as a library, so that tests and fuzzers reach its parsers.
//!
//! [`run`] is the whole command. [`limit_spec`], [`log::line`] and [`log::records`] read what strangers write: they never
//! panic, and hold no more than their input.
//!
//! ```text
//! command            what each subcommand does, step by step
//! report/            text · policy · comparison · suggestions · table · bars · chart · scaling · svg · storm · drawing · replay_drawing/ · pixels · json
//! storm/             scenario · reader · cast · contestant · play · figures
//! replay/            engine · summary · timeline · strips · headroom · suggest · policy/      bench/     workload · rounds · figures
//! log/               source · read · line · records · csv · time          sample/   scenes
//! serve/             accept · connection · routes · check · auth · offenders · reload · metrics · exposition · events · webhooks/ · log
//! args · progress · key · limit_spec · mistakes
//! ```

pub mod args;
pub mod bench;
mod command;
pub mod key;
pub mod limit_spec;
pub mod log;
mod mistakes;
mod progress;
pub mod replay;
pub mod report;
pub mod sample;
#[cfg(feature = "serve")]
pub mod serve;
pub mod storm;

pub use command::run;

//! Why a limiter could not be restored.

use std::{fmt, io};

use crate::error::ConfigError;

/// Why a snapshot, with this builder, makes no limiter.
///
/// Nothing of a snapshot is taken over unless all of it is. Who gets one of these may start without it, and says so:
/// every key then begins afresh.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The builder's settings make no limiter, with a snapshot or without.
    Config(ConfigError),
    /// The reader failed.
    Io(io::Error),
    /// The bytes do not begin as a snapshot does.
    NotASnapshot,
    /// Another version of this library wrote it in a form that this one does not know.
    Version {
        /// The form's version in the snapshot.
        found: u32,
        /// The one that this library reads.
        known: u32,
    },
    /// The bytes end too soon.
    Truncated,
    /// Something follows the end.
    TrailingBytes,
    /// The bytes are not those that were written.
    Checksum,
    /// Keys hash otherwise than where it was saved: on another kind of processor, or with another version of ahash.
    /// No key would be found.
    Hashes,
    /// The builder was given another seed than the saved limiter's.
    Seed,
    /// The builder was given another limit.
    Limit {
        /// The first field that differs, as `kind`, `rate`, `burst`, `sustain period`, `alignment`.
        field: &'static str,
        /// What it is in the snapshot.
        saved: String,
        /// What it is in the builder.
        given: String,
    },
    /// The builder was given another `max_keys`. A key's place follows from it, so it must be the same.
    MaxKeys {
        /// What it is in the snapshot.
        saved: u64,
        /// What it is in the builder.
        given: usize,
    },
    /// A slot holds what no limiter leaves there. The checksum is right: somebody made this snapshot up.
    Slot {
        /// The slot's number.
        number: u64,
    },
    /// Its times contradict each other. The checksum is right: somebody made this snapshot up.
    Times,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Io(error) => write!(f, "the snapshot could not be read: {error}"),
            Self::NotASnapshot => f.write_str("this is no snapshot of a limiter"),
            Self::Version { found, known } => {
                write!(f, "the snapshot has version {found}; this library reads version {known}")
            }
            Self::Truncated => f.write_str("the snapshot is cut short"),
            Self::TrailingBytes => f.write_str("the snapshot has more bytes after its end"),
            Self::Checksum => f.write_str("the snapshot is damaged: its checksum is wrong"),
            Self::Hashes => f.write_str(
                "keys hash otherwise here than where the snapshot was saved (another kind of processor, or another version of ahash)",
            ),
            Self::Seed => f.write_str("the builder's seed is not the snapshot's"),
            Self::Limit { field, saved, given } => {
                write!(f, "{field} is {saved} in the snapshot and {given} in the builder; it must be the same")
            }
            Self::MaxKeys { saved, given } => {
                write!(f, "max_keys is {saved} in the snapshot and {given} in the builder; it must be the same")
            }
            Self::Slot { number } => write!(f, "slot {number} of the snapshot holds what no limiter leaves there"),
            Self::Times => f.write_str("the times in the snapshot contradict each other"),
        }
    }
}

impl std::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for RestoreError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

//! Rules in force, and the file that says them.

use std::fmt;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use super::changes::Changes;
use super::config::{Problems, read_bytes};
use super::engine::Policy;
use super::error::PolicyError;
use super::rule::Rules;
use crate::time::Clock;

/// Why a policy file is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be read, or is wrong: everything that is.
    File(Problems),
    /// What it says is right, and cannot be put in the place of what is in force.
    Rules {
        /// The file's name, as it was given.
        file: String,
        /// The first thing that is in the way.
        error: PolicyError,
    },
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problems) => problems.fmt(f),
            Self::Rules { file, error } => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // It prints as they do.
            Self::File(_) => None,
            Self::Rules { error, .. } => Some(error),
        }
    }
}

impl<C: Clock + Clone + 'static> Policy<C> {
    /// Reads a policy file, as [`Rules::read`] does, and puts what it says in the place of the rules in force, as
    /// [`replace`](Self::replace) does; what became of each rule.
    ///
    /// # Errors
    /// A [`ReloadError`] with everything that is wrong with the file, or what is in the way of its rules. The rules in
    /// force stay so, with what was used.
    ///
    /// ```no_run
    /// use tidegate::policy::{Policy, Rules};
    ///
    /// let policy = Policy::new(Rules::read("limits.toml")?)?;
    /// // Later, when somebody has edited it:
    /// match policy.reload("limits.toml") {
    ///     Ok(changes) => println!("anew: {:?}", changes.anew),
    ///     Err(error) => eprintln!("not in force:\n{error}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reload(&self, path: impl AsRef<Path>) -> Result<Changes, ReloadError> {
        let path = path.as_ref();
        let _turn = self.turn();
        self.put_in_force(path, read_bytes(path))
    }

    /// Waits until nobody else reads the rules from a file. To be held from before the file is read until it is in force.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same of what was found in the file, or why nothing was.
    pub(super) fn put_in_force(
        &self,
        path: &Path,
        found: Result<Vec<u8>, String>,
    ) -> Result<Changes, ReloadError> {
        let rules = Rules::of_file(path, found).map_err(ReloadError::File)?;
        let file = || path.display().to_string();
        self.replace(rules).map_err(|error| ReloadError::Rules { file: file(), error })
    }
}

//! Files that results are kept in.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Failure;

/// A file to keep a result in, opened before there is one.
pub(super) struct Kept<'a> {
    path: &'a Path,
    pub(super) file: File,
}

impl<'a> Kept<'a> {
    pub(super) fn create(path: &'a Path) -> Result<Self, Failure> {
        File::create(path).map(|file| Kept { path, file }).map_err(|error| unwritable(path, &error))
    }

    pub(super) fn written(&self, written: io::Result<()>) -> Result<(), Failure> {
        written.map_err(|error| unwritable(self.path, &error))
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Stopped(format!("cannot write {}: {error}", path.display()))
}

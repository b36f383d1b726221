//! Reads manifests from files or stdin.
//!
//! Guarantee: each file is read completely, and directories are read as `kubectl apply -f` and `-R` read them, but for what is no
//! manifest by itself (`repository`).

use std::collections::HashSet;
use std::path::PathBuf;

use super::Source;
use super::repository::{self, LeftOut};
use crate::dev::manifests::{self, ManifestError};

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// The texts with manifests.
    pub sources: Vec<Source>,
    /// What is no manifest by itself.
    pub left_out: LeftOut,
    /// What was found in a directory and cannot be read.
    pub unreadable: Vec<ManifestError>,
}

/// Reads all files that `paths` refer to, with those in the directories below if `recursive`. A file or a directory that is found in
/// a directory and cannot be read ends nothing.
///
/// # Errors
/// The first path of `paths` that cannot be read.
pub fn read(paths: &[PathBuf], recursive: bool) -> Result<Read, ManifestError> {
    let (read, failed) = gather(paths, recursive, true);
    failed.into_iter().next().map_or(Ok(read), Err)
}

/// The same, but a path of `paths` that cannot be read ends nothing either.
pub fn read_all(paths: &[PathBuf], recursive: bool) -> Read {
    let (mut read, failed) = gather(paths, recursive, false);
    read.unreadable.splice(0..0, failed);
    read
}

/// Reads the paths, and keeps the errors about these themselves apart. If `is_strict`, the first of them ends the work.
fn gather(paths: &[PathBuf], recursive: bool, is_strict: bool) -> (Read, Vec<ManifestError>) {
    let (mut sources, mut directories, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let (mut failed, mut known) = (Vec::new(), HashSet::new());
    for path in paths {
        if is_strict && !failed.is_empty() {
            break;
        }
        let found = match manifests::files(path, recursive) {
            Ok(found) => found,
            Err(error) => {
                failed.push(error);
                continue;
            }
        };
        directories.extend(found.directories);
        unreadable.extend(found.unreadable);
        for found in found.files {
            // A file that is named twice, alone and by its directory or by a link, is one.
            if !known.insert(std::fs::canonicalize(&found).unwrap_or_else(|_| found.clone())) {
                continue;
            }
            let file = manifests::name_of(&found);
            match manifests::text_of(&found) {
                Ok(text) => sources.push(Source { file, text }),
                Err(error) if found == *path => failed.push(error),
                Err(error) => unreadable.push(error),
            }
        }
    }
    let (sources, left_out) = repository::part(paths, &directories, sources);
    (Read { sources, left_out, unreadable }, failed)
}

#[cfg(test)]
mod tests;

//! Reads manifests from files or stdin.
//!
//! Guarantee: each file is read completely, and directories are read as `kubectl apply -f` and `-R` read them, but for what is no
//! manifest by itself (`repository`).

use std::collections::HashSet;
use std::convert::Infallible;
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
    read_until(paths, recursive, Err)
}

/// The same, but a path of `paths` that cannot be read ends nothing either.
pub fn read_all(paths: &[PathBuf], recursive: bool) -> Read {
    let mut failed = Vec::new();
    let keep = |error| {
        failed.push(error);
        Ok::<(), Infallible>(())
    };
    let mut read = match read_until(paths, recursive, keep) {
        Ok(read) => read,
        Err(never) => match never {},
    };
    read.unreadable.splice(0..0, failed);
    read
}

/// Reads the paths, and passes an error of one of them to `failed`, which may end the work.
fn read_until<E>(
    paths: &[PathBuf],
    recursive: bool,
    mut failed: impl FnMut(ManifestError) -> Result<(), E>,
) -> Result<Read, E> {
    let (mut sources, mut unreadable, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    for path in paths {
        let (files, errors) = match manifests::files(path, recursive) {
            Ok(found) => found,
            Err(error) => {
                failed(error)?;
                continue;
            }
        };
        unreadable.extend(errors);
        for found in files {
            // A file that is named twice, alone and by its directory, is one.
            if !known.insert(found.clone()) {
                continue;
            }
            let file = manifests::name_of(&found);
            match manifests::text_of(&found) {
                Ok(text) => sources.push(Source { file, text }),
                Err(error) if found == *path => failed(error)?,
                Err(error) => unreadable.push(error),
            }
        }
    }
    let (sources, left_out) = repository::part(paths, recursive, sources);
    Ok(Read { sources, left_out, unreadable })
}

#[cfg(test)]
mod tests;

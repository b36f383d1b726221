//! Reads manifests from files or stdin.
//!
//! Guarantee: each file is read completely, and directories are read as `kubectl apply -f` and `-R` read them.

use std::collections::HashSet;
use std::path::PathBuf;

use super::Source;
use crate::dev::manifests::{self, ManifestError};

/// The texts of all files that `paths` refer to, with those in the directories below if `recursive`.
///
/// # Errors
/// The first file that cannot be read.
pub fn read(paths: &[PathBuf], recursive: bool) -> Result<Vec<Source>, ManifestError> {
    let (sources, unreadable) = read_each(paths, recursive)?;
    unreadable.into_iter().next().map_or(Ok(sources), Err)
}

/// The same, but a file or a directory that is found in a directory and cannot be read does not end the run. It has an error in
/// the second list.
///
/// # Errors
/// The first path of `paths` that cannot be read.
pub fn read_each(paths: &[PathBuf], recursive: bool) -> Result<(Vec<Source>, Vec<ManifestError>), ManifestError> {
    let (mut sources, mut unreadable, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    for path in paths {
        let (files, errors) = manifests::files(path, recursive)?;
        unreadable.extend(errors);
        for found in files {
            // A file that is named twice, alone and by its directory, is one.
            if !known.insert(found.clone()) {
                continue;
            }
            let file = manifests::name_of(&found);
            match manifests::text_of(&found) {
                Ok(text) => sources.push(Source { file, text }),
                Err(error) if found == *path => return Err(error),
                Err(error) => unreadable.push(error),
            }
        }
    }
    Ok((sources, unreadable))
}

#[cfg(test)]
mod tests;

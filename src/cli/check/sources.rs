//! Reads manifests from files or stdin.
//!
//! Guarantee: each file is read completely, and directories are read as `kubectl apply -f` and `-R` read them.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Source;
use crate::dev::manifests::{self, ManifestError};

/// The texts of all files that `paths` refer to, with those in the directories below if `recursive`.
///
/// # Errors
/// The first file that cannot be read.
pub fn read(paths: &[PathBuf], recursive: bool) -> Result<Vec<Source>, ManifestError> {
    let (mut sources, mut known) = (Vec::new(), HashSet::new());
    for path in paths {
        // A file that is named twice, alone and by its directory, is one.
        sources.extend(sources_of(path, recursive)?.into_iter().filter(|source| known.insert(source.file.clone())));
    }
    Ok(sources)
}

/// The files that `path` refers to, with their text; `-` is stdin.
fn sources_of(path: &Path, recursive: bool) -> Result<Vec<Source>, ManifestError> {
    let source = |file: String, text| Source { file, text };
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ManifestError::Read { path, source }
    };
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed(path))?;
        return Ok(vec![source("stdin".to_owned(), text)]);
    }
    let mut sources = Vec::new();
    for file in manifests::files(path, recursive)? {
        let text = std::fs::read_to_string(&file).map_err(failed(&file))?;
        sources.push(source(file.display().to_string(), text));
    }
    Ok(sources)
}

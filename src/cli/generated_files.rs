//! Writes files that the program generates, such as manual pages, into a directory.
//!
//! Guarantees: a file is written whole or not at all. Nothing is written through a link, symbolic or hard, even if one appears
//! meanwhile: another user of the directory cannot choose what is overwritten. What is no regular file stays.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("write {}: {source}", file.display())]
pub struct FileError {
    /// The file.
    file: PathBuf,
    /// The reason.
    source: io::Error,
}

/// Writes files of these names into a directory, in place of earlier ones.
///
/// # Errors
/// The first file that cannot be written. Those before it are.
pub fn write(directory: &Path, files: &[(String, String)]) -> Result<(), FileError> {
    files.iter().try_for_each(|(name, text)| {
        write_one(directory, name, text).map_err(|source| FileError { file: directory.join(name), source })
    })
}

fn write_one(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let file = directory.join(name);
    match fs::symlink_metadata(&file) {
        Ok(found) if found.is_symlink() => return Err(io::Error::other("it is a symbolic link")),
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is not a regular file")),
        _ => {}
    }
    replace(&file, text.as_bytes())
}

/// Puts a file of these bytes in the place of an earlier one, or of a link: a reader sees the earlier file, or this one whole.
///
/// # Errors
/// When it cannot be written. The earlier file is left then.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // Creating a file and renaming it follow no link at their last part.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let draft = file.with_file_name(format!(".{name}.{:016x}", rand::random::<u64>()));
    let mut out = OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let written = out.write_all(bytes).and_then(|()| fs::rename(&draft, file));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

#[cfg(test)]
mod tests;

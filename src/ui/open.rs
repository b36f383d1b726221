//! `--open`: hands a link to the desktop's program.
//!
//! Guarantees: the link is in no argument list, which every user of the machine can read. It is in a file that only its owner
//! can read, in a new directory that only its owner can enter. Both are removed when the value is dropped.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::dev::guard;

/// Why a browser cannot be sent to the page.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct OpenError {
    /// The file or directory.
    path: PathBuf,
    /// The system's error.
    source: io::Error,
}

/// A file that sends a browser to a link.
#[derive(Debug)]
pub struct Redirect {
    directory: PathBuf,
}

impl Redirect {
    /// Writes a file for a link into a new directory below `parent`.
    ///
    /// # Errors
    /// When the system refuses the directory or the file.
    pub fn write(parent: &Path, link: &str) -> Result<Self, OpenError> {
        let directory = parent.join(format!("cronjob-controller-ui-{}", &guard::token()[..16]));
        // Fails if anything has the name, also a link.
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|source| OpenError { path: directory.clone(), source })?;
        let redirect = Self { directory };
        let written = create(&redirect.file(), &text(link));
        written.map_err(|source| OpenError { path: redirect.file(), source })?;
        Ok(redirect)
    }

    fn file(&self) -> PathBuf {
        self.directory.join("open.html")
    }

    /// Opens the file with the desktop's program. The link is printed, so a failure is only logged.
    pub fn open(&self) {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(program);
        command.arg(self.file()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The thread waits for the program, which may last as long as the browser.
        std::thread::spawn(move || match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => tracing::warn!(%program, %status, "the browser cannot be opened; open the link"),
            Err(error) => tracing::warn!(%program, %error, "the browser cannot be opened; open the link"),
        });
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // They may be gone already. What cannot be removed has a token that is of no use any more.
        let _ = fs::remove_file(self.file());
        let _ = fs::remove_dir(&self.directory);
    }
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A page without scripts, because a browser may forbid those of files.
fn text(link: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>CronJobs</title>\n<meta http-equiv=\"refresh\" content=\"0; url={link}\">\n<p><a href=\"{link}\">CronJobs</a></p>\n"
    )
}

/// Where such a file belongs: the user's runtime directory, else that for temporary files.
pub fn parent() -> PathBuf {
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime_dir.filter(|directory| directory.is_dir()).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests;

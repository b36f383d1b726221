//! The log of a cluster's changes, which is its state on disk.
//!
//! Guarantees: a record that [`Log`] has accepted survives the end of the process, however sudden. A reader gets the changes up
//! to some record, in order, with at least all that were accepted. The log is replaced by a shorter one (compaction) in one
//! step, so a process that ends in between leaves the old one or the new one. Its length stays below three times that of the
//! state, plus [`SLACK`]. A power cut may lose what was written after the last [`Log::sync`].
//!
//! Format: [`MAGIC`], then records. A record is the length of its payload, the CRC-32 of the payload, the CRC-32 of these eight
//! bytes (each 4 bytes, little endian), and the payload, a JSON document. The first payload says how many objects the state had
//! when the log began. Records with these objects follow, and then one record for the changes of each request. Records of
//! revisions that the log has passed are ignored, so compaction may copy more than it has to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apiserver::{Changes, Journal, ObjectChange};
use axum::body::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use crate::terminal::shell_word;

/// The first bytes of a log.
const MAGIC: &[u8] = b"cronjob-controller dev state 2\n";
/// The bytes of a record before its payload.
const HEADER: usize = 12;
/// Roughly how many bytes of objects are in one record of the state at the beginning.
const CHUNK: usize = 256 * 1024;
/// How far the log may grow beyond twice the length of the state before it is compacted.
const SLACK: u64 = 8 * 1024 * 1024;
/// How many bytes compaction may leave to be copied while no change can be recorded.
const REST: u64 = 64 * 1024;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system returned an error.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("it is not a state of this program")]
    Foreign,
    /// A part of the file is not what was written.
    #[error(
        "it is damaged at byte {offset} of {length}: {cause}; `truncate -s {offset} {}` drops that change and all later ones",
        shell_word(file)
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where the damaged record begins.
        offset: u64,
        /// The length of the file.
        length: u64,
        /// What is wrong with it.
        cause: String,
    },
    /// The state at the beginning of the file is damaged or incomplete.
    #[error("it is damaged at byte {offset} of {length}, inside the state with which it begins: {cause}")]
    Lost {
        /// Where the damaged record begins.
        offset: u64,
        /// The length of the file.
        length: u64,
        /// What is wrong with it.
        cause: String,
    },
}

/// What a log says.
#[derive(Debug, PartialEq)]
pub struct Contents {
    /// The state after the last record.
    pub state: Changes,
    /// The offset of an incomplete last record, which was never answered.
    pub torn: Option<u64>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    revision: u64,
    /// In the first record: the number of objects at the beginning.
    #[serde(default)]
    begins_with: Option<usize>,
    #[serde(default, borrow)]
    objects: Vec<Part<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    collection: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

/// Reads a log.
///
/// # Errors
/// When the file cannot be read, is no log, or is damaged before its last record.
pub fn read(path: &Path) -> Result<Contents, ReadError> {
    let mut file = BufReader::new(File::open(path)?);
    let length = file.get_ref().metadata()?.len();
    let mut magic = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    if magic != MAGIC {
        return Err(ReadError::Foreign);
    }
    let (mut replay, mut offset, mut torn) = (Replay::default(), MAGIC.len() as u64, None);
    let damaged = |replay: &Replay, offset: u64, cause: &str| {
        let cause = cause.to_owned();
        if replay.is_complete() {
            ReadError::Damaged { file: path.display().to_string(), offset, length, cause }
        } else {
            ReadError::Lost { offset, length, cause }
        }
    };
    while offset < length {
        let payload = match next(&mut file, length - offset)? {
            Next::Payload(payload) => payload,
            Next::Torn => {
                torn = Some(offset);
                break;
            }
            Next::Damaged => return Err(damaged(&replay, offset, "a checksum differs")),
        };
        replay.apply(&payload).map_err(|error| damaged(&replay, offset, &error.to_string()))?;
        offset += (HEADER + payload.len()) as u64;
    }
    if !replay.is_complete() {
        return Err(damaged(&replay, offset, "objects are missing"));
    }
    Ok(Contents { state: replay.into_state(), torn })
}

/// The state so far while a log is read.
#[derive(Default)]
struct Replay {
    revision: u64,
    /// How many objects of the beginning are still to come; `None` before the first record.
    expected: Option<usize>,
    objects: BTreeMap<(String, String), Box<str>>,
}

impl Replay {
    fn is_complete(&self) -> bool {
        self.expected == Some(0)
    }

    fn apply(&mut self, payload: &[u8]) -> serde_json::Result<()> {
        let payload: Payload = serde_json::from_slice(payload)?;
        match &mut self.expected {
            None => self.expected = payload.begins_with,
            Some(0) if payload.revision <= self.revision => return Ok(()),
            Some(expected) => *expected = expected.saturating_sub(payload.objects.len()),
        }
        self.revision = payload.revision;
        for Part { collection, key, object } in payload.objects {
            let id = (collection.into_owned(), key.into_owned());
            match object {
                Some(object) => drop(self.objects.insert(id, object.get().into())),
                None => drop(self.objects.remove(&id)),
            }
        }
        Ok(())
    }

    fn into_state(self) -> Changes {
        let objects = self.objects.into_iter().map(|((collection, key), json)| ObjectChange {
            collection,
            key,
            object: Some(json.into_string().into()),
        });
        Changes { revision: self.revision, objects: objects.collect() }
    }
}

enum Next {
    Payload(Vec<u8>),
    /// The file ends inside the record.
    Torn,
    Damaged,
}

/// Reads the next record of a file that has `left` more bytes.
fn next(file: &mut impl BufRead, left: u64) -> io::Result<Next> {
    let mut header = [0; HEADER];
    if left < HEADER as u64 {
        return Ok(Next::Torn);
    }
    file.read_exact(&mut header)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if crc(&header[..8]) != word(8) {
        // Some file systems lengthen a file before they write to it: after a power cut, zeros are what was not written.
        let only_zeros = header == [0; HEADER] && file.bytes().all(|byte| matches!(byte, Ok(0)));
        return Ok(if only_zeros { Next::Torn } else { Next::Damaged });
    }
    let (size, after) = (u64::from(word(0)), left - HEADER as u64);
    if size > after {
        return Ok(Next::Torn);
    }
    let mut payload = Vec::new();
    file.take(size).read_to_end(&mut payload)?;
    if crc(&payload) == word(4) {
        Ok(Next::Payload(payload))
    } else {
        Ok(if size == after { Next::Torn } else { Next::Damaged })
    }
}

/// An open log; clones share it.
#[derive(Clone, Debug)]
pub struct Log {
    path: Arc<Path>,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The bytes of complete records.
    length: u64,
    /// Whether an unfinished record may follow them.
    is_torn: bool,
    /// Whether all is on the disk.
    is_synced: bool,
    /// The length from which on the log should be compacted.
    compact_at: u64,
    /// Whether the last record could not be written; a warning was logged.
    is_failing: bool,
}

impl Open {
    /// Takes a file that holds a state and is on the disk.
    fn new(file: File, length: u64) -> Self {
        let compact_at = 2 * length + SLACK;
        Self { file, length, is_torn: false, is_synced: true, compact_at, is_failing: false }
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        self.is_torn = true;
        self.file.write_all(record)?;
        (self.is_torn, self.is_synced) = (false, false);
        self.length += record.len() as u64;
        Ok(())
    }
}

impl Log {
    /// Begins a log with a state, in place of the one at `path` if there is one.
    ///
    /// # Errors
    /// When it cannot be written; the old log then stays.
    pub fn begin(path: &Path, state: &Changes) -> io::Result<Self> {
        let (file, length) = write_state(&next_path(path), state)?;
        fs::rename(next_path(path), path)?;
        sync_directory(path)?;
        Ok(Self { path: path.into(), open: Arc::new(Mutex::new(Open::new(file, length))) })
    }

    /// Waits until all that was accepted is on the disk, so that it survives a power cut.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self) -> io::Result<()> {
        let file = {
            let mut open = self.open.lock();
            if open.is_synced {
                return Ok(());
            }
            let file = open.file.try_clone()?;
            open.is_synced = true;
            file
        };
        file.sync_data().inspect_err(|_| self.open.lock().is_synced = false)
    }

    /// Whether the log has become much longer than the state.
    pub fn is_long(&self) -> bool {
        let open = self.open.lock();
        open.length >= open.compact_at
    }

    /// Replaces the log by one that begins with the state of now, while changes continue to be recorded.
    ///
    /// # Errors
    /// When the new log cannot be written; the old one then stays.
    pub fn compact(&self, state: impl FnOnce() -> Changes) -> io::Result<()> {
        self.compact_in_steps(state, || {}).inspect_err(|_| {
            let _ = fs::remove_file(next_path(&self.path));
            let mut open = self.open.lock();
            open.compact_at = open.length + SLACK;
        })
    }

    /// Calls `step` wherever a process could end.
    fn compact_in_steps(&self, state: impl FnOnce() -> Changes, mut step: impl FnMut()) -> io::Result<()> {
        // The state is taken after the offset, so it has everything before it.
        let mut copied = self.open.lock().length;
        let next = next_path(&self.path);
        let (mut file, mut length) = write_state(&next, &state())?;
        let base = length;
        step();
        let mut old = File::open(&self.path)?;
        loop {
            let end = self.open.lock().length;
            length += copy(&mut old, &mut file, copied..end)?;
            copied = end;
            step();
            if self.open.lock().length - copied <= REST {
                break;
            }
        }
        file.sync_data()?;
        step();
        {
            let mut open = self.open.lock();
            length += copy(&mut old, &mut file, copied..open.length)?;
            file.sync_data()?;
            fs::rename(&next, &self.path)?;
            let is_failing = open.is_failing;
            *open = Open { length, is_failing, ..Open::new(file, base) };
        }
        step();
        sync_directory(&self.path)
    }
}

impl Journal for Log {
    fn append(&mut self, changes: &Changes) -> io::Result<()> {
        let record = record(&payload(changes.revision, &changes.objects))?;
        let mut open = self.open.lock();
        let result = open.append(&record);
        if let Err(error) = &result
            && !open.is_failing
        {
            warn!(%error, path = %self.path.display(), "cannot record changes of the cluster; writes fail until it is possible");
        }
        open.is_failing = result.is_err();
        result
    }
}

fn next_path(path: &Path) -> PathBuf {
    path.with_extension("log.new")
}

/// Opens a file that only its owner can read, for appending.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
}

/// Writes a log that holds a state, onto the disk. Returns it with its length.
fn write_state(path: &Path, state: &Changes) -> io::Result<(File, u64)> {
    let mut writer = BufWriter::new(create(path)?);
    writer.write_all(MAGIC)?;
    let mut length = MAGIC.len() as u64;
    let mut write = |payload: &[u8]| {
        let record = record(payload)?;
        length += record.len() as u64;
        writer.write_all(&record)
    };
    let (revision, count) = (state.revision, state.objects.len());
    write(format!("{{\"revision\":{revision},\"begins_with\":{count}}}").as_bytes())?;
    let mut rest = state.objects.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |change: &&ObjectChange| {
            bytes += change.object.as_ref().map_or(0, Bytes::len);
            bytes <= CHUNK
        };
        let (chunk, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        write(&payload(revision, chunk))?;
        rest = later;
    }
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_data()?;
    Ok((file, length))
}

/// Copies a range of bytes to the end of another file; returns how many.
fn copy(from: &mut File, to: &mut File, range: std::ops::Range<u64>) -> io::Result<u64> {
    from.seek(SeekFrom::Start(range.start))?;
    let wanted = range.end - range.start;
    let copied = io::copy(&mut from.take(wanted), to)?;
    if copied < wanted { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(copied) }
}

/// Makes a rename survive a power cut.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn payload(revision: u64, objects: &[ObjectChange]) -> Vec<u8> {
    let mut text = format!("{{\"revision\":{revision},\"objects\":[").into_bytes();
    for (index, change) in objects.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let (collection, key) = (quoted(&change.collection), quoted(&change.key));
        text.extend_from_slice(format!("{comma}{{\"collection\":{collection},\"key\":{key}").as_bytes());
        if let Some(object) = &change.object {
            text.extend_from_slice(b",\"object\":");
            text.extend_from_slice(object);
        }
        text.push(b'}');
    }
    text.extend_from_slice(b"]}");
    text
}

fn quoted(text: &str) -> serde_json::Value {
    text.into()
}

fn record(payload: &[u8]) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "the changes of one request exceed 4 GiB");
    let size = u32::try_from(payload.len()).map_err(too_long)?;
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&size.to_le_bytes());
    record.extend_from_slice(&crc(payload).to_le_bytes());
    let of_header = crc(&record);
    record.extend_from_slice(&of_header.to_le_bytes());
    record.extend_from_slice(payload);
    Ok(record)
}

/// CRC-32 as in IEEE 802.3.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |crc, byte| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8))
}

const fn table() -> [u32; 256] {
    let (mut table, mut index) = ([0; 256], 0);
    while index < 256 {
        let (mut crc, mut bit) = (index, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[index as usize] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests;

//! The text of a file of manifests.
//!
//! Guarantee: UTF-8, with or without a byte order mark, and UTF-16 with one, as `PowerShell` writes it, are read. Bytes that are not
//! of the encoding are an error; kubectl replaces them by U+FFFD. Pure.

use std::io::{Error, ErrorKind};

/// The text that `bytes` encode, without a byte order mark.
///
/// # Errors
/// When the bytes are not of the encoding.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, Error> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => str::from_utf8(rest).ok().map(str::to_owned),
        _ => String::from_utf8(bytes).ok(),
    };
    text.ok_or_else(|| {
        Error::new(ErrorKind::InvalidData, "the text is neither UTF-8 nor UTF-16 with a byte order mark")
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let decoded = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
    rest.is_empty().then(|| decoded.collect::<Result<String, _>>().ok())?
}

#[cfg(test)]
mod tests;

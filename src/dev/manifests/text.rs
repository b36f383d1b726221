//! The text of a file of manifests.
//!
//! Guarantee: UTF-8, with or without a byte order mark, and UTF-16 with one, as `PowerShell` writes it, are read. Bytes that are not
//! of the encoding are replaced by U+FFFD, as kubectl does. Pure.

use std::char::REPLACEMENT_CHARACTER;

/// The text that `bytes` encode, without a byte order mark.
pub(crate) fn decode(bytes: Vec<u8>) -> String {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let decoded = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
    let decoded = decoded.map(|read| read.unwrap_or(REPLACEMENT_CHARACTER));
    decoded.chain((!rest.is_empty()).then_some(REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests;

//! Base64, for continue tokens and etcd's gateway.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard alphabet, padded.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let sextet = (word >> (18 - 6 * index)) as usize & 63;
            out.push(if index > chunk.len() { '=' } else { STANDARD[sextet] as char });
        }
    }
    out
}

/// URL alphabet, with or without padding.
pub fn decode_url(text: &str) -> Option<Vec<u8>> {
    let (mut word, mut bits, mut out) = (0u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let byte = match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        let sextet = STANDARD.iter().position(|c| *c == byte)?;
        word = word << 6 | u32::try_from(sextet).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(word >> bits & 255).ok()?);
        }
    }
    Some(out)
}

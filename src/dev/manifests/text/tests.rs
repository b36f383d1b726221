use super::*;

#[test]
fn files_are_decoded_by_their_byte_order_mark() {
    let text = "a: \u{fc}\u{1f600}\n";
    let utf16 = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let rows = [
        ("UTF-8", text.as_bytes().to_vec(), text),
        ("UTF-8 with a byte order mark", [b"\xef\xbb\xbf", text.as_bytes()].concat(), text),
        ("UTF-16, little endian", [&[0xff, 0xfe][..], &utf16(u16::to_le_bytes)].concat(), text),
        ("UTF-16, big endian", [&[0xfe, 0xff][..], &utf16(u16::to_be_bytes)].concat(), text),
        ("Latin-1", b"# f\xfcr\na: 1\n".to_vec(), "# f\u{fffd}r\na: 1\n"),
        ("half a unit of UTF-16", b"\xff\xfea\x00b".to_vec(), "a\u{fffd}"),
        ("half a pair of UTF-16", b"\xff\xfe\x3d\xd8a\x00".to_vec(), "\u{fffd}a"),
        ("a damaged text with a byte order mark", b"\xef\xbb\xbfa\xff".to_vec(), "a\u{fffd}"),
        ("nothing", Vec::new(), ""),
    ];
    for (name, bytes, want) in rows {
        assert_eq!(decode(bytes), want, "{name}");
    }
}

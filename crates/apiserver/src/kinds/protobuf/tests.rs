#![allow(clippy::unwrap_used)]
//! `recorded.jsonl` holds objects as upstream's encoders (k8s.io/apimachinery v0.37.2) write them, in both encodings:
//! `tests/controlplane/gorecord` writes it.

use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::kinds::normalize::normalize;

fn recorded() -> Vec<(Vec<u8>, Value)> {
    let read = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        (STANDARD.decode(record["protobuf"].as_str().unwrap()).unwrap(), record["json"].clone())
    };
    include_str!("recorded.jsonl").lines().map(read).collect()
}

#[test]
fn both_forms_of_an_object_are_the_same_object() {
    for (bytes, mut expected) in recorded() {
        let mut object = decode(&bytes).unwrap();
        let text = |name: &str| expected[name].as_str().unwrap();
        let root = root(text("apiVersion"), text("kind")).unwrap();
        assert_eq!(normalize(&mut object, &root), Ok(Vec::new()), "{root}");
        normalize(&mut expected, &root).unwrap();
        assert_eq!(object, expected, "{root}");
    }
}

#[test]
fn a_body_that_is_cut_off_is_an_error_or_less() {
    for (bytes, _) in recorded() {
        for end in 0..bytes.len() {
            let _ = decode(&bytes[..end]);
        }
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
    }
    assert!(decode(b"{}").unwrap_err().contains("expected prefix"));
    assert!(!is_protobuf(b"{}"));
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(which in 0usize..6, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (mut bytes, _) = recorded().swap_remove(which);
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = decode(&bytes);
    }
}

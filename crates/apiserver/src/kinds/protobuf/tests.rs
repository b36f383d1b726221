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

/// A field on the wire: its number, and a message.
fn message(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

#[test]
fn alternatives_of_a_schema_have_their_json_form() {
    let string = message(5, b"string");
    let rows: [(&str, &str, Vec<u8>, Value); 6] = [
        (
            "a schema in place of a bool",
            "Bool",
            [&[8, 1][..], &message(2, &string)].concat(),
            json!({"type": "string"}),
        ),
        ("true", "Bool", vec![8, 1], json!(true)),
        ("false, which Go writes", "Bool", vec![8, 0], json!(false)),
        ("one schema", "Array", message(1, &string), json!({"type": "string"})),
        ("a list of schemas", "Array", message(2, &string), json!([{"type": "string"}])),
        ("a list of names", "StringArray", message(2, b"spec"), json!(["spec"])),
    ];
    for (why, kind, bytes, want) in rows {
        let type_ = Type::Struct(format!("apiextensions.v1.JSONSchemaPropsOr{kind}"));
        let wire = WireField { number: 1, value: Wire::Bytes(&bytes) };
        assert_eq!(decode_value(&type_, &wire, 0), Ok(want), "{why}");
    }
    let schema = Type::Struct("apiextensions.v1.JSONSchemaProps".to_owned());
    let empty = [message(2, b""), string].concat();
    let wire = WireField { number: 1, value: Wire::Bytes(&empty) };
    assert_eq!(decode_value(&schema, &wire, 0), Ok(json!({"type": "string"})), "what Go writes without a value");
    assert_eq!(double(&2.5_f64.to_le_bytes()), Some(json!(2.5)));
    assert_eq!(double(&3.0_f64.to_le_bytes()), Some(json!(3)));
    assert_eq!(double(&[0; 4]), None);
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

#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn version_2_is_an_empty_document_in_both_encodings() {
    let (content_type, json) = version_2("application/json");
    let document: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((content_type, &document["swagger"]), ("application/json", &json!("2.0")));
    assert_eq!((&document["paths"], &document["definitions"]), (&json!({}), &json!({})));
    // As kubectl asks: gnostic's Document has `swagger` in field 1 and `info`, of a title and a version, in field 2.
    let (content_type, message) = version_2("application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    assert!(content_type.ends_with("+protobuf"), "{content_type}");
    assert_eq!(message, b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.2");
}

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::decode::PageEnvelope;
use super::*;

/// The objects of a list that arrives in these pieces, and the text around them, or an error.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<String>, String), serde_json::Error> {
    let (mut items, mut found) = (Items::default(), Vec::new());
    for piece in pieces {
        items.push(piece);
        while let Some(item) = items.next() {
            found.push(serde_json::from_slice::<&RawValue>(items.text(item))?.get().to_owned());
        }
    }
    let envelope = PageEnvelope::decode(items.envelope())?;
    found.extend(envelope.items().map(|item| item.get().to_owned()));
    Ok((found, envelope.metadata.continue_token))
}

#[test]
fn items_read_piece_by_piece_equal_those_of_the_whole_list() {
    let rows = [
        (
            r#"{"metadata":{"continue":"t"},"items":[{"a":1},{"b":[2,{}]}]}"#,
            Some(vec![r#"{"a":1}"#, r#"{"b":[2,{}]}"#]),
        ),
        (r#"{"items":[{"a":1}],"metadata":{"continue":"t"}}"#, Some(vec![r#"{"a":1}"#])),
        (
            " { \"items\" : [ {\"a\": \"]},\\\"\" } , 7 ] , \"metadata\" : { \"continue\" : \"t\" } } ",
            Some(vec![r#"{"a": "]},\"" }"#, "7"]),
        ),
        (r#"{"metadata":{"continue":"t"},"items":[]}"#, Some(vec![])),
        (r#"{"metadata":{"continue":"t"},"items":null}"#, Some(vec![])),
        (r#"{"metadata":{"continue":"t"}}"#, Some(vec![])),
        (r#"{"kind":"items","x":[1],"metadata":{"continue":"t","items":[3]},"items":[2]}"#, Some(vec!["2"])),
        (r#"{"metadata":{"continue":"t"},"it\u0065ms":[2,3]}"#, Some(vec!["2", "3"])),
        (r#"{"metadata":{"continue":"t"},"myitems":[1],"items":[2]}"#, Some(vec!["2"])),
        (r#"{"metadata":{"continue":"t"},"items":[1,]}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[,1]}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[1 2]}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[{]}]}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[1"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[1]}}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":[1],"items":[2]}"#, None),
        (r#"{"metadata":{"continue":"t"},"items":{"a":1}}"#, None),
        ("7", None),
        ("", None),
        ("}]", None),
    ];
    for (text, expected) in rows {
        let expected = expected.map(|items| (items.into_iter().map(str::to_owned).collect(), "t".to_owned()));
        assert_eq!(read([text.as_bytes()]).ok(), expected, "{text}");
        assert_eq!(read(text.as_bytes().chunks(1)).ok(), expected, "{text}, byte by byte");
    }
}

#[test]
fn a_list_of_any_length_is_held_one_object_at_a_time() {
    let object = format!(r#"{{"spec":"{}"}}"#, "x".repeat(100_000));
    let list = format!(r#"{{"metadata":{{}},"items":[{}]}}"#, vec![object.as_str(); 100].join(","));
    let (mut items, mut found, mut most) = (Items::default(), 0, 0);
    for piece in list.as_bytes().chunks(16 << 10) {
        items.push(piece);
        while items.next().is_some() {
            found += 1;
        }
        most = most.max(items.held());
    }
    assert_eq!(found, 100);
    assert!(most < object.len() + (32 << 10), "{most}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(Value::from),
        "[\\PC\"\\\\,\\[\\]{}:]{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("items|[a-z\"\\\\]{0,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn items_do_not_depend_on_the_length_of_the_pieces(
        objects in prop::collection::vec(value(), 0..5),
        other in value(),
        last in any::<bool>(),
        length in 1_usize..40,
    ) {
        let metadata = r#""metadata":{"continue":"t"}"#;
        let array = Value::from(objects.clone()).to_string();
        let text = if last {
            format!(r#"{{"other":{other},{metadata},"items":{array}}}"#)
        } else {
            format!(r#"{{"items":{array},"other":{other},{metadata}}}"#)
        };
        let (found, token) = read(text.as_bytes().chunks(length)).unwrap();
        let found: Vec<Value> = found.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        prop_assert_eq!((found, token), (objects, "t".to_owned()));
    }
}

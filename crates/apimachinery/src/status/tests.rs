use super::*;
use crate::field::{invalid_field, required_field};

#[test]
fn an_invalid_object_has_a_cause_for_each_error_and_each_text_once() {
    let errors =
        [invalid_field("spec.a", &json!("x"), "no"), required_field("spec.b", ""), required_field("spec.b", "")];
    let status = invalid(&Qualified::new("batch", "CronJob"), "hello", &errors);
    let text = r#"CronJob.batch "hello" is invalid: [spec.a: Invalid value: "x": no, spec.b: Required value]"#;
    assert_eq!((status.code, status.message.as_str()), (422, text));
    let document = status.to_value();
    assert_eq!(document["details"]["causes"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["details"]["causes"][0]["reason"], "FieldValueInvalid");
    assert_eq!(document["details"]["group"], "batch");
}

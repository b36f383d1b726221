#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn last_line_of_the_file_is_the_report_with_short_lists() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        ShadowFile::new(path.clone()).read()
    };
    let entries = vec![json!({"name": "a"}); MOST_ENTRIES + 2];
    let report = json!({
        "slots": 3, "missed": entries, "twice": [], "differs": [], "listed": [], "more": {"missed": 40, "twice": 1},
    });
    let found = read(&format!("{{\"slots\": 1}}\n{report}\n\n")).unwrap();
    assert_eq!(found["missed"].as_array().unwrap().len(), MOST_ENTRIES);
    assert_eq!(found["more"], json!({"missed": 42, "twice": 1, "differs": 0, "listed": 0}));
    for (text, want) in
        [("", "is empty"), ("{\"slots\": 1}", "is not what"), ("2 slots", "is not what"), ("[]", "is not what")]
    {
        assert!(read(text).unwrap_err().contains(want), "{text:?}");
    }
    let missing = ShadowFile::new(directory.path().join("none")).read().unwrap_err();
    assert!(missing.contains("cannot be read"), "{missing}");
}

//! Objects that clients read differently from the server's copy: invalid fields that old servers accepted, and
//! malformed objects.

use std::borrow::Cow;

use axum::body::Bytes;
use cronjob_controller::api::manage::MANAGED_ANNOTATION;
use serde_json::{Value, json};

/// The annotation with the form that clients read.
pub const READS_AS: &str = "simulation/reads-as";

/// The object as clients read it.
pub fn disguised(object: &Value) -> Cow<'_, Value> {
    let Some(text) = object["metadata"]["annotations"][READS_AS].as_str() else { return Cow::Borrowed(object) };
    let mut shown = object.clone();
    let spec = &mut shown["spec"];
    match text {
        "unparseable" => spec["schedule"] = json!("61 * * * *"),
        "zone-inside" => {
            spec["schedule"] = json!("TZ=Asia/Kathmandu */2 * * * *");
            spec["timeZone"] = Value::Null;
        }
        "unknown-zone" => spec["timeZone"] = json!("Mars/Olympus"),
        "number" => spec["schedule"] = json!(5),
        "no-spec" => drop(shown.as_object_mut().unwrap().remove("spec")),
        _ => {
            spec["suspend"] =
                spec.get("suspend").filter(|suspend| **suspend == json!(true)).cloned().unwrap_or_default();
            // A CronJob that is handed over has an annotation.
            if shown["metadata"]["annotations"][MANAGED_ANNOTATION].is_null() {
                shown["metadata"]["annotations"] = Value::Null;
            }
            for field in ["labels", "ownerReferences", "managedFields", "deletionTimestamp"] {
                shown["metadata"][field] = Value::Null;
            }
            if shown["status"]["active"].is_null() {
                shown["status"]["active"] = Value::Null;
            }
        }
    }
    Cow::Owned(shown)
}

/// The body of an answer as clients read it.
pub fn disguise_body(bytes: Bytes) -> Bytes {
    if !contains(&bytes, READS_AS) {
        return bytes;
    }
    let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) else { return bytes };
    if let Some(items) = document["items"].as_array_mut() {
        for item in items {
            *item = disguised(item).into_owned();
        }
    } else {
        document = disguised(&document).into_owned();
    }
    document.to_string().into()
}

/// A line of a watch as clients read it.
pub fn disguise_line(line: &str) -> Cow<'_, str> {
    if !line.contains(READS_AS) {
        return Cow::Borrowed(line);
    }
    let Ok(event) = serde_json::from_str::<Value>(line) else { return Cow::Borrowed(line) };
    let (kind, object) = (&event["type"], disguised(&event["object"]));
    Cow::Owned(format!("{{\"type\":{kind},\"object\":{object}}}"))
}

fn contains(bytes: &[u8], text: &str) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|whole| whole.contains(text))
}

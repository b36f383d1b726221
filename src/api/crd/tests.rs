//! The API server's rules for structural schemas, and the project's own.
#![allow(clippy::unwrap_used)]

use super::*;

/// Calls `look` with every schema of a definition, preceded by its path.
fn walk(path: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), inner, look);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            walk(&format!("{path}[{key}]"), inner, look);
        }
    }
}

fn schemas() -> Vec<(String, Value)> {
    all()
        .into_iter()
        .map(|definition| {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            (kind, definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone())
        })
        .collect()
}

#[test]
fn every_schema_is_structural_and_uses_known_keywords_only() {
    let known = [
        "type",
        "format",
        "description",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "enum",
        "minimum",
        "minItems",
        "minLength",
        "maxLength",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ];
    for (kind, schema) in schemas() {
        walk(&kind, &schema, &mut |path, schema| {
            assert!(schema["type"].is_string(), "{path} has no type, or several: {schema}");
            for key in schema.as_object().unwrap().keys() {
                assert!(known.contains(&key.as_str()), "{path} has {key}");
            }
            let required = schema["required"].as_array().into_iter().flatten();
            for name in required.chain(schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten()) {
                let owner = if schema["type"] == "array" { &schema["items"] } else { schema };
                assert!(owner["properties"].get(name.as_str().unwrap()).is_some(), "{path} asks for {name}");
            }
        });
    }
}

#[test]
fn own_fields_have_descriptions_and_template_fields_have_none() {
    for (kind, schema) in schemas() {
        walk(&kind, &schema, &mut |path, schema| {
            let below = path.contains(".jobTemplate.");
            let ours = path.starts_with(&format!("{kind}.spec")) || path.starts_with(&format!("{kind}.status"));
            let described = schema["description"].is_string();
            assert!(!(below && described), "{path} is described");
            assert!(below || !ours || described || path.ends_with(']'), "{path} is not described");
            assert!(!schema["description"].as_str().unwrap_or_default().contains('\n'), "{path} has a line break");
        });
    }
}

#[test]
fn an_unknown_field_of_a_template_is_kept_at_every_depth() {
    for (kind, schema) in schemas() {
        let mut objects = 0;
        walk(&kind, &schema, &mut |path, schema| {
            if path.contains(".jobTemplate")
                && schema["type"] == "object"
                && schema.get("additionalProperties").is_none()
            {
                assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], true, "{path}");
                objects += 1;
            }
        });
        assert!(objects >= 4, "{kind}: {objects}");
    }
}

#[test]
fn the_fields_are_those_of_the_apis() {
    let rows = [
        (
            "CronJob",
            vec![
                "concurrencyPolicy",
                "failedJobsHistoryLimit",
                "jobTemplate",
                "schedule",
                "startingDeadlineSeconds",
                "successfulJobsHistoryLimit",
                "suspend",
            ],
            vec!["active", "conditions", "countedFrom", "lastScheduleTime"],
        ),
        (
            "ApiExample",
            vec![
                "concurrencyPolicy",
                "failedJobHistoryLimit",
                "jobTemplate",
                "schedule",
                "startingDeadlineSeconds",
                "successfulJobHistoryLimit",
                "suspend",
            ],
            vec!["active", "lastScheduleTime"],
        ),
    ];
    for ((kind, schema), (want, spec, status)) in schemas().into_iter().zip(rows) {
        assert_eq!(kind, want);
        for (part, want) in [("spec", spec), ("status", status)] {
            let fields: Vec<&String> = schema["properties"][part]["properties"].as_object().unwrap().keys().collect();
            assert_eq!(fields, want, "{kind}");
        }
        let spec = &schema["properties"]["spec"];
        assert_eq!(spec["required"], json!(["schedule", "jobTemplate"]));
        assert_eq!(spec["properties"]["concurrencyPolicy"]["enum"], json!(["Allow", "Forbid", "Replace"]));
        let limits = spec["properties"].as_object().unwrap().iter().filter(|(_, field)| field["type"] == "integer");
        assert!(limits.map(|(name, field)| assert_eq!(field["minimum"], 0, "{name}")).count() == 3);
        assert_eq!(schema["properties"]["metadata"]["properties"]["name"]["maxLength"], 52);
    }
}

#[test]
fn a_definition_fits_into_the_annotation_in_which_kubectl_keeps_it() {
    for definition in all() {
        let size = definition.to_string().len();
        assert!(size < 200_000, "{}: {size} bytes", definition["metadata"]["name"]);
    }
}

/// The pattern of the rule for an ApiExample's schedule.
fn schedule_pattern() -> regex::Regex {
    let (_, schema) = schemas().remove(1);
    let rule = &schema["properties"]["spec"]["properties"]["schedule"]["x-kubernetes-validations"][0]["rule"];
    let pattern = rule.as_str().unwrap().strip_prefix("self.matches(r'").unwrap().strip_suffix("')").unwrap();
    regex::Regex::new(pattern).unwrap()
}

#[test]
fn schedule_rule_refuses_malformed_schedules() {
    let table = [
        ("* * * * *", true),
        ("*/5 9-17 1,15 JAN-mar MON-FRI", true),
        ("\t0\u{a0}9  * * ?\n", true),
        ("TZ=Asia/Tokyo 0 9 * * *", true),
        ("CRON_TZ=UTC @daily", true),
        ("@every 1h30m", true),
        // The rule does not judge numbers.
        ("61 * * * *", true),
        ("", false),
        ("every day", false),
        ("* * * *", false),
        ("* * * * * *", false),
        ("@often", false),
        ("@every", false),
        ("TZ=UTC", false),
        ("* * * * $", false),
    ];
    let pattern = schedule_pattern();
    for (schedule, fits) in table {
        assert_eq!(pattern.is_match(schedule), fits, "{schedule:?}");
    }
}

proptest::proptest! {
    #[test]
    fn schedule_rule_accepts_every_valid_schedule(
        zone in "((CRON_)?TZ=(UTC|Europe/Berlin|) )?",
        fields in proptest::collection::vec("[*?0-9+,/-]{1,4}|(jan|MON|sun)(-[a-z]{3})?|@(daily|every) ?1?[hms]?", 0..7),
        blank in "[ \\t\u{a0}\u{2003}\\x0b]{1,2}",
        end in "[ \\n]?",
    ) {
        let schedule = format!("{zone}{}{end}", fields.join(&blank));
        let runs = schedule::Schedule::parse_standard(&schedule, schedule::Zone::UTC).is_ok();
        proptest::prop_assert!(!runs || schedule_pattern().is_match(&schedule), "{:?}", schedule);
    }
}

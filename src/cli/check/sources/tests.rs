#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use schedule::Zone;
use serde_json::{Value, json};

use super::super::{Rules, Severity, check};
use super::*;
use crate::cli::next::cron_jobs::{Answer, Question};
use crate::cli::next::manifests::next_of;
use crate::terminal::path_text;

#[test]
fn unreadable_file_of_a_directory_is_reported_and_the_others_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // A file that is there and that no user can read.
    std::os::unix::fs::symlink("/proc/self/mem", path("a.yaml")).unwrap();
    let utf16: Vec<u8> = "\u{feff}kind: CronJob\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(path("b.yaml"), utf16).unwrap();
    std::os::unix::fs::symlink("nowhere.yaml", path("c.yaml")).unwrap();
    let all = [directory.path().to_owned()];
    let Read { sources, unreadable, .. } = read(&all, false).unwrap();
    let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    assert_eq!(texts, ["kind: CronJob\n"]);
    let files: Vec<(String, String)> = unreadable.iter().map(|error| (error.file(), error.reason())).collect();
    let reasons = [
        ("a.yaml", "cannot be read: Input/output error (os error 5)"),
        ("c.yaml", "cannot be read: No such file or directory (os error 2)"),
    ];
    assert_eq!(files, reasons.map(|(name, reason)| (path_text(&path(name)), reason.to_owned())));
    for named in [path("a.yaml"), path("none.yaml")] {
        assert!(read(std::slice::from_ref(&named), false).unwrap_err().to_string().contains(": cannot be read: "));
        let Read { sources, unreadable, .. } = read_all(&[named.clone(), path("b.yaml")], false);
        assert_eq!((sources.len(), unreadable.len(), unreadable[0].file()), (1, 1, path_text(&named)));
    }
}

#[test]
fn unreadable_directory_below_is_reported_and_the_others_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // Two chains of directories, of which the second becomes the end of the first, have a path that is too long for any user.
    let chain = vec!["d".repeat(250); 12].join("/");
    for top in ["a", "b"] {
        std::fs::create_dir_all(path(top).join(&chain)).unwrap();
    }
    std::fs::rename(path("b"), path("a").join(&chain).join("b")).unwrap();
    for name in ["z.yaml", "a/y.yaml"] {
        std::fs::write(path(name), "kind: CronJob\n").unwrap();
    }
    let Read { sources, unreadable, .. } = read(&[directory.path().to_owned()], true).unwrap();
    let files: Vec<&str> = sources.iter().map(|source| source.file.as_str()).collect();
    assert_eq!(files, [path_text(&path("a/y.yaml")), path_text(&path("z.yaml"))]);
    let [error] = unreadable.as_slice() else { panic!("{unreadable:?}") };
    assert!(
        error.file().contains("/b/ddd") && error.reason() == "cannot be read: File name too long (os error 36)",
        "{error}"
    );
}

/// A manifest with these lines in the spec of the Job, before its template.
fn manifest(lines: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: a\nspec:\n  schedule: \"0 3 * * *\"\n  jobTemplate:\n    spec:\n{lines}\
         \x20     template:\n        spec:\n          restartPolicy: Never\n          containers:\n          - {{name: c, image: i}}\n"
    )
}

fn json(name: &str) -> Value {
    let container = json!({"name": "c", "image": "i"});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod}}},
    })
}

/// How many CronJobs `dev`, `next` and `check` read from a file, the first of them, and the first error of `check`.
fn read_by_all(bytes: Vec<u8>) -> ([usize; 3], Value, Option<String>) {
    let directory = tempfile::tempdir().unwrap();
    let file = [directory.path().join("a.yaml")];
    std::fs::write(&file[0], bytes).unwrap();
    let now = "2026-11-22T10:00:00Z".parse().unwrap();
    let of_dev = manifests::load(&file).unwrap_or_default();
    let sources = super::read(&file, false).unwrap().sources;
    let question = Question { zone: Zone::UTC, seed: "".into(), from: None, count: 1, all: true };
    let of_next = match next_of(&sources, "default", &question, now) {
        (Some(Answer::Each(answers)), _) => answers.len(),
        (Some(_), _) => 1,
        (None, _) => 0,
    };
    let report = check(&sources, &Rules { max_per_minute: 5000, ..Rules::default() }, now);
    let error = report.findings.iter().find(|finding| finding.severity == Severity::Error);
    let error = error.map(|finding| format!("{}: {} [{}]", finding.line, finding.sentence(), finding.code));
    let first = of_dev.first().map(|manifest| manifest.object.clone()).unwrap_or_default();
    ([of_dev.len(), of_next, report.cron_jobs], first, error)
}

#[test]
fn files_have_the_same_values_for_check_next_and_dev() {
    let plain = manifest("");
    let utf16 = |bom: u16, bytes: fn(u16) -> [u8; 2]| {
        std::iter::once(bom).chain(plain.encode_utf16()).flat_map(bytes).collect::<Vec<u8>>()
    };
    let item = |name: &str| {
        let mut object = json(name);
        for field in ["apiVersion", "kind"] {
            object.as_object_mut().unwrap().remove(field);
        }
        object
    };
    let list = |items: Vec<Value>| json!({"apiVersion": "batch/v1", "kind": "CronJobList", "items": items}).to_string();
    let dump = (0..3000).map(|number| json(&format!("a{number}"))).collect();
    let (ttl, commit) = ("/spec/jobTemplate/spec/ttlSecondsAfterFinished", "/metadata/labels/commit");
    let sha = plain.replace("  name: a\n", "  name: a\n  labels:\n    commit: 83e2010\n");
    let rows: [(&str, Vec<u8>, usize, &str, Value); 16] = [
        ("33 lines of comments", manifest(&"      # why\n".repeat(33)).into(), 1, "/kind", json!("CronJob")),
        ("a float of Helm", manifest("      ttlSecondsAfterFinished: 1.2096e+06\n").into(), 1, ttl, json!(1_209_600)),
        ("a fraction of zero", manifest("      ttlSecondsAfterFinished: 3.0\n").into(), 1, ttl, json!(3)),
        ("an exponent", manifest("      ttlSecondsAfterFinished: 1e3\n").into(), 1, ttl, json!(1000)),
        ("a zero before 8", manifest("      ttlSecondsAfterFinished: 08\n").into(), 1, ttl, json!(8)),
        ("a zero before 10", manifest("      ttlSecondsAfterFinished: 010\n").into(), 1, ttl, json!(8)),
        ("a dump of 3,000", list(dump).into(), 3000, "/metadata/name", json!("a0")),
        ("JSON after JSON", format!("{}\n{}\n", json("one"), json("two")).into(), 2, "/metadata/name", json!("one")),
        ("a list with a type", list(vec![item("one"), item("two")]).into(), 2, "/apiVersion", json!("batch/v1")),
        ("YAML after JSON", format!("{}\n---\n{plain}", json("one")).into(), 2, "/metadata/name", json!("one")),
        ("JSON with tabs", json("one").to_string().replace(',', ",\n\t").into(), 1, "/metadata/name", json!("one")),
        ("UTF-16, little endian", utf16(0xfeff, u16::to_le_bytes), 1, "/metadata/name", json!("a")),
        ("UTF-16, big endian", utf16(0xfeff, u16::to_be_bytes), 1, "/metadata/name", json!("a")),
        ("a byte order mark", [b"\xef\xbb\xbf", plain.as_bytes()].concat(), 1, "/metadata/name", json!("a")),
        ("a hash that looks like a number", sha.into(), 1, commit, json!("83e2010")),
        ("line ends of Windows", plain.replace('\n', "\r\n").into(), 1, "/metadata/name", json!("a")),
    ];
    for (name, bytes, number, pointer, want) in rows {
        let (numbers, first, error) = read_by_all(bytes);
        assert_eq!((numbers, error), ([number; 3], None), "{name}");
        assert_eq!(first.pointer(pointer), Some(&want), "{name}");
    }
}

#[test]
fn files_that_kubectl_refuses_have_one_error_with_its_line() {
    let twice = manifest("      template:\n        metadata: {labels: {a: b}}\n");
    let rows = [
        ("a key twice", twice, "11: not YAML: the key \"template\" occurs twice in the same mapping [not-yaml]"),
        (
            "a value behind a marker",
            format!("{}--- {}\n", manifest(""), json("b")),
            "14: not YAML: after --- only a comment may follow on the same line; kubectl refuses this document and all after it [not-yaml]",
        ),
        (
            "a second JSON value in a document of YAML",
            format!("{}---\n{}\n{}\n", manifest(""), json("b"), json("c")),
            "16: not YAML: there is text after the end of the document's value [not-yaml]",
        ),
        (
            "YAML after two JSON values",
            format!("{}\n{}\n{}", json("a"), json("b"), manifest("")),
            "3: not YAML: after two JSON values only JSON may follow; kubectl refuses what is here, and all after it [not-yaml]",
        ),
        (
            "the second of two JSON values",
            format!("{}\n{{\"a\":", json("a")),
            "2: not YAML: the bracket { is not closed [not-yaml]",
        ),
        (
            "a list in a list",
            json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "List", "items": [json("a")]}]}).to_string(),
            "1: not YAML: items[0] is a list, and kubectl refuses lists in lists; put its items into the outer one [not-yaml]",
        ),
        (
            "a number for a text",
            manifest("").replace("  name: a\n", "  name: a\n  labels: {commit: 83e20}\n"),
            "5: CronJob a: metadata.labels[commit]: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string [invalid]",
        ),
    ];
    for (name, text, want) in rows {
        assert_eq!(read_by_all(text.into()).2.as_deref(), Some(want), "{name}");
    }
}

#[test]
fn file_of_another_encoding_beside_one_with_an_error_has_no_finding() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let plain = manifest("");
    let text = std::iter::once(0xfeff).chain(plain.encode_utf16()).flat_map(u16::to_le_bytes);
    std::fs::write(path("a.yaml"), text.collect::<Vec<u8>>()).unwrap();
    std::fs::write(path("b.yaml"), plain.replace("name: a\n", "name: b\n").replace("0 3 * * *", "61 3 * * *")).unwrap();
    let Read { sources, unreadable, .. } = read(&[directory.path().to_owned()], false).unwrap();
    let report = check(&sources, &Rules::default(), "2026-11-22T10:00:00Z".parse().unwrap()).without(&unreadable);
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let errors: Vec<(&str, usize)> = errors.map(|finding| (finding.file.as_str(), finding.line)).collect();
    assert_eq!((report.cron_jobs, errors), (2, vec![(path_text(&path("b.yaml")).as_str(), 6)]));
}

#[cfg(unix)]
#[test]
fn file_and_a_link_to_it_are_one() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("b.yaml"), manifest("")).unwrap();
    std::os::unix::fs::symlink("b.yaml", directory.path().join("a.yaml")).unwrap();
    let sources = super::read(&[directory.path().to_owned()], false).unwrap().sources;
    let names: Vec<&str> = sources.iter().filter_map(|source| source.file.rsplit('/').next()).collect();
    assert_eq!(names, ["a.yaml"]);
}

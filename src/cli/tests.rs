//! Hostile words in the fields of objects and in the names of files, in the output of each command.
#![allow(clippy::unwrap_used)]

use schedule::Zone;
use serde_json::json;

use super::cluster::Known;
use super::explain::tests::{facts, instant, job};
use super::explain::{Facts, explain, read::Said};
use super::*;
use crate::cli::output::render;
use crate::terminal::tests::{HOSTILE, harmful};

const NOW: &str = "2026-11-22T10:00:00Z";
const FORMATS: [Format; 3] = [Format::Table, Format::Json, Format::Yaml];

/// A CronJob with these words wherever a tenant can write some.
fn known_with(words: &str) -> Known {
    let change = json!({
        "metadata": {"name": words, "namespace": words, "annotations": {
            "cronjob-controller.dev/exclude": words, format!("cronjob-controller.dev/{words}"): words,
        }},
        "spec": {"schedule": words, "timeZone": words},
        "status": {"active": [{"kind": "Job", "name": words, "namespace": words, "uid": "x"}]},
    });
    let said = Said { time: instant(NOW), count: 2, reason: words.to_owned(), message: words.to_owned() };
    let jobs = vec![job("2026-11-22T02:00:00Z", "cj", Some("Failed"))];
    let facts = Facts { warnings: Ok(vec![said.clone()]), ..facts(&change, jobs) };
    Known { facts, events: vec![said] }
}

#[test]
fn words_of_objects_in_a_cluster_are_plain_in_every_format() {
    for (name, words) in HOSTILE {
        let known = [known_with(words), known_with(words)];
        let told = explain(&known[0].facts, Zone::UTC, instant(NOW));
        let unread = Facts { warnings: Err(words.to_owned()), ..known_with(words).facts };
        let told_unread = explain(&unread, Zone::UTC, instant(NOW));
        let listing = list::listing(&known, Zone::UTC, instant(NOW));
        for format in FORMATS {
            let outputs = [render(&told, format), render(&told_unread, format), render(&listing, format)];
            for output in outputs {
                assert_eq!(harmful(&output), [""; 0], "{name}: {format:?}: {}", &*output);
            }
        }
        let table = render(&listing, Format::Table);
        assert_eq!(table.lines().count(), 4, "{name}: {}", &*table);
    }
}

#[test]
fn cron_jobs_in_json_are_a_list_and_their_number_has_another_name() {
    let (now, since) = (instant(NOW), Since::Ago(chrono::TimeDelta::hours(12)));
    let known = [known_with("a"), known_with("b")];
    let reports = [
        ("list", render(&list::listing(&known, Zone::UTC, now), Format::Json), true),
        ("explain --since", render(&slots::slots(&known, Zone::UTC, since, now), Format::Json), true),
        ("list --night", render(&list::night::Night::of(&known, Zone::UTC, Zone::UTC, now), Format::Json), false),
        (
            "list --next-hour",
            render(&list::next_hour::NextHour::of(&known, Zone::UTC, Zone::UTC, now), Format::Json),
            false,
        ),
    ];
    for (command, report, is_list) in reports {
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["cronJobs"].is_array(), is_list, "{command}");
        assert_eq!(report["cronJobs"].is_null(), !is_list, "{command}");
        assert_eq!(report["cronJobCount"].is_u64(), !is_list, "{command}");
    }
}

#[cfg(feature = "dev")]
mod of_manifests {
    use serde_json::Value;

    use super::check::{CheckFormat, Rules, Source, check};
    use super::*;

    /// A manifest with these words in its fields, under a file name of these words.
    fn source(words: &str) -> Source {
        let template = json!({"spec": {"template": {"spec": {
            "restartPolicy": words, "containers": [{"name": words, "image": "i"}],
        }}}});
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": words, "namespace": words, "annotations": {
                "cronjob-controller.dev/exclude": words, format!("cronjob-controller.dev/{words}"): words,
            }},
            "spec": {"schedule": "0 * * * *", "timeZone": words, "concurrencyPolicy": words, "jobTemplate": template, words: 1},
        });
        Source { file: words.to_owned(), text: object.to_string() }
    }

    #[test]
    fn words_of_manifests_and_names_of_files_are_plain_in_every_format() {
        for (name, words) in HOSTILE {
            let sources = [source(words), Source { file: words.to_owned(), text: format!("a: [\n{words}") }];
            let report = check(&sources, &Rules::default(), instant(NOW));
            for format in CheckFormat::NAMES.iter().filter_map(|name| CheckFormat::parse(name)) {
                let output = report.render(format, None);
                if format != CheckFormat::Github {
                    assert_eq!(harmful(&output), [""; 0], "{name}: {format:?}: {}", &*output);
                    continue;
                }
                let json: Value =
                    serde_json::from_str(&report.render(CheckFormat::Report(Format::Json), None)).unwrap();
                assert_eq!(output.lines().count(), json["findings"].as_array().unwrap().len(), "{name}");
                for line in output.lines() {
                    let rest = line.strip_prefix("::error file=").or_else(|| line.strip_prefix("::warning file="));
                    assert_eq!(harmful(rest.expect(line)), [""; 0], "{name}: {line}");
                }
            }
            let question =
                next::cron_jobs::Question { zone: Zone::UTC, seed: "".into(), from: None, count: 2, all: true };
            let (answer, unreadable) = next::manifests::next_of(&sources[..1], words, &question, instant(NOW));
            for format in FORMATS {
                let output = answer.as_ref().map(|answer| render(answer, format)).unwrap_or_default();
                assert_eq!(harmful(&output), [""; 0], "{name}: {format:?}");
            }
            let notes = PlainText::lines(unreadable.iter().map(ToString::to_string));
            assert!(notes.lines().count() == unreadable.len(), "{name}: {}", &*notes);
            assert_eq!(harmful(&notes), [""; 0], "{name}");
        }
    }

    #[test]
    fn name_of_a_file_in_a_workflow_command_is_the_name() {
        let rows = [
            ("d/a,b:c%d.yaml", "d/a%2Cb%3Ac%25d.yaml"),
            ("a\r\n::error::b", "a%0D%0A%3A%3Aerror%3A%3Ab"),
            ("\u{1b}[2J\u{202e}", r"\x1b[2J\u202e"),
        ];
        for (file, want) in rows {
            let report = check(&[Source { file: file.to_owned(), ..source("a") }], &Rules::default(), instant(NOW));
            let output = report.render(CheckFormat::Github, None);
            let line = output.lines().next().unwrap();
            assert!(line.starts_with(&format!("::error file={want},line=1,title=")), "{line}");
        }
    }
}

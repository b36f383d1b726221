#![allow(clippy::unwrap_used)]

use super::*;
use crate::cli::check::sources;

const CRON_JOB: &str = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n";

/// A sentence, the files, those that are checked, the number of other files, and a part of each line.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], usize, &'a [&'a str]);

/// The files that are checked, those of other tools, and the lines about the rest; all below the directory.
fn parted(files: &[(&str, &str)], named: &[&str]) -> (Vec<String>, usize, Vec<String>) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut paths: Vec<PathBuf> = named.iter().map(|name| root.path().join(name)).collect();
    if paths.is_empty() {
        paths.push(root.path().to_owned());
    }
    let sources = sources::read(&paths, true).unwrap();
    let (checked, left_out) = part(&paths, sources);
    let below = format!("{}/", root.path().display());
    let short = |text: &str| text.replace(&below, "");
    (
        checked.iter().map(|source| short(&source.file)).collect(),
        left_out.files,
        left_out.lines().map(|l| short(&l)).collect(),
    )
}

#[test]
fn files_that_are_no_manifests_alone_are_left_out() {
    let kustomize = "overlay/patch.yaml: a patch of kustomize is not checked alone; to check the result: kubectl kustomize overlay | \
                     cronjob-controller check -f -";
    let helm = "is not checked alone; to check the result: helm template";
    let template = "{{- if .Values.on }}\napiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n";
    let by_value = "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}-a\n";
    let in_text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    {{ define }}\n";
    let rows: [Row<'_>; 14] = [
        ("a manifest", &[("a.yaml", CRON_JOB)], &["a.yaml"], 0, &[]),
        ("values", &[("a.yaml", CRON_JOB), ("values.yaml", "image: {tag: 1}\n")], &["a.yaml"], 1, &[]),
        ("a list of something", &[("play.yml", "- hosts: all\n")], &[], 1, &[]),
        ("JSON of something", &[("package.json", "{\"name\": \"x\"}")], &[], 1, &[]),
        ("half a manifest", &[("a.yaml", "kind: CronJob\n")], &["a.yaml"], 0, &[]),
        ("one manifest among others", &[("a.yaml", "a: 1\n---\nkind: CronJob\n")], &["a.yaml"], 0, &[]),
        ("no YAML", &[("a.yaml", "a: [\n")], &["a.yaml"], 0, &[]),
        (
            "a patch",
            &[
                ("base/cronjob.yaml", CRON_JOB),
                ("base/kustomization.yaml", "resources: [cronjob.yaml]\n"),
                ("overlay/kustomization.yaml", "resources: [../base]\npatches: [{path: ./patch.yaml}]\n"),
                ("overlay/patch.yaml", CRON_JOB),
            ],
            &["base/cronjob.yaml"],
            0,
            &[kustomize],
        ),
        (
            "patches of every kind, in directories below",
            &[
                (
                    "o/kustomization.yml",
                    "patches: [text, {patch: text}]\npatchesStrategicMerge: [p/a.yaml]\npatchesJson6902: [{path: p/b.yaml}]\n",
                ),
                ("o/p/a.yaml", CRON_JOB),
                ("o/p/b.yaml", "- {op: remove, path: /spec}\n"),
            ],
            &[],
            0,
            &["o/p/a.yaml: 2 patches of kustomize are not checked alone; to check the result: kubectl kustomize o |"],
        ),
        (
            "a template of no chart",
            &[("a.yaml", template)],
            &[],
            0,
            &[&format!("a.yaml: a template of Helm {helm} CHART |")],
        ),
        ("a template by a value", &[("a.yaml", by_value)], &[], 0, &[&format!("{helm} CHART |")]),
        ("braces in a text", &[("a.yaml", in_text)], &["a.yaml"], 0, &[]),
        (
            "a chart",
            &[
                ("c/Chart.yaml", "apiVersion: v2\nname: c\n"),
                ("c/values.yaml", "on: true\n"),
                ("c/crds/a.yaml", CRON_JOB),
                ("c/templates/a.yaml", template),
                ("c/templates/b.yaml", CRON_JOB),
                ("c/charts/d/Chart.yaml", "apiVersion: v2\nname: d\n"),
                ("c/charts/d/templates/a.yaml", &by_value.replace("-a", "")),
            ],
            &["c/crds/a.yaml", "c/templates/b.yaml"],
            3,
            &[
                "c/charts/d/templates/a.yaml: 2 templates of Helm are not checked alone; to check the result: helm template c |",
            ],
        ),
        (
            "a directory with a space",
            &[("my chart/Chart.yaml", "name: c\n"), ("my chart/templates/a.yaml", template)],
            &[],
            1,
            &["helm template 'my chart' |"],
        ),
    ];
    for (sentence, files, checked, others, lines) in rows {
        let (found, number, said) = parted(files, &[]);
        assert_eq!(
            (found.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), number),
            (checked, others),
            "{sentence}"
        );
        let same = said.len() == lines.len() && said.iter().zip(lines).all(|(said, want)| said.contains(want));
        assert!(same, "{sentence}: {said:#?}");
    }
}

#[test]
fn file_that_the_command_line_names_is_checked_whatever_it_is() {
    let files = [("values.yaml", "a: 1\n"), ("t.yaml", "{{ x }}\n"), ("b.yaml", "b: 1\n")];
    assert_eq!(
        parted(&files, &["values.yaml", "t.yaml"]),
        (vec!["values.yaml".to_owned(), "t.yaml".to_owned()], 0, vec![])
    );
    assert_eq!(parted(&files, &[""]).0, [""; 0]);
}

#[test]
fn directory_is_one_argument_of_a_shell() {
    for (path, want) in
        [("", "."), ("a/b-c", "a/b-c"), ("my chart", "'my chart'"), ("it's", r"'it'\''s'"), ("-x", "'-x'")]
    {
        assert_eq!(argument(Path::new(path)), want, "{path:?}");
    }
}

#![allow(clippy::unwrap_used)]

use chrono::DateTime;

use super::*;
use crate::cli::check::sources::{self, Read};
use crate::cli::check::{Rules, check};

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
    let Read { sources: checked, left_out, .. } = sources::read(&paths, true).unwrap();
    let below = format!("{}/", root.path().display());
    let short = |text: &str| text.replace(&below, "");
    (
        checked.iter().map(|source| short(&source.file)).collect(),
        left_out.files,
        left_out.lines("check").map(|l| short(&l)).collect(),
    )
}

#[test]
fn files_that_are_no_manifests_alone_are_left_out() {
    let kustomize = "overlay/patch.yaml: a patch of kustomize is not read alone; to check the result: kubectl kustomize overlay | \
                     cronjob-controller check -f -";
    let helm = "is not read alone; to check the result: helm template";
    let template = "{{- if .Values.on }}\napiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n";
    let by_value = "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}-a\n";
    let in_text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    {{ define }}\n";
    let with_variable = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: \"${APP}-x\"}\n";
    let for_a_shell =
        "apiVersion: batch/v1\nkind: CronJob\nspec: {containers: [{args: [\"${A}\"], env: [{value: \"${B}\"}]}]}\n";
    let of_jinja = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n{% if x %}\nspec: {schedule: \"{{ at }}\"}\n{% endif %}\n";
    let of_helmfile = "releases:\n- name: a\n  version: {{ requiredEnv \"V\" }}\n";
    let of_ansible = "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ name }}\n";
    let quoted = |at: &str| format!("{CRON_JOB}spec: {{schedule: \"{at}\"}}\n");
    let labelled = |name: &str| {
        format!("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a, labels: {{app: \"{name}\"}}}}\n")
    };
    let in_script = |line: &str| format!("{CRON_JOB}spec:\n  args:\n  - |\n    {line}\n    run\n");
    let with_alias = in_script("{{.Names}}") + "  schedule: */5 * * * *\n";
    let disabled = "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: a\n  labels: {app: \"${APP}-x\"}\n  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n";
    let values = "kind: CronJob\nspec: {schedule: '@daily'}\n";
    let rows: [Row<'_>; 66] = [
        ("a manifest", &[("a.yaml", CRON_JOB)], &["a.yaml"], 0, &[]),
        ("a quoted variable of Ansible", &[("a.yaml", &quoted("{{ cron }}"))], &[], 0, &["a.yaml: a template is not"]),
        ("one among others", &[("a.yaml", &quoted("{{ m }} 3 * * *"))], &[], 0, &["a.yaml: a template is not"]),
        ("one of another tool", &[("a.yaml", &quoted("[[ .s ]]"))], &[], 0, &["a.yaml: a template is not"]),
        ("one of ERB", &[("a.yaml", &quoted("<%= cron %>"))], &[], 0, &["a.yaml: a template is not"]),
        ("one of Backstage", &[("a.yaml", &quoted("${{ values.at }}"))], &[], 0, &["a.yaml: a template is not"]),
        ("one in braces", &[("a.yaml", &quoted("{at}"))], &[], 0, &["a.yaml: a template is not"]),
        ("one between two signs", &[("a.yaml", &quoted("@@AT@@"))], &[], 0, &["a.yaml: a template is not"]),
        ("a wrong descriptor", &[("a.yaml", &quoted("@@daily"))], &["a.yaml"], 0, &[]),
        ("code of ytt in a script", &[("a.yaml", &in_script("#@ job_type = serial"))], &["a.yaml"], 0, &[]),
        ("an action of a script, and an alias for a schedule", &[("a.yaml", &with_alias)], &["a.yaml"], 0, &[]),
        ("an escaped variable", &[("a.yaml", &labelled("$${APP}-x"))], &["a.yaml"], 0, &[]),
        ("a variable that Flux does not replace", &[("a.yaml", disabled)], &["a.yaml"], 0, &[]),
        (
            "assertions of Chainsaw",
            &[("chainsaw-assert-1-1.yaml", CRON_JOB), ("cronjob-assert.yaml", CRON_JOB)],
            &[],
            2,
            &[],
        ),
        (
            "one of kuttl with a name",
            &[("01-assert-x.yaml", CRON_JOB), ("01-install.yaml", CRON_JOB)],
            &["01-install.yaml"],
            1,
            &[],
        ),
        (
            "the values of a chart",
            &[("c/Chart.yaml", "name: c\n"), ("c/values.yaml", values), ("c/ci/x-values.yaml", values)],
            &[],
            3,
            &[],
        ),
        ("a part of a manifest elsewhere", &[("c/values.yaml", values)], &["c/values.yaml"], 0, &[]),
        (
            "one of Helm outside of a chart",
            &[("a.yaml", &quoted("{{ .Values.at }}"))],
            &[],
            0,
            &["helm template CHART"],
        ),
        ("a schedule that is wrong", &[("a.yaml", &quoted("0 0 * *"))], &["a.yaml"], 0, &[]),
        (
            "a patch by its own words",
            &[("a.yaml", &format!("$patch: delete\n{CRON_JOB}"))],
            &[],
            0,
            &["a.yaml: a patch of kustomize"],
        ),
        ("a number as the version", &[("a.yaml", "apiVersion: 1.0\nkind: Pipeline\n")], &[], 1, &[]),
        (
            "a patch of a transformer",
            &[
                ("kustomization.yaml", "resources: [a.yaml]\ntransformers: [t/t.yaml]\n"),
                ("a.yaml", CRON_JOB),
                ("t/t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\n"),
                ("t/p.yaml", CRON_JOB),
            ],
            &["a.yaml", "t/t.yaml"],
            0,
            &["t/p.yaml: a patch of kustomize is not read alone; to check the result: kubectl kustomize"],
        ),
        (
            "a kustomization that is a template",
            &[("kustomization.yaml", "patches:\n- path: p.yaml\n{{ if x }}\n{{ end }}\n"), ("p.yaml", CRON_JOB)],
            &[],
            0,
            &["p.yaml: a patch of kustomize is not read alone"],
        ),
        ("values", &[("a.yaml", CRON_JOB), ("values.yaml", "image: {tag: 1}\n")], &["a.yaml"], 1, &[]),
        ("a list of something", &[("play.yml", "- hosts: all\n")], &[], 1, &[]),
        ("JSON of something", &[("package.json", "{\"name\": \"x\"}")], &[], 1, &[]),
        ("values with a kind", &[("values.yaml", "kind: CronJob\nschedule: \"0 4 * * *\"\n")], &[], 1, &[]),
        ("half a manifest", &[("a.yaml", "kind: CronJob\n")], &["a.yaml"], 0, &[]),
        ("one manifest among others", &[("a.yaml", "a: 1\n---\nkind: CronJob\n")], &["a.yaml"], 0, &[]),
        ("no YAML", &[("a.yaml", "kind: [\n")], &["a.yaml"], 0, &[]),
        ("no YAML, in JSON's form", &[("a.json", "{\"apiVersion\" : \"v1\" /* */}")], &["a.json"], 0, &[]),
        ("JSON with comments", &[("tsconfig.json", "{\n  // why\n  \"strict\": true,\n}")], &[], 1, &[]),
        ("tags of another tool", &[("a.yml", "a: !reference [b, c]\n")], &[], 1, &[]),
        ("a kind of another tool", &[(".drone.yml", "kind: pipeline\nname: a\n")], &[], 1, &[]),
        ("a version of another tool", &[("a.yml", "apiVersion: 1\ndatasources: []\n")], &[], 1, &[]),
        ("a kind in small letters", &[("a.yml", "kind: cron\nname: a\nspec: {schedule: x}\n")], &[], 1, &[]),
        ("a version of another group", &[("a.yml", "apiVersion: score.dev/v1b1\nmetadata: {name: a}\n")], &[], 1, &[]),
        (
            "an assertion of kuttl",
            &[("00-assert.yaml", "apiVersion: batch/v1\nkind: CronJob\nstatus: {active: null}\n")],
            &[],
            1,
            &[],
        ),
        (
            "code of ytt",
            &[
                ("a.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: #@ data.values.name\n"),
                ("b.yaml", "#@data/values\n---\nname: a\n"),
            ],
            &[],
            1,
            &["a.yaml: a template of ytt is not read alone; render it, and check the result:"],
        ),
        (
            "placeholders of other tools",
            &[
                ("a.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: $NAME}\n"),
                ("b.yaml", "apiVersion: batch/v1\nkind: CronJob\nspec: {schedule: \"#{Schedule}#\"}\n"),
                ("c.yaml", "apiVersion: batch/v1\nkind: CronJob\nspec: {schedule: ((schedule))}\n"),
            ],
            &[],
            0,
            &["a.yaml: 3 templates are not read alone; render it, and check the result:"],
        ),
        (
            "a placeholder without quotes, which is a comment of YAML",
            &[
                ("a.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: #{NAME}#\n"),
                ("b.yaml", "apiVersion: batch/v1\nkind: CronJob\nspec:\n  schedule: #{SCHEDULE}#\n"),
            ],
            &[],
            0,
            &["a.yaml: 2 templates are not read alone; render it, and check the result:"],
        ),
        (
            "a part of a schema",
            &[("a.json", "{\"apiVersion\": {\"type\": \"string\"}, \"kind\": {\"type\": \"string\"}, \"spec\": {}}")],
            &[],
            1,
            &[],
        ),
        (
            "a schedule that is wrong",
            &[("a.yaml", "apiVersion: batch/v1\nkind: CronJob\nspec: {schedule: daily}\n")],
            &["a.yaml"],
            0,
            &[],
        ),
        ("a manifest without a kind", &[("a.yml", "apiVersion: batch/v1\nspec: {}\n")], &["a.yml"], 0, &[]),
        ("a manifest of a mistyped kind", &[("a.yml", "kind: Cronjob\n")], &["a.yml"], 0, &[]),
        (
            "variables for Flux",
            &[("a.yml", with_variable)],
            &[],
            0,
            &[
                "a.yml: a manifest with variables of Flux is not read alone; to check the result: flux envsubst < FILE |",
            ],
        ),
        (
            "variables for Flux in braces, which are no YAML before",
            &[("a.yml", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x, labels: {app: ${APP}}}\n")],
            &[],
            0,
            &[
                "a.yml: a manifest with variables of Flux is not read alone; to check the result: flux envsubst < FILE |",
            ],
        ),
        ("variables for a shell", &[("a.yml", for_a_shell)], &["a.yml"], 0, &[]),
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
            "a patch of another directory",
            &[
                ("o/kustomization.yaml", "resources: [../base]\npatches: [{path: ../patches/a.yaml}]\n"),
                ("patches/a.yaml", CRON_JOB),
            ],
            &[],
            0,
            &[
                "patches/a.yaml: a patch of kustomize is not read alone; to check the result: kubectl kustomize --load-restrictor LoadRestrictionsNone o |",
            ],
        ),
        (
            "a patch beside a file of another directory",
            &[
                ("b/kustomization.yaml", "resources: [../x.yaml]\n"),
                ("o/kustomization.yaml", "resources: [../b]\npatches: [{path: a.yaml}]\n"),
                ("o/a.yaml", CRON_JOB),
                ("x.yaml", CRON_JOB),
            ],
            &["x.yaml"],
            0,
            &[
                "o/a.yaml: a patch of kustomize is not read alone; to check the result: kubectl kustomize --load-restrictor LoadRestrictionsNone o |",
            ],
        ),
        (
            "a patch of a component",
            &[
                ("c/kustomization.yaml", "kind: Component\npatches: [{path: a.yaml}]\n"),
                ("c/a.yaml", CRON_JOB),
                ("d/kustomization.yaml", "kind: Component\ncomponents: [../c]\n"),
                ("o/kustomization.yaml", "components: [../d]\n"),
            ],
            &[],
            0,
            &["c/a.yaml: a patch of kustomize is not read alone; to check the result: kubectl kustomize o |"],
        ),
        (
            "a patch of components that only use each other",
            &[
                ("c/kustomization.yaml", "kind: Component\ncomponents: [../d]\npatches: [{path: a.yaml}]\n"),
                ("c/a.yaml", CRON_JOB),
                ("d/kustomization.yaml", "kind: Component\ncomponents: [../c]\n"),
            ],
            &[],
            0,
            &["c/a.yaml: a patch of kustomize is not read alone; render it, and check the result: "],
        ),
        (
            "what SOPS has encrypted",
            &[
                (
                    "a.yaml",
                    "apiVersion: batch/v1\nkind: CronJob\nspec: {schedule: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}\n",
                ),
                ("b.yaml", "apiVersion: 'ENC[x]'\nkind: 'ENC[x]'\nmetadata: {name: 'ENC[x]'}\nsops: {mac: x}\n"),
                ("c.yaml", "apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[x]'}\nsops: {mac: x}\n"),
                ("d.yaml", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: 'ENC[x]'}\n"),
            ],
            &["c.yaml", "d.yaml"],
            0,
            &[
                "a.yaml: 2 manifests encrypted by SOPS are not read alone; to check the result: sops -d FILE | cronjob-controller check -f -",
            ],
        ),
        (
            "hidden directories and packages",
            &[
                (".git/a.yaml", CRON_JOB),
                ("node_modules/a.yaml", CRON_JOB),
                (".a.yaml", CRON_JOB),
                ("git/a.yaml", CRON_JOB),
            ],
            &[".a.yaml", "git/a.yaml"],
            0,
            &[],
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
            &["o/p/a.yaml: 2 patches of kustomize are not read alone; to check the result: kubectl kustomize o |"],
        ),
        (
            "a template of no chart",
            &[("a.yaml", template)],
            &[],
            0,
            &[&format!("a.yaml: a template of Helm {helm} CHART |")],
        ),
        (
            "a template of Jinja",
            &[("a.yaml", of_jinja), ("b.yml", of_jinja)],
            &[],
            0,
            &[
                "a.yaml: 2 templates of Jinja are not read alone; render it, and check the result: cronjob-controller check -f -",
            ],
        ),
        (
            "a template of what does not show",
            &[("a.yaml", of_ansible)],
            &[],
            0,
            &["a.yaml: a template is not read alone; render it, and check the result: cronjob-controller check -f -"],
        ),
        (
            "a helmfile by its name",
            &[("d/helmfile.yaml", "{{ readFile \"x\" }}\n")],
            &[],
            0,
            &[
                "d/helmfile.yaml: a template of helmfile is not read alone; to check the result: helmfile -f d/helmfile.yaml template |",
            ],
        ),
        (
            "a helmfile by its directory",
            &[("helmfile.d/1.yaml", "{{ x }}\n")],
            &[],
            0,
            &["helmfile -f helmfile.d/1.yaml template |"],
        ),
        ("a helmfile by its text", &[("apps.yaml", of_helmfile)], &[], 0, &["helmfile -f apps.yaml template |"]),
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
                "c/charts/d/templates/a.yaml: 2 templates of Helm are not read alone; to check the result: helm template c |",
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
fn named_template_is_told_from_a_file_with_an_error() {
    let rows = [
        ("values.yaml.gotmpl", "a:\n- name: {{ .Values.x }}\n", Some("a template of helmfile")),
        ("a.yaml", "{% if x %}\nkind: CronJob\n{% endif %}\n", Some("a template of Jinja")),
        ("a.yaml", "kind: {{ .Values.kind }}\n", Some("a template of Helm")),
        ("a.yaml", "kind: {{ kind }}\n", Some("a template")),
        ("a.yaml", "kind: [\n", None),
        ("a.yaml", "kind: \"{{ kind }}\"\n", None),
    ];
    for (file, text, want) in rows {
        let source = Source { file: file.to_owned(), text: text.to_owned() };
        assert_eq!(template(&source), want, "{file}: {text}");
        let lines = check(&[source], &Rules::default(), DateTime::UNIX_EPOCH).findings;
        let hint = lines.first().map(|finding| finding.message.contains("; the file is a template"));
        assert_eq!(hint == Some(true), want.is_some(), "{file}: {text}");
    }
}

#[test]
fn directory_is_one_argument_of_a_shell() {
    for (path, want) in
        [("", "."), ("a/b-c", "a/b-c"), ("my chart", "'my chart'"), ("it's", r"'it'\''s'"), ("-x", "'-x'")]
    {
        assert_eq!(argument(Path::new(path), false), want, "{path:?}");
    }
}

/// Repositories of different shapes, below `tests/repositories`, with what is found in each: file, line, code and field.
#[test]
fn whole_repository_has_the_findings_that_are_meant_and_no_others() {
    type Findings<'a> = &'a [(&'a str, usize, &'a str, &'a str)];
    let rows: [(&str, [usize; 3], Findings<'_>, &[&str]); 4] = [
        (
            "flux",
            [2, 5, 0],
            &[("apps/typo/cronjob.yaml", 7, "error: invalid", "spec.schedule")],
            &["apps/backup/cronjob.yaml: a manifest with variables of Flux is"],
        ),
        (
            "kustomize",
            [3, 3, 4],
            &[("overlays/prod/extra.yaml", 4, "warning: duplicate", "metadata.name")],
            &[
                // One is of a component that it uses.
                "components/alerts/annotations.yaml: 3 patches of kustomize are not read alone; to check the result: kubectl kustomize",
                "overlays/prod/patches/resources.yaml: 2 patches of kustomize are",
            ],
        ),
        (
            "charts",
            [1, 1, 7],
            &[],
            &[
                "charts/worker/templates/cronjobs.yaml: 2 templates of Helm are",
                "helmfile.yaml: a template of helmfile is",
            ],
        ),
        (
            "gitops",
            [3, 1, 13],
            &[
                ("clusters/prod/all.yaml", 21, "error: no-kind", "apiVersion"),
                ("clusters/prod/report.yaml", 4, "warning: duplicate", "metadata.name"),
                ("half/cronjob.yaml", 1, "error: no-kind", "apiVersion"),
                ("half/indent.yaml", 3, "error: not-yaml", ""),
            ],
            &[
                "secrets/all.sops.json: a manifest encrypted by SOPS is not read alone; to check the result: sops -d FILE |",
            ],
        ),
    ];
    for (name, numbers, findings, left_out) in rows {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/repositories")).join(name);
        let Read { sources, left_out: other, unreadable } = sources::read(std::slice::from_ref(&root), true).unwrap();
        assert!(unreadable.is_empty(), "{name}: {unreadable:?}");
        let report = check(&sources, &Rules { max_per_minute: 10, ..Rules::default() }, DateTime::UNIX_EPOCH);
        let below = format!("{}/", root.display());
        let found: Vec<(String, usize, String, String)> = report
            .findings
            .iter()
            .map(|finding| {
                let code = format!("{}: {}", finding.severity, finding.code);
                (finding.file.replace(&below, ""), finding.line, code, finding.field.clone())
            })
            .collect();
        let want: Vec<(String, usize, String, String)> = findings
            .iter()
            .map(|(file, line, code, field)| ((*file).to_owned(), *line, (*code).to_owned(), (*field).to_owned()))
            .collect();
        assert_eq!(found, want, "{name}");
        assert_eq!([report.cron_jobs, report.others, other.files], numbers, "{name}");
        let said: Vec<String> = other.lines("check").map(|line| line.replace(&below, "")).collect();
        let same = said.len() == left_out.len() && said.iter().zip(left_out).all(|(said, want)| said.starts_with(want));
        assert!(same, "{name}: {said:#?}");
    }
}

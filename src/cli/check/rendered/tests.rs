#![allow(clippy::unwrap_used)]
use super::*;

/// What a shell's script renders.
fn rendered(script: &str) -> Result<(Source, Vec<String>), String> {
    run(Command::new("sh").args(["-c", script]), "helm template chart", "helm", "--helm")
        .map_err(|error| error.to_string())
}

#[test]
fn output_is_a_file_with_the_name_of_the_command() {
    let (source, warnings) = rendered("echo 'kind: A'; echo note >&2").unwrap();
    assert_eq!((&*source.file, &*source.text, warnings.len()), ("helm template chart", "kind: A\n", 0));
}

#[test]
fn warnings_are_told_without_the_header_of_klog() {
    let rows = [
        ("# Warning: 'bases' is deprecated.", Some("Warning: 'bases' is deprecated.")),
        ("W1130 00:28:01.676746   26931 warnings.go:70] warning: a is deprecated", Some("warning: a is deprecated")),
        ("WARNING: This chart is deprecated", Some("WARNING: This chart is deprecated")),
        ("walk.go:74: found symbolic link in path", None),
        ("I1130 00:28:01.676746   26931 a.go:1] warm", None),
    ];
    for (line, want) in rows {
        let script = format!("printf '%s\\n' \"{line}\" >&2");
        let (_, warnings) = rendered(&script).unwrap();
        let want: Vec<String> = want.iter().map(|want| format!("helm template chart: {want}")).collect();
        assert_eq!(warnings, want, "{line}");
    }
}

#[test]
fn failure_is_told_in_the_last_line_that_the_program_wrote() {
    let rows = [
        ("echo first >&2; echo 'Error: no chart' >&2; echo >&2; exit 1", "helm template chart: Error: no chart"),
        ("exit 3", "helm template chart: exit status: 3"),
        (
            r#"echo 'E1130 00:28:01.676746   26931 run.go:72] "command failed" err="no \"x\" in '\''k'\''"' >&2; exit 1"#,
            "helm template chart: no \"x\" in 'k'",
        ),
        (
            r#"printf 'E1130 00:28:02.048068   26972 run.go:72] "command failed" err=<\n\tfailed to run\n\t: exit status 128\n >\n' >&2; exit 1"#,
            "helm template chart: failed to run : exit status 128",
        ),
        (
            "echo \"security; file '/a' is not in or below '/b'\" >&2; exit 1",
            "helm template chart: security; file '/a' is not in or below '/b'; --load-restrictor=LoadRestrictionsNone allows it",
        ),
        ("echo 'E1 [a] b' >&2; exit 1", "helm template chart: E1 [a] b"),
    ];
    for (script, want) in rows {
        assert_eq!(rendered(script).unwrap_err(), want, "{script}");
    }
    let absent =
        run(&mut Command::new("/nowhere/helm"), "helm template chart", "helm", "--helm").unwrap_err().to_string();
    assert!(absent.starts_with("helm template chart: helm cannot be started: "), "{absent}");
    assert!(absent.ends_with("; --helm needs it in PATH"), "{absent}");
}

#[test]
fn kustomize_is_given_the_flags_before_the_directory() {
    let rows = [
        (vec![], "kubectl kustomize o"),
        (vec![UNRESTRICTED, WITH_HELM], "kubectl kustomize --load-restrictor=LoadRestrictionsNone --enable-helm o"),
    ];
    for (flags, want) in rows {
        let (command, arguments) = Rendered::Kustomization { directory: "o".to_owned(), flags }.command();
        assert_eq!(command, want);
        assert_eq!(arguments.last().map(String::as_str), Some("o"));
    }
}

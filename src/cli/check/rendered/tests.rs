#![allow(clippy::unwrap_used)]
use super::*;

/// What a shell's script renders.
fn rendered(script: &str) -> Result<Source, String> {
    run(Command::new("sh").args(["-c", script]), "helm template chart", "helm", "--helm")
        .map_err(|error| error.to_string())
}

#[test]
fn output_is_a_file_with_the_name_of_the_command() {
    let source = rendered("echo 'kind: A'; echo note >&2").unwrap();
    assert_eq!((&*source.file, &*source.text), ("helm template chart", "kind: A\n"));
}

#[test]
fn failure_is_told_in_the_last_line_that_the_program_wrote() {
    let rows = [
        ("echo first >&2; echo 'Error: no chart' >&2; echo >&2; exit 1", "helm template chart: Error: no chart"),
        ("exit 3", "helm template chart: exit status: 3"),
    ];
    for (script, want) in rows {
        assert_eq!(rendered(script).unwrap_err(), want, "{script}");
    }
    let absent =
        run(&mut Command::new("/nowhere/helm"), "helm template chart", "helm", "--helm").unwrap_err().to_string();
    assert!(absent.starts_with("helm template chart: helm cannot be started: "), "{absent}");
    assert!(absent.ends_with("; --helm needs it in PATH"), "{absent}");
}

//! The binary as a shell sees it: exit codes, and what goes to stdout and to stderr.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::{Command, Stdio};

/// Exit code, stdout and stderr of the binary with these arguments, outside any Pod.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
        .args(args)
        .env_remove("POD_NAMESPACE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_wrong_command_line_exits_with_2_and_one_sentence_per_fault_on_stderr() {
    let rows: [(&str, &[&str], &str); 6] = [
        (
            "an unknown controller",
            &["--controllers=*,-cronjobs"],
            "cronjob-controller: --controllers: -cronjobs is not allowed; \
             use cronjob, tutorial, apiexample, any of them after '-', or * for all\n",
        ),
        (
            "a wrong value",
            &["--kube-api-qps=0"],
            "cronjob-controller: --kube-api-qps: 0 is not allowed; use a positive rate, or -1 for no limit\n",
        ),
        (
            "two wrong values",
            &["--logging-format", "xml", "-v=x"],
            "cronjob-controller: --logging-format: xml is not allowed; use text or json\n\
             cronjob-controller: --v: x is not allowed; use a whole number from 0 to 10\n",
        ),
        (
            "an unknown flag",
            &["--leader-elekt=false"],
            "cronjob-controller: --leader-elekt is not a flag; did you mean --leader-elect?\n",
        ),
        ("a missing value", &["--master"], "cronjob-controller: --master needs a value, as in --master=...\n"),
        (
            "kube-controller-manager's own lease",
            &["--leader-elect-resource-name=kube-controller-manager", "--leader-elect-resource-namespace=kube-system"],
            "cronjob-controller: --leader-elect-resource-name: kube-controller-manager is not allowed; \
             use another name: this Lease is kube-controller-manager's own\n",
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(run(args), (2, String::new(), want.to_owned()), "{sentence}");
    }
}

#[test]
fn crd_prints_every_definition() {
    let (code, out, err) = run(&["crd"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let names: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(names, ["cronjobs.batch.tutorial.kubebuilder.io", "apiexamples.myapp.my.domain"]);
    let (code, out, err) = run(&["crd", "--output-dir=/nowhere"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.starts_with("cronjob-controller: write /nowhere/batch.tutorial.kubebuilder.io_cronjobs.yaml: "),
        "{err}"
    );
}

#[test]
fn webhooks_without_a_certificate_end_the_process_with_a_sentence_that_names_the_file() {
    let flags = ["--controllers=tutorial", "--secure-port=0", "--master=http://127.0.0.1:1"];
    let (code, out, err) = run(&[&flags[..], &["--webhook-cert-dir=/nowhere"]].concat());
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("cronjob-controller: cannot read the TLS file /nowhere/tls.crt: "), "{err}");
}

#[test]
fn help_and_version_go_to_stdout_and_exit_with_0() {
    let (code, out, err) = run(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("Generic flags:") && out.contains("--concurrent-cronjob-syncs"), "{out}");
    let version = format!("cronjob-controller v{}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (0, version, String::new()));
}

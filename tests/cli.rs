//! Runs the binary as a shell does: exit codes, stdout and stderr.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::ffi::OsStr;
use std::io::{BufRead as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use testkit::tools;

use apimachinery::clock::SystemClock;
use apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const BINARY: &str = env!("CARGO_BIN_EXE_cronjob-controller");

/// The binary with these arguments, outside any Pod, in Berlin.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env("TZ", "Europe/Berlin").stdin(Stdio::null());
    for variable in ["POD_NAMESPACE", "RUST_LOG", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"] {
        command.env_remove(variable);
    }
    command
}

/// Exit code, stdout and stderr.
fn ended(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Exit code, stdout and stderr of the binary with these arguments.
fn run(args: &[&str]) -> (i32, String, String) {
    ended(&mut command(args))
}

#[test]
fn a_wrong_command_line_exits_with_2_and_one_sentence_per_fault_on_stderr() {
    let rows: [(&str, &[&str], &str); 7] = [
        (
            "a variable without a value",
            &["trigger", "nightly", "--env", "DAY"],
            "cronjob-controller: --env: DAY is not allowed; use KEY=VALUE, such as DAY=2026-03-28\n",
        ),
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

/// Exit code and stderr with stdout on a full disk.
fn on_a_full_disk(args: &[&str]) -> (i32, String) {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(args).stdout(full).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error_unless_its_reader_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let manifest_file = directory.path().join("a.yaml");
    std::fs::write(&manifest_file, manifest("0 4 * * *")).unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let check: &[&str] = &["check", "-f", manifest_file.to_str().unwrap()];
    let dev: &[&str] = &["dev", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let next: &[&str] = &["next", "@daily"];
    let rows: [&[&str]; 7] = [&["crd"], &["--help"], &["--version"], &["man"], &["completion", "bash"], next, check];
    let want = "cronjob-controller: the output cannot be written: No space left on device (os error 28)\n";
    for args in rows {
        assert_eq!(on_a_full_disk(args), (1, want.to_owned()), "{args:?}");
    }
    let (code, err) = on_a_full_disk(dev);
    assert!(code == 1 && err.ends_with(want), "after its log lines: {err}");
    assert!(!kubeconfig.exists(), "dev has cleaned up");

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["crd"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]), "a closed pipe");
}

#[test]
fn wrong_guesses_get_advice_and_help_is_a_command() {
    let rows: [(&str, &[&str], &str); 5] = [
        (
            "no arguments",
            &[],
            "this is a controller for CronJobs, and needs a cluster: it uses its Pod's, or --kubeconfig=FILE; \
             `cronjob-controller dev` runs a cluster to try it out, and --help lists all commands and flags",
        ),
        ("a slip", &["chekc", "-f", "a.yaml"], "chekc is not a command; did you mean check?"),
        (
            "a file without -f",
            &["check", "a.yaml", "b.yaml"],
            "unexpected argument \"a.yaml\"; files follow -f: check -f a.yaml,b.yaml",
        ),
        (
            "no file",
            &["check"],
            "-f is missing; give the path of a file or of a directory, or - for stdin, as in check -f cronjobs.yaml",
        ),
        (
            "an argument too many",
            &["crd", "cronjobs"],
            "unexpected argument \"cronjobs\"; --help lists what is allowed",
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(run(args), (2, String::new(), format!("cronjob-controller: {want}\n")), "{sentence}");
    }
    assert_eq!(run(&["help"]), run(&["--help"]));
    assert_eq!(run(&["help", "check"]), run(&["check", "--help"]));
    let (code, out, err) = ended(command(&[]).env("KUBERNETES_SERVICE_HOST", "10.0.0.1"));
    assert!(code == 1 && out.is_empty() && err.contains("there is no in-cluster configuration"), "{err}");
}

#[test]
fn server_that_cannot_be_reached_is_named_with_what_to_check() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: one\n\
         contexts: [{name: one, context: {cluster: one, user: me}}]\n\
         clusters: [{name: one, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: me, user: {}}]\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let no_connection = "no connection to the API server http://127.0.0.1:1: Connection refused (os error 111); check that the \
                         server runs and that its address is right\n";
    let (code, _, err) = run(&["explain", "nightly", "--kubeconfig", file]);
    assert_eq!((code, err), (1, format!("cronjob-controller: read CronJob default/nightly: {no_connection}")));

    // The controller retries for ever.
    let flags = ["--secure-port=0", "--leader-elect=false", "--kubeconfig", file];
    let mut child = command(&flags).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = stderr.lines().map(Result::unwrap);
    let identity = format!("server=http://127.0.0.1:1/ identity=\"user \\\"me\\\" of context \\\"one\\\" in {file}\"");
    assert!(
        lines.any(|line| line.contains("requests go to this API server") && line.contains(&identity)),
        "{identity}"
    );
    assert!(lines.any(|line| line.contains(no_connection.trim()) && !line.contains("ServiceError")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn next_prints_runs_in_the_processs_zone_and_fails_without_runs() {
    let (code, out, err) = run(&["next", "30 2 * * *", "-c", "1", "--from", "2026-03-28T12:00"]);
    let want = "30 2 * * * in Europe/Berlin, after Sat 2026-03-28 12:00:00 +01:00\nAt 02:30 every day.\n\n\
                RUN                              UTC                    NOTE\n\
                Sun 2026-03-29 02:30:00          -                      skipped: the clocks go from 02:00 to 03:00\n\
                Mon 2026-03-30 02:30:00 +02:00   2026-03-30T00:30:00Z\n";
    assert_eq!((code, out.as_str(), err.as_str()), (0, want, ""));
    let (code, out, err) = run(&["next", "0 0 31 2 *", "-o", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["runs"], &answer["ends"], err.as_str()), (1, &json!([]), &json!(true), ""));
    let (code, out, _) = run(&["next", "0 3 * * *", "-c1", "--previous", "--from=2026-07-02", "--time-zone=UTC"]);
    assert!(code == 0 && out.ends_with("\nWed 2026-07-01 03:00:00 +00:00   2026-07-01T03:00:00Z\n"), "{out}");
    let want = "cronjob-controller: --previous: true is not allowed; use it with a schedule of five fields: @every counts from \
                the last run\n";
    assert_eq!(run(&["next", "@every 1h", "--previous"]), (2, String::new(), want.to_owned()));
    let (code, out, err) = run(&["next", "31 2"]);
    let want = "cronjob-controller: SCHEDULE: \"31 2\" is not a schedule: expected exactly 5 fields, found 2: [31 2]\n";
    assert_eq!((code, out.as_str(), err.as_str()), (2, "", want));
}

/// A manifest with this schedule.
fn manifest(schedule: &str) -> String {
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    let spec = json!({"schedule": schedule, "timeZone": "Europe/Berlin", "jobTemplate": template});
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}).to_string()
}

#[test]
fn next_of_a_directory_names_what_it_cannot_read_answers_for_the_rest_and_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("a.yaml", b"# f\xfcr\n");
    write("b.yaml", b"kind: [\n");
    write("c.yaml", manifest("0 3 * * *").as_bytes());
    write("values.yaml", b"image: x\n");
    write("t.yaml", b"apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {{ .Release.Name }}\n");
    let (code, out, err) = run(&["next", "-f", directory.path().to_str().unwrap(), "--count", "1"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("SLOT") && out.contains(" 03:00:00 "), "{out}");
    let lines: Vec<&str> = err.lines().collect();
    let parts = [
        "t.yaml: a template of Helm is not read alone",
        "a.yaml, document 1: not YAML: line 1: a byte is no UTF-8",
        "b.yaml, document 1: not YAML: ",
    ];
    assert!(lines.len() == 3 && lines.iter().zip(parts).all(|(line, part)| line.contains(part)), "{err}");
}

#[test]
fn check_reads_files_directories_and_stdin_and_sets_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let named = |name: &str, schedule: &str| manifest(schedule).replace("nightly", name);
    file("good.yaml", &format!("{}\n---\n{}", manifest("0 4 * * *"), named("weekly", "0 5 * * *")));
    file("notes.txt", "not a manifest");
    let path = directory.path().to_str().unwrap();
    let (code, out, err) = run(&["check", "-f", path]);
    assert!(code == 0 && out.ends_with("2 CronJobs: 0 errors, 0 warnings.\n") && err.is_empty(), "{out}{err}");
    file("trap.json", &named("trap", "30 2 * * *"));
    assert_eq!(run(&["check", "-f", path]).0, 0);
    assert_eq!(run(&["check", "-f", path, "--fail-on", "warning"]).0, 1);
    std::fs::create_dir_all(directory.path().join("below/it")).unwrap();
    file("below/it/again.yaml", &manifest("0 6 * * *"));
    assert_eq!(run(&["check", "-f", path]).0, 0);
    let (code, out, _) = run(&["check", "-R", "--histogram=none", "-f", path, "-o", "github"]);
    let duplicate = format!(
        "good.yaml,line=1,title=cronjob-controller check%3A duplicate::CronJob nightly: metadata.name: is \
                             defined at {path}/below/it/again.yaml:1 too"
    );
    assert!(code == 0 && out.contains(&duplicate), "{out}");

    let mut child =
        command(&["check", "-f", "-", "-o", "yaml"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest("61 * * * *").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_saphyr::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&report["findings"][0]["file"], &report["findings"][0]["line"]), (&json!("stdin"), &json!(1)));

    let (code, out, err) = run(&["check", "-f", "/nowhere.yaml", "-f", path]);
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(
        out.contains("\n/nowhere.yaml:1: error: cannot be read: ") && out.contains("\n3 CronJobs: 1 error"),
        "{out}"
    );
    // What goes wrong, the output is one document.
    let none: &[&[&str]] = &[
        &["-f", "/nowhere.yaml"],
        &["-f", path, "--policy", "/nowhere"],
        &["-k", "/nowhere"],
        &["--helm", "/nowhere"],
    ];
    for inputs in none {
        let (code, out, _) = run(&[&["check", "-o", "json"], *inputs].concat());
        let report: Value = serde_json::from_str(&out).unwrap();
        let mut files = report["findings"].as_array().unwrap().iter().filter_map(|finding| finding["file"].as_str());
        assert!(code == 1 && files.any(|file| file.contains("/nowhere")), "{inputs:?}: {out}");
    }
    assert_eq!(run(&["check"]).0, 2);
}

/// What of these lines a terminal or a CI system would obey: control characters, and a workflow command at the start of a line.
fn obeyed(lines: &str) -> Vec<&str> {
    let is_obeyed = |line: &&str| {
        let hidden = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
        line.contains(hidden) || line.trim_start().starts_with("::") || line.contains("##[")
    };
    lines.split('\n').filter(is_obeyed).collect()
}

#[test]
fn names_of_files_are_plain_text_in_every_output_and_error() {
    let names: [(&str, &[u8]); 7] = [
        ("a workflow command on a line of its own", b"a\n::error file=b::owned\n.yaml"),
        ("a workflow command", b"::error::owned.yaml"),
        ("an older one", b"##[error]owned.yaml"),
        ("a clear screen", b"\x1b[2J.yaml"),
        ("a control character of one byte", b"\xc2\x9b2J.yaml"),
        ("reversed text", b"\xe2\x80\xaelmay.yaml"),
        ("bytes that are not text", b"\xff\xfe.yaml"),
    ];
    let contents: [(&str, Vec<u8>); 4] = [
        ("a wrong schedule", manifest("61 * * * *").into_bytes()),
        ("not YAML", b"kind: [\n::error::owned".to_vec()),
        ("not text", b"\xff\n::error::owned".to_vec()),
        ("no object", b"apiVersion: v1\nkind: \"\"\nmetadata: {name: \"\\e[2J\"}\n".to_vec()),
    ];
    for (name, file) in names {
        for (content, bytes) in &contents {
            let directory = tempfile::tempdir().unwrap();
            let file = OsStr::from_bytes(file);
            std::fs::write(directory.path().join(file), bytes).unwrap();
            // Without a slash, the name begins the line. An argument has to be text.
            let file = file.to_str().unwrap_or(".");
            let run = |args: &[&str]| {
                let output = command(args).arg(file).current_dir(directory.path()).output().unwrap();
                (
                    output.status.code(),
                    String::from_utf8(output.stdout).unwrap(),
                    String::from_utf8(output.stderr).unwrap(),
                )
            };
            for format in ["table", "json", "yaml", "sarif"] {
                let (code, out, err) = run(&["check", "-o", format, "-f"]);
                assert_eq!(
                    (code, obeyed(&out), obeyed(&err)),
                    (Some(1), vec![], vec![]),
                    "{name}: {content}: {out}{err}"
                );
            }
            let (_, out, err) = run(&["check", "-o", "github", "-f"]);
            let out: Vec<&str> = out.lines().map(|line| line.strip_prefix("::error file=").expect(line)).collect();
            assert_eq!((obeyed(&out.join("\n")), obeyed(&err)), (vec![], vec![]), "{name}: {content}: {out:?}{err}");
            for args in
                [&["next", "-f"][..], &["dev", "--port=0", "-f"], &["trigger"], &["crd", "--output-dir"], &["--v"]]
            {
                let (code, out, err) = run(args);
                assert!(code != Some(0) || args[0] == "crd", "{name}: {content}: {args:?}");
                assert_eq!((obeyed(&out), obeyed(&err)), (vec![], vec![]), "{name}: {content}: {args:?}: {out}{err}");
            }
        }
    }
}

#[test]
fn two_files_whose_names_are_not_text_are_two() {
    let directory = tempfile::tempdir().unwrap();
    for name in [b"\xfe.yaml", b"\xff.yaml"] {
        std::fs::write(directory.path().join(OsStr::from_bytes(name)), manifest("61 * * * *")).unwrap();
    }
    let (_, out, _) = run(&["check", "-f", directory.path().to_str().unwrap()]);
    assert!(out.contains("/\\xfe.yaml:1: error") && out.contains("/\\xff.yaml:1: error"), "{out}");
}

#[test]
fn generated_files_are_not_written_through_a_link() {
    for (args, name) in [
        (["man", "--output-dir"], "cronjob-controller-next.1"),
        (["crd", "--output-dir"], "batch.tutorial.kubebuilder.io_cronjobs.yaml"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (files, precious) = (directory.path().join("files"), directory.path().join("precious"));
        std::fs::create_dir(&files).unwrap();
        std::fs::write(&precious, "precious").unwrap();
        symlink(&precious, files.join(name)).unwrap();
        let run = || run(&[&args[..], &[files.to_str().unwrap()]].concat());
        let want = format!("cronjob-controller: write {}/{name}: it is a symbolic link\n", files.display());
        assert_eq!(run(), (1, String::new(), want));
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
        std::fs::remove_file(files.join(name)).unwrap();
        assert_eq!(run(), (0, String::new(), String::new()));
        assert_eq!(run(), (0, String::new(), String::new()), "files of an earlier run are replaced");
    }
}

/// An API server on loopback with one CronJob, which was suspended, and a kubeconfig for it.
async fn cluster(directory: &Path, stop: CancellationToken) -> tokio::task::JoinHandle<()> {
    let server = ApiServer::new(Config::builtin(Arc::new(SystemClock)));
    let mut object: Value = serde_json::from_str(&manifest("0 4 * * *")).unwrap();
    object["spec"]["suspend"] = json!(true);
    let request = http::Request::post("/apis/batch/v1/namespaces/default/cronjobs")
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes());
    server.client().request_text(request.unwrap()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: one\n\
         contexts: [{{name: one, context: {{cluster: one, user: me}}}}, {{name: two, context: {{cluster: one, user: me, namespace: kube-system}}}}]\n\
         clusters: [{{name: one, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: me, user: {{}}}}]\n",
        listener.local_addr().unwrap()
    );
    std::fs::write(directory.join("kubeconfig"), kubeconfig).unwrap();
    tokio::spawn(server.serve(listener, stop))
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_reads_the_cluster_that_kubectl_would() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let server = cluster(directory.path(), stop.clone()).await;
    let explain = |args: &[&str]| {
        ended(command(&[&["explain", "nightly"], args].concat()).env("KUBECONFIG", directory.path().join("kubeconfig")))
    };
    let (code, out, err) = explain(&[]);
    let start = "CronJob default/nightly: It is not known which controller runs it. What follows holds if cronjob-controller does. It \
                 does not run: it is suspended (spec.suspend). If it were resumed now, it would run at ";
    assert!(
        code == 0 && out.starts_with(start) && out.contains("Schedule:   0 4 * * * in Europe/Berlin\n"),
        "{out}{err}"
    );
    let (code, out, _) = explain(&["-o", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["state"]), (0, &json!("suspended")));
    let want = "cronjob-controller: --since: Fri 2100-01-01 00:00:00 +01:00 is in the future; give a time before now\n";
    assert_eq!(explain(&["--since", "2100-01-01"]), (2, String::new(), want.to_owned()));
    let want = "cronjob-controller: there is no CronJob nightly in namespace kube-system, looking at batch/v1; \
                --controller chooses another kind\n";
    assert_eq!(explain(&["--context", "two"]), (1, String::new(), want.to_owned()));
    assert_eq!(explain(&["-n", "kube-system"]), (1, String::new(), want.to_owned()));
    let (code, _, err) = explain(&["--kubeconfig", "/nowhere"]);
    assert!(
        code == 1 && err.starts_with("cronjob-controller: --kubeconfig: the file /nowhere cannot be used: "),
        "{err}"
    );
    stop.cancel();
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_changes_the_named_container_and_knows_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let server = cluster(directory.path(), stop.clone()).await;
    let trigger = |args: &[&str]| {
        let kubeconfig = directory.path().join("kubeconfig");
        ended(command(&[&["trigger", "nightly", "--job-name=a"], args].concat()).env("KUBECONFIG", kubeconfig))
    };
    let (code, out, err) = trigger(&["-c", "web", "--env=A=1"]);
    assert!(
        code == 1 && out.is_empty() && err.contains("there is no container web; its containers are "),
        "{out}{err}"
    );
    let (code, out, err) = trigger(&["--env=A=1", "--dry-run=server", "-ojson", "--", "--x_y", "-n"]);
    let job: Value = serde_json::from_str(&out).expect(&err);
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((code, &container["args"]), (0, &json!(["--x_y", "-n"])));
    assert_eq!(container["env"], json!([{"name": "A", "value": "1"}]));
    let (code, out, _) = trigger(&[]);
    assert!(code == 0 && out.contains("Job default/a was created."), "the dry run has created none: {out}");
    stop.cancel();
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn last_line_of_a_shadow_is_one_object_and_a_server_that_is_away_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let server = cluster(directory.path(), stop.clone()).await;
    let shadow = |args: &[&str]| {
        ended(command(&[&["shadow"], args].concat()).env("KUBECONFIG", directory.path().join("kubeconfig")))
    };
    let (code, out, err) = shadow(&["--for=1s", "-o", "json"]);
    let report: Value = serde_json::from_str(out.lines().last().expect(&err)).unwrap();
    assert_eq!((code, out.lines().count()), (0, 1), "{err}");
    for (key, want) in [
        ("slots", json!(0)),
        ("same", json!(0)),
        ("late", json!({"p50": 0.0, "p99": 0.0, "max": 0.0})),
        ("missed", json!([])),
        ("twice", json!([])),
        ("differs", json!([])),
        ("cronJobs", json!(1)),
    ] {
        assert_eq!(report[key], want, "{key}");
    }
    let (code, out, _) = shadow(&["--for=1s", "-n", "kube-system"]);
    assert!(code == 0 && out.ends_with("\nNo slot was compared.\n"), "{out}");
    stop.cancel();
    server.await.unwrap();
    let (code, out, err) = shadow(&["--for=1s"]);
    let start = "cronjob-controller: read /version: ";
    assert!(code == 1 && out.is_empty() && err.starts_with(start), "{out}{err}");
}

#[test]
fn under_the_plugins_name_all_messages_name_kubectl() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = directory.path().join("kubectl-cronjob");
    symlink(BINARY, &plugin).unwrap();
    let (code, out, err) = ended(Command::new(&plugin).arg("--help"));
    assert!(code == 0 && out.contains("Usage: kubectl cronjob COMMAND [flags]") && err.is_empty(), "{out}{err}");
    let (code, out, err) = ended(Command::new(&plugin).arg("next"));
    let want = "kubectl cronjob: SCHEDULE is missing; give a schedule in quotes, such as '30 2 * * *', or the name of a CronJob\n";
    assert_eq!((code, out.as_str(), err.as_str()), (2, "", want));
    let (code, out, _) = ended(command(&["check", "-f", ""]).arg0("kubectl_complete-cronjob"));
    assert_eq!((code, out.as_str()), (0, ":0\n"));
}

#[test]
fn kubectl_finds_the_plugin_and_its_completions() {
    if !tools::has_kubectl("cli") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    symlink(BINARY, directory.path().join("kubectl-cronjob")).unwrap();
    symlink(BINARY, directory.path().join("kubectl_complete-cronjob")).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap_or_default());
    let kubectl = |args: &[&str]| Command::new("kubectl").args(args).env("PATH", &path).stdin(Stdio::null()).output();
    let output = kubectl(&["cronjob", "next", "@daily", "--time-zone=UTC", "-c=1", "-o=json"]).unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schedule"], "@daily");
    let output = kubectl(&["__complete", "cronjob", "e"]).unwrap();
    let completions = String::from_utf8(output.stdout).unwrap();
    assert_eq!(completions.lines().next(), Some("explain"), "{completions}");
}

#[test]
fn bash_completes_commands_flags_and_values() {
    for (file, function) in [("cronjob-controller", "_cronjob__controller"), ("kubectl-cronjob", "_kubectl__cronjob")] {
        let (_, script, _) = ended(command(&["completion", "bash"]).arg0(file));
        let rows = [
            ("the start of a command", "expl", "", "explain"),
            ("the start of a flag", "explain --con", "explain", "--context --controller"),
            ("a value", "next x -o j", "-o", "json"),
        ];
        for (sentence, line, previous, want) in rows {
            let words = format!("COMP_WORDS=({file} {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))");
            let call = format!("{function} {file} \"${{COMP_WORDS[COMP_CWORD]}}\" {previous}; echo ${{COMPREPLY[@]}}");
            let (_, out, err) = ended(Command::new("bash").arg("-c").arg(format!("{script}\n{words}\n{call}")));
            let mut found: Vec<&str> = out.split_whitespace().collect();
            found.sort_unstable();
            assert_eq!(found.join(" "), want, "{file}: {sentence}: {err}");
        }
    }
}

#[test]
fn completions_and_the_manual_are_printed_and_written() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let (code, out, err) = run(&["completion", shell]);
        assert!(code == 0 && out.contains("explain") && err.is_empty(), "{shell}: {err}");
    }
    let (code, out, _) = run(&["man"]);
    assert!(code == 0 && out.contains(".SH NAME\ncronjob\\-controller \\- "), "{out}");
    let directory = tempfile::tempdir().unwrap();
    let (code, out, err) = run(&["man", "--output-dir", directory.path().to_str().unwrap()]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    assert!(directory.path().join("cronjob-controller-explain.1").exists());
}

#[test]
fn a_signal_ends_a_start_that_waits_for_a_credential_plugin() {
    let directory = tempfile::tempdir().unwrap();
    let (begun, kubeconfig) = (directory.path().join("begun"), directory.path().join("kubeconfig"));
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "touch \"$0\"; exec sleep 60", begun],
        "interactiveMode": "Never",
    }});
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let args = [kubeconfig.as_str(), "--secure-port=0", "--leader-elect-resource-namespace=a"];
    let mut process = command(&args).stderr(Stdio::null()).spawn().unwrap();
    let start = std::time::Instant::now();
    while !begun.exists() {
        assert!(start.elapsed().as_secs() < 30 && process.try_wait().unwrap().is_none(), "the plugin was not called");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Command::new("kill").arg(process.id().to_string()).status().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    assert!(start.elapsed().as_secs() < 50, "it waited for the plugin");
}

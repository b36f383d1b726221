//! `cronjob-controller dev` as a new user runs it: the binary, its output, and kubectl against it if installed.
#![allow(clippy::type_complexity, clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use testkit::dev_client::DevClient;
use testkit::tools;

fn dev(args: &[&str]) -> Command {
    const BINARY: &str = env!("CARGO_BIN_EXE_cronjob-controller");
    let mut command = if cfg!(target_os = "linux") {
        // Under nohup, the tests would pass an ignored SIGHUP on.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", BINARY]);
        command
    } else {
        Command::new(BINARY)
    };
    command.arg("dev").args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Exit code and stderr of a `dev` that cannot start.
fn refused(args: &[&str]) -> (i32, String) {
    let output = dev(args).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A running `dev`.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    kubeconfig: PathBuf,
    up_after: Duration,
}

impl Running {
    fn start(directory: &Path, args: &[&str]) -> Self {
        Self::start_in("Etc/UTC", directory, args)
    }

    fn start_in(zone: &str, directory: &Path, args: &[&str]) -> Self {
        let started = Instant::now();
        let mut child = dev(args)
            .env("TZ", zone)
            .env("XDG_RUNTIME_DIR", directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut kubeconfig) = (String::new(), None);
        while kubeconfig.is_none() {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "dev ended before it said where its kubeconfig is");
            let word = line.trim().strip_prefix("export KUBECONFIG=").and_then(|rest| rest.split(';').next());
            kubeconfig = word.map(PathBuf::from);
        }
        Self { child, lines, kubeconfig: kubeconfig.unwrap(), up_after: started.elapsed() }
    }

    /// Ctrl-C; the exit code and the rest of stdout.
    fn interrupt(self) -> (i32, String) {
        self.end_by("-INT")
    }

    /// A signal; the exit code and the rest of stdout.
    fn end_by(mut self, signal: &str) -> (i32, String) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }

    fn kubectl(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new("kubectl")
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.kubeconfig.parent().unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_error_at_the_start_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bad_schedule = write(
        "bad.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\napiVersion: batch/v1\nkind: CronJob\n\
         metadata: {name: a}\nspec:\n  schedule: often\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, \
         containers: [{name: c, image: i}]}}}}\n",
    );
    let typo = write("typo.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\nspek: {}\n");
    let foreign = write("config", "apiVersion: v1\n");
    let rows: [(&str, &[&str], i32, &str); 6] = [
        ("a wrong flag", &["--port=x"], 2, "--port: x is not allowed; use a port from 1 to 65535, or 0 for a free one"),
        (
            "a port that is taken",
            &["--port", &port.to_string()],
            1,
            &format!("--port: cannot listen on 127.0.0.1:{port}: the address is already in use by another process"),
        ),
        (
            "a bad schedule",
            &["-f", &bad_schedule],
            1,
            &format!(
                "{bad_schedule}, document 2: CronJob.batch \"a\" is invalid: spec.schedule: Invalid value: \"often\": "
            ),
        ),
        ("a field that does not exist", &["-f", &typo], 1, &format!("{typo}, document 1: ")),
        ("no file", &["-f", "/nowhere/x.yaml"], 1, "/nowhere/x.yaml: cannot be read: No such file or directory"),
        (
            "a kubeconfig that dev did not write",
            &["--kubeconfig", &foreign],
            1,
            &format!("--kubeconfig: {foreign} exists and was not"),
        ),
    ];
    for (sentence, args, code, want) in rows {
        let (got, err) = refused(args);
        assert_eq!(got, code, "{sentence}: {err}");
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("cronjob-controller: {want}")), "{sentence}: {err}");
    }
}

#[test]
fn dev_starts_at_once_and_removes_its_files_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start(directory.path(), &[]);
    println!("up after {:?}", running.up_after);
    let kubeconfig = running.kubeconfig.clone();
    assert_eq!(std::fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, rest) = running.interrupt();
    assert_eq!(code, 0, "{rest}");
    assert!(!kubeconfig.exists());
}

/// The second signal ends the process at once, whatever the first has to wait for: here, an open connection.
#[test]
fn second_ctrl_c_leaves_no_kubeconfig_behind() {
    for between in [0, 100, 400] {
        let directory = tempfile::tempdir().unwrap();
        let running = Running::start(directory.path(), &[]);
        let (kubeconfig, id) = (running.kubeconfig.clone(), running.child.id().to_string());
        let text = std::fs::read_to_string(&kubeconfig).unwrap();
        let address = text.lines().find_map(|line| line.trim().strip_prefix("server: https://")).unwrap();
        let open = std::net::TcpStream::connect(address).unwrap();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(between));
        let _ = Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
        let mut running = running;
        let code = running.child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
        assert!(!kubeconfig.exists(), "{between} ms, exit code {code:?}");
        drop(open);
    }
}

/// `timeout` sends one to the process and one to its group.
#[test]
fn signals_at_once_are_one() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start(directory.path(), &[]);
    let both = format!("kill -INT {id}; kill -TERM {id}", id = running.child.id());
    assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    let mut running = running;
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn closed_terminal_ends_dev_as_a_signal_to_terminate_does() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let running = Running::start(directory.path(), &["--data-dir", data.to_str().unwrap()]);
    let kubeconfig = running.kubeconfig.clone();
    let (code, rest) = running.end_by("-HUP");
    assert!(code == 0 && rest.contains("The state is kept in "), "{rest}");
    assert!(!kubeconfig.exists() && data.join("state.log").exists());
}

#[test]
fn night_passes_in_seconds_and_each_run_starts_at_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("nightly.yaml");
    let cron_job = |name: &str, schedule: &str, zone: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}}}\nspec:\n  schedule: '{schedule}'\n  \
             timeZone: {zone}\n  jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: \
             c, image: i}}]}}}}}}}}\n---\n"
        )
    };
    // The clocks go from 02:00 to 03:00, so 02:30 does not exist.
    let manifests = cron_job("early", "30 1 * * *", "Europe/Berlin")
        + &cron_job("none", "30 2 * * *", "Europe/Berlin")
        + &cron_job("late", "30 3 * * *", "Europe/Berlin")
        + &cron_job("plain", "0 3 * * *", "Etc/UTC");
    std::fs::write(&file, manifests).unwrap();
    let args = ["-f", file.to_str().unwrap(), "--at=2027-03-27T22:00:00Z", "--speed=3600", "--job-duration=90s"];
    let mut running = Running::start_in("Europe/Berlin", directory.path(), &args);
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let mut line = String::new();
        assert!(running.lines.read_line(&mut line).unwrap() > 0, "dev has ended: {seen:?}");
        if line.contains(" Job ") {
            seen.push(line.trim().to_owned());
        }
    }
    let got: Vec<&str> = seen.iter().map(|line| line.split(" after its time").next().unwrap()).collect();
    let want = [
        "01:30:00 default/early: started Job early-30103230, ",
        "01:31:30 default/early: Job early-30103230 succeeded after 1m30s",
        "03:30:00 default/late: started Job late-30103290, ",
        "03:31:30 default/late: Job late-30103290 succeeded after 1m30s",
        "05:00:00 default/plain: started Job plain-30103380, ",
        "05:01:30 default/plain: Job plain-30103380 succeeded after 1m30s",
    ];
    for (got, want) in got.iter().zip(want) {
        assert!(got.starts_with(want), "{got} instead of {want}: {seen:#?}");
    }
    assert_eq!(running.interrupt().0, 0);
}

/// Creates ConfigMaps, deletes every third, and reports each answer (name, and whether it exists), until the server is gone.
/// Returns the name whose last request was not answered.
fn write_until_the_end(client: &DevClient, round: usize, answers: &mpsc::Sender<(String, bool)>) -> String {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    for number in 0.. {
        let name = format!("r{round}-{number}");
        let object = format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#);
        let created = client.request("POST", PATH, &object);
        if created.is_none_or(|created| created["metadata"]["name"] != name) {
            return name;
        }
        answers.send((name.clone(), true)).unwrap();
        if number % 3 == 2 {
            let deleted = client.request("DELETE", &format!("{PATH}/{name}"), "");
            if deleted.is_none_or(|deleted| deleted["status"] != "Success") {
                return name;
            }
            answers.send((name, false)).unwrap();
        }
    }
    unreachable!("the numbers do not end")
}

/// `KILLS=200` kills more often.
#[test]
fn kill_at_any_instant_loses_no_answered_write() {
    let kills = std::env::var("KILLS").map_or(6, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (mut known, mut unanswered) = (BTreeMap::<String, bool>::new(), BTreeSet::<String>::new());
    for round in 0..=kills {
        let mut running = Running::start(directory.path(), &["--data-dir", data.to_str().unwrap(), "--job-duration=0"]);
        let client = DevClient::new(&running.kubeconfig);
        let list = client.request("GET", "/api/v1/namespaces/default/configmaps", "").unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let found: BTreeSet<_> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        for (name, exists) in known.iter().filter(|(name, _)| !unanswered.contains(*name)) {
            assert_eq!(found.contains(name.as_str()), *exists, "{name}, before kill {round}");
        }
        if round == kills {
            println!("{kills} kills, {} names, {} requests without an answer", known.len(), unanswered.len());
            return;
        }
        let (answers, answered) = mpsc::channel();
        let pending = std::thread::scope(|scope| {
            let writer = scope.spawn(move || write_until_the_end(&client, round, &answers));
            known.extend(answered.iter().take(round * 7 % 11 + 1));
            running.child.kill().unwrap();
            writer.join().unwrap()
        });
        running.child.wait().unwrap();
        known.extend(answered.try_iter());
        unanswered.insert(pending);
    }
}

#[test]
fn dev_applies_manifests_to_a_new_cluster_only() {
    const PATH: &str = "/apis/batch/v1/namespaces/default/cronjobs";
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = directory.path().join("a.yaml");
    let object = |schedule: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: mine}}\nspec:\n  schedule: \"{schedule}\"\n  jobTemplate: \
             {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}}}\n"
        )
    };
    std::fs::write(&file, object("0 0 1 1 *")).unwrap();
    let samples: &[&str] = &["--data-dir", data.to_str().unwrap()];
    let files: &[&str] = &["--data-dir", data.to_str().unwrap(), "-f", file.to_str().unwrap()];
    let names = |running: &Running| {
        let list = DevClient::new(&running.kubeconfig).request("GET", PATH, "").unwrap();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let running = Running::start(directory.path(), files);
    assert_eq!(names(&running), ["mine"]);
    DevClient::new(&running.kubeconfig).request("DELETE", &format!("{PATH}/mine"), "").unwrap();
    assert_eq!(running.interrupt().0, 0);
    for args in [files, samples] {
        let running = Running::start(directory.path(), args);
        assert_eq!(names(&running), [""; 0], "{args:?}");
        assert_eq!(running.interrupt().0, 0);
    }
}

/// The peak resident memory of a process, in bytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn page_in_a_browser_is_refused_and_a_body_of_500_megabytes_takes_no_memory() {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start(directory.path(), &[]);
    let client = DevClient::new(&running.kubeconfig);
    let token = format!("Bearer {}", client.token);
    let (host, token) = (("host", client.address.as_str()), ("authorization", token.as_str()));
    let json = ("content-type", "application/json");
    let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
    let rows: [(&str, &[(&str, &str)], u16); 6] = [
        ("a client with the kubeconfig", &[host, token, json], 201),
        ("a foreign Host", &[("host", "evil.example"), token, json], 403),
        ("a foreign Origin", &[host, token, json, ("origin", "http://evil.example")], 403),
        ("a body without a Content-Type", &[host, token], 415),
        ("no token", &[host, json], 401),
        ("another token", &[host, ("authorization", "Bearer x"), json], 401),
    ];
    for (sentence, headers, status) in rows {
        let (code, answer) = client.send(&format!("POST {PATH}"), headers, body).unwrap();
        assert_eq!(code, status, "{sentence}: {answer}");
    }

    let mut stream = client.connect().unwrap();
    let (size, chunk) = (500_000_000_usize, vec![b' '; 1 << 20]);
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\n", host.1, token.1);
    write!(stream, "{head}content-type: application/json\r\ncontent-length: {size}\r\n\r\n").unwrap();
    let sent = (0..size / chunk.len()).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 100, "{sent} MiB were taken");
    let peak = peak(running.child.id());
    assert!(peak <= 80_000_000, "{peak} bytes were resident");
    println!("{sent} MiB were taken, {peak} bytes resident at most");
    assert_eq!(running.interrupt().0, 0);
}

#[test]
fn kubectl_works_against_dev_and_the_state_survives_a_restart() {
    if !tools::has_kubectl("dev_cli") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let args = ["--data-dir", data.to_str().unwrap(), "--job-duration=1s"];
    let running = Running::start(directory.path(), &args);
    let manifest = directory.path().join("applied.yaml");
    let manifest = manifest.to_str().unwrap();
    let template = "{restartPolicy: Never, containers: [{name: c, image: busybox}]}";
    let applied = |schedule: &str| {
        let text = format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: applied}}\nspec:\n  schedule: \"{schedule}\"\n  \
             jobTemplate: {{spec: {{template: {{spec: {template}}}}}}}\n"
        );
        std::fs::write(manifest, text).unwrap();
    };
    applied("0 0 1 1 *");
    let rows: [(&[&str], bool, &str); 23] = [
        (&["get", "cronjobs"], true, "nightly-report"),
        (&["get", "cronjob", "hello", "-o", "wide"], true, "busybox:1.37"),
        (&["get", "cronjob", "hello", "-o", "yaml"], true, "successfulJobsHistoryLimit: 3"),
        (&["describe", "cronjob", "hello"], true, "Concurrency Policy:"),
        (&["api-resources"], true, "cronjobs"),
        (&["explain", "cronjob.spec.schedule"], true, "en.wikipedia.org/wiki/Cron"),
        (&["create", "job", "once", "--from=cronjob/hello"], true, "job.batch/once created"),
        (&["wait", "--for=condition=complete", "job/once", "--timeout=20s"], true, "job.batch/once condition met"),
        (&["logs", "job/once"], true, "This container is simulated"),
        (&["get", "pods", "-o", "wide"], true, "Completed"),
        (&["describe", "job", "once"], true, "SuccessfulCreate"),
        (&["events", "--for", "job/once"], true, "Job completed"),
        (&["apply", "-f", manifest], true, "cronjob.batch/applied created"),
        (&["apply", "-f", manifest], true, "cronjob.batch/applied unchanged"),
        (
            &["apply", "--server-side", "--force-conflicts", "-f", manifest],
            true,
            "cronjob.batch/applied serverside-applied",
        ),
        (&["patch", "cronjob", "hello", "-p", r#"{"spec":{"suspend":true}}"#], true, "cronjob.batch/hello patched"),
        (
            &["patch", "cronjob", "hello", "-p", r#"{"spec":{"schedule":"often"}}"#],
            false,
            "spec.schedule: Invalid value",
        ),
        (&["get", "cronjob", "hello", "-w", "--request-timeout=3s"], true, "True"),
        (&["create", "job", "gone", "--from=cronjob/hello"], true, "job.batch/gone created"),
        // The first status is written after the Pod: nothing is created any more once the Job is deleted.
        (&["wait", "--for=jsonpath={.status.startTime}", "job/gone"], true, "condition met"),
        (&["delete", "job", "gone", "--cascade=foreground"], true, "deleted"),
        (&["delete", "cronjob", "nightly-report"], true, "deleted"),
        (&["get", "cronjob", "nightly-report"], false, "cronjobs.batch \"nightly-report\" not found"),
    ];
    for (args, works, want) in rows {
        let (worked, text) = running.kubectl(args);
        assert!(worked == works && text.contains(want), "kubectl {}: {text}", args.join(" "));
    }
    applied("30 0 1 1 *");
    let (worked, text) = running.kubectl(&["apply", "-f", manifest]);
    assert!(worked && text.contains("cronjob.batch/applied configured"), "{text}");
    // One that was created at the moment of the deletion goes two seconds later.
    let (worked, text) = running.kubectl(&["wait", "--for=delete", "pods", "-l", "job-name=gone", "--timeout=20s"]);
    assert!(worked, "a deleted Job's Pods go with it: {text}");
    let (code, rest) = running.interrupt();
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("default/hello: started Job once") || rest.contains("started Job once"), "{rest}");
    assert!(rest.contains("Job once succeeded"), "{rest}");

    let running = Running::start(directory.path(), &args);
    let (_, text) = running.kubectl(&["get", "cronjob", "hello", "-o", "jsonpath={.spec.suspend}"]);
    assert_eq!(text, "true", "a change outlives the restart");
    let (_, text) = running.kubectl(&["get", "job", "once", "-o", "jsonpath={.status.succeeded}"]);
    assert_eq!(text, "1");
    assert_eq!(running.interrupt().0, 0);
}

/// A directory of an application, with kinds that are stored only and one that no cluster has.
const APPLICATION: &str = "apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules: [{host: example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
";

#[test]
fn kind_that_is_not_served_does_not_block_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("application.yaml");
    std::fs::write(&file, APPLICATION).unwrap();
    let file = file.to_str().unwrap();
    let running = Running::start(directory.path(), &["-f", file]);
    let client = DevClient::new(&running.kubeconfig);
    for path in [
        "/apis/apps/v1/namespaces/default/statefulsets/db",
        "/api/v1/namespaces/default/persistentvolumeclaims/shared",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses/web",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web",
    ] {
        assert!(client.request("GET", path, "").unwrap()["metadata"]["uid"].is_string(), "{path}");
    }
    if tools::has_kubectl("dev_cli") {
        let (worked, text) = running.kubectl(&["apply", "-f", file]);
        for want in
            ["statefulset.apps/db", "ingress.networking.k8s.io/web", "no matches for kind \"Widget\" in version"]
        {
            assert!(!worked && text.contains(want), "{want}: {text}");
        }
        assert!(!text.contains("error validating"), "{text}");
    }
    assert_eq!(running.interrupt().0, 0);
}

#[test]
fn completion_offers_what_the_cluster_has() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start(directory.path(), &[]);
    let kubeconfig = running.kubeconfig.to_str().unwrap().to_owned();
    let offered = |words: &[&str]| {
        let mut completer = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        completer.arg0("kubectl_complete-cronjob").args(words).env("KUBECONFIG", &kubeconfig);
        String::from_utf8(completer.output().unwrap().stdout).unwrap()
    };
    let rows: [(&[&str], &str); 6] = [
        (&["explain", "he"], "hello\n:4\n"),
        (&["-n", "kube-system", "explain", "he"], ":4\n"),
        (&["suspend", "-n", "kube-p"], "kube-public\n:4\n"),
        (&["list", "--context", ""], "cronjob-controller-dev\n:4\n"),
        (&["next", "@daily", "--time-zone", "Europe/Berl"], "Europe/Berlin\n:4\n"),
        (&["explain", "--context", "none", "he"], ":4\n"),
    ];
    for (words, want) in rows {
        assert_eq!(offered(words), want, "{words:?}");
    }
    assert_eq!(running.interrupt().0, 0);
    assert_eq!(offered(&["explain", "he"]), ":4\n", "without a cluster");
}

/// All documents of the YAML and JSON files below a directory, as `kind/name`.
fn documents(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.append(&mut documents(&entry.path()));
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let values = serde_saphyr::from_multiple::<serde_json::Value>(&text).unwrap();
        let items = values.into_iter().flat_map(|value| match value["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![value],
        });
        let name = |value: serde_json::Value| {
            format!("{}/{}", value["kind"].as_str().unwrap(), value["metadata"]["name"].as_str().unwrap())
        };
        found.extend(items.filter(serde_json::Value::is_object).map(name));
    }
    found
}

#[test]
fn directories_of_projects_are_stored_or_each_missing_kind_is_named() {
    if !tools::has_kubectl("dev_cli") {
        return;
    }
    let rows: [(&str, &[&str]); 3] = [
        ("photos", &[]),
        ("orders", &["ServiceMonitor", "PrometheusRule"]),
        ("operator", &["PriorityClass", "Issuer", "Certificate"]),
    ];
    for (project, missing) in rows {
        let directory = tempfile::tempdir().unwrap();
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dev_projects").join(project);
        let path = manifests.to_str().unwrap();
        let running = Running::start(directory.path(), &["--job-duration=0"]);
        let (worked, text) = running.kubectl(&["apply", "-R", "-f", path]);
        assert_eq!(worked, missing.is_empty(), "{project}: {text}");
        let unknown = missing.iter().filter(|kind| text.contains(&format!("no matches for kind \"{kind}\"")));
        assert_eq!(unknown.count(), missing.len(), "{project}: {text}");
        // kubectl knows a kind that is defined in the same directory only the second time. A Secret's stringData and a
        // claim's template are "configured" then. All as in a real cluster.
        let (_, text) = running.kubectl(&["apply", "-R", "-f", path]);
        let answers = [" created", " configured", " unchanged"];
        let stored = text.lines().filter(|line| answers.iter().any(|answer| line.ends_with(answer))).count();
        let all = documents(&manifests);
        let wanted = all.iter().filter(|name| !missing.iter().any(|kind| name.starts_with(&format!("{kind}/"))));
        assert_eq!(stored, wanted.count(), "{project}: {text}");
        assert_eq!(running.interrupt().0, 0, "{project}");
        // The same by dev itself, which takes each directory by its name.
        let below = manifests.join("jobs");
        let all = if below.is_dir() { format!("{path},{}", below.display()) } else { path.to_owned() };
        let running = Running::start(directory.path(), &["-f", &all]);
        let (_, text) = running.kubectl(&["apply", "-R", "-f", path]);
        assert_eq!(text.lines().filter(|line| line.contains(" created")).count(), 0, "{project}: {text}");
        assert_eq!(running.interrupt().0, 0, "{project}");
    }
}

#[test]
fn tutorial_commands_work_in_dev() {
    if !tools::has_kubectl("dev_cli") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let args = ["--controllers=tutorial,apiexample", "--job-duration=0", "--data-dir", data.to_str().unwrap()];
    let running = Running::start(directory.path(), &args);
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let (tutorial, samples) = (manifests.join("tutorial-self-signed"), manifests.join("samples/tutorial"));
    let (tutorial, samples) = (tutorial.to_str().unwrap(), samples.to_str().unwrap());
    let often = |kind: &str, version: &str, template: &str| {
        let path = directory.path().join(format!("{kind}.yaml"));
        let text = format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: often}}\nspec:\n  schedule: \"@every 1s\"\n  \
             jobTemplate: {template}\n"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let pod = "{spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}";
    let job = often("CronJob", "batch.tutorial.kubebuilder.io/v1", &format!("{{spec: {{template: {pod}}}}}"));
    let example = often("ApiExample", "myapp.my.domain/v1alpha1", pod);
    let scheduled = |what: &'static str| ["wait", "--for=jsonpath={.status.lastScheduleTime}", what, "--timeout=20s"];
    let rows: [(&[&str], bool, &str); 12] = [
        (&["get", "tcj,apiex"], true, "cronjob-sample"),
        (&["apply", "-k", tutorial], true, "deployment.apps/cronjob-controller created"),
        (&["get", "deploy,svc", "-n", "cronjob-tutorial-system"], true, "0/2"),
        (&["explain", "deployment.spec.replicas"], true, "Number of desired pods"),
        (&["apply", "-k", samples], true, "cronjob.batch.tutorial.kubebuilder.io/cronjob-sample"),
        (&["apply", "-f", &job], true, "cronjob.batch.tutorial.kubebuilder.io/often created"),
        (&["get", "tcj", "often", "-o", "yaml"], true, "concurrencyPolicy: Allow"),
        (
            &["patch", "tcj", "often", "--type=merge", "-p", r#"{"spec":{"schedule":"often"}}"#],
            false,
            "spec.schedule: Invalid value: \"often\"",
        ),
        (&scheduled("tcj/often"), true, "condition met"),
        (&["apply", "-f", &example], true, "apiexample.myapp.my.domain/often created"),
        (&scheduled("apiex/often"), true, "condition met"),
        (&["delete", "apiex", "--all"], true, "\"often\" deleted"),
    ];
    for (args, works, want) in rows {
        let (worked, text) = running.kubectl(args);
        assert!(worked == works && text.contains(want), "kubectl {}: {text}", args.join(" "));
    }
    let (code, rest) = running.interrupt();
    assert!(code == 0 && rest.contains("default/often: started Job often-"), "{rest}");

    // Without the controller, the Service has no endpoint.
    let running = Running::start(directory.path(), &["--data-dir", data.to_str().unwrap()]);
    let (worked, text) =
        running.kubectl(&["patch", "tcj", "often", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    assert!(!worked && text.contains("no endpoints available for service \"cronjob-controller-webhook\""), "{text}");
    // The namespace may be gone, with all in it, before kubectl gets to the rest.
    let (worked, text) = running.kubectl(&["delete", "--ignore-not-found", "-k", tutorial]);
    assert!(worked, "{text}");
    assert_eq!(running.interrupt().0, 0);
}

#[test]
fn another_process_can_be_the_controller() {
    if !tools::has_kubectl("dev_cli") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let manifest = directory.path().join("often.yaml");
    let text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: often}\nspec:\n  schedule: \"@every 1s\"\n  \
                jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n";
    std::fs::write(&manifest, text).unwrap();
    let args = ["--controller=false", "--job-duration=0", "-f", manifest.to_str().unwrap()];
    let running = Running::start(directory.path(), &args);
    let scheduled = ["wait", "--for=jsonpath={.status.lastScheduleTime}", "cronjob/often"];
    let (worked, text) = running.kubectl(&[scheduled.as_slice(), &["--timeout=2s"]].concat());
    assert!(!worked, "no controller runs that could start it: {text}");
    let controller = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
        .args(["--secure-port=0", "--kubeconfig"])
        .arg(&running.kubeconfig)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut controller = Controller(controller);
    let (worked, text) = running.kubectl(&[scheduled.as_slice(), &["--timeout=20s"]].concat());
    assert!(worked, "{text}");
    let (_, text) = running.kubectl(&["get", "lease", "-n", "kube-system", "cronjob-controller"]);
    assert!(text.contains("HOLDER"), "the other process elects its leader here: {text}");
    assert!(controller.0.try_wait().unwrap().is_none(), "the controller has ended");
    drop(controller);
    let (code, rest) = running.interrupt();
    assert!(code == 0 && rest.contains("default/often: started Job often-"), "{rest}");
}

struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Color;
use serde_json::{Value, json};

use super::keys::Viewport;
use super::screen::Screen;
use super::*;
use crate::api::{Interner, Object as _};
use crate::terminal::tests::{HOSTILE, harmful};

fn at(second: i64) -> DateTime<Utc> {
    // 2027-01-15T08:00:00Z, a Friday.
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn utc() -> Zone {
    Zone::load("UTC", schedule::local_zone().0).unwrap()
}

fn cron_job(name: &str, spec: &Value, last: Option<i64>) -> CronJob {
    let mut whole = json!({ "schedule": "* * * * *", "jobTemplate": {} });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": whole,
        "status": { "lastScheduleTime": last.map(at) },
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

fn job_object(name: &str, slot: Option<i64>, end: Option<(&str, i64)>) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "annotations": slot.map(|slot| json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": at(slot).to_rfc3339() })),
            "ownerReferences": slot.map(|_| json!([{ "kind": "CronJob", "name": "hello", "uid": "u", "controller": true }])),
        },
        "spec": {},
        "status": {
            "startTime": at(0),
            "conditions": end.map(|(type_, second)| json!([{
                "type": type_, "status": "True", "message": "Job has\u{1b}[2J failed", "lastTransitionTime": at(second),
            }])),
        },
    })
}

/// As the lines have it.
fn line_job(name: &str, slot: Option<i64>, end: Option<(&str, i64)>) -> Arc<objects::Job> {
    let object = job_object(name, slot, end).to_string();
    Arc::new(objects::Job::decode(&object, &Interner::default()).unwrap())
}

fn job(name: &str, slot: i64, end: Option<&str>) -> Arc<Job> {
    let mut object = job_object(name, Some(slot), end.map(|end| (end, 0)));
    object["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1".into();
    Arc::new(Job::decode(&object.to_string(), &Interner::default()).unwrap())
}

const FINE: Condition = Condition { rank: 4, label: "on schedule", tone: Tone::Fine, is_held: false };
const FAILING: Condition = Condition { rank: 3, label: "failing", tone: Tone::Bad, is_held: false };
const SUSPENDED: Condition = Condition { rank: 5, label: "suspended", tone: Tone::Stopped, is_held: false };

fn cannot_run(label: &'static str) -> Condition {
    Condition { rank: 1, label, tone: Tone::Bad, is_held: false }
}

fn row(cron_job: &CronJob, jobs: &[Arc<Job>], condition: Condition, skew: Option<i64>) -> Row {
    Row::new(cron_job, jobs, condition, skew.map(TimeDelta::milliseconds), at(5), utc())
}

/// CronJobs in each state.
fn few() -> Vec<Row> {
    let jobs = [job("b", -60, None), job("a", -120, Some("Failed")), job("c", -180, Some("Complete"))];
    let done = [job("d", -60, Some("Complete"))];
    let held = Condition { rank: 1, label: "paused", tone: Tone::Bad, is_held: true };
    let nightly = json!({ "schedule": "30 2 * * MON-FRI", "timeZone": "Europe/Berlin" });
    let two_minutes = json!({ "schedule": "*/2 * * * *" });
    let mut rows = vec![
        row(&cron_job("nightly", &nightly, None), &[], FINE, None),
        row(&cron_job("stopped", &json!({ "suspend": true }), Some(-3600)), &[], SUSPENDED, None),
        row(&cron_job("hello", &json!({}), Some(0)), &jobs, FAILING, Some(3)),
        row(&cron_job("done", &two_minutes, Some(0)), &done, FINE, Some(1250)),
        row(&cron_job("none", &json!({ "schedule": "0 0 31 2 *" }), None), &[], cannot_run("never runs"), None),
        row(&cron_job("odd", &json!({ "schedule": "of\u{1b}ten" }), None), &[], cannot_run("bad schedule"), None),
        row(&cron_job("busy", &json!({}), Some(0)), &[job("e", 0, None)], FINE, Some(75_300)),
        row(&cron_job("held", &json!({}), Some(-60)), &[job("f", -60, Some("Failed"))], held, None),
    ];
    Order::default().sort(&mut rows);
    rows
}

fn many() -> Vec<Row> {
    let row = |number: i64| {
        let fate = |job: i64| match (number, job) {
            (number, 5) if number % 17 == 3 => Fate::Failed,
            (number, 5) if number % 13 == 5 => Fate::Running,
            (number, job) if (number + job) % 11 == 7 && job < 4 => Fate::Failed,
            _ => Fate::Complete,
        };
        let jobs: Vec<Fate> = (0..6).map(fate).collect();
        Row {
            name: format!("team-{}/report-for-customer-{number:03}", number % 4),
            schedule: format!("{} * * * * (America/Argentina/Buenos_Aires)", number % 60),
            condition: match (number % 29 == 7, number % 17 == 3) {
                (true, _) => SUSPENDED,
                (_, true) => FAILING,
                _ => FINE,
            },
            next: (number % 29 != 7).then(|| at(60 * (1 + number % 60))),
            last: Some(at(-60 * (number % 60))),
            lateness: Some(TimeDelta::milliseconds(number)),
            active: jobs.iter().filter(|fate| **fate == Fate::Running).count(),
            jobs,
        }
    };
    let mut rows: Vec<Row> = (0..200).map(row).collect();
    Order::default().sort(&mut rows);
    rows
}

/// The screen with these rows after these keys.
fn screen(rows: &[Row], (width, height): (u16, u16), keys: &[KeyCode], colour: bool) -> TestBackend {
    let path = "/run/user/1000/cronjob-controller-dev-29921/kubeconfig-of-this-run-alone.yaml";
    let commands = [format!("export KUBECONFIG={path}"), "kubectl get cronjobs,jobs,pods".to_owned()];
    let messages = ["12:00:01 WARN cannot save the state of the cluster; trying again".to_owned()];
    let screen = Screen {
        title: "Kubernetes API on https://127.0.0.1:41235, for this machine only",
        commands: &commands,
        rows,
        messages: &messages,
        now: at(5),
        local: utc(),
        colour,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut place = Viewport::default();
    terminal.draw(|frame| screen.draw(frame, &mut place)).unwrap();
    for key in keys {
        place.press(KeyEvent::from(*key));
        terminal.draw(|frame| screen.draw(frame, &mut place)).unwrap();
    }
    terminal.backend().clone()
}

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 40);

#[test]
fn view_fits_terminals_of_both_sizes() {
    insta::assert_snapshot!("few_80x24", screen(&few(), SMALL, &[], true));
    insta::assert_snapshot!("few_120x40", screen(&few(), LARGE, &[], true));
    insta::assert_snapshot!("many_80x24", screen(&many(), SMALL, &[], true));
    insta::assert_snapshot!("many_120x40", screen(&many(), LARGE, &[], true));
    insta::assert_snapshot!("many_80x24_at_the_end", screen(&many(), SMALL, &[KeyCode::End], true));
    insta::assert_snapshot!("none_80x24", screen(&[], SMALL, &[], true));
}

#[test]
fn view_without_colour_says_the_same() {
    let [with, without] = [true, false].map(|colour| screen(&few(), SMALL, &[], colour));
    assert_eq!(with.to_string(), without.to_string());
    let coloured =
        |backend: &TestBackend| backend.buffer().content().iter().filter(|cell| cell.fg != Color::Reset).count();
    assert!(coloured(&with) > 50);
    assert_eq!(coloured(&without), 0);
}

#[test]
fn rows_are_sorted_as_the_order_says() {
    let rows: [(Order, &[&str]); 4] = [
        (Order::Worst, &["held", "none", "odd", "hello", "busy", "done", "nightly", "stopped"]),
        (Order::Next, &["busy", "hello", "done", "nightly", "held", "none", "odd", "stopped"]),
        (Order::Last, &["busy", "done", "hello", "held", "stopped", "nightly", "none", "odd"]),
        (Order::Name, &["busy", "done", "held", "hello", "nightly", "none", "odd", "stopped"]),
    ];
    for (order, want) in rows {
        let mut rows = few();
        order.sort(&mut rows);
        let names: Vec<&str> = rows.iter().map(|row| row.name.strip_prefix("default/").unwrap()).collect();
        assert_eq!(names, want, "{order:?}");
    }
}

#[test]
fn summary_counts_each_state() {
    assert_eq!(
        summary(&few(), at(5)),
        "8 CronJobs: 1 bad schedule, 1 never runs, 1 paused, 1 failing, 2 Jobs run, 1 suspended, next start in 55s"
    );
    assert_eq!(summary(&[], at(5)), "0 CronJobs: no start");
    assert_eq!(summary(&few()[4..5], at(5)), "1 CronJob: 1 Job runs, next start in 55s");
}

/// What a shell makes of the words of a command that may have been wrapped.
fn words(command: &str) -> String {
    let output = std::process::Command::new("sh").args(["-c", &format!("printf '<%s>' {command}")]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn wrapped_command_is_the_same_command() {
    for command in [
        "KUBECONFIG=/run/user/1000/cronjob-controller-dev-29921/kubeconfig.yaml",
        "KUBECONFIG='/tmp/with spaces/and  more/of them/kubeconfig.yaml'; echo after",
        r"KUBECONFIG='/tmp/it'\''s a'\'''\''quoted  path/kubeconfig.yaml'",
        "'a' 'b' '' 'long enough to be wrapped'",
    ] {
        for width in 8..40 {
            let lines = screen::continued(command, width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert_eq!(words(&lines.join("\n")), words(command), "{width}: {lines:#?}");
        }
    }
}

#[test]
fn durations_are_shortened() {
    let rows = [(-5, "0s"), (0, "0s"), (1, "1s"), (999, "1s"), (59_001, "1m00s"), (3_599_000, "59m59s")];
    let more = [(3_600_000, "1h00m"), (86_399_000, "23h59m"), (86_400_000, "1d00h"), (864_000_000, "10d00h")];
    for (ms, want) in rows.into_iter().chain(more) {
        assert_eq!(countdown(TimeDelta::milliseconds(ms)), want, "{ms}");
    }
    for (ms, want) in [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (75_300, "75 s"), (-3, "-3 ms")] {
        assert_eq!(milliseconds(TimeDelta::milliseconds(ms)), want, "{ms}");
    }
}

#[test]
fn lines_report_starts_and_ends() {
    let started = line_job("hello-1", Some(0), None);
    let line = |job: &objects::Job, offset: i64, millis: i64| {
        line_of_start(job, TimeDelta::seconds(offset), at(0) + TimeDelta::milliseconds(millis))
    };
    assert_eq!(line(&started, 0, 4), "default/hello: started Job hello-1, 4 ms after its time");
    assert_eq!(line(&started, 90, 90_004), "default/hello: started Job hello-1, 4 ms after its time", "spread");
    let mut backfilled = objects::Job::clone(&started);
    backfilled.identity.of_backfill = true;
    assert_eq!(line(&backfilled, 0, 7_161_000), "default/hello: started Job hello-1, by a backfill");
    assert_eq!(line(&line_job("manual", None, None), 0, 0), "default/started Job manual");
    let complete = line_job("hello-1", Some(0), Some(("Complete", 3)));
    assert_eq!(line_of_end(&started, &complete).unwrap(), "default/hello: Job hello-1 succeeded after 3s");
    let failed = line_job("hello-1", Some(0), Some(("Failed", 63)));
    assert_eq!(
        line_of_end(&started, &failed).unwrap(),
        "default/hello: Job hello-1 failed after 1m03s: Job has\\x1b[2J failed"
    );
    assert_eq!(line_of_end(&complete, &complete), None, "once only");
    assert_eq!(line_of_end(&started, &started), None);
}

#[test]
fn words_of_objects_are_plain_in_the_view_and_in_its_lines() {
    for (name, words) in HOSTILE {
        let running = line_job(words, Some(0), None);
        let ended = line_job(words, Some(0), Some(("Failed", 3)));
        let row = row(&cron_job(words, &json!({ "schedule": words, "timeZone": words }), None), &[], FINE, None);
        let lines = [
            line_of_start(&running, TimeDelta::zero(), at(1)),
            line_of_end(&running, &ended).unwrap(),
            row.name,
            row.schedule,
        ];
        for line in lines {
            assert_eq!((harmful(&line), line.contains('\n')), (vec![], false), "{name}: {line}");
        }
    }
}

proptest! {
    #[test]
    fn view_can_be_drawn_on_any_terminal(
        names in prop::collection::vec(".{0,40}", 0..30), width in 0_u16..130, height in 0_u16..50,
    ) {
        let row = |name: &String| Row {
            name: plain(name),
            schedule: plain(name),
            condition: cannot_run("never runs"),
            next: None,
            last: None,
            lateness: None,
            active: 20,
            jobs: vec![Fate::Running; 20],
        };
        let rows: Vec<Row> = names.iter().map(row).collect();
        let backend = screen(&rows, (width, height), &[KeyCode::End], true);
        prop_assert!(backend.buffer().content().iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
    }
}

#[test]
fn lateness_of_a_run_is_counted_from_the_end_of_its_spread() {
    let mut spread = cron_job("spread", &json!({}), Some(0));
    let annotations = json!({ "cronjob-controller.dev/spread": "30m" });
    let object = json!({
        "metadata": { "name": "spread", "namespace": "default", "uid": "spread", "annotations": annotations },
        "spec": { "schedule": "0 * * * *", "jobTemplate": {} },
    });
    let mut with_policy = CronJob::decode(&object.to_string(), &Interner::default()).unwrap();
    crate::api::policy::PolicyOptions::default().apply(&mut with_policy);
    spread.policies = with_policy.policies;
    let offset = spread.offset();
    assert!(offset > TimeDelta::zero());
    let row = row(&spread, &[], FINE, Some(offset.num_milliseconds() + 7));
    assert_eq!(row.lateness, Some(TimeDelta::milliseconds(7)));
}

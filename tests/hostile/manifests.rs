//! CronJobs that are written to cost much, of several kinds.

use std::fmt::Write as _;

use chrono::{Datelike, NaiveDate, TimeDelta, Weekday};
use serde_json::{Map, Value, json};
use testkit::driver;

/// The annotations that the program reads begin with it.
const PREFIX: &str = "cronjob-controller.dev/";
/// The most bytes that the annotations of an object may have, names and values together.
const MOST_BYTES: usize = 256 * 1024;
/// The most lines of a schedule.
const LINES: u32 = 64;
const NEW_YORK: &str = "America/New_York";

/// One way to write an expensive CronJob.
pub struct Kind {
    pub name: &'static str,
    zone: &'static str,
    /// The annotations, without [`PREFIX`].
    annotations: fn() -> Vec<(&'static str, String)>,
    /// Whether the object's last slot is long ago, so that many slots wait.
    pub is_overdue: bool,
}

const fn kind(name: &'static str, zone: &'static str, annotations: fn() -> Vec<(&'static str, String)>) -> Kind {
    Kind { name, zone, annotations, is_overdue: false }
}

/// What one line says costs a search across centuries, or each of many lines does.
pub static KINDS: [Kind; 14] = [
    kind("equal lines, open on days of a clock change 39 years apart", NEW_YORK, || {
        vec![("schedule", lines(|_| format!("30 2 {} * *", working_days()))), ("exclude", all_but(3, 8))]
    }),
    kind("the same days at other minutes", NEW_YORK, || {
        vec![("schedule", lines(|at| format!("{} 2 {} * *", at % 60, working_days()))), ("exclude", all_but(3, 8))]
    }),
    kind("daily lines, the same exclusions", NEW_YORK, || {
        vec![("schedule", lines(|_| "30 2 * * *".to_owned())), ("exclude", all_but(3, 8))]
    }),
    kind("different days, the same exclusions", NEW_YORK, || {
        let line = |at| format!("30 2 {}W,L-{} {} *", at % 31 + 1, at % 25 + 1, at % 12 + 1);
        vec![("schedule", lines(line)), ("exclude", all_but(3, 8))]
    }),
    kind("a day that the zone skipped", "Pacific/Apia", || in_2011(|_| "0 0 30 12 *".to_owned())),
    kind("a day that the zone skipped, at many times", "Pacific/Apia", || {
        in_2011(|at| format!("{} {} 30 12 *", at % 60, at / 60))
    }),
    kind("changes at midnight", "America/Santiago", || {
        vec![("schedule", lines(|at| format!("{} 0 {} * *", at % 60, working_days()))), ("exclude", all_but(9, 2))]
    }),
    kind("changes of half an hour", "Australia/Lord_Howe", || {
        vec![("schedule", lines(|at| format!("{} 2 {} * *", at % 30, working_days()))), ("exclude", all_but(10, 1))]
    }),
    kind("changes at a quarter to the hour", "Pacific/Chatham", || {
        let line = |at| format!("{} {} {} * *", 59 - at % 60, 3 + at / 60, working_days());
        vec![("schedule", lines(line)), ("exclude", all_but(9, 24))]
    }),
    kind("29 February on one weekday", NEW_YORK, || {
        let exclude = "Mon,Tue,Wed,Thu,Fri,Sat".to_owned();
        let schedule = lines(|at| format!("{} {} 29 2 *", at % 60, at / 60));
        vec![("schedule", schedule), ("exclude", exclude), ("dst", "once".to_owned())]
    }),
    kind("days that no month has on that weekday", NEW_YORK, || {
        let line = |at| format!("{} {} {},* * */7", at % 60, at / 60, working_days());
        vec![("schedule", lines(line)), ("exclude", "Sun".to_owned())]
    }),
    kind("1,300 excluded dates", NEW_YORK, || {
        let first = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
        let dates: Vec<String> = (0..1_300).map(|at| (first + TimeDelta::days(2 * at)).to_string()).collect();
        vec![("schedule", lines(|at| format!("{} 3 * * *", at % 60))), ("exclude", dates.join(","))]
    }),
    kind("bounds far away", NEW_YORK, || {
        let schedule = lines(|at| format!("{} 0 29 2 *", at % 60));
        vec![("schedule", schedule), ("exclude", "Mon".to_owned()), ("not-before", "9999-01-01T00:00:00Z".to_owned())]
    }),
    Kind {
        is_overdue: true,
        ..kind("minutely in January, with a backlog", NEW_YORK, || {
            vec![("schedule", "* * * 1 *; 0 0 1 2-12 *".to_owned()), ("backlog", "100".to_owned())]
        })
    },
];

impl Kind {
    /// A CronJob of this kind. A Job of it runs for a day.
    pub fn cron_job(&self, name: &str) -> Value {
        let spec = json!({"timeZone": self.zone, "concurrencyPolicy": "Forbid"});
        let mut object = driver::cron_job(name, "0 0 * * *", &spec);
        let annotations = (self.annotations)();
        object["metadata"]["annotations"] =
            annotations.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), Value::String(value))).collect();
        object["spec"]["jobTemplate"]["metadata"]["annotations"] = json!({format!("{PREFIX}duration"): "24h"});
        object
    }
}

/// A CronJob with as many unknown annotations as an object may have, or `most`.
pub fn unknown_annotations(name: &str, most: usize) -> Value {
    let mut object = driver::cron_job(name, "0 0 1 1 *", &json!({}));
    let (mut annotations, mut bytes) = (Map::new(), 0);
    for at in 0..most {
        let name = format!("{PREFIX}x{at:04}{}", "y".repeat(20));
        bytes += name.len() + 1;
        if bytes > MOST_BYTES {
            break;
        }
        annotations.insert(name, json!("1"));
    }
    object["metadata"]["annotations"] = annotations.into();
    object
}

/// A List of this many ordinary CronJobs as `kubectl get --output=yaml` prints it, of about a kilobyte each.
pub fn list(count: usize) -> String {
    let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
    for at in 0..count {
        let (minute, hour) = (at % 60, at / 60 % 24);
        write!(
            text,
            "- apiVersion: batch/v1
  kind: CronJob
  metadata:
    annotations:
      example.com/owner: team-{team}
      example.com/description: copies what the service wrote in the last hour, and checks the copy
    creationTimestamp: \"2026-11-01T10:00:00Z\"
    labels:
      app.kubernetes.io/name: report-{at}
      app.kubernetes.io/part-of: reports
    name: report-{at:05}
    namespace: team-{team}
    resourceVersion: \"{at}\"
  spec:
    concurrencyPolicy: Forbid
    failedJobsHistoryLimit: 1
    jobTemplate:
      spec:
        template:
          spec:
            containers:
            - args:
              - --from=$(SOURCE)
              - --to=/data/report-{at}
              env:
              - name: SOURCE
                value: https://example.com/reports/{at}
              image: registry.example.com/reports/copy:1.27.3
              imagePullPolicy: IfNotPresent
              name: copy
              resources:
                requests:
                  cpu: 100m
                  memory: 64Mi
            restartPolicy: Never
    schedule: {minute} {hour} * * *
    successfulJobsHistoryLimit: 3
    suspend: false
",
            team = at % 50,
        )
        .unwrap();
    }
    text
}

/// A manifest of several objects.
pub fn manifest(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).map(|object| ["---\n", &object, "\n"].concat()).collect()
}

/// A Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A name, and the text with so many levels, or as many as a body of a megabyte has.
type Nesting = (&'static str, fn(usize) -> String);

/// Ways to nest a YAML document.
pub static NESTED: [Nesting; 4] = [
    ("brackets", |depth| "[".repeat(depth) + &"]".repeat(depth)),
    ("braces", |depth| "{a: ".repeat(depth) + "1" + &"}".repeat(depth)),
    ("dashes", |depth| format!("\n  {}1", "- ".repeat(depth))),
    ("indentation", |depth| (1..depth.min(1_400)).map(|level| ["\n", &" ".repeat(level), "a:"].concat()).collect()),
];

/// A ConfigMap in YAML with this data.
pub fn config_map(data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: deep\ndata: {data}\n")
}

fn lines(line: impl Fn(u32) -> String) -> String {
    (0..LINES).map(line).collect::<Vec<_>>().join("; ")
}

/// Every item of a day of month that depends on weekdays.
fn working_days() -> String {
    let items = (1..=31).map(|day| format!("{day}W")).chain((1..=25).map(|day| format!("L-{day}")));
    items.collect::<Vec<_>>().join(",")
}

/// Excludes all days until the year 9999 but the first Sunday from this date on, in one of 39 years. Most clocks change on such a
/// Sunday.
fn all_but(month: u32, from: u32) -> String {
    let mut open = NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
    let mut text = String::new();
    for year in (2027..2600).step_by(39) {
        let first = NaiveDate::from_ymd_opt(year, month, from).unwrap();
        let sunday = first + TimeDelta::days(i64::from((7 - first.weekday().days_since(Weekday::Sun)) % 7));
        write!(text, "{open}/{},", sunday.pred_opt().unwrap()).unwrap();
        open = sunday.succ_opt().unwrap();
    }
    format!("{text}{open}/9999-12-31")
}

/// Lines that count in 2011 only.
fn in_2011(line: fn(u32) -> String) -> Vec<(&'static str, String)> {
    vec![
        ("schedule", lines(line)),
        ("not-before", "2011-01-01T00:00:00Z".to_owned()),
        ("not-after", "2011-12-31T23:00:00Z".to_owned()),
    ]
}

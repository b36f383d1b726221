//! The history of a CronJob's runs that a Prometheus keeps: each day's runs, how many failed, and how long they took.
//!
//! Guarantees: it is asked by GET alone, without credentials, at the one address that the user names. An answer has [`TIMEOUT`] to
//! come, and is read up to [`MOST_BYTES`]. A name is quoted, so that it is no part of the query. Whatever fails is one sentence.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use apimachinery::causes::with_causes;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::api::{ControllerKind, ObjectName, shortened};
use crate::cli::migrate::escaped;

/// How long both answers may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const MOST_BYTES: usize = 1 << 20;
/// The most bytes of an error of Prometheus that are passed on.
const LONGEST_ERROR: usize = 300;
/// The days of a history, of which the last is today.
const DAYS: u16 = 30;
/// The seconds of a day.
const DAY: u32 = 24 * 60 * 60;

/// A Prometheus that scrapes the controller, with `--cronjob-metrics`.
pub struct Prometheus {
    client: kube::Client,
    /// What is before `/api/v1` in the path.
    prefix: String,
    timeout: Duration,
}

/// The days on which runs ended, the oldest first.
#[derive(Debug, PartialEq, Serialize)]
pub struct History {
    days: Vec<Day>,
}

/// A day in UTC.
#[derive(Debug, PartialEq, Serialize)]
struct Day {
    date: NaiveDate,
    /// The runs that ended.
    runs: u64,
    /// Those of them that failed.
    failed: u64,
    /// How long one took, in seconds, in the mean.
    seconds: Option<f64>,
}

/// An answer of Prometheus.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<Series>,
}

/// A series, whose values are texts.
#[derive(Deserialize)]
struct Series {
    metric: HashMap<String, String>,
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// A Prometheus at this address. Nothing is sent yet.
    ///
    /// # Errors
    /// One sentence, when TLS cannot be set up.
    pub fn new(address: &Uri) -> Result<Self, String> {
        let prefix = address.path().trim_end_matches('/').to_owned();
        let mut origin = address.clone().into_parts();
        origin.path_and_query = Some(PathAndQuery::from_static("/"));
        let mut config = kube::Config::new(Uri::from_parts(origin).map_err(|error| error.to_string())?);
        config.default_retry = false;
        config.proxy_url = None;
        config.connect_timeout = Some(TIMEOUT);
        let client = kube::Client::try_from(config).map_err(|error| with_causes(&error))?;
        Ok(Self { client, prefix, timeout: TIMEOUT })
    }

    /// The history of a CronJob until today.
    ///
    /// # Errors
    /// One sentence.
    pub async fn history(&self, cron_job: &ObjectName, now: DateTime<Utc>) -> Result<History, String> {
        let both = async {
            let (runs, seconds) = (Asked::Runs.query(cron_job), Asked::Seconds.query(cron_job));
            tokio::try_join!(self.ask(&runs, now), self.ask(&seconds, now))
        };
        let late = |_| format!("Prometheus has not answered within {} s", self.timeout.as_secs());
        let (runs, seconds) = timeout(self.timeout, both).await.map_err(late)??;
        Ok(History::of(&runs, &seconds))
    }

    async fn ask(&self, query: &str, now: DateTime<Utc>) -> Result<Vec<Series>, String> {
        // The value of a day is that of the midnight at its end.
        let end = now.date_naive().checked_add_days(Days::new(1)).unwrap_or(now.date_naive());
        let end = end.and_time(NaiveTime::MIN).and_utc().timestamp();
        let start = end - i64::from(DAYS - 1) * i64::from(DAY);
        let path =
            format!("{}/api/v1/query_range?query={}&start={start}&end={end}&step={DAY}", self.prefix, escaped(query));
        let request = Request::get(path).header(http::header::ACCEPT, "application/json").body(Body::empty());
        let request = request.map_err(|error| format!("Prometheus cannot be asked: {error}"))?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| format!("Prometheus cannot be reached: {}", with_causes(&error)))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_BYTES).collect().await;
        let body = body.map_err(|error| format!("the answer of Prometheus cannot be read: {error}"))?.to_bytes();
        read(head.status, &body)
    }
}

/// What is asked of Prometheus.
#[derive(Clone, Copy)]
enum Asked {
    /// How many runs ended, by result.
    Runs,
    /// How long they took in the mean.
    Seconds,
}

impl Asked {
    fn query(self, cron_job: &ObjectName) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let increase = |metric: &str| {
            let controller = ControllerKind::CronJob.name;
            let [namespace, name] = [&cron_job.namespace, &cron_job.name].map(|text| quoted(text));
            format!(
                "(increase(cronjob_controller_cronjob_{metric}{{controller=\"{controller}\",namespace=\"{namespace}\",name=\"{name}\"}}[1d]))"
            )
        };
        match self {
            Self::Runs => format!("sum by (result) {}", increase("runs_total")),
            Self::Seconds => {
                format!("sum{}/sum{}", increase("run_duration_seconds_sum"), increase("run_duration_seconds_count"))
            }
        }
    }
}

/// The series of an answer; the error of Prometheus, or of what is in its place.
fn read(status: StatusCode, body: &[u8]) -> Result<Vec<Series>, String> {
    match (serde_json::from_slice(body), status.is_success()) {
        (Ok(Answer { error: None, data }), true) => Ok(data.result),
        (Ok(Answer { error: Some(error), .. }), _) => {
            Err(format!("Prometheus refuses the query: {}", shortened(&error, LONGEST_ERROR)))
        }
        (Err(_), true) => Err("what answers in place of Prometheus speaks another language".to_owned()),
        (_, false) => Err(format!("what answers in place of Prometheus says {status}")),
    }
}

impl History {
    fn of(runs: &[Series], seconds: &[Series]) -> Self {
        let mut days: BTreeMap<NaiveDate, Day> = BTreeMap::new();
        for series in runs {
            let is_failed = series.metric.get("result").is_some_and(|result| result == "failed");
            for (date, number) in series.days() {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of runs of a day")]
                let number = number.round() as u64;
                let day = days.entry(date).or_insert(Day { date, runs: 0, failed: 0, seconds: None });
                day.runs = day.runs.saturating_add(number);
                day.failed = day.failed.saturating_add(if is_failed { number } else { 0 });
            }
        }
        for (date, mean) in seconds.iter().flat_map(Series::days) {
            if let Some(day) = days.get_mut(&date) {
                day.seconds = Some(mean);
            }
        }
        let mut days: Vec<Day> = days.into_values().filter(|day| day.runs > 0).collect();
        let excess = days.len().saturating_sub(DAYS.into());
        days.drain(..excess);
        Self { days }
    }
}

impl Series {
    /// The days of the values, each of which has the time of the end of its day. Values that are no numbers are left out.
    fn days(&self) -> impl Iterator<Item = (NaiveDate, f64)> {
        self.values.iter().filter_map(|(time, value)| {
            #[allow(clippy::cast_possible_truncation, reason = "a time beyond all calendars has no date")]
            let end = DateTime::from_timestamp(*time as i64, 0)?;
            let date = end.date_naive().checked_sub_days(Days::new(1))?;
            let value: f64 = value.parse().ok()?;
            (value.is_finite() && value >= 0.0).then_some((date, value))
        })
    }
}

#[cfg(test)]
pub(super) mod tests;

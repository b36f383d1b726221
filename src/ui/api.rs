//! The JSON API below `/api/`, which the page alone uses.
//!
//! Guarantees: GET only, and no answer changes anything. Answers that need more than a look-up are computed on other threads.
//! A wrong parameter is an error 400 with one sentence.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::steps;
use axum::Router;
use axum::extract::{FromRequestParts, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use futures::Stream;
use futures::stream::unfold;
use http::StatusCode;
use http::request::Parts;
use parking_lot::Mutex;
use schedule::Zone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::connection::Outage;
use super::detail::detail;
use super::groups::{By, label_keys};
use super::heat::{Day, Question};
use super::history::{History, Prometheus};
use super::model::{Board, Model, Past, Row};
use super::query::{Filter, STATES, Selection};
use super::shadow::ShadowFile;
use super::timeline::{Line, line};
use crate::api::ObjectName;
use crate::api::batch_v1::CronJob;
use crate::api::policy::{SPREAD, Spread};
use crate::cli::banners::{Banner, banners};
use crate::cli::cluster::Known;
use crate::cli::list::next_hour::NextHour;
use crate::cli::list::night::Night;
use crate::cli::output::count;
use crate::options::go_syntax::parse_duration;
use crate::terminal::shell_word;

/// The most rows of an answer.
const MOST_ROWS: usize = 500;
/// The most lines of an answer.
const MOST_LINES: usize = 150;
/// The years of the dates that may be asked for; a search from one of them stays within what can be computed.
const YEARS: RangeInclusive<i32> = 1970..=9999;
/// The longest time on a line of time.
const LONGEST: TimeDelta = TimeDelta::days(32);
/// How long the hottest minute is remembered.
const REMEMBERED: TimeDelta = TimeDelta::seconds(10);
/// At most one update is sent in this time.
const BETWEEN_UPDATES: Duration = Duration::from_secs(1);
/// The most names in a command.
const MOST_NAMES: usize = 50;

/// What the handlers share.
pub struct Api {
    board: Arc<Board>,
    /// Where the history of runs is.
    prometheus: Option<Prometheus>,
    /// Where the report of a shadow is.
    shadow: Option<ShadowFile>,
    hottest: Mutex<Option<Hottest>>,
}

/// The hottest minute of a selection, and when it was found.
type Hottest = (Selection, DateTime<Utc>, Minute);

/// A minute and its load.
#[derive(Clone, Copy, Debug, Serialize)]
struct Minute {
    at: DateTime<Utc>,
    starts: u32,
}

type Shared = State<Arc<Api>>;

/// The routes.
pub fn router(board: Arc<Board>, prometheus: Option<Prometheus>, report: Option<ShadowFile>) -> Router {
    let api = Arc::new(Api { board, prometheus, shadow: report, hottest: Mutex::default() });
    Router::new()
        .route("/api/summary", get(summary))
        .route("/api/cronjobs", get(cron_jobs))
        .route("/api/groups", get(groups))
        .route("/api/night", get(night))
        .route("/api/next-hour", get(next_hour))
        .route("/api/heat", get(heat))
        .route("/api/minute", get(minute))
        .route("/api/timeline", get(timeline))
        .route("/api/cronjob", get(cron_job))
        .route("/api/history", get(history))
        .route("/api/shadow", get(shadow))
        .route("/api/events", get(events))
        .with_state(api)
}

/// The parameters of a request. Any that cannot be read are refused as all other errors are.
struct Asked<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(refusal(error.status(), &error.body_text())),
        }
    }
}

/// An error of a request.
fn refusal(status: StatusCode, sentence: &str) -> Response {
    (status, axum::Json(json!({ "error": sentence }))).into_response()
}

/// Computes an answer on another thread.
async fn answer<T: Serialize + Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Response {
    let body = tokio::task::spawn_blocking(move || {
        work().map(|answer| serde_json::to_vec(&answer).map_err(|error| error.to_string()))
    });
    match body.await {
        Ok(Ok(Ok(body))) => ([(http::header::CONTENT_TYPE, "application/json")], body).into_response(),
        Ok(Err(sentence)) => refusal(StatusCode::BAD_REQUEST, &sentence),
        Ok(Ok(Err(sentence))) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &sentence),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    now: DateTime<Utc>,
    version: u64,
    /// Whether all CronJobs and Jobs are known.
    synced: bool,
    trouble: Vec<String>,
    /// Since when what is shown is old.
    outage: Option<Outage>,
    /// Whether the CronJobs are those of manifests.
    is_files: bool,
    /// Whether there is the report of a shadow.
    has_shadow: bool,
    /// The CronJobs that are selected, whatever their state.
    cron_jobs: usize,
    hottest: Option<Minute>,
    /// How many each of [`STATES`] would select.
    states: BTreeMap<&'static str, usize>,
    /// What the selection names and no CronJob has, in sentences.
    unknown: Vec<String>,
    /// The keys of labels, those of most CronJobs first.
    label_keys: Vec<String>,
    /// The controllers that hold no Lease, and what keeps several CronJobs from running at once.
    banners: Vec<Banner>,
    /// The freezes of namespaces.
    freezes: Vec<FrozenNamespace>,
    /// How many CronJobs of each namespace are selected, whichever namespace is.
    namespaces: BTreeMap<String, usize>,
    /// The controller's zone.
    time_zone: &'static str,
}

/// A freeze of a namespace.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct FrozenNamespace {
    namespace: String,
    /// In a sentence.
    text: String,
}

/// The namespaces whose CronJobs a freeze holds.
fn freezes(model: &Model) -> Vec<FrozenNamespace> {
    let mut found: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for row in model.rows.values() {
        if let Some(freeze) = &row.freeze {
            found.entry(&row.namespace).or_insert_with(|| (freeze.to_string(), 0)).1 += 1;
        }
    }
    let told = |(namespace, (freeze, held)): (&str, (String, usize))| {
        let text = format!("Namespace {namespace} is frozen, {freeze}. It holds {}.", count(held, "CronJob"));
        FrozenNamespace { namespace: namespace.to_owned(), text }
    };
    found.into_iter().map(told).collect()
}

async fn summary(State(api): Shared, Asked(selection): Asked<Selection>) -> Response {
    api.board.opened.cancel();
    answer(move || api.summary(&selection)).await
}

impl Api {
    fn summary(&self, selection: &Selection) -> Result<Summary, String> {
        let (model, now) = (self.board.model(), self.board.now());
        let any_state = Selection { state: String::new(), ..selection.clone() };
        let rows = any_state.rows(&model, now)?;
        let any_namespace = Selection { namespace: String::new(), ..selection.clone() };
        let mut namespaces: BTreeMap<String, usize> = BTreeMap::new();
        for row in model.rows.values() {
            namespaces.entry(row.namespace.clone()).or_default();
        }
        for row in any_namespace.rows(&model, now)? {
            *namespaces.entry(row.namespace.clone()).or_default() += 1;
        }
        let count = |filter: Filter| rows.iter().filter(|row| filter.selects(row, now)).count();
        Ok(Summary {
            now,
            version: model.version,
            synced: self.board.source.has_synced() && model.version > 0,
            trouble: self.board.source.trouble(),
            outage: self.board.source.outage(),
            is_files: self.board.source.is_files(),
            has_shadow: self.shadow.is_some(),
            cron_jobs: rows.len(),
            hottest: self.hottest(&any_state, &rows, now),
            states: STATES.iter().map(|(name, filter)| (*name, count(*filter))).collect(),
            unknown: if model.rows.is_empty() { Vec::new() } else { selection.unknown(&model) },
            label_keys: label_keys(&model),
            banners: banners(
                model.rows.values().map(|row| row.concern()),
                self.board.source.lease_finder().as_ref(),
                now,
            ),
            freezes: freezes(&model),
            namespaces,
            time_zone: self.board.zone.name(),
        })
    }

    /// The minute of the next 24 hours with the most starts.
    fn hottest(&self, selection: &Selection, rows: &[Arc<Row>], now: DateTime<Utc>) -> Option<Minute> {
        if let Some((of, at, known)) = &*self.hottest.lock()
            && of == selection
            && now - *at < REMEMBERED
            && known.at > now - TimeDelta::minutes(1)
        {
            return Some(*known);
        }
        let cron_jobs = self.of_rows(rows);
        let start = DateTime::from_timestamp(now.timestamp().div_euclid(60) * 60, 0)?;
        let load = self.question(&cron_jobs, now).load(start, 24 * 60);
        let most = load.iter().copied().max().filter(|most| *most > 0);
        let found = most.and_then(|starts| {
            let at = i64::try_from(load.iter().position(|runs| *runs == starts)?).ok()?;
            Some(Minute { at: start + TimeDelta::minutes(at), starts })
        });
        *self.hottest.lock() = found.map(|found| (selection.clone(), now, found));
        found
    }

    fn of_rows(&self, rows: &[Arc<Row>]) -> Vec<Arc<CronJob>> {
        let name = |row: &Arc<Row>| ObjectName::new(row.namespace.as_str(), row.name.as_str());
        let found = rows.iter().filter_map(|row| self.board.source.cron_jobs.get(&name(row)));
        found.map(|watched| self.board.source.seen(&watched).1).collect()
    }

    fn question<'a>(&'a self, cron_jobs: &'a [Arc<CronJob>], now: DateTime<Utc>) -> Question<'a> {
        let (zone, seed, is_plan) = (self.board.zone, &*self.board.seed, self.board.source.is_files());
        Question { cron_jobs, zone, seed, lengths: None, is_plan, what_if: None, now }
    }

    /// All that is known of each CronJob of the selection, one after the other.
    fn known(&self, selection: &Selection, now: DateTime<Utc>) -> Result<impl Iterator<Item = Known>, String> {
        let name = |row: &Arc<Row>| ObjectName::new(row.namespace.as_str(), row.name.as_str());
        let watched =
            self.selected(selection)?.into_iter().filter_map(move |row| self.board.source.cron_jobs.get(&name(&row)));
        Ok(watched.map(move |watched| self.board.source.known(&watched, self.board.zone, now)))
    }

    fn selected(&self, selection: &Selection) -> Result<Vec<Arc<Row>>, String> {
        selection.rows(&self.board.model(), self.board.now())
    }
}

/// A part of a list.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
struct Window {
    offset: usize,
    limit: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { offset: 0, limit: 100 }
    }
}

#[derive(Serialize)]
struct Page<T> {
    total: usize,
    offset: usize,
    version: u64,
    rows: Vec<T>,
}

#[derive(Serialize)]
struct RowWithSlots {
    #[serde(flatten, serialize_with = "shared")]
    row: Arc<Row>,
    #[serde(flatten, serialize_with = "shared")]
    past: Arc<Past>,
}

fn shared<T: Serialize, S: Serializer>(one: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    one.as_ref().serialize(serializer)
}

async fn cron_jobs(State(api): Shared, Asked(selection): Asked<Selection>, Asked(window): Asked<Window>) -> Response {
    answer(move || {
        let version = api.board.model().version;
        let rows = api.selected(&selection)?;
        let shown = rows.iter().skip(window.offset).take(window.limit.min(MOST_ROWS));
        let shown = shown.map(|row| RowWithSlots { past: api.board.past(row), row: Arc::clone(row) }).collect();
        Ok(Page { total: rows.len(), offset: window.offset, version, rows: shown })
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfDay {
    day: String,
    zone: String,
    spread: String,
    /// Starts, the default, or jobs.
    show: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Heat {
    #[serde(flatten)]
    day: Day,
    cron_jobs: usize,
    /// Of how many it is not known how long their Jobs run, if Jobs are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_length: Option<usize>,
    /// What the spread changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<WhatIf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WhatIf {
    /// The most starts in a minute as things are.
    most_now: u32,
    /// The change, as a patch.
    patch: String,
    /// Commands that make it.
    commands: Vec<String>,
}

fn zone_of(name: &str) -> Result<Zone, String> {
    let zone = Zone::load(name, Zone::UTC).ok().filter(|_| name != "Local");
    zone.ok_or_else(|| format!("zone: {name:?} is not a name of the time zone database"))
}

fn spread_of(text: &str) -> Result<Option<Spread>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let spread = parse_duration(text).and_then(|nanos| Spread::new(nanos).ok());
    spread.map(Some).ok_or_else(|| format!("spread: {text:?} is not allowed; use a duration from 1s to 24h"))
}

/// For how many seconds the Jobs of the rows run, where that is known; `None` if starts are to be shown.
fn lengths_of(show: &str, rows: &[Arc<Row>]) -> Result<Option<HashMap<ObjectName, i64>>, String> {
    #[allow(clippy::cast_possible_truncation, reason = "a median of runs")]
    let length = |row: &Arc<Row>| {
        let name = ObjectName::new(row.namespace.as_str(), row.name.as_str());
        Some((name, row.durations?.median.ceil() as i64))
    };
    match show {
        "" | "starts" => Ok(None),
        "jobs" => Ok(Some(rows.iter().filter_map(length).collect())),
        _ => Err(format!("show: {show:?} is not allowed; use starts or jobs")),
    }
}

fn day_of(text: &str) -> Result<NaiveDate, String> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|day| YEARS.contains(&day.year()));
    day.ok_or_else(|| format!("day: {text:?} is not a date such as 2027-03-28"))
}

fn time_of(name: &str, text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    let time = time.filter(|time| YEARS.contains(&time.year()));
    time.ok_or_else(|| format!("{name}: {text:?} is not a time such as 2027-03-28T02:30:00Z"))
}

async fn heat(State(api): Shared, Asked(selection): Asked<Selection>, Asked(of): Asked<OfDay>) -> Response {
    answer(move || {
        let now = api.board.now();
        let (zone, what_if) = (zone_of(&of.zone)?, spread_of(&of.spread)?);
        let day = if of.day.is_empty() { zone.at(now).date_naive() } else { day_of(&of.day)? };
        let rows = api.selected(&selection)?;
        let cron_jobs = api.of_rows(&rows);
        let beyond = || "day: it is too far away".to_owned();
        let lengths = lengths_of(&of.show, &rows)?;
        let plain = Question { lengths: lengths.as_ref(), ..api.question(&cron_jobs, now) };
        let load = Question { what_if, ..plain }.day(day, zone).ok_or_else(beyond)?;
        let what_if = match what_if {
            None => None,
            Some(_) => Some(WhatIf {
                most_now: plain.day(day, zone).ok_or_else(beyond)?.most,
                patch: format!("metadata:\n  annotations:\n    {SPREAD}: {}\n", of.spread),
                commands: api.annotate(&cron_jobs, &of.spread),
            }),
        };
        let without_length = lengths.as_ref().map(|lengths| cron_jobs.len() - lengths.len());
        Ok(Heat { day: load, cron_jobs: cron_jobs.len(), without_length, what_if })
    })
    .await
}

impl Api {
    /// Commands that give all of these CronJobs a spread, each in one namespace.
    fn annotate(&self, cron_jobs: &[Arc<CronJob>], spread: &str) -> Vec<String> {
        let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for cron_job in cron_jobs {
            by_namespace.entry(&cron_job.name.namespace).or_default().push(&cron_job.name.name);
        }
        let model = self.board.model();
        let mut all: HashMap<&str, usize> = HashMap::new();
        for name in steps::each(model.rows.keys()) {
            *all.entry(&*name.namespace).or_default() += 1;
        }
        let command = |namespace: &str, which: &str| {
            let (namespace, flags) = (shell_word(namespace), &self.board.shell.flags);
            format!("kubectl annotate cronjob -n {namespace} {SPREAD}={spread} --overwrite{flags} {which}")
        };
        let commands = |(namespace, names): (&str, Vec<&str>)| -> Vec<String> {
            if Some(&names.len()) == all.get(namespace) {
                return vec![command(namespace, "--all")];
            }
            // A line of a shell has a limit, and a command that leaves some out would not do what it says.
            let part = |names: &[&str]| names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ");
            names.chunks(MOST_NAMES).map(|names| command(namespace, &part(names))).collect()
        };
        by_namespace.into_iter().flat_map(commands).collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfMinute {
    at: String,
    spread: String,
    show: String,
}

#[derive(Serialize)]
struct Start {
    namespace: String,
    name: String,
    due: DateTime<Utc>,
    schedule: String,
}

async fn minute(State(api): Shared, Asked(selection): Asked<Selection>, Asked(of): Asked<OfMinute>) -> Response {
    answer(move || {
        let (at, what_if) = (time_of("at", &of.at)?, spread_of(&of.spread)?);
        let rows = api.selected(&selection)?;
        let (cron_jobs, lengths) = (api.of_rows(&rows), lengths_of(&of.show, &rows)?);
        let question = api.question(&cron_jobs, api.board.now());
        let starts = Question { lengths: lengths.as_ref(), what_if, ..question }.starting(at);
        let start = |(cron_job, due): &(Arc<CronJob>, DateTime<Utc>)| Start {
            namespace: cron_job.name.namespace.to_string(),
            name: cron_job.name.name.to_string(),
            due: *due,
            schedule: cron_job.spec.recurrence.schedule().to_owned(),
        };
        let rows = starts.iter().take(MOST_ROWS).map(start).collect::<Vec<_>>();
        Ok(Page { total: starts.len(), offset: 0, version: 0, rows })
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupedBy {
    by: String,
}

async fn groups(State(api): Shared, Asked(selection): Asked<Selection>, Asked(of): Asked<GroupedBy>) -> Response {
    answer(move || super::groups::groups(&api.board.model(), &By::parse(&of.by)?, &selection, api.board.now())).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InZone {
    zone: String,
}

async fn night(State(api): Shared, Asked(selection): Asked<Selection>, Asked(of): Asked<InZone>) -> Response {
    answer(move || {
        let (zone, now) = (zone_of(&of.zone)?, api.board.now());
        Ok(Night::of(api.known(&selection, now)?, api.board.zone, zone, now))
    })
    .await
}

async fn next_hour(State(api): Shared, Asked(selection): Asked<Selection>, Asked(of): Asked<InZone>) -> Response {
    answer(move || {
        let (zone, now) = (zone_of(&of.zone)?, api.board.now());
        Ok(NextHour::of(api.known(&selection, now)?, api.board.zone, zone, now))
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Between {
    from: String,
    to: String,
}

async fn timeline(
    State(api): Shared,
    Asked(selection): Asked<Selection>,
    Asked(window): Asked<Window>,
    Asked(between): Asked<Between>,
) -> Response {
    answer(move || {
        let (from, to) = (time_of("from", &between.from)?, time_of("to", &between.to)?);
        if to <= from || to - from > LONGEST {
            return Err(format!("to: it must be after from, by at most {} days", LONGEST.num_days()));
        }
        let version = api.board.model().version;
        let rows = api.selected(&selection)?;
        let shown = rows.iter().skip(window.offset).take(window.limit.min(MOST_LINES));
        let name = |row: &Arc<Row>| ObjectName::new(row.namespace.as_str(), row.name.as_str());
        let lines: Vec<Line> = shown.filter_map(|row| line(&api.board, &name(row), from, to)).collect();
        Ok(Page { total: rows.len(), offset: window.offset, version, rows: lines })
    })
    .await
}

#[derive(Debug, Deserialize)]
struct Named {
    namespace: String,
    name: String,
}

async fn cron_job(State(api): Shared, Asked(Named { namespace, name }): Asked<Named>) -> Response {
    match detail(&api.board, &ObjectName::new(namespace.as_str(), name.as_str())).await {
        Some(detail) => axum::Json(detail).into_response(),
        None => refusal(StatusCode::NOT_FOUND, &format!("there is no CronJob {name} in namespace {namespace}")),
    }
}

/// The history of a CronJob, or why it cannot be read; null where no Prometheus was named.
async fn history(State(api): Shared, Asked(Named { namespace, name }): Asked<Named>) -> Response {
    let name = ObjectName::new(namespace.as_str(), name.as_str());
    let known = api.prometheus.as_ref().filter(|_| api.board.source.cron_jobs.get(&name).is_some());
    let history: Option<Result<History, String>> = match known {
        Some(prometheus) => Some(prometheus.history(&name, api.board.now()).await),
        None => None,
    };
    axum::Json(history).into_response()
}

/// The report of a shadow.
async fn shadow(State(api): Shared) -> Response {
    answer(move || api.shadow.as_ref().ok_or_else(|| "no --shadow was given".to_owned())?.read()).await
}

/// Sends the version of the model, at once and whenever it changes.
async fn events(State(api): Shared) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let state = (api.board.versions(), true);
    let updates = unfold(state, |(mut versions, is_first)| async move {
        if !is_first {
            versions.changed().await.ok()?;
            tokio::time::sleep(BETWEEN_UPDATES).await;
        }
        let version = *versions.borrow_and_update();
        Some((Ok(Event::default().data(version.to_string())), (versions, false)))
    });
    Sse::new(updates).keep_alive(KeepAlive::default())
}

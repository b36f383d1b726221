//! The timing policies of a world's CronJobs, and what they allow.
//!
//! The values are drawn near the world's start, so that they matter while it runs. Offsets and dates without slots are
//! computed here once more, independently of the controller's code.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::batch_v1::ConcurrencyPolicy;
pub use cronjob_controller::api::policy::TIMING;
use cronjob_controller::api::policy::{
    COUNTED_FROM, DST, EXCLUDE, NOT_AFTER, NOT_BEFORE, PolicyReading, SCHEDULE, SPREAD, Setting,
};
use ring::digest::{SHA256, digest};
use schedule::{Schedule, Zone};
use serde::Deserialize as _;
use serde_json::Value;

use crate::disguise::disguised;
use crate::model::{Version, text};
use crate::rng::Rng;

/// Annotations and their values; `None` removes one.
pub type Annotations = BTreeMap<&'static str, Option<String>>;

/// The policies of a new CronJob.
pub fn draw(rng: &mut Rng, start: DateTime<Utc>) -> Annotations {
    let mut drawn = Annotations::new();
    for (name, percent) in [(SPREAD, 50), (DST, 25), (EXCLUDE, 30), (NOT_BEFORE, 12), (NOT_AFTER, 12), (SCHEDULE, 25)] {
        if rng.percent(percent) {
            drawn.insert(name, Some(value(rng, name, start)));
        }
    }
    if rng.percent(5) {
        drawn.insert("cronjob-controller.dev/colour", Some("red".to_owned()));
    }
    if rng.percent(10) {
        // Of the object that it was copied from.
        let time = (start + TimeDelta::minutes(20)).to_rfc3339();
        drawn.insert(COUNTED_FROM, Some(format!("{time} v1:00000000-0000-0000-0000-000000000000:0123456789abcdef")));
    }
    drawn
}

/// A change of the policies.
pub fn change(rng: &mut Rng, start: DateTime<Utc>) -> Annotations {
    let name = *rng.pick(&TIMING);
    let value = value(rng, name, start);
    rng.weighted(&[
        (55, Annotations::from([(name, Some(value))])),
        (30, Annotations::from([(name, None)])),
        (10, TIMING.iter().map(|name| (*name, None)).collect()),
        // A tool that prunes what it did not apply.
        (15, Annotations::from([(COUNTED_FROM, None)])),
        // `kubectl replace` with a manifest that has none of them.
        (15, TIMING.iter().chain([&COUNTED_FROM]).map(|name| (*name, None)).collect()),
    ])
}

/// A value of that annotation.
pub fn value(rng: &mut Rng, name: &'static str, start: DateTime<Utc>) -> String {
    if rng.percent(4) {
        return "soon".to_owned();
    }
    let day = |days: i64, form: &str| (start + TimeDelta::days(days)).format(form).to_string();
    let after = |minutes: i64| start + TimeDelta::minutes(minutes);
    let minutes = i64::try_from(rng.range(1, 20)).unwrap();
    let at = after(minutes).format("%Y-%m-%dT%H:%MZ");
    match name {
        SPREAD => (*rng.pick(&["5s", "20s", "45s", "1m", "90s", "4m"])).to_owned(),
        DST => (*rng.pick(&["once", "once", "upstream"])).to_owned(),
        EXCLUDE => rng
            .pick(&[
                day(0, "%Y-%m-%d"),
                day(1, "%Y-%m-%d"),
                day(-1, "%m-%d"),
                day(1, "%m-%d"),
                day(0, "%a"),
                day(1, "%a,%m-%d"),
                format!("{}/{}", day(-3, "%m-%d"), day(-1, "%m-%d")),
                format!("{}/{}", day(1, "%m-%d"), day(4, "%m-%d")),
                format!("{}/{}", day(1, "%Y-%m-%d"), day(400, "%Y-%m-%d")),
                format!("{},{}", day(3, "%a"), day(5, "%m-%d")),
            ])
            .clone(),
        NOT_BEFORE => after(minutes - 5).to_rfc3339(),
        NOT_AFTER => after(minutes + 2).to_rfc3339(),
        SCHEDULE => rng
            .pick(&[
                "*/2 * * * *\n*/5 * * * *".to_owned(),
                format!("*/4 * * * *; @at {at}"),
                "*/3 * L,1 * *; */4 * * * SUN#1,5L".to_owned(),
                "* * LW,15W * *\n*/7 * L-3 * MON-FRI".to_owned(),
                format!("@at {at}\n@hourly"),
                "@every 1m".to_owned(),
            ])
            .clone(),
        _ => panic!("{name} has no values"),
    }
}

impl Version {
    /// The timing annotations as clients read them.
    pub fn timing_annotations(&self) -> BTreeMap<&'static str, String> {
        let shown = disguised(&self.object);
        let value = |name: &'static str| Some((name, shown["metadata"]["annotations"][name].as_str()?.to_owned()));
        TIMING.into_iter().filter_map(value).collect()
    }

    /// The schedule of its slots, if clients can read all that it depends on, and its policies may be combined.
    pub fn schedule(&self) -> Option<Schedule> {
        let timing = self.timing()?;
        let own = timing.schedule.ok().filter(|_| timing.time_zone.is_ok())?;
        let shown = disguised(&self.object);
        if self.controller_kind().counted_from.is_none() {
            return Some(own);
        }
        let annotations = shown["metadata"]["annotations"].as_object().into_iter().flatten();
        let pairs = annotations.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let spec = &shown["spec"];
        let limit = |field: &str| spec[field].as_i64().and_then(|limit| i32::try_from(limit).ok());
        let template = spec["jobTemplate"].to_string();
        let setting = Setting {
            schedule: spec["schedule"].as_str()?,
            concurrency_policy: ConcurrencyPolicy::deserialize(&spec["concurrencyPolicy"]).unwrap_or_default(),
            successful_jobs_history_limit: limit("successfulJobsHistoryLimit"),
            failed_jobs_history_limit: limit("failedJobsHistoryLimit"),
            job_template: &template,
        };
        match PolicyReading::of(pairs, setting) {
            None => Some(own),
            Some(reading) => Some(reading.policy.ok()?.schedule(&own).clone()),
        }
    }

    /// When the Job of a slot may start.
    pub fn due(&self, slot: DateTime<Utc>) -> DateTime<Utc> {
        slot + self.offset()
    }

    /// How long after its slot a Job may start.
    pub fn offset(&self) -> TimeDelta {
        let window = self.timing_annotations().remove(SPREAD).and_then(|window| {
            let unit = if window.ends_with('m') { 60 } else { 1 };
            window.trim_end_matches(['s', 'm']).parse::<u64>().ok().map(|number| number * unit)
        });
        let Some(window) = window else { return TimeDelta::zero() };
        let hash =
            digest(&SHA256, format!("/{}/{}", text(&self.object, "namespace"), text(&self.object, "name")).as_bytes());
        let number = u64::from_be_bytes(hash.as_ref()[..8].try_into().unwrap());
        TimeDelta::seconds(i64::try_from(number % window).unwrap())
    }

    /// Whether an exclusion or a bound leaves the slot out.
    pub fn leaves_out(&self, slot: DateTime<Utc>) -> bool {
        let annotations = self.timing_annotations();
        let time = |name| annotations.get(name).and_then(|text| text.parse::<DateTime<Utc>>().ok());
        if time(NOT_BEFORE).is_some_and(|first| slot < first) || time(NOT_AFTER).is_some_and(|last| slot > last) {
            return true;
        }
        let Some(exclude) = annotations.get(EXCLUDE) else { return false };
        let local = self.zone().at(slot);
        let [weekday, day, date] = ["%a", "%m-%d", "%Y-%m-%d"].map(|form| local.format(form).to_string());
        let form = |item: &str| if item.len() == date.len() { date.clone() } else { day.clone() };
        exclude.split(',').any(|item| match item.split_once('/') {
            None => item == weekday || item == day || item == date,
            Some((first, last)) if first <= last => (first..=last).contains(&&*form(first)),
            // Over the end of the year.
            Some((first, last)) => *form(first) >= *first || *form(first) <= *last,
        })
    }

    fn zone(&self) -> Zone {
        let zone = self.timing().and_then(|timing| timing.schedule.ok()).and_then(|schedule| schedule.zone());
        zone.unwrap_or(Zone::UTC)
    }

    /// The time up to which its slots are decided, as clients that read it at `now` understand it.
    pub fn decided_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let shown = disguised(&self.object);
        let record = counted_from(&shown)?;
        let (time, fingerprint) = record.split_once(' ')?;
        let time: DateTime<Utc> = time.parse().ok()?;
        let is_of_this = fingerprint.contains(text(&shown, "uid"));
        (is_of_this && time <= now + TimeDelta::minutes(1)).then_some(time)
    }
}

/// The record of decided slots, wherever the kind has it.
pub fn counted_from(object: &Value) -> Option<&str> {
    let status = object["status"]["countedFrom"].as_str();
    status.or_else(|| object["metadata"]["annotations"][COUNTED_FROM].as_str())
}

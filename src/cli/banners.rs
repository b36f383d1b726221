//! What keeps several CronJobs from running at once, said once, by the page and by `list`.
//!
//! Guarantees: a controller that holds no Lease is named, whatever is overdue. An answer of the API server is quoted if it keeps at least
//! two CronJobs from running, those of most CronJobs first; the names of Jobs in it, and its numbers, make no difference. What is quoted
//! has a bounded length. Pure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schedule::Zone;
use serde::Serialize;

use super::explain::lease::{ControllerLease, IN_TREE};
use super::explain::{Explanation, Facts, InCharge, Urgency};
use super::output::{count, moment};
use crate::options::PROGRAM;

/// The least number of CronJobs that share a refusal.
const LEAST: usize = 2;
/// The most characters of an answer that are quoted.
const LONGEST: usize = 400;
/// The most refusals that are quoted.
const MOST: usize = 5;
/// The most characters that find a refusal, and the fewest.
const FOUND_BY: std::ops::RangeInclusive<usize> = 12..=60;

/// The answer with which the API server refuses the Jobs of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The answer, without the name of the Job.
    pub text: String,
    /// The same without its numbers, which differ between CronJobs.
    kind: String,
}

/// What a banner may say of a CronJob.
#[derive(Clone, Copy, Debug)]
pub struct Concern<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Which controller runs it.
    pub in_charge: InCharge,
    /// How much attention it needs.
    pub urgency: Urgency,
    /// With what the API server refuses its Jobs.
    pub refusal: Option<&'a Refusal>,
}

/// A cause, and what finds the CronJobs that have it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Banner {
    /// In sentences.
    pub text: String,
    /// A part of the words of those that have it and are overdue; `None` if none is.
    pub(crate) q: Option<String>,
    /// Their namespace, if all are in one.
    pub(crate) namespace: Option<String>,
}

impl Refusal {
    /// What the newest Event says since the run was due that has not started.
    pub fn of(told: &Explanation, facts: &Facts) -> Option<Self> {
        let since = told.due_since.filter(|_| told.state.urgency() == Urgency::Overdue)?;
        let text = without_job(facts.refused_since(since)?.refusal(), &told.name);
        let text: String = text.chars().take(LONGEST).collect();
        let kind =
            text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0");
        (!text.is_empty()).then_some(Self { text, kind })
    }

    /// Its beginning, up to a number if that is not too near.
    fn found_by(&self) -> String {
        let number = self.text.find(|c: char| c.is_ascii_digit()).filter(|at| *at >= *FOUND_BY.start());
        let beginning = &self.text[..number.unwrap_or(self.text.len())];
        beginning.chars().take(*FOUND_BY.end()).collect::<String>().trim().to_owned()
    }
}

/// The text without the name of a Job of the CronJob, which no other one has.
fn without_job(text: &str, cron_job: &str) -> String {
    let stem = format!("{cron_job}-");
    let mut parts = text.split(&*stem);
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        found.push_str(if rest.len() < part.len() { "…" } else { &stem });
        found.push_str(rest);
    }
    match found.strip_prefix("jobs.batch \"…\" is forbidden: ") {
        Some(rest) => rest.to_owned(),
        None => found,
    }
}

/// The controllers that hold no Lease, and the answers that keep CronJobs from running. `lease` finds the Lease of those that run in a
/// namespace under a controller; without it, Leases are not known.
pub fn banners<'a, F>(
    cron_jobs: impl Iterator<Item = Concern<'a>>,
    lease: Option<&F>,
    now: DateTime<Utc>,
) -> Vec<Banner>
where
    F: Fn(&str, InCharge) -> Option<ControllerLease>,
{
    let mut leaderless: BTreeMap<String, Concerned<'_>> = BTreeMap::new();
    let mut refused: BTreeMap<&str, Concerned<'_>> = BTreeMap::new();
    let mut known: BTreeMap<(&str, u8), Option<String>> = BTreeMap::new();
    for one in cron_jobs.filter(|one| one.urgency != Urgency::Stopped) {
        let without = lease.and_then(|lease| {
            let key = (one.namespace, one.in_charge as u8);
            known
                .entry(key)
                .or_insert_with(|| leader_of(one.in_charge, lease(one.namespace, one.in_charge), now))
                .clone()
        });
        match (without, one.refusal) {
            (Some(why), _) => leaderless.entry(why).or_default().0.push(one),
            (None, Some(refusal)) => refused.entry(&refusal.kind).or_default().0.push(one),
            (None, None) => {}
        }
    }
    let mut refused: Vec<_> = refused.into_values().filter(|rows| rows.0.len() >= LEAST).collect();
    refused.sort_by_key(|rows| std::cmp::Reverse(rows.0.len()));
    let leaderless = leaderless.into_iter().map(|(why, rows)| rows.leaderless(&why));
    leaderless.chain(refused.iter().take(MOST).filter_map(Concerned::refused)).collect()
}

/// That the cluster cannot be read since a time.
pub fn outage(since: DateTime<Utc>, why: &str, zone: Zone) -> String {
    let (since, why) = (moment(zone, since), why.trim_end_matches('.'));
    format!("Not live since {since}: {why}. Every state and every time above is as of then.")
}

/// Why no controller is known to run what this one is in charge of, as a sentence; `None` if one holds its Lease.
fn leader_of(in_charge: InCharge, lease: Option<ControllerLease>, now: DateTime<Utc>) -> Option<String> {
    if in_charge == InCharge::NoInstance {
        let why = "as its Leases say; the in-tree controller would run them, if it is on";
        return Some(format!("No instance of {PROGRAM} works in the namespaces of some CronJobs, {why}"));
    }
    let Some(lease) = lease.filter(|_| in_charge != InCharge::NotManaged) else {
        let who = match in_charge {
            InCharge::Own | InCharge::HandedOver => PROGRAM,
            InCharge::InTree => IN_TREE,
            // Its state says it.
            InCharge::NotManaged | InCharge::NoInstance => return None,
            InCharge::Unknown => {
                return Some(
                    "No controller has a Lease: none is running, or it runs without leader election".to_owned(),
                );
            }
        };
        return Some(format!("{who} has no Lease: it is not running, or runs without leader election"));
    };
    lease.is_abandoned(now).then(|| {
        let since = lease.record.renew_time.map_or_else(|| "it was made".to_owned(), |time| moment(Zone::UTC, time));
        format!("No controller has renewed the Lease {} since {since}", lease.name)
    })
}

/// The CronJobs that have a cause.
#[derive(Default)]
struct Concerned<'a>(Vec<Concern<'a>>);

impl Concerned<'_> {
    fn leaderless(&self, why: &str) -> Banner {
        let overdue = self.0.iter().filter(|one| one.urgency == Urgency::Overdue).count();
        let what = count(self.0.len(), "CronJob");
        let overdue_now = match overdue {
            0 => "none is overdue yet".to_owned(),
            1 => "1 is overdue".to_owned(),
            overdue => format!("{overdue} are overdue"),
        };
        let text = format!("{why}. This concerns {what}; {overdue_now}.");
        Banner { text, q: (overdue > 0).then(String::new), namespace: self.namespace() }
    }

    fn refused(&self) -> Option<Banner> {
        let refusals: Vec<&Refusal> = self.0.iter().filter_map(|one| one.refusal).collect();
        let first = refusals.first()?;
        let like = if refusals.iter().all(|one| one.text == first.text) { "" } else { ", with other numbers for each" };
        let place = self.namespace().map_or_else(String::new, |namespace| format!(" of namespace {namespace}"));
        let what = count(self.0.len(), "CronJob");
        let text = format!("The API server refuses the Jobs of {what}{place}{like}: {}.", first.text);
        Some(Banner { text, q: Some(first.found_by()), namespace: self.namespace() })
    }

    fn namespace(&self) -> Option<String> {
        let first = self.0.first()?.namespace;
        self.0.iter().all(|one| one.namespace == first).then(|| first.to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests;

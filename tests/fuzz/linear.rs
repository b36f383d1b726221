//! The targets that count steps: whatever the input is, their number grows with its length.
//!
//! A build without debug assertions counts no steps, and these targets then look for panics alone.

use std::hint::black_box;
use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job, SlotsEdited};
use cronjob_controller::api::{Interner, Object};
use cronjob_controller::cli::check::{CheckFormat, Rules, Source, check};
use cronjob_controller::cli::cluster::Known;
use cronjob_controller::cli::explain::read::Said;
use cronjob_controller::cli::explain::{Facts, InCharge, explain};
use cronjob_controller::cli::list::listing;
use cronjob_controller::cli::next::cron_jobs::{Answer, CronJobRuns, Question};
use cronjob_controller::cli::options::cluster::Since;
use cronjob_controller::cli::output::{Format, render};
use cronjob_controller::cli::slots::slots;
use schedule::Zone;

use super::targets;

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// Runs `judge` on an input of `length` bytes. It may count `per_byte` steps for each of them, and some more.
fn stepped<T>(length: usize, per_byte: u64, anyway: u64, judge: impl FnOnce() -> T) -> T {
    let (steps, result) = steps::of(judge);
    let allowed = length as u64 * per_byte + anyway;
    assert!(steps <= allowed, "{steps} steps for {length} bytes, and {allowed} are allowed");
    result
}

/// A file of manifests is checked, and the report written in every format. A CronJob has at least 60 bytes, and each minute
/// of a week is a step or two. What aliases may repeat in a short file is a million at most.
pub fn check_manifests(input: &[u8]) {
    let source = Source { file: "input.yaml".to_owned(), text: String::from_utf8_lossy(input).into_owned() };
    let rules = Rules { histogram: true, ..Rules::default() };
    let report = stepped(input.len(), 1_000, 1_100_000, || check(&[source], &rules, now()));
    for format in CheckFormat::NAMES {
        stepped(input.len(), 2_000, 100_000, || black_box(report.render(CheckFormat::parse(format).unwrap(), None)));
    }
}

/// The patches of [`targets::patch`]: ten requests, each of which reads and writes an object that may be as long as the input.
pub fn patch(input: &[u8]) {
    stepped(input.len(), 1_000, 200_000, || targets::patch(input));
}

/// A CronJob, with its Jobs and with each line as what an Event says, is listed and explained, and its slots are told, those
/// to come as well.
pub fn reports(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let interner = Interner::default();
    let Ok(cron_job) = CronJob::decode(&text, &interner) else { return };
    let jobs: Vec<Arc<Job>> = Job::decode(&text, &interner).ok().map(Arc::new).into_iter().collect();
    let said = |message: &str| Said {
        time: now(),
        count: 1,
        reason: if message.len().is_multiple_of(2) { "SuccessfulCreate" } else { "MissSchedule" }.to_owned(),
        message: message.to_owned(),
    };
    let events: Vec<Said> = text.split([',', '\n']).map(said).collect();
    let jobs = jobs.iter().cycle().take(events.len() * jobs.len()).cloned().collect();
    let facts = Facts {
        cron_job: Arc::new(cron_job),
        in_charge: InCharge::Unknown,
        jobs,
        warnings: Ok(events.clone()),
        told: Vec::new(),
        lease: None,
        manage: None,
        leases_unread: None,
        namespace_unread: None,
        edited: SlotsEdited::default(),
        backfilled: Vec::new(),
        may_lack_events: false,
    };
    let (cron_job, question) = (
        Arc::clone(&facts.cron_job),
        Question { zone: Zone::UTC, seed: Arc::default(), from: None, count: 1_000, all: true },
    );
    stepped(input.len(), 1_000, 1_000_000, || {
        black_box(render(&explain(&facts, Zone::UTC, now()), Format::Table));
        black_box(render(&Answer::Each(vec![CronJobRuns::of(&cron_job, &question, now())]), Format::Table));
    });
    let known = [Known { facts, events }];
    // There are at most 2,880 slots, and a search finds each of them.
    stepped(input.len(), 1_000, 1_000_000, || {
        black_box(render(&listing(&known, Zone::UTC, now()), Format::Table));
        black_box(render(&slots(&known, Zone::UTC, Since::Ago(chrono::TimeDelta::days(2)), now()), Format::Table));
    });
}

//! The command lines of the commands about the CronJobs of a cluster.
//!
//! Guarantee: as in the module above. Flags that several commands have are declared once. Pure.

use std::path::PathBuf;
use std::time::Duration;

use apimachinery::names::{dns_label_errors, subdomain_errors};
use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use clap::{ArgAction, Args, Parser, ValueHint};
use schedule::Zone;

use super::{FORMATS, KINDS, ZONES, cli, given_time, kind_named, the_one, zone_named};
use crate::api::ControllerKind;
use crate::api::job_changes::JobChanges;
use crate::cli::Command;
use crate::cli::cluster::{ControllerFlags, Namespaces, Scope};
use crate::cli::dispatch::Invocation;
use crate::cli::explain::read::Target;
use crate::cli::next::cron_jobs::Given;
use crate::cli::output::{Format, moment};
use crate::cli::trigger::{self, DryRun, Until};
use crate::options::UsageError;
use crate::options::go_syntax::parse_duration;
use crate::options::resolve::Faults;

/// Where the CronJobs are.
#[derive(Debug, Clone, Args)]
pub(super) struct Where {
    /// The namespace [default: that of the context, else default]
    #[arg(short, long, value_name = "STRING")]
    namespace: Option<String>,

    /// The kind of the object: cronjob (batch/v1), tutorial (the kubebuilder book's CronJob) or apiexample.
    #[arg(long, value_name = "STRING", default_value = "cronjob")]
    controller: String,

    /// The kubeconfig file [default: as kubectl, $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context [default: the current one]
    #[arg(long, value_name = "STRING")]
    context: Option<String>,
}

impl Where {
    /// Where batch/v1 CronJobs are.
    pub(super) fn of_cron_jobs(
        namespace: Option<String>,
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    ) -> Self {
        Self { namespace, controller: ControllerKind::CronJob.name.to_owned(), kubeconfig, context }
    }
}

/// What a command has to know of the controller.
#[derive(Debug, Clone, Args)]
pub(super) struct ControllerArgs {
    /// The controller's time zone, for CronJobs without spec.timeZone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The --spread-seed of the controller.
    #[arg(long, value_name = "STRING", default_value = "")]
    spread_seed: String,
}

impl ControllerArgs {
    pub(super) fn read(&self, faults: &mut Faults) -> ControllerFlags {
        let zone = faults.read("time-zone", &self.time_zone, ZONES, zone_named).unwrap_or_default();
        ControllerFlags { zone, seed: self.spread_seed.as_str().into() }
    }
}

/// How a command answers.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// The output format: table, json or yaml.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

impl OutputArgs {
    pub(super) fn read(&self, faults: &mut Faults) -> Format {
        faults.read("output", &self.output, FORMATS, Format::parse).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Says why a CronJob did or did not run, and what it will do next; without a name, of each that is not fine."
)]
pub(super) struct Explain {
    /// The CronJob's name [default: all that are not fine]
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// Look in all namespaces; without a NAME.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false")]
    all_namespaces: String,

    /// Say of each slot since then whether it was started, skipped or missed, and why: yesterday, today, a duration such as 6h,
    /// or a time such as 2026-03-28T01:00 in the zone of the CronJob
    #[arg(long, value_name = "TIME", verbatim_doc_comment)]
    since: Option<String>,

    /// Wait until the next run of NAME has started, so long at most, such as 90s. The exit code is 1 if none has
    #[arg(long, value_name = "DURATION")]
    wait: Option<String>,

    #[command(flatten)]
    controller: ControllerArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Lists CronJobs with their state, the worst first.")]
pub(super) struct List {
    /// Refused, because a name is explain's.
    #[arg(value_name = "NAME", num_args = 0.., hide = true)]
    word: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// List those of all namespaces.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false")]
    all_namespaces: String,

    /// List them again whenever a state changes or a run starts, until Ctrl-C.
    #[arg(short, long, value_name = "BOOL", default_value = "false")]
    watch: String,

    /// Say what failed, was missed, never ran, was late, was skipped and took longest, from the last 18:00 to 08:00 or now.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    night: String,

    /// Say what runs in the next hour, minute by minute, and what will wait or be skipped and why.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    next_hour: String,

    /// The time zone of --night and --next-hour [default: that of --time-zone]
    #[arg(long, value_name = "ZONE")]
    times_in: Option<String>,

    #[command(flatten)]
    controller: ControllerArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Starts a Job of a CronJob at once, as kubectl create job --from=cronjob/NAME does.")]
pub(super) struct Trigger {
    /// The CronJob's name
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// The name of the Job [default: the CronJob's, with -manual- and five letters]
    #[arg(long, value_name = "STRING")]
    job_name: Option<String>,

    /// Set or replace a variable of the container; may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    env: Vec<String>,

    /// The container of --env, of ARGS and of --follow [default: as kubectl, the only or the first one]
    #[arg(short, long, value_name = "STRING")]
    container: Option<String>,

    /// client: send nothing; server: let the API server check the Job, and create nothing; none.
    #[arg(long, value_name = "STRING", default_value = "none")]
    dry_run: String,

    /// Wait until the Job has ended. The exit code is 1 if it did not succeed.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    wait: String,

    /// The same, and print the log of the container in each Pod of the Job.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    follow: String,

    /// The output format: table, or the Job as json or yaml.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// What replaces the arguments of the container
    #[arg(value_name = "ARGS", last = true, num_args = 0.., hide_default_value = true)]
    args: Vec<String>,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Suspends a CronJob: no further run starts. Running Jobs go on.")]
pub(super) struct Suspend {
    /// The CronJob's name
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Resumes a suspended CronJob, and says which missed run starts at once and how many are passed over."
)]
pub(super) struct Resume {
    /// The CronJob's name
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    #[command(flatten)]
    place: Where,

    #[command(flatten)]
    controller: ControllerArgs,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

/// What [`Since::parse`] reads.
pub(super) const PAST_TIMES: &str = "yesterday, today, a duration such as 6h, or a time such as 2026-03-28T01:00";

/// A time as a user names one in the past: the beginning of what `--since` covers, or one of the times of `backfill`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Since {
    /// A time, in the zone of each CronJob if it has none.
    At(Given),
    /// So long before now.
    Ago(TimeDelta),
    /// The start of the day so many days before today, in the zone of each CronJob.
    Day(u64),
}

impl Since {
    /// Reads the value of a flag.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "today" => Some(Self::Day(0)),
            "yesterday" => Some(Self::Day(1)),
            text => {
                let ago = || parse_duration(text).filter(|nanos| *nanos > 0).map(TimeDelta::nanoseconds);
                given_time(text).map(Self::At).or_else(|| ago().map(Self::Ago))
            }
        }
    }

    /// The time, at `now`, for a CronJob with this zone.
    pub fn time(self, now: DateTime<Utc>, zone: Zone) -> DateTime<Utc> {
        match self {
            Self::At(time) => time.in_zone(zone).unwrap_or(now),
            Self::Ago(ago) => now.checked_sub_signed(ago).unwrap_or(DateTime::<Utc>::MIN_UTC),
            Self::Day(days) => {
                let day = zone.at(now).date_naive().checked_sub_days(Days::new(days)).unwrap_or_default();
                zone.instant(day.and_time(NaiveTime::MIN)).unwrap_or(now)
            }
        }
    }

    /// That the time is after `now` in each of these zones, in which it may be meant.
    pub fn fault(self, mut zones: impl Iterator<Item = Zone>, now: DateTime<Utc>) -> Option<UsageError> {
        let first = zones.next()?;
        let is_ahead = |zone| self.time(now, zone) > now;
        let time = moment(first, self.time(now, first));
        let fault = || UsageError::one(format!("--since: {time} is in the future; give a time before now"));
        (is_ahead(first) && zones.all(is_ahead)).then(fault)
    }
}

/// The namespace, if it is given.
pub(super) fn namespace(place: &Where, faults: &mut Faults) -> Option<String> {
    if let Some(namespace) = place.namespace.as_deref().filter(|namespace| !dns_label_errors(namespace).is_empty()) {
        faults.add("namespace", namespace, "the name of a namespace");
    }
    place.namespace.clone()
}

/// The kind, and the faults of the place.
fn kind_of(place: &Where, faults: &mut Faults) -> ControllerKind {
    namespace(place, faults);
    faults.read("controller", &place.controller, KINDS, kind_named).unwrap_or_default()
}

fn one_name(words: &[String], faults: &mut Faults) -> String {
    let name = the_one(words, "NAME", "the name of one CronJob").and_then(|name| {
        let fault = format!("NAME: {name:?} is not allowed; use the name of one CronJob, without its kind");
        if subdomain_errors(name).is_empty() { Ok(name.to_owned()) } else { Err(fault) }
    });
    faults.record(name).unwrap_or_default()
}

pub(super) fn target(name: &[String], place: Where, faults: &mut Faults) -> Target {
    let name = one_name(name, faults);
    let controller_kind = kind_of(&place, faults);
    Target { controller_kind, namespace: place.namespace, name, kubeconfig: place.kubeconfig, context: place.context }
}

pub(super) fn scope(name: Option<String>, place: Where, all_namespaces: &str, faults: &mut Faults) -> Scope {
    let controller_kind = kind_of(&place, faults);
    let is_all = faults.boolean("all-namespaces", all_namespaces).unwrap_or_default();
    if is_all && let Some(namespace) = &place.namespace {
        faults.add("namespace", namespace, "either it or --all-namespaces");
    }
    let namespaces = match place.namespace {
        _ if is_all => Namespaces::All,
        Some(namespace) => Namespaces::One(namespace),
        None => Namespaces::OfContext,
    };
    Scope { controller_kind, namespaces, name, kubeconfig: place.kubeconfig, context: place.context }
}

pub(super) fn explain(raw: Explain) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let name = (!raw.name.is_empty()).then(|| one_name(&raw.name, &mut faults));
    let scope = scope(name.clone(), raw.place.clone(), &raw.all_namespaces, &mut faults);
    if name.is_some() && scope.namespaces == Namespaces::All {
        faults.add("all-namespaces", "true", "it without a NAME");
    }
    let flags = raw.controller.read(&mut faults);
    let since = raw.since.as_deref().and_then(|text| faults.read("since", text, PAST_TIMES, Since::parse));
    let wait = raw.wait.as_deref().and_then(|text| {
        if name.is_none() || raw.since.is_some() {
            faults.add("wait", text, "it with a NAME, and without --since");
        }
        faults.read("wait", text, "a duration above zero, such as 90s", |text| {
            let nanos = u64::try_from(parse_duration(text)?).ok().filter(|nanos| *nanos > 0);
            nanos.map(Duration::from_nanos)
        })
    });
    let format = raw.output.read(&mut faults);
    faults.into_result()?;
    let Where { namespace, kubeconfig, context, .. } = raw.place;
    let controller_kind = scope.controller_kind;
    Ok(cli(match (since, name) {
        (Some(since), _) => Command::Slots(scope, since, flags, format),
        (None, Some(name)) => {
            let target = Target { controller_kind, namespace, name, kubeconfig, context };
            Command::Explain(target, wait, flags, format)
        }
        (None, None) => Command::Findings(scope, flags, format),
    }))
}

pub(super) fn list(raw: List) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    if let [name, ..] = raw.word.as_slice() {
        return Err(UsageError::one(format!("unexpected argument {name:?}; explain {name} is about one CronJob")));
    }
    let scope = scope(None, raw.place, &raw.all_namespaces, &mut faults);
    let watch = faults.boolean("watch", &raw.watch).unwrap_or_default();
    let flags = raw.controller.read(&mut faults);
    let format = raw.output.read(&mut faults);
    let [night, next_hour] = [("night", &raw.night), ("next-hour", &raw.next_hour)]
        .map(|(flag, text)| faults.boolean(flag, text).unwrap_or_default());
    if usize::from(watch) + usize::from(night) + usize::from(next_hour) > 1 {
        let flag = if watch { "watch" } else { "night" };
        faults.add(flag, "true", "one of --watch, --night and --next-hour");
    }
    let times_in = raw.times_in.as_deref().and_then(|name| {
        if !night && !next_hour {
            faults.add("times-in", name, "it with --night or --next-hour");
        }
        faults.read("times-in", name, ZONES, zone_named)
    });
    faults.into_result()?;
    let times_in = times_in.unwrap_or(flags.zone);
    Ok(cli(match (watch, night, next_hour) {
        (true, ..) => Command::Watch(scope, flags, format),
        (_, true, _) => Command::Night(scope, flags, times_in, format),
        (_, _, true) => Command::NextHour(scope, flags, times_in, format),
        _ => Command::List(scope, flags, format),
    }))
}

pub(super) fn trigger(raw: Trigger) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let target = target(&raw.name, raw.place, &mut faults);
    if target.controller_kind.child.kind != "Job" {
        faults.add("controller", target.controller_kind.name, "cronjob or tutorial, whose runs are Jobs");
    }
    if let Some(name) = raw.job_name.as_deref().filter(|name| !subdomain_errors(name).is_empty()) {
        faults.add("job-name", name, "the name of a Job");
    }
    let pair = |text: &String| {
        // The API server says what else a name may not contain.
        let split = |text: &str| {
            let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
            Some((key.to_owned(), value.to_owned()))
        };
        faults.read("env", text, "KEY=VALUE, such as DAY=2026-03-28", split).unwrap_or_default()
    };
    let env = raw.env.iter().map(pair).collect();
    let dry_run = faults.read("dry-run", &raw.dry_run, "client, server or none", DryRun::parse).unwrap_or_default();
    let format = faults.read("output", &raw.output, FORMATS, Format::parse).unwrap_or_default();
    let [wait, follow] = [("wait", &raw.wait), ("follow", &raw.follow)].map(|(flag, text)| {
        let is_set = faults.boolean(flag, text).unwrap_or_default();
        if is_set && (dry_run != DryRun::None || format != Format::Table) {
            faults.add(flag, text, "it without --dry-run and --output");
        }
        is_set
    });
    faults.into_result()?;
    let until = if follow {
        Until::Logged
    } else if wait {
        Until::Ended
    } else {
        Until::Created
    };
    let changes = JobChanges { container: raw.container, env, args: raw.args };
    let request = trigger::Request { name: raw.job_name, changes, dry_run, format, until };
    Ok(cli(Command::Trigger(target, Box::new(request))))
}

pub(super) fn suspend(raw: Suspend) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let target = target(&raw.name, raw.place, &mut faults);
    faults.into_result()?;
    Ok(cli(Command::SetSuspended(target, true, ControllerFlags::default())))
}

pub(super) fn resume(raw: Resume) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let target = target(&raw.name, raw.place, &mut faults);
    let flags = raw.controller.read(&mut faults);
    faults.into_result()?;
    Ok(cli(Command::SetSuspended(target, false, flags)))
}

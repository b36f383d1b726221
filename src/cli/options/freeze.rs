//! The command lines of `freeze` and `thaw`.
//!
//! Guarantee: as in the module above. Which Namespaces are meant is always said. Pure.

use chrono::TimeDelta;
use clap::{Args, Parser};

use super::cluster::{ControllerArgs, OutputArgs, Where, scope};
use super::{cli, given_time};
use crate::api::policy::LONGEST_REASON;
use crate::cli::Command;
use crate::cli::cluster::{Namespaces, Scope};
use crate::cli::dispatch::Invocation;
use crate::cli::freeze::{Change, Request, Until};
use crate::options::UsageError;
use crate::options::go_syntax::parse_duration;
use crate::options::resolve::Faults;

/// What `--until` takes.
const UNTIL: &str = "a duration such as 12h, or a time such as 2026-12-28T06:00:00Z, 2026-12-28T06:00 or 2026-12-28";

/// Which Namespaces are meant.
#[derive(Debug, Clone, Args)]
struct Which {
    #[command(flatten)]
    place: Where,

    /// All Namespaces.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false")]
    all_namespaces: String,

    /// The Namespaces with these labels.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Freezes Namespaces: no run of their CronJobs starts until a time. Running Jobs go on.")]
pub(super) struct Freeze {
    #[command(flatten)]
    which: Which,

    /// The first time that may be a slot again: a duration from now such as 12h, 2026-12-28T06:00:00Z, or 2026-12-28 or
    /// 2026-12-28T06:00 in the zone of --time-zone
    #[arg(long, value_name = "TIME", verbatim_doc_comment)]
    until: Option<String>,

    /// Why, in a few words; explain, list, next, the page and an Event show it
    #[arg(long, value_name = "STRING")]
    reason: Option<String>,

    /// Say which runs would be held, and write nothing.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    dry_run: String,

    #[command(flatten)]
    controller: ControllerArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Thaws Namespaces: their CronJobs run again, and no run that was due before starts.")]
pub(super) struct Thaw {
    #[command(flatten)]
    which: Which,

    /// Say what would be done, and write nothing.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    dry_run: String,

    #[command(flatten)]
    controller: ControllerArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// The Namespaces that are meant, of `--namespace`, `--selector` and `--all-namespaces` exactly one.
fn meant(which: Which, faults: &mut Faults) -> (Scope, Option<String>) {
    let Which { place, all_namespaces, selector } = which;
    let selector = selector.filter(|selector| !selector.is_empty());
    let scope = scope(None, place, &all_namespaces, faults);
    match (&scope.namespaces, &selector) {
        (Namespaces::OfContext, None) => {
            let text = "which Namespaces is missing; give --namespace, --selector or --all-namespaces";
            faults.record::<()>(Err(text.to_owned()));
        }
        (Namespaces::One(_) | Namespaces::All, Some(selector)) => {
            faults.add("selector", selector, "either it or --namespace or --all-namespaces");
        }
        _ => {}
    }
    // All CronJobs are read to find those of the Namespaces that a selector selects.
    let namespaces = if selector.is_some() { Namespaces::All } else { scope.namespaces };
    (Scope { namespaces, ..scope }, selector)
}

fn until(text: &str) -> Option<Until> {
    let duration = || parse_duration(text).filter(|nanos| *nanos > 0).map(TimeDelta::nanoseconds).map(Until::In);
    given_time(text).map(Until::At).or_else(duration)
}

pub(super) fn freeze(raw: Freeze) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let (scope, selector) = meant(raw.which, &mut faults);
    let until = match &raw.until {
        Some(text) => faults.read("until", text, UNTIL, until),
        None => faults.record(Err(format!("--until is missing; give {UNTIL}"))),
    };
    if let Some(reason) = raw.reason.as_deref().filter(|reason| reason.len() > LONGEST_REASON) {
        faults.add("reason", reason, &format!("{LONGEST_REASON} bytes at most"));
    }
    let dry_run = faults.boolean("dry-run", &raw.dry_run).unwrap_or_default();
    let flags = raw.controller.read(&mut faults);
    let format = raw.output.read(&mut faults);
    faults.into_result()?;
    let until = until.unwrap_or(Until::In(TimeDelta::zero()));
    let change = Change::Freeze { until, reason: raw.reason.filter(|reason| !reason.is_empty()) };
    Ok(cli(Command::SetFrozen(scope, Request { change, selector, dry_run }, flags, format)))
}

pub(super) fn thaw(raw: Thaw) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let (scope, selector) = meant(raw.which, &mut faults);
    let dry_run = faults.boolean("dry-run", &raw.dry_run).unwrap_or_default();
    let flags = raw.controller.read(&mut faults);
    let format = raw.output.read(&mut faults);
    faults.into_result()?;
    let request = Request { change: Change::Thaw, selector, dry_run };
    Ok(cli(Command::SetFrozen(scope, request, flags, format)))
}

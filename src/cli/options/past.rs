//! The command lines of `backfill` and `migrate`.
//!
//! Guarantee: as in the module above. Pure.

use apimachinery::names::subdomain_errors;
use clap::{ArgAction, Parser};

use super::cluster::{ControllerArgs, OutputArgs, PAST_TIMES, Since, Where, scope, target};
use super::{ZONES, cli, zone_named};
use crate::api::ControllerKind;
use crate::cli::Command;
use crate::cli::backfill;
use crate::cli::backfill::plan::Question;
use crate::cli::cluster::{ControllerFlags, Namespaces};
use crate::cli::dispatch::Invocation;
use crate::cli::migrate::{Account, Direction, Request, Selection, skip_missed};
use crate::cli::next::cron_jobs::Given;
use crate::cli::output::Format;
use crate::options::UsageError;
use crate::options::resolve::Faults;

#[derive(Debug, Clone, Parser)]
#[command(about = "Starts the Jobs of past slots. Killed, it continues where it stopped when it is called again.")]
pub(super) struct Backfill {
    /// The CronJob's name
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// The first time that may be a slot: yesterday, today, a duration such as 6h (so long before now), 2026-03-28T01:00:00Z, or
    /// 2026-03-28 or 2026-03-28T01:00 in the zone of the CronJob
    #[arg(long, value_name = "TIME", verbatim_doc_comment)]
    from: Option<String>,

    /// The last time that may be a slot
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// The most unfinished Jobs at a time.
    #[arg(long, value_name = "INT", default_value = "1")]
    max_active: String,

    /// Start slots again whose Job failed, too: failed. Their Jobs are deleted first
    #[arg(long, value_name = "STRING")]
    again: Option<String>,

    /// Start slots that may have run, too: their Jobs, if there were any, no longer exist.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    rerun: String,

    /// Print the plan only.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    dry_run: String,

    #[command(flatten)]
    controller: ControllerArgs,

    /// The output format: table, or json (one object a line).
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Says what changes between the in-tree controller and this one (check), and hands CronJobs to this one and back \
             (handover, takeback); lets no slot count that is due by now (skip-missed)."
)]
pub(super) struct Migrate {
    /// check, handover, takeback or skip-missed
    #[arg(value_name = "COMMAND", index = 1)]
    what: Option<String>,

    /// The names of the CronJobs to change; without any, give one of --namespace, -A and --selector
    #[arg(value_name = "NAME", num_args = 0.., index = 2, hide_default_value = true)]
    names: Vec<String>,

    #[command(flatten)]
    place: Where,

    /// Look in all namespaces.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false")]
    all_namespaces: String,

    /// Change those with these labels.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Say what would be changed, and write nothing.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    dry_run: String,

    /// The ServiceAccount of this controller, whose rights and priority levels are checked.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = Account::DEFAULT)]
    service_account: String,

    /// The time zone of kube-controller-manager, for CronJobs without spec.timeZone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The --spread-seed of the controller.
    #[arg(long, value_name = "STRING", default_value = "")]
    spread_seed: String,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// The commands of `migrate`.
pub(in crate::cli) const MIGRATE: [&str; 4] = ["check", "handover", "takeback", "skip-missed"];

/// The most unfinished Jobs of a backfill.
const MOST_ACTIVE: i64 = 100;

pub(super) fn backfill(raw: Backfill) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let target = target(&raw.name, raw.place, &mut faults);
    if target.controller_kind == ControllerKind::ApiExample {
        faults.add("controller", target.controller_kind.name, "cronjob or tutorial, whose runs are Jobs");
    }
    let ControllerFlags { zone, seed } = raw.controller.read(&mut faults);
    let mut time = |flag: &str, value: Option<&String>| {
        let none = Since::Day(0);
        if let Some(text) = value {
            faults.read(flag, text, PAST_TIMES, Since::parse).unwrap_or(none)
        } else {
            faults.record::<()>(Err(format!("--{flag} is missing; give {PAST_TIMES}")));
            none
        }
    };
    let (from, to) = (time("from", raw.from.as_ref()), time("to", raw.to.as_ref()));
    let max_active = faults.whole("max-active", &raw.max_active, 1..=MOST_ACTIVE).unwrap_or(1);
    let again = raw
        .again
        .as_deref()
        .map(|text| faults.read("again", text, "failed", |text| (text == "failed").then_some(())).is_some());
    let rerun = faults.boolean("rerun", &raw.rerun).unwrap_or_default();
    let dry_run = faults.boolean("dry-run", &raw.dry_run).unwrap_or_default();
    let only = "table or json";
    let format = faults.read("output", &raw.output, only, Format::parse).unwrap_or_default();
    if format == Format::Yaml {
        faults.add("output", "yaml", only);
    }
    faults.into_result()?;
    // A local time and another are compared where the zone is known, and times before now where that is.
    let is_later = match (from, to) {
        (Since::At(Given::Instant(from)), Since::At(Given::Instant(to))) => from > to,
        (Since::At(Given::Local(from)), Since::At(Given::Local(to))) => from > to,
        _ => false,
    };
    if is_later {
        return Err(UsageError::one("--from is later than --to".to_owned()));
    }
    let question = Question { from, to, zone, seed, max_active, again: again.unwrap_or_default(), rerun };
    Ok(cli(Command::Backfill(target, Box::new(backfill::Request { question, dry_run, format }))))
}

/// Which of [`MIGRATE`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Check,
    Move(Direction),
    SkipMissed,
}

impl What {
    fn read(word: Option<&str>) -> Result<Self, String> {
        let commands = MIGRATE.join(", ");
        match word {
            Some("check") => Ok(Self::Check),
            Some("handover") => Ok(Self::Move(Direction::Handover)),
            Some("takeback") => Ok(Self::Move(Direction::Takeback)),
            Some("skip-missed") => Ok(Self::SkipMissed),
            Some(word) => Err(format!("migrate {word} is no command; its commands are {commands}")),
            None => Err(format!("what to do is missing; give one of {commands}")),
        }
    }
}

pub(super) fn migrate(raw: Migrate) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let what = faults.record(What::read(raw.what.as_deref()));
    let dry_run = faults.boolean("dry-run", &raw.dry_run).unwrap_or_default();
    let which = Selection { names: raw.names, selector: raw.selector.unwrap_or_default() };
    let is_selected = which != Selection::default();
    if what == Some(What::Check) && (dry_run || is_selected) {
        faults.record::<()>(Err("NAME, --selector and --dry-run are not for check".to_owned()));
    }
    for name in which.names.iter().filter(|name| !subdomain_errors(name).is_empty()) {
        faults.record::<()>(Err(format!("NAME: {name:?} is not the name of a CronJob")));
    }
    let scope = scope(None, raw.place, &raw.all_namespaces, &mut faults);
    let is_placed = scope.namespaces != Namespaces::OfContext;
    if what.is_some_and(|what| what != What::Check) && !is_selected && !is_placed {
        let which = "which CronJobs is missing; give NAMEs, --selector, --namespace or --all-namespaces";
        faults.record::<()>(Err(which.to_owned()));
    }
    if scope.namespaces == Namespaces::All && !which.names.is_empty() {
        faults.add("all-namespaces", "true", "it without a NAME");
    }
    let kind = scope.controller_kind;
    match what {
        Some(What::SkipMissed) if kind.counted_from.is_none() => {
            faults.add("controller", kind.name, "cronjob or tutorial, which have policies");
        }
        Some(What::Check | What::Move(_)) if !kind.is_in_tree => {
            faults.add("controller", kind.name, "cronjob, which has an in-tree controller");
        }
        _ => {}
    }
    let zone = faults.read("time-zone", &raw.time_zone, ZONES, zone_named).unwrap_or_default();
    let flags = ControllerFlags { zone, seed: raw.spread_seed.as_str().into() };
    let account =
        faults.read("service-account", &raw.service_account, "a namespace and a name, as in ns/name", Account::parse);
    let format = raw.output.read(&mut faults);
    faults.into_result()?;
    Ok(cli(match what {
        Some(What::Move(direction)) => Command::Handover(scope, Request { direction, which, dry_run }, flags, format),
        Some(What::SkipMissed) => Command::SkipMissed(scope, skip_missed::Request { which, dry_run }, flags, format),
        _ => Command::MigrateCheck(scope, account.unwrap_or_default(), flags, format),
    }))
}

//! The command line of `shadow`.
//!
//! Guarantee: as in the module above. Pure.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, ValueHint};

use super::cluster::{Where, scope};
use super::{ZONES, zone_named};
use crate::cli::cluster::{ControllerFlags, Namespaces};
use crate::cli::dispatch::Invocation;
use crate::cli::output::Format;
use crate::cli::shadow::ShadowConfig;
use crate::cli::shadow::what_if::WhatIf;
use crate::options::UsageError;
use crate::options::go_syntax::parse_duration;
use crate::options::resolve::{Faults, plain_address};

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Watches the controller in charge, and says what this one would have done differently. Writes nothing."
)]
pub(super) struct Shadow {
    /// Refused, because a name is explain's.
    #[arg(value_name = "NAME", num_args = 0.., hide = true)]
    word: Vec<String>,

    /// How long to watch, such as 1h. If slots have no Job then, the end comes when each has one, three minutes later at most
    /// [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", verbatim_doc_comment)]
    lasts: Option<String>,

    /// The namespace [default: all]
    #[arg(short, long, value_name = "STRING")]
    namespace: Option<String>,

    /// Watch all namespaces, as without --namespace.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false", hide = true)]
    all_namespaces: String,

    /// The kubeconfig file [default: as kubectl, $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context [default: the current one]
    #[arg(long, value_name = "STRING")]
    context: Option<String>,

    /// The time zone of the controllers, for CronJobs without spec.timeZone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The --spread-seed of this controller.
    #[arg(long, value_name = "STRING", default_value = "")]
    spread_seed: String,

    /// Say what policies would have changed, if every CronJob had them: spread=10m, max-concurrent=3, or both with a comma
    #[arg(long, value_name = "POLICIES")]
    what_if: Option<String>,

    /// The address on which metrics and health checks are served, such as :8080 or 127.0.0.1:8080. 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    metrics_bind_address: String,

    /// Write the report so far to this file as JSON, every ten seconds and at the end; `ui --shadow FILE` shows it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// The output format: table, or json (the last line is one object).
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

pub(super) fn shadow(raw: Shadow) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    if let [name, ..] = raw.word.as_slice() {
        return Err(UsageError::one(format!(
            "unexpected argument {name:?}; shadow watches all CronJobs of a namespace"
        )));
    }
    let place = Where::of_cron_jobs(raw.namespace, raw.kubeconfig, raw.context);
    let mut scope = scope(None, place, &raw.all_namespaces, &mut faults);
    if scope.namespaces == Namespaces::OfContext {
        scope.namespaces = Namespaces::All;
    }
    let lasts = raw.lasts.as_deref().and_then(|text| {
        faults.read("for", text, "a duration above zero, such as 1h", |text| {
            let nanos = u64::try_from(parse_duration(text)?).ok().filter(|nanos| *nanos > 0);
            nanos.map(Duration::from_nanos)
        })
    });
    let zone = faults.read("time-zone", &raw.time_zone, ZONES, zone_named).unwrap_or_default();
    let flags = ControllerFlags { zone, seed: raw.spread_seed.as_str().into() };
    let metrics = plain_address("metrics-bind-address", &raw.metrics_bind_address, &mut faults);
    let what_if = raw.what_if.as_deref().and_then(|text| {
        let what = "spread= with a duration from 1s to 24h, max-concurrent= with a number from 1 to 1000, or both with a comma";
        faults.read("what-if", text, what, WhatIf::parse)
    });
    let only = "table or json";
    let format = faults.read("output", &raw.output, only, Format::parse).unwrap_or_default();
    if format == Format::Yaml {
        faults.add("output", "yaml", only);
    }
    faults.into_result()?;
    Ok(Invocation::Shadow(Box::new(ShadowConfig {
        scope,
        flags,
        lasts,
        format,
        metrics,
        what_if: what_if.unwrap_or_default(),
        report: raw.report,
    })))
}

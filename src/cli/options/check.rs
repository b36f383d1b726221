//! The command line of `check`.
//!
//! Guarantee: as in the module above. Pure.

use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueHint};
use schedule::parse_duration;

use super::{ZONES, cli, zone_named};
use crate::api::policy::Spread;
use crate::cli::Command;
use crate::cli::check::rendered::{Rendered, UNRESTRICTED, WITH_HELM};
use crate::cli::check::{CheckFormat, Inputs, Rules, Severity};
use crate::cli::dispatch::Invocation;
use crate::cli::output::Format;
use crate::options::UsageError;
use crate::options::go_syntax::parse_int;
use crate::options::resolve::Faults;

const LOAD_RESTRICTORS: &str = "LoadRestrictionsNone or LoadRestrictionsRootOnly";

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Validates manifests of CronJobs, and warns of schedules that never fire, clock changes and busy minutes."
)]
pub(super) struct Check {
    /// A manifest (YAML or JSON), a directory of them, or - for stdin; may be repeated and takes commas
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", action = ArgAction::Append, value_hint = ValueHint::AnyPath)]
    filename: Vec<String>,

    /// Refused, with the advice to use -f.
    #[arg(value_name = "FILE", num_args = 0.., hide = true)]
    word: Vec<String>,

    /// Check what kubectl kustomize makes of this directory; may be repeated
    #[arg(short = 'k', long, value_name = "DIR", action = ArgAction::Append, value_hint = ValueHint::DirPath)]
    kustomize: Vec<String>,

    /// Which files kustomizations may name: LoadRestrictionsNone, or only those in their own directory
    #[arg(long, value_name = "NAME", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: String,

    /// Let kustomizations have charts, which helm renders.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    enable_helm: String,

    /// Check what helm template makes of this chart; may be repeated
    #[arg(long, value_name = "CHART", action = ArgAction::Append, value_hint = ValueHint::AnyPath)]
    helm: Vec<String>,

    /// Judge the manifests by the ValidatingAdmissionPolicies in this file or directory; may be repeated and takes commas
    #[arg(long, value_name = "FILE|DIR", action = ArgAction::Append, value_hint = ValueHint::AnyPath)]
    policy: Vec<String>,

    /// Read the directories below that of -f too.
    #[arg(short = 'R', long, value_name = "BOOL", default_value = "false")]
    recursive: String,

    /// Warn if more CronJobs than this start in one minute.
    #[arg(long, value_name = "INT", default_value = "20")]
    max_per_minute: String,

    /// The lowest severity that makes the exit code 1: error or warning.
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: String,

    /// The controller's time zone, for CronJobs without spec.timeZone and for the histogram.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The --spread-seed of the controller.
    #[arg(long, value_name = "STRING", default_value = "")]
    spread_seed: String,

    /// Show the load as if every CronJob had this policy, beside the load without any spread: spread=30m, with a duration from
    /// 1s to 24h
    #[arg(long, value_name = "POLICY", verbatim_doc_comment)]
    what_if: Option<String>,

    /// What to show of the load: day (the runs in each hour of the day) or none.
    #[arg(long, value_name = "STRING", default_value = "day")]
    histogram: String,

    /// The output format: table, json, yaml, sarif, or github (annotations of a workflow).
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub(super) help: bool,
}

/// Reads the flags of `check`.
pub(super) fn check(raw: &Check) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let files: Vec<&str> = raw.filename.iter().flat_map(|list| list.split(',')).collect();
    if let [first, ..] = raw.word.as_slice() {
        return Err(UsageError::one(format!(
            "unexpected argument {first:?}; files follow -f: check -f {}",
            raw.word.join(",")
        )));
    }
    let kustomizations = kustomizations(raw, &mut faults);
    let rendered: Vec<Rendered> =
        kustomizations.into_iter().chain(raw.helm.iter().cloned().map(Rendered::Chart)).collect();
    for (flag, values, what) in [
        ("kustomize", &raw.kustomize, "the path of a directory"),
        ("helm", &raw.helm, "the path or the name of a chart"),
    ] {
        // The program that renders it would take it for a flag.
        for value in values.iter().filter(|value| value.is_empty() || value.starts_with('-')) {
            faults.add(flag, value, what);
        }
    }
    if files.is_empty() && rendered.is_empty() {
        let what =
            "-f is missing; give the path of a file or of a directory, or - for stdin, as in check -f cronjobs.yaml";
        return Err(UsageError::one(what.to_owned()));
    }
    if files.contains(&"") {
        faults.add("filename", "", "the path of a file or of a directory, or - for stdin");
    }
    let policies: Vec<&str> = raw.policy.iter().flat_map(|list| list.split(',')).collect();
    if policies.contains(&"") {
        faults.add("policy", "", "the path of a file or of a directory with ValidatingAdmissionPolicies");
    }
    let max_per_minute = faults.read("max-per-minute", &raw.max_per_minute, "a whole number above 0", |text| {
        parse_int(text).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
    });
    let fail_on = faults.read("fail-on", &raw.fail_on, "error or warning", Severity::parse);
    let zone = faults.read("time-zone", &raw.time_zone, ZONES, zone_named);
    let recursive = faults.boolean("recursive", &raw.recursive);
    let histogram = faults.read("histogram", &raw.histogram, "day or none", |text| match text {
        "day" => Some(true),
        "none" => Some(false),
        _ => None,
    });
    let what_if_spread = raw.what_if.as_deref().and_then(|text| {
        let spread = |text: &str| Spread::new(parse_duration(text.strip_prefix("spread=")?).ok()?).ok();
        faults.read("what-if", text, "spread= with a duration from 1s to 24h, such as spread=30m", spread)
    });
    let format = faults.read("output", &raw.output, "table, json, yaml, sarif or github", CheckFormat::parse);
    faults.into_result()?;
    let rules = Rules {
        zone: zone.unwrap_or_default(),
        max_per_minute: max_per_minute.unwrap_or_default(),
        fail_on: fail_on.unwrap_or_default(),
        histogram: histogram.unwrap_or(true),
        what_if_spread,
        seed: raw.spread_seed.as_str().into(),
    };
    let files = files.into_iter().map(PathBuf::from).collect();
    let format = format.unwrap_or(CheckFormat::Report(Format::Table));
    let policies = policies.into_iter().map(PathBuf::from).collect();
    let inputs = Inputs { files, recursive: recursive.unwrap_or_default(), rendered, policies };
    Ok(cli(Command::Check(inputs, rules, format)))
}

/// The directories of `-k`, with what kubectl may do for them.
fn kustomizations(raw: &Check, faults: &mut Faults) -> Vec<Rendered> {
    let is_unrestricted = faults.read("load-restrictor", &raw.load_restrictor, LOAD_RESTRICTORS, |text| match text {
        "LoadRestrictionsNone" => Some(true),
        "LoadRestrictionsRootOnly" => Some(false),
        _ => None,
    });
    let has_helm = faults.boolean("enable-helm", &raw.enable_helm);
    let flags = [(is_unrestricted, UNRESTRICTED), (has_helm, WITH_HELM)];
    let flags: Vec<&str> =
        flags.into_iter().filter(|(is_set, _)| *is_set == Some(true)).map(|(_, flag)| flag).collect();
    let of = |directory: &String| Rendered::Kustomization { directory: directory.clone(), flags: flags.clone() };
    raw.kustomize.iter().map(of).collect()
}

//! The command line of `ui`.
//!
//! Guarantee: as in the module above. Pure.

use std::path::PathBuf;
use std::sync::Arc;

use apimachinery::names::dns_label_errors;
use clap::{ArgAction, Parser, ValueHint};
use http::Uri;
use schedule::Zone;

use super::cluster::ControllerArgs;
use crate::api::ControllerKind;
use crate::cli::cluster::{ControllerFlags, Namespaces, Scope};
use crate::cli::dispatch::Invocation;
use crate::options::UsageError;
use crate::options::go_syntax::parse_int;
use crate::options::resolve::Faults;

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Shows CronJobs on a page in a browser: what is due, late, blocked or failing, the load of each minute, and past runs."
)]
pub(super) struct Ui {
    /// Refused, because a name is explain's.
    #[arg(value_name = "NAME", num_args = 0.., hide = true)]
    word: Vec<String>,

    /// Show the CronJobs in a manifest (YAML or JSON), a directory of them, or - for stdin, in place of a cluster's; may be
    /// repeated and takes commas
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", action = ArgAction::Append,
          value_hint = ValueHint::AnyPath, verbatim_doc_comment)]
    filename: Vec<String>,

    /// Read the directories below that of -f too.
    #[arg(short = 'R', long, value_name = "BOOL", default_value = "false")]
    recursive: String,

    /// The namespace; with -f, that of objects without one [default: that of the context, else default]
    #[arg(short, long, value_name = "STRING")]
    namespace: Option<String>,

    /// Show the CronJobs of all namespaces.
    #[arg(short = 'A', long, value_name = "BOOL", default_value = "false")]
    all_namespaces: String,

    /// The kubeconfig file [default: as kubectl, $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context [default: the current one]
    #[arg(long, value_name = "STRING")]
    context: Option<String>,

    /// The port of the page on 127.0.0.1. 0 takes a free one.
    #[arg(long, value_name = "INT", default_value = "0")]
    port: String,

    /// Open the page in a browser, by a file that only its owner can read.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    open: String,

    #[command(flatten)]
    controller: ControllerArgs,

    /// Show the runs of the last 30 days from this Prometheus, which scrapes the controller with --cronjob-metrics. No credentials
    /// are sent.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    prometheus: Option<String>,

    /// Show the report of a shadow from this file, which `shadow --report` writes or `shadow -o json` printed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    shadow: Option<PathBuf>,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub help: bool,
}

/// The parsed command line of `ui`.
#[derive(Clone, Debug, PartialEq)]
pub struct UiConfig {
    /// Where the CronJobs come from.
    pub origin: Origin,
    /// The port on loopback; 0 for a free one.
    pub port: u16,
    /// Whether to open a browser.
    pub open: bool,
    /// The controller's zone, in which a schedule without one runs.
    pub zone: Zone,
    /// The controller's `--spread-seed`.
    pub seed: Arc<str>,
    /// The address of a Prometheus.
    pub prometheus: Option<Uri>,
    /// The file with the report of a shadow.
    pub shadow: Option<PathBuf>,
}

/// Where CronJobs come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A cluster.
    Cluster(Scope),
    /// Manifests.
    Files {
        /// Files and directories.
        paths: Vec<PathBuf>,
        /// Whether to read the directories below.
        recursive: bool,
        /// The namespace of objects without one.
        namespace: String,
    },
}

pub(super) fn ui(raw: Ui) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    if let [name, ..] = raw.word.as_slice() {
        return Err(UsageError::one(format!(
            "unexpected argument {name:?}; the page shows all CronJobs of a namespace"
        )));
    }
    if let Some(namespace) = raw.namespace.as_deref().filter(|namespace| !dns_label_errors(namespace).is_empty()) {
        faults.add("namespace", namespace, "the name of a namespace");
    }
    let is_all = faults.boolean("all-namespaces", &raw.all_namespaces).unwrap_or_default();
    if is_all && let Some(namespace) = &raw.namespace {
        faults.add("namespace", namespace, "either it or --all-namespaces");
    }
    let recursive = faults.boolean("recursive", &raw.recursive).unwrap_or_default();
    let port = faults.read("port", &raw.port, "a port from 1 to 65535, or 0 for a free one", |text| {
        u16::try_from(parse_int(text)?).ok()
    });
    let open = faults.boolean("open", &raw.open).unwrap_or_default();
    let ControllerFlags { zone, seed } = raw.controller.read(&mut faults);
    let files: Vec<&str> = raw.filename.iter().flat_map(|list| list.split(',')).collect();
    if files.contains(&"") {
        faults.add("filename", "", "the path of a file or of a directory, or - for stdin");
    }
    let prometheus = raw.prometheus.as_deref().and_then(|text| {
        faults.read("prometheus", text, "the address of a Prometheus, as in http://127.0.0.1:9090", address)
    });
    faults.into_result()?;
    let origin = if files.is_empty() {
        let namespaces = match raw.namespace {
            _ if is_all => Namespaces::All,
            Some(namespace) => Namespaces::One(namespace),
            None => Namespaces::OfContext,
        };
        let (controller_kind, kubeconfig, context) = (ControllerKind::CronJob, raw.kubeconfig, raw.context);
        Origin::Cluster(Scope { controller_kind, namespaces, name: None, kubeconfig, context })
    } else {
        let namespace = raw.namespace.unwrap_or_else(|| "default".to_owned());
        Origin::Files { paths: files.into_iter().map(PathBuf::from).collect(), recursive, namespace }
    };
    let (port, shadow) = (port.unwrap_or_default(), raw.shadow);
    Ok(Invocation::Ui(Box::new(UiConfig { origin, port, open, zone, seed, prometheus, shadow })))
}

/// An address without credentials, which other processes would see, and without a query.
fn address(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok().filter(|_| !text.contains('#'))?;
    let is_plain = uri.query().is_none() && !uri.authority()?.as_str().contains('@');
    (is_plain && matches!(uri.scheme_str(), Some("http" | "https"))).then_some(uri)
}

//! The texts of the flags on the command line.
//!
//! Guarantees: every value stays the text that the user wrote; `resolve` gives it a meaning. The command line is split
//! as pflag splits it: `--flag=value`, `--flag value`, `--bool`, `--bool=false`, `-v=4`, `-v 4`, `-v4`. The last of a
//! repeated flag wins. An underscore in a flag's name counts as a dash. A flag that needs a value takes the next
//! argument, whatever its form. One dash before a long name is refused. What follows `--` are no flags.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

use super::secure::SecureFlags;
use super::{PROGRAM, SelfSignedWebhook, UsageError};

const GENERIC: &str = "Generic flags";
const CONTROLLER: &str = "Cronjob-controller flags";
pub(super) const SECURE: &str = "Secure serving flags";
pub(super) const AUTHENTICATION: &str = "Authentication flags";
pub(super) const AUTHORIZATION: &str = "Authorization flags";
const PLAIN: &str = "Plain serving flags";
pub(super) const WEBHOOK: &str = "Webhook flags";
const LOGS: &str = "Logs flags";
const GLOBAL: &str = "Global flags";
const MISC: &str = "Misc flags";

const USAGE: &str =
    "cronjob-controller [flags]           the controller; outside a Pod it needs --kubeconfig or --master
       cronjob-controller dev [flags]       a cluster in this process, to try it out
       cronjob-controller list              the CronJobs, and which of them are not fine
       cronjob-controller explain NAME      why a CronJob did or did not run
       cronjob-controller next SCHEDULE     the next runs of a schedule, or of a CronJob, by NAME
       cronjob-controller trigger NAME      start a Job now
       cronjob-controller suspend NAME      start no Jobs until resume NAME
       cronjob-controller freeze [flags]    start no Jobs in Namespaces until a time, or thaw
       cronjob-controller backfill NAME     start the Jobs of slots in the past
       cronjob-controller check -f FILE     what is wrong with manifests of CronJobs
       cronjob-controller migrate COMMAND   check what changes beside the in-tree controller; hand CronJobs over and back
       cronjob-controller shadow [flags]    what this controller would have done beside the in-tree one
       cronjob-controller ui [flags]        a page in a browser: state, load and history of CronJobs
       cronjob-controller crd [flags]       the CustomResourceDefinitions, as YAML
       cronjob-controller completion SHELL  completions for bash, zsh, fish, powershell or elvish
       cronjob-controller man               the manual's page";

/// The text of every flag. A boolean is a text too, so that Go's spellings are read in one place.
#[derive(Debug, Clone, Parser)]
#[command(
    name = PROGRAM,
    about = "Creates Jobs on the schedules of CronJobs, in place of the CronJob controller in kube-controller-manager.",
    override_usage = USAGE
)]
pub(super) struct RawFlags {
    /// Requests per second to the API server; -1 is no limit: the server's API Priority and Fairness shares its
    /// capacity out, and its Retry-After is obeyed. Watches and leader election are never held back
    #[arg(long, value_name = "FLOAT", default_value = "-1", help_heading = GENERIC, verbatim_doc_comment)]
    pub kube_api_qps: String,

    /// Requests that may be sent at once before --kube-api-qps holds them back; -1 is 30. No effect while that flag is -1.
    #[arg(long, value_name = "INT", default_value = "-1", help_heading = GENERIC)]
    pub kube_api_burst: String,

    /// Become the leader before doing any work. Needed when more than one replica runs.
    #[arg(long, value_name = "BOOL", default_value = "true", help_heading = GENERIC)]
    pub leader_elect: String,

    /// How long the other replicas wait after the last renewal that they saw before they try to take the lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", help_heading = GENERIC)]
    pub leader_elect_lease_duration: String,

    /// How long the leader tries to renew the lease before it gives up and exits. Less than the lease duration.
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = GENERIC)]
    pub leader_elect_renew_deadline: String,

    /// How long to wait between two attempts to take or to renew the lease.
    #[arg(long, value_name = "DURATION", default_value = "2s", help_heading = GENERIC)]
    pub leader_elect_retry_period: String,

    /// The kind of object that is the lock. Only "leases" is supported.
    #[arg(long, value_name = "STRING", default_value = "leases", help_heading = GENERIC)]
    pub leader_elect_resource_lock: String,

    /// The name of the Lease.
    #[arg(long, value_name = "STRING", default_value = "cronjob-controller", help_heading = GENERIC)]
    pub leader_elect_resource_name: String,

    /// The namespace of the Lease [default: the Pod's own namespace, else kube-system]
    #[arg(long, value_name = "STRING", help_heading = GENERIC)]
    pub leader_elect_resource_namespace: Option<String>,

    /// How many CronJobs are synced at the same time.
    #[arg(long, alias = "concurrent-cron-job-syncs", value_name = "INT",
          default_value = super::DEFAULT_CONCURRENT_CRONJOB_SYNCS, help_heading = CONTROLLER)]
    pub concurrent_cronjob_syncs: String,

    /// The controllers to run: cronjob (batch/v1 CronJobs), tutorial (the CronJobs of the kubebuilder book, and their
    /// webhooks), apiexample; "-name" turns one off and "*" all others on. May be repeated and takes commas
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, default_value = "cronjob", help_heading = CONTROLLER,
          verbatim_doc_comment)]
    pub controllers: Vec<String>,

    /// Which batch/v1 CronJobs are worked on: all, or, beside the controller in kube-controller-manager, those that are
    /// annotated with cronjob-controller.dev/managed: "true" and suspended for that one
    #[arg(long, value_name = "STRING", default_value = "all", help_heading = CONTROLLER, verbatim_doc_comment)]
    pub manage: String,

    /// Whether the annotations below cronjob-controller.dev that change when a CronJob runs have an effect. Without it,
    /// runs that they left out may start. The same for all replicas
    #[arg(long, value_name = "BOOL", default_value = "true", help_heading = CONTROLLER, verbatim_doc_comment)]
    pub policies: String,

    /// What the delays of the annotation cronjob-controller.dev/spread depend on beside namespace and name. Clusters
    /// with different texts spread the same CronJobs differently. The same for all replicas
    #[arg(long, value_name = "STRING", default_value = "", help_heading = CONTROLLER, verbatim_doc_comment)]
    pub spread_seed: String,

    /// What is written to annotations of each batch/v1 CronJob: next-run (when its next Job is due), last-failure (when one
    /// last failed). May be repeated and takes commas [default: nothing]
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, help_heading = CONTROLLER, verbatim_doc_comment)]
    pub publish: Vec<String>,

    /// The namespaces to work in; may be repeated and takes commas [default: all namespaces]
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, help_heading = CONTROLLER)]
    pub namespace: Vec<String>,

    /// Show metrics of each CronJob, of so many at most; 5000 if no number is given. Each has up to 30 series. 0 turns them off.
    #[arg(long, value_name = "INT", default_value = "0", help_heading = CONTROLLER,
          num_args = 0..=1, require_equals = true, default_missing_value = "5000")]
    pub cronjob_metrics: String,

    /// The IP address on which --secure-port and --webhook-port listen. 0.0.0.0, :: or nothing is every interface, with IPv4
    /// and IPv6.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", help_heading = SECURE)]
    pub bind_address: String,

    /// The port for HTTPS: health checks, metrics and configuration, with authentication and authorization by the API
    /// server. 0 turns it off.
    #[arg(long, value_name = "INT", default_value = "10257", help_heading = SECURE)]
    pub secure_port: String,

    /// The file with the serving certificate (PEM), the CA's after it. Without it a self-signed one is made.
    #[arg(long, value_name = "FILE", default_value = "", help_heading = SECURE)]
    pub tls_cert_file: String,

    /// The file with the private key (PEM) of --tls-cert-file.
    #[arg(long, value_name = "FILE", default_value = "", help_heading = SECURE)]
    pub tls_private_key_file: String,

    #[command(flatten)]
    pub secure: SecureFlags,

    /// The address for metrics over plain HTTP, such as :8080 or 127.0.0.1:8080, open to every client. "0" turns it off.
    #[arg(long, value_name = "ADDRESS", default_value = "0", help_heading = PLAIN)]
    pub metrics_bind_address: String,

    /// The address for health checks over plain HTTP, such as :8081 or 127.0.0.1:8081. "0" turns it off.
    #[arg(long, value_name = "ADDRESS", default_value = "0", help_heading = PLAIN)]
    pub health_probe_bind_address: String,

    /// The port for the admission webhooks of the tutorial's CronJobs. 0 turns it off.
    #[arg(long, value_name = "INT", default_value = "9443", help_heading = WEBHOOK)]
    pub webhook_port: String,

    /// The directory with the webhooks' serving certificate (tls.crt) and key (tls.key), read again when they change
    /// [default: k8s-webhook-server/serving-certs in the temporary directory]
    #[arg(long, value_name = "DIR", default_value = "", help_heading = WEBHOOK,
          verbatim_doc_comment)]
    pub webhook_cert_dir: String,

    /// Make the certificate, share it with the other replicas in a Secret, tell the API server its CA, and renew it
    /// in time
    #[arg(long, value_name = "BOOL", default_value = "false", help_heading = WEBHOOK, verbatim_doc_comment)]
    pub webhook_self_signed: String,

    /// The namespace of --webhook-secret and --webhook-service [default: the Pod's own namespace, else kube-system]
    #[arg(long, value_name = "STRING", help_heading = WEBHOOK)]
    pub webhook_namespace: Option<String>,

    #[command(flatten)]
    pub webhook: SelfSignedWebhook,

    /// The format of log lines: "text" or "json".
    #[arg(long, value_name = "STRING", default_value = "text", help_heading = LOGS)]
    pub logging_format: String,

    /// How much to log: 0 (what an operator needs) to 10 (everything).
    #[arg(short, long, value_name = "LEVEL", default_value = "0", help_heading = LOGS)]
    pub v: String,

    /// The kubeconfig file with the server's address and the credentials; its current context counts.
    /// Without this and without --master, the Pod's service account is used
    #[arg(long, value_name = "FILE", default_value = "", help_heading = MISC,
          verbatim_doc_comment)]
    pub kubeconfig: String,

    /// The API server's address. Overrides the one in the kubeconfig.
    #[arg(long, value_name = "URL", default_value = "", help_heading = MISC)]
    pub master: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue, help_heading = GLOBAL)]
    pub help: bool,

    /// Print the version and quit.
    #[arg(long, value_name = "BOOL", default_value = "false", hide_default_value = true, help_heading = GLOBAL)]
    pub version: String,
}

/// Parses the command line; `args` begins with the program's name.
///
/// # Errors
/// One sentence for the first argument that is not a flag, or that lacks its value.
pub(super) fn read<I, S>(args: I) -> Result<RawFlags, UsageError>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    matches(&mut controller(), args.into_iter().map(Into::into))
}

/// Parses a command line with the flags of any command; the module's documentation has the rules.
pub(crate) fn matches<T: FromArgMatches>(
    command: &mut clap::Command,
    args: impl Iterator<Item = OsString>,
) -> Result<T, UsageError> {
    let args = normalise(command, args)?;
    let takes_bool = command.get_arguments().any(is_bool);
    command
        .try_get_matches_from_mut(args)
        .and_then(|matches| T::from_arg_matches(&matches))
        .map_err(|error| UsageError::one(explain(&error, takes_bool)))
}

/// A command as clap knows it, with what all commands have in common. A BOOL alone is true, as in pflag.
pub(crate) fn command<T: CommandFactory>() -> clap::Command {
    let command = T::command().disable_help_flag(true).disable_version_flag(true);
    command.args_override_self(true).next_line_help(true).mut_args(|arg| {
        let arg =
            if is_bool(&arg) { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg };
        if arg.get_default_values() == [""] { arg.hide_default_value(true) } else { arg }
    })
}

fn is_bool(arg: &clap::Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names == ["BOOL"])
}

/// The controller's flags as clap knows them.
pub(crate) fn controller() -> clap::Command {
    command::<RawFlags>()
}

/// The text of `--help`, in sections as kube-controller-manager prints its own.
pub(super) fn help() -> String {
    controller().render_help().to_string()
}

/// Rewrites pflag's spellings to equivalent ones that clap accepts: `--name=value` and `-v=value`.
fn normalise(command: &clap::Command, args: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, UsageError> {
    let takes_value: HashMap<String, bool> = command.get_arguments().flat_map(spellings).collect();
    let mut args = args;
    let mut out = Vec::from_iter(args.next());
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        let Some((name, value)) = split_flag(&arg) else {
            out.push(arg);
            continue;
        };
        let name = if name.starts_with("--") { name.replace('_', "-") } else { name };
        if let Some(long) = single_dash_long(&name, &takes_value) {
            return Err(UsageError::one(format!("{name} is not a flag; did you mean {long}?")));
        }
        match value {
            Some(value) => out.push(join(&name, &value)),
            None if takes_value.get(&name).copied().unwrap_or(false) => match args.next() {
                Some(value) => out.push(join(&name, &value)),
                None => return Err(UsageError::one(format!("{name} needs a value, as in {name}=..."))),
            },
            None => out.push(name.into()),
        }
    }
    Ok(out)
}

/// Every way to write a flag, with "the next argument is its value" for each.
fn spellings(arg: &clap::Arg) -> Vec<(String, bool)> {
    let takes_next = arg.get_action().takes_values() && !arg.is_require_equals_set();
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default().into_iter();
    let hidden = arg.get_all_aliases().unwrap_or_default().into_iter();
    let short = arg.get_short().map(|c| format!("-{c}"));
    longs.chain(hidden).map(|name| format!("--{name}")).chain(short).map(|name| (name, takes_next)).collect()
}

/// `--name=value` as its two halves, or `None` if this is no flag (a word, `-`, `--`, or not UTF-8 in the name).
fn split_flag(arg: &OsStr) -> Option<(String, Option<OsString>)> {
    let text = arg.to_str()?;
    if !text.starts_with('-') || text.trim_start_matches('-').is_empty() {
        return None;
    }
    Some(match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.into())),
        None => (text.to_owned(), None),
    })
}

/// The long flag of this name, written with a single dash as Go's own `flag` package allows.
fn single_dash_long(name: &str, known: &HashMap<String, bool>) -> Option<String> {
    let long = format!("-{}", name.replace('_', "-"));
    (!name.starts_with("--") && name.len() > 2 && known.contains_key(&long)).then_some(long)
}

fn join(name: &str, value: &OsStr) -> OsString {
    let mut joined = OsString::from(name);
    joined.push("=");
    joined.push(value);
    joined
}

/// clap's error as one sentence.
fn explain(error: &clap::Error, takes_bool: bool) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let arg = text(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if !arg.starts_with('-') && !takes_bool => {
            format!("unexpected argument {arg:?}; --help lists what is allowed")
        }
        ErrorKind::UnknownArgument if !arg.starts_with('-') => {
            format!("unexpected argument {arg:?}; write a boolean flag's value with \"=\", as in --leader-elect=false")
        }
        ErrorKind::UnknownArgument => match text(ContextKind::SuggestedArg) {
            Some(meant) => format!("{arg} is not a flag; did you mean {meant}?"),
            None => format!("{arg} is not a flag; --help lists all flags"),
        },
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8".to_owned(),
        ErrorKind::TooManyValues => format!("{arg} takes no value"),
        _ => {
            let rendered = error.to_string();
            rendered.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

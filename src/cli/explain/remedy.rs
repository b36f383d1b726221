//! The one command that ends the state of a CronJob, or shows what does.
//!
//! Guarantees: the command is for the user to run, as often as the state returns, and every name in it is one word of a shell. Those of
//! kubectl need no plugin. Pure.

use std::path::Path;

use serde::Serialize;

use super::jobs::UNSUSPENDED;
use super::{Explanation, InCharge, State};
use crate::options::PROGRAM;
use crate::terminal::shell_word;

/// A command, and what it does to a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What it does, in a sentence.
    pub what: String,
    /// The command.
    pub command: String,
}

/// How commands for the user begin and end.
#[derive(Clone, Debug)]
pub struct Shell {
    /// What starts this program.
    pub program: &'static str,
    /// The flags that choose the cluster, each after a space.
    pub flags: String,
}

const NO_TIME_TO_START: &str = "It runs when spec.startingDeadlineSeconds leaves it time to start.";

const SUSPENDED: &str = "Each Job is created suspended, as the template says, and waits until something resumes it, as a queue does. If \
     nothing does, this lets the next ones run. Delete those that exist.";
const RESUMED: &str = r#"'{"spec":{"suspend":false}}'"#;
const NOT_PARALLEL: &str = "Each Job waits, because spec.parallelism of the template is 0. This lets the next ones run. Delete those that exist.";

/// What lets a run end that is deleted because it is stuck, or else because the next one replaces it.
pub(super) fn lets_end(is_stuck: bool) -> &'static str {
    if is_stuck {
        "A run ends if it may run for longer: raise the annotation cronjob-controller.dev/stuck-after, or leave its \"delete\" out."
    } else {
        "A run ends if the next one waits for it: set concurrencyPolicy to Forbid, or run it less often."
    }
}

/// What ends that the annotations of a Namespace cannot be read.
fn edit_of_namespace(namespace: &str) -> (String, String) {
    let what = "It runs when the annotations of its Namespace can be read.".to_owned();
    (what, format!("kubectl edit namespace {namespace}"))
}

impl Default for Shell {
    fn default() -> Self {
        Self { program: PROGRAM, flags: String::new() }
    }
}

/// The flags that choose this cluster, each after a space.
pub(crate) fn cluster_flags(kubeconfig: Option<&Path>, context: Option<&str>) -> String {
    let kubeconfig = kubeconfig.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let kubeconfig = kubeconfig.map(|path| format!(" --kubeconfig={}", shell_word(&path.to_string_lossy())));
    let context = context.map(|context| format!(" --context={}", shell_word(context)));
    kubeconfig.into_iter().chain(context).collect()
}

impl Explanation {
    /// What ends its state; `None` if it needs nothing. `program` starts this program, and `flags` choose the cluster, each after a
    /// space.
    pub(crate) fn remedy(&self, program: &str, flags: &str) -> Option<Remedy> {
        let [namespace, name] = [&self.namespace, &self.name].map(|word| shell_word(word));
        let place = format!("-n {namespace}");
        let noun = self.noun.to_ascii_lowercase();
        let edit = |what: &str| Some((what.to_owned(), format!("kubectl edit {} {place} {name}", self.resource)));
        // It gives each Job a name of its own.
        let run = |what: &str| {
            let command = format!("{program} trigger {place} {name}");
            Some((what.to_owned(), command)).filter(|_| self.resource == "cronjob")
        };
        let of_job = self.of_the_job(&noun, &place, &name);
        let takeback = || {
            let what = "A controller runs it once it is taken back.".to_owned();
            Some((what, format!("{program} migrate takeback {place} {name}")))
        };
        let (what, command) = of_job.or_else(|| match self.state {
            State::Waiting | State::Starting | State::BeingDeleted | State::SlotsUnknown => None,
            State::Suspended if self.controller == InCharge::NotManaged => takeback(),
            State::Suspended => {
                // `resume` is of batch/v1 CronJobs.
                let command = if self.resource == "cronjob" {
                    format!("{program} resume {place} {name}")
                } else {
                    format!("kubectl patch {} {place} {name} --type=merge -p {RESUMED}", self.resource)
                };
                Some((format!("It goes on when it is resumed{}.", self.and_then()), command))
            }
            State::Frozen => Some((
                format!("It goes on when its namespace is thawed{}.", self.and_then()),
                format!("{program} thaw {place}"),
            )),
            State::Blocked | State::RunStuck => self.frees(&noun, &place),
            // Another one would run beside the Job that blocks.
            State::Failing if self.is_blocked() => self.frees(&noun, &place),
            State::NoController => takeback(),
            State::Failing => run("A run that succeeds ends this. Once the cause is mended, start one now."),
            State::Paused => run("It goes on when a run succeeds. Once the cause is mended, start one now."),
            State::NeverEnds => edit(self.lets_end),
            State::PilesUp => edit(
                "The pile ends if a run waits for those before it: set concurrencyPolicy to Forbid, or the annotation \
                 cronjob-controller.dev/max-concurrent, or run it less often.",
            ),
            State::UnparseableSchedule => edit("It runs when its schedule can be read."),
            State::UnknownTimeZone => edit("It runs when spec.timeZone is a time zone."),
            State::BadPolicy if self.is_namespaces_fault => Some(edit_of_namespace(&namespace)),
            State::BadPolicy => edit("It runs when its annotations can be read."),
            State::NeverFires if self.passes_deadline => edit(NO_TIME_TO_START),
            State::NeverFires => edit("It runs when its schedule has a time."),
            State::BadTemplate => edit("It runs when its template can become a Job."),
            State::NameTaken | State::NotStarted | State::Overdue | State::Missed => {
                self.of_a_late_run(&noun, &place, &format!("{program} migrate handover {place} {name}"))
            }
        })?;
        Some(Remedy { what, command: format!("{command}{flags}") })
    }

    /// Whether a running Job keeps a run from starting.
    fn is_blocked(&self) -> bool {
        matches!(self.by_schedule, State::Blocked | State::RunStuck)
    }

    /// What else has to happen once a user no longer stops it.
    fn and_then(&self) -> &'static str {
        match self.held_also {
            None => "",
            Some(State::Paused) => ", and then when a run succeeds",
            Some(State::Frozen) => ", and then when its namespace is thawed",
            Some(State::Blocked | State::RunStuck) => ", and then when a running Job has ended",
            Some(_) => ", and then when it is mended",
        }
    }

    /// What ends a state in which a run has not started, or shows what does. `handover` hands the CronJob over.
    fn of_a_late_run(&self, noun: &str, place: &str, handover: &str) -> Option<(String, String)> {
        match self.state {
            State::NameTaken => {
                let taken = self.wanted.as_deref().map(shell_word)?;
                Some((
                    "See whose it is; the run starts when it is gone.".to_owned(),
                    format!("kubectl describe {noun} {place} {taken}"),
                ))
            }
            State::NotStarted => {
                let what = "See what keeps it from starting.".to_owned();
                let unstarted = self.active.iter().find(|active| active.awaits_start)?;
                Some((what, format!("kubectl describe {noun} {place} {}", shell_word(&unstarted.name))))
            }
            State::Overdue if self.is_left_alone => {
                let what = format!("{PROGRAM} runs it once it is handed over, if the in-tree controller does not run.");
                Some((what, handover.to_owned()))
            }
            State::Overdue => Some(self.why_overdue(place)),
            State::Missed if self.abandoned_lease.is_some() => Some(self.why_overdue(place)),
            State::Missed => {
                let (_, command) = self.why_overdue(place);
                Some(("The next run starts as usual. See what kept the last ones from starting.".to_owned(), command))
            }
            _ => None,
        }
    }

    /// What lets the run start that running Jobs block: as many of them have to be gone as are too many.
    fn frees(&self, noun: &str, place: &str) -> Option<(String, String)> {
        let Some(number) = self.starts_when_gone else {
            let oldest = shell_word(&self.active.first()?.name);
            let what = "No run that is due starts when that Job is gone. See what it does.".to_owned();
            return Some((what, format!("kubectl describe {noun} {place} {oldest}")));
        };
        let jobs: Vec<_> = self.active.iter().take(number).map(|job| shell_word(&job.name)).collect();
        let gone = match jobs.len() {
            0 => return None,
            1 => "that Job is gone".to_owned(),
            number => format!("these {number} Jobs are gone"),
        };
        let what = format!("The run that is due starts when {gone}.");
        Some((what, format!("kubectl delete {noun} {place} {}", jobs.join(" "))))
    }

    /// What ends a state that the oldest running Job causes, if to delete that does not: its template keeps each from running, or it is
    /// being deleted.
    fn of_the_job(&self, noun: &str, place: &str, name: &str) -> Option<(String, String)> {
        let job = self.active.first()?;
        let is_blocked = self.is_blocked();
        if let Some(patch) = job.patch.filter(|_| is_blocked || matches!(self.state, State::NeverEnds | State::PilesUp))
        {
            let what = if patch == UNSUSPENDED { SUSPENDED } else { NOT_PARALLEL };
            let command =
                format!("kubectl patch {} {place} {name} --type=merge -p {}", self.resource, shell_word(patch));
            return Some((what.to_owned(), command));
        }
        let what = "That Job is being deleted, and exists until its finalizers are removed. See which it has.";
        let job = shell_word(&Some(job).filter(|job| is_blocked && job.deleting)?.name);
        Some((what.to_owned(), format!("kubectl get {noun} {place} {job} -o jsonpath='{{.metadata.finalizers}}'")))
    }

    /// What shows why a run is overdue: its controller's lease if no controller holds it, else what the API server refuses.
    fn why_overdue(&self, place: &str) -> (String, String) {
        if let Some((namespace, lease)) = self.abandoned_lease.as_ref().and_then(|lease| lease.split_once('/')) {
            let [namespace, lease] = [namespace, lease].map(shell_word);
            let what = "It runs when its controller does. See which process held its lease.".to_owned();
            return (what, format!("kubectl get lease -n {namespace} {lease} -o yaml"));
        }
        let selector = shell_word(&format!("--field-selector=involvedObject.name={}", self.name));
        ("See what refuses it.".to_owned(), format!("kubectl get events {place} {selector}"))
    }

    /// The command that prints the log of its last run, if a Job of it exists.
    #[cfg_attr(not(feature = "ui"), expect(dead_code, reason = "explain prints the logs of failed containers alone"))]
    pub(crate) fn logs(&self, flags: &str) -> Option<String> {
        if let Some(logs) = self.failure.as_ref().and_then(|failure| failure.logs()) {
            return Some(format!("{logs}{flags}"));
        }
        // One that waits has no Pods.
        let runs = self.active.iter().find(|active| active.waits_for.is_none()).map(|active| &active.name);
        let waits = |job: &String| self.active.iter().any(|active| active.name == *job && active.waits_for.is_some());
        let last = || self.last_run.as_ref().filter(|run| run.exists && !waits(&run.job)).map(|run| &run.job);
        let job = self.last_failed_job.as_ref().or(runs).or_else(last)?;
        let of = shell_word(&format!("{}/{job}", self.noun.to_ascii_lowercase()));
        Some(format!("kubectl logs -n {} {of} --all-containers{flags}", shell_word(&self.namespace)))
    }
}

//! What the commands share that change CronJobs one by one: which are meant, the write of one, and what is said of each.
//!
//! Guarantees: an object is written once, in the version that was judged; one that has changed since it was read is read and judged
//! again. An object that cannot be changed affects no other. Nothing is changed where a name is unknown.

use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::Object;
use crate::api::ControllerKind;
use crate::api::batch_v1::CronJob;
use crate::cli::cluster::{self, ATTEMPTS, CHANGES, patch_as_read, read_text};
use crate::cli::explain::read::ReadError;
use crate::cli::output::{Report, count};

/// Which CronJobs of a namespace, or of all, are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Their names; none are all that the selector selects.
    pub names: Vec<String>,
    /// A label selector; an empty one selects all.
    pub selector: String,
}

/// What a command did.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The word of the command.
    pub(super) command: &'static str,
    /// Which change of how many objects was made, as in "2 CronJobs handed over".
    #[serde(skip)]
    pub(super) done: String,
    pub(super) dry_run: bool,
    /// In the order of the list.
    pub(super) cron_jobs: Vec<Changed>,
    /// Facts about the cluster to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remarks: Vec<String>,
}

/// What was done to a CronJob.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    pub object: Object,
    pub outcome: Outcome,
    /// Whether the controller that runs it starts no Jobs.
    pub suspended: bool,
    /// A sentence that names the object.
    pub message: String,
    /// What starts at once because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    Changed,
    /// It was as it was asked for.
    Unchanged,
    /// It is not as it was asked for, for a good reason.
    Kept,
    Failed,
}

/// A CronJob that was read.
pub(super) trait Listed: Sized {
    fn cron_job(&self) -> &CronJob;
}

/// What is to be done to a CronJob: a merge patch, and what is said once it is written. Without a patch, nothing is.
pub(super) struct Plan {
    pub patch: Option<Value>,
    pub changed: Changed,
}

impl Selection {
    /// The selector as a parameter of a list.
    pub(super) fn query(&self) -> String {
        let selector = &self.selector;
        if selector.is_empty() { String::new() } else { format!("&labelSelector={}", escaped(selector)) }
    }

    /// Leaves those of the names, or all without a name.
    ///
    /// # Errors
    /// If a name is unknown.
    pub(super) fn choose<T: Listed>(
        &self,
        all: &mut Vec<T>,
        kind: ControllerKind,
        namespace: Option<&str>,
    ) -> Result<(), ReadError> {
        let is_named = |listed: &T, name: &str| *listed.cron_job().name.name == *name;
        let is_unknown = |name: &&String| !all.iter().any(|listed| is_named(listed, name));
        if let Some(name) = self.names.iter().find(is_unknown) {
            let (kind, api_version) = (kind.parent.kind, kind.parent.api_version());
            let namespace = namespace.unwrap_or_default().to_owned();
            return Err(ReadError::NotFound { kind, api_version, name: name.clone(), namespace });
        }
        if !self.names.is_empty() {
            all.retain(|listed| self.names.iter().any(|name| is_named(listed, name)));
        }
        Ok(())
    }

    /// Changes what was chosen of a list; `done` is that, for a terminal. Returns what was done to each, then what is said of those
    /// of the list that cannot be decoded, which have no names, and a remark where nothing was found in the only namespace.
    pub(super) async fn change_all<T: Listed>(
        &self,
        done: &str,
        chosen: Vec<T>,
        undecoded: Vec<(Object, String)>,
        namespace: Option<&str>,
        change: impl AsyncFn(T) -> Changed,
    ) -> (Vec<Changed>, Vec<String>) {
        let mut changed = cluster::change_all(done, chosen, change).await;
        let meant = if self.names.is_empty() { undecoded } else { Vec::new() };
        changed.extend(meant.into_iter().map(|(object, cause)| {
            let message = format!("{object} cannot be read: {cause}.");
            Changed::failed(object, message)
        }));
        let only = namespace.filter(|_| changed.is_empty());
        let remark = only.map(|only| format!("Only namespace {only} was looked at; --all-namespaces looks at all."));
        (changed, remark.into_iter().collect())
    }
}

impl Changed {
    pub(super) fn failed(object: Object, message: String) -> Self {
        Self { object, outcome: Outcome::Failed, suspended: false, message, starts: None }
    }
}

/// Changes a CronJob as `plan` says; `what` is that, with the object. `newer` is the one that a text shows, after one that was read.
pub(super) async fn change<T: Listed>(
    client: &Client,
    mut listed: T,
    what: &str,
    dry_run: bool,
    plan: impl Fn(&T) -> Plan,
    newer: impl Fn(&T, &str) -> Result<T, String>,
) -> Changed {
    let failed = |listed: &T, cause: String| Changed::failed(Object::of(listed.cron_job()), cause);
    for _ in 0..ATTEMPTS {
        let Plan { patch, changed } = plan(&listed);
        let Some(patch) = patch.filter(|_| !dry_run) else { return changed };
        match patch_as_read(client, listed.cron_job(), patch, what).await {
            Ok(true) => return changed,
            Ok(false) => match read_again(client, listed.cron_job()).await.and_then(|text| newer(&listed, &text)) {
                Ok(newer) => listed = newer,
                Err(cause) => return failed(&listed, format!("{what}: {cause}")),
            },
            Err(error) => return failed(&listed, error.to_string()),
        }
    }
    failed(&listed, format!("{what}: {CHANGES}"))
}

async fn read_again(client: &Client, cron_job: &CronJob) -> Result<String, String> {
    let name = &cron_job.name;
    let path = format!("{}/{}", cron_job.controller_kind.parent.path(Some(&name.namespace)), name.name);
    read_text(client, &path).await.map_err(|error| error.to_string())
}

impl Changes {
    /// Whether each CronJob is now as it was asked for.
    pub fn is_good(&self) -> bool {
        self.number(Outcome::Failed) == 0
    }

    fn number(&self, outcome: Outcome) -> usize {
        self.cron_jobs.iter().filter(|changed| changed.outcome == outcome).count()
    }
}

impl Report for Changes {
    fn lines(&self) -> Vec<String> {
        let (would, what) = (if self.dry_run { "would be " } else { "" }, &self.done);
        let unchanged = self.number(Outcome::Unchanged);
        let left = unchanged + self.number(Outcome::Kept);
        let mut first = vec![format!("{} {would}{what}.", count(self.number(Outcome::Changed), "CronJob"))];
        if left > 0 {
            first.push(format!("Nothing changes for {}.", count(left, "CronJob")));
        }
        if !self.is_good() {
            first.push(format!("It failed for {}.", count(self.number(Outcome::Failed), "CronJob")));
        }
        let mut lines = vec![first.join(" ")];
        for changed in self.cron_jobs.iter().filter(|changed| changed.outcome != Outcome::Unchanged || unchanged == 1) {
            lines.push(format!("  {}", changed.message));
            lines.extend(changed.starts.iter().map(|starts| format!("    {starts}")));
        }
        lines.extend(self.remarks.iter().cloned());
        lines
    }
}

/// A text as the value of a URL's parameter.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

//! Reads what `migrate check` judges.
//!
//! Guarantees: CronJobs and Jobs must be readable. Leases, `FlowSchema`s and the rights of the controller's account are read if
//! the user may, and the reason is kept where not. Nothing is written: an access review is not stored.

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::causes::with_causes;
use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Object;
use super::controllers::Writers;
use super::rights::{self, Account, Review};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION, Standing};
use crate::api::{ControllerKind, Interner, Manage, Object as _, Uid};
use crate::cli::CliError;
use crate::cli::cluster::{ControllerFlags, by_owner, try_create};
use crate::cli::explain::read::{list, words};
use crate::cli::restrictions::Restrictions;
use crate::options::PROGRAM;

/// What was read.
#[derive(Debug)]
pub struct Cluster {
    pub(super) cron_jobs: Vec<Seen>,
    /// The CronJobs that cannot be decoded, and why.
    pub(super) undecoded: Vec<(Object, String)>,
    /// Why what Namespaces say about the CronJobs could not be read.
    pub(super) namespaces_unread: Option<String>,
    pub(super) leases: Result<Vec<Lease>, String>,
    pub(super) flow_schemas: Result<Vec<FlowSchema>, String>,
    pub(super) account: Account,
    pub(super) reviews: Result<Vec<Review>, String>,
}

/// A CronJob, and what concerns it.
#[derive(Debug)]
pub(super) struct Seen {
    /// A CronJob that was handed over reads as a controller with `--manage=annotated` sees it.
    pub cron_job: Arc<CronJob>,
    pub handed_over: bool,
    /// Its Jobs, and others with names like theirs.
    pub jobs: Vec<Arc<Job>>,
    /// Who wrote its status and its Jobs.
    pub writers: Writers,
    /// Whether the newest write to its status is this controller's, and not before the last edit.
    pub is_own: bool,
    /// The handover annotations that are neither true nor false.
    pub wrong_values: Vec<(&'static str, String)>,
}

impl Seen {
    /// Who runs the CronJob, and whether it is suspended.
    pub(super) fn standing(&self) -> Standing {
        Standing::of(&self.cron_job, self.handed_over)
    }

    /// Whether an object has the name of the slot's Job.
    pub(super) fn has_job_of(&self, slot: DateTime<Utc>) -> bool {
        let name = self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot);
        self.jobs.iter().any(|job| *job.name.name == *name)
    }
}

/// The times of the writes to an object, and its annotations.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    pub creation_timestamp: Option<DateTime<Utc>>,
    pub annotations: Option<HashMap<String, Option<String>>>,
    #[serde(default)]
    pub managed_fields: Vec<ManagedFields>,
}

/// The writes of one manager.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ManagedFields {
    #[serde(default)]
    pub manager: String,
    #[serde(default)]
    pub subresource: String,
    pub time: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct WithMetadata {
    metadata: Written,
}

impl Written {
    fn wrong_values(&self) -> Vec<(&'static str, String)> {
        let wrong = |name: &'static str| {
            let value = self.annotations.as_ref()?.get(name)?.clone().unwrap_or_default();
            (!["true", "false"].contains(&&*value)).then_some((name, value))
        };
        [MANAGED_ANNOTATION, SUSPEND_ANNOTATION].into_iter().filter_map(wrong).collect()
    }

    pub(super) fn of(json: &str) -> Self {
        serde_json::from_str::<WithMetadata>(json).map(|object| object.metadata).unwrap_or_default()
    }
}

impl Cluster {
    /// Reads a namespace, or all.
    ///
    /// # Errors
    /// When the CronJobs or the Jobs cannot be read.
    pub async fn read(
        client: &Client,
        namespace: Option<&str>,
        account: &Account,
        flags: &ControllerFlags,
    ) -> Result<Self, CliError> {
        let controller_kind = ControllerKind::CronJob;
        let cron_jobs = list(client, &controller_kind.parent.path(namespace), "").await?;
        let jobs = list(client, &controller_kind.child.path(namespace), "").await?;
        let cron_jobs = cron_jobs.iter().map(|raw| raw.get());
        let flow_schemas = ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "");
        let jobs: Vec<&str> = jobs.iter().map(|raw| raw.get()).collect();
        let restrictions = Restrictions::read(client, namespace).await;
        let (cron_jobs, undecoded) = seen(cron_jobs, &jobs, flags, &restrictions);
        Ok(Self {
            namespaces_unread: restrictions.unread,
            cron_jobs,
            undecoded,
            leases: read_if_allowed(client, LEASES).await,
            flow_schemas: read_if_allowed(client, flow_schemas).await,
            account: account.clone(),
            reviews: review(client, account, namespace).await,
        })
    }

    /// What could not be read, a sentence each.
    pub(super) fn not_read(&self) -> Vec<String> {
        let leases = self.leases.as_ref().err().map(|cause| format!("two controllers, from Leases: {cause}"));
        let flow = self.flow_schemas.as_ref().err().map(|cause| format!("FlowSchemas: {cause}"));
        let rights = self.reviews.as_ref().err();
        let rights = rights.map(|cause| format!("the rights of ServiceAccount {}: {cause}", self.account));
        let namespaces = self.namespaces_unread.as_ref();
        let namespaces = namespaces.map(|cause| format!("freezes, from Namespaces: {cause}"));
        namespaces.into_iter().chain(leases).chain(flow).chain(rights).collect()
    }
}

/// The CronJobs of a list, with those Jobs of another that concern them, and the CronJobs that cannot be decoded. Jobs that cannot
/// be are left out.
pub(super) fn seen<'a>(
    cron_jobs: impl Iterator<Item = &'a str>,
    jobs: &[&str],
    flags: &ControllerFlags,
    restrictions: &Restrictions,
) -> (Vec<Seen>, Vec<(Object, String)>) {
    let interner = Interner::default();
    let mut written: HashMap<Uid, Written> = HashMap::new();
    let read = |json: &&str| {
        let job = Job::decode(json, &interner).ok()?;
        written.insert(job.uid.clone(), Written::of(json));
        Some(job)
    };
    let jobs = by_owner(jobs.iter().filter_map(read));
    let mut undecoded = Vec::new();
    let seen = |json: &str| {
        let mut cron_job = match CronJob::decode(json, &interner) {
            Ok(cron_job) => cron_job,
            Err(error) => {
                let Written { namespace, name, .. } = Written::of(json);
                let kind = ControllerKind::CronJob.parent.kind;
                undecoded.push((Object::named(kind, &namespace, &name), with_causes(&error)));
                return None;
            }
        };
        flags.apply(&mut cron_job);
        let handed_over = Manage::Annotated.takes(&mut cron_job);
        let jobs = jobs.get(&(cron_job.name.namespace.to_string(), cron_job.name.name.to_string()));
        let jobs = jobs.cloned().unwrap_or_default();
        let started = jobs.iter().filter(|job| job.is_child_of(&cron_job) && job.slot_of(&cron_job).is_some());
        let started = started.filter_map(|job| written.get(&job.uid));
        let object = Written::of(json);
        let writers = Writers::of(&object, started);
        let is_own = in_tree_wrote(json) == Some(false);
        let wrong_values = object.wrong_values();
        // Also one that the in-tree controller runs: what is judged is the same CronJob under this one.
        let cron_job = Arc::new(cron_job).in_its_namespace(restrictions.of(&object.namespace));
        Some(Seen { cron_job, handed_over, jobs, writers, is_own, wrong_values })
    };
    (cron_jobs.filter_map(seen).collect(), undecoded)
}

/// Whether the newest write to the status of this CronJob is the in-tree controller's, or this one's; `None` if there is none
/// since the object was last edited.
pub(crate) fn in_tree_wrote(json: &str) -> Option<bool> {
    let written = Written::of(json);
    // This controller keeps records in annotations.
    let edits = written.managed_fields.iter().filter(|entry| entry.subresource.is_empty() && entry.manager != PROGRAM);
    let edited = edits.filter_map(|entry| entry.time).max();
    Writers::of(&written, std::iter::empty()).is_in_tree(edited)
}

/// The Leases, but for those of the nodes, which have a namespace of their own.
pub(super) const LEASES: (&str, &str) =
    ("/apis/coordination.k8s.io/v1/leases", "&fieldSelector=metadata.namespace!=kube-node-lease");

pub(super) async fn read_if_allowed<T: DeserializeOwned>(
    client: &Client,
    (path, query): (&str, &str),
) -> Result<Vec<T>, String> {
    let items = list(client, path, query).await.map_err(|error| error.to_string())?;
    Ok(items.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect())
}

#[derive(Deserialize)]
struct Answer {
    status: AnswerStatus,
}

#[derive(Deserialize)]
struct AnswerStatus {
    allowed: bool,
}

/// Asks for each right of the manifests whether `account` has it.
async fn review(client: &Client, account: &Account, namespace: Option<&str>) -> Result<Vec<Review>, String> {
    let mut reviews = Vec::new();
    // A controller of some namespaces gets them, and lists none.
    let is_used = |right: &rights::Right| namespace.is_none() || !right.is_list_of_namespaces();
    for right in rights::needed()?.into_iter().filter(is_used) {
        let body = right.review(account, namespace).to_string().into_bytes();
        let answer = try_create(client, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body).await;
        let answer = answer.map_err(|cause| format!("create SubjectAccessReview: {}", words(&cause)))?;
        let Answer { status } = serde_json::from_str(&answer)
            .map_err(|cause| format!("read the answer to SubjectAccessReview: {cause}"))?;
        reviews.push(Review { right, allowed: status.allowed });
    }
    Ok(reviews)
}

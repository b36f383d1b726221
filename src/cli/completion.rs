//! Candidates for completion that the command line does not have: names from the cluster, contexts and time zones.
//!
//! Guarantee: a shell that waits for them waits no longer than [`LONGEST`]. What cannot be read gives no candidates and no
//! message, which would stand in the user's command line.

use std::path::Path;
use std::time::Duration;

use kube::config::Kubeconfig;
use serde::Deserialize;

use super::cluster::{Namespaces, Scope};
use super::explain::read::list;
use super::kubectl::{Completion, Source, TypedFlags};
use super::{Answer, CliError};
use crate::api::ControllerKind;

/// How long a user may have to wait for candidates.
const LONGEST: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The answer for the shell.
///
/// # Errors
/// None: what cannot be read has no candidates.
pub(super) async fn complete(completion: &Completion) -> Result<Answer, CliError> {
    let found = match &completion.source {
        None => Vec::new(),
        Some((source, place)) => {
            tokio::time::timeout(LONGEST, found(*source, place)).await.ok().flatten().unwrap_or_default()
        }
    };
    Ok(Answer { text: completion.clone().text(found), is_good: true })
}

async fn found(source: Source, place: &TypedFlags) -> Option<Vec<String>> {
    let kubeconfig = place.kubeconfig.as_deref().map(Path::new);
    let controller_kind =
        ControllerKind::ALL.into_iter().find(|kind| Some(kind.name) == place.controller.as_deref()).unwrap_or_default();
    let scope = Scope {
        controller_kind,
        namespaces: place.namespace.clone().map_or(Namespaces::OfContext, Namespaces::One),
        name: None,
        kubeconfig: kubeconfig.map(Path::to_owned),
        context: place.context.clone(),
    };
    let path = match source {
        Source::Zones => return Some(schedule::zone_names().map(str::to_owned).collect()),
        Source::Contexts => {
            let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from).ok()?;
            return Some(read.contexts.into_iter().map(|context| context.name).collect());
        }
        Source::Namespaces => None,
        Source::CronJobs => Some(controller_kind.parent),
    };
    let (client, namespace) = scope.connect().await.ok()?;
    let path = path.map_or_else(|| "/api/v1/namespaces".to_owned(), |parent| parent.path(namespace.as_deref()));
    let objects = list(&client, &path, "").await.ok()?;
    let named = |raw: &str| serde_json::from_str::<Named>(raw).ok().map(|object| object.metadata.name);
    Some(objects.iter().filter_map(|raw| named(raw.get())).collect())
}

//! The Lease of the controller that `dev` runs.
//!
//! Guarantees: commands find in this cluster which controller runs a CronJob, as in any other. No process competes for this Lease: it
//! is held for as long as `dev` runs, however fast time goes, and never renewed. That of an earlier `dev` on the same state goes.

use apimachinery::clock::SharedClock;
use apiserver::ApiServer;
use chrono::SecondsFormat;
use http::Method;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::manifests::{Manifest, ManifestError, Position, apply};
use super::requests::{JSON, MANAGER, send};
use crate::api::ControllerKind;
use crate::leader_election::Coverage;

const NAMESPACE: &str = "kube-system";
/// Longer than any cluster of `dev` lasts.
const LASTS_SECONDS: i32 = i32::MAX;

/// Says that `controllers` run in this process, in all namespaces; or that none does.
///
/// # Errors
/// The server rejects the Lease.
pub async fn hold(
    server: &ApiServer,
    controllers: &[ControllerKind],
    clock: &SharedClock,
) -> Result<(), ManifestError> {
    if controllers.is_empty() {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{MANAGER}");
        // In most clusters there is none.
        let _ = send::<IgnoredAny>(&server.client(), Method::DELETE, &path, JSON, &Value::Null).await;
        return Ok(());
    }
    // It does not say which CronJobs they manage, so that a hand-over can be tried here.
    let annotations = Coverage::new(controllers.iter().map(|controller_kind| controller_kind.name), &[]).annotations();
    let place = Position { file: "the Lease that is built in".to_owned(), document: 1 };
    let now = clock.now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": MANAGER, "namespace": NAMESPACE, "annotations": annotations },
        "spec": {
            "holderIdentity": "dev",
            "leaseDurationSeconds": LASTS_SECONDS,
            "acquireTime": now,
            "renewTime": now,
        },
    });
    apply(server, vec![Manifest { place, object }], true).await
}

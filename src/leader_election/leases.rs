//! All leases of a namespace, for replicas that read each other's leases.
//!
//! Guarantees: only the observed version of a lease is removed, so a replica that renews is never taken for a dead one. Every
//! call has a time limit.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use tokio::time::timeout;

use super::lease_lock::LockError;

/// The leases of one namespace on a real API server.
pub struct Leases {
    api: Api<Lease>,
    namespace: String,
    limit: Duration,
}

impl Leases {
    /// The leases of `namespace`; no call takes longer than `limit`.
    pub fn new(client: kube::Client, namespace: &str, limit: Duration) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), limit }
    }

    /// All leases as they are now, by name.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub async fn list(&self) -> Result<BTreeMap<String, Lease>, LockError> {
        let list = self.call("list", "", self.api.list(&ListParams::default())).await?;
        Ok(list.items.into_iter().filter_map(|lease| Some((lease.metadata.name.clone()?, lease))).collect())
    }

    /// Removes a lease in the observed version, or in any version if `seen` names none. Succeeds if the lease is gone
    /// already.
    ///
    /// # Errors
    /// When the server does not answer, or refuses; with a conflict if the lease has changed since.
    pub async fn remove(&self, seen: &Lease) -> Result<(), LockError> {
        let resource_version = seen.metadata.resource_version.clone();
        let preconditions = Some(Preconditions { resource_version, uid: seen.metadata.uid.clone() });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let name = seen.metadata.name.as_deref().unwrap_or_default();
        let removed = async {
            match self.api.delete(name, &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                result => result.map(drop),
            }
        };
        self.call("delete", name, removed).await
    }

    async fn call<T>(
        &self,
        operation: &'static str,
        name: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, LockError> {
        let lease = || if name.is_empty() { self.namespace.clone() } else { format!("{}/{name}", self.namespace) };
        match timeout(self.limit, call).await {
            Ok(result) => {
                result.map_err(|source| LockError::Call { operation, lease: lease(), source: Box::new(source) })
            }
            Err(_) => Err(LockError::Timeout { operation, lease: lease(), seconds: self.limit.as_secs_f64() }),
        }
    }
}

//! What the watches and the live reads of one replica have delivered.

use std::collections::BTreeMap;

use cronjob_controller::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use serde::Deserialize;

use crate::model::SHARED;
use crate::scenario::Millis;

/// A CronJob as a watch or a list last showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub uid: String,
    pub revision: u64,
    pub suspend: bool,
    pub deleting: bool,
    /// Since when it is suspended or deleted, or is not.
    pub at: Millis,
    /// When this version was delivered, and the newest one before that instant.
    shown: Millis,
    earlier: u64,
    /// The newest revision that a live read returned.
    read: u64,
    /// The newest revision of its Namespace that was delivered, when its author asked.
    pub namespace: u64,
}

impl Delivered {
    /// The version that the client has acted on at `at`: what was delivered in the same millisecond may have come too late.
    pub fn before(mut self, at: Millis) -> Self {
        if self.shown == at {
            self.revision = self.earlier;
        }
        self
    }

    /// The same, with that version of its Namespace.
    pub fn in_namespace(self, namespace: u64) -> Self {
        Self { namespace, ..self }
    }
}

/// What a replica's watches have delivered since its start.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// By namespace and name.
    pub cron_jobs: BTreeMap<(String, String), Delivered>,
    /// The newest revision of each Namespace, when it was delivered, and the newest one before that instant.
    namespaces: BTreeMap<String, (u64, Millis, u64)>,
    /// When a UID was last seen to be deleted.
    gone: BTreeMap<String, Millis>,
}

/// The part of an object that a view uses.
#[derive(Clone, Debug, Deserialize)]
pub struct Shown {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Spec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    pub resource_version: String,
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
    #[serde(default)]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Shown {
    /// As [`Version::is_suspended`](crate::model::Version::is_suspended).
    fn is_suspended(&self) -> bool {
        let is_true =
            |name| self.metadata.annotations.as_ref().is_some_and(|all| all.get(name).is_some_and(|v| v == "true"));
        if is_true(MANAGED_ANNOTATION) && self.spec.suspend == Some(true) {
            is_true(SUSPEND_ANNOTATION)
        } else {
            is_true(SHARED) || self.spec.suspend == Some(true)
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Spec {
    #[serde(default)]
    pub suspend: Option<bool>,
}

/// An event of a watch.
#[derive(Deserialize)]
pub struct Event {
    #[serde(rename = "type")]
    pub kind: String,
    pub object: Shown,
}

impl View {
    pub fn shown(&mut self, object: Shown, at: Millis) {
        let suspend = object.is_suspended();
        let Shown { metadata, .. } = object;
        let mut delivered = Delivered {
            uid: metadata.uid,
            revision: metadata.resource_version.parse().unwrap_or(0),
            suspend,
            deleting: metadata.deletion_timestamp.is_some(),
            at,
            shown: at,
            earlier: 0,
            read: 0,
            namespace: 0,
        };
        let key = (metadata.namespace, metadata.name);
        match self.cron_jobs.get(&key) {
            Some(old) if old.uid != delivered.uid => drop(self.gone.insert(old.uid.clone(), at)),
            Some(old) => {
                delivered.earlier = if old.shown == at { old.earlier } else { old.revision };
                delivered.read = old.read;
                // A live read has shown that it was resumed since.
                delivered.suspend &= old.suspend || delivered.revision >= old.read;
                if (old.suspend, old.deleting) == (delivered.suspend, delivered.deleting) {
                    delivered.at = old.at;
                }
            }
            None => {}
        }
        self.gone.remove(&delivered.uid);
        self.cron_jobs.insert(key, delivered);
    }

    /// A live read, which can be ahead of the watch. It can show that a suspension has ended. One that has begun since binds the
    /// author once its watch shows it, since a sync may go by an older version that the watch delivers later.
    pub fn read(&mut self, object: &Shown, at: Millis) {
        let key = (object.metadata.namespace.clone(), object.metadata.name.clone());
        let revision = object.metadata.resource_version.parse().unwrap_or(0);
        let Some(known) = self.cron_jobs.get_mut(&key).filter(|known| known.uid == object.metadata.uid) else { return };
        if revision <= known.revision.max(known.read) {
            return;
        }
        if known.suspend && !object.is_suspended() {
            (known.suspend, known.at) = (false, at);
        }
        known.read = revision;
    }

    pub fn removed(&mut self, object: &Shown, at: Millis) {
        let key = (object.metadata.namespace.clone(), object.metadata.name.clone());
        if let Some(old) = self.cron_jobs.remove(&key) {
            self.gone.insert(old.uid, at);
        }
    }

    /// A complete list: an object that is not in it is deleted.
    pub fn listed(&mut self, objects: Vec<Shown>, at: Millis) {
        let listed: Vec<_> = objects.iter().map(|o| (o.metadata.namespace.clone(), o.metadata.name.clone())).collect();
        let missing: Vec<_> = self.cron_jobs.keys().filter(|key| !listed.contains(key)).cloned().collect();
        for key in missing {
            if let Some(old) = self.cron_jobs.remove(&key) {
                self.gone.insert(old.uid, at);
            }
        }
        for object in objects {
            self.shown(object, at);
        }
    }

    /// A Namespace as a watch or a list shows it.
    pub fn namespace_shown(&mut self, object: &Shown, at: Millis) {
        let revision = object.metadata.resource_version.parse().unwrap_or(0);
        let known = self.namespaces.entry(object.metadata.name.clone()).or_default();
        let earlier = if known.1 == at { known.2 } else { known.0 };
        *known = (revision.max(known.0), at, earlier);
    }

    /// The version of a Namespace that the client has acted on at `at`.
    pub fn namespace(&self, name: &str, at: Millis) -> u64 {
        self.namespaces.get(name).map_or(0, |(newest, shown, earlier)| if *shown == at { *earlier } else { *newest })
    }

    pub fn gone_before(&self, uid: &str, at: Millis) -> bool {
        self.gone.get(uid).is_some_and(|gone| *gone < at)
    }
}

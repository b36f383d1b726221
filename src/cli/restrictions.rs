//! What Namespaces say about the CronJobs in them, for commands.
//!
//! Guarantees: it is read by the controller's own code, and holds for the CronJobs of this controller alone. A Namespace that cannot
//! be read is reported, and hides nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use apimachinery::quoting::quote;
use chrono::{DateTime, FixedOffset, Utc};
use kube::Client;
use schedule::Zone;
use serde::Serialize;

use super::explain::InCharge;
use super::explain::read::{get, list, words};
use super::output::{MOMENT, moment};
use crate::api::batch_v1::CronJob;
use crate::api::policy::{EXCLUDE, NOT_BEFORE, Restriction};
use crate::api::{Interner, Namespace, Object as _, ResourceKind};

/// The restrictions of some Namespaces, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restrictions {
    by_name: HashMap<Arc<str>, Arc<Restriction>>,
    /// Why Namespaces could not be read.
    pub unread: Option<String>,
}

impl Restrictions {
    /// Reads the Namespace of that name, or all.
    pub async fn read(client: &Client, namespace: Option<&str>) -> Self {
        let path = ResourceKind::NAMESPACE.path(None);
        let texts = match namespace {
            None => list(client, &path, "").await.map_err(|error| error.to_string()),
            Some(name) => match get(client, &format!("{path}/{name}")).await {
                Ok(text) => {
                    serde_json::value::RawValue::from_string(text).map(|raw| vec![raw]).map_err(|e| e.to_string())
                }
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
                Err(error) => Err(words(&error)),
            },
        };
        let mut found = Self::default();
        match texts {
            Ok(texts) => texts.iter().for_each(|text| found.add(text.get())),
            Err(error) => found.unread = Some(error),
        }
        found
    }

    /// The same; of Namespaces that could not be read, what they said in `before`.
    #[must_use]
    pub fn or_last(self, before: &Self) -> Self {
        if self.unread.is_some() { Self { unread: self.unread, ..before.clone() } } else { self }
    }

    /// Adds what a Namespace says; another object says nothing.
    pub fn add(&mut self, json: &str) {
        if let Ok(namespace) = Namespace::decode(json, &Interner::default())
            && let Some(restriction) = &namespace.restriction
        {
            self.by_name.insert(Arc::clone(&namespace.object_name().name), Arc::clone(restriction));
        }
    }

    /// Adds what an object in a manifest says, if it is a Namespace.
    #[cfg(feature = "dev")]
    pub fn add_manifest(&mut self, object: &serde_json::Value) {
        if object["kind"] == "Namespace" && object["apiVersion"] == "v1" {
            let mut object = object.clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.entry("uid").or_insert("".into());
            }
            self.add(&object.to_string());
        }
    }

    /// That Namespaces are frozen at `now`, in the order of their names.
    #[cfg(feature = "dev")]
    pub(super) fn freezes(&self, zone: Zone, now: DateTime<Utc>) -> Vec<String> {
        let frozen = self.by_name.iter().filter_map(|(name, restriction)| {
            let (until, why) = (moment(zone, restriction.frozen_until(now)?), why(restriction.reason.as_deref()));
            Some(format!("Namespace {name} is frozen until {until} ({NOT_BEFORE}){why}."))
        });
        let mut frozen: Vec<String> = frozen.collect();
        frozen.sort_unstable();
        frozen
    }

    /// The restriction of a Namespace.
    pub fn of(&self, namespace: &str) -> Option<&Arc<Restriction>> {
        self.by_name.get(namespace)
    }

    /// The CronJob as its controller runs it in its Namespace.
    pub fn restricted(&self, cron_job: CronJob, in_charge: InCharge) -> CronJob {
        match self.that_holds(&cron_job, in_charge) {
            Some(restriction) => cron_job.restricted(restriction),
            None => cron_job,
        }
    }

    /// The same of one that is shared.
    pub fn applied(&self, cron_job: Arc<CronJob>, in_charge: InCharge) -> Arc<CronJob> {
        let restriction = self.that_holds(&cron_job, in_charge);
        cron_job.in_its_namespace(restriction)
    }

    fn that_holds(&self, cron_job: &CronJob, in_charge: InCharge) -> Option<&Arc<Restriction>> {
        self.of(&cron_job.name.namespace).filter(|_| in_charge != InCharge::InTree)
    }
}

/// A freeze of a Namespace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Freeze {
    until: DateTime<FixedOffset>,
    /// In its author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Freeze {
    /// That which holds a CronJob at `now`. Its end is given in `zone`.
    pub fn of(cron_job: &CronJob, zone: Zone, now: DateTime<Utc>) -> Option<Self> {
        let restriction = cron_job.restriction()?;
        let until = zone.at(restriction.frozen_until(now)?);
        Some(Self { until, reason: restriction.reason.as_deref().map(str::to_owned) })
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason.as_deref().map(|reason| format!("{}, ", quote(reason))).unwrap_or_default();
        write!(f, "{reason}until {}", self.until.format(MOMENT))
    }
}

/// That the restrictions of Namespaces are not known, in a report about CronJobs.
pub(crate) fn unread(error: &str) -> String {
    format!("Namespaces cannot be read, so freezes of them do not show: {error}")
}

/// A reason behind a colon; empty without one.
pub(super) fn why(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", quote(reason))).unwrap_or_default()
}

/// What a Namespace says about the slots from `now` on, for people.
pub(super) fn sentences(restriction: &Restriction, zone: Zone, now: DateTime<Utc>) -> Vec<String> {
    let why = why(restriction.reason.as_deref());
    let frozen = restriction
        .frozen_until(now)
        .map(|until| format!("Its Namespace is frozen until {} ({NOT_BEFORE}){why}.", moment(zone, until)));
    let excluded = Some(restriction.excluded()).filter(|excluded| !excluded.is_empty()).map(|excluded| {
        let why = if frozen.is_some() { "" } else { &why };
        format!("Its Namespace leaves out {excluded} ({EXCLUDE}){why}.")
    });
    frozen.into_iter().chain(excluded).collect()
}

#[cfg(test)]
mod tests;

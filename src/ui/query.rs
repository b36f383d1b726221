//! Which CronJobs are shown, and in which order.
//!
//! Guarantees: rows with the same key are sorted by namespace and name, so they do not jump. A name or a value that is unknown
//! is an error that says what is allowed. Pure.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use super::model::{Model, Row};
use super::objects::About;
use crate::cli::explain::{State, Urgency};

/// The selection of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selection {
    /// A part of the name, the schedule or the words of the state.
    pub q: String,
    /// A namespace; empty for all.
    pub namespace: String,
    /// A label as `key=value`, or `!key` for those without it; empty for all.
    pub label: String,
    /// An image of a container, or `!` for those without one; empty for all.
    pub image: String,
    /// One of [`STATES`]; empty for all.
    pub state: String,
    /// The order: problems (the default), name, next, last, lateness or failures.
    pub sort: String,
    /// Whether the order is reversed.
    pub reverse: bool,
}

/// What rows are selected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those of an urgency.
    Of(Urgency),
    /// Those of which a run has ended, and none with success.
    NeverSucceeded,
    /// Those that are due within an hour.
    DueSoon,
    /// Those that a freeze of their Namespace has stopped.
    Frozen,
    /// Those that something else has stopped on purpose.
    Stopped,
}

/// The filters, the worst first. What the page counts is what it selects.
pub const STATES: [(&str, Filter); 10] = [
    ("overdue", Filter::Of(Urgency::Overdue)),
    ("stuck", Filter::Of(Urgency::Stuck)),
    ("blocked", Filter::Of(Urgency::Blocked)),
    ("failed", Filter::Of(Urgency::Failed)),
    ("growing", Filter::Of(Urgency::Growing)),
    ("never", Filter::NeverSucceeded),
    ("soon", Filter::DueSoon),
    ("fine", Filter::Of(Urgency::Fine)),
    ("frozen", Filter::Frozen),
    ("stopped", Filter::Stopped),
];

impl Filter {
    /// Whether it selects the row at `now`.
    pub fn selects(self, row: &Row, now: DateTime<Utc>) -> bool {
        match self {
            Self::Of(urgency) => row.urgency == urgency,
            Self::NeverSucceeded => row.never_succeeded,
            Self::Frozen => row.state == State::Frozen,
            Self::Stopped => row.urgency == Urgency::Stopped && row.state != State::Frozen,
            Self::DueSoon => row.next.as_ref().is_some_and(|next| next.due <= now + TimeDelta::hours(1)),
        }
    }
}

/// The orders.
const SORTS: [&str; 6] = ["problems", "name", "next", "last", "lateness", "failures"];

impl Selection {
    /// The rows that are shown at `now`, in order.
    ///
    /// # Errors
    /// One sentence that names the parameter.
    pub fn rows(&self, model: &Model, now: DateTime<Utc>) -> Result<Vec<Arc<Row>>, String> {
        let state = match &*self.state {
            "" => None,
            name => Some(STATES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let known: Vec<&str> = STATES.iter().map(|(known, _)| *known).collect();
                format!("state: {name:?} is not allowed; use one of {}", known.join(", "))
            })?),
        };
        let sort = match &*self.sort {
            "" => SORTS[0],
            name => SORTS
                .into_iter()
                .find(|known| *known == name)
                .ok_or_else(|| format!("sort: {name:?} is not allowed; use one of {}", SORTS.join(", ")))?,
        };
        let q = self.q.trim().to_lowercase();
        let is_shown = |row: &&Arc<Row>| {
            self.is_of_group(row)
                && state.is_none_or(|(_, filter)| filter.selects(row, now))
                && (q.is_empty() || is_match(row, &q))
        };
        // The map has them by namespace and name, and the sort is stable.
        let mut rows: Vec<Arc<Row>> = model.rows.values().filter(is_shown).cloned().collect();
        rows.sort_by(|a, b| compare(sort, a, b));
        if self.reverse {
            rows.reverse();
        }
        Ok(rows)
    }

    fn is_of_group(&self, row: &Row) -> bool {
        (self.namespace.is_empty() || self.namespace == row.namespace)
            && has_label(&row.about, &self.label)
            && has_image(&row.about, &self.image)
    }

    /// What is selected by and no CronJob has, in sentences.
    pub fn unknown(&self, model: &Model) -> Vec<String> {
        let Self { namespace, label, image, .. } = self;
        let none = |is_of: &dyn Fn(&Row) -> bool| !model.rows.values().any(|row| is_of(row));
        let in_namespace = || format!("No CronJob is in the namespace {namespace}.");
        let with_label = || match (label.strip_prefix('!'), label.split_once('=')) {
            (Some(key), _) => format!("Every CronJob has the label {key}."),
            (None, Some((key, _))) if none(&|row| row.about.label(key).is_some()) => {
                format!("No CronJob has a label {key}.")
            }
            _ => format!("No CronJob has the label {label}."),
        };
        let with_image = || format!("No CronJob has a container with the image {image}.");
        [
            (!namespace.is_empty() && none(&|row| row.namespace == *namespace)).then(in_namespace),
            none(&|row| has_label(&row.about, label)).then(with_label).filter(|_| !label.is_empty()),
            none(&|row| has_image(&row.about, image)).then(with_image).filter(|_| !image.is_empty()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn has_label(about: &About, label: &str) -> bool {
    match (label.strip_prefix('!'), label.split_once('=')) {
        _ if label.is_empty() => true,
        (Some(key), _) => about.label(key).is_none(),
        (None, Some((key, value))) => about.label(key) == Some(value),
        (None, None) => about.label(label).is_some(),
    }
}

fn has_image(about: &About, image: &str) -> bool {
    match image {
        "" => true,
        "!" => about.images.is_empty(),
        image => about.images.iter().any(|own| **own == *image),
    }
}

fn is_match(row: &Row, q: &str) -> bool {
    let name = format!("{}/{}", row.namespace, row.name);
    let refusal = row.refusal.as_ref().map_or("", |refusal| &refusal.text);
    [&name, &row.schedule, row.label, &row.summary, refusal].iter().any(|text| text.to_lowercase().contains(q))
}

fn compare(sort: &str, a: &Row, b: &Row) -> Ordering {
    match sort {
        "name" => Ordering::Equal,
        "next" => {
            let key = |row: &Row| row.next.as_ref().map_or((true, None), |next| (false, Some(next.due)));
            key(a).cmp(&key(b))
        }
        "last" => {
            let key = |row: &Row| Reverse(row.last.as_ref().map(|last| last.slot));
            key(a).cmp(&key(b))
        }
        "lateness" => {
            let key = |row: &Row| row.lateness.map_or(-1.0, |lateness| lateness.p99);
            key(b).total_cmp(&key(a))
        }
        "failures" => b.failures.cmp(&a.failures),
        _ => {
            let key = |row: &Row| (row.urgency, Reverse(row.failures));
            key(a).cmp(&key(b))
        }
    }
}

#[cfg(test)]
mod tests;

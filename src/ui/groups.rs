//! The CronJobs by namespace, label or image.
//!
//! Guarantees: what a group counts is what its filter selects. A CronJob with several images is in the group of each. At most [`MOST`]
//! groups are in an answer, those with the most problems first, and it says how many there are. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::model::{Model, Row};
use super::query::{STATES, Selection};
use crate::cli::explain::Urgency;

/// The most groups of an answer, and the most label keys that are offered.
const MOST: usize = 200;
const KEYS: usize = 50;

/// What CronJobs are grouped by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// Their namespace.
    Namespace,
    /// The images of their containers.
    Image,
    /// The value of a label.
    Label(String),
}

/// The groups.
#[derive(Debug, Serialize)]
pub struct Groups {
    total: usize,
    groups: Vec<Group>,
}

/// A group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// What its CronJobs have in common; `None` for those without the label or an image.
    value: Option<String>,
    /// The value of the parameter that selects them, which has the name of the kind of group.
    filter: String,
    cron_jobs: usize,
    /// Those that are not fine.
    problems: usize,
    states: BTreeMap<&'static str, usize>,
}

impl By {
    /// Reads the parameter.
    ///
    /// # Errors
    /// One sentence that names it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "namespace" => Ok(Self::Namespace),
            "image" => Ok(Self::Image),
            text => match text.strip_prefix("label:").filter(|key| !key.is_empty()) {
                Some(key) => Ok(Self::Label(key.to_owned())),
                None => Err(format!("by: {text:?} is not allowed; use namespace, image or label:KEY")),
            },
        }
    }

    /// The groups of a row.
    fn values<'a>(&'a self, row: &'a Row) -> Vec<Option<&'a str>> {
        let values: Vec<Option<&str>> = match self {
            Self::Namespace => vec![Some(&row.namespace)],
            Self::Image => row.about.images.iter().map(|image| Some(&**image)).collect(),
            Self::Label(key) => vec![row.about.label(key)],
        };
        if values.is_empty() { vec![None] } else { values }
    }

    fn filter(&self, value: Option<&str>) -> String {
        match (self, value) {
            (Self::Label(key), Some(value)) => format!("{key}={value}"),
            (Self::Label(key), None) => format!("!{key}"),
            (_, Some(value)) => value.to_owned(),
            (_, None) => "!".to_owned(),
        }
    }

    /// The selection without what selects one of the groups.
    fn of_all(&self, selection: &Selection) -> Selection {
        let mut all = selection.clone();
        match self {
            Self::Namespace => all.namespace.clear(),
            Self::Image => all.image.clear(),
            Self::Label(_) => all.label.clear(),
        }
        all
    }
}

/// The groups of the CronJobs that are selected, whichever of the groups is.
///
/// # Errors
/// See [`Selection::rows`].
pub fn groups(model: &Model, by: &By, selection: &Selection, now: DateTime<Utc>) -> Result<Groups, String> {
    if let By::Label(key) = by
        && !model.rows.values().any(|row| row.about.label(key).is_some())
    {
        return Err(format!("No CronJob has a label {key}."));
    }
    let rows = by.of_all(selection).rows(model, now)?;
    let mut members: BTreeMap<Option<&str>, Vec<&Arc<Row>>> = BTreeMap::new();
    for row in &rows {
        for value in by.values(row) {
            members.entry(value).or_default().push(row);
        }
    }
    let group = |(value, rows): (Option<&str>, Vec<&Arc<Row>>)| Group {
        value: value.map(str::to_owned),
        filter: by.filter(value),
        cron_jobs: rows.len(),
        problems: rows.iter().filter(|row| row.urgency < Urgency::Fine).count(),
        states: STATES
            .iter()
            .map(|(name, filter)| (*name, rows.iter().filter(|row| filter.selects(row, now)).count()))
            .collect(),
    };
    let mut groups: Vec<Group> = members.into_iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.problems, group.cron_jobs)));
    let total = groups.len();
    groups.truncate(MOST);
    Ok(Groups { total, groups })
}

/// The keys of labels, those of most CronJobs first.
pub fn label_keys(model: &Model) -> Vec<String> {
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, _) in model.rows.values().flat_map(|row| row.about.labels.iter()) {
        *keys.entry(key).or_default() += 1;
    }
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    keys.into_iter().take(KEYS).map(|(key, _)| key.to_owned()).collect()
}

#[cfg(test)]
mod tests;

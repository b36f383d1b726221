//! Formats an explanation as lines for people.
//!
//! Guarantee: the answer comes first, then the facts, why it failed and what ends that, then further remarks. Pure.

use super::remedy::Remedy;
use super::{Explanation, LastRun};
use crate::cli::output::{MOMENT, Report, stretch};
use crate::terminal;

/// So many unfinished Jobs are named, the oldest.
const MOST_NAMED: usize = 5;

impl Report for Explanation {
    fn lines(&self) -> Vec<String> {
        let mut lines =
            vec![format!("{} {}/{}: {}", self.kind, self.namespace, self.name, self.summary), String::new()];
        lines.extend(terminal::columns(&self.facts()));
        if let Some(failure) = &self.failure {
            lines.extend([String::new(), "Why the last run that ended failed:".to_owned()]);
            lines.extend(failure.lines(&self.shell.flags));
        }
        if let Some(Remedy { what, command }) = self.remedy(self.shell.program, &self.shell.flags) {
            lines.extend([String::new(), what, format!("  {command}")]);
        }
        if let Some(unfinished) = &self.unfinished {
            lines.push(String::new());
            lines.extend(unfinished.lines());
        }
        for note in &self.notes {
            lines.extend([String::new(), note.clone()]);
        }
        if !self.warnings.is_empty() {
            lines.extend([String::new(), "Warnings, the newest first:".to_owned()]);
        }
        for warning in &self.warnings {
            let times = if warning.count > 1 { format!(", {} times", warning.count) } else { String::new() };
            let ago = stretch(self.now - warning.time);
            lines.push(format!("  {}, {ago} ago{times}: {}", warning.reason, warning.message));
        }
        lines
    }
}

impl Explanation {
    fn facts(&self) -> Vec<[String; 2]> {
        let mut facts = Vec::new();
        let label = |name: &str| if name.is_empty() { String::new() } else { format!("{name}:") };
        let mut fact = |name: &str, text: String| facts.push([label(name), text]);
        let ago = |run: &LastRun| {
            let ago = stretch(self.now - run.time.to_utc());
            format!("{}, {ago} ago", run.time.format(MOMENT))
        };
        let zone = self.time_zone.map(|zone| format!(" in {zone}")).unwrap_or_default();
        fact("Schedule", format!("{}{zone}", self.schedule));
        fact(
            "Last run",
            match (&self.last_run, &self.unscheduled_run) {
                (Some(run), _) => format!("{}: {} {}", ago(run), run.job, run.outcome),
                (None, Some(run)) => {
                    let by = if run.of_backfill { "a backfill" } else { "hand" };
                    format!("never by schedule; by {by} {}: {} {}", ago(run), run.job, run.outcome)
                }
                (None, None) => "never".to_owned(),
            },
        );
        if let Some(time) = self.last_successful_time {
            fact("Last success", format!("{}, {} ago", time.format(MOMENT), stretch(self.now - time.to_utc())));
        }
        for active in self.active.iter().take(MOST_NAMED) {
            let name = match active.waits_for.is_none() {
                _ if active.deleting => "Deleting",
                true => "Running",
                false => "Waiting",
            };
            let origin = if active.of_backfill { ", of a backfill" } else { "" };
            fact(name, format!("{}, {}{origin}", active.name, active.in_short));
        }
        let more = self.active.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            fact("", format!("and {more} more"));
        }
        fact(
            "Next run",
            self.next_run.as_ref().map_or("none".to_owned(), |run| {
                let wait = stretch(run.time.to_utc() - self.now);
                format!("{}, in {wait}: {}", run.time.format(MOMENT), run.effect)
            }),
        );
        facts
    }
}

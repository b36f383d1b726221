//! Since when a CronJob is not fine, in a few words for a row of a table.
//!
//! Guarantee: the words say what its state says, and nothing is said of one that is fine or that a user has stopped. Pure.

use super::{Explanation, State, Urgency};
use crate::cli::output::stretch;

impl Explanation {
    /// Since when it is not fine, and why; `None` if it is, or if a user has stopped it.
    pub(crate) fn since(&self) -> Option<String> {
        if self.state.urgency() >= Urgency::Fine {
            return None;
        }
        let lower = |words: &str| {
            let mut letters = words.chars();
            letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect::<String>()
        };
        if let (State::NeverEnds, Some(headline)) = (self.state, &self.headline) {
            return Some(lower(headline));
        }
        let due = self.due_since.map(|since| stretch(self.now - since));
        let running = self.active.first();
        let no_success = self.no_success.as_ref().map(|no_success| lower(&no_success.words(self.now)));
        let own = match (self.state, due, running) {
            (State::Overdue | State::NameTaken | State::BadTemplate, Some(due), _) => Some(format!("due for {due}")),
            (State::Missed, Some(due), _) => Some(format!("missed its runs for {due}")),
            (State::NotStarted, ..) => {
                let unstarted = self.active.iter().find(|active| active.awaits_start);
                unstarted.map(|active| format!("{} {}", active.name, active.in_short))
            }
            (State::Blocked | State::RunStuck, Some(due), Some(active)) => {
                Some(format!("blocked for {due} by {}, which {}", active.name, active.doing))
            }
            (State::PilesUp, _, Some(active)) => {
                self.headline.as_ref().map(|headline| format!("{headline}, {} {}", active.name, active.in_short))
            }
            _ => None,
        };
        let last = || match &self.last_run {
            Some(run) => format!("last run {} ago", stretch(self.now - run.time.to_utc())),
            None if self.unscheduled_run.is_some() => "it never ran by its schedule".to_owned(),
            None => "it never ran".to_owned(),
        };
        match (own, no_success) {
            (Some(own), Some(no_success)) => Some(format!("{own}; {no_success}")),
            (own, no_success) => own.or(no_success).or_else(|| Some(last())),
        }
    }
}

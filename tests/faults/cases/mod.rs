//! The table of cases.

mod clock;
mod frozen;
mod kills;
mod long_templates;
mod namespace;
mod overload;
mod refusals;

use std::fmt::{self, Display};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE};
use testkit::world::World;

use crate::runner::Case;

macro_rules! case {
    ($module:ident :: $function:ident, $name:literal, $holds:literal) => {
        Case { name: $name, holds: $holds, run: |world, luck| Box::pin($module::$function(world, luck)) }
    };
}

/// The case that every `cargo test` runs.
pub const SMALL: Case = case!(kills::controller_once, "controller killed once in a burst of 60", "every status right");

pub fn all() -> Vec<Case> {
    vec![
        case!(kills::controller, "controller killed (`kill -9`) in a burst, ten times", "every status right"),
        case!(
            frozen::leader,
            "leader frozen past its lease, thawed under a working successor",
            "begins no write, exit code 1"
        ),
        case!(kills::api_server, "kube-apiserver killed in a burst, three times", "every status right"),
        case!(kills::etcd, "etcd killed in a burst, three times", "every status right"),
        case!(
            overload::squeezed,
            "API Priority and Fairness squeezed to almost nothing",
            "Jobs before statuses, all done"
        ),
        case!(refusals::policy, "an admission policy refuses Jobs for 20 s", "FailedCreate Events, deadlines kept"),
        case!(
            refusals::webhook,
            "an admission webhook that cannot be reached, for 20 s",
            "FailedCreate Events, deadlines kept"
        ),
        case!(
            refusals::quota,
            "a quota with room for a third, raised after 20 s",
            "FailedCreate Events, deadlines kept"
        ),
        case!(namespace::terminating, "a namespace terminating in a burst", "neighbours unharmed, no storm"),
        case!(clock::forward, "the clock set forward by an hour", "what became due fires at once"),
        case!(
            kills::twenty_thousand,
            "controller killed among 20,000 due CronJobs",
            "every status right, no key stuck"
        ),
        case!(
            long_templates::all_due,
            "400 CronJobs with templates of 1.3 MB, all due",
            "every status right, at most 128 MB resident"
        ),
    ]
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// The audit events of the manifests' account so far.
async fn account_requests(world: &World) -> Vec<Value> {
    // The log is written after the answer.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.plane.audit(&format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}"))
}

/// When the API server received the request of an audit event.
fn received(event: &Value) -> DateTime<Utc> {
    event["requestReceivedTimestamp"].as_str().and_then(|time| time.parse().ok()).expect("an audit event has its time")
}

/// The smallest and the largest of several figures.
#[derive(Default)]
struct Spread(Vec<f64>);

impl Spread {
    fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(0);
        let (least, most) =
            (self.0.iter().copied().fold(f64::MAX, f64::min), self.0.iter().copied().fold(0.0, f64::max));
        if self.0.len() == 1 { write!(f, "{most:.places$}") } else { write!(f, "{least:.places$} to {most:.places$}") }
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

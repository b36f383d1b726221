//! What the lease says about creates that outlive it.
//!
//! Guarantees: what is read was written by the holder that the lease names, for this term. Anything else is no answer, as is a
//! lease of a program that does not know of it: renewals of such a program carry on what another holder wrote. Clocks are never
//! compared: the text is a duration, which its reader counts from its first sight of that version of the lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::config::whole_seconds;
use super::record::LeaderElectionRecord;

/// The annotation of the lease: seconds, the number of transitions, and the holder.
pub const OPEN_CREATES: &str = "cronjob-controller.dev/open-creates";

/// How long creates may stay open of a holder that does not say: as long as the server works on one, and its time on the way.
pub const LONGEST_CREATE: Duration = Duration::from_secs(39);

/// More than any holder writes: no create is open for longer than a minute.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Writes that creates of the holder in `record` may stay open for `length` from now; zero if the lease outlasts them all.
pub fn write(metadata: &mut ObjectMeta, record: &LeaderElectionRecord, length: Duration) {
    let seconds = whole_seconds(length);
    let text = format!("{seconds} {} {}", record.leader_transitions, record.holder_identity);
    metadata.annotations.get_or_insert_default().insert(OPEN_CREATES.to_owned(), text);
}

/// How long creates of the lease's holder may stay open, from the first sight of the lease; `None` if it does not say.
pub fn read(lease: &Lease, record: &LeaderElectionRecord) -> Option<Duration> {
    let text = lease.metadata.annotations.as_ref()?.get(OPEN_CREATES)?;
    let (seconds, term) = text.split_once(' ')?;
    let is_of_this_term = term == format!("{} {}", record.leader_transitions, record.holder_identity);
    let length = seconds.parse().ok().map(Duration::from_secs);
    length.filter(|length| is_of_this_term && *length <= LONGEST)
}

#[cfg(test)]
mod tests;

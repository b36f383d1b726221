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
mod tests {
    use super::*;

    #[test]
    fn only_what_the_holder_wrote_in_this_term_is_read() {
        let record = LeaderElectionRecord {
            holder_identity: "pod a_1".to_owned(),
            leader_transitions: 3,
            ..LeaderElectionRecord::default()
        };
        let rows = [
            ("nothing beyond the lease", Some("0 3 pod a_1"), Some(0)),
            ("a create of a slot that timed out", Some("42 3 pod a_1"), Some(42)),
            ("of a program that does not know of it", None, None),
            ("of an earlier holder", Some("0 3 pod b_1"), None),
            ("of an earlier term of this holder", Some("0 2 pod a_1"), None),
            ("without a holder", Some("0 3"), None),
            ("less than nothing", Some("-1 3 pod a_1"), None),
            ("no number", Some("soon 3 pod a_1"), None),
            ("an age of the world", Some("18446744073709551615 3 pod a_1"), None),
            ("empty", Some(""), None),
        ];
        for (sentence, text, want) in rows {
            let annotations = text.map(|text| [(OPEN_CREATES.to_owned(), text.to_owned())].into());
            let lease = Lease { metadata: ObjectMeta { annotations, ..ObjectMeta::default() }, spec: None };
            assert_eq!(read(&lease, &record), want.map(Duration::from_secs), "{sentence}");
        }
        let mut lease = Lease::default();
        write(&mut lease.metadata, &record, Duration::from_millis(41_001));
        assert_eq!(read(&lease, &record), Some(Duration::from_secs(42)), "rounded up");
    }
}

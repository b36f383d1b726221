//! The elector's settings, their validity, and the identity of a candidate.
//!
//! Guarantees: settings that pass [`Config::validate`] leave time between the moment a leader stops writing and the moment
//! others may take the lease, and time for more than one renewal attempt before that.

use std::collections::BTreeMap;
use std::time::Duration;

/// How far a candidate's pause between attempts is stretched at random: the pause lies between the retry period and
/// `1 + JITTER_FACTOR` times it. Client-go's value.
pub const JITTER_FACTOR: f64 = 1.2;

/// What is elected, under which name, and with which times. Matches `LeaderElectionConfig` in client-go's
/// tools/leaderelection/leaderelection.go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease; also the label `name` of the metrics.
    pub name: String,
    /// The holder identity of this process; must be unique among all candidates, also after a restart.
    pub identity: String,
    /// How long other candidates wait for a silent leader. Written into the lease in whole seconds, rounded up.
    pub lease_duration: Duration,
    /// How long a leader that cannot renew goes on writing.
    pub renew_deadline: Duration,
    /// The pause between attempts.
    pub retry_period: Duration,
    /// Whether the lease is released when the elector is cancelled. The work under the lease must have ended by then.
    pub release_on_cancel: bool,
    /// Annotations that the holder writes on the lease, beside those that it has.
    pub annotations: BTreeMap<String, String>,
}

/// Settings with which an election would not be safe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leader election: {0}")]
pub struct ConfigError(String);

impl Config {
    /// The lease `namespace/name` with client-go's times: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_cancel: true,
            annotations: BTreeMap::new(),
        }
    }

    /// Checks the settings against each other. Matches `NewLeaderElector` in client-go's
    /// tools/leaderelection/leaderelection.go, and checks that the lease duration fits into the record.
    ///
    /// # Errors
    /// One sentence that names the first invalid setting.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let problem = if self.namespace.is_empty() || self.name.is_empty() {
            Some("the lease's namespace and name must not be empty".to_owned())
        } else if self.identity.is_empty() {
            Some("the identity must not be empty".to_owned())
        } else if self.retry_period.is_zero() {
            Some("the retry period must be greater than zero".to_owned())
        } else if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            Some(format!(
                "the renew deadline ({:?}) must be greater than {JITTER_FACTOR} times the retry period ({:?})",
                self.renew_deadline, self.retry_period
            ))
        } else if self.lease_duration <= self.renew_deadline {
            Some(format!(
                "the lease duration ({:?}) must be greater than the renew deadline ({:?})",
                self.lease_duration, self.renew_deadline
            ))
        } else if i32::try_from(whole_seconds(self.lease_duration)).is_err() {
            Some(format!("the lease duration ({:?}) is too long", self.lease_duration))
        } else {
            None
        };
        problem.map_or(Ok(()), |problem| Err(ConfigError(problem)))
    }

    /// How long one call on the lease may take: half the renew deadline, so that one hanging call does not cost the
    /// leadership. kube-controller-manager gives its client the same limit (`NewFromKubeconfig` in client-go's
    /// tools/leaderelection/resourcelock/interface.go).
    pub(super) fn call_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// `namespace/name`, for messages.
    pub(super) fn lease(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A lease duration as the record holds it, rounded up. client-go cuts it off: 10.9 s beside a renew deadline of 9.9 s would
/// then leave 0.1 s between the last write and the next leader, instead of the configured second.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// An identity for this process: the host name, `_`, and a random (version 4) UUID. Matches `Run` in
/// cmd/kube-controller-manager/app/controllermanager.go.
pub fn default_identity() -> String {
    format!("{}_{}", host_name(), uuid_v4(rand::random()))
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

fn uuid_v4(random: u128) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let hex = format!("{:032x}", random & !VERSION & !VARIANT | 4 << 76 | 0b10 << 62);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests;

//! How long requests may take, and how metrics count them.

use std::time::Duration;

use crate::client::RequestObserver;
use crate::metrics::RestClientMetrics;
use crate::options::Config;

/// How long one request of a sync may take without leader election.
const LONGEST: Duration = Duration::from_secs(10);

/// A write that begins while this process surely holds the lease must end before another process can hold it.
pub fn timeout(config: &Config) -> Duration {
    let Some(settings) = &config.leader_election else { return LONGEST };
    let margin = settings.lease_duration.saturating_sub(settings.renew_deadline);
    margin.mul_f64(0.8).clamp(Duration::from_millis(100), LONGEST)
}

impl RequestObserver for RestClientMetrics {
    fn observe(&self, method: &str, host: &str, code: &str, seconds: Option<f64>) {
        self.increment_requests(code, method, host);
        if let Some(seconds) = seconds {
            self.observe_request_duration(method, host, Duration::from_secs_f64(seconds.max(0.0)));
        }
    }

    fn rate_limited(&self, verb: &str, host: &str, seconds: f64) {
        self.observe_rate_limiter_duration(verb, host, Duration::from_secs_f64(seconds.max(0.0)));
    }
}

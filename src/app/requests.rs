//! Puts what the client reports into the metrics.

use std::time::Duration;

use crate::client::RequestObserver;
use crate::metrics::RestClientMetrics;

/// The client's observer.
#[derive(Clone)]
pub struct Observer(RestClientMetrics);

impl Observer {
    /// Reports to `metrics`.
    pub fn new(metrics: RestClientMetrics) -> Self {
        Self(metrics)
    }
}

impl RequestObserver for Observer {
    fn observe(&self, method: &str, host: &str, code: &str, seconds: Option<f64>) {
        self.0.increment_requests(code, method, host);
        if let Some(seconds) = seconds {
            self.0.observe_request_duration(method, host, Duration::from_secs_f64(seconds.max(0.0)));
        }
    }

    fn rate_limited(&self, verb: &str, host: &str, seconds: f64) {
        self.0.observe_rate_limiter_duration(verb, host, Duration::from_secs_f64(seconds.max(0.0)));
    }
}

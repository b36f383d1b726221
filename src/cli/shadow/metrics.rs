//! The metrics of a shadow.
//!
//! Guarantee: gauges follow the sums of the report, so that a finding that is corrected is taken back. CronJobs whose annotations the
//! controller in charge does not read are left out.

use prometheus::{Gauge, Histogram, IntGaugeVec, Opts};

use super::compare::Change;
use super::lateness::seconds;
use super::report::Sums;
use crate::metrics::{MetricsError, Registry, add, histogram};

/// Bucket bounds, in seconds: from a create without delay to the in-tree controller's in a burst.
const LATE_SECONDS: [f64; 15] =
    [0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0];

/// The metrics, with the prefix `cronjob_controller_shadow_`.
#[derive(Clone, Debug)]
pub struct ShadowMetrics {
    slots: IntGaugeVec,
    agreement: Gauge,
    late: Histogram,
    own: Histogram,
}

impl ShadowMetrics {
    /// Makes the metrics and registers them with `registry`.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry) -> Result<Self, MetricsError> {
        const SLOTS: &str = "cronjob_controller_shadow_slots";
        const AGREEMENT: &str = "cronjob_controller_shadow_agreement_ratio";
        let slots = "[ALPHA] Number of slots that a shadow has compared, and of wrong statuses (differs), partitioned by the \
                     finding: same, missed, twice, differs, listed (in docs/divergences.md) or not_seen.";
        let agreement =
            "[ALPHA] Share of the compared slots about which the controller in charge and this one agree, from 0 to 1.";
        let late =
            "[ALPHA] Time between when a cronjob is due and when the watch shows the job of the controller in charge.";
        let own = "[ALPHA] Time between when a cronjob is due and when this controller would send its create.";
        let metrics = Self {
            slots: add(registry, SLOTS, IntGaugeVec::new(Opts::new(SLOTS, slots), &["finding"]))?,
            agreement: add(registry, AGREEMENT, Gauge::new(AGREEMENT, agreement))?,
            late: histogram(registry, "cronjob_controller_shadow_lateness_seconds", late, LATE_SECONDS.to_vec())?,
            own: histogram(registry, "cronjob_controller_shadow_own_lateness_seconds", own, LATE_SECONDS.to_vec())?,
        };
        metrics.set(&Sums::default());
        Ok(metrics)
    }

    /// Records the times of a change.
    pub(super) fn observe(&self, change: &Change) {
        if let Some(late) = change.late {
            self.late.observe(seconds(late));
        }
        if let Some(own) = change.own {
            self.own.observe(seconds(own));
        }
    }

    /// Shows the sums.
    pub(super) fn set(&self, sums: &Sums) {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = [
            ("same", sums.same.try_into().unwrap_or(i64::MAX)),
            ("missed", number(sums.missed.len())),
            ("twice", number(sums.twice.len())),
            ("differs", number(sums.differs.len())),
            ("listed", number(sums.listed.len())),
            ("not_seen", sums.not_seen.try_into().unwrap_or(i64::MAX)),
        ];
        for (finding, value) in rows {
            self.slots.with_label_values(&[finding]).set(value);
        }
        self.agreement.set(sums.agreement().unwrap_or(100.0) / 100.0);
    }
}

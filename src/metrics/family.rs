//! Hand-made families of samples, for collectors that read their numbers at scrape time.
//!
//! Guarantees: these families have the same form as those of the `prometheus` crate's metric types. A [`PlainHistogram`] is
//! as consistent as its owner's lock makes it.

use prometheus::core::Desc;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType, Summary};

/// A counter family with one sample, labelled with the constant labels of `desc`.
pub fn counter(desc: &Desc, value: f64) -> MetricFamily {
    family(desc, MetricType::COUNTER, vec![sample(MetricType::COUNTER, desc.const_label_pairs.clone(), value)])
}

/// A gauge family with one sample, labelled with the constant labels of `desc`.
pub fn gauge(desc: &Desc, value: f64) -> MetricFamily {
    family(desc, MetricType::GAUGE, vec![sample(MetricType::GAUGE, desc.const_label_pairs.clone(), value)])
}

/// A histogram family with one histogram, labelled with the constant labels of `desc`.
pub fn histogram(desc: &Desc, histogram: &PlainHistogram) -> MetricFamily {
    let mut metric = Metric::from_label(desc.const_label_pairs.clone());
    metric.set_histogram(histogram.to_proto());
    family(desc, MetricType::HISTOGRAM, vec![metric])
}

/// `count` as the exposition's float; exact up to 2^53.
#[allow(clippy::cast_precision_loss)]
pub fn count(count: u64) -> f64 {
    count as f64
}

/// A label.
pub fn label(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

/// One sample of a counter, or of a gauge if `kind` is anything else. `labels` are sorted by name.
pub fn sample(kind: MetricType, labels: Vec<LabelPair>, value: f64) -> Metric {
    let mut metric = Metric::from_label(labels);
    if kind == MetricType::COUNTER {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}

/// One sample of a summary without quantiles. `labels` are sorted by name.
pub fn summary(labels: Vec<LabelPair>, sum: f64, count: u64) -> Metric {
    let mut summary = Summary::default();
    summary.set_sample_sum(sum);
    summary.set_sample_count(count);
    let mut metric = Metric::from_label(labels);
    metric.set_summary(summary);
    metric
}

/// A family of `kind` with these samples, with name and help of `desc`.
pub fn family(desc: &Desc, kind: MetricType, samples: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(desc.fq_name.clone());
    family.set_help(desc.help.clone());
    family.set_field_type(kind);
    family.set_metric(samples);
    family
}

/// A histogram of plain numbers for an owner with its own lock: an observation needs no atomic operation, and a clone under
/// that lock is one snapshot.
#[derive(Debug, Clone)]
pub struct PlainHistogram {
    upper_bounds: Vec<f64>,
    /// One more than there are bounds: the last counts the values above all of them.
    counts: Vec<u64>,
    sum: f64,
}

impl PlainHistogram {
    /// An empty histogram with these bounds, which must ascend.
    pub fn new(upper_bounds: Vec<f64>) -> Self {
        let counts = vec![0; upper_bounds.len() + 1];
        Self { upper_bounds, counts, sum: 0.0 }
    }

    /// Counts `value` in the first bucket whose bound is not below it.
    pub fn observe(&mut self, value: f64) {
        let bucket = self.upper_bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// Adds the counts of another histogram with the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }

    /// How many values were observed.
    pub fn sample_count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all observed values.
    pub fn sample_sum(&self) -> f64 {
        self.sum
    }

    fn to_proto(&self) -> Histogram {
        let mut cumulative = 0;
        let buckets = self.upper_bounds.iter().zip(&self.counts).map(|(bound, count)| {
            cumulative += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(cumulative);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(self.sample_count());
        histogram.set_sample_sum(self.sum);
        histogram
    }
}

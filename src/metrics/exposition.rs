//! The text format of Prometheus, byte for byte as Go's client writes it.
//!
//! Guarantees: a family is written as by `expfmt.MetricFamilyToText` of prometheus/common: HELP, TYPE, samples; labels in
//! their own order with `le` last; floats as Go prints them. Families are sorted by name and samples by label values. The
//! `+Inf` bucket equals `_count`. A family without samples is left out. The `prometheus` crate's text encoder is not used
//! because it writes `0.00000001` where Go writes `1e-08`.

use prometheus::Registry;
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

/// The `Content-Type` of what [`encode`] returns (`expfmt.FmtText`).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The present state of all metrics in `registry`, as text.
pub fn encode(registry: &Registry) -> String {
    encode_families(&registry.gather())
}

fn encode_families(families: &[MetricFamily]) -> String {
    let mut out = String::with_capacity(8 * 1024);
    for family in families.iter().filter(|family| !family.get_metric().is_empty()) {
        if !family.help().is_empty() {
            line(&mut out, &["# HELP ", family.name(), " ", &escape(family.help())]);
        }
        line(&mut out, &["# TYPE ", family.name(), " ", type_name(family.get_field_type())]);
        for metric in family.get_metric() {
            encode_metric(&mut out, family, metric);
        }
    }
    out
}

fn encode_metric(out: &mut String, family: &MetricFamily, metric: &Metric) {
    let name = family.name();
    let labels = metric.get_label();
    match family.get_field_type() {
        MetricType::COUNTER => sample(out, name, "", labels, None, &format_float(metric.get_counter().get_value())),
        MetricType::GAUGE => sample(out, name, "", labels, None, &format_float(metric.get_gauge().get_value())),
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let count = histogram.get_sample_count().to_string();
            for bucket in histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite()) {
                let le = format_float(bucket.upper_bound());
                sample(out, name, "_bucket", labels, Some(("le", &le)), &bucket.cumulative_count().to_string());
            }
            sample(out, name, "_bucket", labels, Some(("le", "+Inf")), &count);
            sample(out, name, "_sum", labels, None, &format_float(histogram.get_sample_sum()));
            sample(out, name, "_count", labels, None, &count);
        }
        MetricType::SUMMARY => {
            let summary = metric.get_summary();
            for quantile in summary.get_quantile() {
                let at = format_float(quantile.quantile());
                sample(out, name, "", labels, Some(("quantile", &at)), &format_float(quantile.value()));
            }
            sample(out, name, "_sum", labels, None, &format_float(summary.sample_sum()));
            sample(out, name, "_count", labels, None, &summary.sample_count().to_string());
        }
        // No constructor of the `prometheus` crate creates one.
        MetricType::UNTYPED => {}
    }
}

fn type_name(kind: MetricType) -> &'static str {
    match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
        MetricType::HISTOGRAM => "histogram",
    }
}

fn sample(out: &mut String, name: &str, suffix: &str, labels: &[LabelPair], last: Option<(&str, &str)>, value: &str) {
    out.push_str(name);
    out.push_str(suffix);
    let mut separator = '{';
    for (label, text) in labels.iter().map(|pair| (pair.name(), pair.value())).chain(last) {
        out.push(separator);
        label_pair(out, label, text);
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
    line(out, &[" ", value]);
}

fn label_pair(out: &mut String, label: &str, text: &str) {
    out.push_str(label);
    out.push_str("=\"");
    out.push_str(&escape(text).replace('"', "\\\""));
    out.push('"');
}

fn line(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
    out.push('\n');
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

/// A float as Go's `strconv.FormatFloat(f, 'g', -1, 64)` prints it: the fewest digits that read back as the same number. It
/// uses the exponent form when the decimal exponent is below −4 or above 5; the exponent is signed and at least two digits
/// long.
pub fn format_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        // Go's writer has a special case for zero that drops its sign.
        return "0".to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

#[cfg(test)]
mod tests;

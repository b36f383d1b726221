//! The text output compared with Go's.
#![allow(clippy::unwrap_used)]

use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};

use super::*;

/// Printed by Go 1.26: the number to 18 digits, and `strconv.FormatFloat(f, 'g', -1, 64)`.
const GO_FLOATS: &[(&str, &str)] = &[
    ("2.00000000000000000e+00", "2"),
    ("1.00000000000000000e+01", "10"),
    ("2.00000000000000000e+04", "20000"),
    ("9.99990000000000000e+04", "99999"),
    ("1.00000000000000000e+05", "100000"),
    ("1.23456000000000000e+05", "123456"),
    ("9.99999000000000000e+05", "999999"),
    ("1.00000000000000000e+06", "1e+06"),
    ("1.04857600000000000e+06", "1.048576e+06"),
    ("1.23456700000000000e+06", "1.234567e+06"),
    ("9.72144640000000000e+07", "9.7214464e+07"),
    ("1.12811818800000000e+09", "1.128118188e+09"),
    ("1.79519697571000004e+09", "1.79519697571e+09"),
    ("1.84467440737095516e+19", "1.8446744073709552e+19"),
    ("1.00000000000000000e+20", "1e+20"),
    ("1.00000000000000000e+21", "1e+21"),
    ("1.50000000000000000e+22", "1.5e+22"),
    ("1.00000000000000005e-04", "0.0001"),
    ("1.23449999999999992e-04", "0.00012345"),
    ("1.00000000000000008e-05", "1e-05"),
    ("1.23000000000000008e-04", "0.000123"),
    ("9.99899999999999964e-05", "9.999e-05"),
    ("1.00000000000000002e-08", "1e-08"),
    ("1.00000000000000006e-01", "0.1"),
    ("2.00000000000000011e-01", "0.2"),
    ("2.99999999999999989e-01", "0.3"),
    ("5.00000000000000010e-03", "0.005"),
    ("2.50000000000000014e-02", "0.025"),
    ("2.50000000000000000e-01", "0.25"),
    ("3.33333333333333315e-01", "0.3333333333333333"),
    ("6.66666666666666628e+05", "666666.6666666666"),
    ("1.23456789000000004e+05", "123456.789"),
    ("1.23456789100000006e+06", "1.234567891e+06"),
    ("-2.50000000000000000e+00", "-2.5"),
    ("-9.99999999999999955e-08", "-1e-07"),
    ("1.79769313486231571e+308", "1.7976931348623157e+308"),
    ("4.94065645841246544e-324", "5e-324"),
    ("6.97859300000000082e-03", "0.006978593000000001"),
    ("1.27081049999999991e-02", "0.012708104999999999"),
    ("1.48219693752373963e-323", "1.5e-323"),
    ("1.67772160000000000e+07", "1.6777216e+07"),
    ("4.19430400000000000e+06", "4.194304e+06"),
    ("2.62144000000000000e+05", "262144"),
    ("1.00000500000000000e+05", "100000.5"),
    ("1.00000000000000002e-08", "1e-08"),
    ("9.99999999999999955e-08", "1e-07"),
    ("9.99999999999999955e-07", "1e-06"),
    ("9.99999999999999912e-06", "9.999999999999999e-06"),
    ("9.99999999999999912e-05", "9.999999999999999e-05"),
    ("1.00000000000000002e-03", "0.001"),
    ("1.00000000000000002e-02", "0.01"),
    ("1.00000000000000006e-01", "0.1"),
    ("1.00000000000000000e+00", "1"),
    ("1.00000000000000000e+01", "10"),
];

#[test]
fn floats_are_written_as_go_writes_them() {
    for (value, go) in GO_FLOATS {
        assert_eq!(format_float(value.parse().unwrap()), *go, "{value}");
    }
    for (value, go) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.0, "-1"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(format_float(value), go);
    }
}

proptest::proptest! {
    #[test]
    fn every_float_reads_back_as_itself(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
        proptest::prop_assert_eq!(format_float(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
}

#[test]
fn a_family_is_written_with_help_type_and_samples_in_order() {
    let registry = Registry::new();
    let histogram = Histogram::with_opts(HistogramOpts::new("b_seconds", "Took.").buckets(vec![0.5, 2.0])).unwrap();
    let counters = IntCounterVec::new(Opts::new("a_total", "Line\nbreak and \\ and \"quote\"."), &["z", "y"]).unwrap();
    let gauge = Gauge::new("c", "Now.").unwrap();
    let empty = IntCounterVec::new(Opts::new("d_total", "Never used."), &["x"]).unwrap();
    registry.register(Box::new(histogram.clone())).unwrap();
    registry.register(Box::new(counters.clone())).unwrap();
    registry.register(Box::new(gauge.clone())).unwrap();
    registry.register(Box::new(empty)).unwrap();
    histogram.observe(0.5);
    histogram.observe(1.0);
    histogram.observe(1e9);
    counters.with_label_values(&["2", "a\"b\\c\nd"]).inc();
    counters.with_label_values(&["1", "x"]).inc_by(1_000_000);
    gauge.set(-0.00001);
    let expected = [
        r#"# HELP a_total Line\nbreak and \\ and "quote"."#,
        "# TYPE a_total counter",
        r#"a_total{y="a\"b\\c\nd",z="2"} 1"#,
        r#"a_total{y="x",z="1"} 1e+06"#,
        "# HELP b_seconds Took.",
        "# TYPE b_seconds histogram",
        r#"b_seconds_bucket{le="0.5"} 1"#,
        r#"b_seconds_bucket{le="2"} 2"#,
        r#"b_seconds_bucket{le="+Inf"} 3"#,
        "b_seconds_sum 1.0000000015e+09",
        "b_seconds_count 3",
        "# HELP c Now.",
        "# TYPE c gauge",
        "c -1e-05",
        "",
    ];
    assert_eq!(encode(&registry), expected.join("\n"));
}

#[test]
fn a_counter_beyond_a_million_is_in_exponent_form_but_a_bucket_count_is_not() {
    let registry = Registry::new();
    let counter = IntCounter::new("a_total", "A.").unwrap();
    let histogram = Histogram::with_opts(HistogramOpts::new("b", "B.").buckets(vec![1e6])).unwrap();
    registry.register(Box::new(counter.clone())).unwrap();
    registry.register(Box::new(histogram.clone())).unwrap();
    counter.inc_by(2_500_000);
    for _ in 0..1_000_001 {
        histogram.observe(1.0);
    }
    let text = encode(&registry);
    assert!(text.contains("a_total 2.5e+06\n"), "{text}");
    assert!(text.contains("b_bucket{le=\"1e+06\"} 1000001\n"), "{text}");
    assert!(text.contains("b_count 1000001\n"), "{text}");
}

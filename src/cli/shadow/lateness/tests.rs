#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn quantiles_are_exact_to_their_step() {
    let rows: [(&str, Vec<i64>, [f64; 3]); 6] = [
        ("no value", vec![], [0.0, 0.0, 0.0]),
        ("one value", vec![7], [0.007, 0.007, 0.007]),
        ("what is early is on time", vec![-5], [0.0, 0.0, 0.0]),
        ("a hundred values", (1..=100).collect(), [0.05, 0.099, 0.1]),
        ("tens of milliseconds from a second on", vec![1_234, 117_019], [1.23, 117.01, 117.019]),
        ("more than a day", vec![100_000_000], [86_400.0, 86_400.0, 100_000.0]),
    ];
    for (name, values, [p50, p99, max]) in rows {
        let mut late = Lateness::default();
        for millis in values {
            late.add(TimeDelta::milliseconds(millis));
        }
        assert_eq!(late.quantiles(), Quantiles { p50, p99, max }, "{name}");
    }
}

#[test]
fn number_of_counts_is_bounded_whatever_the_values_are() {
    let mut late = Lateness::default();
    (0..500_000).for_each(|n| late.add(TimeDelta::milliseconds(n * 400)));
    assert!(late.counts.len() <= 117_001, "{}", late.counts.len());
    assert_eq!(late.len(), 500_000);
}

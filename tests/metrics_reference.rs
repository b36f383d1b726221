//! Compares this controller's exposition with one of the in-tree controller's process.
//!
//! `tests/reference/in-tree-metrics.txt` was scraped from kube-controller-manager v1.37.2 by `tests/reference/record`. All
//! families in it whose names start with `workqueue_`, `cronjob_controller_` or `process_` must appear in this program's output
//! with the same bytes, except for values.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apimachinery::clock::SystemClock;
use cronjob_controller::metrics::{
    ControllerMetrics, LeaderElectionMetrics, ProcessCollector, Registry, RestClientMetrics, encode,
};
use cronjob_controller::workqueue::{Config, Membership, QueueGroup, WorkQueue};

const REFERENCE: &str = include_str!("reference/in-tree-metrics.txt");

/// Families that only this controller has.
const OURS: [&str; 9] = [
    "cronjob_controller_cronjob_pod_delay_seconds",
    "cronjob_controller_job_run_duration_seconds",
    "cronjob_controller_cronjob_start_delay_seconds",
    "cronjob_controller_job_creation_skew_seconds",
    "cronjob_controller_sync_panics_total",
    "cronjob_controller_malformed_objects_total",
    "cronjob_controller_external_jobs_total",
    "cronjob_controller_events_discarded_total",
    "cronjob_controller_instance_conflicts",
];

/// The metric of a line of an exposition.
fn subject(line: &str) -> &str {
    let rest = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
    rest.split([' ', '{']).next().unwrap_or(rest)
}

/// The lines of metrics that start with one of `prefixes`, samples without their values.
fn shape(text: &str, prefixes: &[&str], except: &[&str]) -> Vec<String> {
    text.lines()
        .filter(|line| prefixes.iter().any(|prefix| subject(line).starts_with(prefix)))
        .filter(|line| !except.iter().any(|family| subject(line).starts_with(family)))
        .map(|line| match line.rsplit_once(' ') {
            Some((series, _value)) if !line.starts_with('#') => series.to_owned(),
            _ => line.to_owned(),
        })
        .collect()
}

fn queue(registry: &Registry) -> (WorkQueue<u32>, Membership) {
    let queue = WorkQueue::new(Config::new("cronjob", Arc::new(SystemClock)));
    let member = QueueGroup::register(registry, "cronjob").unwrap().join(&queue);
    (queue, member)
}

#[tokio::test]
async fn the_queues_and_the_controllers_families_are_those_of_the_in_tree_controller() {
    let registry = Registry::new();
    let _queue = queue(&registry);
    let _controller = ControllerMetrics::register(&registry).unwrap();
    let prefixes = ["workqueue_", "cronjob_controller_"];
    let expected = shape(REFERENCE, &prefixes, &[]);
    // Three histograms of 15 lines, five counters and gauges of 3.
    assert_eq!(expected.len(), 3 * 15 + 5 * 3, "the reference is whole");
    assert_eq!(shape(&encode(&registry), &prefixes, &OURS), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn the_processs_families_are_those_of_the_in_tree_controller() {
    let registry = Registry::new();
    ProcessCollector::register(&registry).unwrap();
    let expected = shape(REFERENCE, &["process_"], &[]);
    assert_eq!(expected.len(), 9 * 3, "the reference is whole");
    assert_eq!(shape(&encode(&registry), &["process_"], &[]), expected);
}

#[tokio::test]
async fn everything_can_live_in_one_registry() {
    let registry = Registry::new();
    let _queue = queue(&registry);
    let controller = ControllerMetrics::register(&registry).unwrap();
    let _rest = RestClientMetrics::register(&registry).unwrap();
    let _election = LeaderElectionMetrics::register(&registry).unwrap();
    ProcessCollector::register(&registry).unwrap();
    controller.malformed_objects_total.with_label_values(&["CronJob"]).inc();
    controller.events_discarded_total.with_label_values(&["spam"]).inc();
    controller.instance_conflicts.with_label_values(&["namespaces"]).set(0);
    controller.sync_panics_total.inc();
    let skew = Duration::from_millis(30).as_secs_f64();
    controller.job_creation_skew_duration.observe(skew);
    controller.job_creation_skew.observe(skew);
    let text = encode(&registry);
    for family in OURS {
        assert!(text.contains(&format!("# TYPE {family} ")), "{family} is missing");
    }
    assert!(text.contains("cronjob_controller_job_creation_skew_seconds_bucket{le=\"0.02\"} 0\n"));
    assert!(text.contains("cronjob_controller_job_creation_skew_seconds_bucket{le=\"0.05\"} 1\n"));
    assert!(text.contains("cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"1\"} 1\n"));
    let again = ControllerMetrics::register(&registry).unwrap_err().to_string();
    let expected = "register metric cronjob_controller_job_creation_skew_duration_seconds: ";
    assert!(again.starts_with(expected), "{again}");
}

#[test]
fn rest_client_and_leader_election_families_have_upstreams_names_help_labels_and_buckets() {
    let registry = Registry::new();
    let rest = RestClientMetrics::register(&registry).unwrap();
    let election = LeaderElectionMetrics::register(&registry).unwrap();
    rest.increment_requests("201", "POST", "10.0.0.1:443");
    rest.observe_request_duration("POST", "10.0.0.1:443", Duration::from_millis(30));
    rest.observe_rate_limiter_duration("POST", "10.0.0.1:443", Duration::from_secs(61));
    election.on("cronjob-controller");
    election.on("other");
    election.off("other");
    election.slowpath_exercised("cronjob-controller");
    let histogram = |name: &str, counts: [u64; 13], sum: &str| {
        let bounds = ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "2", "4", "8", "15", "30", "60", "+Inf"];
        let labels = r#"host="10.0.0.1:443",verb="POST""#;
        let buckets = bounds.iter().zip(counts).map(|(le, n)| format!("{name}_bucket{{{labels},le=\"{le}\"}} {n}\n"));
        let total = counts[12];
        format!("{}{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {total}\n", buckets.collect::<String>())
    };
    let expected = [
        "# HELP leader_election_master_status [ALPHA] Gauge of if the reporting system is master of the relevant lease, \
         0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to \
         group by name.\n\
         # TYPE leader_election_master_status gauge\n\
         leader_election_master_status{name=\"cronjob-controller\"} 1\n\
         leader_election_master_status{name=\"other\"} 0\n\
         # HELP leader_election_slowpath_total [ALPHA] Total number of slow path exercised in renewing leader leases. \
         'name' is the string used to identify the lease. Please make sure to group by name.\n\
         # TYPE leader_election_slowpath_total counter\n\
         leader_election_slowpath_total{name=\"cronjob-controller\"} 1\n\
         # HELP rest_client_rate_limiter_duration_seconds [ALPHA] Client side rate limiter latency in seconds. Broken \
         down by verb, and host.\n\
         # TYPE rest_client_rate_limiter_duration_seconds histogram\n",
        &histogram("rest_client_rate_limiter_duration_seconds", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "61"),
        "# HELP rest_client_request_duration_seconds [ALPHA] Request latency in seconds. Broken down by verb, and host.\n\
         # TYPE rest_client_request_duration_seconds histogram\n",
        &histogram("rest_client_request_duration_seconds", [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "0.03"),
        "# HELP rest_client_requests_total [ALPHA] Number of HTTP requests, partitioned by status code, method, and \
         host.\n\
         # TYPE rest_client_requests_total counter\n\
         rest_client_requests_total{code=\"201\",host=\"10.0.0.1:443\",method=\"POST\"} 1\n",
    ];
    assert_eq!(encode(&registry), expected.concat());
}

/// Checks every histogram of an exposition; returns how many there were.
fn check_histograms(text: &str) -> usize {
    let mut last_bucket: BTreeMap<String, u64> = BTreeMap::new();
    let mut checked = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        if let Some((name, labels)) = series.split_once("_bucket{") {
            let count: u64 = value.parse().unwrap();
            let (labels, _le) = labels.rsplit_once("le=").unwrap();
            let before = last_bucket.insert(format!("{name}{{{}", labels.trim_end_matches(',')), count);
            assert!(before.unwrap_or(0) <= count, "{series} falls\n{text}");
        } else if let Some((name, labels)) = series.split_once("_count") {
            let key = format!("{name}{{{}", labels.trim_matches(['{', '}']));
            assert_eq!(last_bucket.get(&key).copied(), value.parse().ok(), "+Inf of {key}\n{text}");
            checked += 1;
        }
    }
    checked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_infinite_bucket_is_the_count_also_while_observations_race_with_the_scrape() {
    let registry = Registry::new();
    let (queue, _member) = queue(&registry);
    let controller = ControllerMetrics::register(&registry).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let observers: Vec<_> = (0..3u32)
        .map(|observer| {
            let (queue, controller, stop) = (queue.clone(), controller.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    let skew = Duration::from_millis(round % 3000).as_secs_f64();
                    controller.job_creation_skew_duration.observe(skew);
                    controller.job_creation_skew.observe(skew);
                    queue.add(observer);
                    if let Some(key) = queue.get().await {
                        queue.done(&key);
                    }
                    round += 1;
                }
                round
            })
        })
        .collect();
    for _ in 0..300 {
        assert_eq!(check_histograms(&encode(&registry)), 8);
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Relaxed);
    queue.shut_down();
    let mut rounds = 0;
    for observer in observers {
        rounds += observer.await.unwrap();
    }
    assert_eq!(controller.job_creation_skew.get_sample_count(), rounds);
    assert_eq!(check_histograms(&encode(&registry)), 8);
}

//! The parsers on text from /proc, and the collector on the test's own process.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

use super::*;
use crate::metrics::encode;

#[test]
fn stat_is_read_past_a_command_with_spaces_and_parentheses() {
    let text = "4242 (a b) (c)) S 1 4242 4242 0 -1 4194560 2095 0 3 0 17 25 0 0 20 0 9 0 1234567 1416101888 23734 \
                18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0";
    let expected =
        Stat { cpu_ticks: 42.0, start_ticks: 1_234_567.0, virtual_bytes: 1_416_101_888.0, resident_pages: 23_734.0 };
    assert_eq!(parse_stat(text), Some(expected));
}

#[test]
fn truncated_or_non_numeric_text_has_no_value() {
    assert_eq!(parse_stat(""), None);
    assert_eq!(parse_stat("1 (x) S 1 2"), None);
    assert_eq!(parse_boot_time("cpu 1 2 3\n"), None);
    assert_eq!(parse_limit("Max open files  many\n", "Max open files"), None);
    assert_eq!(parse_limit("", "Max open files"), None);
    assert_eq!(parse_ip_ext("IpExt: InOctets\n", "InOctets"), None);
    assert_eq!(parse_ip_ext("TcpExt: InOctets\nTcpExt: 4\n", "InOctets"), None);
}

#[test]
fn limits_are_soft_limits_and_unlimited_is_the_greatest_number() {
    let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                Max address space         unlimited            unlimited            bytes     \n\
                Max open files            20000                524288               files     \n";
    assert_eq!(parse_limit(text, "Max open files"), Some(20_000.0));
    assert_eq!(parse_limit(text, "Max address space"), Some(18_446_744_073_709_551_615.0));
}

#[test]
fn network_bytes_come_from_the_column_under_the_name() {
    let text = "TcpExt: InOctets\nTcpExt: 9\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 1128118188 689739865\n";
    assert_eq!(parse_ip_ext(text, "InOctets"), Some(1_128_118_188.0));
    assert_eq!(parse_ip_ext(text, "OutOctets"), Some(689_739_865.0));
}

#[test]
fn boot_time_is_found_among_the_other_lines() {
    assert_eq!(parse_boot_time("cpu  1 2\nintr 5\nbtime 1795196000\nprocesses 3\n"), Some(1_795_196_000.0));
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_has_all_nine_and_plausible_values() {
    let registry = Registry::new();
    ProcessCollector::register(&registry).unwrap();
    let text = encode(&registry);
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing in\n{text}")).parse().unwrap()
    };
    assert!(value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
    assert!(value("process_virtual_memory_max_bytes") > 1e6);
    assert!(value("process_open_fds") >= 3.0);
    assert!(value("process_max_fds") >= value("process_open_fds"));
    assert!(value("process_start_time_seconds") > 1.6e9);
    assert!(value("process_network_receive_bytes_total") >= 0.0);
    assert!(value("process_network_transmit_bytes_total") >= 0.0);
}

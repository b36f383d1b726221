//! Validates the flags' texts and builds a [`Config`].
//!
//! Guarantees: every flag is validated even after an earlier one was refused, so that one run reports all faults. Rules
//! between two flags are checked only where both are valid on their own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use apimachinery::names::{dns_label_errors, subdomain_errors};

use super::flags::RawFlags;
use super::go_syntax::{format_duration, parse_bool, parse_duration, parse_float, parse_int};
use super::{
    Config, DEFAULT_LEASE_NAMESPACE, Environment, LeaderElectionConfig, LogFormat, PolicyOptions, Publish, RateLimit,
    UsageError, controllers, secure, webhook,
};
use crate::leader_election::{JITTER_FACTOR, whole_seconds};

/// The largest number of Go's `int32`, the type of upstream's flags.
const MAX_INT32: i64 = 2_147_483_647;

/// The faults found so far.
#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Records that a flag's value is not allowed.
    pub(crate) fn add(&mut self, flag: &str, value: &str, use_instead: &str) {
        // An empty or spaced value would be invisible or misread in the middle of a sentence.
        let quote = value.is_empty() || value.contains(|c: char| c.is_whitespace() || c.is_control());
        let value = if quote { format!("{value:?}") } else { value.to_owned() };
        self.0.push(format!("--{flag}: {value} is not allowed; use {use_instead}"));
    }

    /// What was read; a fault, in its own words, is recorded.
    pub(crate) fn record<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|fault| self.0.push(fault)).ok()
    }

    /// The value as `read` parses it; without one a fault is recorded.
    pub(crate) fn read<T>(
        &mut self,
        flag: &str,
        text: &str,
        use_instead: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = read(text);
        if value.is_none() {
            self.add(flag, text, use_instead);
        }
        value
    }

    /// The value of a boolean flag.
    pub(crate) fn boolean(&mut self, flag: &str, text: &str) -> Option<bool> {
        self.read(flag, text, "true or false", parse_bool)
    }

    /// The value of a flag that takes the whole numbers of this range.
    pub(crate) fn whole<T: TryFrom<i64>>(&mut self, flag: &str, text: &str, range: RangeInclusive<i64>) -> Option<T> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(flag, text, &allowed, |text| parse_int(text).filter(|n| range.contains(n))?.try_into().ok())
    }

    /// The faults as an error, where there is at least one.
    pub(crate) fn into_error(self) -> UsageError {
        UsageError { sentences: self.0 }
    }

    /// The faults as an error, if there are any.
    pub(crate) fn into_result(self) -> Result<(), UsageError> {
        if self.0.is_empty() { Ok(()) } else { Err(self.into_error()) }
    }
}

/// Whether the command line asks for the version.
pub(super) fn version_asked(raw: &RawFlags) -> Result<bool, UsageError> {
    let mut faults = Faults::default();
    faults.boolean("version", &raw.version).ok_or_else(|| faults.into_error())
}

/// Validates all values.
///
/// # Errors
/// One sentence per fault.
pub(super) fn resolve(raw: &RawFlags, env: &dyn Environment) -> Result<Config, UsageError> {
    let mut faults = Faults::default();
    // In the order of `--help`. A value that could not be parsed is a fault already; its placeholder never leaves this
    // function.
    let kube_api = kube_api(raw, &mut faults);
    let leader_election = leader_election(raw, env, &mut faults);
    let syncs = faults.whole("concurrent-cronjob-syncs", &raw.concurrent_cronjob_syncs, 1..=MAX_INT32);
    let controllers = controllers::resolve(&raw.controllers, &mut faults);
    let manage = controllers::manage(raw, &controllers, &mut faults);
    let policies = faults.boolean("policies", &raw.policies);
    let publish = publish(&raw.publish, &mut faults);
    let namespaces = namespaces(raw, &mut faults);
    let cronjob_metrics = faults.whole("cronjob-metrics", &raw.cronjob_metrics, 0..=MAX_INT32);
    let secure = secure::resolve(raw, &mut faults);
    let metrics_addr = plain_address("metrics-bind-address", &raw.metrics_bind_address, &mut faults);
    let health_addr = plain_address("health-probe-bind-address", &raw.health_probe_bind_address, &mut faults);
    let webhook = webhook::resolve(raw, &controllers, env, &mut faults);
    let encrypted = [
        ("secure-port", secure.as_ref().map(|secure| secure.addr)),
        ("webhook-port", webhook.as_ref().map(|webhook| webhook.addr)),
    ];
    different_addresses(encrypted, metrics_addr, health_addr, &mut faults);
    let logging_format = faults.read("logging-format", &raw.logging_format, "text or json", LogFormat::parse);
    let verbosity = faults.whole("v", &raw.v, 0..=10);
    let master = master(raw, &mut faults);

    faults.into_result()?;
    Ok(Config {
        kubeconfig: path(&raw.kubeconfig),
        master,
        controllers,
        manage: manage.unwrap_or_default(),
        policies: PolicyOptions { enabled: policies.unwrap_or(true), seed: raw.spread_seed.as_str().into() },
        publish,
        concurrent_cronjob_syncs: syncs.and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN),
        kube_api,
        leader_election,
        secure,
        metrics_addr,
        health_addr,
        webhook,
        namespaces,
        cronjob_metrics: cronjob_metrics.and_then(NonZeroUsize::new),
        verbosity: verbosity.unwrap_or_default(),
        logging_format: logging_format.unwrap_or_default(),
    })
}

pub(crate) fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// kube-controller-manager's burst, for a rate without one.
const UPSTREAM_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// -1 is the only negative value. Upstream accepts any, but another one is surely a mistake.
fn kube_api(raw: &RawFlags, faults: &mut Faults) -> Option<RateLimit> {
    #[allow(clippy::float_cmp)] // -1 is exact.
    let qps = faults.read("kube-api-qps", &raw.kube_api_qps, "a positive rate, or -1 for no limit", |text| {
        parse_float(text).filter(|qps| *qps > 0.0 || *qps == -1.0)
    });
    let burst =
        faults.read("kube-api-burst", &raw.kube_api_burst, "a positive whole number, or -1 for no limit", |text| {
            parse_int(text).and_then(|n| i32::try_from(n).ok()).filter(|n| *n > 0 || *n == -1)
        });
    let (qps, burst) = (qps.filter(|qps| *qps > 0.0)?, burst?);
    let burst = u32::try_from(burst).ok().and_then(NonZeroU32::new).unwrap_or(UPSTREAM_BURST);
    Some(RateLimit { qps, burst })
}

/// Matches `ValidateLeaderElectionConfiguration` (component-base) and `NewLeaderElector` (client-go). As there, only
/// the syntax is checked while leader election is off.
fn leader_election(raw: &RawFlags, env: &dyn Environment, faults: &mut Faults) -> Option<LeaderElectionConfig> {
    let on = faults.boolean("leader-elect", &raw.leader_elect).unwrap_or(false);
    let mut duration = |flag: &str, text: &str| {
        faults.read(flag, text, "a duration above zero, such as 15s or 1m30s", |text| {
            let nanos = parse_duration(text)?;
            let above_zero = u64::try_from(nanos).ok().filter(|nanos| *nanos > 0);
            if on { above_zero.map(Duration::from_nanos) } else { Some(Duration::ZERO) }
        })
    };
    let lease = duration("leader-elect-lease-duration", &raw.leader_elect_lease_duration);
    let renew = duration("leader-elect-renew-deadline", &raw.leader_elect_renew_deadline);
    let retry = duration("leader-elect-retry-period", &raw.leader_elect_retry_period);
    if !on {
        return None;
    }
    durations_in_order(raw, [lease, renew, retry], faults);
    if raw.leader_elect_resource_lock != "leases" {
        faults.add("leader-elect-resource-lock", &raw.leader_elect_resource_lock, "leases, the only kind of lock");
    }
    let name = raw.leader_elect_resource_name.clone();
    if !subdomain_errors(&name).is_empty() {
        faults.add("leader-elect-resource-name", &name, SUBDOMAIN);
    }
    let namespace = raw.leader_elect_resource_namespace.clone();
    let namespace = namespace.unwrap_or_else(|| own_namespace(env));
    if !dns_label_errors(&namespace).is_empty() {
        faults.add("leader-elect-resource-namespace", &namespace, LABEL);
    }
    if name == "kube-controller-manager" && namespace == DEFAULT_LEASE_NAMESPACE {
        faults.add("leader-elect-resource-name", &name, "another name: this Lease is kube-controller-manager's own");
    }
    Some(LeaderElectionConfig {
        namespace,
        name,
        lease_duration: lease.unwrap_or_default(),
        renew_deadline: renew.unwrap_or_default(),
        retry_period: retry.unwrap_or_default(),
    })
}

fn durations_in_order(raw: &RawFlags, [lease, renew, retry]: [Option<Duration>; 3], faults: &mut Faults) {
    if let (Some(lease), Some(renew)) = (lease, renew)
        && lease <= renew
    {
        let than = format!("more than --leader-elect-renew-deadline, {}", format_duration(renew));
        faults.add("leader-elect-lease-duration", &raw.leader_elect_lease_duration, &than);
    } else if lease.is_some_and(|lease| i32::try_from(whole_seconds(lease)).is_err()) {
        let most = "at most 2147483647s, which is as much as a Lease holds";
        faults.add("leader-elect-lease-duration", &raw.leader_elect_lease_duration, most);
    }
    if let (Some(renew), Some(retry)) = (renew, retry)
        && renew <= retry.mul_f64(JITTER_FACTOR)
    {
        let than = format!("more than {JITTER_FACTOR} times --leader-elect-retry-period, {}", format_duration(retry));
        faults.add("leader-elect-renew-deadline", &raw.leader_elect_renew_deadline, &than);
    }
}

fn publish(lists: &[String], faults: &mut Faults) -> Publish {
    secure::values(lists).fold(Publish::default(), |publish, name| {
        faults.read("publish", name, "next-run, last-failure or both", |name| publish.with(name)).unwrap_or(publish)
    })
}

fn namespaces(raw: &RawFlags, faults: &mut Faults) -> Vec<String> {
    // `--namespace=` alone has no effect, as pflag reads an empty slice; an empty name between commas is a mistake.
    let mut names: Vec<String> = secure::values(&raw.namespace).map(str::to_owned).collect();
    for name in names.iter().filter(|name| !dns_label_errors(name).is_empty()) {
        faults.add("namespace", name, LABEL);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// A port on the address of --bind-address, which is validated elsewhere; 0 is off.
pub(super) fn listener(raw: &RawFlags, flag: &str, port: &str, faults: &mut Faults) -> Option<SocketAddr> {
    let port = faults
        .read(flag, port, "a port from 1 to 65535, or 0 to turn it off", |text| u16::try_from(parse_int(text)?).ok());
    Some(SocketAddr::new(ip(&raw.bind_address)?, port.filter(|port| *port != 0)?))
}

/// An empty text means every interface: pflag keeps the default then.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    if text.is_empty() { Some(Ipv4Addr::UNSPECIFIED.into()) } else { text.parse().ok() }
}

/// `0` or an empty text is off; `:8080`, `127.0.0.1:8080`, `[::1]:8080` and `localhost:8080` are addresses. Other host
/// names would need a resolver, and their addresses may change.
pub(crate) fn plain_address(flag: &str, text: &str, faults: &mut Faults) -> Option<SocketAddr> {
    if text.is_empty() || text == "0" {
        return None;
    }
    faults.read(flag, text, "an address such as :8080 or 127.0.0.1:8080, or 0 to turn it off", |text| {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse::<u16>().ok().filter(|port| *port != 0)?;
        match host {
            "" => Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
            "localhost" => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)),
            _ => text.parse().ok(),
        }
    })
}

/// Metrics and health checks may share an address, as one listener; no other listeners may share one.
fn different_addresses(
    [secure, webhook]: [(&str, Option<SocketAddr>); 2],
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
    faults: &mut Faults,
) {
    let metrics = ("metrics-bind-address", metrics);
    let health = ("health-probe-bind-address", health);
    let pairs = [(webhook, secure), (metrics, secure), (health, secure), (metrics, webhook), (health, webhook)];
    for ((flag, mine), (owner, other)) in pairs {
        if let Some(addr) = mine.filter(|_| mine == other) {
            faults.add(flag, &addr.to_string(), &format!("another address: this one is --{owner}'s"));
        }
    }
}

/// A URL, or `host:port` to which the client adds the scheme, as client-go does.
fn master(raw: &RawFlags, faults: &mut Faults) -> Option<String> {
    if raw.master.is_empty() {
        return None;
    }
    // Credentials in a URL would show up in logs and in /configz.
    faults.read("master", &raw.master, "a URL without credentials, such as https://10.0.0.1:6443", |text| {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let uri: http::Uri = format!("{scheme}://{rest}").parse().ok()?;
        let plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        (plain && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()).then(|| text.to_owned())
    })
}

/// The namespace of the objects that this process keeps on the server.
pub(super) fn own_namespace(env: &dyn Environment) -> String {
    env.pod_namespace().unwrap_or_else(|| DEFAULT_LEASE_NAMESPACE.to_owned())
}

pub(super) const LABEL: &str = "a namespace's name: lower case letters, digits and '-', at most 63";

pub(super) const SUBDOMAIN: &str = "lower case letters, digits, '-' and '.', at most 253";

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::api::Publish;
use crate::server::{TlsParameters, TlsVersion};

/// A process in a Pod of this namespace, or outside any Pod.
struct Fake(Option<&'static str>);

impl Environment for Fake {
    fn pod_namespace(&self) -> Option<String> {
        self.0.map(str::to_owned)
    }

    fn temp_dir(&self) -> PathBuf {
        "/temporary".into()
    }
}

fn parse_line(args: &[&str]) -> Result<Command, UsageError> {
    parse([PROGRAM].iter().chain(args), &Fake(None))
}

#[track_caller]
fn config(args: &[&str]) -> Config {
    match parse_line(args) {
        Ok(Command::Run(config)) => *config,
        other => panic!("{args:?} gives {other:?}"),
    }
}

fn defaults() -> Config {
    Config {
        kubeconfig: None,
        master: None,
        controllers: vec![ControllerKind::CronJob],
        manage: Manage::All,
        policies: PolicyOptions::default(),
        publish: Publish::default(),
        concurrent_cronjob_syncs: NonZeroUsize::new(64).unwrap(),
        kube_api: None,
        leader_election: Some(election()),
        secure: Some(serving()),
        metrics_addr: None,
        health_addr: None,
        webhook: None,
        namespaces: vec![],
        cronjob_metrics: None,
        verbosity: 0,
        logging_format: LogFormat::Text,
    }
}

fn serving() -> SecureServing {
    let ttl = Duration::from_secs(10);
    SecureServing {
        addr: "0.0.0.0:10257".parse().unwrap(),
        certificate: None,
        tls: TlsParameters { client_certificates: true, ..TlsParameters::default() },
        authentication: AuthenticationConfig {
            kubeconfig: None,
            token_audiences: Vec::new(),
            token_cache_ttl: ttl,
            client_ca: ClientCaConfig::Cluster,
            tolerate_lookup_failure: true,
        },
        authorization: AuthorizationConfig {
            kubeconfig: None,
            always_allow_paths: ["/healthz", "/readyz", "/livez"].map(str::to_owned).to_vec(),
            authorized_ttl: ttl,
            unauthorized_ttl: ttl,
        },
    }
}

fn serve(change: impl FnOnce(&mut SecureServing)) -> Config {
    let mut secure = serving();
    change(&mut secure);
    Config { secure: Some(secure), ..defaults() }
}

fn election() -> LeaderElectionConfig {
    LeaderElectionConfig {
        namespace: "kube-system".to_owned(),
        name: "cronjob-controller".to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    }
}

fn syncs(n: usize) -> Config {
    Config { concurrent_cronjob_syncs: NonZeroUsize::new(n).unwrap(), ..defaults() }
}

fn limit(qps: f64, burst: u32) -> Config {
    Config { kube_api: Some(RateLimit { qps, burst: NonZeroU32::new(burst).unwrap() }), ..defaults() }
}

fn elect(change: impl FnOnce(&mut LeaderElectionConfig)) -> Config {
    let mut election = election();
    change(&mut election);
    Config { leader_election: Some(election), ..defaults() }
}

fn no_election() -> Config {
    Config { leader_election: None, ..defaults() }
}

fn secure(addr: &str, tls: Option<(&str, &str)>) -> Config {
    serve(|secure| {
        secure.addr = addr.parse().unwrap();
        secure.certificate = tls.map(|(cert, key)| (cert.into(), key.into()));
    })
}

fn metrics(addr: &str) -> Config {
    Config { metrics_addr: Some(addr.parse().unwrap()), ..defaults() }
}

fn only(namespaces: &[&str]) -> Config {
    Config { namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(), ..defaults() }
}

fn publishing(next_run: bool, last_failure: bool) -> Config {
    Config { publish: Publish { next_run, last_failure }, ..defaults() }
}

fn kubeconfig(path: &str) -> Config {
    Config { kubeconfig: Some(path.into()), ..defaults() }
}

fn master(url: &str) -> Config {
    Config { master: Some(url.to_owned()), ..defaults() }
}

fn tutorial(addr: &str, certificate: WebhookCertificate) -> Config {
    let webhook = Some(WebhookConfig { addr: addr.parse().unwrap(), certificate, tls: TlsParameters::default() });
    Config { controllers: vec![ControllerKind::Tutorial], webhook, ..defaults() }
}

fn cert_dir(directory: &str) -> WebhookCertificate {
    WebhookCertificate::Directory(directory.into())
}

fn self_signed() -> SelfSignedWebhook {
    SelfSignedWebhook {
        namespace: "kube-system".to_owned(),
        secret: "cronjob-controller-webhook-cert".to_owned(),
        service: "cronjob-controller-webhook".to_owned(),
        mutating: "cronjob-controller-mutating-webhook".to_owned(),
        validating: "cronjob-controller-validating-webhook".to_owned(),
    }
}

fn verbosity(verbosity: u8) -> Config {
    Config { verbosity, ..defaults() }
}

#[test]
fn flags_are_cut_up_as_pflag_cuts_them() {
    let rows: Vec<(&str, &[&str], Config)> = vec![
        ("no flag gives the defaults", &[], defaults()),
        ("a value behind an equals sign", &["--kubeconfig=/etc/k"], kubeconfig("/etc/k")),
        ("a value as the next argument", &["--kubeconfig", "/etc/k"], kubeconfig("/etc/k")),
        (
            "the next argument is the value even if it looks like a flag",
            &["--kubeconfig", "--v_1"],
            kubeconfig("--v_1"),
        ),
        ("a value may hold an equals sign", &["--kubeconfig=a=b"], kubeconfig("a=b")),
        ("an empty value is as good as none", &["--kubeconfig="], defaults()),
        ("the next argument may be empty too", &["--kubeconfig", ""], defaults()),
        ("of a repeated flag the last wins", &["--v=1", "--kubeconfig=a", "--kubeconfig=b", "-v", "2"], {
            Config { verbosity: 2, ..kubeconfig("b") }
        }),
        ("an underscore counts as a dash", &["--kube_api_qps=5", "--kube-api_burst", "7"], limit(5.0, 7)),
        ("a boolean alone is true", &["--leader-elect"], defaults()),
        ("a boolean takes its value behind an equals sign", &["--leader-elect=false"], no_election()),
        ("0 is false", &["--leader-elect=0"], no_election()),
        ("F is false", &["--leader_elect=F"], no_election()),
        ("TRUE is true", &["--leader-elect=TRUE"], defaults()),
        ("the last boolean wins", &["--leader-elect=false", "--leader-elect"], defaults()),
        ("-v=4", &["-v=4"], verbosity(4)),
        ("-v 4", &["-v", "4"], verbosity(4)),
        ("-v4", &["-v4"], verbosity(4)),
        ("--v=4", &["--v=4"], verbosity(4)),
        ("--v 4", &["--v", "4"], verbosity(4)),
        ("two dashes end the flags", &["--v=1", "--"], verbosity(1)),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(config(args), want, "{sentence}: {args:?}");
    }
}

#[test]
fn every_flag_has_upstreams_meaning() {
    let pair = Some(("c.pem", "k.pem"));
    let rows: Vec<(&str, &[&str], Config)> = vec![
        ("the number of workers", &["--concurrent-cronjob-syncs=5"], syncs(5)),
        ("its name in kube-controller-manager", &["--concurrent-cron-job-syncs", "7"], syncs(7)),
        ("both names are one flag", &["--concurrent-cron-job-syncs=7", "--concurrent-cronjob-syncs=5"], syncs(5)),
        ("a hexadecimal number, as Go reads it", &["--concurrent-cronjob-syncs=0x10"], syncs(16)),
        ("-1 is no limit", &["--kube-api-qps", "-1", "--kube-api-burst", "-1"], defaults()),
        ("a burst without a rate limits nothing", &["--kube-api-burst=30"], defaults()),
        ("a rate with its burst", &["--kube-api-qps=20", "--kube-api-burst=30"], limit(20.0, 30)),
        ("a rate without a burst has upstream's", &["--kube-api-qps=50"], limit(50.0, 30)),
        ("a rate may be a fraction", &["--kube-api-qps=0.5", "--kube-api-burst=1"], limit(0.5, 1)),
        ("a lease of minutes", &["--leader-elect-lease-duration=1m30s"], {
            elect(|e| e.lease_duration = Duration::from_secs(90))
        }),
        ("a deadline just beyond the jittered retry", &["--leader-elect-renew-deadline=2401ms"], {
            elect(|e| e.renew_deadline = Duration::from_millis(2401))
        }),
        ("a retry period in milliseconds", &["--leader-elect-retry-period=100ms"], {
            elect(|e| e.retry_period = Duration::from_millis(100))
        }),
        ("the only kind of lock", &["--leader-elect-resource-lock=leases"], defaults()),
        (
            "a Lease of another name",
            &["--leader-elect-resource-name=my.cron"],
            elect(|e| e.name = "my.cron".to_owned()),
        ),
        ("a Lease in another namespace", &["--leader-elect-resource-namespace=ops"], {
            elect(|e| e.namespace = "ops".to_owned())
        }),
        (
            "upstream's lock name is free elsewhere",
            &["--leader-elect-resource-name=kube-controller-manager", "--leader-elect-resource-namespace=ops"],
            elect(|e| (e.name, e.namespace) = ("kube-controller-manager".to_owned(), "ops".to_owned())),
        ),
        (
            "what leader election would refuse is not judged while it is off",
            &["--leader-elect=false", "--leader-elect-lease-duration=0", "--leader-elect-resource-lock=endpoints"],
            no_election(),
        ),
        ("port 0 is off", &["--secure-port=0"], Config { secure: None, ..defaults() }),
        ("another port", &["--secure-port=8443"], secure("0.0.0.0:8443", None)),
        ("another address", &["--bind-address=127.0.0.1"], secure("127.0.0.1:10257", None)),
        ("an IPv6 address", &["--bind-address", "::"], secure("[::]:10257", None)),
        ("a certificate with its key", &["--tls-cert-file=c.pem", "--tls-private-key-file=k.pem"], {
            secure("0.0.0.0:10257", pair)
        }),
        ("metrics off", &["--metrics-bind-address=0"], defaults()),
        ("metrics off by nothing", &["--metrics-bind-address="], defaults()),
        ("no address is every address", &["--bind-address="], defaults()),
        ("metrics on a port of every address", &["--metrics-bind-address=:8080"], metrics("0.0.0.0:8080")),
        ("metrics on one address", &["--metrics-bind-address=127.0.0.1:8080"], metrics("127.0.0.1:8080")),
        ("metrics on one IPv6 address", &["--metrics-bind-address=[::1]:8080"], metrics("[::1]:8080")),
        ("metrics on localhost", &["--metrics-bind-address=localhost:8080"], metrics("127.0.0.1:8080")),
        ("health checks on a port", &["--health-probe-bind-address", ":8081"], {
            Config { health_addr: Some("0.0.0.0:8081".parse().unwrap()), ..defaults() }
        }),
        (
            "metrics and health checks on one address",
            &["--metrics-bind-address=:1", "--health-probe-bind-address=:1"],
            { Config { health_addr: Some("0.0.0.0:1".parse().unwrap()), ..metrics("0.0.0.0:1") } },
        ),
        ("what was handed over", &["--manage=annotated"], Config { manage: Manage::Annotated, ..defaults() }),
        (
            "no policies",
            &["--policies=false"],
            Config { policies: PolicyOptions { enabled: false, seed: "".into() }, ..defaults() },
        ),
        (
            "offsets of its own",
            &["--spread-seed=blue"],
            Config { policies: PolicyOptions { enabled: true, seed: "blue".into() }, ..defaults() },
        ),
        ("published times", &["--publish=next-run,last-failure"], publishing(true, true)),
        ("one of them, said twice", &["--publish=next-run", "--publish=next-run"], publishing(true, false)),
        ("one namespace", &["--namespace=a"], only(&["a"])),
        ("namespaces pile up, sorted, each once", &["--namespace=c,a", "--namespace", "b,a"], only(&["a", "b", "c"])),
        ("an empty list is all namespaces", &["--namespace="], defaults()),
        ("the most that is logged", &["--v=10"], verbosity(10)),
        (
            "metrics of some CronJobs",
            &["--cronjob-metrics=20"],
            Config { cronjob_metrics: NonZeroUsize::new(20), ..defaults() },
        ),
        (
            "metrics of as many CronJobs as is sensible",
            &["--cronjob-metrics"],
            Config { cronjob_metrics: NonZeroUsize::new(5000), ..defaults() },
        ),
        ("log lines as JSON", &["--logging-format=json"], Config { logging_format: LogFormat::Json, ..defaults() }),
        ("an address of the server", &["--master=https://10.0.0.1:6443"], master("https://10.0.0.1:6443")),
        ("a server without a scheme", &["--master=localhost:8080"], master("localhost:8080")),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(config(args), want, "{sentence}: {args:?}");
    }
}

#[test]
fn controllers_are_listed_as_kube_controller_manager_lists_its_own() {
    use ControllerKind::{ApiExample, CronJob, Tutorial};
    let rows: Vec<(&str, &[&str], Vec<ControllerKind>)> = vec![
        ("the default", &[], vec![CronJob]),
        ("one by name", &["--controllers=tutorial"], vec![Tutorial]),
        ("upstream's canonical name", &["--controllers=cronjob-controller"], vec![CronJob]),
        ("all", &["--controllers=*"], vec![CronJob, Tutorial, ApiExample]),
        ("all but one", &["--controllers=*,-cronjob"], vec![Tutorial, ApiExample]),
        ("all but one, by upstream's name", &["--controllers=-cronjob-controller,*"], vec![Tutorial, ApiExample]),
        ("the first mention decides", &["--controllers=tutorial,-tutorial"], vec![Tutorial]),
        ("so it does off", &["--controllers=-tutorial,tutorial,apiexample"], vec![ApiExample]),
        ("lists pile up", &["--controllers=apiexample", "--controllers", "cronjob"], vec![CronJob, ApiExample]),
        ("a name twice", &["--controllers=cronjob,cronjob-controller"], vec![CronJob]),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(config(args).controllers, want, "{sentence}: {args:?}");
    }
}

#[test]
fn webhooks_run_where_the_tutorials_controller_does() {
    const ON: &str = "--controllers=tutorial";
    let own = |change: fn(&mut SelfSignedWebhook)| {
        let mut own = self_signed();
        change(&mut own);
        WebhookCertificate::SelfSigned(own)
    };
    let default = || cert_dir("/temporary/k8s-webhook-server/serving-certs");
    let rows: Vec<(&str, &[&str], Config)> = vec![
        ("off without it, whatever the flags say", &["--webhook-port=1", "--webhook-self-signed"], defaults()),
        ("controller-runtime's port and directory", &[ON], tutorial("0.0.0.0:9443", default())),
        ("another port", &[ON, "--webhook-port=8443"], tutorial("0.0.0.0:8443", default())),
        ("another directory", &[ON, "--webhook-cert-dir=/certs"], tutorial("0.0.0.0:9443", cert_dir("/certs"))),
        ("a certificate of our own", &[ON, "--webhook-self-signed"], tutorial("0.0.0.0:9443", own(|_| ()))),
        (
            "under other names",
            &[ON, "--webhook-self-signed", "--webhook-secret=s", "--webhook-service=w", "--webhook-namespace=n"],
            tutorial(
                "0.0.0.0:9443",
                own(|own| {
                    (own.secret, own.service, own.namespace) = ("s".to_owned(), "w".to_owned(), "n".to_owned());
                }),
            ),
        ),
        (
            "other configurations",
            &[
                ON,
                "--webhook-self-signed",
                "--webhook-mutating-configuration=m",
                "--webhook-validating-configuration=v",
            ],
            tutorial("0.0.0.0:9443", own(|own| (own.mutating, own.validating) = ("m".to_owned(), "v".to_owned()))),
        ),
        ("port 0 is off", &[ON, "--webhook-port=0"], Config { webhook: None, ..tutorial("0.0.0.0:1", default()) }),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(config(args), want, "{sentence}: {args:?}");
    }
    let on_loopback = config(&[ON, "--bind-address=127.0.0.1"]).webhook.unwrap();
    assert_eq!(on_loopback.addr, "127.0.0.1:9443".parse().unwrap(), "--bind-address counts here too");
}

#[test]
fn the_secure_port_is_set_as_kube_controller_managers_is() {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let minute = Duration::from_secs(60);
    let rows: Vec<(&str, &[&str], Config)> = vec![
        ("upstream's default version", &["--tls-min-version="], defaults()),
        ("TLS 1.2", &["--tls-min-version=VersionTLS12"], defaults()),
        ("TLS 1.3", &["--tls-min-version=VersionTLS13"], serve(|secure| secure.tls.min_version = TlsVersion::Tls13)),
        ("the default suites", &["--tls-cipher-suites="], defaults()),
        (
            "suites pile up",
            &[
                "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "--tls-cipher-suites",
                "TLS_AES_128_GCM_SHA256",
            ],
            serve(|secure| {
                secure.tls.cipher_suites = own(&["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"]);
            }),
        ),
        (
            "Go's old names",
            &["--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"],
            serve(|secure| secure.tls.cipher_suites = own(&["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"])),
        ),
        (
            "a client CA",
            &["--client-ca-file=/ca", "--authentication-skip-lookup"],
            serve(|secure| secure.authentication.client_ca = ClientCaConfig::File("/ca".into())),
        ),
        (
            "no client CA, and no question for certificates",
            &["--authentication-skip-lookup"],
            serve(|secure| {
                secure.authentication.client_ca = ClientCaConfig::None;
                secure.tls.client_certificates = false;
            }),
        ),
        (
            "a client CA that must be there",
            &["--authentication-tolerate-lookup-failure=false"],
            serve(|secure| secure.authentication.tolerate_lookup_failure = false),
        ),
        (
            "other connections",
            &["--authentication-kubeconfig=/n", "--authorization-kubeconfig=/z"],
            serve(|secure| {
                secure.authentication.kubeconfig = Some("/n".into());
                secure.authorization.kubeconfig = Some("/z".into());
            }),
        ),
        (
            "other audiences",
            &["--authentication-token-audiences=a,b", "--authentication-token-audiences=c"],
            serve(|secure| secure.authentication.token_audiences = own(&["a", "b", "c"])),
        ),
        (
            "other times",
            &[
                "--authentication-token-webhook-cache-ttl=1m",
                "--authorization-webhook-cache-authorized-ttl=0",
                "--authorization-webhook-cache-unauthorized-ttl=60s",
            ],
            serve(|secure| {
                secure.authentication.token_cache_ttl = minute;
                secure.authorization.authorized_ttl = Duration::ZERO;
                secure.authorization.unauthorized_ttl = minute;
            }),
        ),
        (
            "other paths",
            &["--authorization-always-allow-paths=/metrics,/health*", "--authorization-always-allow-paths=*"],
            serve(|secure| secure.authorization.always_allow_paths = own(&["/metrics", "/health*", "*"])),
        ),
        (
            "no path",
            &["--authorization-always-allow-paths="],
            serve(|secure| secure.authorization.always_allow_paths.clear()),
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(config(args), want, "{sentence}: {args:?}");
    }
    let webhook = config(&["--controllers=tutorial", "--tls-min-version=VersionTLS13"]).webhook.unwrap();
    assert_eq!(webhook.tls.min_version, TlsVersion::Tls13, "the webhooks' listener speaks what the others do");
    assert!(!webhook.tls.client_certificates);
}

#[test]
#[allow(clippy::too_many_lines)] // A table.
fn a_wrong_value_is_one_sentence_with_flag_value_and_remedy() {
    let rows: Vec<(&[&str], &str)> = vec![
        (
            &["--tls-min-version=VersionTLS11"],
            "--tls-min-version: VersionTLS11 is not allowed; use VersionTLS12 or VersionTLS13, the versions that are \
             still safe",
        ),
        (
            &["--authorization-always-allow-paths=/a*b"],
            "--authorization-always-allow-paths: /a*b is not allowed; use a path with \"*\" at its end or nowhere",
        ),
        (
            &["--authentication-token-webhook-cache-ttl=-1s"],
            "--authentication-token-webhook-cache-ttl: -1s is not allowed; use a duration, such as 10s or 0",
        ),
        (&["--kube-api-qps=0"], "--kube-api-qps: 0 is not allowed; use a positive rate, or -1 for no limit"),
        (&["--kube-api-qps=-3"], "--kube-api-qps: -3 is not allowed; use a positive rate, or -1 for no limit"),
        (&["--kube-api-qps=NaN"], "--kube-api-qps: NaN is not allowed; use a positive rate, or -1 for no limit"),
        (&["--kube-api-qps=fast"], "--kube-api-qps: fast is not allowed; use a positive rate, or -1 for no limit"),
        (
            &["--kube-api-burst=0"],
            "--kube-api-burst: 0 is not allowed; use a positive whole number, or -1 for no limit",
        ),
        (
            &["--kube-api-burst=2147483648"],
            "--kube-api-burst: 2147483648 is not allowed; use a positive whole number, or -1 for no limit",
        ),
        (
            &["--concurrent-cronjob-syncs=0"],
            "--concurrent-cronjob-syncs: 0 is not allowed; use a whole number from 1 to 2147483647",
        ),
        (
            &["--concurrent-cron-job-syncs=-5"],
            "--concurrent-cronjob-syncs: -5 is not allowed; use a whole number from 1 to 2147483647",
        ),
        (&["--leader-elect=maybe"], "--leader-elect: maybe is not allowed; use true or false"),
        (&["--leader-elect="], "--leader-elect: \"\" is not allowed; use true or false"),
        (
            &["--leader-elect-lease-duration=10s"],
            "--leader-elect-lease-duration: 10s is not allowed; use more than --leader-elect-renew-deadline, 10s",
        ),
        (
            &["--leader-elect-renew-deadline=2.4s"],
            "--leader-elect-renew-deadline: 2.4s is not allowed; \
             use more than 1.2 times --leader-elect-retry-period, 2s",
        ),
        (
            &["--leader-elect-resource-lock=endpoints"],
            "--leader-elect-resource-lock: endpoints is not allowed; use leases, the only kind of lock",
        ),
        (
            &["--leader-elect-resource-name=kube-controller-manager"],
            "--leader-elect-resource-name: kube-controller-manager is not allowed; \
             use another name: this Lease is kube-controller-manager's own",
        ),
        (
            &["--leader-elect-resource-name=a..b"],
            "--leader-elect-resource-name: a..b is not allowed; \
             use lower case letters, digits, '-' and '.', at most 253",
        ),
        (
            &["--leader-elect-lease-duration=600000h"],
            "--leader-elect-lease-duration: 600000h is not allowed; \
             use at most 2147483647s, which is as much as a Lease holds",
        ),
        (
            &["--secure-port=65536"],
            "--secure-port: 65536 is not allowed; use a port from 1 to 65535, or 0 to turn it off",
        ),
        (&["--bind-address=here"], "--bind-address: here is not allowed; use an IP address, such as 0.0.0.0 or ::1"),
        (
            &["--tls-cert-file=c.pem"],
            "--tls-private-key-file: \"\" is not allowed; \
             use the private key of --tls-cert-file, or neither of the two flags",
        ),
        (
            &["--tls-private-key-file=k.pem"],
            "--tls-cert-file: \"\" is not allowed; \
             use the certificate of --tls-private-key-file, or neither of the two flags",
        ),
        (
            &["--metrics-bind-address=8080"],
            "--metrics-bind-address: 8080 is not allowed; \
             use an address such as :8080 or 127.0.0.1:8080, or 0 to turn it off",
        ),
        (
            &["--health-probe-bind-address=example.com:80"],
            "--health-probe-bind-address: example.com:80 is not allowed; \
             use an address such as :8080 or 127.0.0.1:8080, or 0 to turn it off",
        ),
        (
            &["--metrics-bind-address=:10257"],
            "--metrics-bind-address: 0.0.0.0:10257 is not allowed; use another address: this one is --secure-port's",
        ),
        (
            &["--controllers=cronjob,daemonset"],
            "--controllers: daemonset is not allowed; \
             use cronjob, tutorial, apiexample, any of them after '-', or * for all",
        ),
        (
            &["--controllers=-tutorial"],
            "--controllers: -tutorial is not allowed; use a list that leaves a controller on",
        ),
        (&["--manage=some"], "--manage: some is not allowed; use all or annotated"),
        (
            &["--manage=annotated", "--controllers=tutorial,apiexample"],
            "--manage: annotated is not allowed; \
             use all where --controllers leaves cronjob out: the other kinds have no other controller",
        ),
        (
            &["--controllers=tutorial", "--webhook-self-signed", "--webhook-cert-dir=d"],
            "--webhook-cert-dir: d is not allowed; use it without --webhook-self-signed",
        ),
        (
            &["--controllers=tutorial", "--webhook-self-signed", "--webhook-secret=A"],
            "--webhook-secret: A is not allowed; use lower case letters, digits, '-' and '.', at most 253",
        ),
        (&["--webhook-port=x"], "--webhook-port: x is not allowed; use a port from 1 to 65535, or 0 to turn it off"),
        (
            &["--controllers=tutorial", "--webhook-port=10257"],
            "--webhook-port: 0.0.0.0:10257 is not allowed; use another address: this one is --secure-port's",
        ),
        (
            &["--controllers=tutorial", "--metrics-bind-address=:9443"],
            "--metrics-bind-address: 0.0.0.0:9443 is not allowed; use another address: this one is --webhook-port's",
        ),
        (&["-v=11"], "--v: 11 is not allowed; use a whole number from 0 to 10"),
        (&["-v=-1"], "--v: -1 is not allowed; use a whole number from 0 to 10"),
        (&["--logging-format=xml"], "--logging-format: xml is not allowed; use text or json"),
        (
            &["--master=https://me:pw@host"],
            "--master: https://me:pw@host is not allowed; \
             use a URL without credentials, such as https://10.0.0.1:6443",
        ),
        (
            &["--master=ftp://host"],
            "--master: ftp://host is not allowed; use a URL without credentials, such as https://10.0.0.1:6443",
        ),
        (&["--version=raw"], "--version: raw is not allowed; use true or false"),
    ];
    for (args, want) in rows {
        let error = parse_line(args).unwrap_err();
        assert_eq!(error.sentences(), [want], "{args:?}");
    }
}

#[test]
fn a_duration_is_above_zero_and_has_a_unit() {
    let rows: Vec<(&[&str], &str)> = vec![
        (&["--leader-elect-lease-duration=15"], "--leader-elect-lease-duration: 15"),
        (&["--leader-elect-retry-period=-1s"], "--leader-elect-retry-period: -1s"),
        (&["--leader-elect=false", "--leader-elect-renew-deadline=1 s"], "--leader-elect-renew-deadline: \"1 s\""),
    ];
    for (args, want) in rows {
        let want = format!("{want} is not allowed; use a duration above zero, such as 15s or 1m30s");
        assert_eq!(parse_line(args).unwrap_err().sentences(), [want], "{args:?}");
    }
}

#[test]
fn a_namespace_is_a_dns_label() {
    let rows: Vec<(&[&str], &str)> = vec![
        (&["--leader-elect-resource-namespace="], "--leader-elect-resource-namespace: \"\""),
        (&["--namespace=Team_A"], "--namespace: Team_A"),
        (&["--controllers=tutorial", "--webhook-self-signed", "--webhook-namespace=A"], "--webhook-namespace: A"),
        (&["--namespace=a,,b"], "--namespace: \"\""),
        (&["--namespace=-a"], "--namespace: -a"),
    ];
    for (args, want) in rows {
        let want =
            format!("{want} is not allowed; use a namespace's name: lower case letters, digits and '-', at most 63");
        assert_eq!(parse_line(args).unwrap_err().sentences(), [want], "{args:?}");
    }
}

proptest! {
    #[test]
    fn times_that_are_accepted_make_an_election(lease in 1_u64..20_000, renew in 1_u64..20_000, retry in 1_u64..5_000) {
        let args = [
            format!("--leader-elect-lease-duration={lease}ms"),
            format!("--leader-elect-renew-deadline={renew}ms"),
            format!("--leader-elect-retry-period={retry}ms"),
        ];
        if let Ok(Command::Run(config)) = parse_line(&args.each_ref().map(String::as_str)) {
            let LeaderElectionConfig { lease_duration, renew_deadline, retry_period, .. } = config.leader_election.unwrap();
            let usual = crate::leader_election::Config::new("kube-system", "cronjob-controller", "me");
            let election = crate::leader_election::Config { lease_duration, renew_deadline, retry_period, ..usual };
            prop_assert_eq!(election.validate(), Ok(()));
        }
    }
}

#[test]
fn an_argument_that_is_no_flag_is_refused() {
    let rows: Vec<(&str, &[&str], &str)> = vec![
        ("a slip of the pen", &["--kube-api-qsp=3"], "--kube-api-qsp is not a flag; did you mean --kube-api-qps?"),
        ("nothing like it", &["--profiling"], "--profiling is not a flag; --help lists all flags"),
        ("a prefix is no flag", &["--kubeconf=x"], "--kubeconf is not a flag; did you mean --kubeconfig?"),
        ("one dash before a long name", &["-kubeconfig=x"], "-kubeconfig is not a flag; did you mean --kubeconfig?"),
        (
            "one dash before a name that begins like -v",
            &["-version"],
            "-version is not a flag; did you mean --version?",
        ),
        ("an unknown letter", &["-x"], "-x is not a flag; --help lists all flags"),
        ("a value is missing", &["--kubeconfig"], "--kubeconfig needs a value, as in --kubeconfig=..."),
        ("a short flag's value is missing", &["-v"], "-v needs a value, as in -v=..."),
        ("help takes none", &["--help=no"], "--help takes no value"),
        (
            "a boolean's value as an argument of its own, which pflag does not take either",
            &["--leader-elect", "false"],
            "unexpected argument \"false\"; write a boolean flag's value with \"=\", as in --leader-elect=false",
        ),
        (
            "a word behind two dashes",
            &["--", "x"],
            "unexpected argument \"x\"; write a boolean flag's value with \"=\", as in --leader-elect=false",
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(parse_line(args).unwrap_err().to_string(), want, "{sentence}: {args:?}");
    }
}

#[test]
fn all_faults_are_shown_at_once_in_the_order_of_the_help() {
    let error = parse_line(&["-v=11", "--secure-port=x", "--kube-api-qps=0"]).unwrap_err();
    let flags: Vec<_> = error.sentences().iter().map(|s| s.split(':').next().unwrap()).collect();
    assert_eq!(flags, ["--kube-api-qps", "--secure-port", "--v"]);
    assert_eq!(error.to_string().lines().count(), 3);
}

#[test]
fn the_lease_lives_in_the_pods_own_namespace() {
    let namespace = |env, args: &[&str]| match parse([PROGRAM].iter().chain(args), &Fake(env)) {
        Ok(Command::Run(config)) => config.leader_election.unwrap().namespace,
        other => panic!("{other:?}"),
    };
    let flag: &[&str] = &["--leader-elect-resource-namespace=flagged"];
    assert_eq!(namespace(Some("ops"), &[]), "ops", "the Pod's namespace is the default");
    assert_eq!(namespace(None, &[]), "kube-system", "kube-system outside a Pod");
    assert_eq!(namespace(Some("ops"), flag), "flagged", "the flag wins");
}

#[test]
fn help_and_version_come_before_any_judgement() {
    let version = format!("cronjob-controller v{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(parse_line(&["--version", "--v=99"]), Ok(Command::Version(version)));
    assert!(matches!(parse_line(&["--version=false"]), Ok(Command::Run(_))));
    assert!(matches!(parse_line(&["--help", "--version", "--v=99"]), Ok(Command::Help(_))));
    assert!(matches!(parse_line(&["-h"]), Ok(Command::Help(_))));
}

#[test]
fn help_lists_every_flag_in_its_section() {
    insta::assert_snapshot!(flags::help());
}

#[test]
fn configz_shows_the_resolved_configuration() {
    let config = config(&[
        "--kubeconfig=/etc/k",
        "--kube-api-qps=20",
        "--kube-api-burst=30",
        "--leader-elect-lease-duration=90s",
        "--namespace=b,a",
        "--metrics-bind-address=:8080",
        "--logging-format=json",
    ]);
    insta::assert_json_snapshot!(config.configz());
}

proptest! {
    #[test]
    fn no_command_line_makes_parse_panic(
        args in prop::collection::vec("(--?[a-z_-]{0,30}(=\\PC{0,6})?)|\\PC{0,8}", 0..6),
    ) {
        let _ = parse(std::iter::once(PROGRAM.to_owned()).chain(args), &Fake(None));
    }

    #[test]
    fn a_known_flag_with_any_value_gives_a_configuration_or_sentences(
        flag in prop::sample::select(vec![
            "kube-api-qps", "kube-api-burst", "leader-elect", "leader-elect-lease-duration", "namespace", "secure-port",
            "bind-address", "metrics-bind-address", "v", "master", "concurrent-cronjob-syncs", "controllers", "manage",
            "policies", "spread-seed", "publish",
            "cronjob-metrics",
            "webhook-port", "webhook-self-signed",
        ]),
        value in "\\PC{0,12}|[-0-9.:smh]{0,8}",
    ) {
        let parsed = parse_line(&[&format!("--{flag}={value}")]);
        match parsed {
            Ok(Command::Run(config)) => {
                let in_order = |e: &LeaderElectionConfig| {
                    e.lease_duration > e.renew_deadline && e.renew_deadline > e.retry_period
                };
                prop_assert!(config.leader_election.as_ref().is_none_or(in_order));
                prop_assert!(config.kube_api.is_none_or(|limit| limit.qps > 0.0 && limit.qps.is_finite()));
            }
            Ok(other) => prop_assert!(false, "{other:?}"),
            Err(error) => {
                let clear = |s: &String| s.starts_with("--") && s.contains("; use ");
                prop_assert!(error.sentences().iter().all(clear), "{error}");
            }
        }
    }
}

//! Replacement of the webhooks' certificate while an API server calls them: the steps, and the load during them.
//!
//! The writers never pause. Each new certificate comes from a new CA, and in the end the old CA is no longer trusted, so the
//! admissions that follow used the new certificate.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::controller_kinds::{CRON_JOBS, tutorial};
use crate::driver::{Namespace, Resource, SOON, eventually, request};

const SECRETS: Resource = Resource("api/v1", "secrets");

/// The name in the configurations of `manifests/webhook`.
pub const SERVICE: &str = "cronjob-controller-webhook";
pub const SERVICE_NAMESPACE: &str = "cronjob-tutorial-system";

/// Time limits for this API server and this controller.
pub struct Timeouts {
    /// For the controller to notice a change.
    pub noticed: Duration,
    /// For the API server to apply a changed configuration, and for the observation after that.
    pub followed: Duration,
    /// The pause of a writer between two writes; the machine may have other work.
    pub rest: Duration,
}

/// A namespace with its own webhook configurations, and the address of the webhooks.
pub struct Stage {
    pub admin: kube::Client,
    pub ns: Namespace,
    pub addr: SocketAddr,
    /// Whether the configurations call the Service, for all namespaces; otherwise they call the address, for this namespace
    /// alone.
    pub as_service: bool,
    pub patience: Timeouts,
}

/// Replaces the files in `dir`, which hold `first`, twice. Returns the number of admissions meanwhile.
pub async fn of_files(stage: &Stage, dir: &Path, first: Issued) -> usize {
    let load = Load::begin(stage).await;
    let mut current = first;
    for generation in 1..=2 {
        let next = Issued::new();
        stage.trust(&format!("{}{}", current.ca, next.ca)).await;
        load.goes_on().await;
        next.mount(dir, generation);
        stage.serves(&next.ca).await;
        load.goes_on().await;
        stage.trust(&next.ca).await;
        load.goes_on().await;
        current = next;
    }
    load.end().await
}

/// Makes a controller replace its self-signed certificate. Returns the number of admissions meanwhile.
pub async fn of_its_own(stage: &Stage) -> usize {
    let load = Load::begin(stage).await;
    let before = stage.trusted().await;
    // This is how a user requests a new certificate.
    stage.ns.delete(SECRETS, "cronjob-controller-webhook-cert").await;
    let after = eventually("another CA is trusted", stage.patience.noticed, || async {
        Some(stage.trusted().await).filter(|trusted| *trusted != before)
    })
    .await;
    assert!(after.ends_with(&before), "the old CA stays trusted");
    let new = after.strip_suffix(before.as_str()).unwrap();
    stage.serves(new).await;
    load.goes_on().await;
    load.end().await
}

/// A certificate from its own CA, for this machine and for the Service.
pub struct Issued {
    pub ca: String,
    cert: String,
    key: String,
}

impl Issued {
    pub fn new() -> Self {
        let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), format!("{SERVICE}.{SERVICE_NAMESPACE}.svc")];
        let leaf = CertificateParams::new(names).unwrap();
        let cert = leaf.signed_by(&key, &issuer).unwrap().pem();
        Self { ca: issuer.pem(), cert, key: key.serialize_pem() }
    }

    /// Writes the certificate as a kubelet would: through a symbolic link that changes atomically.
    pub fn mount(&self, dir: &Path, generation: usize) {
        let version = format!("..{generation}");
        fs::create_dir(dir.join(&version)).unwrap();
        fs::write(dir.join(&version).join("tls.crt"), &self.cert).unwrap();
        fs::write(dir.join(&version).join("tls.key"), &self.key).unwrap();
        symlink(&version, dir.join("..new")).unwrap();
        fs::rename(dir.join("..new"), dir.join("..data")).unwrap();
        if generation == 0 {
            for file in ["tls.crt", "tls.key"] {
                symlink(Path::new("..data").join(file), dir.join(file)).unwrap();
            }
        }
    }
}

impl Stage {
    /// The paths of the configurations, which have the name of the namespace.
    fn configurations(&self) -> [String; 2] {
        ["mutating", "validating"]
            .map(|kind| format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{}", self.ns.name))
    }

    /// Creates the configurations of `manifests/webhook`.
    pub async fn configure(&self, ca: &str) {
        for (mut object, path) in manifests().into_iter().zip(self.configurations()) {
            object["metadata"]["name"] = json!(self.ns.name);
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                if !self.as_service {
                    let called = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
                    webhook["clientConfig"] = json!({ "url": format!("https://{}{called}", self.addr) });
                    webhook["namespaceSelector"] =
                        json!({ "matchLabels": { "kubernetes.io/metadata.name": self.ns.name } });
                }
                webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(ca));
                // A machine that is suspended for ten seconds must not fail an admission.
                webhook["timeoutSeconds"] = json!(30);
            }
            let collection = path.rsplit_once('/').unwrap().0;
            request(&self.admin, Method::POST, collection, Some(&object)).await.unwrap();
        }
    }

    /// Makes the API server trust these CAs and no others.
    async fn trust(&self, ca: &str) {
        for path in self.configurations() {
            let mut object = request(&self.admin, Method::GET, &path, None).await.unwrap();
            object["webhooks"][0]["clientConfig"]["caBundle"] = json!(STANDARD.encode(ca));
            request(&self.admin, Method::PUT, &path, Some(&object)).await.unwrap();
        }
    }

    /// The CAs that the API server trusts for validation.
    async fn trusted(&self) -> String {
        let [_, path] = self.configurations();
        let object = request(&self.admin, Method::GET, &path, None).await.unwrap();
        let ca = object["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(ca).unwrap()).unwrap()
    }

    /// Waits until the webhooks' port serves a certificate of this CA.
    async fn serves(&self, ca: &str) {
        let ca = ca.lines().filter(|line| !line.starts_with('-')).collect::<String>();
        let ca = STANDARD.decode(ca).unwrap();
        eventually("the new certificate is served", self.patience.noticed, || async {
            let mut config = kube::Config::new(format!("https://{}", self.addr).parse().unwrap());
            config.root_cert = Some(vec![ca.clone()]);
            let client = kube::Client::try_from(config).unwrap();
            let answer = client.request_text(http::Request::get("/").body(Vec::new()).unwrap()).await;
            // Nothing is served at that path; any answer over TLS is enough.
            matches!(answer, Err(kube::Error::Api(status)) if status.code == 404).then_some(())
        })
        .await;
    }

    pub async fn clear(&self) {
        for path in self.configurations() {
            request(&self.admin, Method::DELETE, &path, None).await.unwrap();
        }
    }
}

/// The configurations of `manifests/webhook`.
fn manifests() -> Vec<Value> {
    let path = crate::repository().join("manifests/webhook/manifests.yaml");
    let text = fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// Writers that repeat writes, each with one admission.
struct Load {
    writers: JoinSet<()>,
    tally: Arc<Tally>,
    followed: Duration,
}

#[derive(Default)]
struct Tally {
    admitted: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

impl Tally {
    fn admitted(&self) -> usize {
        self.admitted.load(Ordering::Relaxed)
    }

    fn assert_none_failed(&self) {
        let failed = self.failed.lock().unwrap();
        let (count, admitted) = (failed.len(), self.admitted());
        assert!(failed.is_empty(), "{count} of {admitted} admissions failed, the first: {}", failed[0]);
    }
}

impl Load {
    /// Starts once the API server reaches the webhooks.
    async fn begin(stage: &Stage) -> Self {
        let path = format!("{}?dryRun=All", stage.ns.path(CRON_JOBS, ""));
        let write = |client: kube::Client, path: String, number: usize| async move {
            let object = tutorial(&format!("load-{number}"), &json!({ "suspend": true }));
            let stored = request(&client, Method::POST, &path, Some(&object)).await?;
            if stored["spec"]["successfulJobsHistoryLimit"] == 3 { Ok(()) } else { Err("no defaults".to_owned()) }
        };
        eventually("the API server reaches the webhooks", SOON, || async {
            write(stage.admin.clone(), path.clone(), 0).await.ok()
        })
        .await;
        let tally = Arc::<Tally>::default();
        let mut writers = JoinSet::new();
        let rest = stage.patience.rest;
        for number in 0..4 {
            let (client, path, tally) = (stage.admin.clone(), path.clone(), Arc::clone(&tally));
            writers.spawn(async move {
                loop {
                    match write(client.clone(), path.clone(), number).await {
                        Ok(()) => drop(tally.admitted.fetch_add(1, Ordering::Relaxed)),
                        Err(why) => tally.failed.lock().unwrap().push(why),
                    }
                    tokio::time::sleep(rest).await;
                }
            });
        }
        Self { writers, tally, followed: stage.patience.followed }
    }

    /// Waits until the last change has taken effect, and then for twenty more admissions.
    async fn goes_on(&self) {
        tokio::time::sleep(self.followed).await;
        let goal = self.tally.admitted() + 20;
        eventually("the writers go on", SOON, || async {
            self.tally.assert_none_failed();
            (self.tally.admitted() >= goal).then_some(())
        })
        .await;
    }

    /// Stops the writers. Returns the number of admissions; fails if one failed.
    async fn end(mut self) -> usize {
        self.writers.shutdown().await;
        self.tally.assert_none_failed();
        self.tally.admitted()
    }
}

//! The webhooks' certificate is replaced while the API server calls them: from files, and by the controller itself.
//!
//! Each scenario has webhook configurations of its own, for its namespace alone, and writers that never pause. The new
//! certificate comes from a new CA, and in the end the old CA is not trusted any more: what is admitted then was admitted by
//! the new certificate.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::driver::{Namespace, Resource, SOON, eventually, request};
use crate::fixture::account::kubectl_apply;
use crate::fixture::control_plane::free_port;
use crate::fixture::controller::{Controller, Running};
use crate::flavours::{CRON_JOBS, tutorial};
use crate::world::World;

/// How long the controller may take to notice a change; it looks once a minute.
const NOTICED: Duration = Duration::from_secs(90);

/// How long the API server may take to follow a change of a configuration, and then is watched.
const FOLLOWED: Duration = Duration::from_secs(3);

const SECRETS: Resource = Resource("api/v1", "secrets");

pub async fn files(world: Arc<World>) -> String {
    let stage = Stage::set(&world, "certificate-files").await;
    let dir = tempfile::tempdir().unwrap();
    let mut current = Issued::new();
    current.mount(dir.path(), 0);
    stage.configure(&current.ca).await;
    let controller = stage.start(&world, &[format!("--webhook-cert-dir={}", dir.path().display())]).await;

    let load = Load::begin(&stage).await;
    for generation in 1..=2 {
        let next = Issued::new();
        stage.trust(&format!("{}{}", current.ca, next.ca)).await;
        tokio::time::sleep(FOLLOWED).await;
        next.mount(dir.path(), generation);
        stage.serves(&next.ca).await;
        stage.trust(&next.ca).await;
        tokio::time::sleep(FOLLOWED).await;
        current = next;
    }
    let admitted = load.end().await;
    controller.kill();
    stage.clear().await;
    format!("{admitted} admissions through two changes")
}

pub async fn self_signed(world: Arc<World>) -> String {
    let stage = Stage::set(&world, "certificate-own").await;
    stage.configure("").await;
    let own = ["--webhook-self-signed".to_owned(), format!("--webhook-namespace={}", stage.ns.name)];
    let names = ["mutating", "validating"].map(|kind| format!("--webhook-{kind}-configuration={}", stage.ns.name));
    let controller = stage.start(&world, &[own, names].concat()).await;

    let load = Load::begin(&stage).await;
    let before = stage.trusted().await;
    // As one who wants a new one does.
    stage.ns.delete(SECRETS, "cronjob-controller-webhook-cert").await;
    let after = eventually("another CA is trusted", NOTICED, || async {
        Some(stage.trusted().await).filter(|trusted| *trusted != before)
    })
    .await;
    assert!(after.ends_with(&before), "the old CA stays trusted");
    let new = after.strip_suffix(before.as_str()).unwrap();
    stage.serves(new).await;
    tokio::time::sleep(FOLLOWED).await;
    let admitted = load.end().await;
    controller.kill();
    stage.clear().await;
    format!("{admitted} admissions through a change")
}

/// A certificate for this machine from a CA of its own.
struct Issued {
    ca: String,
    cert: String,
    key: String,
}

impl Issued {
    fn new() -> Self {
        let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let cert = leaf.signed_by(&key, &issuer).unwrap().pem();
        Self { ca: issuer.pem(), cert, key: key.serialize_pem() }
    }

    /// Puts it where a kubelet would: behind a link that changes in one step.
    fn mount(&self, dir: &Path, generation: usize) {
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

/// A namespace with webhook configurations of its own, and where they are called.
struct Stage {
    admin: kube::Client,
    ns: Namespace,
    port: u16,
}

impl Stage {
    async fn set(world: &World, name: &str) -> Self {
        kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/crd", &[]).unwrap();
        Self { admin: world.plane.admin(), ns: world.namespace(name).await, port: free_port() }
    }

    /// The paths of the configurations, which are called as the namespace is.
    fn configurations(&self) -> [String; 2] {
        ["mutating", "validating"]
            .map(|kind| format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{}", self.ns.name))
    }

    /// Makes the configurations of `manifests/webhook`, for this namespace and by URL.
    async fn configure(&self, ca: &str) {
        for (mut object, path) in manifests().into_iter().zip(self.configurations()) {
            object["metadata"]["name"] = json!(self.ns.name);
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                let called = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
                let url = format!("https://127.0.0.1:{}{called}", self.port);
                webhook["clientConfig"] = json!({ "url": url, "caBundle": STANDARD.encode(ca) });
                webhook["namespaceSelector"] =
                    json!({ "matchLabels": { "kubernetes.io/metadata.name": self.ns.name } });
            }
            let collection = path.rsplit_once('/').unwrap().0;
            request(&self.admin, Method::POST, collection, Some(&object)).await.unwrap();
        }
    }

    /// Has the API server trust these CAs and no others.
    async fn trust(&self, ca: &str) {
        for path in self.configurations() {
            let mut object = request(&self.admin, Method::GET, &path, None).await.unwrap();
            object["webhooks"][0]["clientConfig"]["caBundle"] = json!(STANDARD.encode(ca));
            request(&self.admin, Method::PUT, &path, Some(&object)).await.unwrap();
        }
    }

    /// What the API server trusts when it judges.
    async fn trusted(&self) -> String {
        let [_, path] = self.configurations();
        let object = request(&self.admin, Method::GET, &path, None).await.unwrap();
        let ca = object["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(ca).unwrap()).unwrap()
    }

    /// Waits until the webhooks' port is served with a certificate of this CA.
    async fn serves(&self, ca: &str) {
        let ca = ca.lines().filter(|line| !line.starts_with('-')).collect::<String>();
        let ca = STANDARD.decode(ca).unwrap();
        eventually("the new certificate is served", NOTICED, || async {
            let mut config = kube::Config::new(format!("https://127.0.0.1:{}", self.port).parse().unwrap());
            config.root_cert = Some(vec![ca.clone()]);
            let client = kube::Client::try_from(config).unwrap();
            let answer = client.request_text(http::Request::get("/").body(Vec::new()).unwrap()).await;
            // There is nothing at that path; what counts is that somebody says so.
            matches!(answer, Err(kube::Error::Api(status)) if status.code == 404).then_some(())
        })
        .await;
    }

    async fn start(&self, world: &World, more: &[String]) -> Running {
        let mut args = ["--controllers=tutorial", "--leader-elect=false"].map(str::to_owned).to_vec();
        args.extend([format!("--namespace={}", self.ns.name), format!("--webhook-port={}", self.port)]);
        args.extend_from_slice(more);
        let kubeconfig = world.plane.admin_kubeconfig();
        Controller::Ours.start(&world.plane, &self.ns.name, &kubeconfig, &args, &[]).await.unwrap()
    }

    async fn clear(&self) {
        for path in self.configurations() {
            request(&self.admin, Method::DELETE, &path, None).await.unwrap();
        }
    }
}

/// The configurations of `manifests/webhook`.
fn manifests() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/webhook/manifests.yaml");
    let text = fs::read_to_string(path).unwrap();
    serde_yaml_ng::Deserializer::from_str(&text).map(|one| Value::deserialize(one).unwrap()).collect()
}

/// Writers that have one admission after the other.
struct Load {
    writers: JoinSet<()>,
    admitted: Arc<AtomicUsize>,
    failed: Arc<Mutex<Vec<String>>>,
}

impl Load {
    /// Begins once the API server reaches the webhooks.
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
        let (admitted, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let mut writers = JoinSet::new();
        for number in 0..4 {
            let (client, path) = (stage.admin.clone(), path.clone());
            let (admitted, failed) = (Arc::clone(&admitted), Arc::clone(&failed));
            writers.spawn(async move {
                loop {
                    match write(client.clone(), path.clone(), number).await {
                        Ok(()) => drop(admitted.fetch_add(1, Ordering::Relaxed)),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                    // The machine has others to serve.
                    tokio::time::sleep(Duration::from_millis(25)).await;
                }
            });
        }
        Self { writers, admitted, failed }
    }

    /// How many were admitted, when none failed.
    async fn end(mut self) -> usize {
        self.writers.shutdown().await;
        let failed = std::mem::take(&mut *self.failed.lock().unwrap());
        let admitted = self.admitted.load(Ordering::Relaxed);
        assert!(failed.is_empty(), "{} of {admitted} admissions failed, the first: {}", failed.len(), failed[0]);
        assert!(admitted > 100, "{admitted} admissions are no load");
        admitted
    }
}

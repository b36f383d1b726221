//! Replaces the webhooks' certificate while the API server calls them: from files, and by the controller itself.
//!
//! Each scenario has its own webhook configurations, for its namespace only.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use testkit::fixture::account::kubectl_apply;
use testkit::fixture::control_plane::free_port;
use testkit::fixture::controller::{Controller, Running};
use testkit::rotation::{self, Issued, Stage, Timeouts};
use testkit::world::World;

pub async fn files(world: Arc<World>) -> String {
    let stage = set(&world, "certificate-files").await;
    let dir = tempfile::tempdir().unwrap();
    let first = Issued::new();
    first.mount(dir.path(), 0);
    stage.configure(&first.ca).await;
    let controller = start(&stage, &world, &[format!("--webhook-cert-dir={}", dir.path().display())]).await;
    let admitted = rotation::of_files(&stage, dir.path(), first).await;
    controller.kill();
    stage.clear().await;
    format!("{admitted} admissions through two changes")
}

pub async fn self_signed(world: Arc<World>) -> String {
    let stage = set(&world, "certificate-own").await;
    stage.configure("").await;
    let own = ["--webhook-self-signed".to_owned(), format!("--webhook-namespace={}", stage.ns.name)];
    let names = ["mutating", "validating"].map(|kind| format!("--webhook-{kind}-configuration={}", stage.ns.name));
    let controller = start(&stage, &world, &[own, names].concat()).await;
    let admitted = rotation::of_its_own(&stage).await;
    controller.kill();
    stage.clear().await;
    format!("{admitted} admissions through a change")
}

async fn set(world: &World, name: &str) -> Stage {
    kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/crd", &[]).unwrap();
    Stage {
        admin: world.plane.admin(),
        ns: world.namespace(name).await,
        addr: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), free_port()),
        as_service: false,
        patience: Timeouts {
            // The controller checks once a minute.
            noticed: Duration::from_secs(90),
            followed: Duration::from_secs(3),
            rest: Duration::from_millis(25),
        },
    }
}

async fn start(stage: &Stage, world: &World, more: &[String]) -> Running {
    let mut args = ["--controllers=tutorial", "--leader-elect=false"].map(str::to_owned).to_vec();
    args.extend([format!("--namespace={}", stage.ns.name), format!("--webhook-port={}", stage.addr.port())]);
    args.extend_from_slice(more);
    let kubeconfig = world.plane.admin_kubeconfig();
    Controller::Ours.start(&world.plane, &stage.ns.name, &kubeconfig, &args, &[]).await.unwrap()
}

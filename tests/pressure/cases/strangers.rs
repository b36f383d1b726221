//! Clients without credentials that send requests to the secure port as fast as they can, and the kubelet's probes
//! meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use testkit::fixture::control_plane::free_port;
use tokio::time::Instant;

use crate::contenders::{Arena, still_runs};
use crate::flood::{Shape, probes, strangers};
use crate::table::{Figure, Reach, float};

const LASTS: Duration = Duration::from_secs(30);
const PROBES: usize = 300;
/// Reviews per second: kube-controller-manager's client is limited to 200 with a burst of 400, so 213 over this time.
const FEW_REVIEWS: f64 = 220.0;

pub async fn flood(arena: &Arc<Arena>) -> Vec<Figure> {
    let mut args = Vec::new();
    let health = free_port();
    let listener = format!("--health-probe-bind-address=127.0.0.1:{health}");
    if arena.is_ours() {
        args.push(listener.as_str());
    }
    let controller = arena.start_controller(&args).await;
    let shapes =
        [("HTTP/2 × 4", Shape::Http2), ("HTTP/1.1", Shape::Http1), ("HTTP/1.1, a token each", Shape::Http1Tokens)];
    let mut figures = Vec::new();
    for (name, shape) in shapes {
        figures.extend(one(arena, controller.port, arena.is_ours().then_some(health), name, shape).await);
        // Waits for the requests in flight of the last shape.
        tokio::time::sleep(Duration::from_secs(3)).await;
        still_runs(&controller);
    }
    figures
}

/// One shape: the requests answered, the probes failed and the reviews sent to the API server.
async fn one(arena: &Arena, port: u16, health: Option<u16>, name: &str, shape: Shape) -> Vec<Figure> {
    let path = if arena.is_ours() { "/livez" } else { "/healthz" };
    let before = reviews(arena).await;
    let end = Instant::now() + LASTS;
    let on_health = async {
        match health {
            Some(health) => Some(probes(health, false, path, PROBES).await),
            None => None,
        }
    };
    let (tally, secure, plain) =
        tokio::join!(strangers(port, shape, path, end), probes(port, true, path, PROBES), on_health);
    let asked = reviews(arena).await - before;
    let what = |what: &str| format!("{name}: {what}");
    let a_second = |count: f64| Figure::count(String::new(), 0, Reach::Shown).with(count / LASTS.as_secs_f64());
    let none = Reach::AtMost(0.0);
    let answered = float(tally.answered.load(Ordering::Relaxed));
    let mut figures = vec![
        Figure { what: what("requests answered a second"), ..a_second(answered) },
        Figure::count(what("connections opened"), tally.connections.load(Ordering::Relaxed), Reach::Shown),
        Figure::count(what(&format!("probes failed of {PROBES}, secure port")), secure, none),
        Figure { what: what("reviews a second"), reach: Reach::AtMost(FEW_REVIEWS), ..a_second(asked) },
    ];
    figures.extend(
        plain.map(|failed| Figure::count(what(&format!("probes failed of {PROBES}, own listener")), failed, none)),
    );
    figures
}

/// SubjectAccessReviews and TokenReviews that the API server has answered.
async fn reviews(arena: &Arena) -> f64 {
    let message = Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = arena.world.plane.admin().request_text(message).await.unwrap();
    let is_review = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && (line.contains("resource=\"subjectaccessreviews\"") || line.contains("resource=\"tokenreviews\""))
    };
    metrics.lines().filter(is_review).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

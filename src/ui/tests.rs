//! The page's files, and the API over HTTP without a browser.
#![allow(clippy::unwrap_used)]

use http_body_util::BodyExt as _;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;
use crate::dev::guard::hexadecimal;

#[test]
fn page_is_small_and_needs_no_other_host() {
    let size: usize = INDEX.len() + ASSETS.iter().map(|(.., text)| text.len()).sum::<usize>();
    assert!(size <= 250 << 10, "{size} bytes");
    for (name, _, text) in ASSETS.iter().chain([&("index.html", "", INDEX)]) {
        let known = ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink", "http://www.w3.org/XML"];
        let rest = known.iter().fold((*text).to_owned(), |text, known| text.replace(known, ""));
        assert!(!rest.contains("https://") && !rest.contains("http://"), "{name}");
        for word in ["innerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(name.starts_with("vendor/") || !text.contains(word), "{name}: {word}");
        }
    }
}

#[test]
fn vendored_library_is_the_one_that_its_table_names() {
    let table = include_str!("assets/vendor/README.md");
    for (name, _, text) in ASSETS.iter().filter(|(name, ..)| name.starts_with("vendor/")) {
        let sum = hexadecimal(digest(&SHA256, text.as_bytes()).as_ref());
        assert!(table.contains(&sum) && table.contains(name.trim_start_matches("vendor/")), "{name}: {sum}");
    }
}

/// A page of manifests.
struct Site {
    router: Router,
    token: String,
    cookie: String,
}

impl Site {
    async fn of(manifests: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("all.yaml"), manifests).unwrap();
        let clock: SharedClock = Arc::new(SystemClock);
        let source = Source::of_files(&[directory.path().to_owned()], false, "shop", &"".into(), &clock).unwrap();
        let board = Board::new(source, Zone::UTC, "".into(), clock, String::new());
        board.refresh();
        let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await.unwrap();
        let (link, router) = page(&bound, board);
        let token = link.split_once("token=").unwrap().1.to_owned();
        let mut site = Self { router, token, cookie: String::new() };
        let (_, headers, _) = site.send(&format!("/?token={}&view=heat", site.token)).await;
        assert_eq!(headers["location"], "/?view=heat");
        let cookie = headers["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(&site.token), "{cookie}");
        site.cookie = cookie.split(';').next().unwrap().to_owned();
        site
    }

    async fn send(&self, uri: &str) -> (u16, http::HeaderMap, String) {
        let request = http::Request::get(uri).header("host", "127.0.0.1:1").header("cookie", &self.cookie);
        let response = self.router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send(&format!("/api/{path}")).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

fn manifest(name: &str, schedule: &str, annotation: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\nspec:\n  \
         schedule: \"{schedule}\"\n  {spec}\n  jobTemplate: {{spec: {{}}}}\n---\n"
    )
}

#[tokio::test]
async fn api_answers_for_manifests() {
    let manifests = [
        manifest("nightly", "0 2 * * *", "cronjob-controller.dev/spread: 30m", "concurrencyPolicy: Forbid"),
        manifest("hourly", "0 * * * *", "", "timeZone: Europe/Berlin"),
        manifest("held", "0 * * * *", "", "suspend: true"),
        manifest("broken", "61 * * * *", "", "timeZone: Etc/UTC"),
    ];
    let site = Site::of(&manifests.concat()).await;
    let summary = site.get("summary").await;
    assert_eq!(
        (&summary["cronJobs"], &summary["states"]["stopped"], &summary["isFiles"]),
        (&4.into(), &1.into(), &true.into())
    );
    assert_eq!(summary["namespaces"]["shop"], 4);
    let table = site.get("cronjobs").await;
    let names: Vec<&str> = table["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["broken", "hourly", "nightly", "held"], "problems first, suspended last");
    let nightly = &table["rows"][2];
    assert_eq!(nightly["policies"][0]["name"], "Forbid");
    assert_eq!(nightly["policies"][1], serde_json::json!({"name": "spread", "value": "30m"}));
    assert_ne!(nightly["next"]["due"], nightly["next"]["slot"]);
    assert_eq!(site.get("cronjobs?q=NIGHT&sort=name").await["total"], 1);
    assert_eq!(site.get("cronjobs?state=stuck&limit=1&offset=0").await["rows"][0]["name"], "broken");
    let heat = site.get("heat?day=2027-03-28&zone=Europe/Berlin&spread=1h").await;
    assert_eq!((heat["hours"].as_array().unwrap().len(), &heat["starts"]), (23, &24.into()));
    assert!(heat["whatIf"]["patch"].as_str().unwrap().contains("cronjob-controller.dev/spread: 1h"), "{heat}");
    assert_eq!(
        heat["whatIf"]["commands"][0],
        "kubectl annotate cronjob -n shop cronjob-controller.dev/spread=1h --overwrite --all"
    );
    let minute = site.get("minute?at=2027-03-28T05:00:00Z").await;
    assert_eq!((&minute["total"], &minute["rows"][0]["name"]), (&1.into(), &"hourly".into()));
    let detail = site.get("cronjob?namespace=shop&name=nightly").await;
    assert_eq!(detail["next"]["runs"].as_array().unwrap().len(), 10);
    assert!(detail["yaml"]["Ok"].as_str().unwrap().contains("0 2 * * *"), "{detail}");
    let now = chrono::DateTime::parse_from_rfc3339(summary["now"].as_str().unwrap()).unwrap().to_utc();
    let (from, to) = (now - chrono::TimeDelta::hours(1), now + chrono::TimeDelta::hours(5));
    let path = format!("timeline?from={}&to={}&q=hourly", from.format("%FT%TZ"), to.format("%FT%TZ"));
    assert_eq!(site.get(&path).await["rows"][0]["expected"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn wrong_parameters_and_strangers_get_a_sentence() {
    let site = Site::of(&manifest("nightly", "0 2 * * *", "", "suspend: false")).await;
    for (path, status, sentence) in [
        ("heat?zone=Nowhere/Else", 400, "zone: "),
        ("heat?day=tomorrow&zone=UTC", 400, "day: "),
        ("heat?zone=UTC&spread=2d", 400, "spread: "),
        ("cronjobs?sort=colour", 400, "sort: "),
        ("cronjobs?state=odd", 400, "state: "),
        ("timeline?from=2027-01-01T00:00:00Z&to=2028-01-01T00:00:00Z", 400, "to: "),
        ("cronjob?namespace=shop&name=none", 404, "there is no CronJob none"),
    ] {
        let (code, headers, body) = site.send(&format!("/api/{path}")).await;
        assert_eq!((code, body.contains(sentence)), (status, true), "{path}: {body}");
        assert_eq!(headers["content-security-policy"].to_str().unwrap().split(';').next(), Some("default-src 'self'"));
    }
    let stranger = Site { cookie: String::new(), ..site };
    for path in ["/", "/assets/app.js", "/api/summary", "/api/events", "/nowhere"] {
        assert_eq!(stranger.send(path).await.0, 401, "{path}");
    }
}

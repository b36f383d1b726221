//! The page's files, and the API over HTTP without a browser.
#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use http_body_util::BodyExt as _;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::history::tests::{matrix, server};
use super::*;
use crate::dev::guard::hexadecimal;

mod night;

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
    access: Arc<Access>,
    /// The header with the session.
    authorization: String,
}

impl Site {
    async fn of(manifests: &str) -> Self {
        Self::with(Self::board(manifests)).await
    }

    fn board(manifests: &str) -> Arc<Board> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("all.yaml"), manifests).unwrap();
        let clock: SharedClock = Arc::new(SystemClock);
        let source = Source::of_files(&[directory.path().to_owned()], false, "shop", &"".into(), &clock).unwrap();
        let board = Board::new(source, Zone::UTC, "".into(), clock, Shell { program: PROGRAM, flags: String::new() });
        board.refresh();
        board
    }

    async fn with(board: Arc<Board>) -> Self {
        Self::with_history(board, None).await
    }

    async fn with_history(board: Arc<Board>, prometheus: Option<Prometheus>) -> Self {
        Self::with_all(board, prometheus, None).await
    }

    async fn with_all(board: Arc<Board>, prometheus: Option<Prometheus>, shadow: Option<ShadowFile>) -> Self {
        let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await.unwrap();
        let (access, router) = page(&bound, board, prometheus, shadow);
        let mut site = Self { router, authorization: format!("Bearer {}", token(&access)), access };
        let (status, _, body) = site.send("POST /session").await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        site.authorization = format!("Bearer {}", answer["session"].as_str().unwrap());
        site
    }

    async fn send(&self, line: &str) -> (u16, http::HeaderMap, String) {
        self.send_with(line, &[("authorization", &self.authorization)]).await
    }

    async fn send_with(&self, line: &str, headers: &[(&str, &str)]) -> (u16, http::HeaderMap, String) {
        let (method, uri) = line.split_once(' ').unwrap();
        let request = http::Request::builder().method(method).uri(uri).header("host", "127.0.0.1:1");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send(&format!("GET /api/{path}")).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// The token of the newest link.
fn token(access: &Access) -> String {
    access.links().borrow().split_once("/#token=").unwrap().1.to_owned()
}

fn manifest(name: &str, schedule: &str, annotation: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\nspec:\n  \
         schedule: \"{schedule}\"\n  {spec}\n  jobTemplate: {{spec: {{}}}}\n---\n"
    )
}

#[test]
fn file_that_cannot_be_read_is_named_on_the_page_and_the_others_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("a.yaml"), manifest("nightly", "0 2 * * *", "", "")).unwrap();
    std::os::unix::fs::symlink("nowhere.yaml", path("b.yaml")).unwrap();
    std::fs::write(path("c.yaml"), "kind: [\n").unwrap();
    std::fs::create_dir(path("chart")).unwrap();
    std::fs::write(path("chart/Chart.yaml"), "name: c\n").unwrap();
    let clock: SharedClock = Arc::new(SystemClock);
    let source = Source::of_files(&[directory.path().to_owned()], true, "shop", &"".into(), &clock).unwrap();
    assert_eq!(source.cron_jobs.list().len(), 1);
    let trouble = source.trouble();
    assert_eq!(trouble.len(), 2, "{trouble:?}");
    assert!(trouble[0].contains("b.yaml: cannot be read: ") && trouble[1].contains("c.yaml, document 1: not YAML: "));
    for number in 0..20 {
        std::fs::write(path(&format!("d{number}.yaml")), "kind: [\n").unwrap();
    }
    let source = Source::of_files(&[directory.path().to_owned()], false, "shop", &"".into(), &clock).unwrap();
    let trouble = source.trouble();
    assert_eq!((trouble.len(), trouble[10].as_str()), (11, "12 more files or documents cannot be read."));
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

/// A file does not say when it was edited, and each slot that is decided at its own time would start nothing.
#[tokio::test]
async fn files_say_that_the_next_run_starts_whatever_decides_its_time() {
    for (name, annotation) in [
        ("plain", ""),
        ("spread", "cronjob-controller.dev/spread: 30m"),
        ("lines", "cronjob-controller.dev/schedule: 0 2 * * *; 0 14 * * *"),
        ("bounded", "cronjob-controller.dev/not-before: '2026-01-01T00:00:00Z'"),
        ("dates", "cronjob-controller.dev/exclude: '12-24'"),
        ("careful", "cronjob-controller.dev/after-change: wait"),
    ] {
        let site = Site::of(&manifest(name, "0 2 * * *", annotation, "suspend: false")).await;
        let row = site.get("cronjobs").await["rows"][0].clone();
        let effect = row["next"]["effect"].as_str().unwrap_or_default();
        assert!(effect.starts_with(&format!("starts Job {name}-")), "{name}: {row}");
    }
}

#[tokio::test]
async fn wrong_parameters_get_a_sentence() {
    let site = Site::of(&manifest("nightly", "0 2 * * *", "", "suspend: false")).await;
    for (path, status, sentence) in [
        ("heat?zone=Nowhere/Else", 400, "zone: "),
        ("heat?day=tomorrow&zone=UTC", 400, "day: "),
        ("heat?zone=UTC&spread=2d", 400, "spread: "),
        ("cronjobs?sort=colour", 400, "sort: "),
        ("cronjobs?state=odd", 400, "state: "),
        ("minute", 400, "at: "),
        ("cronjobs?limit=many", 400, "limit: "),
        ("cronjob?namespace=default", 400, "missing field `name`"),
        ("timeline?from=2027-01-01T00:00:00Z&to=2028-01-01T00:00:00Z", 400, "to: "),
        ("timeline?from=2027-01-01T00:00:00Z", 400, "to: "),
        ("cronjob?namespace=shop&name=none", 404, "there is no CronJob none"),
    ] {
        let (code, headers, body) = site.send(&format!("GET /api/{path}")).await;
        let error = serde_json::from_str::<Value>(&body).unwrap()["error"].clone();
        assert_eq!((code, error.as_str().unwrap().contains(sentence)), (status, true), "{path}: {body}");
        assert_eq!(headers["content-security-policy"].to_str().unwrap().split(';').next(), Some("default-src 'self'"));
    }
}

#[tokio::test]
async fn dates_beyond_the_calendar_are_refused_and_its_ends_are_answered() {
    let manifests = [
        manifest("nightly", "0 2 * * *", "", "timeZone: Pacific/Apia"),
        manifest("spread", "0 0 29 2 *", "cronjob-controller.dev/spread: 24h", "suspend: false"),
        manifest("lines", "0 0 L 12 *", "cronjob-controller.dev/dst: once", "timeZone: America/New_York"),
        manifest("often", "@every 1s", "", "suspend: false"),
    ];
    let site = Site::of(&manifests.concat()).await;
    let day_after = |day: &str| format!("{day}T00:00:00Z");
    let paths = |day: &str| {
        let time = day_after(day).replace('+', "%2B");
        let day = day.replace('+', "%2B");
        [
            format!("heat?day={day}&zone=Pacific/Kiritimati&spread=24h"),
            format!("heat?day={day}&zone=America/Adak"),
            format!("minute?at={time}&spread=24h"),
            format!("timeline?from={time}&to={time}"),
        ]
    };
    for day in
        ["%2B262142-12-31", "+262142-12-31", "-262143-01-01", "10000-01-01", "1969-12-31", "0000-01-01", "-0001-01-01"]
    {
        for path in paths(day) {
            let (code, _, body) = site.send(&format!("GET /api/{path}")).await;
            let error = serde_json::from_str::<Value>(&body).unwrap()["error"].clone();
            assert_eq!((code, error.is_string()), (400, true), "{path}: {body}");
        }
    }
    for day in ["1970-01-01", "9999-12-31"] {
        for path in &paths(day)[..3] {
            site.get(path).await;
        }
    }
    for (from, to) in [("1970-01-01", "1970-01-31"), ("9999-12-01", "9999-12-31")] {
        site.get(&format!("timeline?from={}&to={}", day_after(from), day_after(to))).await;
    }
}

#[tokio::test]
async fn files_are_for_everybody_and_answers_for_sessions_in_the_header() {
    let site = Site::of(&manifest("nightly", "0 2 * * *", "", "suspend: false")).await;
    let session = site.authorization.strip_prefix("Bearer ").unwrap();
    let cookie = format!("session={session}; cronjob-controller-ui-1={session}");
    for (path, with, without) in [
        ("/", 200, 200),
        ("/assets/app.js", 200, 200),
        ("/assets/none.js", 404, 404),
        ("/api/summary", 200, 401),
        ("/api/cronjobs", 200, 401),
        ("/api/none", 404, 401),
    ] {
        let line = format!("GET {path}");
        assert_eq!(site.send(&line).await.0, with, "{path}");
        for headers in
            [&[][..], &[("cookie", &*cookie)], &[("authorization", "Bearer 0")], &[("authorization", "Bearer ")]]
        {
            let (status, headers, body) = site.send_with(&line, headers).await;
            assert_eq!(status, without, "{path}");
            assert!(!headers.contains_key("set-cookie") && !body.contains("nightly"), "{path}: {headers:?}");
        }
    }
    for path in ["/api/events", "/api/heat", "/api/minute", "/api/timeline", "/api/cronjob?namespace=shop&name=nightly"]
    {
        let (status, _, body) = site.send_with(&format!("GET {path}"), &[("cookie", &cookie)]).await;
        assert_eq!((status, body.contains("printed last")), (401, true), "{path}: {body}");
    }
}

#[tokio::test]
async fn used_token_is_refused_and_opens_another_link() {
    let site = Site::of(&manifest("nightly", "0 2 * * *", "", "suspend: false")).await;
    let used = token(&site.access);
    let exchange = async |token: &str| {
        let (status, headers, body) = site.send_with("POST /session", &[("authorization", token)]).await;
        assert!(!headers.contains_key("set-cookie"), "{headers:?}");
        (status, body)
    };
    let (status, body) = exchange(&format!("Bearer {used}")).await;
    assert_eq!((status, body.contains("printed last")), (401, true), "{body}");
    let next = token(&site.access);
    assert_ne!(used, next);
    for wrong in ["Bearer ", "Bearer 0", &format!("Basic {next}"), &format!("Bearer {used}")] {
        assert_eq!(exchange(wrong).await.0, 401, "{wrong}");
    }
    let (status, body) = exchange(&format!("Bearer {next}")).await;
    assert_eq!((status, body.contains("session")), (200, true), "{body}");
    assert_eq!(site.get("summary").await["cronJobs"], 1, "the first session stays");
}

#[tokio::test]
async fn no_answer_leads_to_another_address() {
    let site = Site::of(&manifest("nightly", "0 2 * * *", "", "suspend: false")).await;
    let token = token(&site.access);
    for (path, want) in [
        ("/?token=", 200),
        ("/?view=heat&token=", 200),
        ("//evil.example/?token=", 404),
        ("/\\evil.example?token=", 404),
        ("/%5Cevil.example/?token=", 404),
        ("/.%2F%5Cevil.example?token=", 404),
        ("/evil.example//?token=", 404),
    ] {
        let Ok(uri) = format!("{path}{token}").parse::<http::Uri>() else { continue };
        let (status, headers, _) = site.send(&format!("GET {uri}")).await;
        let known = ["location", "refresh", "set-cookie"].map(|name| headers.contains_key(name));
        assert_eq!((status, known), (want, [false; 3]), "{path}");
    }
}

/// The steps of the rows, of a line of time of 32 days for each, and of the load of a day.
fn steps_of_page(manifests: &str) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("all.yaml"), manifests).unwrap();
    let now: chrono::DateTime<chrono::Utc> = "2026-11-26T12:00:00Z".parse().unwrap();
    let half = chrono::TimeDelta::days(16);
    // What is read from files was created then.
    let long_ago: SharedClock = TestClock::new(now - half * 2);
    let source = Source::of_files(&[directory.path().to_owned()], false, "shop", &"".into(), &long_ago).unwrap();
    let board =
        Board::new(source, Zone::UTC, "".into(), TestClock::new(now), Shell { program: PROGRAM, flags: String::new() });
    let (steps, days) = apimachinery::steps::of(|| {
        board.refresh();
        for name in board.model().rows.keys() {
            timeline::line(&board, name, now - half, now + half).unwrap();
        }
        let cron_jobs: Vec<_> =
            board.source.cron_jobs.list().iter().map(|watched| Arc::clone(&watched.cron_job)).collect();
        let question = heat::Question {
            cron_jobs: &cron_jobs,
            zone: Zone::UTC,
            seed: "",
            lengths: None,
            is_plan: true,
            what_if: None,
            now,
        };
        question.day(now.date_naive(), Zone::UTC)
    });
    assert!(days.unwrap().starts > 0);
    steps
}

#[test]
fn steps_of_the_page_grow_with_the_cron_jobs_and_with_their_slots_in_view_whatever_the_schedule() {
    let many = |number: usize, schedule: &str, annotation: &str| -> String {
        let one = |at| manifest(&format!("cj-{at}"), schedule, annotation, "concurrencyPolicy: Forbid");
        (0..number).map(one).collect()
    };
    let lines: Vec<String> = (0..64).map(|at| format!("*/{} {} * * *", at / 24 + 1, at % 24)).collect();
    let lines = format!("cronjob-controller.dev/schedule: \"{}\"", lines.join("; "));
    // The minutes of 16 days, of a day and of the day before, and some for the marks and the rows.
    let most = (16 + 2) * 1_440 + 2_000 * 2 + 500;
    let hostile = steps_of_page(&many(1, "0 0 * * *", &lines));
    assert!(hostile <= most, "{hostile}");
    assert!(hostile >= 16 * 1_440 || !cfg!(debug_assertions), "{hostile}");
    let [once, twice] = [100, 200].map(|number| steps_of_page(&many(number, "0 * * * *", "")));
    assert!(twice <= once * 2 + once / 4, "{once} steps, and {twice} for twice as many CronJobs");
}

#[tokio::test]
async fn commands_of_a_what_if_leave_out_no_cron_job() {
    let one = |number: usize| manifest(&format!("report-{number:03}"), "0 2 * * *", "", "suspend: false");
    let manifests: String = (0..120).map(one).chain([manifest("other", "0 3 * * *", "", "suspend: false")]).collect();
    let site = Site::of(&manifests).await;
    let heat = site.get("heat?day=2027-03-28&zone=Etc/UTC&spread=1h&q=report").await;
    let commands: Vec<&str> =
        heat["whatIf"]["commands"].as_array().unwrap().iter().map(|command| command.as_str().unwrap()).collect();
    assert_eq!(commands.len(), 3, "{commands:#?}");
    for number in 0..120 {
        let name = format!(" report-{number:03}");
        assert_eq!(commands.iter().filter(|command| command.contains(&name)).count(), 1, "{name}");
    }
    assert!(commands.iter().all(|command| !command.contains('#') && !command.contains("other")), "{commands:#?}");
    let all = site.get("heat?day=2027-03-28&zone=Etc/UTC&spread=1h").await;
    assert_eq!(all["whatIf"]["commands"].as_array().unwrap().len(), 1, "--all");
}

/// Without a cluster, nothing has run.
#[tokio::test]
async fn counts_of_the_strip_are_those_of_the_filters() {
    let manifests = [
        manifest("nightly", "0 2 * * *", "", "suspend: false"),
        manifest("minutely", "* * * * *", "", "suspend: false"),
        manifest("held", "* * * * *", "", "suspend: true"),
        manifest("broken", "61 * * * *", "", "suspend: false"),
    ];
    let site = Site::of(&manifests.concat()).await;
    let states = site.get("summary").await["states"].as_object().unwrap().clone();
    for (state, number) in &states {
        assert_eq!(site.get(&format!("cronjobs?state={state}")).await["total"], *number, "{state}");
        assert_eq!(
            site.get(&format!("summary?state={state}")).await["states"],
            Value::Object(states.clone()),
            "{state}"
        );
    }
    assert_eq!((&states["never"], &states["stuck"], &states["stopped"]), (&0.into(), &1.into(), &1.into()));
    assert!(states["soon"].as_u64().unwrap() >= 1);
}

/// Only of CronJobs that are shown, so that no other query reaches a Prometheus.
#[tokio::test]
async fn history_is_that_of_a_prometheus_if_one_is_named() {
    let (address, asked) = server(200, &matrix(&[("failed", &[(1_795_392_000, "2")])]), &matrix(&[])).await;
    let found = json!({"Ok": {"days": [{"date": "2026-11-22", "runs": 2, "failed": 2, "seconds": null}]}});
    let named = Some(Prometheus::new(&address).unwrap());
    for (sentence, prometheus, name, want) in [("none is named", None, "a", Value::Null), ("one is", named, "a", found)]
    {
        let site = Site::with_history(Site::board(&manifest("a", "0 3 * * *", "", "")), prometheus).await;
        assert_eq!(site.get(&format!("history?namespace=shop&name={name}")).await, want, "{sentence}");
        assert_eq!(site.get("history?namespace=shop&name=other").await, Value::Null, "{sentence}");
    }
    assert_eq!(asked.lock().len(), 2);
}

#[tokio::test]
async fn report_of_a_shadow_is_shown_where_its_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    std::fs::write(&path, json!({"slots": 2, "missed": [], "twice": [], "differs": [], "listed": []}).to_string())
        .unwrap();
    for (file, has_shadow, status) in [(None, false, 400), (Some(ShadowFile::new(path)), true, 200)] {
        let board = Site::board(&manifest("nightly", "0 2 * * *", "", ""));
        let site = Site::with_all(board, None, file).await;
        assert_eq!(site.get("summary").await["hasShadow"], has_shadow);
        let (found, _, body) = site.send("GET /api/shadow").await;
        assert_eq!(found, status, "{body}");
        assert_eq!(body.contains("\"slots\":2"), has_shadow, "{body}");
    }
}

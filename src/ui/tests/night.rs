//! What an operator asks at night, from the page's API and in a terminal, of a shop's fleet with a night of failures.

use apimachinery::clock::Clock as _;
use chrono::{DateTime, Utc};
use kube::Client;
use testkit::embedded::server;
use testkit::night::{CRON_JOBS, NOW, play};

use super::*;
use crate::api::ControllerKind;
use crate::cli::cluster::{ControllerFlags, Known, read_all};
use crate::cli::explain::explain;
use crate::cli::list::listing;
use crate::cli::list::next_hour::NextHour;
use crate::cli::list::night::Night;
use crate::cli::next::cron_jobs::{Answer, CronJobRuns, Question};
use crate::cli::output::{Format, Report, Screen};

/// The page of the fleet, and what the commands read.
struct Fleet {
    site: Site,
    client: Client,
    known: Vec<Known>,
    now: DateTime<Utc>,
    zone: Zone,
    _cancel: tokio_util::sync::DropGuard,
}

impl Fleet {
    async fn new() -> Self {
        let clock = TestClock::new(NOW.parse().unwrap());
        let client = server(clock.clone()).client();
        play(&client, &clock).await;
        let (source, informers) = Source::of_cluster(client.clone(), None, &"".into());
        let shell = Shell { program: PROGRAM, flags: String::new() };
        let shared: SharedClock = clock.clone();
        let board = Board::new(Arc::clone(&source), Zone::UTC, "".into(), Arc::clone(&shared), shell);
        let cancel = CancellationToken::new();
        tokio::spawn(informers.run(Arc::clone(&source), shared, cancel.clone()));
        // The time of the clock is tokio's, which is paused: until the caches have synced, and the leases are read.
        tokio::time::sleep(Duration::from_secs(2)).await;
        board.refresh();
        let (known, _) =
            read_all(&client, ControllerKind::CronJob, None, None, &ControllerFlags::default()).await.unwrap();
        let zone = Zone::load("Europe/Berlin", Zone::UTC).unwrap();
        Self { site: Site::with(board).await, client, known, now: clock.now(), zone, _cancel: cancel.drop_guard() }
    }

    /// What `explain NAME` says.
    async fn explained(&self, name: &str) -> String {
        let known = self.known.iter().find(|known| *known.facts.cron_job.name.name == *name).unwrap();
        let mut told = explain(&known.facts, Zone::UTC, self.now);
        told.read_failure(&self.client, ControllerKind::CronJob).await;
        told.lines().join("\n")
    }

    fn next(&self, name: &str) -> String {
        let known = self.known.iter().find(|known| *known.facts.cron_job.name.name == *name).unwrap();
        let question = Question { zone: Zone::UTC, seed: "".into(), from: None, count: 4, all: true };
        let runs = CronJobRuns::of(&known.facts.cron_job, &question, self.now);
        Answer::One(Box::new(runs)).lines().join("\n")
    }

    fn list(&self) -> String {
        listing(&self.known, Zone::UTC, self.now)
            .shown(Format::Table, Some(Screen { width: 80, colour: false }))
            .to_string()
    }

    fn night(&self) -> String {
        Night::of(&self.known, Zone::UTC, self.zone, self.now).lines().join("\n")
    }

    fn next_hour(&self) -> String {
        NextHour::of(&self.known, Zone::UTC, self.zone, self.now).lines().join("\n")
    }

    /// The words that an answer of the page's API does not have, or the terminal's, with that answer.
    async fn missing(&self, question: &str, path: &str, terminal: &str, words: &[&str]) -> Vec<String> {
        let page = self.site.get(path).await.to_string();
        let answers = [(path, page.as_str()), ("the terminal", terminal)];
        let missing = answers.into_iter().flat_map(|answer| words.iter().map(move |word| (answer, word)));
        missing
            .filter(|((_, answer), word)| !answer.contains(**word))
            .map(|((place, answer), word)| format!("{question}: {place} has no {word:?}: {answer}"))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn eight_questions_of_an_operator_have_the_same_answers_on_the_page_and_in_a_terminal() {
    let fleet = Fleet::new().await;
    let summary = fleet.site.get("summary").await;
    assert_eq!((&summary["cronJobs"], &summary["synced"]), (&CRON_JOBS.into(), &true.into()), "{summary}");
    let list = fleet.list();
    // A question, where the page has the answer, the command's answer, and the words of both.
    let rows: [(&str, &str, String, &[&str]); 11] = [
        (
            "what is broken now",
            "cronjobs?limit=9",
            list.clone(),
            &[
                "invoices",
                "payouts",
                "import-catalog",
                "rotate-certs",
                "send-reminders",
                "rebuild-search-index",
                "charge-cards",
                "export-orders",
                "refresh-prices",
            ],
        ),
        (
            "since when",
            "cronjobs?q=charge-cards",
            fleet.explained("charge-cards").await,
            &["No success for 10h11m (40 slots, 12 failed runs still known)"],
        ),
        (
            "since when runs are missed",
            "cronjobs?q=import-catalog",
            fleet.explained("import-catalog").await,
            &["The last 2 runs were missed, those of Sat 2026-11-28 02:00:00 +01:00 to Sat 2026-11-28 03:00:00 +01:00"],
        ),
        (
            "why",
            "cronjob?namespace=data&name=export-orders",
            fleet.explained("export-orders").await,
            &["OOMKilled", "BackoffLimitExceeded", "the last run failed, Job export-orders-"],
        ),
        (
            "why it does not start",
            "cronjob?namespace=shop&name=rebuild-search-index",
            fleet.explained("rebuild-search-index").await,
            &[
                "It is blocked: Job rebuild-search-index-29930280 has been running for 4h12m, and concurrencyPolicy is Forbid",
            ],
        ),
        (
            "what ran last night",
            "night?zone=Europe/Berlin",
            fleet.night(),
            &[
                "charge-cards",
                "no controller started it before a later run",
                "4m00s late",
                "took 1h35m",
                "ran, and concurrencyPolicy is Forbid",
                "failed, Job export",
            ],
        ),
        (
            "what runs in the next hour",
            "next-hour?zone=Europe/Berlin",
            fleet.next_hour(),
            &[
                "etl-orders",
                "by the median of 1h10m (concurrencyPolicy is Forbid)",
                "it is paused until a run succeeds: the last 3 runs failed",
            ],
        ),
        ("which minute is too full", "summary", fleet.next_hour(), &[]),
        (
            "what does this policy change",
            "cronjob?namespace=shop&name=nightly-report",
            fleet.next("nightly-report"),
            &["cronjob-controller.dev/exclude"],
        ),
        (
            "what do I run",
            "cronjob?namespace=payments&name=charge-cards",
            fleet.explained("charge-cards").await,
            &["kubectl logs -n payments charge-cards-", " trigger -n payments charge-cards"],
        ),
        (
            "what do I run for one that is blocked",
            "cronjob?namespace=shop&name=rebuild-search-index",
            fleet.explained("rebuild-search-index").await,
            &["kubectl delete job -n shop rebuild-search-index-29930280"],
        ),
    ];
    let mut missing = Vec::new();
    for (question, path, terminal, words) in rows {
        missing.extend(fleet.missing(question, path, &terminal, words).await);
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    // The worst are first on the page, and last in a terminal, above the prompt.
    let table = fleet.site.get("cronjobs?limit=2").await;
    assert_eq!((&table["rows"][0]["name"], &table["rows"][1]["name"]), (&"invoices".into(), &"payouts".into()));
    let overdue: Vec<&str> = list.lines().filter(|line| line.contains("overdue")).collect();
    assert_eq!(overdue.len(), 2, "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let since = "  no success for 10h11m (40 slots, 12 failed runs still known)";
    assert!(list.lines().any(|line| line == since), "{list}");
    // The fullest minute is 04:00 in Berlin.
    let hottest = &summary["hottest"];
    assert_eq!(hottest["at"], "2026-11-28T03:00:00Z", "{summary}");
    let hour = fleet.site.get("next-hour?zone=Europe/Berlin").await;
    let minutes = hour["minutes"].as_array().unwrap();
    let starts = |minute: &serde_json::Value| minute["slots"].as_u64().unwrap() - minute["held"].as_u64().unwrap();
    let fullest = minutes.iter().max_by_key(|minute| starts(minute)).unwrap();
    assert_eq!(fullest["at"], "2026-11-28T04:00:00+01:00", "{hour}");
    assert!(
        fleet.next_hour().contains(&format!("The fullest minutes: 04:00 ({}),", starts(fullest))),
        "{}",
        fleet.next_hour()
    );
    // One cause is said once.
    let banner = "The API server refuses the Jobs of 2 CronJobs of namespace payments: admission webhook \"guard.payments.example\" denied \
                  the request: quota service unreachable.";
    assert_eq!(summary["banners"][0]["text"], banner, "{summary}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&list).ends_with(banner), "{list}");
    let found = summary["banners"][0]["q"].as_str().unwrap().replace(' ', "%20").replace('"', "%22");
    let selected = fleet.site.get(&format!("cronjobs?q={found}&namespace=payments&state=overdue")).await;
    assert_eq!(selected["total"], 2, "{selected}");
}

#[tokio::test(start_paused = true)]
async fn groups_count_what_their_filters_select_and_an_unknown_one_is_said() {
    let fleet = Fleet::new().await;
    for (by, parameter, number) in [("namespace", "namespace", 4), ("label:team", "label", 4), ("image", "image", 5)] {
        let groups = fleet.site.get(&format!("groups?by={by}")).await;
        let all = groups["groups"].as_array().unwrap();
        assert!(groups["total"] == all.len() && all.len() >= number, "{by}: {groups}");
        let sum: u64 = all.iter().map(|group| group["cronJobs"].as_u64().unwrap()).sum();
        assert_eq!(sum, CRON_JOBS as u64, "{by}");
        for group in all {
            let filter = group["filter"].as_str().unwrap().replace('/', "%2F").replace('=', "%3D");
            let selected = fleet.site.get(&format!("cronjobs?{parameter}={filter}")).await;
            assert_eq!(selected["total"], group["cronJobs"], "{by} {filter}");
            let failed = fleet.site.get(&format!("cronjobs?{parameter}={filter}&state=failed")).await;
            assert_eq!(failed["total"], group["states"]["failed"], "{by} {filter}");
            // The other groups stay in sight.
            assert_eq!(fleet.site.get(&format!("groups?by={by}&{parameter}={filter}")).await["total"], groups["total"]);
        }
    }
    for (query, sentences) in [
        ("", &[][..]),
        ("label=team%3Dcheckout&namespace=payments", &[]),
        ("label=team", &[]),
        ("label=team%3Dnone", &["No CronJob has the label team=none."]),
        ("label=tame%3Dcheckout", &["No CronJob has a label tame."]),
        ("label=!team", &["Every CronJob has the label team."]),
        ("label=!tame", &[]),
        (
            "image=a%2Fb:1&namespace=nowhere",
            &["No CronJob is in the namespace nowhere.", "No CronJob has a container with the image a/b:1."],
        ),
    ] {
        let summary = fleet.site.get(&format!("summary?{query}")).await;
        assert_eq!(summary["unknown"], serde_json::json!(sentences), "{query}");
    }
    assert_eq!(fleet.site.get("summary").await["labelKeys"], serde_json::json!(["team"]));
    for (by, sentence) in [("label:tame", "No CronJob has a label tame."), ("", "by: "), ("label:", "by: ")] {
        let (status, _, body) = fleet.site.send(&format!("GET /api/groups?by={by}")).await;
        assert!(status == 400 && body.contains(sentence), "{by}: {status} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn heat_map_counts_running_jobs_by_the_durations_known() {
    let fleet = Fleet::new().await;
    let get = async |show: &str, q: &str| {
        fleet.site.get(&format!("heat?day=2026-11-28&zone=Europe/Berlin&q={q}&show={show}")).await
    };
    let minutes = |heat: &Value| heat["hours"][1]["minutes"].clone();
    let [starts, jobs] = [get("starts", "etl-sessions").await, get("jobs", "etl-sessions").await];
    assert_eq!((&minutes(&starts)[0], &minutes(&starts)[1]), (&1.into(), &0.into()));
    assert_eq!((&minutes(&jobs)[0], &minutes(&jobs)[59]), (&1.into(), &1.into()), "it takes 95 minutes");
    assert_eq!((&jobs["withoutLength"], starts.get("withoutLength")), (&0.into(), None));
    assert_eq!(get("jobs", "charge-cards").await["withoutLength"], 1);
    let minute = fleet.site.get("minute?at=2026-11-28T01:00:00Z&show=jobs&q=etl-sessions").await;
    assert_eq!((&minute["total"], &minute["rows"][0]["due"]), (&1.into(), &"2026-11-28T00:00:00Z".into()));
    let (status, _, body) = fleet.site.send("GET /api/heat?zone=UTC&show=pods").await;
    assert!(status == 400 && body.contains("show: "), "{body}");
}

#[tokio::test(start_paused = true)]
async fn findings_of_the_night_are_the_problems_of_the_page() {
    let fleet = Fleet::new().await;
    let states = fleet.site.get("summary").await["states"].clone();
    let problems: u64 =
        ["overdue", "stuck", "blocked", "failed"].iter().map(|state| states[state].as_u64().unwrap()).sum();
    let told: Vec<_> = fleet.known.iter().map(|known| explain(&known.facts, Zone::UTC, fleet.now)).collect();
    let found = told.iter().filter(|told| told.state.urgency() < crate::cli::explain::Urgency::Fine).count();
    assert_eq!(found as u64, problems, "{states}");
    let groups = fleet.site.get("groups?by=namespace").await;
    let counted: u64 =
        groups["groups"].as_array().unwrap().iter().map(|group| group["problems"].as_u64().unwrap()).sum();
    assert_eq!(counted, problems);
}

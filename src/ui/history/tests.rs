#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Query;
use axum::response::IntoResponse as _;
use axum::routing::get;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::*;

const NOW: &str = "2026-11-22T10:00:00Z";
/// The midnights at the end of the 21st and of the 22nd.
const ENDS: [i64; 2] = [1_795_305_600, 1_795_392_000];

/// What a server was asked, by parameter.
pub(in crate::ui) type Queries = Arc<Mutex<Vec<HashMap<String, String>>>>;

/// A server that answers each of the two queries with a status and a text; its address, and what it was asked.
pub(in crate::ui) async fn server(status: u16, runs: &str, seconds: &str) -> (Uri, Queries) {
    let asked = Queries::default();
    let (known, runs, seconds) = (Arc::clone(&asked), runs.to_owned(), seconds.to_owned());
    let answer = move |Query(query): Query<HashMap<String, String>>| async move {
        let text = if query["query"].starts_with("sum by (result)") { runs } else { seconds };
        known.lock().push(query);
        (StatusCode::from_u16(status).unwrap(), text).into_response()
    };
    let router = Router::new().route("/prom/api/v1/query_range", get(answer));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = format!("http://{}/prom/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
}

/// An answer as Prometheus has it, of series with a label `result`.
pub(in crate::ui) fn matrix(series: &[(&str, &[(i64, &str)])]) -> String {
    let series = series.iter().map(|(result, values)| {
        let metric = if result.is_empty() { serde_json::json!({}) } else { serde_json::json!({ "result": result }) };
        serde_json::json!({ "metric": metric, "values": values })
    });
    let result: Vec<_> = series.collect();
    serde_json::json!({ "status": "success", "data": { "resultType": "matrix", "result": result } }).to_string()
}

fn day(date: &str, runs: u64, failed: u64, seconds: Option<f64>) -> Day {
    Day { date: date.parse().unwrap(), runs, failed, seconds }
}

#[tokio::test]
async fn history_has_the_runs_of_each_day_with_failures_and_mean_durations() {
    let [saturday, sunday] = ENDS;
    let runs = matrix(&[
        ("succeeded", &[(saturday, "22.9"), (sunday, "9.95")]),
        ("failed", &[(saturday, "1.04"), (sunday, "0")]),
    ]);
    let seconds = matrix(&[("", &[(saturday, "61.5"), (sunday, "NaN")])]);
    let (address, asked) = server(200, &runs, &seconds).await;
    let (prometheus, name) = (Prometheus::new(&address).unwrap(), ObjectName::new("shop", "a\"b"));
    let history = prometheus.history(&name, NOW.parse().unwrap());
    let want = [day("2026-11-21", 24, 1, Some(61.5)), day("2026-11-22", 10, 0, None)];
    assert_eq!(history.await.unwrap().days, want);
    let mut asked = asked.lock().clone();
    asked.sort_by(|a, b| a["query"].len().cmp(&b["query"].len()));
    let metric = |name: &str| {
        format!(
            "increase(cronjob_controller_cronjob_{name}{{controller=\"cronjob\",namespace=\"shop\",name=\"a\\\"b\"}}[1d])"
        )
    };
    assert_eq!(asked[0]["query"], format!("sum by (result) ({})", metric("runs_total")));
    let (sum, count) = (metric("run_duration_seconds_sum"), metric("run_duration_seconds_count"));
    assert_eq!(asked[1]["query"], format!("sum({sum})/sum({count})"));
    for asked in &asked {
        let times = ["start", "end", "step"].map(|name| asked[name].parse::<i64>().unwrap());
        assert_eq!(times, [sunday - 29 * 86_400, sunday, 86_400]);
    }
}

#[tokio::test]
async fn whatever_fails_is_one_sentence() {
    let ok = matrix(&[]);
    let refused = r#"{"status": "error", "errorType": "bad_data", "error": "parse error"}"#;
    let long = format!("{{\"data\": \"{}\"}}", "x".repeat(MOST_BYTES));
    for (sentence, status, text, want) in [
        ("no series", 200, ok.as_str(), Ok(0)),
        ("an error of Prometheus", 400, refused, Err("Prometheus refuses the query: parse error")),
        ("a page", 200, "<html>", Err("what answers in place of Prometheus speaks another language")),
        ("a proxy", 502, "bad gateway", Err("what answers in place of Prometheus says 502 Bad Gateway")),
        ("a long answer", 200, &long, Err("the answer of Prometheus cannot be read: length limit exceeded")),
    ] {
        let (address, _) = server(status, text, text).await;
        let (prometheus, name) = (Prometheus::new(&address).unwrap(), ObjectName::new("shop", "a"));
        let history = prometheus.history(&name, NOW.parse().unwrap());
        let found = history.await.map(|history| history.days.len());
        assert_eq!(found.as_ref().map(|days| *days).map_err(String::as_str), want, "{sentence}");
    }
}

#[tokio::test]
async fn prometheus_that_is_not_there_or_does_not_answer_ends_the_wait() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let ask = async |timeout: Duration| {
        let prometheus = Prometheus { timeout, ..Prometheus::new(&address).unwrap() };
        prometheus.history(&ObjectName::new("shop", "a"), NOW.parse().unwrap()).await.unwrap_err()
    };
    assert_eq!(ask(Duration::from_millis(50)).await, "Prometheus has not answered within 0 s");
    drop(listener);
    let error = ask(TIMEOUT).await;
    assert!(error.starts_with("Prometheus cannot be reached: ") && error.contains("Connection refused"), "{error}");
}

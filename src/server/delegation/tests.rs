//! The whole path of a request, against an API server that knows a few users.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use apimachinery::clock::TestClock;
use axum::routing::get;
use chrono::{TimeDelta, TimeZone, Utc};
use futures::future::join_all;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use rcgen::{
    CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use serde_json::{Value, json};
use tokio::time::advance;
use tower::{ServiceExt, service_fn};

use super::*;

/// The behaviour of the API server, and the reviews that it received.
#[derive(Default)]
struct Server {
    asked: Mutex<Vec<String>>,
    /// Answers everything with this status.
    broken: Option<StatusCode>,
    silent: bool,
    /// The controller's audiences, and whether the API server ignores audiences.
    audiences: Vec<String>,
    ignores_audiences: bool,
    /// The largest number of reviews under way at a time.
    most: AtomicUsize,
    under_way: AtomicUsize,
    /// The bundle in the ConfigMap, if there is one.
    client_ca: Mutex<Option<String>>,
}

impl Server {
    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        Client::new(
            service_fn(move |request: http::Request<Body>| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(server.answer(request).await) }
            }),
            "default",
        )
    }

    async fn answer(&self, request: http::Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let (what, answer) = match path.rsplit('/').next() {
            Some("tokenreviews") => ("token", token_review(body, self.ignores_audiences)),
            Some("subjectaccessreviews") => ("access", access_review(body)),
            _ => ("ca", json!({"data": self.client_ca.lock().clone().map(|pem| json!({"client-ca-file": pem}))})),
        };
        self.asked.lock().push(what.to_owned());
        if self.silent {
            std::future::pending::<()>().await;
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        let (status, answer) = match self.broken {
            Some(status) => {
                (status, json!({"kind": "Status", "status": "Failure", "message": "no", "code": status.as_u16()}))
            }
            None => (StatusCode::CREATED, answer),
        };
        Response::builder().status(status).body(Body::from(answer.to_string().into_bytes())).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

/// `token-of-<name>` is that ServiceAccount's; `<name>` is in the group `masters` if it is the master. Tokens are for the
/// audience `api`, and the scraper's for `metrics`, too.
fn token_review(mut review: Value, ignores_audiences: bool) -> Value {
    review["status"] = match review["spec"]["token"].as_str().unwrap().strip_prefix("token-of-") {
        None => json!({"authenticated": false, "error": "invalid bearer token"}),
        Some("master") => json!({"authenticated": true, "user": {"username": "master", "groups": ["system:masters"]}}),
        Some(name) => json!({"authenticated": true, "user": {
            "username": format!("system:serviceaccount:default:{name}"), "uid": "u-1",
            "groups": ["system:serviceaccounts"], "extra": {"pod": ["p"]},
        }}),
    };
    let scraper = review["spec"]["token"] == "token-of-scraper";
    if let Some(asked) = review["spec"]["audiences"].as_array().filter(|_| !ignores_audiences) {
        let named = |asked: &&Value| **asked == "api" || scraper && **asked == "metrics";
        let named: Vec<Value> = asked.iter().filter(named).cloned().collect();
        if named.is_empty() {
            review["status"] = json!({"authenticated": false, "error": "wrong audience"});
        } else {
            review["status"]["audiences"] = json!(named);
        }
    }
    review
}

/// The scraper, the certificate's owner and every member of the group `readers` may get /metrics.
fn access_review(mut review: Value) -> Value {
    let spec = &review["spec"];
    let groups: Vec<&str> = spec["groups"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let known = groups.contains(&"system:authenticated") != groups.contains(&"system:unauthenticated");
    let reader = matches!(spec["user"].as_str(), Some("system:serviceaccount:default:scraper" | "jane"))
        || groups.contains(&"readers");
    let path = spec["nonResourceAttributes"]["path"].as_str().unwrap();
    let allowed =
        known && reader && ["/metrics", "/nothing"].contains(&path) && spec["nonResourceAttributes"]["verb"] == "get";
    let denied = spec["user"] == "system:serviceaccount:default:torn";
    review["status"] =
        json!({"allowed": allowed || denied, "denied": denied, "reason": if allowed { "RBAC" } else { "" }});
    review
}

fn ttls(seconds: u64) -> Ttls {
    let ttl = Duration::from_secs(seconds);
    Ttls { token: ttl, authorized: ttl, unauthorized: ttl }
}

fn delegation(server: &Arc<Server>, client_ca: Option<ClientCa>, ttls: Ttls) -> Router {
    let router = Router::new()
        .route("/metrics", get(async |headers: HeaderMap| format!("up {}", headers.contains_key(AUTHORIZATION))))
        .route("/healthz", get(async || "ok"));
    let paths = ["/healthz", "public/*"].map(str::to_owned);
    let (authentication, authorization) = (server.client(), server.client());
    let reviewers = Reviewers { authentication, audiences: server.audiences.clone(), authorization };
    Delegation::new(&paths, client_ca, reviewers, ttls).protect(router)
}

/// Status, content type and body of the answer to `METHOD /path [authorization]`.
async fn ask(router: &Router, line: &str, certificates: Option<&PeerCertificates>) -> (u16, String, String) {
    let mut words = line.splitn(3, ' ');
    let mut request = Request::builder().method(words.next().unwrap()).uri(words.next().unwrap());
    if let Some(authorization) = words.next() {
        request = request.header(AUTHORIZATION, authorization);
    }
    let mut request = request.body(axum::body::Body::empty()).unwrap();
    if let Some(certificates) = certificates {
        request.extensions_mut().insert(certificates.clone());
    }
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

/// The message of a Status, which must have this code and reason.
fn message((status, kind, body): &(u16, String, String)) -> String {
    assert_eq!(kind, "application/json");
    let object: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&object["kind"], &object["apiVersion"], &object["status"]),
        (&json!("Status"), &json!("v1"), &json!("Failure"))
    );
    assert_eq!(object["code"], *status);
    assert_eq!(object["reason"], if *status == 401 { "Unauthorized" } else { "Forbidden" });
    object["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn request_gets_the_same_answer_as_from_kube_controller_manager() {
    let server = Arc::new(Server::default());
    let router = delegation(&server, None, ttls(0));
    let account = |name: &str| format!("\"system:serviceaccount:default:{name}\"");
    let forbidden = |user: &str, what: &str| format!("forbidden: User {user} cannot {what}");
    let rows: Vec<(&str, &str, u16, String, &[&str])> = vec![
        ("who may", "GET /metrics Bearer token-of-scraper", 200, "up false".into(), &["token", "access"]),
        (
            "the scheme in any case",
            "GET /metrics bEARER token-of-scraper",
            200,
            "up false".into(),
            &["token", "access"],
        ),
        (
            "a path that is not there, for who may",
            "GET /nothing Bearer token-of-scraper",
            404,
            String::new(),
            &["token", "access"],
        ),
        ("the masters, without a question", "GET /metrics Bearer token-of-master", 200, "up false".into(), &["token"]),
        (
            "who may not",
            "GET /metrics Bearer token-of-other",
            403,
            forbidden(&account("other"), "get path \"/metrics\""),
            &["token", "access"],
        ),
        (
            "another verb",
            "HEAD /metrics Bearer token-of-scraper",
            403,
            forbidden(&account("scraper"), "head path \"/metrics\""),
            &["token", "access"],
        ),
        (
            "allowed and denied is denied",
            "GET /metrics Bearer token-of-torn",
            403,
            forbidden(&account("torn"), "get path \"/metrics\""),
            &["token", "access"],
        ),
        ("an unknown token", "GET /metrics Bearer forged", 401, "Unauthorized".into(), &["token"]),
        ("anonymous", "GET /metrics", 403, forbidden("\"system:anonymous\"", "get path \"/metrics\""), &["access"]),
        (
            "another scheme is anonymous",
            "GET /metrics Basic token-of-scraper",
            403,
            forbidden("\"system:anonymous\"", "get path \"/metrics\""),
            &["access"],
        ),
        (
            "a space too many is anonymous",
            "GET /metrics Bearer  token-of-scraper",
            403,
            forbidden("\"system:anonymous\"", "get path \"/metrics\""),
            &["access"],
        ),
        (
            "a path that does not exist is refused like one that does",
            "GET /%3Cscript%3E",
            403,
            forbidden("\"system:anonymous\"", "get path \"/%3Cscript%3E\""),
            &["access"],
        ),
        ("an allowed path", "GET /healthz", 200, "ok".into(), &[]),
        ("an always-allowed path needs no review", "GET /healthz Bearer forged", 200, "ok".into(), &[]),
        ("an allowed beginning", "GET /public/x", 404, String::new(), &[]),
        (
            "more than an allowed path",
            "GET /healthz/ping",
            403,
            forbidden("\"system:anonymous\"", "get path \"/healthz/ping\""),
            &["access"],
        ),
        (
            "an allowed path written otherwise",
            "GET /%68ealthz",
            403,
            forbidden("\"system:anonymous\"", "get path \"/%68ealthz\""),
            &["access"],
        ),
    ];
    for (sentence, line, status, text, asked) in rows {
        let answer = ask(&router, line, None).await;
        assert_eq!(answer.0, status, "{sentence}: {answer:?}");
        let found = if [401, 403].contains(&status) && !line.starts_with("HEAD") { message(&answer) } else { answer.2 };
        if !line.starts_with("HEAD") {
            assert_eq!(found, text, "{sentence}");
        }
        assert_eq!(server.asked(), asked, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_for_another_audience_is_refused() {
    for (sentence, audiences, ignores_audiences, line, status) in [
        ("no audience is demanded", &[] as &[&str], false, "GET /metrics Bearer token-of-scraper", 200),
        ("the token names it", &["metrics"], false, "GET /metrics Bearer token-of-scraper", 200),
        ("the token names one of two", &["other", "metrics"], false, "GET /metrics Bearer token-of-scraper", 200),
        ("the token names another", &["other"], false, "GET /metrics Bearer token-of-scraper", 401),
        ("a token for the API server alone", &["metrics"], false, "GET /metrics Bearer token-of-master", 401),
        ("the API server ignores audiences", &["metrics"], true, "GET /metrics Bearer token-of-scraper", 401),
    ] {
        let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        let server = Arc::new(Server { audiences, ignores_audiences, ..Server::default() });
        let answer = ask(&delegation(&server, None, ttls(0)), line, None).await;
        assert_eq!(answer.0, status, "{sentence}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_a_review_is_a_refusal() {
    let rows: [(&str, Server, &str, u16, &str); 5] = [
        (
            "tokens cannot be reviewed",
            Server { broken: Some(StatusCode::FORBIDDEN), ..Server::default() },
            "GET /metrics Bearer token-of-scraper",
            401,
            "\"Unauthorized\"",
        ),
        (
            "no answer about the permission",
            Server { broken: Some(StatusCode::INTERNAL_SERVER_ERROR), ..Server::default() },
            "GET /metrics",
            500,
            "Internal Server Error: \"/metrics\": create subjectaccessreviews.authorization.k8s.io: ",
        ),
        (
            "no answer about a token",
            Server { silent: true, ..Server::default() },
            "GET /metrics Bearer x",
            401,
            "\"Unauthorized\"",
        ),
        (
            "no answer about what may be done",
            Server { silent: true, ..Server::default() },
            "GET /metrics",
            500,
            "Internal Server Error: \"/metrics\": no answer to a review within 10 s",
        ),
        ("what needs no question is answered", Server { silent: true, ..Server::default() }, "GET /healthz", 200, "ok"),
    ];
    for (sentence, server, line, status, text) in rows {
        let started = Instant::now();
        let answer = ask(&delegation(&Arc::new(server), None, ttls(10)), line, None).await;
        assert!(answer.0 == status && answer.2.contains(text), "{sentence}: {answer:?}");
        assert!(started.elapsed() <= REVIEW_TIMEOUT + Duration::from_millis(100), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_cached_until_they_expire() {
    let server = Arc::new(Server::default());
    let ttl = |token, authorized, unauthorized| Ttls {
        token: Duration::from_secs(token),
        authorized: Duration::from_secs(authorized),
        unauthorized: Duration::from_secs(unauthorized),
    };
    let rows: [(&str, Ttls, &str, &[&str]); 5] = [
        ("both", ttl(10, 10, 10), "token-of-scraper", &["token", "access", "token", "access"]),
        ("a refusal, too", ttl(10, 10, 10), "token-of-other", &["token", "access", "token", "access"]),
        ("a forged token, too", ttl(10, 10, 10), "forged", &["token", "token"]),
        ("each for its own time", ttl(0, 10, 0), "token-of-scraper", &["token", "access", "token", "token", "access"]),
        ("a refusal for another time", ttl(20, 20, 0), "token-of-other", &["token", "access", "access", "access"]),
    ];
    for (sentence, ttls, token, asked) in rows {
        let router = delegation(&server, None, ttls);
        let line = format!("GET /metrics Bearer {token}");
        ask(&router, &line, None).await;
        advance(Duration::from_secs(9)).await;
        ask(&router, &line, None).await;
        advance(Duration::from_secs(2)).await;
        ask(&router, &line, None).await;
        assert_eq!(server.asked(), asked, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_forged_tokens_fills_neither_memory_nor_the_api_server() {
    let server = Arc::new(Server::default());
    let (authentication, authorization) = (server.client(), server.client());
    let reviewers = Reviewers { authentication, audiences: Vec::new(), authorization };
    let delegation = Delegation::new(&[], None, reviewers, ttls(3600));
    let facts = |token: usize| RequestFacts {
        verb: "get".to_owned(),
        path: "/metrics".to_owned(),
        token: Some(format!("forged-{token}")),
        certificates: None,
    };
    let flood: Vec<_> = (0..2 * REMEMBERED).map(facts).collect();
    let verdicts = join_all(flood.iter().map(|facts| delegation.judge(facts))).await;
    let refused = verdicts.iter().filter(|verdict| matches!(verdict, Err(Refusal::Unauthorized(_)))).count();
    let too_many = verdicts.iter().filter(|verdict| matches!(verdict, Err(Refusal::TooMany))).count();
    // The cache bounds its own entries. This test shows that few reviews are sent and the other requests are not
    // delayed.
    assert_eq!((refused, too_many), (REVIEWS + WAITING, flood.len() - REVIEWS - WAITING));
    assert!(server.most.load(Ordering::SeqCst) <= REVIEWS);
    assert_eq!(server.asked().len(), refused);
}

#[tokio::test(start_paused = true)]
async fn reviews_and_answers_without_permission_have_the_rate_of_upstreams_client() {
    let server = Arc::new(Server::default());
    let rows = [
        ("paths that nothing allows", "GET /metrics/", 403),
        ("forged tokens", "GET /metrics Bearer forged-", 401),
        ("health checks", "GET /healthz?", 200),
    ];
    for (sentence, line, status) in rows {
        let router = delegation(&server, None, ttls(10));
        let burst = async |from: usize| {
            let lines: Vec<String> = (from..from + 600).map(|number| format!("{line}{number}")).collect();
            let mut answered = 0;
            // A few at a time, so that none waits; without letting time pass.
            for lines in lines.chunks(REVIEWS) {
                let answers = join_all(lines.iter().map(|line| ask(&router, line, None))).await;
                assert!(answers.iter().all(|answer| [status, 429].contains(&answer.0)), "{sentence}: {answers:?}");
                answered += answers.iter().filter(|answer| answer.0 == status).count();
            }
            (answered, server.asked().len())
        };
        let started = Instant::now();
        let (answered, asked) = burst(0).await;
        let more = usize::try_from(started.elapsed().as_millis()).unwrap() / 5 + 1;
        assert!((400..=400 + more).contains(&answered), "{sentence}: {answered} in {:?}", started.elapsed());
        assert!(asked <= 400 + more, "{sentence}: {asked} questions");
        advance(Duration::from_secs(10)).await;
        assert!(burst(600).await.0 >= 400, "{sentence}: a pause is forgiven");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_to_too_many_requests_is_a_status_with_retry_after() {
    let server = Arc::new(Server { silent: true, ..Server::default() });
    let router = delegation(&server, None, ttls(10));
    let waiting: Vec<_> = (0..REVIEWS + WAITING)
        .map(|number| {
            let router = router.clone();
            tokio::spawn(async move { ask(&router, &format!("GET /metrics/{number}"), None).await.0 })
        })
        .collect();
    tokio::task::yield_now().await;
    let request = Request::get("/metrics").body(axum::body::Body::empty()).unwrap();
    let started = Instant::now();
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(ask(&router, "GET /healthz", None).await.0, 200, "what needs no question is answered");
    assert!(started.elapsed() < Duration::from_secs(1));
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), 500);
    }
    assert!(started.elapsed() <= REVIEW_TIMEOUT + Duration::from_secs(1), "{:?}", started.elapsed());
}

/// A CA and a certificate that it signed for a client of this name and these groups.
fn ca(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name = names(name, &[]);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn names(name: &str, groups: &[&str]) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    if !name.is_empty() {
        names.push(DnType::CommonName, name);
    }
    for group in groups {
        names.push(DnType::OrganizationName, *group);
    }
    names
}

fn signed(
    ca: &CertifiedIssuer<'static, KeyPair>,
    names: DistinguishedName,
    usage: ExtendedKeyUsagePurpose,
) -> PeerCertificates {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name = names;
    params.extended_key_usages = vec![usage];
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    let certificate = params.signed_by(&KeyPair::generate().unwrap(), ca).unwrap();
    PeerCertificates::new(&[certificate.der().clone()])
}

fn clock() -> Arc<TestClock> {
    TestClock::new(Utc.with_ymd_and_hms(2026, 6, 1, 0, 0, 0).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_client_certificate_is_a_user_and_its_groups() {
    let (ours, other) = (ca("ours"), ca("other"));
    let server = Arc::new(Server::default());
    *server.client_ca.lock() = Some(ours.pem());
    let cluster = || ClientCa::new(ClientCaSource::Cluster(server.client()), clock());
    let late = clock();
    late.step(TimeDelta::days(365));
    let late = || ClientCa::new(ClientCaSource::Cluster(server.client()), late.clone());
    let client = |ca, name: &str, groups: &[&str]| signed(ca, names(name, groups), ExtendedKeyUsagePurpose::ClientAuth);
    let server_auth = signed(&ours, names("jane", &[]), ExtendedKeyUsagePurpose::ServerAuth);
    let token = " Bearer token-of-scraper";
    let rows: Vec<(&str, ClientCa, PeerCertificates, &str, u16, &str)> = vec![
        ("its name is the user", cluster(), client(&ours, "jane", &[]), "", 200, "up"),
        ("its organizations are groups", cluster(), client(&ours, "joe", &["readers"]), "", 200, "up"),
        ("masters are masters", cluster(), client(&ours, "root", &["system:masters"]), "", 200, "up"),
        (
            "who may not, may not",
            cluster(),
            client(&ours, "joe", &["others"]),
            "",
            403,
            "forbidden: User \\\"joe\\\" cannot get",
        ),
        ("without a name it is anonymous", cluster(), client(&ours, "", &["readers"]), "", 403, "system:anonymous"),
        ("another CA's is not believed", cluster(), client(&other, "jane", &[]), "", 401, "Unauthorized"),
        ("nor one that is over", late(), client(&ours, "jane", &[]), "", 401, "Unauthorized"),
        ("nor one for servers", cluster(), server_auth, "", 401, "Unauthorized"),
        ("what is not believed is no obstacle to a token", cluster(), client(&other, "jane", &[]), token, 200, "up"),
        ("a certificate goes before a token", cluster(), client(&ours, "joe", &[]), token, 403, "\\\"joe\\\""),
    ];
    for (sentence, client_ca, certificates, more, status, text) in rows {
        let router = delegation(&server, Some(client_ca), ttls(10));
        let answer = ask(&router, &format!("GET /metrics{more}"), Some(&certificates)).await;
        assert!(answer.0 == status && answer.2.contains(text), "{sentence}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_ca_is_read_when_it_is_needed_and_again_when_it_may_have_changed() {
    let (old, new) = (ca("old"), ca("new"));
    let server = Arc::new(Server::default());
    let router = delegation(&server, Some(ClientCa::new(ClientCaSource::Cluster(server.client()), clock())), ttls(0));
    let jane = |ca| signed(ca, names("jane", &[]), ExtendedKeyUsagePurpose::ClientAuth);
    let (of_old, of_new) = (jane(&old), jane(&new));
    let status = async |certificates: &PeerCertificates| ask(&router, "GET /metrics", Some(certificates)).await.0;
    ask(&router, "GET /metrics", None).await;
    assert!(!server.asked().contains(&"ca".to_owned()), "no client has presented a certificate");

    assert_eq!(status(&of_old).await, 403, "without a CA a client certificate is ignored");
    *server.client_ca.lock() = Some(old.pem());
    assert_eq!(status(&of_old).await, 403, "it was looked for just now");
    advance(client_ca_age()).await;
    assert_eq!([status(&of_old).await, status(&of_new).await], [200, 401]);
    *server.client_ca.lock() = Some("broken".to_owned());
    advance(client_ca_age()).await;
    assert_eq!(status(&of_old).await, 200, "a broken bundle leaves the last one in place");
    *server.client_ca.lock() = Some(old.pem() + &new.pem());
    advance(client_ca_age()).await;
    assert_eq!([status(&of_old).await, status(&of_new).await], [200, 200], "both while they change over");
    *server.client_ca.lock() = Some(new.pem());
    advance(client_ca_age()).await;
    assert_eq!([status(&of_old).await, status(&of_new).await], [401, 200]);
    assert_eq!(server.asked().iter().filter(|asked| *asked == "ca").count(), 5);
}

fn client_ca_age() -> Duration {
    Duration::from_secs(61)
}

#[tokio::test]
async fn a_client_ca_file_that_cannot_be_used_is_named_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    let load = async || ClientCa::new(ClientCaSource::File(file.clone()), clock()).load().await;
    let error = load().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the client CA file ") && error.contains("ca.crt: "), "{error}");
    for (text, want) in [("", "it holds no certificate"), ("-----BEGIN CERTIFICATE-----\n!\n", "")] {
        std::fs::write(&file, text).unwrap();
        let error = load().await.unwrap_err().to_string();
        assert!(error.starts_with("the client CA cannot be used: ") && error.contains(want), "{error}");
    }
    std::fs::write(&file, ca("ours").pem()).unwrap();
    load().await.unwrap();
}

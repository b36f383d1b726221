//! Webhook calls in process: when the server makes them, with which objects, and what other clients do meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::support::{APPLY, JSON_PATCH, MERGE, Server, WIDGETS, at, widget};
use crate::{WebhookAnswer, WebhookCall, kinds};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// A server with a mutating and a validating webhook for widgets, in this order; `more` holds further fields of both.
pub async fn configured(more: &Value) -> Server {
    let server = Server::new();
    for resource in kinds::extensions() {
        server.api.register(resource);
    }
    for (kind, plural) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ] {
        let mut webhook = json!({
            "name": kind.to_lowercase(), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{
                "apiGroups": ["test"], "apiVersions": ["v1"], "resources": ["widgets"],
                "operations": ["CREATE", "UPDATE"],
            }],
        });
        webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": "tests" },
            "webhooks": [webhook],
        });
        server.post(&format!("{CONFIGURATIONS}/{plural}"), &object).await.expect(201);
    }
    server
}

/// An answer that allows the object, with these operations of a JSON patch if the webhook is mutating.
pub fn allowed(review: &Value, webhook: &Value, operations: &Value) -> Value {
    let mut response = json!({ "uid": review["request"]["uid"], "allowed": true });
    if webhook["name"] == "mutatingwebhookconfiguration" {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(operations.to_string()));
    }
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

/// The calls so far.
type Asked = Arc<Mutex<Vec<WebhookCall>>>;

/// Webhooks that label every object and run `first` before the first answer.
fn labelling<F>(server: &Server, first: impl Fn(kube::Client) -> F + Send + Sync + 'static) -> Asked
where
    F: Future<Output = ()> + Send + 'static,
{
    let asked = Asked::default();
    let (client, seen) = (server.api.client(), Arc::clone(&asked));
    server.api.set_webhook_caller(Arc::new(move |call| {
        let is_first = {
            let mut seen = seen.lock();
            seen.push(call.clone());
            seen.len() == 1
        };
        let wait = if is_first { first(client.clone()).boxed() } else { async {}.boxed() };
        async move {
            wait.await;
            let labels = json!([{ "op": "add", "path": "/metadata/labels", "value": { "seen": "yes" } }]);
            Ok(allowed(&call.review, &call.webhook, &labels)) as WebhookAnswer
        }
        .boxed()
    }));
    asked
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn match_conditions_decide_whether_a_webhook_is_called() {
    let rows: [(&str, &str, bool, usize); 5] = [
        ("it holds", "object.metadata.name == 'a' && request.operation == 'CREATE'", true, 0),
        ("it does not", "object.metadata.name != 'a'", false, 0),
        ("about the old object", "oldObject == null", true, 0),
        ("it has no result", "object.metadata.zz == 1", true, 2),
        ("it is not evaluated here", "url(object.metadata.name).getHost() == 'a'", true, 2),
    ];
    for (name, expression, is_called, warnings) in rows {
        let conditions = json!([{ "name": "only", "expression": expression }]);
        let server = configured(&json!({ "matchConditions": conditions })).await;
        let asked = labelling(&server, |_| async {});
        let answer = server.post(WIDGETS, &widget("a")).await;
        assert_eq!(asked.lock().len(), if is_called { 2 } else { 0 }, "{name}");
        let told = answer.warnings.iter().filter(|text| text.contains("does not judge"));
        assert_eq!(told.count(), warnings, "{name}");
    }
}

/// A write by another client during a webhook call.
async fn send(client: kube::Client, method: &str, path: String, content_type: &str, body: Value) {
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    client.request::<Value>(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_webhook_is_called_once_with_the_object_that_is_stored() {
    let server = configured(&json!({})).await;
    let asked = labelling(&server, |_| async {});
    let mut generated = widget("");
    generated["metadata"] = json!({ "generateName": "a-" });
    let stored = server.post(WIDGETS, &generated).await.expect(201);
    let calls = std::mem::take(&mut *asked.lock());
    assert_eq!(calls.len(), 2, "one mutates, one validates");
    for call in &calls {
        for field in ["uid", "name", "creationTimestamp"] {
            assert_eq!(call.review["request"]["object"]["metadata"][field], stored["metadata"][field], "{field}");
        }
    }
    assert_eq!(calls[0].review["request"]["object"]["metadata"]["labels"], Value::Null);
    assert_eq!(calls[1].review["request"]["object"]["metadata"]["labels"]["seen"], "yes");
    assert_ne!(calls[0].review["request"]["uid"], calls[1].review["request"]["uid"]);

    let revision = server.api.revision();
    server.ask("POST", &format!("{WIDGETS}?dryRun=All"), &[], &widget("b").to_string()).await.expect(201);
    assert_eq!(server.api.revision(), revision, "what is only tried is asked about and not stored");
    assert_eq!(asked.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn webhook_call_blocks_no_other_request_and_the_webhook_may_use_the_server() {
    let server = configured(&json!({})).await;
    let go_on = Arc::new(Semaphore::new(0));
    let wait = Arc::clone(&go_on);
    labelling(&server, move |client| {
        let wait = Arc::clone(&wait);
        async move {
            send(client, "GET", "/api/v1/namespaces/default".to_owned(), "", Value::Null).await;
            wait.acquire().await.unwrap().forget();
        }
    });
    let (first, second) = (widget("first"), widget("second"));
    let mut slow = std::pin::pin!(server.post(WIDGETS, &first));
    assert!(slow.as_mut().now_or_never().is_none(), "it waits for the webhook");
    server.post(WIDGETS, &second).await.expect(201);
    server.get(&at("first")).await.expect(404);
    go_on.add_permits(1);
    slow.await.expect(201);
    server.get(&at("first")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn client_that_disconnects_during_a_webhook_call_has_written_nothing() {
    let server = configured(&json!({})).await;
    labelling(&server, |_| std::future::pending());
    let revision = server.api.revision();
    assert!(server.post(WIDGETS, &widget("a")).now_or_never().is_none());
    assert_eq!(server.api.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn object_that_changes_during_a_webhook_call_is_sent_again() {
    let resize = |size: i64| json!({ "spec": { "size": size } });
    let renamed =
        json!({ "apiVersion": "test/v1", "kind": "Widget", "metadata": { "name": "a" }, "spec": { "name": "b" } });
    let rows = [
        ("a merge patch", MERGE, json!({ "spec": { "name": "b" } })),
        ("a JSON patch", JSON_PATCH, json!([{ "op": "add", "path": "/spec/name", "value": "b" }])),
        ("an apply", APPLY, renamed),
    ];
    for (sentence, content_type, patch) in rows {
        let server = configured(&json!({})).await;
        server.api.set_webhook_caller(Arc::new(|call| {
            async move { Ok(allowed(&call.review, &call.webhook, &json!([]))) }.boxed()
        }));
        server.post(WIDGETS, &widget("a")).await.expect(201);
        let asked = labelling(&server, move |client| {
            // Another client changes the object during the first call.
            send(client, "PATCH", at("a"), MERGE, resize(7))
        });
        let path = format!("{}?fieldManager=tester", at("a"));
        let stored = server.patch(&path, content_type, &patch).await.expect(200);
        assert_eq!((&stored["spec"]["size"], &stored["spec"]["name"]), (&json!(7), &json!("b")), "{sentence}");
        let questions: Vec<String> = asked
            .lock()
            .iter()
            .filter(|call| call.review["request"]["object"]["spec"]["name"] == "b")
            .map(|call| call.review["request"]["object"]["spec"]["size"].to_string())
            .collect();
        assert_eq!(questions, ["1", "7", "7"], "{sentence}: the first answer was about another object");
    }
}

#[tokio::test(start_paused = true)]
async fn write_conflicts_if_another_client_writes_during_the_webhook_call() {
    let server = configured(&json!({})).await;
    labelling(&server, |client| send(client, "POST", WIDGETS.to_owned(), "application/json", widget("a")));
    let reply = server.post(WIDGETS, &widget("a")).await;
    assert_eq!((reply.code, reply.message()), (409, "widgets.test \"a\" already exists"));

    let mut mine = server.get(&at("a")).await.expect(200);
    mine["spec"]["name"] = json!("mine");
    labelling(&server, |client| send(client, "PATCH", at("a"), MERGE, json!({ "spec": { "size": 7 } })));
    let reply = server.put(&at("a"), &mine).await;
    assert_eq!(reply.code, 409, "{}", reply.body);

    let mut gone = server.get(&at("a")).await.expect(200);
    gone["spec"]["name"] = json!("gone");
    labelling(&server, |client| send(client, "DELETE", at("a"), "", json!({})));
    server.put(&at("a"), &gone).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn write_fails_if_its_object_changes_during_every_webhook_call() {
    let server = configured(&json!({})).await;
    server.api.set_webhook_caller(Arc::new(|call| {
        async move { Ok(allowed(&call.review, &call.webhook, &json!([]))) }.boxed()
    }));
    server.post(WIDGETS, &widget("a")).await.expect(201);
    let client = server.api.client();
    let size = Arc::new(Mutex::new(1));
    server.api.set_webhook_caller(Arc::new(move |call| {
        let (client, size) = (client.clone(), Arc::clone(&size));
        async move {
            // Only the patch of this test is disturbed.
            if call.review["request"]["object"]["spec"]["name"] == "b" {
                let next = {
                    let mut size = size.lock();
                    *size += 1;
                    *size
                };
                send(client, "PATCH", at("a"), MERGE, json!({ "spec": { "size": next } })).await;
            }
            Ok(allowed(&call.review, &call.webhook, &json!([])))
        }
        .boxed()
    }));
    let reply = server.patch(&at("a"), MERGE, &json!({ "spec": { "name": "b" } })).await;
    assert_eq!((reply.code, &reply.body["reason"]), (504, &json!("Timeout")), "{}", reply.body);
    assert_eq!(server.get(&at("a")).await.expect(200)["spec"]["name"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn warnings_of_webhooks_and_the_server_are_sent_once() {
    let server = configured(&json!({})).await;
    server.api.set_webhook_caller(Arc::new(|call| {
        async move {
            let mut answer = allowed(&call.review, &call.webhook, &json!([]));
            answer["response"]["warnings"] = json!([format!("{} saw it", call.webhook["name"].as_str().unwrap())]);
            Ok(answer)
        }
        .boxed()
    }));
    let mut object = widget("a");
    object["spec"]["colour"] = json!("red");
    let reply = server.post(WIDGETS, &object).await;
    let warned: Vec<&str> = reply.warnings.iter().filter_map(|warning| warning.split('"').nth(1)).collect();
    let webhooks = ["mutatingwebhookconfiguration saw it", "validatingwebhookconfiguration saw it"];
    assert_eq!(warned, ["unknown field \\", webhooks[0], webhooks[1]], "{:?}", reply.warnings);
}

#[tokio::test]
async fn selectors_choose_the_objects_about_which_a_webhook_is_asked() {
    let rows = [
        ("no selector", json!({}), 2),
        ("a label of the object", json!({"objectSelector": {"matchLabels": {"a": "b"}}}), 2),
        ("another label", json!({"objectSelector": {"matchLabels": {"a": "c"}}}), 0),
        ("a label that its namespace does not have", json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}), 0),
    ];
    for (sentence, more, asked) in rows {
        let server = configured(&more).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        server.api.set_webhook_caller(Arc::new(move |call| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok(allowed(&call.review, &call.webhook, &json!([]))) }.boxed()
        }));
        let mut object = widget("a");
        object["metadata"]["labels"] = json!({"a": "b"});
        server.post(WIDGETS, &object).await.expect(201);
        assert_eq!(calls.load(Ordering::Relaxed), asked, "{sentence}");
    }
}

/// As the real server's validation code of v1.37.2 answers them.
#[tokio::test]
async fn bad_selectors_and_match_conditions_are_refused_with_the_texts_of_the_real_server() {
    let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let selector = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let many: Vec<Value> = (0..65).map(|number| condition(&format!("c{number}"), "true")).collect();
    let part = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let rows = [
        (
            "an operator that there is not",
            json!({"objectSelector": selector("a", "Is", json!([]))}),
            "webhooks[0].objectSelector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator".to_owned(),
        ),
        (
            "no values",
            json!({"namespaceSelector": selector("a", "In", json!([]))}),
            "webhooks[0].namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or \
             'NotIn'"
                .to_owned(),
        ),
        (
            "a key that is none",
            json!({"namespaceSelector": {"matchLabels": {"-a": "b"}}}),
            format!("webhooks[0].namespaceSelector.matchLabels: Invalid value: \"-a\": {part}"),
        ),
        (
            "a condition without a name",
            json!({"matchConditions": [condition("", "true")]}),
            "webhooks[0].matchConditions[0].name: Required value".to_owned(),
        ),
        (
            "a condition without an expression",
            json!({"matchConditions": [condition("a", " ")]}),
            "webhooks[0].matchConditions[0].expression: Required value".to_owned(),
        ),
        (
            "a name that is none",
            json!({"matchConditions": [condition("a b", "true")]}),
            format!("webhooks[0].matchConditions[0].name: Invalid value: \"a b\": {part}"),
        ),
        (
            "a name twice",
            json!({"matchConditions": [condition("a", "true"), condition("a", "false")]}),
            "webhooks[0].matchConditions[1].name: Duplicate value: \"a\"".to_owned(),
        ),
        (
            "too many",
            json!({"matchConditions": many}),
            "webhooks[0].matchConditions: Too many: 65: must have at most 64 items".to_owned(),
        ),
    ];
    let server = configured(&json!({})).await;
    for (sentence, change, want) in rows {
        for (kind, plural) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ] {
            let mut webhook =
                json!({"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"]});
            webhook.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": "bad" }, "webhooks": [webhook],
            });
            let reply = server.post(&format!("{CONFIGURATIONS}/{plural}"), &object).await;
            let told = format!("{kind}.admissionregistration.k8s.io \"bad\" is invalid: {want}");
            assert_eq!((reply.code, reply.body["message"].as_str()), (422, Some(&*told)), "{sentence}");
        }
    }
}

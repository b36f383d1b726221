#![allow(clippy::unwrap_used)]

use apiserver::WebhookCall;
use serde_json::json;

use super::*;

#[tokio::test]
async fn webhooks_of_the_controller_are_called_only_where_it_runs() {
    let service = |path: &str| json!({ "service": { "name": "s", "namespace": "n", "path": path } });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u", "operation": "CREATE", "object": {
            "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "metadata": { "name": "a" },
            "spec": { "schedule": "@daily", "jobTemplate": {} },
        } },
    });
    let rows = [
        ("with the controller", ControllerKind::Tutorial, service(MUTATE_PATH), Ok(true)),
        ("without it", ControllerKind::CronJob, service(MUTATE_PATH), Err("no endpoints available for service \"s\"")),
        ("another path", ControllerKind::Tutorial, service("/judge"), Err("no endpoints available for service \"s\"")),
    ];
    for (sentence, controller, config, want) in rows {
        let webhook = json!({ "name": "w", "clientConfig": config });
        let answer = caller(&[controller])(WebhookCall { webhook, review: review.clone() }).await;
        match (answer, want) {
            (Ok(answer), Ok(allowed)) => assert_eq!(answer["response"]["allowed"], allowed, "{sentence}"),
            (Err(told), Err(want)) => assert!(told.ends_with(want), "{sentence}: {told}"),
            (answer, _) => panic!("{sentence}: {answer:?}"),
        }
    }
}

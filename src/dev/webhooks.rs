//! Webhook calls of the API server in `dev`.
//!
//! Guarantees: if the controller of the tutorial's CronJobs runs in this process, its webhooks are called in process, without
//! network and certificates, whatever Service a configuration names. Any other Service has no endpoints, since its Deployment
//! starts no Pod. A webhook with a URL is called over HTTPS.

use std::sync::Arc;

use apiserver::{WebhookAnswer, WebhookCaller, webhooks_over_https};
use axum::body::Body;
use futures::FutureExt as _;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::api::ControllerKind;
use crate::webhook::{self, MUTATE_PATH, VALIDATE_PATH};

/// Calls the webhooks of these controllers in process, and those with a URL over HTTPS.
pub fn caller(controllers: &[ControllerKind]) -> WebhookCaller {
    let is_served = controllers.contains(&ControllerKind::Tutorial);
    let elsewhere = webhooks_over_https(Arc::new(|_, _, _| None));
    Arc::new(move |call| {
        let path = call.webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
        match [MUTATE_PATH, VALIDATE_PATH].into_iter().find(|own| is_served && *own == path) {
            Some(path) => async move { ask(path, &call.review).await }.boxed(),
            None => elsewhere(call),
        }
    })
}

/// Calls a webhook in this process.
async fn ask(path: &str, review: &Value) -> WebhookAnswer {
    let question = Request::post(path).header(CONTENT_TYPE, "application/json").body(Body::from(review.to_string()));
    let Ok(answer) = webhook::router().oneshot(question.map_err(|error| error.to_string())?).await;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    if !status.is_success() {
        return Err(String::from_utf8_lossy(&body).into_owned());
    }
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
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
            (
                "without it",
                ControllerKind::CronJob,
                service(MUTATE_PATH),
                Err("no endpoints available for service \"s\""),
            ),
            (
                "another path",
                ControllerKind::Tutorial,
                service("/judge"),
                Err("no endpoints available for service \"s\""),
            ),
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
}

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
mod tests;

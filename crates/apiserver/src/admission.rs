//! Admission webhooks: which webhooks the server calls for a write, and how it applies their answers.
//!
//! Guarantees: the server calls mutating webhooks before it validates an object and validating webhooks after. It calls them
//! one at a time, in the order of the configurations' names. A rejection has the real server's message and the webhook's
//! status. A webhook that cannot be called is handled by its `failurePolicy`. Without configurations the server calls no
//! webhook and draws no random number.
//!
//! The caller of the crate provides the transport ([`WebhookCaller`]); `webhook_client` implements it over HTTPS. The code in
//! this module is pure: an attempt at a write stops at a call that has no answer yet (`pending_write`).
//!
//! Known differences: deletions do not call webhooks. A mutating webhook is not called again after another one has changed the
//! object (`reinvocationPolicy`). The expressions of `matchConditions` are not evaluated: such a webhook is called whatever they
//! say, of which a warning tells on creation.
//!
//! Matches k8s.io/apiserver `pkg/admission/plugin/webhook` (`mutating/dispatcher.go`, `validating/dispatcher.go`,
//! `request/admissionreview.go`, `errors/statuserror.go`, `predicates/rules`).

use std::sync::Arc;

use apimachinery::quoting::quote;
use apimachinery::status::{self, Cause, Details, Result, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::body;
use super::kinds::label_selector_matches;
use super::meta;
use super::patch::json_patch;
use super::pending_write::{PendingWrite, WebhookAnswer, WebhookCall};
use super::rest::{Target, WriteOptions};
use super::store::{Id, Store, key};

/// Sends an AdmissionReview to a webhook and returns its answer, within the webhook's `timeoutSeconds`.
pub type WebhookCaller = Arc<dyn Fn(WebhookCall) -> BoxFuture<'static, WebhookAnswer> + Send + Sync>;

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const NAMESPACES: &str = "namespaces";
const GROUP: &str = "admissionregistration.k8s.io";
const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A write for which webhooks may be called.
pub struct Write<'a> {
    /// The object or collection that the write addresses.
    pub target: &'a Target,
    /// The options of the write.
    pub options: &'a WriteOptions,
    /// The object that it replaces; `None` for a new object.
    pub old: Option<&'a Value>,
}

impl Write<'_> {
    /// Calls the mutating webhooks and returns the object with their patches applied.
    pub fn mutate(&self, store: &mut Store, mut object: Value, pending: &mut PendingWrite) -> Result<Value> {
        for webhook in self.concerned(store, MUTATING) {
            if !self.is_selected(store, &webhook, &object) {
                continue;
            }
            let Some(response) = self.ask(store, &webhook, &object, pending)? else { continue };
            let operations = patch_of(&webhook, &response)?;
            if operations.is_empty() {
                continue;
            }
            json_patch(&mut object, &operations).map_err(|_| internal("the patch of the webhook cannot be applied"))?;
            let resource = &self.target.resource;
            body::normalize(resource, &mut object).map_err(|error| internal(&error))?;
            body::set_kind(resource, &mut object);
            resource.strategy.set_defaults(&mut object);
        }
        Ok(object)
    }

    /// Calls the validating webhooks and returns the first rejection.
    pub fn validate(&self, store: &mut Store, object: &Value, pending: &mut PendingWrite) -> Result<()> {
        for webhook in self.concerned(store, VALIDATING) {
            if self.is_selected(store, &webhook, object) {
                self.ask(store, &webhook, object, pending)?;
            }
        }
        Ok(())
    }

    fn operation(&self) -> &'static str {
        if self.old.is_some() { "UPDATE" } else { "CREATE" }
    }

    /// The webhooks whose rules match this write.
    fn concerned(&self, store: &Store, configurations: &str) -> Vec<Value> {
        // Webhook configurations are exempt; otherwise a broken one could never be repaired.
        let configurations = store.collections.get(configurations).filter(|_| self.target.resource.group != GROUP);
        let objects = configurations.into_iter().flat_map(|all| all.objects.iter()).map(|(_, entry)| entry.object());
        let webhooks = objects.flat_map(|object| object["webhooks"].as_array().cloned().unwrap_or_default());
        webhooks.filter(|webhook| array(&webhook["rules"]).iter().any(|rule| self.is_named_by(rule))).collect()
    }

    /// Whether the selectors of a webhook choose this write: by the labels of the object, new or old, and of its namespace. Matches
    /// `namespace.Matcher` and `object.Matcher`.
    fn is_selected(&self, store: &Store, webhook: &Value, object: &Value) -> bool {
        let Target { resource, namespace, .. } = self.target;
        let chooses = |selector: &Value, object: &Value| {
            selector.is_null() || label_selector_matches(selector, &object["metadata"]["labels"])
        };
        let by_object = &webhook["objectSelector"];
        let is_object = chooses(by_object, object) || self.old.is_some_and(|old| chooses(by_object, old));
        let by_namespace = &webhook["namespaceSelector"];
        let is_namespace = match resource.qualified_name() {
            name if name == NAMESPACES => chooses(by_namespace, object),
            _ if !resource.namespaced || by_namespace.as_object().is_none_or(Map::is_empty) => true,
            _ => {
                let id = Id { collection: NAMESPACES.to_owned(), key: key("", namespace) };
                store.get(&id).is_some_and(|found| chooses(by_namespace, &found))
            }
        };
        is_object && is_namespace
    }

    /// Matches `rules.Matcher`.
    fn is_named_by(&self, rule: &Value) -> bool {
        let Target { resource, subresource, .. } = self.target;
        let has = |field: &str, wanted: &str| array(&rule[field]).iter().any(|item| item == "*" || item == wanted);
        let names = |item: &Value| {
            let item = item.as_str().unwrap_or_default();
            let (name, sub) = item.split_once('/').unwrap_or((item, ""));
            (name == "*" || name == resource.plural) && (sub == "*" || sub == subresource)
        };
        let in_scope = match rule["scope"].as_str() {
            Some("Namespaced") => resource.namespaced,
            Some("Cluster") => !resource.namespaced,
            _ => true,
        };
        in_scope
            && has("operations", self.operation())
            && has("apiGroups", &resource.group)
            && has("apiVersions", &resource.version)
            && array(&rule["resources"]).iter().any(names)
    }

    /// Calls one webhook. Returns its answer if it allows the write, and `None` if it cannot be called and its policy is
    /// `Ignore`.
    fn ask(
        &self,
        store: &mut Store,
        webhook: &Value,
        object: &Value,
        pending: &mut PendingWrite,
    ) -> Result<Option<Value>> {
        let name = webhook["name"].as_str().unwrap_or_default();
        if self.options.dry_run && !matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")) {
            return Err(status::bad_request(format!("admission webhook {} does not support dry run", quote(name))));
        }
        let uid = pending.new_uid(store);
        let call = WebhookCall { webhook: webhook.clone(), review: self.review(&uid, object) };
        let response =
            pending.answer_to(call)?.map_err(|why| format!("failed to call webhook: {why}")).and_then(|review| {
                response_of(review, &uid).map_err(|why| format!("received invalid webhook response: {why}"))
            });
        let response = match response {
            Ok(response) => response,
            Err(_) if webhook["failurePolicy"] == "Ignore" => return Ok(None),
            Err(why) => return Err(internal(&format!("failed calling webhook {}: {why}", quote(name)))),
        };
        let texts = array(&response["warnings"]).iter().filter_map(Value::as_str);
        pending.warnings.extend(texts.map(str::to_owned));
        if response["allowed"] == true { Ok(Some(response)) } else { Err(refusal(name, &response["status"])) }
    }

    /// Matches `CreateV1AdmissionReview`.
    fn review(&self, uid: &str, object: &Value) -> Value {
        let Target { resource, subresource, namespace, .. } = self.target;
        let kind = json!({ "group": resource.group, "version": resource.version, "kind": resource.kind });
        let named = json!({ "group": resource.group, "version": resource.version, "resource": resource.plural });
        let mut request = json!({
            "uid": uid, "kind": kind, "resource": named, "requestKind": kind, "requestResource": named,
            "name": meta::text(object, "name"), "operation": self.operation(), "object": object, "oldObject": self.old,
            "userInfo": { "username": "admin", "groups": ["system:masters", "system:authenticated"] },
            "dryRun": self.options.dry_run,
        });
        for (field, text) in
            [("namespace", namespace), ("subResource", subresource), ("requestSubResource", subresource)]
        {
            if !text.is_empty() {
                request[field] = json!(text);
            }
        }
        json!({ "kind": KIND, "apiVersion": API_VERSION, "request": request })
    }
}

/// The operations of the JSON patch in an answer.
fn patch_of(webhook: &Value, response: &Value) -> Result<Vec<Value>> {
    let Some(patch) = response["patch"].as_str() else { return Ok(Vec::new()) };
    let operations = STANDARD.decode(patch).ok().and_then(|patch| serde_json::from_slice(&patch).ok());
    operations.ok_or_else(|| {
        let name = quote(webhook["name"].as_str().unwrap_or_default());
        internal(&format!("failed calling webhook {name}: received undecodable patch in webhook response"))
    })
}

/// The response in a review. Matches `VerifyAdmissionResponse`.
fn response_of(mut review: Value, uid: &str) -> std::result::Result<Value, String> {
    let response = review["response"].take();
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    let given = response["uid"].as_str().unwrap_or_default();
    if given != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(given)));
    }
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind != KIND || version != API_VERSION {
        return Err(format!("expected webhook response of {API_VERSION}, Kind={KIND}, got {version}, Kind={kind}"));
    }
    Ok(response)
}

/// Matches `ToStatusErr`.
fn refusal(webhook: &str, given: &Value) -> Box<Status> {
    // The reasons that apimachinery gives for these codes; here a webhook cannot give others.
    let code = given["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default().max(400);
    let known = ["BadRequest", "Forbidden", "NotFound", "Conflict", "Invalid", "InternalError"];
    let reason = known.into_iter().find(|reason| given["reason"] == *reason).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let message = match (given["message"].as_str().unwrap_or_default(), reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    let cause = |cause: &Value| Cause {
        reason: text(&cause["reason"]),
        message: text(&cause["message"]),
        field: text(&cause["field"]),
    };
    let details = &given["details"];
    let details = details.is_object().then(|| Details {
        name: text(&details["name"]),
        group: text(&details["group"]),
        kind: text(&details["kind"]),
        causes: array(&details["causes"]).iter().map(cause).collect(),
        ..Details::default()
    });
    Box::new(Status { code, reason, message, details, continue_token: None })
}

fn internal(why: &str) -> Box<Status> {
    let cause = Cause { message: why.to_owned(), ..Cause::default() };
    let details = Details { causes: vec![cause], ..Details::default() };
    let message = format!("Internal error occurred: {why}");
    Box::new(Status { code: 500, reason: "InternalError", message, details: Some(details), continue_token: None })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

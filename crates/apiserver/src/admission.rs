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
//! object (`reinvocationPolicy`). A webhook whose `matchConditions` are not judged (`cel`) is called, with a warning.
//!
//! Matches k8s.io/apiserver `pkg/admission/plugin/webhook` (`mutating/dispatcher.go`, `validating/dispatcher.go`,
//! `request/admissionreview.go`, `errors/statuserror.go`).

use std::sync::Arc;

use apimachinery::quoting::quote;
use apimachinery::status::{self, Cause, Details, Result, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::body;
use super::cel::Budget;
use super::matching::{Chosen, Request, array};
use super::object::Object;
use super::patch::json_patch;
use super::pending_write::{PendingWrite, WebhookAnswer, WebhookCall};
use super::policies::{Failure, Policies};
use super::rest::{Target, WriteOptions};
use super::store::{Id, Store, key};

/// Sends an AdmissionReview to a webhook and returns its answer, within the webhook's `timeoutSeconds`.
pub type WebhookCaller = Arc<dyn Fn(WebhookCall) -> BoxFuture<'static, WebhookAnswer> + Send + Sync>;

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
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
        for webhook in self.concerned(store, MUTATING, &object) {
            if !self.is_chosen(store, &webhook, &object, pending) {
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

    /// Judges the object by the policies, calls the validating webhooks, and returns the first rejection.
    pub fn validate(&self, store: &mut Store, object: &Value, pending: &mut PendingWrite) -> Result<()> {
        self.judge(store, object, pending)?;
        for webhook in self.concerned(store, VALIDATING, object) {
            if self.is_chosen(store, &webhook, object, pending) {
                self.ask(store, &webhook, object, pending)?;
            }
        }
        Ok(())
    }

    /// The webhooks whose rules match this write.
    fn concerned(&self, store: &Store, configurations: &str, object: &Value) -> Vec<Value> {
        let request = self.request(object, None);
        // Webhook configurations are exempt; otherwise a broken one could never be repaired.
        let configurations = store.collections.get(configurations).filter(|_| self.target.resource.group != GROUP);
        let objects = configurations.into_iter().flat_map(|all| all.objects.iter()).map(|(_, entry)| entry.object());
        let webhooks = objects.flat_map(|object| object["webhooks"].as_array().cloned().unwrap_or_default());
        webhooks.filter(|webhook| array(&webhook["rules"]).iter().any(|rule| request.is_named_by(rule))).collect()
    }

    /// The request, as configurations see it.
    fn request<'a>(&'a self, object: &'a Value, namespace_object: Option<&'a Value>) -> Request<'a> {
        let Target { resource, subresource, namespace, .. } = self.target;
        let (old, dry_run) = (self.old, self.options.dry_run);
        Request { resource, subresource, namespace, object, old, namespace_object, dry_run, is_alone: false }
    }

    /// The namespace of the object.
    fn namespace(&self, store: &Store) -> Option<Arc<Object>> {
        let Target { resource, namespace, .. } = self.target;
        let id = Id { collection: NAMESPACES.to_owned(), key: key("", namespace) };
        store.get(&id).filter(|_| resource.namespaced)
    }

    /// Whether a webhook is called: by its selectors and its conditions. A condition that is not judged keeps no webhook from being
    /// called, and a warning names it.
    fn is_chosen(&self, store: &Store, webhook: &Value, object: &Value, pending: &mut PendingWrite) -> bool {
        let namespace = self.namespace(store);
        let request = self.request(object, namespace.as_ref().map(|namespace| &***namespace));
        if !request.is_selected_by(webhook) {
            return false;
        }
        match request.meets(&webhook["matchConditions"], &mut None, &mut Budget::default()) {
            Chosen::Yes => true,
            Chosen::No => false,
            Chosen::Unknown(why) => {
                let name = quote(webhook["name"].as_str().unwrap_or_default());
                pending.warnings.push(format!("webhook {name} is called, because this server does not judge {why}"));
                true
            }
        }
    }

    /// Judges the object by the ValidatingAdmissionPolicies.
    fn judge(&self, store: &Store, object: &Value, pending: &mut PendingWrite) -> Result<()> {
        if store.collections.get(POLICIES).is_none_or(|policies| policies.objects.iter().next().is_none()) {
            return Ok(());
        }
        let collections = store.collections.values().flat_map(|collection| collection.objects.iter());
        let objects: Vec<Arc<Object>> = collections.map(|(_, entry)| entry.object()).collect();
        let namespace = self.namespace(store);
        let request = self.request(object, namespace.as_ref().map(|namespace| &***namespace));
        let judged = Policies::among(objects.iter().map(|object| &***object)).judge(&request);
        pending.warnings.extend(judged.warned.iter().map(Failure::warning));
        let unknown = judged.unknown.iter();
        pending
            .warnings
            .extend(unknown.map(|why| format!("ValidatingAdmissionPolicy {why}: it is not judged by this server")));
        judged.denied.first().map_or(Ok(()), |failure| Err(failure.status(&request)))
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
        json!({ "kind": KIND, "apiVersion": API_VERSION, "request": self.request(object, None).review(uid) })
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

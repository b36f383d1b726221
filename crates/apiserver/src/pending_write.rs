//! A write in progress.
//!
//! Guarantees: the server decides a write on one state of the store, under one lock, however many webhooks it calls. An attempt
//! that needs a missing answer stops without changing anything. Once the answer is there, the server decides the write again
//! from the start, on the current state. Times and random numbers stay the same between attempts, so a webhook is not called
//! twice for the same object. If another client changes the object in between, all webhooks are called again, as after a
//! conflict on the real server (`GuaranteedUpdate` in k8s.io/apiserver `pkg/storage/interfaces.go`).

use apimachinery::status;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::store::{Store, name_from, uid_from};

/// The maximum number of webhook calls for one write. Only a write whose object other clients keep changing comes near it.
const MAX_CALLS: usize = 64;

/// One webhook call.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// The webhook, as its configuration defines it.
    pub webhook: Value,
    /// The AdmissionReview.
    pub review: Value,
}

/// A webhook's answer: a whole AdmissionReview, or why the call failed.
pub type WebhookAnswer = std::result::Result<Value, String>;

/// The state of a write that is kept from one attempt to the next.
#[derive(Debug)]
pub struct PendingWrite {
    /// When the request arrived.
    pub now: DateTime<Utc>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    open: Option<WebhookCall>,
    answered: Vec<(WebhookCall, WebhookAnswer)>,
    /// The random numbers of the longest attempt, and how many of them this attempt has used.
    drawn: Vec<u64>,
    used: usize,
}

impl PendingWrite {
    /// The state of a write that was requested at `now`.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self { now, warnings: Vec::new(), open: None, answered: Vec::new(), drawn: Vec::new(), used: 0 }
    }

    /// Starts the next attempt.
    pub fn begin(&mut self) {
        self.warnings.clear();
        self.used = 0;
    }

    /// The call at which the attempt stopped; `None` if it completed.
    pub fn take_open(&mut self) -> Option<WebhookCall> {
        self.open.take()
    }

    /// Records an answer for the next attempt.
    pub fn learn(&mut self, call: WebhookCall, answer: WebhookAnswer) {
        self.answered.push((call, answer));
    }

    /// The recorded answer to `call`. If there is none yet, the attempt stops with an error that the client never sees. Returns
    /// 504 after `MAX_CALLS` calls.
    pub fn answer_to(&mut self, call: WebhookCall) -> status::Result<WebhookAnswer> {
        if let Some((_, answer)) = self.answered.iter().find(|(asked, _)| *asked == call) {
            return Ok(answer.clone());
        }
        if self.answered.len() < MAX_CALLS {
            self.open = Some(call);
        }
        Err(status::generic(504, ""))
    }

    /// A new UID.
    pub fn new_uid(&mut self, store: &mut Store) -> String {
        uid_from(|| self.number(store))
    }

    /// A new name that begins with `prefix`.
    pub fn new_name(&mut self, store: &mut Store, prefix: &str) -> String {
        name_from(prefix, || self.number(store))
    }

    fn number(&mut self, store: &mut Store) -> u64 {
        if self.used == self.drawn.len() {
            self.drawn.push(store.next_random());
        }
        self.used += 1;
        self.drawn[self.used - 1]
    }
}

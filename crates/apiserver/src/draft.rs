//! A write while it is decided.
//!
//! Guarantees: a write is decided on one state of the store, under one lock, however often webhooks are asked on its behalf.
//! An attempt that needs an answer that is not there stops, having changed nothing; with the answer the write is decided
//! anew, from its beginning, on the state of then. What is of the clock or of chance in it stays the same meanwhile, so nobody
//! is asked twice about the same object; if somebody else has changed the object in between, everybody is asked again,
//! as after a conflict on the real server (`GuaranteedUpdate` in k8s.io/apiserver `pkg/storage/interfaces.go`).

use apimachinery::status;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::store::{Store, name_from, uid_from};

/// How many questions a write may cost. Only one whose object others keep changing comes near.
const MAX_CALLS: usize = 64;

/// What a webhook is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// The webhook, as its configuration has it.
    pub webhook: Value,
    /// The AdmissionReview.
    pub review: Value,
}

/// What a webhook answers: a whole AdmissionReview, or why it could not be asked.
pub type WebhookAnswer = std::result::Result<Value, String>;

/// What is known of a write from one attempt to the next.
#[derive(Debug)]
pub struct Draft {
    /// When the request came.
    pub now: DateTime<Utc>,
    /// What the client is warned of.
    pub warnings: Vec<String>,
    open: Option<WebhookCall>,
    answered: Vec<(WebhookCall, WebhookAnswer)>,
    /// The random numbers of the longest attempt, and how many of them this one has used.
    drawn: Vec<u64>,
    used: usize,
}

impl Draft {
    /// The draft of a request that came at `now`.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self { now, warnings: Vec::new(), open: None, answered: Vec::new(), drawn: Vec::new(), used: 0 }
    }

    /// Begins the next attempt.
    pub fn begin(&mut self) {
        self.warnings.clear();
        self.used = 0;
    }

    /// What the attempt stopped at; without it, it came to its end.
    pub fn take_open(&mut self) -> Option<WebhookCall> {
        self.open.take()
    }

    /// Notes an answer for the next attempt.
    pub fn learn(&mut self, call: WebhookCall, answer: WebhookAnswer) {
        self.answered.push((call, answer));
    }

    /// What was answered. Where nothing was yet, the attempt stops with an error that nobody is told; 504 when it has asked
    /// too often.
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

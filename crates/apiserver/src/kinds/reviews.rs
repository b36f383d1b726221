//! Reviews of authentication.k8s.io/v1 and authorization.k8s.io/v1, which are answered and never stored.
//!
//! Guarantees: every request is allowed, and every client is the user `admin` of the group system:masters, because the server
//! has no users. Malformed reviews are rejected in upstream's words. Matches k8s.io/kubernetes
//! `pkg/apis/authorization/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::{Value, json};

use super::Kind;
use super::fields::{invalid, list, text};

pub(super) struct SelfSubject;
pub(super) struct Token;
pub(super) struct SubjectAccess;
pub(super) struct SelfSubjectAccess;
pub(super) struct LocalSubjectAccess;
pub(super) struct SelfSubjectRules;

fn user() -> Value {
    json!({"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]})
}

/// Matches `ValidateSubjectAccessReviewSpec`; without `subject`, `ValidateSelfSubjectAccessReviewSpec`.
fn validate(review: &Value, subject: bool) -> Vec<FieldError> {
    let spec = &review["spec"];
    let mut errors = Vec::new();
    let attributes = [&spec["resourceAttributes"], &spec["nonResourceAttributes"]];
    if attributes.iter().filter(|attributes| !attributes.is_null()).count() != 1 {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(invalid("spec", spec["nonResourceAttributes"].clone(), detail));
    }
    if subject && text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        errors.push(invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    errors
}

macro_rules! access_review {
    ($name:ident, $root:literal, $subject:literal) => {
        impl Kind for $name {
            const ROOT: &'static str = $root;
            const VIRTUAL: bool = true;

            fn validate_create(&self, object: &Value) -> Vec<FieldError> {
                validate(object, $subject)
            }

            fn answer(&self, object: &mut Value) {
                object["status"] = json!({"allowed": true});
            }
        }
    };
}

access_review!(SubjectAccess, "authorization.v1.SubjectAccessReview", true);
access_review!(LocalSubjectAccess, "authorization.v1.LocalSubjectAccessReview", true);
access_review!(SelfSubjectAccess, "authorization.v1.SelfSubjectAccessReview", false);

impl Kind for SelfSubjectRules {
    const ROOT: &'static str = "authorization.v1.SelfSubjectRulesReview";
    const VIRTUAL: bool = true;

    fn answer(&self, object: &mut Value) {
        // Upstream does not repeat the spec here.
        object["spec"] = json!({});
        object["status"] = json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        });
    }
}

impl Kind for Token {
    const ROOT: &'static str = "authentication.v1.TokenReview";
    const VIRTUAL: bool = true;

    fn answer(&self, object: &mut Value) {
        let asked = list(object, "spec.audiences").to_vec();
        let audiences = if asked.is_empty() { vec!["https://kubernetes.default.svc".into()] } else { asked };
        object["status"] = json!({"authenticated": true, "user": user(), "audiences": audiences});
    }
}

impl Kind for SelfSubject {
    const ROOT: &'static str = "authentication.v1.SelfSubjectReview";
    const VIRTUAL: bool = true;

    fn answer(&self, object: &mut Value) {
        object["status"] = json!({"userInfo": user()});
    }
}

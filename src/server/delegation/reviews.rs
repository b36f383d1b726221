//! TokenReview and SubjectAccessReview.
//!
//! Guarantees: an answer other than "yes" is a "no". A missing answer is an error, never a "no". No error contains the
//! token. Matches k8s.io/apiserver's plugin/pkg/authenticator/token/webhook and plugin/pkg/authorizer/webhook, without
//! their retries: scrapers retry by themselves.

use std::collections::BTreeMap;

use apimachinery::causes::with_causes;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};

use super::REVIEW_TIMEOUT;

/// Why a review failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    /// The API server could not be reached, or refused the review.
    #[error("create {review}: {}", with_causes(&**source))]
    Call {
        /// The kind of review.
        review: &'static str,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// The review was not sent: too many are under way, waiting, or were sent just now.
    #[error("too many reviews")]
    TooMany,
    /// The review took too long.
    #[error("no answer to a review within {} s", REVIEW_TIMEOUT.as_secs())]
    Timeout,
}

/// A user, as the API server knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
    pub(super) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of a request without credentials.
    pub(super) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }

    /// The same user in the group of all authenticated users. Matches `AuthenticatedGroupAdder`.
    pub(super) fn authenticated(mut self) -> Self {
        const AUTHENTICATED: &str = "system:authenticated";
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// The user of the token; `None` when the token is invalid, or names none of the audiences. Without audiences it has to
/// name the API server.
pub(super) async fn review_token(
    client: &Client,
    audiences: &[String],
    token: &str,
) -> Result<Option<User>, ReviewError> {
    let asked = Some(audiences.to_vec()).filter(|audiences| !audiences.is_empty());
    let spec = TokenReviewSpec { token: token.to_owned(), audiences: asked };
    let review = TokenReview { spec, ..TokenReview::default() };
    let answer =
        Api::<TokenReview>::all(client.clone()).create(&PostParams::default(), &review).await.map_err(|source| {
            ReviewError::Call { review: "tokenreviews.authentication.k8s.io", source: Box::new(source) }
        })?;
    // A server that does not know audiences ignores the question, and lists none.
    let status = answer.status.filter(|status| {
        let named = status.audiences.as_deref().unwrap_or_default();
        let intended = audiences.is_empty() || named.iter().any(|audience| audiences.contains(audience));
        status.authenticated == Some(true) && intended
    });
    Ok(status.map(|status| {
        let user = status.user.unwrap_or_default();
        User {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        }
    }))
}

/// Whether a user may use a verb on a path.
#[derive(Debug, Clone)]
pub(super) struct Question(SubjectAccessReviewSpec);

impl Question {
    pub(super) fn new(user: &User, verb: &str, path: &str) -> Self {
        let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some(verb.to_owned()) };
        Self(SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
            non_resource_attributes: Some(attributes),
            resource_attributes: None,
        })
    }

    /// Equal questions give equal bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }
}

/// The answer to an access review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) allowed: bool,
    pub(super) reason: String,
}

/// Sends a SubjectAccessReview.
pub(super) async fn review_access(client: &Client, Question(spec): Question) -> Result<Access, ReviewError> {
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api = Api::<SubjectAccessReview>::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await.map_err(|source| ReviewError::Call {
        review: "subjectaccessreviews.authorization.k8s.io",
        source: Box::new(source),
    })?;
    let status = answer.status.unwrap_or_default();
    Ok(Access { allowed: status.allowed && status.denied != Some(true), reason: status.reason.unwrap_or_default() })
}

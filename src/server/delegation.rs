//! Authentication and authorization on the secure port, delegated to the API server.
//!
//! Guarantees: a path that is not always allowed is answered only if the API server allows it, or allowed it within the
//! cache TTL. Every error on the way is a refusal. Always allowed paths need no review, whatever credentials a request
//! carries, so that probes do not depend on the API server. Tokens are not stored, only a keyed digest of them. The
//! number of cached answers, the number of reviews under way and waiting, their rate and their duration are bounded,
//! whatever clients send. Above a bound, and above a rate of requests that are refused or need no review, the answer is
//! 429.
//!
//! Matches what kube-controller-manager does with k8s.io/apiserver's `DelegatingAuthenticationOptions` and
//! `DelegatingAuthorizationOptions`, except for headers of a front proxy: there is no aggregation here, so they are
//! ignored.

mod answers;
mod cache;
mod client_certificate;
mod reviews;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use kube::Client;
use parking_lot::Mutex;
use ring::hmac;
use ring::rand::SystemRandom;
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{debug, warn};

use self::cache::Cache;
pub use self::client_certificate::{ClientCa, ClientCaError, ClientCaSource};
use self::reviews::{Access, Question, ReviewError, User};
use super::FirstRequest;
use super::budgets::{LogLimit, STRANGERS};
use crate::token_bucket::TokenBucket;

/// How many answers of each kind are cached. A client with more tokens than this causes repeated reviews.
const REMEMBERED: usize = 1024;

/// How many reviews of a kind may be under way at a time; more wait.
const REVIEWS: usize = 16;

/// How many reviews of a kind may wait. With those under way they are fewer than the listener's connections, so that
/// there is always a connection to evict.
const WAITING: usize = 32;

/// The time limit of a review, waiting included. Matches upstream's `TokenRequestTimeout` and `ClientTimeout`.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// The group that needs no access review, as in upstream's `AlwaysAllowGroups`: no API server refuses it.
const PRIVILEGED: &str = "system:masters";

/// The certificates that a client presented, its own first. The client has proved that it has the key; no CA has
/// verified them yet.
#[derive(Debug, Clone)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// The certificates of a TLS session.
    pub fn new(chain: &[CertificateDer<'static>]) -> Self {
        Self(chain.into())
    }
}

/// How long answers are cached; zero disables a cache.
#[derive(Debug, Clone, Copy)]
pub struct Ttls {
    /// The user of a token, or that the token is invalid.
    pub token: Duration,
    /// A positive access review.
    pub authorized: Duration,
    /// A negative access review.
    pub unauthorized: Duration,
}

/// The clients for reviews.
pub struct Reviewers {
    /// For TokenReviews.
    pub authentication: Client,
    /// The audiences of which a token must name one; none means those of the API server.
    pub audiences: Vec<String>,
    /// For SubjectAccessReviews.
    pub authorization: Client,
}

/// Passes requests on that the API server allows.
pub struct Delegation {
    always_allowed: AlwaysAllowed,
    client_ca: Option<ClientCa>,
    reviewers: Reviewers,
    ttls: Ttls,
    token_reviews: Reviews,
    access_reviews: Reviews,
    /// Limits the requests that are answered without the API server's permission.
    strangers: TokenBucket,
    warnings: LogLimit,
    refusals: LogLimit,
    digests: hmac::Key,
    /// By the digest of a token.
    users: Mutex<Cache<Option<User>>>,
    /// By the digest of an access review.
    accesses: Mutex<Cache<Access>>,
}

/// The reviews of one kind: limits on their number and rate.
struct Reviews {
    /// Under way or waiting.
    admitted: Semaphore,
    under_way: Semaphore,
    rate: TokenBucket,
}

impl Reviews {
    fn new() -> Self {
        Self {
            admitted: Semaphore::new(REVIEWS + WAITING),
            under_way: Semaphore::new(REVIEWS),
            rate: TokenBucket::new(STRANGERS),
        }
    }

    /// Runs a review within [`REVIEW_TIMEOUT`], waiting included.
    async fn ask<T>(&self, review: impl Future<Output = Result<T, ReviewError>>) -> Result<T, ReviewError> {
        let Ok(_admitted) = self.admitted.try_acquire() else { return Err(ReviewError::TooMany) };
        if self.rate.take().is_err() {
            return Err(ReviewError::TooMany);
        }
        let review = async {
            let _under_way = self.under_way.acquire().await;
            review.await
        };
        tokio::time::timeout(REVIEW_TIMEOUT, review).await.unwrap_or(Err(ReviewError::Timeout))
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// Too many reviews were requested, or too many requests were refused.
    #[error("too many requests")]
    TooMany,
    /// The request has credentials, and they are invalid or could not be verified.
    #[error("{0}")]
    Unauthorized(String),
    /// The user is known and may not read the path.
    #[error("{reason}")]
    Forbidden { user: String, reason: String },
    /// The API server did not decide whether the user may read the path.
    #[error(transparent)]
    Unknown(ReviewError),
}

impl From<ReviewError> for Refusal {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::TooMany => Self::TooMany,
            error => Self::Unknown(error),
        }
    }
}

impl Delegation {
    /// One with empty caches. `always_allow_paths` are whole paths, or prefixes if they end in `*`.
    pub fn new(always_allow_paths: &[String], client_ca: Option<ClientCa>, reviewers: Reviewers, ttls: Ttls) -> Self {
        let digests = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).expect("the system has randomness");
        Self {
            always_allowed: AlwaysAllowed::new(always_allow_paths),
            client_ca,
            reviewers,
            ttls,
            token_reviews: Reviews::new(),
            access_reviews: Reviews::new(),
            strangers: TokenBucket::new(STRANGERS),
            warnings: LogLimit::default(),
            refusals: LogLimit::default(),
            digests,
            users: Mutex::new(Cache::new(REMEMBERED)),
            accesses: Mutex::new(Cache::new(REMEMBERED)),
        }
    }

    /// Protects every path of `router`, including those that do not exist.
    pub fn protect(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), protect))
    }

    async fn judge(&self, request: &RequestFacts) -> Result<(), Refusal> {
        let user = self.authenticate(request).await?;
        if user.groups.iter().any(|group| group == PRIVILEGED) {
            return Ok(());
        }
        let question = Question::new(&user, &request.verb, &request.path);
        let access = self.authorize(question).await?;
        if access.allowed {
            return Ok(());
        }
        Err(Refusal::Forbidden { user: user.name, reason: access.reason })
    }

    /// The user of a request: by its certificate, else by its token, else `system:anonymous`. Matches the order of
    /// `DelegatingAuthenticatorConfig.New`: a credential that is not accepted does not exclude the next one.
    async fn authenticate(&self, request: &RequestFacts) -> Result<User, Refusal> {
        let mut refusal = None;
        if let (Some(client_ca), Some(PeerCertificates(chain))) = (&self.client_ca, &request.certificates) {
            match client_ca.user(chain).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(error) => refusal = Some(error.to_string()),
            }
        }
        if let Some(token) = &request.token {
            match self.user_of(token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => refusal = Some("invalid bearer token".to_owned()),
                Err(ReviewError::TooMany) => return Err(Refusal::TooMany),
                Err(error) => {
                    self.warn(&error, "a token could not be reviewed");
                    refusal = Some(error.to_string());
                }
            }
        }
        refusal.map_or_else(|| Ok(User::anonymous()), |why| Err(Refusal::Unauthorized(why)))
    }

    async fn user_of(&self, token: &str) -> Result<Option<User>, ReviewError> {
        let key = self.digest(token.as_bytes());
        if let Some(user) = self.users.lock().get(&key, Instant::now()) {
            return Ok(user);
        }
        let Reviewers { authentication, audiences, .. } = &self.reviewers;
        let user = self.token_reviews.ask(reviews::review_token(authentication, audiences, token)).await?;
        self.users.lock().put(key, user.clone(), self.ttls.token, Instant::now());
        Ok(user)
    }

    async fn authorize(&self, question: Question) -> Result<Access, ReviewError> {
        let key = self.digest(&question.bytes());
        if let Some(access) = self.accesses.lock().get(&key, Instant::now()) {
            return Ok(access);
        }
        let access = self.access_reviews.ask(reviews::review_access(&self.reviewers.authorization, question)).await?;
        let ttl = if access.allowed { self.ttls.authorized } else { self.ttls.unauthorized };
        self.accesses.lock().put(key, access.clone(), ttl, Instant::now());
        Ok(access)
    }

    /// Whether one more request may be answered without the API server's permission.
    fn admits_stranger(&self) -> bool {
        self.strangers.take().is_ok()
    }

    fn warn(&self, error: &ReviewError, what: &str) {
        if let Some(suppressed) = self.warnings.admit(Instant::now()) {
            warn!(%error, suppressed, "{what}");
        }
    }

    fn digest(&self, bytes: &[u8]) -> cache::Key {
        let mut key = cache::Key::default();
        key.copy_from_slice(hmac::sign(&self.digests, bytes).as_ref());
        key
    }
}

async fn protect(State(delegation): State<Arc<Delegation>>, mut request: Request, next: Next) -> Response {
    if delegation.always_allowed.contains(request.uri().path()) {
        // The rate of connections bounds these already, and a health probe opens one each time.
        let is_first = request.extensions().get::<FirstRequest>().is_some();
        if !is_first && !delegation.admits_stranger() {
            return answers::too_many_requests();
        }
        return next.run(request).await;
    }
    let facts = RequestFacts::of(&request);
    let refusal = match delegation.judge(&facts).await {
        Ok(()) => {
            request.headers_mut().remove(AUTHORIZATION);
            return next.run(request).await;
        }
        Err(refusal) => refusal,
    };
    if let Some(suppressed) = delegation.refusals.admit(Instant::now()) {
        debug!(path = facts.path, verb = facts.verb, reason = %refusal, suppressed, "a request was refused");
    }
    if !delegation.admits_stranger() {
        return answers::too_many_requests();
    }
    match refusal {
        Refusal::TooMany => answers::too_many_requests(),
        Refusal::Unauthorized(_) => answers::unauthorized(),
        Refusal::Forbidden { user, reason } => answers::forbidden(&user, &facts.verb, &facts.path, &reason),
        Refusal::Unknown(error) => {
            delegation.warn(&error, "whether a request is allowed is unknown");
            answers::internal_error(&facts.path, &error)
        }
    }
}

/// The properties of a request that the decision depends on.
struct RequestFacts {
    /// The method in lower case: the verb for non-resource paths.
    verb: String,
    /// The path as sent: the routes below see the same text.
    path: String,
    token: Option<String>,
    certificates: Option<PeerCertificates>,
}

impl RequestFacts {
    fn of(request: &Request) -> Self {
        Self {
            verb: request.method().as_str().to_ascii_lowercase(),
            path: request.uri().path().to_owned(),
            token: bearer_token(request.headers()),
            certificates: request.extensions().get::<PeerCertificates>().cloned(),
        }
    }
}

/// The token of an `Authorization` header. Matches `AuthenticateRequest` in k8s.io/apiserver's
/// pkg/authentication/request/bearertoken: another scheme counts as no credential.
fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().split(' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.to_owned())
}

/// The paths that need no review. Matches `NewAuthorizer` in k8s.io/apiserver's pkg/authorization/path.
#[derive(Debug)]
struct AlwaysAllowed {
    paths: Vec<String>,
    prefixes: Vec<String>,
}

impl AlwaysAllowed {
    fn new(patterns: &[String]) -> Self {
        let (mut paths, mut prefixes) = (Vec::new(), Vec::new());
        for pattern in patterns.iter().map(|pattern| pattern.strip_prefix('/').unwrap_or(pattern)) {
            match pattern.strip_suffix('*') {
                Some(prefix) => prefixes.push(prefix.to_owned()),
                None => paths.push(pattern.to_owned()),
            }
        }
        Self { paths, prefixes }
    }

    fn contains(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.paths.iter().any(|allowed| allowed == path)
            || self.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}

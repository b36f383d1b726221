//! A client that cannot write.
//!
//! Guarantee: a request of another verb than get, list and watch fails before it is sent, whatever the user may do. One that
//! upgrades its connection is refused, too: `exec` and the like are requests of the method GET.

use http::header::UPGRADE;
use http::{Method, Request};
use kube::client::Body;
use tower::filter::Filter;
use tower::{BoxError, Service, ServiceExt as _};

/// A request that is no read was not sent.
#[derive(Debug, thiserror::Error)]
#[error("not sent: {method} {path} is no read, and this client only reads")]
pub struct ReadOnlyError {
    method: Method,
    path: String,
}

/// Decides whether a request is sent.
type Admit = fn(Request<Body>) -> Result<Request<Body>, BoxError>;

/// Puts the refusal of writes around a service.
pub fn read_only<S>(service: S) -> Filter<S, Admit>
where
    S: Service<Request<Body>>,
{
    service.filter(admit as Admit)
}

fn admit(request: Request<Body>) -> Result<Request<Body>, BoxError> {
    if request.method() == Method::GET && !request.headers().contains_key(UPGRADE) {
        return Ok(request);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    Err(ReadOnlyError { method, path }.into())
}

#[cfg(test)]
mod tests;

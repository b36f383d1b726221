//! The connection to the collector.
//!
//! Guarantees: a request ends after [`TIMEOUT`] at the latest, and its response is read up to [`MAX_ANSWER`] bytes. It runs
//! in the process's own runtime whichever thread calls it: the exporter's thread has none.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Handle;

use super::TracesError;
use super::environment::Wanted;

/// The maximum duration of a batch, as in the specification.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of response bytes that are read.
const MAX_ANSWER: usize = 64 << 10;

/// A collector. It uses the API server's client with another address and without credentials, so TLS is set up in one place.
pub(super) struct Collector {
    client: kube::Client,
    /// The URL's path and query. The exporter, which logs URLs, does not know the query.
    target: PathAndQuery,
    runtime: Handle,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}

impl Collector {
    /// Reads the CA file; sends nothing yet.
    pub(super) fn new(wanted: &Wanted) -> Result<Self, TracesError> {
        let failed = |cause: String| TracesError::Client { endpoint: wanted.endpoint.to_string(), cause };
        let endpoint: Uri = wanted.endpoint.url.parse().map_err(|error| failed(format!("{error}")))?;
        let query = wanted.endpoint.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let target =
            format!("{}{query}", endpoint.path()).parse().map_err(|_| failed("its query is invalid".to_owned()))?;
        let mut origin = endpoint.into_parts();
        origin.path_and_query = Some(PathAndQuery::from_static("/"));
        let origin = Uri::from_parts(origin).map_err(|error| failed(error.to_string()))?;
        let mut config = kube::Config::new(origin);
        config.default_retry = false;
        config.proxy_url = None;
        config.connect_timeout = Some(TIMEOUT);
        if let Some(file) = &wanted.certificate {
            let unusable = |cause: String| TracesError::Certificate { file: file.clone(), cause };
            let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
            let certificates = CertificateDer::pem_slice_iter(&pem).map(|found| found.map(|der| der.to_vec()));
            config.root_cert =
                Some(certificates.collect::<Result<_, _>>().map_err(|error| unusable(error.to_string()))?);
        }
        let client = kube::Client::try_from(config).map_err(|error| failed(error.to_string()))?;
        Ok(Self { client, target, runtime: Handle::current() })
    }
}

async fn exchange(client: kube::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let response = client.send(request.map(|body| Body::from(Vec::from(body)))).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        mut request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        *request.uri_mut() = self.target.clone().into();
        let answer = self.runtime.spawn(async move { tokio::time::timeout(TIMEOUT, exchange(client, request)).await });
        Box::pin(async move { answer.await?? })
    }
}

#![allow(clippy::unwrap_used)]

mod connect;
mod layers;

use std::num::NonZeroU32;

use parking_lot::Mutex;

use super::*;

/// Records each report as one line.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl RequestObserver for Notes {
    fn observe(&self, method: &str, host: &str, code: &str, seconds: Option<f64>) {
        let seconds = seconds.map_or("untimed".to_owned(), |seconds| format!("{seconds:.3}s"));
        self.0.lock().push(format!("{method} {host} {code} {seconds}"));
    }

    fn rate_limited(&self, verb: &str, host: &str, seconds: f64) {
        self.0.lock().push(format!("{verb} {host} waited {seconds:.3}s"));
    }
}

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A client in all its layers whose server is the function `serve`.
pub fn client<F, R, B>(limit: Option<RateLimit>, observer: Arc<dyn RequestObserver>, serve: F) -> Client
where
    F: FnMut(Request<Body>) -> R + Send + 'static,
    R: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: http_body::Body<Data = <Body as http_body::Body>::Data> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    assemble(ClientBuilder::new(tower::service_fn(serve), "default"), "server:6443", limit, observer)
}

fn request(method: &str, path: &str) -> Request<Vec<u8>> {
    Request::builder().method(method).uri(path).body(vec![]).unwrap()
}

/// `qps` requests a second, with bursts of `burst`.
pub fn limit(qps: f64, burst: u32) -> RateLimit {
    RateLimit { qps, burst: NonZeroU32::new(burst).unwrap() }
}

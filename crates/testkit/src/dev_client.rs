//! A client of `cronjob-controller dev` that uses its kubeconfig alone: HTTPS, one request per connection, full control of
//! every byte.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

pub struct DevClient {
    /// `127.0.0.1:port`.
    pub address: String,
    /// The bearer token.
    pub token: String,
    config: Arc<ClientConfig>,
}

impl DevClient {
    /// Reads the kubeconfig that `dev` has written.
    pub fn new(kubeconfig: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
        };
        let pem =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, field("certificate-authority-data:"));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem.unwrap()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Self {
            address: field("server: https://"),
            token: field("token:"),
            config: Arc::new(config.with_root_certificates(roots).with_no_client_auth()),
        }
    }

    pub fn connect(&self) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }

    /// Sends a request with exactly these headers; returns the status and the document of the answer.
    pub fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> io::Result<(u16, Value)> {
        let mut stream = self.connect()?;
        let headers = headers.iter().fold(String::new(), |text, (name, value)| format!("{text}{name}: {value}\r\n"));
        write!(
            stream,
            "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        stream.flush()?;
        let mut answer = Vec::new();
        // The connection may end without a TLS close notification.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let document = answer.split_once("\r\n\r\n").map_or("", |(_, document)| document);
        Ok((status.ok_or(io::ErrorKind::UnexpectedEof)?, serde_json::from_str(document).unwrap_or_default()))
    }

    /// Sends a request as kubectl does; returns the document of the answer.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let authorization = format!("Bearer {}", self.token);
        let headers =
            [("host", &*self.address), ("authorization", &*authorization), ("content-type", "application/json")];
        self.send(&format!("{method} {path}"), &headers, body).ok().map(|(_, document)| document)
    }
}

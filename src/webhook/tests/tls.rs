//! The webhooks over TLS on loopback, while certificates change.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chrono::Utc;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::super::certificate::{Certificate, names_of};
use super::super::{VALIDATE_PATH, router};
use super::{cron_job, review};
use crate::server::{CertificateSlot, Tls, TlsParameters, TlsSource, bind};

/// Connects a client that trusts these CAs, with the name of the Service.
async fn connect(addr: SocketAddr, cas: &str) -> std::io::Result<TlsStream<TcpStream>> {
    connect_speaking(addr, cas, &[]).await
}

/// The same with these ALPN protocols.
pub async fn connect_speaking(
    addr: SocketAddr,
    cas: &str,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(cas.as_bytes()) {
        roots.add(ca.unwrap()).unwrap();
    }
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("webhook.system.svc").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(addr).await?).await
}

/// Asks whether a CronJob may be created; the connection stays open.
async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    let body = review("CREATE", &cron_job("report", &json!({ "schedule": "@daily" }))).to_string();
    let head = format!(
        "POST {VALIDATE_PATH} HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}}") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the connection was closed");
    }
    String::from_utf8(answer).unwrap()
}

async fn start() -> (SocketAddr, CertificateSlot, CancellationToken) {
    let tls = Tls::load(TlsSource::Handed, &TlsParameters::default()).unwrap();
    let (slot, cancel) = (tls.slot(), CancellationToken::new());
    let bound = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = bound.local_addr();
    tokio::spawn(bound.serve_https(tls, router::router(), cancel.clone()));
    (addr, slot, cancel)
}

pub fn make(predecessor: Option<&Certificate>) -> Certificate {
    Certificate::make(&names_of("webhook", "system"), predecessor, Utc::now()).unwrap()
}

fn install(slot: &CertificateSlot, certificate: &Certificate) {
    slot.install(certificate.cert.as_bytes(), certificate.key.as_bytes()).unwrap();
}

#[tokio::test]
async fn self_signed_certificate_is_trusted_only_by_clients_that_have_its_ca() {
    let (addr, slot, _cancel) = start().await;
    let (first, stranger) = (make(None), make(None));
    assert!(connect(addr, &first.ca).await.is_err(), "without a certificate there is nothing to shake hands with");
    install(&slot, &first);
    assert!(ask(&mut connect(addr, &first.ca).await.unwrap()).await.contains("\"allowed\":true"));
    assert!(connect(addr, &stranger.ca).await.is_err());

    // While the replicas switch, a client that has the new CA trusts both.
    let second = make(Some(&first));
    assert!(ask(&mut connect(addr, &second.ca).await.unwrap()).await.contains("\"allowed\":true"));
    install(&slot, &second);
    assert!(ask(&mut connect(addr, &second.ca).await.unwrap()).await.contains("\"allowed\":true"));
    assert!(connect(addr, &first.ca).await.is_err());
    assert_eq!(make(Some(&second)).ca.matches("BEGIN CERTIFICATE").count(), 2, "older CAs are forgotten");
}

#[tokio::test]
async fn key_of_another_certificate_is_refused_and_the_old_pair_stays_in_use() {
    let (addr, slot, _cancel) = start().await;
    let (first, second) = (make(None), make(None));
    install(&slot, &first);
    assert!(slot.install(second.cert.as_bytes(), first.key.as_bytes()).is_err());
    assert!(ask(&mut connect(addr, &first.ca).await.unwrap()).await.contains("\"allowed\":true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_certificates_are_replaced_under_load() {
    let (addr, slot, _cancel) = start().await;
    let certificates: Vec<Certificate> = (0..4).map(|_| make(None)).collect();
    let cas: Arc<str> = certificates.iter().map(|certificate| certificate.ca.as_str()).collect::<String>().into();
    install(&slot, &certificates[0]);
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let (cas, done, answered) = (Arc::clone(&cas), Arc::clone(&done), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut kept = connect(addr, &cas).await.unwrap();
                while !done.load(Ordering::Relaxed) {
                    // Half of the clients reuse their connection; the others open a new one for each request.
                    if number % 2 == 0 {
                        kept = connect(addr, &cas).await.unwrap();
                    }
                    assert!(ask(&mut kept).await.contains("\"allowed\":true"));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 1..=20 {
        let goal = answered.load(Ordering::Relaxed) + 20;
        while answered.load(Ordering::Relaxed) < goal && !clients.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        install(&slot, &certificates[round % certificates.len()]);
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no request fails");
    }
    assert!(answered.load(Ordering::Relaxed) >= 400);
}

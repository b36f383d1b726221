//! Listens on a socket, for kubectl and for clients in other languages: `cargo run -p memory-apiserver --example serve 8001`, then
//! `kubectl --server=http://127.0.0.1:8001 get namespaces`. Ends with Ctrl-C.

use std::error::Error;

use memory_apiserver::ApiServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("kubectl --server=http://{}", listener.local_addr()?);
    let ends = CancellationToken::new();
    let server = tokio::spawn(ApiServer::default().serve(listener, ends.clone()));
    tokio::signal::ctrl_c().await?;
    ends.cancel();
    Ok(server.await?)
}

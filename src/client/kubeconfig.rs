//! Builds kube's configuration from the command line.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::USER_AGENT;
use http::uri::{InvalidUri, Uri};
use http::{HeaderValue, uri::Scheme};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError, NamedCluster};

use super::ConnectError;
use crate::options::{Config, PROGRAM};

/// For TCP and TLS handshake together. A server that needs longer is treated as down, and the leader election has ten
/// seconds in total.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the socket may refuse to accept more of a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// kube's configuration for these flags. Matches client-go's `BuildConfigFromFlags`.
pub(super) async fn kube_config(config: &Config, component: &str) -> Result<kube::Config, ConnectError> {
    let kube = match (&config.kubeconfig, &config.master) {
        (Some(file), master) => return named("kubeconfig", file, master.as_deref(), component).await,
        (None, Some(master)) => {
            let url = server_url(master, false);
            let url = url.map_err(|cause| ConnectError::Master { master: master.clone(), cause })?;
            kube::Config::new(url)
        }
        (None, None) => kube::Config::incluster_env().map_err(|cause| ConnectError::InCluster { cause })?,
    };
    Ok(with_limits(kube, component))
}

/// kube's configuration from the file that `flag` names.
pub(super) async fn named(
    flag: &'static str,
    file: &Path,
    master: Option<&str>,
    component: &str,
) -> Result<kube::Config, ConnectError> {
    let kube = from_file(file, master).await;
    let kube =
        kube.map_err(|cause| ConnectError::Kubeconfig { flag, file: file.to_owned(), cause: Box::new(cause) })?;
    Ok(with_limits(kube, component))
}

/// kube's configuration for a user at a terminal: the given file and context, else kubectl's own. Inside a Pod without
/// such a file it is the service account. Matches client-go's `NewDefaultClientConfigLoadingRules`.
pub(super) async fn of_person(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, ConnectError> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let (read, named) = match file {
        Some(file) => (Kubeconfig::read_from(file), Some(file)),
        None => (Kubeconfig::read(), None),
    };
    let made = match read {
        Ok(kubeconfig) => from_kubeconfig(kubeconfig, None, &options).await,
        Err(cause) => match (named, kube::Config::incluster_env()) {
            (None, Ok(in_cluster)) => Ok(in_cluster),
            _ => Err(cause),
        },
    };
    let kube = made.map_err(|cause| match named {
        Some(file) => ConnectError::Kubeconfig { flag: "kubeconfig", file: file.to_owned(), cause: Box::new(cause) },
        None => ConnectError::Kubectl { cause: Box::new(cause) },
    })?;
    Ok(with_limits(kube, PROGRAM))
}

/// Whose credentials the configuration has, as far as its files tell.
pub(super) fn identity(config: &Config, kube: &kube::Config) -> String {
    if let Some(file) = &config.kubeconfig {
        let read = Kubeconfig::read_from(file).unwrap_or_default();
        let current = read.current_context.unwrap_or_default();
        let context = read.contexts.into_iter().find(|named| named.name == current).and_then(|named| named.context);
        let user = context.and_then(|context| context.user).unwrap_or_default();
        return format!("user {user:?} of context {current:?} in {}", file.display());
    }
    let token = kube.auth_info.token_file.as_ref().map(|file| std::fs::read_to_string(file).unwrap_or_default());
    match token {
        None => "none: --master alone sends no credentials".to_owned(),
        Some(token) => subject(&token).unwrap_or_else(|| "the Pod's service account".to_owned()),
    }
}

/// The subject of a service account's token, such as `system:serviceaccount:NAMESPACE:NAME`. The API server alone judges
/// whether the token is valid.
fn subject(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

fn with_limits(mut kube: kube::Config, component: &str) -> kube::Config {
    kube.cluster_url = without_user(kube.cluster_url);
    kube.default_retry = false;
    kube.connect_timeout = Some(CONNECT_TIMEOUT);
    kube.write_timeout = Some(WRITE_TIMEOUT);
    // A read timeout would end quiet watches too; `deadline` bounds all other requests.
    kube.read_timeout = None;
    kube.headers.push((USER_AGENT, user_agent(component)));
    kube
}

async fn from_file(file: &Path, master: Option<&str>) -> Result<kube::Config, KubeconfigError> {
    from_kubeconfig(Kubeconfig::read_from(file)?, master, &KubeConfigOptions::default()).await
}

async fn from_kubeconfig(
    mut kubeconfig: Kubeconfig,
    master: Option<&str>,
    options: &KubeConfigOptions,
) -> Result<kube::Config, KubeconfigError> {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        let tls = cluster.certificate_authority.is_some()
            || cluster.certificate_authority_data.is_some()
            || cluster.insecure_skip_tls_verify == Some(true);
        let server = master.or(cluster.server.as_deref()).filter(|server| !server.is_empty());
        // An address that does not parse stays as it is: it is an error only in the current context's cluster.
        cluster.server = server.map(|text| server_url(text, tls).map_or(text.to_owned(), |url| url.to_string()));
    }
    let clusters = kubeconfig.clusters.clone();
    let mut kube = kube::Config::from_custom_kubeconfig(kubeconfig, options).await?;
    kube.proxy_url = named_proxy(kube.proxy_url, &clusters);
    Ok(kube)
}

/// The proxy, if the file names it. kube also takes `HTTPS_PROXY`, but compares `NO_PROXY` with the proxy instead of
/// the server. That variable would therefore cut off servers that need no proxy.
pub(super) fn named_proxy(proxy: Option<Uri>, clusters: &[NamedCluster]) -> Option<Uri> {
    let named = |named: &NamedCluster| named.cluster.as_ref()?.proxy_url.as_ref()?.parse().ok();
    proxy.filter(|proxy| clusters.iter().filter_map(named).any(|named: Uri| named == *proxy))
}

/// The server's URL; without a scheme it is `https` if TLS is configured, else `http`. Matches client-go's
/// `DefaultServerURL`.
fn server_url(text: &str, tls: bool) -> Result<Uri, InvalidUri> {
    if text.contains("://") {
        return text.parse();
    }
    format!("{}://{text}", if tls { "https" } else { "http" }).parse()
}

/// The URL without a user and a password. They are not sent, and the URL stands in logs, errors and metrics.
fn without_user(url: Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.authority = parts.authority.and_then(|authority| authority.as_str().rsplit('@').next()?.parse().ok());
    Uri::from_parts(parts).unwrap_or(url)
}

/// The `host` label of the client's metrics. client-go takes it from the URL as configured, and its in-cluster
/// configuration always writes the port.
pub(super) fn host_label(kube: &kube::Config) -> String {
    let url = &kube.cluster_url;
    let host = url.authority().map_or("none", |authority| authority.as_str());
    let in_cluster = kube.auth_info.token_file.is_some() && kube.root_cert_file.is_some();
    if in_cluster && url.port().is_none() && url.scheme() == Some(&Scheme::HTTPS) {
        return format!("{host}:443");
    }
    host.to_owned()
}

fn user_agent(component: &str) -> HeaderValue {
    let mut text = format!("{PROGRAM}/{}", env!("CARGO_PKG_VERSION"));
    if component != PROGRAM {
        text = format!("{text} {component}");
    }
    HeaderValue::from_str(&text).expect("a version and a component's name are visible ASCII")
}

/// The cause without the file's name, which the surrounding message contains already.
pub(super) fn cause(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;

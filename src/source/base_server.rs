//! A server of the API: its base URL and its HTTP client. The key is sent only over HTTPS, to loopback, or to configured private
//! networks, and never to the target of a redirect.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use ipnet::IpNet;

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, HeaderMap, HeaderValue},
};

use super::route::RequestTarget;
use model::config::{EndpointVersion, SourceSettings};

/// An invalid `[source]` config.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("source.{key} is not a valid HTTP URL: {problem}; example: \"https://api.example.com\"")]
    Address { key: &'static str, problem: String },
    #[error(
        "source.{key} would send the API key unencrypted to {host}: use https (http is allowed only for loopback and for the private \
         networks in source.allow_http_networks)"
    )]
    NotHttps { key: &'static str, host: String },
    #[error("source.allow_http_networks: {network:?} is not a private network; example: \"10.0.0.0/8\"")]
    Network { network: String },
    #[error("source.{key} = \"{version}\" does not exist: use \"auto\" or one of {known}")]
    Version { key: &'static str, version: EndpointVersion, known: String },
    #[error("cannot read the certificates of source.tls_ca_file from {path}")]
    CaFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("source.tls_ca_file: {path} contains no certificate: expected a PEM file")]
    NoCertificate { path: PathBuf },
    #[error("cannot create the HTTP client of [source]")]
    Build(#[source] reqwest::Error),
}

/// Installs ring as the TLS provider of this process. Call it first in `main`. A second call has no effect.
pub fn install_crypto_provider() {
    // Fails if a provider is already installed.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
}

pub(super) struct BaseServer {
    pub http: reqwest::Client,
    pub base: Url,
}

impl BaseServer {
    /// Creates the HTTP client for one of the two base URLs. `key` is its config key.
    pub fn new(key: &'static str, address: &str, source: &SourceSettings) -> Result<Self, ClientError> {
        let bad = |problem: &str| ClientError::Address { key, problem: problem.to_owned() };
        // The errors do not quote the URL, which may contain a password by mistake.
        let base = Url::parse(address.trim()).map_err(|error| bad(&error.to_string()))?;
        let host = base.host_str().ok_or_else(|| bad("it has no host"))?;
        let is_local = is_loopback(host);
        let networks = private_networks(&source.allow_http_networks)?;
        let is_plain = base.scheme() == "http" && !is_local;
        match base.scheme() {
            "https" => {}
            "http" if is_local => {}
            "http" if !allows_http(host, &networks) => {
                return Err(ClientError::NotHttps { key, host: host.to_owned() });
            }
            "http" => {}
            other => return Err(bad(&format!("the scheme {other} is not supported"))),
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("it contains a username or password; put the key into source.api_key_file"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("it contains a query or a fragment"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("cliffwatch/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // A redirect would forward the key to its target.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(source.connect_timeout.0)
            .read_timeout(source.read_timeout.0)
            .timeout(source.timeout.0);
        if is_local || is_plain {
            // Requests to loopback or a private network must not go through a proxy.
            builder = builder.no_proxy();
        }
        if is_plain {
            builder = builder.dns_resolver(std::sync::Arc::new(PrivateNames(networks.into())));
        }
        if let Some(path) = &source.tls_ca_file {
            let pem = std::fs::read(path).map_err(|source| ClientError::CaFile { path: path.clone(), source })?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
            if certificates.is_empty() {
                return Err(ClientError::NoCertificate { path: path.clone() });
            }
            builder = builder.tls_certs_merge(certificates);
        }
        Ok(Self { http: builder.build().map_err(ClientError::Build)?, base })
    }

    /// Returns the URL of a page. `page_size` is the configured size, `size` the actual size of the first page.
    pub fn address(&self, target: &RequestTarget, number: u32, page_size: u32, size: Option<i64>) -> Url {
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(&target.path);
        }
        if !target.query.is_empty() || target.is_paged || number > 1 {
            let mut query = address.query_pairs_mut();
            query.extend_pairs(&target.query);
            if target.is_paged || number > 1 {
                query.append_pair("page", &number.to_string());
                // A server that limits the page size accepts both sizes. For an endpoint that is not known to have pages, only
                // the server's own size is certain to be valid.
                let ours = target.is_paged.then(|| i64::from(page_size.max(1)));
                if let Some(size) = ours.or(size) {
                    query.append_pair("pageSize", &size.to_string());
                }
            }
        }
        address
    }
}

/// Parses the networks in which HTTP is allowed. They must be private, because the key is sent unencrypted.
fn private_networks(texts: &[String]) -> Result<Vec<IpNet>, ClientError> {
    let read = |text: &String| {
        let text = text.trim();
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
        network.filter(is_private).ok_or_else(|| ClientError::Network { network: text.to_owned() })
    };
    texts.iter().map(read).collect()
}

/// Returns whether a network is private: RFC 1918, carrier-grade NAT, link-local, loopback, or unique local.
fn is_private(network: &IpNet) -> bool {
    let private = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "127.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
        "::1/128",
    ];
    private.iter().filter_map(|text| text.parse::<IpNet>().ok()).any(|private| private.contains(network))
}

/// Returns whether HTTP to a host may be allowed: for an address in one of the networks, and for any name, whose addresses
/// [`PrivateNames`] checks for each connection.
fn allows_http(host: &str, networks: &[IpNet]) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => networks.iter().any(|network| network.contains(&address.to_canonical())),
        Err(_) => !networks.is_empty(),
    }
}

/// Resolves names only to addresses in these networks, so that the key is never sent unencrypted to other addresses.
struct PrivateNames(std::sync::Arc<[IpNet]>);

impl Resolve for PrivateNames {
    /// Resolves a name to those of its addresses that are in the networks. Fails if it has none.
    fn resolve(&self, name: Name) -> Resolving {
        let networks = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |address: &SocketAddr| networks.iter().any(|network| network.contains(&address.ip().to_canonical()));
            let allowed: Vec<SocketAddr> = found.filter(is_allowed).collect();
            if allowed.is_empty() {
                let host = name.as_str();
                return Err(
                    format!("{host} has no address in source.allow_http_networks, and http is not allowed elsewhere").into()
                );
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain.eq_ignore_ascii_case("localhost") || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;

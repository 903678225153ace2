//! A server to ask: its address, and the connections to it. Only https may carry the key off this machine, and no redirect may
//! carry it anywhere.

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

/// Why no client could be made of the config.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("source.{key} is no http address: {problem}; write it like \"https://api.example.com\"")]
    Address {
        /// Key in `[source]`.
        key: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The key would travel in the clear.
    #[error(
        "source.{key} would send the API key in the clear to {host}: use https (http is for this machine, and for the private networks \
         that source.allow_http_networks names)"
    )]
    NotHttps {
        /// Key in `[source]`.
        key: &'static str,
        /// Host of the address.
        host: String,
    },
    /// A network that is none, or that anybody may be in.
    #[error("source.allow_http_networks: {network:?} is no private network: write it like \"10.0.0.0/8\"")]
    Network {
        /// As it stands in the config.
        network: String,
    },
    /// No such version.
    #[error("source.{key} = \"{version}\" does not exist: write \"auto\" or one of {known}")]
    Version {
        /// Key in `[source]`.
        key: &'static str,
        /// What is configured.
        version: EndpointVersion,
        /// What exists.
        known: String,
    },
    /// The certificate authority could not be read.
    #[error("cannot read the certificates of source.tls_ca_file from {path}")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no certificate.
    #[error("source.tls_ca_file: {path} holds no certificate in PEM form")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The HTTP client could not be made.
    #[error("cannot set up the HTTP client of [source]")]
    Build(#[source] reqwest::Error),
}

/// Makes ring the provider of TLS for this process. Call it first thing in `main`; a second call does nothing.
pub fn install_crypto_provider() {
    // An error only says that one is installed already.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
}

/// One of the two base addresses.
pub(super) struct BaseServer {
    pub http: reqwest::Client,
    pub base: Url,
}

impl BaseServer {
    /// Makes the connection pool for one of the two base addresses.
    pub fn new(key: &'static str, address: &str, source: &SourceSettings) -> Result<Self, ClientError> {
        let bad = |problem: &str| ClientError::Address { key, problem: problem.to_owned() };
        // The address is not repeated in errors: someone may have put a password into it.
        let base = Url::parse(address.trim()).map_err(|error| bad(&error.to_string()))?;
        let host = base.host_str().ok_or_else(|| bad("it names no host"))?;
        let is_local = is_loopback(host);
        let networks = private_networks(&source.allow_http_networks)?;
        let is_plain = base.scheme() == "http" && !is_local;
        match base.scheme() {
            "https" => {}
            "http" if is_local => {}
            "http" if !may_be_plain(host, &networks) => {
                return Err(ClientError::NotHttps { key, host: host.to_owned() });
            }
            "http" => {}
            other => return Err(bad(&format!("its scheme is {other}"))),
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("it holds a user name or password; the key belongs into source.api_key_file"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("it holds parameters or a fragment"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("cliffwatch/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // A redirect would carry the key to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(source.connect_timeout.0)
            .read_timeout(source.read_timeout.0)
            .timeout(source.timeout.0);
        if is_local || is_plain {
            // What is meant for this machine, or for a private network, must not leave it through a proxy of the environment.
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

    /// The address of one page of an answer. `page_size` is ours, `size` what the server put on its first page.
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
                // The server may put fewer rows on a page than it was asked for; asking for the next page by that size, or by
                // ours, are the same to it. Only an endpoint that is not known to have pages is asked in the server's own terms.
                let ours = target.is_paged.then(|| i64::from(page_size.max(1)));
                if let Some(size) = ours.or(size) {
                    query.append_pair("pageSize", &size.to_string());
                }
            }
        }
        address
    }
}

/// The networks in which http is allowed: private ones, since the key goes through them in the clear.
fn private_networks(texts: &[String]) -> Result<Vec<IpNet>, ClientError> {
    let read = |text: &String| {
        let text = text.trim();
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
        network.filter(is_private).ok_or_else(|| ClientError::Network { network: text.to_owned() })
    };
    texts.iter().map(read).collect()
}

/// Whether nobody is in a network who is not let in: those of RFC 1918, of carriers, of links, of this machine, and unique local ones.
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

/// Whether a host may be asked by http: an address in one of the networks, or a name, whose addresses are looked at when it is asked.
fn may_be_plain(host: &str, networks: &[IpNet]) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => networks.iter().any(|network| network.contains(&address.to_canonical())),
        Err(_) => !networks.is_empty(),
    }
}

/// Resolves names to addresses in these networks alone, so that no key goes in the clear to anywhere else, whatever a name leads to.
struct PrivateNames(std::sync::Arc<[IpNet]>);

impl Resolve for PrivateNames {
    fn resolve(&self, name: Name) -> Resolving {
        let networks = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |address: &SocketAddr| networks.iter().any(|network| network.contains(&address.ip().to_canonical()));
            let allowed: Vec<SocketAddr> = found.filter(is_allowed).collect();
            if allowed.is_empty() {
                let host = name.as_str();
                return Err(
                    format!("{host} has no address in source.allow_http_networks: by http it is asked nowhere else").into()
                );
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain.eq_ignore_ascii_case("localhost") || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;

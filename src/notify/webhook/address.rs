//! Which addresses a webhook may have, and the address of one request.

use std::net::IpAddr;

use url::{Host, Url};

use crate::format::WebhookRequest;
use crate::network::{self, Guard};

/// Why an address cannot be used. Says nothing of the address itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the address is no URL: write it like \"https://example.com/hook\"")]
    NotUrl,
    #[error("the address must begin with https:// (http:// is for loopback alone)")]
    Scheme,
    #[error(
        "the address must be https: over http:// anyone on the way could read and forge alerts (http:// is for loopback alone)"
    )]
    Insecure,
    #[error("the address is in a private network: if that is meant, list the network in `allow_networks`")]
    Private,
}

/// Whether an address may be used; says why not without repeating it.
pub(super) fn check_address(text: &str, guard: &Guard) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|_| AddressError::NotUrl)?;
    let host = url.host().ok_or(AddressError::NotUrl)?;
    let is_loopback = network::is_loopback_host(&host);
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => return Err(AddressError::Insecure),
        _ => return Err(AddressError::Scheme),
    }
    let literal = match host {
        Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
        Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
        Host::Domain(_) => None,
    };
    if let Some(address) = literal {
        guard.admit(address, true).map_err(|_| AddressError::Private)?;
    }
    Ok(url)
}

pub(super) fn request_address(url: &Url, request: &WebhookRequest) -> Option<Url> {
    let mut url = url.clone();
    if !request.path.is_empty() {
        url.path_segments_mut().ok()?.pop_if_empty().extend(&request.path);
    }
    if let Some((name, value)) = request.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Some(url)
}

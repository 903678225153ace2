//! Checks the URL of a webhook receiver, and builds the URL of a request.

use std::net::IpAddr;

use url::{Host, Url};

use crate::allowed_addresses::{self, Guard};
use crate::format::WebhookRequest;

/// An invalid URL. The text does not contain the URL, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the receiver's URL is not valid; example: \"https://example.com/hook\"")]
    NotUrl,
    #[error("the receiver's URL must begin with https:// (http:// is allowed for loopback only)")]
    Scheme,
    #[error(
        "the receiver's URL must use https://, because alerts over http:// can be read and forged (allowed for loopback only)"
    )]
    Insecure,
    #[error("the receiver's URL is in a private network: if this is intended, add the network to `allow_networks`")]
    Private,
}

pub(super) fn check_address(text: &str, guard: &Guard) -> Result<Url, AddressError> {
    let url = Url::parse(text.trim()).map_err(|_| AddressError::NotUrl)?;
    let host = url.host().ok_or(AddressError::NotUrl)?;
    let is_loopback = allowed_addresses::is_loopback_host(&host);
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

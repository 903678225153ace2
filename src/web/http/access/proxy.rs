//! Users whom a trusted reverse proxy has authenticated and names in a header. Pure.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};

use super::User;
use model::config::HttpSettings;
use model::silence::MAX_AUTHOR;
use model::text::harmless;
use model::{AccessRole, Actor, ActorSource};
use notify::Network;

/// The proxies that may name users, and how they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies {
    header: HeaderName,
    networks: Vec<Network>,
    /// The role of the users.
    role: AccessRole,
}

/// The user of a request from a trusted proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyUser {
    Named(User),
    /// The proxy named no user, or more than one.
    Unnamed,
}

impl TrustedProxies {
    /// Returns the proxies of the config. `None` if it names none.
    pub fn of(settings: &HttpSettings) -> Option<Self> {
        let header = settings.user_header.as_deref()?.parse().ok()?;
        let networks: Vec<Network> = settings.trusted_proxies.iter().filter_map(|text| text.parse().ok()).collect();
        (!networks.is_empty()).then_some(Self { header, networks, role: settings.user_role })
    }

    /// Returns the user of a request. `None` if it does not come from a trusted proxy.
    pub fn user(&self, peer: IpAddr, headers: &HeaderMap) -> Option<ProxyUser> {
        if !self.networks.iter().any(|network| network.contains(peer)) {
            return None;
        }
        let mut values = headers.get_all(&self.header).iter();
        let name = values.next().and_then(|value| std::str::from_utf8(value.as_bytes()).ok()).map(str::trim);
        // A second value comes from the client: the proxy added its own without removing that one.
        let name = name.filter(|name| values.next().is_none() && (1..=MAX_AUTHOR).contains(&name.chars().count()));
        Some(match name {
            Some(name) => {
                let actor = Actor { name: harmless(name), via: ActorSource::Proxy };
                ProxyUser::Named(User { actor, role: self.role })
            }
            None => ProxyUser::Unnamed,
        })
    }
}

#[cfg(test)]
mod tests;

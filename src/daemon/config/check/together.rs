//! Checks of several keys together, each of which is valid alone.

use std::net::SocketAddr;

use super::{
    ConfigCheck,
    scalars::{PLAIN_HTTP, check_url},
};
use crate::config::tree::{ConfigEntry, ConfigNode, ConfigValue};
use model::config::HttpSettings;
use notify::Network;

impl ConfigCheck<'_> {
    /// Rejects two emission endpoints: they have the same records per day and per week, which would contradict each other.
    pub(super) fn one_emission(&mut self, root: &ConfigNode) {
        let Some(schedule) = root.get("schedule") else { return };
        let is_on = |key: &str| schedule.node.get(key).filter(|entry| entry.node.text().is_some_and(|text| text.trim() != "off"));
        if let (Some(_), Some(weekly)) = (is_on("daily_emission"), is_on("weekly_emission")) {
            self.error(
                &weekly.key_location,
                "`daily_emission` and `weekly_emission` are both on: each emission would be reported twice",
            )
            .help = Some("set one to \"off\": daily data includes the weekly sums, weekly data costs fewer credits".into());
        }
    }

    /// Rejects globs without the token list that expands them.
    pub(super) fn list_for_patterns(&mut self, root: &ConfigNode) {
        let of = |section: &str, key: &str| root.get(section).and_then(|entry| entry.node.get(key)).map(|entry| &entry.node);
        let Some(list) = of("schedule", "token_list").filter(|list| list.text().is_some_and(|text| text.trim() == "off")) else {
            return;
        };
        let is_pattern = |text: &str| text.contains(['*', '?', '[', '{', '!']);
        let has_pattern = match of("watch", "tokens") {
            Some(tokens) => tokens.list().iter().filter_map(ConfigNode::text).any(is_pattern),
            // The default is ["*"].
            None => true,
        };
        if has_pattern {
            self.error(&list.location, "globs in `tokens` of [watch] require the token list, which is \"off\"").help =
                Some("set `token_list` to a cron pattern, or list every token in [watch]".into());
        }
    }

    /// Rejects base URLs with plain http, unless the host is loopback or an address in `allow_http_networks`. A host name is accepted if
    /// any network is listed, because the client checks its addresses when it connects. Names like `api.localhost` count as
    /// host names, because some resolvers return an address of another machine. Ignores values that are not valid URLs, which other checks
    /// report.
    pub(super) fn source_addresses(&mut self, root: &ConfigNode) {
        let Some(source) = root.get("source") else { return };
        let networks = source.node.get("allow_http_networks").map(|entry| entry.node.list()).unwrap_or_default();
        let networks: Vec<Network> = networks.iter().filter_map(|network| network.text()?.parse().ok()).collect();
        for name in ["base_url", "legacy_base_url"] {
            let Some(entry) = source.node.get(name) else { continue };
            let Some(text) = entry.node.text() else { continue };
            // The check of the value has already reported any other problem.
            if check_url(text, false, false).is_err() {
                continue;
            }
            let url = url::Url::parse(text).ok();
            let is_below_localhost = url
                .as_ref()
                .is_some_and(|url| url.scheme() == "http" && url.domain().is_some_and(|name| name.ends_with(".localhost")));
            let problem = match check_url(text, true, false) {
                Err(problem) => problem,
                Ok(()) if is_below_localhost => PLAIN_HTTP,
                Ok(()) => continue,
            };
            let host = url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
            let is_allowed = match host.trim_matches(['[', ']']).parse() {
                Ok(ip) => networks.iter().any(|network| network.contains(ip)),
                // The client checks the address that a name resolves to when it connects.
                Err(_) => !networks.is_empty(),
            };
            if !is_allowed {
                self.error(&entry.node.location, format!("`{name}` {problem}")).help =
                    Some("to use a mirror in a private network, add the network to `allow_http_networks` of [source]".into());
            }
        }
    }

    /// Warns about an address that others can reach without a token.
    pub(super) fn open_address(&mut self, root: &ConfigNode) {
        let Some(http) = root.get("http") else { return };
        let Some(listen) = http.node.get("listen") else { return };
        let Some(address) = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok()) else {
            return;
        };
        let is_credential = self
            .credentials
            .is_some_and(|directory| HttpSettings::TOKEN_CREDENTIALS.iter().any(|name| directory.join(name).exists()));
        if !address.ip().is_loopback()
            && http.node.get("token").is_none()
            && http.node.get("token_file").is_none()
            && !is_credential
        {
            // The service may have the token as a credential that this process cannot see. The start of the daemon rejects a missing one.
            self.warning(&listen.node.location, "this address is not loopback, so it requires a token").help =
                Some("add `token_file` (or a systemd credential `http-token`), or use 127.0.0.1".into());
        }
    }

    /// Rejects a header that no proxy may send, and proxies without a header.
    pub(super) fn proxies(&mut self, root: &ConfigNode) {
        let Some(http) = root.get("http") else { return };
        let header = http.node.get("user_header").map(|entry| entry.node.location.clone());
        let is_given = |entry: &&ConfigEntry| !matches!(&entry.node.value, ConfigValue::List(items) if items.is_empty());
        let proxies = http.node.get("trusted_proxies").filter(is_given).map(|entry| entry.node.location.clone());
        match (header, proxies) {
            (Some(header), None) => {
                self.error(&header, "`user_header` requires `trusted_proxies`").help =
                    Some("name the addresses of the reverse proxy: `trusted_proxies = [\"127.0.0.1\"]`".into());
            }
            (None, Some(proxies)) => {
                self.error(&proxies, "`trusted_proxies` requires `user_header`").help =
                    Some("name the header of the reverse proxy: `user_header = \"X-Forwarded-User\"`".into());
            }
            _ => {}
        }
    }

    /// Rejects a mirror that others can reach without keys.
    pub(super) fn open_mirror(&mut self, root: &ConfigNode) {
        let Some(mirror) = root.get("mirror") else { return };
        let Some(listen) = mirror.node.get("listen") else { return };
        let address = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok());
        let has_keys = ["keys", "keys_url", "keys_url_file"].iter().any(|key| mirror.node.get(key).is_some());
        if address.is_some_and(|address| !address.ip().is_loopback()) && !has_keys {
            self.error(&listen.node.location, "this address is not loopback, so it requires keys").help =
                Some("add `keys = \"mirror-keys.db\"`, which you fill with `cliffwatch keys add NAME --db mirror-keys.db`, or use 127.0.0.1".into());
        }
    }
}

//! What is right by itself and wrong beside another key.

use std::net::SocketAddr;

use super::{ConfigCheck, scalars::address};
use crate::config::tree::ConfigNode;
use notify::Network;

impl ConfigCheck<'_> {
    /// Both emissions bring the same records, of a day and of a week: beside each other they would contradict each other for ever.
    pub(super) fn one_emission(&mut self, root: &ConfigNode) {
        let Some(schedule) = root.get("schedule") else { return };
        let is_on = |key: &str| schedule.node.get(key).filter(|entry| entry.node.text().is_some_and(|text| text.trim() != "off"));
        if let (Some(_), Some(weekly)) = (is_on("daily_emission"), is_on("weekly_emission")) {
            self.error(
                &weekly.key_place,
                "`daily_emission` and `weekly_emission` are both on: the same emission would be told twice",
            )
            .help = Some("put one of them \"off\": the days give the weeks too, the weeks cost fewer credits".into());
        }
    }

    /// A pattern is filled from the token list: without it, nothing is watched.
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
            self.error(&list.place, "patterns in `tokens` of [watch] are filled from the token list, which is \"off\" here")
                .help = Some("give `token_list` a time, or name every token in [watch]".into());
        }
    }

    /// The source is asked by https, or by http on this machine and in the networks that are named for it.
    pub(super) fn source_addresses(&mut self, root: &ConfigNode) {
        let Some(source) = root.get("source") else { return };
        let networks = source.node.get("allow_http_networks").map(|entry| entry.node.list()).unwrap_or_default();
        let networks: Vec<Network> = networks.iter().filter_map(|network| network.text()?.parse().ok()).collect();
        for name in ["base_url", "legacy_base_url"] {
            let Some(entry) = source.node.get(name) else { continue };
            let Some(text) = entry.node.text() else { continue };
            // Anything else that is wrong with it was told already.
            if address(text, false, false).is_err() {
                continue;
            }
            let Err(problem) = address(text, true, false) else { continue };
            let host = url::Url::parse(text).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
            let is_allowed = match host.trim_matches(['[', ']']).parse() {
                Ok(ip) => networks.iter().any(|network| network.contains(ip)),
                // Where a name leads to is seen when it is asked.
                Err(_) => !networks.is_empty(),
            };
            if !is_allowed {
                self.error(&entry.node.place, format!("`{name}` {problem}")).help = Some(
                    "a mirror in a private network may be asked by http where `allow_http_networks` of [source] names the network"
                        .into(),
                );
            }
        }
    }

    /// An address that others can reach needs a token.
    pub(super) fn open_address(&mut self, root: &ConfigNode) {
        let Some(http) = root.get("http") else { return };
        let Some(listen) = http.node.get("listen") else { return };
        let Some(address) = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok()) else {
            return;
        };
        let is_credential = self
            .credentials
            .is_some_and(|directory| ["token", "http-token", "http_token"].iter().any(|name| directory.join(name).exists()));
        if !address.ip().is_loopback()
            && http.node.get("token").is_none()
            && http.node.get("token_file").is_none()
            && !is_credential
        {
            // A service beside this process may have one as a credential: only its start refuses what is missing.
            self.warning(&listen.node.place, "others can reach this address, so it needs a token").help =
                Some("add `token_file` (or a systemd credential `http-token`), or listen on 127.0.0.1".into());
        }
    }

    /// A mirror that others can reach needs keys.
    pub(super) fn open_mirror(&mut self, root: &ConfigNode) {
        let Some(mirror) = root.get("mirror") else { return };
        let Some(listen) = mirror.node.get("listen") else { return };
        let address = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok());
        let has_keys = ["keys", "keys_url", "keys_url_file"].iter().any(|key| mirror.node.get(key).is_some());
        if address.is_some_and(|address| !address.ip().is_loopback()) && !has_keys {
            self.error(&listen.node.place, "others can reach this address, so it needs keys").help =
                Some("add `keys = \"mirror-keys.db\"`, filled by `cliffwatch keys add NAME --db mirror-keys.db`, or listen on 127.0.0.1".into());
        }
    }
}

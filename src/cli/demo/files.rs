//! The files of the demo: config and starter rules.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::{net::SocketAddr, path::Path};

use chrono::TimeDelta;
use serde_json::Value;

use super::{DemoError, io_error};
use crate::starter;
use model::Timestamp;

/// The first line of the demo's config. A file without it belongs to the user and is not replaced.
const CONFIG_MARK: &str = "# Config of the demo. It polls every few seconds; a real config polls every few hours.";

/// The time from the start of the demo to its digest, rounded down to a whole minute of the clock.
pub(super) const DIGEST_AFTER: TimeDelta = TimeDelta::minutes(2);

/// A rule with a longer lead time than usual, so that there are alerts on any day.
const AHEAD: &str = r#"# Only in the demo: unlocks in the next 30 days, so that there are alerts on any day.
[[rule]]
alert  = "CliffAhead"
on     = "unlock"
within = ["30d"]
when   = "cliffValue >= 5000000 || valueToMarketCap >= 2"
labels = { severity = "info" }

[[rule.level]]
when   = "cliffValue >= 25000000 || valueToMarketCap >= 5"
labels = { severity = "warning" }

[rule.annotations]
summary = "{{ token.symbol }}: {{ cliffValue | usd }} ({{ valueToMarketCap | percent }} of market cap) to unlock {{ when }}"
"#;

/// The addresses of the demo's servers.
pub(super) struct DemoAddresses {
    pub source: SocketAddr,
    pub webhook: SocketAddr,
    pub mail: SocketAddr,
    /// The address of the web pages.
    pub listen: SocketAddr,
}

/// Writes config and rules, and replaces the files of an earlier demo. `token` is the login token; `now` is the start of the demo.
pub(super) fn write_files(folder: &Path, addresses: &DemoAddresses, token: &str, now: Timestamp) -> Result<(), DemoError> {
    let DemoAddresses { source, webhook, mail, listen } = addresses;
    let path = folder.join("cliffwatch.toml");
    if std::fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(CONFIG_MARK)) {
        return Err(DemoError::NotOurs(path));
    }
    let rules = folder.join("rules");
    std::fs::create_dir_all(&rules).map_err(io_error("create the folder of the demo"))?;
    for (name, text) in starter::RULES.into_iter().chain([("demo.toml", AHEAD)]) {
        std::fs::write(rules.join(name), text).map_err(io_error("write the rules of the demo"))?;
    }
    let covered = scheduled_tokens();
    let digest_at = (now + DIGEST_AFTER).format("%H:%M");
    let config = format!(
        r#"{CONFIG_MARK}
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 6000
concurrency = 8

[watch]
# The tokens with a schedule in the bundled data.
tokens = [{covered}]
groups = {{ portfolio = ["arbitrum", "optimism", "aptos", "sui", "eigenlayer"] }}
# The tokens that a fund would hold. Pages show them after a login.
positions = {{ arbitrum = 1500000, optimism = 420000, aptos = 95000, sui = 310000, eigenlayer = 640000 }}

[schedule]
token_list    = "*/5 * * * * *"
upcoming      = "1-59/5 * * * * *"
unlock_events = "*/3 * * * * *"
burn          = "1-59/3 * * * * *"
buyback       = "2-59/3 * * * * *"
allocations   = "*/20 * * * * *"
evaluate      = "* * * * * *"

[store]
path = "demo.db"

[rules]
paths = ["rules/*.toml"]

[http]
listen = "{listen}"
external_url = "http://{listen}"
token = "{token}"

[log]
level = "warn"

[[receiver]]
name = "ops"
type = "webhook"
url = "http://{webhook}/hook"
secret = "whsec_ZGVtby1zZWNyZXQtb2YtdGhlLWRlbW8tb25seQ=="

# It rejects its first message, which becomes a dead letter.
[[receiver]]
name = "archive"
type = "webhook"
url = "http://{webhook}/archive"

[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://{mail}"
from = "Cliffwatch <alerts@cliffwatch.example>"
to = ["desk@fund.example"]
# Sent once the first messages are out. A real digest has a fixed time, such as "08:00".
digest = {{ at = "{digest_at}", ahead = "30d", sort = "share", top = 10, tokens = ["@portfolio"], positions = true }}

# The first messages are joined in a welcome message. Later, each token has its own messages.
[route]
receivers = ["ops", "desk", "archive"]
group_by = ["token"]
group_wait = "1s"
group_interval = "1s"
"#
    );
    write_private(&path, &config).map_err(io_error("write the config of the demo"))
}

/// Writes a file with a secret, readable only by its owner.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // An existing file can have other permissions.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Returns a TOML list of the tokens with a schedule in the bundled data.
fn scheduled_tokens() -> String {
    let list = service::bundled().flatten().find(|file| file.path == "tokens.json");
    let tokens: Vec<Value> = list.and_then(|file| serde_json::from_str(&file.text).ok()).unwrap_or_default();
    let covered = tokens.iter().filter(|token| token["coverage"] != "none").filter_map(|token| token["tokenId"].as_str());
    covered.map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;

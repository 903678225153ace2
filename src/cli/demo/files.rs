//! The files of the demo: its config, and the starter rules.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::{net::SocketAddr, path::Path};

use serde_json::Value;

use super::{DemoError, io_error};
use crate::starter;

/// The first line of the demo's config: a file without it is somebody's own, and is not replaced.
const CONFIG_MARK: &str = "# What the demo runs on. A real config asks every few hours; this one every few seconds.";

/// What a desk wants to hear a week ahead is told a month ahead here, so that there is something to see on whatever day one looks.
const AHEAD: &str = r#"# Of the demo alone: unlocks of the coming month, so that there is something to see on whatever day one looks.
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

/// Where what the demo consists of listens.
pub(super) struct DemoAddresses {
    pub source: SocketAddr,
    pub webhook: SocketAddr,
    pub mail: SocketAddr,
    /// The pages.
    pub listen: SocketAddr,
}

/// Writes config and rules, in place of those of a demo before. `token` is what one logs in with.
pub(super) fn write_files(folder: &Path, addresses: &DemoAddresses, token: &str) -> Result<(), DemoError> {
    let DemoAddresses { source, webhook, mail, listen } = addresses;
    let path = folder.join("cliffwatch.toml");
    if std::fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(CONFIG_MARK)) {
        return Err(DemoError::NotOurs(path));
    }
    let rules = folder.join("rules");
    std::fs::create_dir_all(&rules).map_err(io_error("make the folder of the demo"))?;
    for (name, text) in starter::RULES.into_iter().chain([("demo.toml", AHEAD)]) {
        std::fs::write(rules.join(name), text).map_err(io_error("write the rules of the demo"))?;
    }
    let covered = covered();
    let config = format!(
        r#"{CONFIG_MARK}
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 6000
concurrency = 8

[watch]
# Those whose schedules the bundled data has.
tokens = [{covered}]
groups = {{ portfolio = ["arbitrum", "optimism", "aptos", "sui"] }}

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

[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://{mail}"
from = "Cliffwatch <alerts@cliffwatch.example>"
to = ["desk@fund.example"]

# What the start finds comes as one welcome; later each token has a message of its own, with all that its rules say.
[route]
receivers = ["ops", "desk"]
group_by = ["token"]
group_wait = "1s"
group_interval = "1s"
"#
    );
    write_private(&path, &config).map_err(io_error("write the config of the demo"))
}

/// Writes a file that holds a secret, so that its owner alone can read it.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One of a demo before may have been open to others.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// The tokens of the bundled data whose schedules it has, as a list of TOML; of the others it says nothing.
fn covered() -> String {
    let list = service::bundled().flatten().find(|file| file.path == "tokens.json");
    let tokens: Vec<Value> = list.and_then(|file| serde_json::from_str(&file.text).ok()).unwrap_or_default();
    let covered = tokens.iter().filter(|token| token["coverage"] != "none").filter_map(|token| token["tokenId"].as_str());
    covered.map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;

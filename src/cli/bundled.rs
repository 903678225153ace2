//! The bundled data, which `new rule` and `backtest` replay as long as there is no database, and the bundled versions of schedules, which
//! `backtest bundled` replays.

use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

use anyhow::Context as _;
use serde_json::Value;

use daemon::database_url::database_of;
use model::config::Config;
use model::{Timestamp, TokenId, TokenNames};
use store::DatabaseLocation;
use tools::backtest::History;

macro_rules! versions {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../data/revisions/", $name)))),*]
    };
}

/// The files of `data/revisions` with dated versions of real schedules.
const VERSIONS: &[(&str, &str)] = versions![
    "abracadabra.jsonl",
    "aura-finance.jsonl",
    "berachain.jsonl",
    "bouncebit.jsonl",
    "cheelee.jsonl",
    "clever.jsonl",
    "conic-finance.jsonl",
    "dodo.jsonl",
    "dymension.jsonl",
    "echelon-prime.jsonl",
    "eigenlayer.jsonl",
    "equilibria-finance.jsonl",
    "ethena.jsonl",
    "fasttoken.jsonl",
    "filecoin.jsonl",
    "flare.jsonl",
    "flow.jsonl",
    "fluid.jsonl",
    "frax-share.jsonl",
    "fx-protocol.jsonl",
    "gmx.jsonl",
    "hedera.jsonl",
    "hyperliquid.jsonl",
    "infrared-finance.jsonl",
    "internet-computer.jsonl",
    "ipor.jsonl",
    "kaito.jsonl",
    "kodiak-finance.jsonl",
    "limitless.jsonl",
    "liquity.jsonl",
    "moonbeam.jsonl",
    "movement.jsonl",
    "peaq.jsonl",
    "plume.jsonl",
    "polyhedra-network.jsonl",
    "premia.jsonl",
    "prisma-finance.jsonl",
    "qi-dao.jsonl",
    "redstone.jsonl",
    "renzo.jsonl",
    "safe.jsonl",
    "shadow-exchange.jsonl",
    "silo-finance.jsonl",
    "stable.jsonl",
    "swell-network.jsonl",
    "synthswap.jsonl",
    "thala.jsonl",
    "uwu-lend.jsonl",
    "velodrome-finance.jsonl",
    "xdc-network.jsonl",
    "y2k-finance.jsonl",
    "zetachain.jsonl",
];

/// Returns whether the database of the config exists. A database on a server is assumed to exist, so that its errors are reported.
pub(super) fn has_database(config: &Config) -> anyhow::Result<bool> {
    Ok(match database_of(&config.store)? {
        DatabaseLocation::Server(_) => true,
        DatabaseLocation::File(path) => path.exists(),
    })
}

/// Reads the bundled data as a history from `from` (default: a year before `to`) to `to`.
pub(super) fn history(from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<History> {
    read(service::bundled().map(|file| file.map(|file| (file.path, file.text))), from, to)
}

/// Reads the bundled versions of schedules as a history from `from` (default: the first version) to `to`.
pub(super) fn versions(from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<History> {
    read(VERSIONS.iter().map(|(name, text)| Ok(((*name).to_owned(), Cow::Borrowed(*text)))), from, to)
}

/// Reads files with these paths and texts from a temporary folder.
fn read(
    files: impl Iterator<Item = io::Result<(String, Cow<'static, str>)>>,
    from: Option<Timestamp>,
    to: Timestamp,
) -> anyhow::Result<History> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-data-{}-{:x}", std::process::id(), fastrand::u64(..)));
    fs::create_dir(&folder).context("cannot unpack the bundled data")?;
    let read = unpack(files, &folder).and_then(|()| Ok(History::read(&folder, from, to)?));
    fs::remove_dir_all(&folder).ok();
    read.context("cannot read the bundled data")
}

/// Returns the names of the tokens in the bundled data.
pub(super) fn token_names() -> anyhow::Result<Vec<TokenNames>> {
    let list = service::bundled().flatten().find(|file| file.path == "tokens.json");
    let items = list.map(|file| serde_json::from_str::<Vec<Value>>(&file.text)).transpose();
    let items = items.context("cannot read the bundled list of tokens")?.unwrap_or_default();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let names = |item: &Value| {
        let id = TokenId::from(item["tokenId"].as_str().unwrap_or_default());
        TokenNames { id, symbol: text(item, "symbol"), name: text(item, "name") }
    };
    Ok(items.iter().map(names).collect())
}

fn unpack(files: impl Iterator<Item = io::Result<(String, Cow<'static, str>)>>, folder: &Path) -> anyhow::Result<()> {
    for file in files {
        let (path, text) = file?;
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_versions_are_those_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/revisions");
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into())
            .collect();
        names.retain(|name| name.ends_with(".jsonl"));
        names.sort();
        assert_eq!(VERSIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    }
}

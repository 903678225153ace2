//! The bundled data, which `new rule` and `backtest` replay as long as there is no database, and the bundled versions of schedules, which
//! `backtest bundled` replays.

use std::path::Path;
use std::{fs, io};

use anyhow::Context as _;
use serde_json::Value;

use daemon::database_url::database_of;
use model::config::Config;
use model::{Timestamp, TokenId, TokenNames};
use service::SourceFile;
use store::DatabaseLocation;
use tools::backtest::History;

/// Returns whether the database of the config exists. A database on a server is assumed to exist, so that its errors are reported.
pub(super) fn has_database(config: &Config) -> anyhow::Result<bool> {
    Ok(match database_of(&config.store)? {
        DatabaseLocation::Server(_) => true,
        DatabaseLocation::File(path) => path.exists(),
    })
}

/// Reads the bundled data as a history from `from` (default: a year before `to`) to `to`.
pub(super) fn history(from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<History> {
    read(service::bundled(), from, to)
}

/// Reads the bundled versions of schedules as a history from `from` (default: the first version) to `to`.
pub(super) fn versions(from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<History> {
    read(service::bundled_versions(), from, to)
}

/// Reads these files from a temporary folder.
fn read(files: impl Iterator<Item = io::Result<SourceFile>>, from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<History> {
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

fn unpack(files: impl Iterator<Item = io::Result<SourceFile>>, folder: &Path) -> anyhow::Result<()> {
    for file in files {
        let file = file?;
        let path = folder.join(file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, file.text.as_bytes())?;
    }
    Ok(())
}

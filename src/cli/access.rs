//! `access add`, `list`, `revoke`: manages the access keys of the daemon's HTTP API. All commands work next to a running daemon.

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;

use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError};
use model::{AccessKey, AccessRole, Timestamp, closest, text::harmless};
use store::{Access, Store};

/// The maximum length of a name in characters.
const MAX_NAME: usize = 100;

#[derive(Debug, Subcommand)]
pub(super) enum AccessCommand {
    /// Create an access key and print it once, alone on standard output
    Add {
        /// Name of the program or person that gets the key
        name: String,
        /// Role: view (read), act (also acknowledge, silence, retry), admin (also reload, save rules)
        #[arg(long, value_name = "ROLE", default_value = "view")]
        role: AccessRole,
    },
    /// List the names and roles of access keys, but not the keys
    List,
    /// Revoke an access key
    Revoke {
        /// Name of the key
        name: String,
    },
}

/// An access key in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessRow {
    name: String,
    role: AccessRole,
    created_at: Timestamp,
}

pub(super) async fn run(command: &AccessCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    let access = if matches!(command, AccessCommand::List) { Access::Read } else { Access::Write };
    let store = invocation.open(&config, access).await?;
    let exit = match command {
        AccessCommand::Add { name, role } => add(name, *role, &store, invocation).await,
        AccessCommand::List => list(&store, invocation).await,
        AccessCommand::Revoke { name } => revoke(name, &store, invocation).await,
    };
    store.close().await?;
    exit
}

async fn add(name: &str, role: AccessRole, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || harmless(name) != name {
        let rule = format!("a name has 1 to {MAX_NAME} characters, and no control characters");
        return Err(UsageError(rule).into());
    }
    let secret = web::fresh_token().context("cannot get random bytes for a key from the system")?;
    let key = AccessKey { name: name.to_owned(), role, created_at: invocation.clock.now() };
    if !store.add_access_key(key, web::access_key_hash(&secret)).await? {
        let message = format!("an access key has the name {name:?}; revoke it first, or choose another name");
        return Err(UsageError(message).into());
    }
    anstream::eprintln!("access key {name:?} with the role {role} created; send it as a bearer token, and store it now");
    print::out(&format!("{secret}\n"))?;
    Ok(Exit::Done)
}

async fn list(store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let keys = store.access_keys().await?;
    let row = |AccessKey { name, role, created_at }| AccessRow { name, role, created_at };
    let rows: Vec<AccessRow> = keys.into_iter().map(row).collect();
    if invocation.format == OutputFormat::Json {
        print::out(&print::json(&rows)?)?;
        return Ok(Exit::Done);
    }
    Listing::of(&rows)
        .left_column("Name", "name", |row| Cell::text(&row.name))
        .left_column("Role", "role", |row| Cell::text(row.role))
        .left_column("Created", "createdAt", |row| Cell::time(Some(row.created_at)))
        .print("no access keys; run `cliffwatch access add NAME` to create one", invocation)?;
    Ok(Exit::Done)
}

async fn revoke(name: &str, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    if store.revoke_access_key(name.to_owned(), invocation.clock.now()).await? {
        anstream::eprintln!("access key {:?} revoked; requests with it are rejected from now on", harmless(name));
        return Ok(Exit::Done);
    }
    let keys = store.access_keys().await?;
    let near = closest(name, keys.iter().map(|key| key.name.as_str()));
    let near =
        near.map_or_else(|| "run `cliffwatch access list` to list names".to_owned(), |near| format!("did you mean {near:?}?"));
    Err(UsageError(format!("no access key has the name {:?}; {near}", harmless(name))).into())
}

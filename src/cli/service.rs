//! The commands of the data service: `serve`, `import`, `export`, `keys`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::print::{self, Cell, Listing};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_address, parse_location, run, shown};
use daemon::app;
use daemon::database_url::{database_of, key_database_of};
use model::config::{LogFormat, LogSettings};
use model::phrase;
use service::{DataFolder, Listening, MirrorScope, Options, Service, ServiceError, Tls};
use store::{DatabaseLocation, catalog::CatalogError};

/// The default database of the service.
const DATABASE: &str = "service.db";

#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// Database of the service: a file, postgres://user@host:port/database, or @FILE with such a URL in it
    #[arg(long, value_name = "PLACE", default_value = DATABASE)]
    db: String,
}

impl DatabaseArgs {
    fn place(&self) -> anyhow::Result<DatabaseLocation> {
        parse_location(&self.db, None)
    }
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Database of the service [default: service.db], or with --mirror, of a daemon [default: from the config]. A file,
    /// postgres://user@host:port/database, or @FILE with such a URL in it
    #[arg(long, value_name = "PLACE")]
    db: Option<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9798")]
    listen: String,
    /// Address to listen on for the legacy base URL (weekly emission)
    #[arg(long, value_name = "ADDR")]
    legacy_listen: Option<String>,
    /// Require an API key even if no key exists yet
    #[arg(long, conflicts_with = "mirror")]
    require_key: bool,
    /// Maximum number of requests per minute for each key
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_minute: Option<u32>,
    /// Include tokens with the listed method AI in older API versions
    #[arg(long)]
    all_tokens: bool,
    /// Serve the data of a daemon directly from its database
    #[arg(long)]
    mirror: bool,
    /// Database with the API keys for a mirror [default: from the config]; without one, no key is required
    #[arg(long, value_name = "PLACE", requires = "mirror")]
    keys: Option<String>,
    /// Certificate chain for HTTPS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// Do not log requests
    #[arg(long)]
    no_access_log: bool,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Data folder, or database of a daemon (a file or URL, like --db)
    path: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Folder to create
    folder: PathBuf,
    /// Database of the service or of a daemon
    #[arg(long, value_name = "PLACE", default_value = DATABASE)]
    db: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create an API key and print it once, alone on standard output
    Add {
        /// Name of the owner
        name: String,
        /// Credits per month
        #[arg(long, value_name = "N", default_value_t = 1000)]
        monthly_limit: u64,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List the names and usage of API keys, but not the keys
    List {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke an API key
    Revoke {
        /// Name of the owner
        name: String,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

pub(super) fn serve(serve: &ServeArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let level = if serve.no_access_log { "info,cliffwatch::access=off" } else { "info" };
    daemon::log::start(&LogSettings { format: LogFormat::Auto, level: level.to_owned() }, invocation.verbose)?;
    let address = parse_address(&serve.listen, "--listen")?;
    let legacy = serve.legacy_listen.as_deref().map(|text| parse_address(text, "--legacy-listen")).transpose()?;
    let mut scope = MirrorScope::unknown();
    let (place, keys, requests_per_minute) = if serve.mirror {
        // Use the settings of the daemon's own mirror by default.
        let (config, _) = invocation.load()?;
        let own = database_of(&config.store)?;
        let place = serve.db.as_deref().map_or_else(|| Ok(own.clone()), |db| parse_location(db, None))?;
        if place.name() == own.name() {
            scope = scope.reaching_back(config.source.history);
        }
        let keys = serve.keys.as_deref().map(|keys| parse_location(keys, None)).transpose()?;
        let keys = keys.map_or_else(|| key_database_of(&config), |keys| Ok(Some(keys)))?;
        (place, keys, serve.requests_per_minute.or(config.mirror.requests_per_minute))
    } else {
        (parse_location(serve.db.as_deref().unwrap_or(DATABASE), None)?, None, serve.requests_per_minute)
    };
    let db = place.name().to_owned();
    let is_open_to_others = [Some(address), legacy].into_iter().flatten().any(|address| !address.ip().is_loopback());
    if is_open_to_others && serve.mirror && keys.is_none() {
        let hint =
            "pass a database of keys with --keys FILE (created by `cliffwatch keys add NAME --db FILE`), or listen on 127.0.0.1";
        return Err(
            UsageError(format!("the mirror requires API keys, because {} is reachable by others: {hint}", serve.listen)).into()
        );
    }
    let options = Options {
        access: match serve.require_key || is_open_to_others {
            true => service::AccessPolicy::Keys,
            false => service::AccessPolicy::KeysIfAny,
        },
        requests_per_minute,
        all_tokens: serve.all_tokens,
        clock: invocation.clock.clone(),
    };
    run::block_on_workers(async {
        let data = match serve.mirror {
            true => Service::mirror_in(&place, scope, keys.as_ref(), options)?,
            false => {
                if matches!(place, DatabaseLocation::File(_)) && !db.exists() {
                    anyhow::bail!(
                        "the database {} does not exist: run `cliffwatch import PATH --db {}` to create it",
                        shown(&db),
                        shown(&db)
                    );
                }
                Service::open_in(&place, options)?
            }
        };
        if data.token_count()? == 0 {
            let filled = if serve.mirror {
                "the daemon adds them".into()
            } else {
                format!("run `cliffwatch import PATH --db {}`", shown(&db))
            };
            anstream::eprintln!("{} contains no tokens yet: {filled}", shown(&db));
        }
        let keys_in = keys.as_ref().unwrap_or(&place).name().to_owned();
        if is_open_to_others && data.keys().is_ok_and(|keys| keys.iter().all(|key| key.revoked_at.is_some())) {
            anstream::eprintln!(
                "an API key is required, because this address is reachable by others, but no key exists yet: run `cliffwatch keys add NAME --db {}`",
                shown(&keys_in)
            );
        }
        let tls = match serve.tls_cert_file.as_deref().zip(serve.tls_key_file.as_deref()) {
            Some((certificate, key)) => Some(Tls::read(certificate, key).map_err(ServiceError::from)?),
            None => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let bound = move |bound: service::BoundAddresses| {
            let legacy = bound.legacy.map(|legacy| format!("\nlegacy {scheme}://{legacy}")).unwrap_or_default();
            // Ignore a closed pipe and continue serving.
            print::out(&format!("listening {scheme}://{}{legacy}\n", bound.address)).ok();
        };
        service::listen(&data, Listening { address, legacy, tls }, bound, app::stop_requested()).await?;
        Ok(Exit::Done)
    })
}

/// A progress bar that advances by one step for each name.
struct StepBar {
    bar: ProgressBar,
    done: usize,
}

impl StepBar {
    fn new() -> Self {
        Self { bar: ProgressBar::new(), done: 0 }
    }

    fn step(&mut self, name: &str, total: usize) {
        self.done += 1;
        self.bar.show("", self.done, total, &format!("{}/{total} {name}", self.done));
    }
}

pub(super) fn import(import: &ImportArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    // Check the source first, so that a wrong path does not create an empty database.
    let from = parse_location(&import.path, None)?;
    let folder = match &from {
        DatabaseLocation::File(path) if !path.is_file() => Some(DataFolder::open(path)?),
        DatabaseLocation::File(_) | DatabaseLocation::Server(_) => None,
    };
    let db = import.database.place()?;
    let data = open(&db, invocation)?;
    let mut progress = StepBar::new();
    let imported = match folder {
        Some(folder) => {
            let total = folder.file_count();
            data.import(folder, |path| progress.step(path, total))
        }
        None => data.import_daemon(&from, &mut |token, total| progress.step(token, total)),
    };
    progress.bar.clear();
    let imported = imported?;
    match invocation.format {
        OutputFormat::Table => print::out(&format!(
            "{}, {}, {}, {} of emission, {}, {}, {} with {}: {}\n{}",
            phrase::count(imported.tokens, "token"),
            phrase::count(imported.events, "event"),
            phrase::count(imported.allocations, "allocation"),
            phrase::count(imported.days, "day"),
            phrase::count(imported.burns, "burn"),
            phrase::count(imported.buybacks, "buyback"),
            phrase::count(imported.investors, "investor"),
            phrase::count(imported.rounds, "round"),
            shown(db.name()),
            match imported.changed {
                0 => "no tokens changed\n".to_owned(),
                1 => "1 token changed\n".to_owned(),
                changed => format!("{changed} tokens changed\n"),
            }
        ))?,
        _ => print::out(&print::json(&imported)?)?,
    }
    Ok(Exit::Done)
}

pub(super) fn export(export: &ExportArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let data = open_existing(&parse_location(&export.db, None)?, invocation)?;
    let total = data.token_count()?;
    let mut progress = StepBar::new();
    let exported = data.export(&export.folder, &mut |file| {
        // Count tokens, which have several files each.
        if file.starts_with("unlock-events/") {
            progress.step(file, total);
        }
    });
    progress.bar.clear();
    let exported = exported?;
    if exported.left_out > 0 {
        let tokens = phrase::count(exported.left_out, "token");
        anstream::eprintln!("warning: {tokens} skipped, because their ids are not valid file names");
    }
    match invocation.format {
        OutputFormat::Table => {
            let (tokens, files) = (phrase::count(exported.tokens, "token"), phrase::count(exported.files, "file"));
            print::out(&format!("{tokens} in {files}: {}\n", shown(&export.folder)))?;
        }
        _ => print::out(&print::json(&exported)?)?,
    }
    Ok(Exit::Done)
}

fn options(invocation: &Invocation) -> Options {
    Options { clock: invocation.clock.clone(), ..Options::default() }
}

/// Opens the database of the service, and creates it if needed.
fn open(db: &DatabaseLocation, invocation: &Invocation) -> anyhow::Result<Service> {
    Ok(Service::open_in(db, options(invocation))?)
}

/// Opens an existing database: of the service, or of a daemon in a file.
fn open_existing(db: &DatabaseLocation, invocation: &Invocation) -> anyhow::Result<Service> {
    let DatabaseLocation::File(path) = db else { return open(db, invocation) };
    std::fs::metadata(path).with_context(|| {
        let shown = shown(path);
        format!("cannot read {shown}: pass a database with `--db FILE`, or create one with `cliffwatch import PATH --db FILE`")
    })?;
    match open(db, invocation) {
        Err(error) if is_of_a_daemon(&error) => Ok(Service::mirror(path, MirrorScope::unknown(), None, options(invocation))?),
        opened => opened,
    }
}

fn is_of_a_daemon(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ServiceError::Catalog(CatalogError::Foreign { .. })))
}

pub(super) fn keys(keys: &KeysCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    match keys {
        KeysCommand::Add { name, monthly_limit, database } => {
            let db = database.place()?;
            if let DatabaseLocation::File(path) = &db
                && !path.exists()
            {
                anstream::eprintln!("created {} with this key and no data", shown(path));
            }
            let key = open(&db, invocation)?.add_key(name, *monthly_limit)?;
            print::out(&format!("{key}\n"))?;
            anstream::eprintln!("save the key now: it is shown only once and stored only as a hash");
        }
        KeysCommand::List { database } => {
            let keys = open_existing(&database.place()?, invocation)?.keys()?;
            let listing = Listing::of(&keys)
                .left_column("Name", "name", |key| Cell::text(&key.name))
                .right_column("Used", "used", |key| Cell::text(key.used))
                .right_column("Limit", "limit", |key| Cell::text(key.monthly_limit))
                .left_column("Resets", "resetAt", |key| Cell::time(Some(key.reset_at)))
                .left_column("Last used", "lastUsedAt", |key| Cell::time(key.last_used_at))
                .left_column("Revoked", "revokedAt", |key| Cell::time(key.revoked_at));
            let empty_reason = "no API keys; run `cliffwatch keys add NAME` to create one";
            listing.print(empty_reason, invocation)?;
        }
        KeysCommand::Revoke { name, database } => {
            if !open_existing(&database.place()?, invocation)?.revoke_key(name)? {
                anyhow::bail!("no active key has the name {name:?}");
            }
            anstream::eprintln!("{name}: revoked");
        }
    }
    Ok(Exit::Done)
}

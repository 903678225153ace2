//! Commands of the data service: `serve`, `import`, `export`, `keys`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::print::{self, Cell, Listing};
use super::terminal::ProgressBar;
use super::{Exit, Invocation, OutputFormat, UsageError, parse_address, parse_place, run, shown};
use daemon::app;
use daemon::place::{keys_of, place_of};
use model::config::{LogFormat, LogSettings};
use model::format;
use service::{DataFolder, Listening, MirrorScope, Options, Service, ServiceError, Tls};
use store::{Place, catalog::CatalogError};

/// The database of the service where no other is named.
const DATABASE: &str = "service.db";

/// Which database.
#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// The database of the service: a file, postgres://user@host:port/database, or @FILE with such an address in it
    #[arg(long, value_name = "PLACE", default_value = DATABASE)]
    db: String,
}

impl DatabaseArgs {
    fn place(&self) -> anyhow::Result<Place> {
        parse_place(&self.db, None)
    }
}

/// `serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The database of the service [default: service.db]; with --mirror that of a daemon [default: of the config]. A file,
    /// postgres://user@host:port/database, or @FILE with such an address in it
    #[arg(long, value_name = "PLACE")]
    db: Option<String>,
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9798")]
    listen: String,
    /// Where to listen for the older base address (weekly emission)
    #[arg(long, value_name = "ADDR")]
    legacy_listen: Option<String>,
    /// Ask for a key also while there is none
    #[arg(long, conflicts_with = "mirror")]
    require_key: bool,
    /// Requests that one key may make in a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_minute: Option<u32>,
    /// Let older versions answer for tokens that were listed by a model too
    #[arg(long)]
    all_tokens: bool,
    /// Show what a daemon has read, straight from its database, beside it
    #[arg(long)]
    mirror: bool,
    /// Database with the keys for a mirror [default: of the config]; without one whoever reaches the address may ask
    #[arg(long, value_name = "PLACE", requires = "mirror")]
    keys: Option<String>,
    /// Certificate to serve https with, and those between it and its authority (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// Log no line for each request
    #[arg(long)]
    no_access_log: bool,
}

/// `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// A data folder, or the database of a daemon: a file, or an address as --db takes it
    path: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The folder to make
    folder: PathBuf,
    /// The database of the service, or of a daemon
    #[arg(long, value_name = "PLACE", default_value = DATABASE)]
    db: String,
}

/// `keys`.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key and print it, once, alone on standard output
    Add {
        /// Whose it is
        name: String,
        /// Credits a month
        #[arg(long, value_name = "N", default_value_t = 1000)]
        monthly_limit: u64,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List keys: their names and use, never the keys
    List {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Take a key away
    Revoke {
        /// Whose it is
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
        // As the daemon's own mirror is, where nothing else is said.
        let (config, _) = invocation.load()?;
        let own = place_of(&config.store)?;
        let place = serve.db.as_deref().map_or_else(|| Ok(own.clone()), |db| parse_place(db, None))?;
        if place.name() == own.name() {
            scope = scope.reaching_back(config.source.history);
        }
        let keys = serve.keys.as_deref().map(|keys| parse_place(keys, None)).transpose()?;
        let keys = keys.map_or_else(|| keys_of(&config), |keys| Ok(Some(keys)))?;
        (place, keys, serve.requests_per_minute.or(config.mirror.requests_per_minute))
    } else {
        (parse_place(serve.db.as_deref().unwrap_or(DATABASE), None)?, None, serve.requests_per_minute)
    };
    let db = place.name().to_owned();
    let is_open_to_others = [Some(address), legacy].into_iter().flatten().any(|address| !address.ip().is_loopback());
    if is_open_to_others && serve.mirror && keys.is_none() {
        let hint =
            "name a database of keys with --keys FILE (`cliffwatch keys add NAME --db FILE` fills it), or listen on 127.0.0.1";
        return Err(UsageError(format!("others can reach {}, so the mirror needs keys: {hint}", serve.listen)).into());
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
    run::drive(async {
        let data = match serve.mirror {
            true => Service::mirror_in(&place, scope, keys.as_ref(), options)?,
            false => {
                if matches!(place, Place::File(_)) && !db.exists() {
                    anyhow::bail!("there is no database {}: `cliffwatch import PATH --db {}` makes it", shown(&db), shown(&db));
                }
                Service::open_in(&place, options)?
            }
        };
        if data.token_count()? == 0 {
            let filled = if serve.mirror {
                "the daemon fills it".into()
            } else {
                format!("`cliffwatch import PATH --db {}` fills it", shown(&db))
            };
            anstream::eprintln!("{} holds no tokens yet: {filled}", shown(&db));
        }
        let keys_in = keys.as_ref().unwrap_or(&place).name().to_owned();
        if is_open_to_others && data.keys().is_ok_and(|keys| keys.iter().all(|key| key.revoked_at.is_some())) {
            anstream::eprintln!(
                "others can reach this address, so a key is asked for, and there is none yet: `cliffwatch keys add NAME --db {}`",
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
            // Whoever started us may have closed the pipe; serving goes on.
            print::out(&format!("listening {scheme}://{}{legacy}\n", bound.address)).ok();
        };
        service::listen(&data, Listening { address, legacy, tls }, bound, app::asked_to_stop()).await?;
        Ok(Exit::Done)
    })
}

/// A bar that moves on by one step for each name.
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
    // Looked at first, so that a wrong path leaves no empty database behind.
    let from = parse_place(&import.path, None)?;
    let folder = match &from {
        Place::File(path) if !path.is_file() => Some(DataFolder::open(path)?),
        Place::File(_) | Place::Server(_) => None,
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
            format::count(imported.tokens, "token"),
            format::count(imported.events, "event"),
            format::count(imported.allocations, "allocation"),
            format::count(imported.days, "day"),
            format::count(imported.burns, "burn"),
            format::count(imported.buybacks, "buyback"),
            format::count(imported.investors, "investor"),
            format::count(imported.rounds, "round"),
            shown(db.name()),
            match imported.changed {
                0 => "no token differs from what was there\n".to_owned(),
                1 => "1 token differs from what was there\n".to_owned(),
                changed => format!("{changed} tokens differ from what was there\n"),
            }
        ))?,
        _ => print::out(&print::json(&imported)?)?,
    }
    Ok(Exit::Done)
}

pub(super) fn export(export: &ExportArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let data = open_existing(&parse_place(&export.db, None)?, invocation)?;
    let total = data.token_count()?;
    let mut progress = StepBar::new();
    let exported = data.export(&export.folder, &mut |file| {
        // Tokens are counted, whatever number of files each has.
        if file.starts_with("unlock-events/") {
            progress.step(file, total);
        }
    });
    progress.bar.clear();
    let exported = exported?;
    if exported.left_out > 0 {
        let tokens = format::count(exported.left_out, "token");
        anstream::eprintln!("warning: {tokens} left out: their ids cannot be names of files");
    }
    match invocation.format {
        OutputFormat::Table => {
            let (tokens, files) = (format::count(exported.tokens, "token"), format::count(exported.files, "file"));
            print::out(&format!("{tokens} in {files}: {}\n", shown(&export.folder)))?;
        }
        _ => print::out(&print::json(&exported)?)?,
    }
    Ok(Exit::Done)
}

fn options(invocation: &Invocation) -> Options {
    Options { clock: invocation.clock.clone(), ..Options::default() }
}

/// Opens the database of the service, making it where it is not there.
fn open(db: &Place, invocation: &Invocation) -> anyhow::Result<Service> {
    Ok(Service::open_in(db, options(invocation))?)
}

/// Opens a database that must be there: of the service, or of a daemon in a file.
fn open_existing(db: &Place, invocation: &Invocation) -> anyhow::Result<Service> {
    let Place::File(path) = db else { return open(db, invocation) };
    std::fs::metadata(path).with_context(|| {
        let shown = shown(path);
        format!("cannot read {shown}: `--db FILE` names a database, `cliffwatch import PATH --db FILE` makes one")
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
            if let Place::File(path) = &db
                && !path.exists()
            {
                anstream::eprintln!("{} is new: it holds this key, and no data", shown(path));
            }
            let key = open(&db, invocation)?.add_key(name, *monthly_limit)?;
            print::out(&format!("{key}\n"))?;
            anstream::eprintln!("keep it now: it is shown this once and stored only as a hash");
        }
        KeysCommand::List { database } => {
            let keys = open_existing(&database.place()?, invocation)?.keys()?;
            let listing = Listing::of(&keys)
                .words("name", "name", |key| Cell::text(&key.name))
                .numbers("used", "used", |key| Cell::text(key.used))
                .numbers("limit", "limit", |key| Cell::text(key.monthly_limit))
                .words("resets", "resetAt", |key| Cell::time(Some(key.reset_at)))
                .words("last used", "lastUsedAt", |key| Cell::time(key.last_used_at))
                .words("revoked", "revokedAt", |key| Cell::time(key.revoked_at));
            let nothing = "there are no keys: `cliffwatch keys add NAME` makes one";
            listing.print(nothing, invocation)?;
        }
        KeysCommand::Revoke { name, database } => {
            if !open_existing(&database.place()?, invocation)?.revoke_key(name)? {
                anyhow::bail!("no key of the name {name:?} is in use");
            }
            anstream::eprintln!("{name}: revoked");
        }
    }
    Ok(Exit::Done)
}

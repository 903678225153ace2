//! Everything at once on loopback, without a key or a config: the data service with the bundled schedules, the daemon that polls it,
//! two receivers of its own (a webhook, a mail server), and a scripted correction that the diff finds.
//!
//! Nothing here is special to the daemon: it runs by its schedule, over HTTP, with the starter rules and a database on disk, and
//! what is printed is what the receivers got.

mod correction;
mod files;
mod printing;
mod receivers;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{Exit, Invocation, parse_address, run::drive};
use correction::{CORRECTION_AFTER, correct};
use daemon::app::{self, App, AppError, Drive};
use files::{DemoAddresses, write_files};
use model::{Clock, format};
use printing::{DemoLine, print_lines};
use service::{Options, Service, ServiceError};

/// How long the last lines may take to be printed, once everything else has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Where to keep database, config and rules; a folder that goes with the demo if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where the status page goes
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
}

/// What keeps the demo from running.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("cannot {doing}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    #[error("cannot fill the data service")]
    Service(#[from] ServiceError),
    /// The daemon.
    #[error(transparent)]
    App(#[from] AppError),
    #[error("the system gives no random bytes for a token")]
    NoRandom,
    #[error("the demo's config is not valid:\n{0}")]
    Config(String),
    #[error("{} is not the demo's, and was left as it is: name another folder with --dir", .0.display())]
    NotOurs(PathBuf),
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { doing, source }
}

pub(super) fn run(args: &DemoArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    daemon::log::start_quiet(invocation.verbose);
    let listen = parse_address(&args.listen, "--listen")?;
    drive(async {
        let folder = match &args.dir {
            Some(folder) => folder.clone(),
            None => fresh_folder().context("cannot make a folder for the demo")?,
        };
        let ran = run_until(&folder, listen, app::asked_to_stop()).await;
        if args.dir.is_none() {
            // What cannot be removed lies in the system's place for such.
            std::fs::remove_dir_all(&folder).ok();
        }
        ran?;
        Ok(Exit::Done)
    })
}

/// Runs until `stop`. `folder` holds the database, config and rules; `listen` is where the status page goes.
async fn run_until(folder: &Path, listen: SocketAddr, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), DemoError> {
    let began = Instant::now();
    let (print, lines) = mpsc::unbounded_channel();
    let printing = tokio::spawn(print_lines(lines, began));
    let ending = CancellationToken::new();

    let service = Service::in_memory(Options { access: service::AccessPolicy::Open, ..Options::default() })?;
    let imported = service.import(service::bundled(), |_| {})?;
    let source = bind("open the data service").await?;
    let source_address = source.local_addr().map_err(io_error("open the data service"))?;
    let router = service.router();
    tokio::spawn(service::serve(source, router, ending.clone().cancelled_owned()));

    let webhook_address = receivers::webhook(print.clone(), ending.clone()).await?;
    let mail_address = receivers::mail_server(print.clone(), ending.clone()).await?;

    let listen = settled(listen).map_err(io_error("find a port for the pages"))?;
    let token = daemon::http::fresh_token().ok_or(DemoError::NoRandom)?;
    let addresses = DemoAddresses { source: source_address, webhook: webhook_address, mail: mail_address, listen };
    write_files(folder, &addresses, &token)?;
    let loaded = daemon::config::load(Some(&folder.join("cliffwatch.toml")), &daemon::config::Environment::default());
    let Some(config) = loaded.config else {
        return Err(DemoError::Config(model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false)));
    };
    let app = App::open(config, folder, Clock::system(), Drive::Itself).await?;

    let opening = DemoOpening {
        tokens: imported.tokens,
        events: imported.events,
        service: source_address,
        webhook: webhook_address,
        mail: mail_address,
        folder: folder.to_owned(),
        token,
    };
    let say = print.clone();
    let started = move |address: Option<SocketAddr>| {
        say.send(DemoLine::Text(opening.words(address))).ok();
    };
    let correction = tokio::spawn(correct(service.clone(), print.clone(), ending.clone()));
    let ran = app.run(stop, started).await;
    ending.cancel();
    correction.abort();
    print.send(DemoLine::End).ok();
    // What was sent last is on its way to the terminal.
    let printed = tokio::time::timeout(LAST_WORDS, printing).await;
    ran?;
    let printed = printed.ok().and_then(Result::ok).unwrap_or_default();
    let _written = writeln!(anstream::stdout(), "\nThe demo has ended: {}.", printed.words());
    Ok(())
}

/// What is said once everything runs.
struct DemoOpening {
    tokens: usize,
    events: usize,
    service: SocketAddr,
    webhook: SocketAddr,
    mail: SocketAddr,
    folder: PathBuf,
    token: String,
}

impl DemoOpening {
    fn words(&self, page: Option<SocketAddr>) -> String {
        let page = page.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
        let Self { service, webhook, mail, folder, token, .. } = self;
        let (tokens, events) = (format::count(self.tokens, "token"), format::count(self.events, "unlock event"));
        let (after, folder) = (CORRECTION_AFTER.as_secs(), folder.display());
        format!(
            "cliffwatch demo: {tokens} with {events}, real schedules\n\
             \n  status page    {page}\
             \n  to act there   log in with {token}\
             \n  data service   http://{service}/v5/token/list\
             \n  webhook        http://{webhook}/hook\
             \n  mail server    smtp://{mail}\
             \n  from outside   cliffwatch --config {folder}/cliffwatch.toml status\n\
             \nFirst come the unlocks ahead; after {after} s the source corrects itself. Ctrl-C ends it.\n"
        )
    }
}

async fn bind(doing: &'static str) -> Result<TcpListener, DemoError> {
    TcpListener::bind("127.0.0.1:0").await.map_err(io_error(doing))
}

/// The address with a port: one that is free now, where any will do. Messages link to the pages, so it has to be known before they open.
fn settled(listen: SocketAddr) -> io::Result<SocketAddr> {
    if listen.port() != 0 {
        return Ok(listen);
    }
    std::net::TcpListener::bind(listen)?.local_addr()
}

/// Where a demo that is told no folder keeps its files: a fresh one below the system's place for such.
fn fresh_folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

//! `run`: the daemon.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use anyhow::Context as _;

use super::{Exit, Invocation};
use daemon::app::{self, App, AppError, Drive};
use daemon::config::Environment;
use daemon::reload::Origin;
use model::program;

pub(super) fn run(invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load_file()?;
    daemon::log::start(&config.log, invocation.verbose)?;
    let ended = drive(async {
        let mut stop = app::asked_to_stop();
        let opening = App::open(config, &loaded.base_dir, invocation.clock.clone(), Drive::Itself);
        let mut app = tokio::select! {
            opened = opening => opened?,
            () = &mut stop => return Ok(DaemonEnd::Done),
        };
        if let Some(path) = loaded.path {
            app = app.reading_again(Origin { path, environment: Environment::of_process() });
        }
        let started = |address: Option<SocketAddr>| match address {
            Some(address) => {
                tracing::info!(%address, "cliffwatch {} is watching; status page at http://{address}/", program::version_line())
            }
            None => tracing::info!("cliffwatch {} is watching", program::version_line()),
        };
        match app.run(stop, started).await {
            Err(AppError::LeaseLost) => Ok(DaemonEnd::Anew),
            ended => Ok(ended.map(|()| DaemonEnd::Done)?),
        }
    })?;
    match ended {
        DaemonEnd::Done => Ok(Exit::Done),
        DaemonEnd::Anew => Err(begin_anew()),
    }
}

/// How a run ended.
enum DaemonEnd {
    Done,
    /// Another instance is the active one: this one begins anew, as one that stands by.
    Anew,
}

/// Puts a fresh process of the same program in the place of this one, under the same number: nothing that was under way outlives that.
/// Answers why that could not be done.
fn begin_anew() -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    tracing::info!("beginning anew");
    // By its file, so that it keeps its name among processes. An upgrade may have replaced that; what runs is still there.
    let named = std::env::current_exe().ok().filter(|program| program.exists());
    let program = named.unwrap_or_else(|| "/proc/self/exe".into());
    let error = std::process::Command::new(program).args(std::env::args_os().skip(1)).exec();
    anyhow::Error::new(error).context("the program cannot begin anew")
}

/// Runs one future to its end on threads of its own.
pub(super) fn drive<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    source::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let future: Pin<Box<dyn Future<Output = anyhow::Result<T>>>> = Box::pin(future);
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

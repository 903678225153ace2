//! `run`: the daemon.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use anyhow::Context as _;

use super::{Exit, Invocation};
use daemon::app::{self, App, Drive};
use daemon::config::Environment;
use daemon::reload::Origin;
use model::program;

pub(super) fn run(invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load_file()?;
    daemon::log::start(&config.log, invocation.verbose)?;
    drive(async {
        let stop = app::asked_to_stop();
        let mut app = App::open(config, &loaded.base_dir, invocation.clock.clone(), Drive::Itself).await?;
        if let Some(path) = loaded.path {
            app = app.reading_again(Origin { path, environment: Environment::of_process() });
        }
        let started = |address: Option<SocketAddr>| match address {
            Some(address) => {
                tracing::info!(%address, "cliffwatch {} is watching; status page at http://{address}/", program::version_line())
            }
            None => tracing::info!("cliffwatch {} is watching", program::version_line()),
        };
        app.run(stop, started).await?;
        Ok(Exit::Done)
    })
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

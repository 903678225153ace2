//! The thread that moves bytes to the server and back, and how others wait for it.
//!
//! It is a runtime of its own, so that a session works in a command, in a test and on a thread of another runtime alike.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::PgFault;
use super::place::PostgresPlace;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

static DRIVER: OnceLock<Runtime> = OnceLock::new();

/// Held while it is made: of two, one would have to end at once, which a thread of another runtime may not let it.
static MAKING: Mutex<()> = Mutex::new(());

fn driver() -> Result<&'static Runtime, PgFault> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = DRIVER.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("store-postgres").enable_all().build();
    let runtime = runtime.map_err(|error| PgFault::Unreachable(Box::new(error)))?;
    Ok(DRIVER.get_or_init(|| runtime))
}

/// Connects to the server, whose answers are read from then on, until the client is dropped.
pub(super) fn connect(place: &Arc<PostgresPlace>) -> Result<Client, PgFault> {
    let runtime = driver()?;
    let place = place.clone();
    let connecting = runtime.spawn(async move {
        let (client, connection) = place.config().connect(place.tls()?).await?;
        // How it ended is told to whoever asks next.
        tokio::spawn(async move { drop(connection.await) });
        Ok::<Client, PgFault>(client)
    });
    match wait(connecting, CONNECT) {
        Some(Ok(client)) => client,
        Some(Err(error)) => Err(PgFault::Unreachable(Box::new(error))),
        None => Err(PgFault::Silent),
    }
}

/// Wakes a thread that waits.
struct WaitingThread(Thread);

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread for a future that another one drives; none where it takes longer than the limit. What is waited for must not
/// need this thread's own runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>, limit: Duration) -> Option<T> {
    let waker = Waker::from(Arc::new(WaitingThread(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}

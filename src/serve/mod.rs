//! The data service: token supply data over HTTP, in every version of the interface, from a database of its own or, as a mirror, from
//! the daemon's.
//!
//! The cast: [`Service`] holds the data and the rendered answers. `ask` reads a question from a request, `answer` makes the payload
//! from [`Facts`](crate::store::facts::Facts), `version` says which fields each version shows, `emission` counts days and weeks, `kept`
//! has the answers that were made before, and `pack` what of them goes out as gzip. `gate` lets keys in and counts their credits, `http`
//! is the path of a request, `listener` the connections. `import` and [`edit`](Service::edit) change the data, `export` writes it out,
//! `folder` is where they read and write; `openapi` describes it all; [`faults`] misbehaves on demand for tests.
//!
//! ```text
//! key ─► rate ─► question ─► answer (kept while the data stays as it is) ─► one credit ─► envelope
//! ```
//!
//! The promise: only an answered request costs a credit, exactly one, and never more than the key's limit; what was asked wrongly is
//! refused with the reason, and "nothing there" (an empty list) never looks like "no such token" (404) or "not known yet" (503).
//!
//! Where the interface leaves something open, this is what the service does:
//!
//! - `pageSize` is 50, at most 500; more is cut and `metadata.pageSize` says so. An empty list has `totalPages` 0.
//! - A parameter that a path does not take, or one given twice, is refused: a filter that is silently ignored would look like data.
//! - A field of a version is always there, null where its value is unknown; fields that nobody knows go through as they came.
//! - Unlock events v1 and v2, daily emission v1 and allocations v1 are from before tokens were listed by a model: they answer 404 for
//!   tokens of `listedMethod` `AI`, unless the service is told to cover all.
//! - `upcoming` counts an event as coming until the end of its UTC day. Without filters on categories it is the token's next event.
//! - From the fourth version of the events on, allocations whose name speaks of mining or farming are left out, and totals with them.
//! - Totals over values of which some are unknown add up the known ones; they are null where none is known.
//! - The first and the last week are told in full, also where the dates asked for lie inside of them.
//! - A category filter on emission narrows amounts and allocations; the cumulative amount stays that of the whole token.
//! - Errors are `{"status": false, "statusCode": …, "errorMessage": …}`: 400 for a question that makes no sense, 401 without a good key,
//!   404 for what is unknown, 413 for a request with a body beyond bounds, 429 with `Retry-After` when credits or the rate are spent, 503
//!   when no answer came in time or a mirror was not told yet. HEAD counts as GET.
//! - `If-None-Match` with the tag of an answer that still holds is answered 304, which costs no credit.

mod answer;
mod ask;
mod bundled;
mod edit;
mod emission;
mod export;
#[doc(hidden)]
pub mod faults;
mod folder;
mod gate;
mod http;
mod import;
mod kept;
mod listener;
mod meter;
mod mirror;
mod openapi;
mod pack;
#[cfg(test)]
mod tests;
mod version;

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, SecondsFormat, TimeDelta};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use tokio_util::sync::CancellationToken;

use answer::{Terms, Told};
use ask::Ask;
use gate::Gate;
use kept::Answers;
use meter::Meter;

pub use bundled::bundled;
pub use edit::{Edit, EditError};
pub use export::Exported;
pub use folder::{Folder, SourceFile};
pub use import::{ImportError, Imported, Problem};
pub use listener::{bind, serve};
pub use mirror::Reach;

use crate::{
    clock::Clock,
    store::{
        StoreError,
        catalog::{Catalog, CatalogError, KeyRow},
        facts::{Facts, FactsError},
        snapshot::Snapshot,
    },
    supply::Timestamp,
    wire::ErrorBody,
};

/// How long another process's change of data or keys may go unseen.
const GENERATION_CHECK: Duration = Duration::from_secs(1);
/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that open connections get to finish once the service is asked to stop.
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// What a spent rate per minute is told to wait at least, seconds.
const MIN_RETRY_AFTER_SECS: i64 = 1;
/// What is to be read from the source first is worth asking for again after this, seconds.
const NOT_YET_RETRY_AFTER_SECS: i64 = 60;

/// Who may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// A key is required once the database ever held one, so that revoking the last key opens nothing.
    #[default]
    KeysIfAny,
    /// A key is required, also while there is none.
    Keys,
    /// No key is asked for, and none is counted.
    Open,
}

/// How the service behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who may ask.
    pub access: Access,
    /// Requests that one key may make in a minute; none for no bound.
    pub requests_per_minute: Option<u32>,
    /// Versions from before tokens were listed by a model (unlock events v1 and v2, daily emission v1, allocations v1) answer for tokens
    /// of `listedMethod` `AI` too. Off, as the interface has it, they answer 404 for those.
    pub all_tokens: bool,
    /// Where the time comes from.
    pub clock: Clock,
}

/// What the service could not do for whoever runs it.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The database.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The daemon's database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Data that cannot be taken in.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A change that makes no sense for the data.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A file that cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which one.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder for an export that holds other things.
    #[error("{} is not empty: name a folder that is not there yet", path.display())]
    NotEmpty {
        /// Which one.
        path: std::path::PathBuf,
    },
    /// A mirror has no data of its own.
    #[error("a mirror shows what its daemon reads: its data cannot be changed here")]
    Mirror,
    /// A mirror that was given no database of keys.
    #[error("this mirror has no database of keys")]
    Keyless,
    /// The system gave no randomness.
    #[error("cannot make a key: the system gave no random bytes")]
    Randomness,
    /// A name that keys cannot have.
    #[error("\"{0}\" is no name for a key: use 1 to 64 letters, digits, dots, dashes, underscores")]
    KeyName(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A listener failed while it served.
    #[error("the data service stopped serving")]
    Serve(#[source] io::Error),
}

impl From<FactsError> for ServiceError {
    fn from(error: FactsError) -> Self {
        match error {
            FactsError::Catalog(error) => error.into(),
            FactsError::Store(error) => error.into(),
        }
    }
}

/// Addresses that a service is bound to, with the ports that the system chose where 0 was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Of the base address.
    pub address: SocketAddr,
    /// Of the older base address, where it is served.
    pub legacy: Option<SocketAddr>,
}

/// The data service. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    data: Data,
    gate: Gate,
    options: Options,
    answers: Answers,
    seen: RwLock<Seen>,
    /// Held by the one request that looks whether the data changed.
    looking: tokio::sync::Mutex<()>,
    meter: Meter,
}

/// What answers are made from.
#[derive(Debug)]
enum Data {
    Own(Arc<Catalog>),
    Mirror { snapshot: Snapshot, reach: Reach },
}

type Hash = [u8; digest::SHA256_OUTPUT_LEN];

/// How the data stood when somebody last looked.
#[derive(Debug, Default)]
struct Seen {
    generation: i64,
    checked: Option<Instant>,
}

impl Service {
    /// Opens the database, making it where it is not there.
    ///
    /// # Errors
    /// Where it cannot be opened, is not one of ours, or is of a newer program.
    pub fn open(path: &Path, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open(path)?, options))
    }

    /// A service whose data lives in memory, for as long as a clone of it does.
    ///
    /// # Errors
    /// Where memory gives out.
    pub fn in_memory(options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::in_memory()?, options))
    }

    /// A service that shows the snapshot of the daemon whose database is `path`, beside that daemon. `keys` is the database of keys;
    /// without one, whoever reaches the address may ask.
    ///
    /// # Errors
    /// Where one of the databases cannot be opened.
    pub fn mirror(path: &Path, reach: Reach, keys: Option<&Path>, options: Options) -> Result<Self, ServiceError> {
        let snapshot = Snapshot::open(path)?;
        let keys = keys.map(Catalog::open).transpose()?.map(Arc::new);
        // Whoever names a database of keys wants keys asked for, also before the first is made.
        let options = Options { access: if keys.is_some() { Access::Keys } else { Access::Open }, ..options };
        Ok(Self::with(Data::Mirror { snapshot, reach }, keys, options))
    }

    fn over(catalog: Catalog, options: Options) -> Self {
        let catalog = Arc::new(catalog);
        Self::with(Data::Own(catalog.clone()), Some(catalog), options)
    }

    fn with(data: Data, keys: Option<Arc<Catalog>>, options: Options) -> Self {
        let gate = Gate::new(keys, &options);
        Self(Arc::new(Inner {
            data,
            gate,
            options,
            answers: Answers::new(),
            seen: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            meter: Meter::new(),
        }))
    }

    fn own(&self) -> Result<&Catalog, ServiceError> {
        match &self.0.data {
            Data::Own(catalog) => Ok(catalog),
            Data::Mirror { .. } => Err(ServiceError::Mirror),
        }
    }

    /// The generation of the data, where somebody looked lately.
    fn fresh_generation(&self) -> Option<i64> {
        let seen = self.0.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.checked.is_some_and(|checked| checked.elapsed() < GENERATION_CHECK).then_some(seen.generation)
    }

    /// The generation of the data. Looks, at most once a second, whether somebody changed it, and forgets old answers if so.
    async fn generation(&self) -> Result<i64, Refusal> {
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        let _looking = self.0.looking.lock().await;
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        let service = self.clone();
        http::blocking(move || service.look()).await
    }

    /// Looks whether the data changed. Blocks.
    fn look(&self) -> Result<i64, Refusal> {
        let generation = match &self.0.data {
            Data::Own(catalog) => catalog.read(|view| view.generation())?,
            Data::Mirror { snapshot, .. } => snapshot.read(|view| view.generation())?,
        };
        let mut seen = self.0.seen.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.generation != generation;
        *seen = Seen { generation, checked: Some(Instant::now()) };
        drop(seen);
        if is_new {
            self.0.answers.clear();
        }
        Ok(generation)
    }

    /// Makes the next request look at the database: our own changes are seen at once.
    fn forget(&self) {
        self.0.seen.write().unwrap_or_else(PoisonError::into_inner).checked = None;
        self.0.gate.forget();
    }

    /// Makes an answer from the data as it is now. Blocks.
    fn make(&self, ask: &Ask, now: Timestamp) -> Result<Told, Refusal> {
        let all_tokens = self.0.options.all_tokens;
        match &self.0.data {
            Data::Own(catalog) => {
                let terms = Terms { now, all_tokens, reach: None };
                catalog.read(|view| answer::answer(view, ask, terms))
            }
            Data::Mirror { snapshot, reach } => {
                let terms = Terms { now, all_tokens, reach: Some(reach) };
                snapshot.read(|view| answer::answer(view, ask, terms))
            }
        }
    }

    // -- running it; these block, for as long as the database takes --

    /// Puts a data folder (or [`bundled`]) in place of the data that is there: one transaction, all or nothing. The same files a
    /// second time change nothing. Keys stay. `progress` hears the name of each file.
    ///
    /// # Errors
    /// Every problem found, with file and record; or where a file or the database cannot be used.
    pub fn import(
        &self,
        files: impl IntoIterator<Item = io::Result<SourceFile>>,
        progress: impl FnMut(&str),
    ) -> Result<Imported, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let imported = import::import(self.own()?, files, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Puts the snapshot of a daemon, whose database is `path`, in place of the data that is there, as [`Self::import`] does with a
    /// folder. `progress` hears each token, with how many there are.
    ///
    /// # Errors
    /// Where one of the databases cannot be used.
    pub fn import_daemon(&self, path: &Path, progress: impl FnMut(&str, usize)) -> Result<Imported, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let snapshot = Snapshot::open(path)?;
        let imported = import::import_daemon(self.own()?, &snapshot, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Writes the data as a folder that [`Self::import`] takes. `progress` hears the name of each file.
    ///
    /// # Errors
    /// Where the folder is there and not empty, or cannot be written, or the data cannot be read.
    pub fn export(&self, folder: &Path, progress: impl FnMut(&str)) -> Result<Exported, ServiceError> {
        match &self.0.data {
            Data::Own(catalog) => catalog.read(|view| export::export(view, folder, progress)),
            Data::Mirror { snapshot, .. } => snapshot.read(|view| export::export(view, folder, progress)),
        }
    }

    /// Changes the data in one transaction: all of what `change` does, or nothing where it answers an error. Each token that is
    /// touched gets a new `lastUpdatedDate`.
    ///
    /// # Errors
    /// What `change` answers, or where the database cannot be written.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let result = self.own()?.write(|draft| {
            let mut edit = Edit::new(draft, now);
            let result = change(&mut edit)?;
            edit.finish()?;
            Ok::<_, EditError>(result)
        })?;
        self.forget();
        Ok(result)
    }

    /// Makes a key and answers it: the only time that anybody sees it.
    ///
    /// # Errors
    /// Where the name is no name or taken, or the database cannot be written.
    pub fn add_key(&self, name: &str, monthly_limit: u64) -> Result<String, ServiceError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(ServiceError::KeyName(ask::shown(name)));
        }
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| ServiceError::Randomness)?;
        let mut key = String::from("cw_");
        base64::Engine::encode_string(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes, &mut key);
        self.0.gate.keys()?.add_key(name, &sha256(key.as_bytes()), monthly_limit, self.0.options.clock.now())?;
        self.forget();
        Ok(key)
    }

    /// All keys with their usage, revoked ones too.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn keys(&self) -> Result<Vec<KeyRow>, ServiceError> {
        let now = self.0.options.clock.now();
        Ok(self.0.gate.keys()?.keys()?.into_iter().map(|key| key.as_of(now)).collect())
    }

    /// Ends a key at once. Answers whether one of that name was in use.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn revoke_key(&self, name: &str) -> Result<bool, ServiceError> {
        let revoked = self.0.gate.keys()?.revoke_key(name, self.0.options.clock.now())?;
        self.forget();
        Ok(revoked)
    }

    /// Whether a key is asked for, as things are now.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn asks_for_keys(&self) -> Result<bool, ServiceError> {
        Ok(self.0.gate.requires_key()?)
    }

    /// Tokens in the list.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn token_count(&self) -> Result<usize, ServiceError> {
        Ok(match &self.0.data {
            Data::Own(catalog) => catalog.read(|view| view.tokens())?,
            Data::Mirror { snapshot, .. } => snapshot.read(|view| view.tokens())?,
        }
        .len())
    }
}

fn sha256(bytes: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// The interface has no fractions of a second.
fn whole_seconds(now: Timestamp) -> Timestamp {
    DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now)
}

/// Binds the service's addresses, tells `bound` which they are, and serves until `stop` resolves.
///
/// # Errors
/// Where an address cannot be bound, or a listener fails.
pub async fn listen(
    service: &Service,
    address: SocketAddr,
    legacy: Option<SocketAddr>,
    bound: impl FnOnce(Bound),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let bind = |address: SocketAddr| {
        let listener = listener::bind(address).map_err(|source| ServiceError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServiceError::Listen { address, source })?;
        Ok::<_, ServiceError>((listener, address))
    };
    let (main, address) = bind(address)?;
    let older = match legacy {
        Some(legacy) => Some(bind(legacy)?),
        None => None,
    };
    bound(Bound { address, legacy: older.as_ref().map(|(_, address)| *address) });
    let stopping = CancellationToken::new();
    // Either server's failure stops the other: half a service is not what was asked for.
    let run = async |listener, router| {
        let result = listener::serve(listener, router, stopping.clone().cancelled_owned()).await;
        stopping.cancel();
        result.map_err(ServiceError::Serve)
    };
    let older = async {
        match older {
            Some((listener, _)) => run(listener, service.legacy_router()).await,
            None => Ok(()),
        }
    };
    let servers = async { tokio::join!(run(main, service.router()), older) };
    let mut servers = std::pin::pin!(servers);
    let (main, older) = tokio::select! {
        results = &mut servers => results,
        () = stop => {
            stopping.cancel();
            servers.await
        }
    };
    main.and(older)
}

/// A request that is not answered, and why.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    /// Seconds.
    retry_after: Option<i64>,
}

impl Refusal {
    /// A question that makes no sense.
    fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), retry_after: None }
    }

    /// Something that is not there.
    fn unknown(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), retry_after: None }
    }

    /// No key, or none that opens anything: which of both is not told.
    fn keyless() -> Self {
        Self { status: StatusCode::UNAUTHORIZED, message: "x-api-key not found".into(), retry_after: None }
    }

    /// Our own fault.
    fn internal(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: message.into(), retry_after: None }
    }

    fn busy() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "the service is busy: ask again later".into(),
            retry_after: Some(ANSWER_TIMEOUT.as_secs().cast_signed()),
        }
    }

    /// A mirror was not told yet.
    fn not_yet(message: impl Into<String>) -> Self {
        let retry_after = Some(NOT_YET_RETRY_AFTER_SECS);
        Self { status: StatusCode::SERVICE_UNAVAILABLE, message: message.into(), retry_after }
    }

    fn too_many(message: impl Into<String>, wait_secs: i64) -> Self {
        let wait = wait_secs.max(MIN_RETRY_AFTER_SECS);
        Self { status: StatusCode::TOO_MANY_REQUESTS, message: message.into(), retry_after: Some(wait) }
    }

    fn spent(reset_at: Timestamp, now: Timestamp) -> Self {
        let wait: TimeDelta = reset_at - now;
        Self::too_many(
            format!(
                "the credits of this period are used up; they reset at {}",
                reset_at.to_rfc3339_opts(SecondsFormat::Secs, true)
            ),
            wait.num_seconds(),
        )
    }
}

impl From<CatalogError> for Refusal {
    fn from(error: CatalogError) -> Self {
        // The cause is for whoever runs the service; who asks learns that it is not the question.
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        Self::internal("the service cannot read its data")
    }
}

impl From<FactsError> for Refusal {
    fn from(error: FactsError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        Self::internal("the service cannot read its data")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            status: false.into(),
            status_code: i64::from(self.status.as_u16()).into(),
            error_message: self.message.into(),
            ..Default::default()
        };
        let text = serde_json::to_string(&body).unwrap_or_else(|_| "{\"status\":false}".into());
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}

//! The service itself: the data that it answers from, the answers that it made before, and how it notices that the data changed.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use chrono::DateTime;

use crate::answer::{self, AnswerContent, AnswerContext};
use crate::http::blocking;
use crate::key_gate::KeyGate;
use crate::metrics::ServiceMetrics;
use crate::query::DataQuery;
use crate::refusal::Refusal;
use crate::response_cache::ResponseCache;
use crate::{AccessPolicy, MirrorScope, Options, ServiceError};
use model::Timestamp;
use store::{Place, catalog::Catalog, snapshot::Snapshot};

/// How long another process's change of data or keys may go unseen.
pub(crate) const GENERATION_CHECK: Duration = Duration::from_secs(1);

/// The data service. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Service(pub(crate) Arc<ServiceInner>);

#[derive(Debug)]
pub(crate) struct ServiceInner {
    pub data: ServedData,
    pub key_gate: KeyGate,
    pub options: Options,
    pub response_cache: ResponseCache,
    pub seen: RwLock<KnownGeneration>,
    /// Held by the one request that looks whether the data changed.
    pub looking: tokio::sync::Mutex<()>,
    pub metrics: ServiceMetrics,
}

/// What answers are made from.
#[derive(Debug)]
pub(crate) enum ServedData {
    Own(Arc<Catalog>),
    Mirror { snapshot: Snapshot, scope: MirrorScope },
}

/// How the data stood when somebody last looked.
#[derive(Debug, Default)]
pub(crate) struct KnownGeneration {
    generation: i64,
    checked: Option<Instant>,
}

impl Service {
    /// Opens the database, making it where it is not there.
    /// Fails where it cannot be opened, is not one of ours, or is of a newer program.
    pub fn open(path: &Path, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open(path)?, options))
    }

    /// As [`Self::open`], wherever the database is: several services may share one that is on a server.
    pub fn open_in(place: &Place, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open_in(place)?, options))
    }

    /// A service whose data lives in memory, for as long as a clone of it does. Fails where memory gives out.
    pub fn in_memory(options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::in_memory()?, options))
    }

    /// A service that shows the snapshot of the daemon whose database is `path`, beside that daemon. `keys` is the database of keys;
    /// without one, whoever reaches the address may ask.
    pub fn mirror(path: &Path, scope: MirrorScope, keys: Option<&Path>, options: Options) -> Result<Self, ServiceError> {
        let keys = keys.map(|keys| Place::File(keys.to_owned()));
        Self::mirror_in(&Place::File(path.to_owned()), scope, keys.as_ref(), options)
    }

    /// As [`Self::mirror`], wherever the databases are.
    pub fn mirror_in(place: &Place, scope: MirrorScope, keys: Option<&Place>, options: Options) -> Result<Self, ServiceError> {
        let snapshot = Snapshot::open_in(place)?;
        let keys = keys.map(Catalog::open_in).transpose()?.map(Arc::new);
        // Whoever names a database of keys wants keys asked for, also before the first is made.
        let options = Options { access: if keys.is_some() { AccessPolicy::Keys } else { AccessPolicy::Open }, ..options };
        Ok(Self::with(ServedData::Mirror { snapshot, scope }, keys, options))
    }

    fn over(catalog: Catalog, options: Options) -> Self {
        let catalog = Arc::new(catalog);
        Self::with(ServedData::Own(catalog.clone()), Some(catalog), options)
    }

    fn with(data: ServedData, keys: Option<Arc<Catalog>>, options: Options) -> Self {
        let key_gate = KeyGate::new(keys, &options);
        Self(Arc::new(ServiceInner {
            data,
            key_gate,
            options,
            response_cache: ResponseCache::new(),
            seen: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            metrics: ServiceMetrics::new(),
        }))
    }

    pub(crate) fn own(&self) -> Result<&Catalog, ServiceError> {
        match &self.0.data {
            ServedData::Own(catalog) => Ok(catalog),
            ServedData::Mirror { .. } => Err(ServiceError::Mirror),
        }
    }

    /// The generation of the data, where somebody looked lately.
    fn fresh_generation(&self) -> Option<i64> {
        let seen = self.0.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.checked.is_some_and(|checked| checked.elapsed() < GENERATION_CHECK).then_some(seen.generation)
    }

    /// The generation of the data. Looks, at most once a second, whether somebody changed it, and forgets old answers if so.
    pub(crate) async fn generation(&self) -> Result<i64, Refusal> {
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        let _looking = self.0.looking.lock().await;
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        let service = self.clone();
        blocking(move || service.look()).await
    }

    /// Looks whether the data changed. Blocks.
    fn look(&self) -> Result<i64, Refusal> {
        let generation = match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| view.generation())?,
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| view.generation())?,
        };
        let mut seen = self.0.seen.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.generation != generation;
        *seen = KnownGeneration { generation, checked: Some(Instant::now()) };
        drop(seen);
        if is_new {
            self.0.response_cache.clear();
        }
        Ok(generation)
    }

    /// Makes the next request look at the database: our own changes are seen at once.
    pub(crate) fn forget(&self) {
        self.0.seen.write().unwrap_or_else(PoisonError::into_inner).checked = None;
        self.0.key_gate.forget();
    }

    /// Makes an answer from the data as it is now. Blocks.
    pub(crate) fn make(&self, query: &DataQuery, now: Timestamp) -> Result<AnswerContent, Refusal> {
        let all_tokens = self.0.options.all_tokens;
        match &self.0.data {
            ServedData::Own(catalog) => {
                let context = AnswerContext { now, all_tokens, scope: None };
                catalog.read(|view| answer::answer(view, query, context))
            }
            ServedData::Mirror { snapshot, scope } => {
                let context = AnswerContext { now, all_tokens, scope: Some(scope) };
                snapshot.read(|view| answer::answer(view, query, context))
            }
        }
    }
}

/// The interface has no fractions of a second.
pub(crate) fn whole_seconds(now: Timestamp) -> Timestamp {
    DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now)
}

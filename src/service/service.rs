//! The service: its data, its response cache, and the detection of changed data.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use chrono::DateTime;

use crate::http::blocking;
use crate::key_gate::KeyGate;
use crate::metrics::ServiceMetrics;
use crate::payload::{self, ResponseContext, ResponseData};
use crate::query::DataQuery;
use crate::refusal::Refusal;
use crate::response_cache::ResponseCache;
use crate::{AccessPolicy, MirrorScope, Options, ServiceError};
use model::Timestamp;
use store::{DatabaseLocation, catalog::Catalog, snapshot::Snapshot};

/// The interval between checks whether another process changed data or keys.
pub(crate) const GENERATION_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The data service. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Service(pub(crate) Arc<ServiceInner>);

#[derive(Debug)]
pub(crate) struct ServiceInner {
    pub data: ServedData,
    pub key_gate: KeyGate,
    pub options: Options,
    pub response_cache: ResponseCache,
    pub known: RwLock<KnownGeneration>,
    /// Locked by the request that checks whether the data changed.
    pub check_lock: tokio::sync::Mutex<()>,
    pub metrics: ServiceMetrics,
}

#[derive(Debug)]
pub(crate) enum ServedData {
    Own(Arc<Catalog>),
    Mirror { snapshot: Snapshot, scope: MirrorScope },
}

/// The generation of the data at the last check.
#[derive(Debug, Default)]
pub(crate) struct KnownGeneration {
    generation: i64,
    checked: Option<Instant>,
}

impl Service {
    /// Opens the database, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened, is not a Cliffwatch database, or has a newer schema.
    pub fn open(path: &Path, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open(path)?, options))
    }

    /// Like [`Self::open`], for a file or a database server, which several services can share.
    pub fn open_in(place: &DatabaseLocation, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open_in(place)?, options))
    }

    /// Creates a service with data in memory.
    pub fn in_memory(options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::in_memory()?, options))
    }

    /// Opens a mirror, which serves the snapshot of the daemon whose database is `path`. `keys` is the key database; without one, no key
    /// is required.
    pub fn mirror(path: &Path, scope: MirrorScope, keys: Option<&Path>, options: Options) -> Result<Self, ServiceError> {
        let keys = keys.map(|keys| DatabaseLocation::File(keys.to_owned()));
        Self::mirror_in(&DatabaseLocation::File(path.to_owned()), scope, keys.as_ref(), options)
    }

    /// Like [`Self::mirror`], for files or database servers.
    pub fn mirror_in(
        place: &DatabaseLocation,
        scope: MirrorScope,
        keys: Option<&DatabaseLocation>,
        options: Options,
    ) -> Result<Self, ServiceError> {
        let snapshot = Snapshot::open_in(place)?;
        let keys = keys.map(Catalog::open_in).transpose()?.map(Arc::new);
        // With a key database, keys are required even before the first one exists.
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
            known: RwLock::default(),
            check_lock: tokio::sync::Mutex::default(),
            metrics: ServiceMetrics::new(),
        }))
    }

    pub(crate) fn own(&self) -> Result<&Catalog, ServiceError> {
        match &self.0.data {
            ServedData::Own(catalog) => Ok(catalog),
            ServedData::Mirror { .. } => Err(ServiceError::Mirror),
        }
    }

    /// Returns the generation of the data if it was checked recently.
    fn fresh_generation(&self) -> Option<i64> {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.checked.is_some_and(|checked| checked.elapsed() < GENERATION_CHECK_INTERVAL).then_some(known.generation)
    }

    /// Returns the generation of the data, which is checked at most once per second. A new generation clears the response cache.
    pub(crate) async fn generation(&self) -> Result<i64, Refusal> {
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        Box::pin(self.checked_generation()).await
    }

    async fn checked_generation(&self) -> Result<i64, Refusal> {
        let _lock = self.0.check_lock.lock().await;
        if let Some(generation) = self.fresh_generation() {
            return Ok(generation);
        }
        let service = self.clone();
        blocking(move || service.read_generation()).await
    }

    /// Reads the generation from the database. Blocks.
    fn read_generation(&self) -> Result<i64, Refusal> {
        let generation = match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| view.generation())?,
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| view.generation())?,
        };
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = known.generation != generation;
        *known = KnownGeneration { generation, checked: Some(Instant::now()) };
        drop(known);
        if is_new {
            self.0.response_cache.clear();
        }
        Ok(generation)
    }

    /// Makes the next request check the database, after a change by this process.
    pub(crate) fn forget(&self) {
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).checked = None;
        self.0.key_gate.forget();
    }

    /// Builds the payload of a response from the current data. Blocks.
    pub(crate) fn build_payload(&self, query: &DataQuery, now: Timestamp) -> Result<ResponseData, Refusal> {
        let context = |scope| ResponseContext { now, all_tokens: self.0.options.all_tokens, scope };
        match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| payload::build(view, query, context(None))),
            ServedData::Mirror { snapshot, scope } => snapshot.read(|view| payload::build(view, query, context(Some(scope)))),
        }
    }
}

/// Truncates to seconds, because the API has no fractions.
pub(crate) fn whole_seconds(now: Timestamp) -> Timestamp {
    DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now)
}

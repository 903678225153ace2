//! The client: asks one thing to its end, within bounds of time, size, rate and credits, and always answers.
//!
//! The path of a fetch: leave of the [gate](super::gate) → for each version to try, a [walk](super::walk) over the pages → for
//! each page, a turn of the [pace](super::pace), one request, its [envelope](super::envelope), retries → the hash, and
//! [reading](super::parse) where it differs → a verdict for the gate. The key goes out in one header, to the configured servers
//! only.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::TimeDelta;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use super::{
    BreakerState, ClientError, Failure, FailureKind, Fetched, Outcome, Request, Tuning,
    envelope::Page,
    gate::{Gate, Pass, Verdict},
    pace::Pace,
    parse,
    route::Route,
    server::{Server, install_crypto_provider},
    shown,
    trouble::Trouble,
    walk::{Step, Walk},
};
use crate::{
    clock::Clock,
    config::{SecretText, Source, Version},
    supply::{ContentHash, Timestamp},
    wire::Credit,
};

/// How long a whole fetch may take, waiting for turns included.
const FETCH_LIMIT: Duration = Duration::from_secs(3_600);

/// Answers above this size are read on a thread of their own, bytes.
const LARGE_ANSWER: usize = 256 * 1024;

/// How long a version that answered is trusted before the newest is tried again.
const VERSION_TRUST: TimeDelta = TimeDelta::days(1);

/// The client of the API. Clones share connections, pace, gate and what was learnt of the server.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub current: Server,
    pub legacy: Server,
    pub source: Source,
    pub clock: Clock,
    pub tuning: Tuning,
    pub gate: Arc<Gate>,
    pub pace: Pace,
    pub fetches: Semaphore,
    pub learnt: Mutex<Learnt>,
}

/// What the answers so far have taught.
#[derive(Default)]
pub(super) struct Learnt {
    /// Which version answered last, and since when that is known, for each route.
    pub versions: [Option<(u8, Timestamp)>; Route::COUNT],
    /// Quota as last reported.
    pub credit: Option<Credit>,
    /// When the key was last accepted.
    pub accepted_at: Option<Timestamp>,
    /// The key as last read, and when.
    pub key: Option<(Instant, Option<SecretText>)>,
}

/// What a fetch has cost and learnt so far.
#[derive(Default)]
pub(super) struct Tally {
    pub credits: u32,
    pub requests: u32,
    pub credit: Option<Credit>,
    pub bytes: u64,
    pub status: Option<u16>,
    pub version: Option<u8>,
}

/// A fetch under way.
pub(super) struct Fetch<'a> {
    pub request: &'a Request,
    pub route: Route,
    pub known: Option<ContentHash>,
    pub credits_left: Option<u32>,
    pub key: Option<SecretText>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.inner.current.base.host_str()).field("breaker", &self.breaker()).finish()
    }
}

impl Client {
    /// A client for `[source]`. `clock` tells when waits that the source asks for are over.
    ///
    /// # Errors
    /// Where an address is not https, a version does not exist, or certificates cannot be read.
    pub fn new(source: &Source, clock: Clock) -> Result<Self, ClientError> {
        Self::with_tuning(source, clock, Tuning::default())
    }

    /// As [`Client::new`], with waits and counts of the caller's choice.
    ///
    /// # Errors
    /// As [`Client::new`].
    #[doc(hidden)]
    pub fn with_tuning(source: &Source, clock: Clock, tuning: Tuning) -> Result<Self, ClientError> {
        install_crypto_provider();
        for route in Route::ALL {
            let (key, version) = route.configured(source);
            if let Version::V(number) = version
                && !route.versions().contains(&number)
            {
                let known = route.versions().iter().rev().map(|known| format!("\"v{known}\"")).collect::<Vec<_>>().join(", ");
                return Err(ClientError::Version { key, version, known });
            }
        }
        let inner = Inner {
            current: Server::new("base_url", &source.base_url, source)?,
            legacy: Server::new("legacy_base_url", &source.legacy_base_url, source)?,
            source: source.clone(),
            clock,
            tuning,
            gate: Arc::new(Gate::new(tuning)),
            pace: Pace::new(source.requests_per_minute, tuning.minute),
            fetches: Semaphore::new(usize::try_from(source.concurrency).unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS)),
            learnt: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Asks one thing to its end: all pages, retries and versions. It always answers, and never half.
    ///
    /// `known` is the hash of the last answer of this feed, `credits_left` the most credits that this fetch may spend. `took`
    /// does not count the wait for other fetches to finish.
    pub async fn fetch(&self, request: &Request, known: Option<ContentHash>, credits_left: Option<u32>) -> Fetched {
        let inner = &*self.inner;
        // The semaphore is never closed; were it, fetching without it would still be right.
        let _permit = inner.fetches.acquire().await.ok();
        let began = Instant::now();
        let mut tally = Tally::default();
        let outcome = match timeout(FETCH_LIMIT, inner.fetch(request, known, credits_left, &mut tally)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("{}: not answered to its end within {} min", name_of(request), FETCH_LIMIT.as_secs() / 60);
                Outcome::Failed(Failure { kind: FailureKind::Timeout, message, retry_at: None })
            }
        };
        Fetched {
            request: request.clone(),
            outcome,
            credits: tally.credits,
            requests: tally.requests,
            credit: tally.credit,
            bytes: tally.bytes,
            took: began.elapsed(),
            status: tally.status,
            version: tally.version,
        }
    }

    /// How the client stands to the source, for status and metrics.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.inner.gate.state()
    }
}

/// What is asked, before its version is known.
fn name_of(request: &Request) -> String {
    match request {
        Request::Token { endpoint, token, .. } => format!("{endpoint} of {}", shown::excerpt(token.as_str())),
        Request::Investor { id } => format!("investor {}", shown::excerpt(id)),
        Request::TokenList | Request::Upcoming { .. } | Request::Investors => request.endpoint().to_string(),
    }
}

impl Inner {
    pub(super) fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(
        &self,
        request: &Request,
        known: Option<ContentHash>,
        credits_left: Option<u32>,
        tally: &mut Tally,
    ) -> Outcome {
        let name = name_of(request);
        let failed = |kind, message: String, retry_at| {
            Outcome::Failed(Failure { kind, message: shown::clip(&message, shown::MAX_MESSAGE), retry_at })
        };
        let route = match Route::of(request) {
            Ok(route) => route,
            Err(problem) => return failed(FailureKind::NotFound, format!("{name} was not asked for: {problem}"), None),
        };
        if credits_left == Some(0) {
            let resets = self.learnt().credit.as_ref().and_then(|credit| credit.reset_at.copied());
            return failed(FailureKind::QuotaExhausted, format!("{name} was not asked for: no credits are left for it"), resets);
        }
        let key = match self.key().await {
            Ok(key) => key,
            Err(problem) => {
                return failed(FailureKind::Unauthorized, format!("{name} was not asked for: {problem}"), None);
            }
        };
        let pass = match self.gate.admit(&name, key.as_ref(), self.clock.now()) {
            Ok(pass) => pass,
            Err(failure) => return Outcome::Failed(failure),
        };
        let fetch = Fetch { request, route, known, credits_left, key };
        let (outcome, verdict) = match self.try_versions(&fetch, &pass, tally).await {
            Ok(outcome) => (outcome, Verdict::Answered),
            Err(trouble) => (Outcome::Failed(trouble.failure), trouble.verdict),
        };
        self.gate.conclude(pass, verdict, fetch.key.as_ref(), self.clock.now());
        outcome
    }

    /// The key as it is now: read again after a few seconds, so that it can rotate.
    async fn key(&self) -> Result<Option<SecretText>, String> {
        if let Some((read_at, key)) = &self.learnt().key
            && read_at.elapsed() < self.tuning.key_cache
        {
            return Ok(key.clone());
        }
        let secret = self.source.key();
        let key = tokio::task::spawn_blocking(move || {
            secret.resolve().map_err(|error| {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("{error}{cause}")
            })
        })
        .await
        .map_err(|_| "the key could not be read".to_owned())??
        // An empty file is no key.
        .filter(|key| !key.expose().trim().is_empty());
        let mut learnt = self.learnt();
        if let Some((_, before)) = &learnt.key
            && before.as_ref().map(SecretText::expose) != key.as_ref().map(SecretText::expose)
        {
            learnt.accepted_at = None;
            learnt.credit = None;
        }
        learnt.key = Some((Instant::now(), key.clone()));
        Ok(key)
    }

    /// Asks in the version that is configured or known to answer; where none is known, in the newest and then in the next older
    /// one.
    ///
    /// A 404 says either that the path is unknown or that the token is. Only a success in the older version tells: then that
    /// version is settled on for a day. Where both say 404, it is the token, and nothing is settled.
    async fn try_versions(&self, fetch: &Fetch<'_>, pass: &Pass, tally: &mut Tally) -> Result<Outcome, Trouble> {
        let route = fetch.route;
        let (newest, next) = route.newest_and_next();
        let now = self.clock.now();
        let settled = self.learnt().versions.get(route as usize).copied().flatten().filter(|(_, since)| {
            let age = now - *since;
            age >= TimeDelta::zero() && age < VERSION_TRUST
        });
        let (first, second) = match (route.configured(&self.source).1, settled) {
            (Version::V(version), _) => (version, None),
            (Version::Auto, Some((version, _))) => (version, None),
            (Version::Auto, None) => (newest, Some(next)),
        };
        let mut answer = self.walk(fetch, first, pass, tally).await;
        let mut version = first;
        if let (Err(trouble), Some(older)) = (&answer, second)
            && trouble.failure.kind == FailureKind::NotFound
        {
            let older_answer = self.walk(fetch, older, pass, tally).await;
            match &older_answer {
                // Both do not know it: what the newest said stands.
                Err(trouble) if trouble.failure.kind == FailureKind::NotFound => {}
                Ok(_) => {
                    tracing::info!(
                        endpoint = %fetch.request.endpoint(),
                        version = older,
                        "the source does not know v{newest}; using v{older} for a day"
                    );
                    answer = older_answer;
                    version = older;
                }
                Err(_) => answer = older_answer,
            }
        }
        if answer.is_ok() {
            // An older version keeps its date, so that the newest is tried again a day after it was last missed.
            let since = settled.filter(|(known, _)| *known == version && version != newest).map_or(now, |(_, since)| since);
            if let Some(slot) = self.learnt().versions.get_mut(route as usize) {
                *slot = Some((version, since));
            }
        }
        answer
    }

    /// Walks over the pages, once more where they do not fit together, and reads them.
    async fn walk(&self, fetch: &Fetch<'_>, version: u8, pass: &Pass, tally: &mut Tally) -> Result<Outcome, Trouble> {
        let ask = fetch.route.ask(fetch.request, version);
        let what = format!("GET {}", ask.shown_path());
        let asked_size = ask.is_paged.then_some(self.source.page_size.max(1));
        let mut problem = String::new();
        for round in 0..=self.tuning.rewalks {
            if round > 0 {
                sleep(self.backoff(0)).await;
            }
            let mut walk = Walk::new(ask.is_list, asked_size, self.source.max_body.0, fetch.known);
            let mut number = 1;
            let shifted = loop {
                let pages_left = if number == 1 { 1 } else { walk.pages_left() };
                self.check_credits(fetch, pages_left, &what, tally)?;
                let name = if number == 1 { what.clone() } else { format!("{what} (page {number} of {})", walk.page_count()) };
                let size = walk.page_size();
                let page = self.page(fetch, &ask, &name, number, size, pass, tally).await?;
                tally.version = Some(version);
                match walk.take(page) {
                    Step::Next(next) => number = next,
                    Step::Same => return Ok(Outcome::Unchanged),
                    Step::Whole => return self.read(fetch, walk, &what).await,
                    Step::Shifted(problem) => break problem,
                    Step::Hopeless(kind, problem) => {
                        return Err(Trouble::of(kind, shown::clip(&format!("{what}: {problem}"), shown::MAX_MESSAGE)));
                    }
                }
            };
            tracing::debug!(round, problem = %shifted, "{what}: the pages do not fit together");
            problem = shifted;
        }
        let walks = self.tuning.rewalks + 1;
        let message = format!("{what}: the pages did not fit together in {walks} walks: {problem}");
        Err(Trouble::of(FailureKind::Incomplete, shown::clip(&message, shown::MAX_MESSAGE)))
    }

    /// Stops before a page that would cost more than may be spent. All pages that are left count: half a walk is worth nothing.
    fn check_credits(&self, fetch: &Fetch<'_>, pages: u64, what: &str, tally: &Tally) -> Result<(), Trouble> {
        let Some(most) = fetch.credits_left else { return Ok(()) };
        if u64::from(tally.credits) + pages <= u64::from(most) {
            return Ok(());
        }
        let spent = tally.credits;
        let message = format!(
            "{what}: {pages} pages are still to be read at one credit each, and {spent} of the {most} credits allowed are spent"
        );
        let retry_at = tally.credit.as_ref().and_then(|credit| credit.reset_at.copied());
        let mut trouble = Trouble::of(FailureKind::QuotaExhausted, shown::clip(&message, shown::MAX_MESSAGE));
        trouble.failure.retry_at = retry_at;
        trouble.verdict = if spent > 0 { Verdict::Answered } else { Verdict::Nothing };
        Err(trouble)
    }

    /// Reads a whole answer.
    async fn read(&self, fetch: &Fetch<'_>, walk: Walk, what: &str) -> Result<Outcome, Trouble> {
        let pages = walk.into_pages();
        let size: usize = pages.pages.iter().map(Page::len).sum();
        let answer = if size > LARGE_ANSWER {
            let (request, route) = (fetch.request.clone(), fetch.route);
            tokio::task::spawn_blocking(move || parse::answer(&request, route, &pages))
                .await
                .unwrap_or_else(|_| Err("reading it failed".to_owned()))
        } else {
            parse::answer(fetch.request, fetch.route, &pages)
        };
        match answer {
            Ok(answer) => Ok(Outcome::Fresh(answer)),
            Err(problem) => {
                let message = shown::without_key(&format!("{what}: {problem}"), fetch.key.as_ref());
                Err(Trouble::of(FailureKind::BadAnswer, shown::clip(&message, shown::MAX_MESSAGE)))
            }
        }
    }
}

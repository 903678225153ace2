//! A fetch: chooses the version, walks over the pages, reserves credits, and parses the response.

use tokio::time::sleep;

use super::{
    breaker::BreakerPermit,
    client::{ClientInner, FetchCost},
    envelope::ResponsePage,
    failed_request::FailedRequest,
    page_walk::{PageWalk, WalkStep},
    parse, redact,
    route::EndpointRoute,
    versions::RouteVersions,
};
use model::{
    config::{EndpointVersion, SecretText},
    poll::{FailureKind, PollOutcome, PollRequest},
    supply::ContentHash,
};

/// The size in bytes above which a response is parsed on a blocking thread.
const LARGE_RESPONSE_BYTES: usize = 256 * 1024;

pub(super) struct FetchContext<'a> {
    pub request: &'a PollRequest,
    pub route: EndpointRoute,
    /// Overrides the configured version.
    pub version: Option<u8>,
    pub known: Option<ContentHash>,
    pub credits_left: Option<u32>,
    pub key: Option<SecretText>,
}

impl ClientInner {
    /// Fetches in the configured version, or in the newest and then the next older one, in the order that [`RouteVersions`] prefers.
    ///
    /// A 404 can mean that the path or the token is unknown, even in a version that worked before. If both versions return 404, the
    /// token is unknown.
    pub(super) async fn try_versions(
        &self,
        fetch: &FetchContext<'_>,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let configured = fetch.version.map_or(fetch.route.configured(&self.source).1, EndpointVersion::V);
        if let EndpointVersion::V(version) = configured {
            return self.walk(fetch, version, permit, cost).await;
        }
        let (newest, next) = fetch.route.newest_and_next();
        let subject = subject_of(fetch.request);
        let prefers_older = self.versions(fetch.route, |versions| versions.prefers_older(subject, self.clock.now()));
        let (first, second) = if prefers_older { (next, newest) } else { (newest, next) };
        let response = self.walk(fetch, first, permit, cost).await;
        if !is_not_found(&response) {
            if first == newest && response.is_ok() {
                self.versions(fetch.route, |versions| versions.responded(subject, self.clock.now()));
            }
            return response;
        }
        let other = self.walk(fetch, second, permit, cost).await;
        match &other {
            // The token is unknown in both versions, so the first error stands.
            _ if is_not_found(&other) => return response,
            Ok(_) if second == newest => self.versions(fetch.route, |versions| versions.responded(subject, self.clock.now())),
            Ok(_) => self.record_absence(fetch),
            Err(_) => {}
        }
        other
    }

    /// Records a 404 of the newest version to which the next older one responded.
    fn record_absence(&self, fetch: &FetchContext<'_>) {
        let ((newest, next), now) = (fetch.route.newest_and_next(), self.clock.now());
        let (was_absent, is_absent) = self.versions(fetch.route, |versions| {
            let was_absent = versions.is_absent(now);
            versions.lacks(subject_of(fetch.request), now);
            (was_absent, versions.is_absent(now))
        });
        if is_absent && !was_absent {
            tracing::info!(
                endpoint = %fetch.request.endpoint(),
                version = next,
                "the source has no v{newest} of this endpoint: using v{next}, and trying v{newest} every hour"
            );
        } else if !is_absent {
            tracing::info!(
                feed = %fetch.request.feed(),
                version = next,
                "v{newest} has no data for this feed, but v{next} has: using v{next}, and trying v{newest} again in an hour"
            );
        }
    }

    fn versions<T>(&self, route: EndpointRoute, update: impl FnOnce(&mut RouteVersions) -> T) -> T
    where
        T: Default,
    {
        self.learned().versions.get_mut(route as usize).map(update).unwrap_or_default()
    }

    /// Walks over the pages, repeats the walk if they are inconsistent, and parses them.
    async fn walk(
        &self,
        fetch: &FetchContext<'_>,
        version: u8,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let target = fetch.route.target(fetch.request, version);
        let what = format!("GET {}", target.display_path());
        let requested_size = target.is_paged.then_some(self.source.page_size.max(1));
        let mut problem = String::new();
        for round in 0..=self.tuning.rewalks {
            if round > 0 {
                sleep(self.backoff(0)).await;
            }
            let mut walk = PageWalk::new(target.is_list, requested_size, self.source.max_body.0, fetch.known);
            let mut number = 1;
            let inconsistency = loop {
                if number > 1 {
                    self.reserve_rest(fetch, walk.pages_left(), &what, cost).await?;
                }
                let name = if number == 1 { what.clone() } else { format!("{what} (page {number} of {})", walk.page_count()) };
                let size = walk.page_size();
                let page = self.page(fetch, &target, &name, number, size, permit, cost).await?;
                cost.version = Some(version);
                let step = walk.take(page);
                cost.pages = u32::try_from(walk.page_count()).unwrap_or(u32::MAX);
                match step {
                    WalkStep::Next(next) => number = next,
                    WalkStep::Unchanged => {
                        self.buffers.put(walk.into_pages().pages);
                        return Ok(PollOutcome::Unchanged);
                    }
                    WalkStep::Complete => return self.read(fetch, walk, &what).await,
                    WalkStep::Inconsistent(problem) => break problem,
                    WalkStep::Invalid(kind, problem) => {
                        return Err(FailedRequest::of(kind, redact::message(&format!("{what}: {problem}"))));
                    }
                }
            };
            tracing::debug!(round, problem = %inconsistency, "{what}: inconsistent pages");
            problem = inconsistency;
        }
        let walks = self.tuning.rewalks + 1;
        let message = format!("{what}: the pages were inconsistent in {walks} attempts: {problem}");
        Err(FailedRequest::of(FailureKind::Incomplete, redact::message(&message)))
    }

    /// Reserves the credits of all remaining pages, since an incomplete walk is useless. If there are not enough, the fetch is deferred
    /// to a slot with a larger plan.
    async fn reserve_rest(
        &self,
        fetch: &FetchContext<'_>,
        pages: u64,
        what: &str,
        cost: &mut FetchCost,
    ) -> Result<(), FailedRequest> {
        let spent = cost.credits;
        let why = match fetch.credits_left {
            Some(most) if u64::from(spent) + pages > u64::from(most) => format!("only {most} were planned"),
            _ => match cost.reserved.reserve(pages).await {
                Ok(()) => return Ok(()),
                Err(failure) if failure.kind == FailureKind::QuotaExhausted => "not enough are left".to_owned(),
                Err(failure) => return Err(FailedRequest::not_sent(failure)),
            },
        };
        let message = format!("{what}: {pages} more pages cost one credit each; {spent} are used so far, and {why}");
        Err(FailedRequest::of(FailureKind::Deferred, redact::message(&message)))
    }

    async fn read(&self, fetch: &FetchContext<'_>, walk: PageWalk, what: &str) -> Result<PollOutcome, FailedRequest> {
        let pages = walk.into_pages();
        let size: usize = pages.pages.iter().map(ResponsePage::len).sum();
        let response = if size > LARGE_RESPONSE_BYTES {
            let (request, route) = (fetch.request.clone(), fetch.route);
            tokio::task::spawn_blocking(move || parse::response(&request, route, &pages))
                .await
                .unwrap_or_else(|_| Err("parsing was interrupted".to_owned()))
        } else {
            let response = parse::response(fetch.request, fetch.route, &pages);
            self.buffers.put(pages.pages);
            response
        };
        match response {
            Ok(response) => Ok(PollOutcome::Fresh(response)),
            Err(problem) => {
                let message = redact::without_key(&format!("{what}: {problem}"), fetch.key.as_ref());
                Err(FailedRequest::of(FailureKind::BadAnswer, redact::message(&message)))
            }
        }
    }
}

/// Returns the token or investor of a request; empty for a list.
fn subject_of(request: &PollRequest) -> &str {
    match request {
        PollRequest::Token { token, .. } => token.as_str(),
        PollRequest::Investor { id } => id,
        PollRequest::TokenList | PollRequest::Upcoming { .. } | PollRequest::Investors => "",
    }
}

fn is_not_found(response: &Result<PollOutcome, FailedRequest>) -> bool {
    matches!(response, Err(failed) if failed.failure.kind == FailureKind::NotFound)
}

//! The overview page.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Html;
use chrono::TimeDelta;
use tokio::sync::Mutex;

use crate::http::access::Visitor;
use crate::http::error::PageResult;
use crate::http::{HttpDeps, api::lists::alert_views, status::status_view};
use crate::ui::overview::{ALERT_ROWS, CHANGE_ROWS, HELD_ROWS, NEXT_ROWS, OverviewParts, ahead_windows, page, supply_windows};
use crate::ui::page::{PageFrame, Section};
use chart::past_polls;
use daemon::view::{AlertView, StatusView};
use model::{
    Ahead, AheadFilter, ChangeFilter, ChangeRow, CreditState, FiringAlerts, PastPolls, Pulse, ReferencePrice, SupplyTotals,
    Timestamp, Token,
};
use store::StoreError;

/// The data of the overview at one time.
#[derive(Debug)]
struct OverviewData {
    at: Timestamp,
    pulse: Pulse,
    supply: SupplyTotals,
    ahead: Ahead,
    firing: FiringAlerts,
    alerts: Vec<AlertView>,
    changes: Vec<ChangeRow>,
    credit: CreditState,
    status: StatusView,
    held: Vec<Token>,
    polls: Vec<PastPolls>,
}

/// The latest data, because all open overviews reload at once after an update. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OverviewCache(Arc<Mutex<Option<Arc<OverviewData>>>>);

/// The maximum age of cached data. New data in the database invalidates it earlier.
const MAX_AGE: TimeDelta = TimeDelta::seconds(5);

impl OverviewCache {
    /// Returns the cached data if it is current, else loads it. Concurrent callers wait for one load.
    async fn get(&self, deps: &HttpDeps) -> Result<Arc<OverviewData>, StoreError> {
        let (now, pulse) = (deps.app.clock.now(), deps.app.store.pulse().await?);
        let mut last = self.0.lock().await;
        let is_fresh = |reads: &&Arc<OverviewData>| reads.pulse == pulse && (now - reads.at).abs() < MAX_AGE;
        if let Some(reads) = last.as_ref().filter(is_fresh) {
            return Ok(reads.clone());
        }
        let reads = Arc::new(OverviewData::load(deps, now, pulse).await?);
        *last = Some(reads.clone());
        Ok(reads)
    }
}

impl OverviewData {
    async fn load(deps: &HttpDeps, at: Timestamp, pulse: Pulse) -> Result<Self, StoreError> {
        let live = deps.app.live.load_full();
        let (watch, stale_price) = (live.watch.clone(), live.config.source.stale_price.delta());
        let stale_before = ReferencePrice::stale_before(stale_price, at);
        let supply = deps.app.store.supply_totals(at, supply_windows(at), watch.clone(), stale_before);
        let firing = async {
            let firing = deps.app.store.firing_alerts(ALERT_ROWS).await?;
            let alerts = alert_views(deps, &firing.alerts).await?;
            Ok((firing, alerts))
        };
        let (window, largest) = ahead_windows(at);
        let ahead = AheadFilter { window, largest, limit: 1, next: NEXT_ROWS, watch };
        // The queries run on separate connections, so the page takes as long as the slowest query.
        let ((supply, _), ahead, (firing, alerts), changes, credit, status, polls) = tokio::try_join!(
            supply,
            deps.app.store.largest_ahead(ahead),
            firing,
            deps.app.store.changes(ChangeFilter { limit: CHANGE_ROWS, ..ChangeFilter::default() }),
            deps.app.store.credit(),
            status_view(deps),
            deps.app.store.past_polls(past_polls::MARKS),
        )?;
        let held = if status.removals_held > 0 { deps.app.store.held_tokens(HELD_ROWS).await? } else { Vec::new() };
        Ok(Self { at, pulse, supply, ahead, firing, alerts, changes, credit, status, held, polls })
    }
}

pub(in crate::http) async fn overview(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>) -> PageResult {
    let reads = deps.overview.get(&deps).await?;
    let parts = OverviewParts {
        now: reads.at,
        status: reads.status.clone(),
        supply: &reads.supply,
        stale_price: deps.app.live.load().config.source.stale_price.delta(),
        ahead: &reads.ahead,
        firing: &reads.firing,
        alerts: reads.alerts.clone(),
        changes: &reads.changes,
        credit: &reads.credit,
        held: &reads.held,
        polls: &reads.polls,
        cap: deps.app.live.load().config.budget.monthly_credits,
    };
    Ok(Html(page(parts, PageFrame::of(Section::Overview, reads.at).for_visitor(&visitor))))
}

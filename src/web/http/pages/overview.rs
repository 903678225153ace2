//! The overview page.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::response::Html;
use chrono::TimeDelta;
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::http::access::Visitor;
use crate::http::error::PageResult;
use crate::http::{HttpDeps, api::lists::alert_views, status::status_view};
use crate::ui::overview::{
    AHEAD_DAYS, AHEAD_ROWS, ALERT_ROWS, CHANGE_ROWS, HELD_ROWS, NEXT_ROWS, OverviewParts, WEEKS_OF, page, supply_windows,
};
use crate::ui::page::{PageFrame, Section};
use chart::{past_polls, timeline::Measure};
use daemon::view::{AlertView, StatusView};
use model::{
    Ahead, AheadFilter, ChangeFilter, ChangeRow, CreditState, FiringAlerts, PastPolls, Pulse, ReferencePrice, SumWindow,
    SupplyTotals, Timestamp, Token, TokenId, TokenSupply,
};
use store::StoreError;

/// `?by=share`. Invalid values mean the default, so that old links still work.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct OverviewQuery {
    by: String,
}

/// The data of the overview at one time.
#[derive(Debug)]
struct OverviewData {
    at: Timestamp,
    pulse: Pulse,
    measure: Measure,
    supply: SupplyTotals,
    ahead: Ahead,
    weeks: HashMap<TokenId, TokenSupply>,
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
    async fn get(&self, deps: &HttpDeps, measure: Measure) -> Result<Arc<OverviewData>, StoreError> {
        let (now, pulse) = (deps.app.clock.now(), deps.app.store.pulse().await?);
        let mut last = self.0.lock().await;
        let is_fresh =
            |reads: &&Arc<OverviewData>| reads.pulse == pulse && reads.measure == measure && (now - reads.at).abs() < MAX_AGE;
        if let Some(reads) = last.as_ref().filter(is_fresh) {
            return Ok(reads.clone());
        }
        let reads = Arc::new(OverviewData::load(deps, measure, now, pulse).await?);
        *last = Some(reads.clone());
        Ok(reads)
    }
}

impl OverviewData {
    async fn load(deps: &HttpDeps, measure: Measure, at: Timestamp, pulse: Pulse) -> Result<Self, StoreError> {
        let by_share = measure == Measure::Share;
        let live = deps.app.live.load_full();
        let (watch, stale_price) = (live.watch.clone(), live.config.source.stale_price.delta());
        let stale_before = ReferencePrice::stale_before(stale_price, at);
        let supply = deps.app.store.supply_totals(at, supply_windows(at), watch.clone(), stale_before);
        let firing = async {
            let firing = deps.app.store.firing_alerts(ALERT_ROWS).await?;
            let alerts = alert_views(deps, &firing.alerts).await?;
            Ok((firing, alerts))
        };
        // The queries run on separate connections, so the page takes as long as the slowest query.
        let ahead = async {
            let filter = AheadFilter { window: window(at), by_share, limit: AHEAD_ROWS, next: NEXT_ROWS, watch };
            let ahead = deps.app.store.largest_ahead(filter).await?;
            let tokens = ahead.rows.iter().take(WEEKS_OF).map(|row| row.token.id.clone()).collect();
            let weeks = deps.app.store.weeks_ahead(tokens, at).await?;
            Ok((ahead, weeks))
        };
        let ((supply, _), (ahead, weeks), (firing, alerts), changes, credit, status, polls) = tokio::try_join!(
            supply,
            ahead,
            firing,
            deps.app.store.changes(ChangeFilter { limit: CHANGE_ROWS, ..ChangeFilter::default() }),
            deps.app.store.credit(),
            status_view(deps),
            deps.app.store.past_polls(past_polls::MARKS),
        )?;
        let held = if status.removals_held > 0 { deps.app.store.held_tokens(HELD_ROWS).await? } else { Vec::new() };
        Ok(Self { at, pulse, measure, supply, ahead, weeks, firing, alerts, changes, credit, status, held, polls })
    }
}

/// Returns the time window of the totals.
fn window(now: Timestamp) -> SumWindow {
    SumWindow::of(now, TimeDelta::days(AHEAD_DAYS))
}

pub(in crate::http) async fn overview(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<OverviewQuery>,
) -> PageResult {
    let measure = Measure::parse(&query.by).unwrap_or_default();
    let reads = deps.overview.get(&deps, measure).await?;
    let parts = OverviewParts {
        now: reads.at,
        status: reads.status.clone(),
        supply: &reads.supply,
        stale_price: deps.app.live.load().config.source.stale_price.delta(),
        ahead: &reads.ahead,
        until: window(reads.at).until,
        measure,
        weeks: &reads.weeks,
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

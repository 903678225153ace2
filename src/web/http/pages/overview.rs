//! The overview page, of all watched tokens or of a group.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Html;
use chrono::TimeDelta;
use tokio::sync::Mutex;

use crate::http::access::Visitor;
use crate::http::error::PageResult;
use crate::http::group::SelectedGroups;
use crate::http::parameters::GROUP;
use crate::http::query::ListQuery;
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
    /// The selected groups.
    groups: Vec<String>,
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

/// The latest data of each selection of groups, because all open overviews reload at once after an update. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OverviewCache(Arc<Mutex<Vec<Arc<OverviewData>>>>);

/// The maximum number of selections with cached data.
const MAX_CACHED: usize = 16;

/// The maximum age of cached data. New data in the database invalidates it earlier.
const MAX_AGE: TimeDelta = TimeDelta::seconds(5);

impl OverviewCache {
    /// Returns the cached data if it is current, else loads it. Concurrent callers wait for one load.
    async fn get(&self, deps: &HttpDeps, groups: &SelectedGroups) -> Result<Arc<OverviewData>, StoreError> {
        let (now, pulse) = (deps.app.clock.now(), deps.app.store.pulse().await?);
        let mut cached = self.0.lock().await;
        cached.retain(|reads| reads.pulse == pulse && (now - reads.at).abs() < MAX_AGE);
        if let Some(reads) = cached.iter().find(|reads| reads.groups == groups.names()) {
            return Ok(reads.clone());
        }
        let reads = Arc::new(OverviewData::load(deps, groups, now, pulse).await?);
        if cached.len() >= MAX_CACHED {
            cached.remove(0);
        }
        cached.push(reads.clone());
        Ok(reads)
    }
}

impl OverviewData {
    async fn load(deps: &HttpDeps, groups: &SelectedGroups, at: Timestamp, pulse: Pulse) -> Result<Self, StoreError> {
        let live = deps.app.live.load_full();
        let (watch, stale_price) = (groups.watch().clone(), live.config.source.stale_price.delta());
        let members = groups.members(deps).await?;
        let stale_before = ReferencePrice::stale_before(stale_price, at);
        let supply = deps.app.store.supply_totals(at, supply_windows(at), watch.clone(), stale_before);
        let firing = async {
            let firing = deps.app.store.firing_alerts(ALERT_ROWS, members.clone()).await?;
            let alerts = alert_views(deps, &firing.alerts).await?;
            Ok((firing, alerts))
        };
        let (window, largest) = ahead_windows(at);
        let tokens = members.as_ref().map(|members| members.tokens.clone());
        let changes = ChangeFilter { tokens, limit: CHANGE_ROWS, ..ChangeFilter::default() };
        let ahead = AheadFilter { window, largest, limit: 1, next: NEXT_ROWS, watch };
        // The queries run on separate connections, so the page takes as long as the slowest query.
        let ((supply, _), ahead, (firing, alerts), changes, credit, status, polls) = tokio::try_join!(
            supply,
            deps.app.store.largest_ahead(ahead),
            firing,
            deps.app.store.changes(changes),
            deps.app.store.credit(),
            status_view(deps),
            deps.app.store.past_polls(past_polls::MARKS),
        )?;
        let held = if status.removals_held > 0 { deps.app.store.held_tokens(HELD_ROWS).await? } else { Vec::new() };
        let groups = groups.names().to_vec();
        Ok(Self { at, pulse, groups, supply, ahead, firing, alerts, changes, credit, status, held, polls })
    }
}

pub(in crate::http) async fn overview(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> PageResult {
    let query = ListQuery::from_page(&[GROUP], &uri);
    let live = deps.app.live.load_full();
    let groups = SelectedGroups::of(&query, &live)?;
    let reads = deps.overview.get(&deps, &groups).await?;
    let mut ahead = reads.ahead.clone();
    let watch = visitor.watch(&live.watch);
    ahead.tokens_mut().for_each(|token| watch.place(token));
    let parts = OverviewParts {
        now: reads.at,
        status: reads.status.clone(),
        supply: &reads.supply,
        stale_price: live.config.source.stale_price.delta(),
        ahead: &ahead,
        firing: &reads.firing,
        alerts: reads.alerts.clone(),
        changes: &reads.changes,
        credit: &reads.credit,
        held: &reads.held,
        polls: &reads.polls,
        cap: live.config.budget.monthly_credits,
    };
    let picker = groups.picker(Section::Overview, &query, &live);
    Ok(Html(page(parts, PageFrame::of(Section::Overview, reads.at).for_visitor(&visitor).with_groups(picker))))
}

//! The overview page, of all watched tokens or of a group.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Html;
use chrono::TimeDelta;

use crate::http::access::Visitor;
use crate::http::error::PageResult;
use crate::http::group::SelectedGroups;
use crate::http::page_cache::{DataVersion, PageCache};
use crate::http::parameters::GROUP;
use crate::http::query::ListQuery;
use crate::http::{
    HttpDeps,
    api::lists::alert_views,
    status::{DatabaseTotals, status_view},
};
use crate::ui::overview::{ALERT_ROWS, CHANGE_ROWS, HELD_ROWS, NEXT_ROWS, OverviewParts, ahead_windows, page, supply_windows};
use crate::ui::page::{PageFrame, Section};
use chart::past_polls;
use daemon::live::LiveConfig;
use daemon::view::{AlertView, StatusView};
use model::{
    Ahead, AheadFilter, ChangeFilter, ChangeRow, CreditState, FiringAlerts, PastPolls, Pulse, ReferencePrice, SupplyTotals,
    Timestamp, Token,
};
use store::StoreError;

/// The data of the overview at one time.
#[derive(Debug)]
pub struct OverviewData {
    at: Timestamp,
    coming: Arc<OverviewSupply>,
    firing: FiringAlerts,
    alerts: Vec<AlertView>,
    changes: Vec<ChangeRow>,
    credit: CreditState,
    status: StatusView,
    held: Vec<Token>,
    polls: Vec<PastPolls>,
}

/// The part of the overview that sums over all tokens.
#[derive(Debug)]
pub struct OverviewSupply {
    supply: SupplyTotals,
    ahead: Ahead,
}

/// The data of each selection of groups, given by their names.
#[derive(Clone, Debug, Default)]
pub struct OverviewCache {
    whole: PageCache<Vec<String>, DataVersion, OverviewData>,
    coming: PageCache<Vec<String>, DataVersion, OverviewSupply>,
    totals: PageCache<(), Pulse, DatabaseTotals>,
}

/// The maximum age of the data. New data in the database replaces it earlier.
const MAX_AGE: TimeDelta = TimeDelta::seconds(5);

/// The maximum age of sums over days, and of numbers of rows: without new data, they hardly change in this time.
const MAX_SUM_AGE: TimeDelta = TimeDelta::minutes(1);

impl OverviewCache {
    async fn get(
        &self,
        deps: &HttpDeps,
        groups: &SelectedGroups,
        live: &Arc<LiveConfig>,
    ) -> Result<Arc<OverviewData>, StoreError> {
        let (at, pulse) = (deps.app.clock.now(), deps.app.store.pulse().await?);
        let key = |pulse| (groups.names().to_vec(), DataVersion { pulse, live: live.clone() });
        let supply = Pulse { supply: pulse.supply, ..Pulse::default() };
        let stale_before = ReferencePrice::stale_before(live.config.source.stale_price.delta(), at);
        let load = OverviewSupply::load(deps, groups, at, stale_before);
        let coming = self.coming.get(key(supply), at, MAX_SUM_AGE, load);
        let totals = self.totals.get(((), pulse), at, MAX_SUM_AGE, DatabaseTotals::load(deps));
        self.whole.get(key(pulse), at, MAX_AGE, OverviewData::load(deps, groups, at, (coming, totals))).await
    }
}

impl OverviewSupply {
    async fn load(deps: &HttpDeps, groups: &SelectedGroups, at: Timestamp, stale_before: Timestamp) -> Result<Self, StoreError> {
        let (window, largest) = ahead_windows(at);
        let ahead = AheadFilter { window, largest, limit: 1, next: NEXT_ROWS, watch: groups.watch().clone() };
        let ((supply, _), ahead) = tokio::try_join!(
            deps.app.store.supply_totals(at, supply_windows(at), groups.watch().clone(), stale_before),
            deps.app.store.largest_ahead(ahead),
        )?;
        Ok(Self { supply, ahead })
    }
}

impl OverviewData {
    async fn load(
        deps: &HttpDeps,
        groups: &SelectedGroups,
        at: Timestamp,
        (coming, totals): (
            impl Future<Output = Result<Arc<OverviewSupply>, StoreError>>,
            impl Future<Output = Result<Arc<DatabaseTotals>, StoreError>>,
        ),
    ) -> Result<Self, StoreError> {
        let members = groups.members(deps).await?;
        let firing = async {
            let firing = deps.app.store.firing_alerts(ALERT_ROWS, members.clone()).await?;
            let alerts = alert_views(deps, &firing.alerts).await?;
            Ok((firing, alerts))
        };
        let tokens = members.as_ref().map(|members| members.tokens.clone());
        let changes = ChangeFilter { tokens, limit: CHANGE_ROWS, ..ChangeFilter::default() };
        // The queries run on separate connections, so the page takes as long as the slowest query.
        let (coming, (firing, alerts), changes, credit, status, polls) = tokio::try_join!(
            coming,
            firing,
            deps.app.store.changes(changes),
            deps.app.store.credit(),
            status_view(deps, totals),
            deps.app.store.past_polls(past_polls::MARKS),
        )?;
        let held = if status.removals_held > 0 { deps.app.store.held_tokens(HELD_ROWS).await? } else { Vec::new() };
        Ok(Self { at, coming, firing, alerts, changes, credit, status, held, polls })
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
    let reads = deps.overview.get(&deps, &groups, &live).await?;
    let mut ahead = reads.coming.ahead.clone();
    let watch = visitor.watch(&live.watch);
    ahead.tokens_mut().for_each(|token| watch.place(token));
    let parts = OverviewParts {
        now: reads.at,
        status: reads.status.clone(),
        supply: &reads.coming.supply,
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

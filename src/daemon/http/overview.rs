//! The overview: asks the store, renders.

use axum::extract::{Extension, Query, State};
use axum::response::Html;
use chrono::TimeDelta;
use serde::Deserialize;

use super::access::Visitor;
use super::page::PageResult;
use super::{HttpDeps, lists::alert_views, pages::status_view};
use crate::ui::chart::timeline::Measure;
use crate::ui::overview::{AHEAD_DAYS, AHEAD_ROWS, ALERT_ROWS, CHANGE_ROWS, OverviewParts, page};
use crate::ui::page::{PageFrame, Section};
use model::{AheadFilter, ChangeFilter};

/// `?by=share`. What is no such word counts as the default: a link that is old or cut still leads somewhere.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OverviewQuery {
    by: String,
}

pub(super) async fn overview(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<OverviewQuery>,
) -> PageResult {
    let now = deps.clock.now();
    let measure = Measure::parse(&query.by).unwrap_or_default();
    let until = now.checked_add_signed(TimeDelta::days(AHEAD_DAYS)).unwrap_or(now);
    let by_share = measure == Measure::Share;
    let ahead = deps.store.largest_ahead(AheadFilter { from: now, until, by_share, limit: AHEAD_ROWS }).await?;
    let firing = deps.store.firing_alerts(ALERT_ROWS).await?;
    let alerts = alert_views(&deps, &firing.alerts).await?;
    let changes = deps.store.changes(ChangeFilter { limit: CHANGE_ROWS, ..ChangeFilter::default() }).await?;
    let credit = deps.store.credit().await?;
    let status = status_view(&deps).await?;
    let cap = deps.live.load().config.budget.monthly_credits;
    let parts = OverviewParts {
        now,
        status,
        ahead: &ahead,
        until,
        measure,
        firing: &firing,
        alerts,
        changes: &changes,
        credit: &credit,
        cap,
    };
    Ok(Html(page(parts, PageFrame::of(Section::Overview, now).seen_by(&visitor))))
}

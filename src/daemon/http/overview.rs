//! The overview: asks the store, renders.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::response::Html;
use chrono::TimeDelta;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::access::Visitor;
use super::page::PageResult;
use super::{HttpDeps, lists::alert_views, pages::status_view};
use crate::ui::chart::{past_polls, timeline::Measure};
use crate::ui::overview::{AHEAD_DAYS, AHEAD_ROWS, ALERT_ROWS, CHANGE_ROWS, HELD_ROWS, OverviewParts, WEEKS_OF, page};
use crate::ui::page::{PageFrame, Section};
use crate::ui::view::{AlertView, StatusView};
use model::{
    Ahead, AheadFilter, ChangeFilter, ChangeRow, CreditState, FiringAlerts, PastPolls, Pulse, SumWindow, Timestamp, Token,
    TokenId, WeeksAhead,
};
use store::StoreError;

/// `?by=share`. What is no such word counts as the default: a link that is old or cut still leads somewhere.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OverviewQuery {
    by: String,
}

/// What an overview shows, as it was read at one time.
#[derive(Debug)]
struct OverviewReads {
    at: Timestamp,
    pulse: Pulse,
    measure: Measure,
    ahead: Ahead,
    weeks: HashMap<TokenId, WeeksAhead>,
    firing: FiringAlerts,
    alerts: Vec<AlertView>,
    changes: Vec<ChangeRow>,
    credit: CreditState,
    status: StatusView,
    held: Vec<Token>,
    polls: Vec<PastPolls>,
}

/// What was read last, for everybody who asks at once: all open overviews ask as soon as something is new. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OverviewCache(Arc<Mutex<Option<Arc<OverviewReads>>>>);

/// How long what was read stands for what is, where nothing says that something is new.
const FRESH_FOR: TimeDelta = TimeDelta::seconds(5);

impl OverviewCache {
    /// What is, read now or a moment ago. Whoever comes while it is read waits for that.
    async fn read(&self, deps: &HttpDeps, measure: Measure) -> Result<Arc<OverviewReads>, StoreError> {
        let (now, pulse) = (deps.clock.now(), deps.store.pulse().await?);
        let mut last = self.0.lock().await;
        let is_fresh =
            |reads: &&Arc<OverviewReads>| reads.pulse == pulse && reads.measure == measure && (now - reads.at).abs() < FRESH_FOR;
        if let Some(reads) = last.as_ref().filter(is_fresh) {
            return Ok(reads.clone());
        }
        let reads = Arc::new(OverviewReads::now(deps, measure, now, pulse).await?);
        *last = Some(reads.clone());
        Ok(reads)
    }
}

impl OverviewReads {
    async fn now(deps: &HttpDeps, measure: Measure, at: Timestamp, pulse: Pulse) -> Result<Self, StoreError> {
        let by_share = measure == Measure::Share;
        let firing = async {
            let firing = deps.store.firing_alerts(ALERT_ROWS).await?;
            let alerts = alert_views(deps, &firing.alerts).await?;
            Ok((firing, alerts))
        };
        // Each on a connection of its own: whoever waits for the page waits for the longest of them alone.
        let ahead = async {
            let ahead = deps.store.largest_ahead(AheadFilter { window: window(at), by_share, limit: AHEAD_ROWS }).await?;
            let tokens = ahead.rows.iter().take(WEEKS_OF).map(|row| row.token.id.clone()).collect();
            let weeks = deps.store.weeks_ahead(tokens, at).await?;
            Ok((ahead, weeks))
        };
        let ((ahead, weeks), (firing, alerts), changes, credit, status, polls) = tokio::try_join!(
            ahead,
            firing,
            deps.store.changes(ChangeFilter { limit: CHANGE_ROWS, ..ChangeFilter::default() }),
            deps.store.credit(),
            status_view(deps),
            deps.store.past_polls(past_polls::MARKS),
        )?;
        let held = if status.removals_held > 0 { deps.store.held_tokens(HELD_ROWS).await? } else { Vec::new() };
        Ok(Self { at, pulse, measure, ahead, weeks, firing, alerts, changes, credit, status, held, polls })
    }
}

/// The days ahead that are summed.
fn window(now: Timestamp) -> SumWindow {
    SumWindow::of(now, TimeDelta::days(AHEAD_DAYS))
}

pub(super) async fn overview(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<OverviewQuery>,
) -> PageResult {
    let measure = Measure::parse(&query.by).unwrap_or_default();
    let reads = deps.overview.read(&deps, measure).await?;
    let parts = OverviewParts {
        now: reads.at,
        status: reads.status.clone(),
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
        cap: deps.live.load().config.budget.monthly_credits,
    };
    Ok(Html(page(parts, PageFrame::of(Section::Overview, reads.at).seen_by(&visitor))))
}

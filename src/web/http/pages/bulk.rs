//! Bulk actions: acknowledges or silences the alerts that are selected in the list, after a preview. Each alert gets its own log line.

use std::collections::BTreeSet;

use axum::extract::{Extension, State};
use axum::response::Response;
use serde::Serialize;

use super::alerts::matchers_of;
use super::silences::DURATIONS;
use super::{ActionResult, RequestVisitor, render_page, static_frame};
use crate::http::access::{ActDeps, Visitor, forms, forms::FormFields, login::redirect};
use crate::http::{HttpDeps, api::lists};
use crate::ui::page::Section;
use daemon::view::AlertView;
use model::{
    AckResult, Alert, AlertFilter, AlertId, AlertState, Matcher, MatcherSets, Silence, SilencePreview, SilenceRequest, Timestamp,
    checked_ack_texts, config::Span,
};
use store::StoreError;

/// The maximum number of alerts in one action. It is larger than a page of the list.
const MAX_SELECTED: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum BulkAction {
    Acknowledge,
    Silence,
}

/// The form fields, as typed.
#[derive(Clone, Debug, Default, Serialize)]
struct BulkDraft {
    author: String,
    comment: String,
    duration: String,
}

struct Selection {
    /// Pending and firing alerts.
    open: Vec<Alert>,
    /// The number of selected alerts that have ended or were deleted.
    over: usize,
    /// The path of the list, with its filters.
    back: String,
}

#[derive(Serialize)]
struct BulkPage {
    now: Timestamp,
    act: BulkAction,
    alerts: Vec<AlertView>,
    over: usize,
    draft: BulkDraft,
    durations: Vec<(&'static str, &'static str)>,
    /// The matchers of each silence that would be created.
    silences: Vec<Vec<String>>,
    sentence: String,
    hides: Option<SilencePreview>,
    problem: Option<String>,
    back: String,
}

impl Selection {
    async fn load(deps: &HttpDeps, fields: &FormFields) -> Result<Self, StoreError> {
        let ids: BTreeSet<AlertId> = fields.all("alert").map(AlertId::from).take(MAX_SELECTED).collect();
        let count = ids.len();
        let open = match count {
            0 => Vec::new(),
            _ => {
                let states = vec![AlertState::Pending, AlertState::Firing];
                let filter = AlertFilter { ids: ids.into_iter().collect(), states, limit: u32::MAX, ..AlertFilter::default() };
                deps.app.store.alerts(filter).await?
            }
        };
        let requested = forms::local_path(fields.text("back"));
        let back = if requested == "/alerts" || requested.starts_with("/alerts?") { requested } else { "/alerts" };
        Ok(Self { over: count.saturating_sub(open.len()), open, back: back.to_owned() })
    }

    /// Returns the matchers of the silences that suppress the alerts and similar ones, without duplicates.
    fn matchers(&self) -> Vec<Vec<Matcher>> {
        let mut sets: Vec<Vec<Matcher>> = Vec::new();
        for matchers in self.open.iter().map(matchers_of).filter(|matchers| !matchers.is_empty()) {
            if !sets.contains(&matchers) {
                sets.push(matchers);
            }
        }
        sets
    }

    /// Redirects to the list, which shows the result.
    fn redirect(&self, done: &str) -> Response {
        let separator = if self.back.contains('?') { '&' } else { '?' };
        redirect(&format!("{}{separator}done={done}", self.back))
    }
}

impl BulkDraft {
    fn of(fields: &FormFields) -> Self {
        let text = |name: &str| fields.text(name).to_owned();
        Self { author: text("author"), comment: text("comment"), duration: text("duration") }
    }

    /// Builds one silence per set of matchers.
    fn silences(&self, sets: Vec<Vec<Matcher>>, now: Timestamp) -> Result<Vec<Silence>, String> {
        let span: Span = self.duration.parse().map_err(|error| format!("the duration: {error}"))?;
        let ends_at = now.checked_add_signed(span.delta()).ok_or("the duration is too long")?;
        let (author, comment) = (&self.author, &self.comment);
        let request =
            |matchers| SilenceRequest { matchers, author: author.clone(), comment: comment.clone(), starts_at: None, ends_at };
        sets.into_iter().map(|matchers| request(matchers).into_silence(now).map_err(|error| error.to_string())).collect()
    }
}

/// `POST /alerts/chosen`: shows the effect of the action and the form to confirm it.
pub(super) async fn preview(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let selection = Selection::load(&deps, &fields).await?;
    let act = if fields.text("act") == "silence" { BulkAction::Silence } else { BulkAction::Acknowledge };
    if selection.open.is_empty() {
        return Ok(selection.redirect(if selection.over > 0 { "over-all" } else { "none-chosen" }));
    }
    let draft = BulkDraft { duration: "4h".to_owned(), ..BulkDraft::default() };
    page(&deps, &visitor, selection, act, draft, None).await
}

/// `POST /alerts/chosen/acknowledge`.
pub(super) async fn acknowledge(
    ActDeps(deps): ActDeps,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let selection = Selection::load(&deps, &fields).await?;
    let (author, comment) = match checked_ack_texts(fields.text("author"), fields.text("comment")) {
        Ok(valid) => valid,
        Err(error) => {
            let draft = BulkDraft::of(&fields);
            return page(&deps, &visitor, selection, BulkAction::Acknowledge, draft, Some(error.to_string())).await;
        }
    };
    let mut over = selection.over;
    for alert in &selection.open {
        let id = alert.id.to_string();
        match deps.app.store.acknowledge(id, author.clone(), comment.clone(), deps.app.clock.now()).await? {
            AckResult::Done(alert) => {
                tracing::info!(alert = alert.id.as_str(), author, "alert acknowledged");
            }
            AckResult::Unknown | AckResult::Several(_) => over += 1,
        }
    }
    Ok(selection.redirect(if over > 0 { "acknowledged-some" } else { "acknowledged-all" }))
}

/// `POST /alerts/chosen/silence`.
pub(super) async fn silence(
    ActDeps(deps): ActDeps,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let selection = Selection::load(&deps, &fields).await?;
    let (draft, now) = (BulkDraft::of(&fields), deps.app.clock.now());
    if selection.open.is_empty() {
        return Ok(selection.redirect("over-all"));
    }
    // Check all silences before the first one is stored.
    let silences = match draft.silences(selection.matchers(), now) {
        Ok(silences) => silences,
        Err(problem) => return page(&deps, &visitor, selection, BulkAction::Silence, draft, Some(problem)).await,
    };
    for silence in silences {
        let (id, author, matchers) = (silence.id.clone(), silence.author.clone(), silence.matchers_line());
        deps.app.store.put_silence(silence).await?;
        tracing::info!(silence = id, author, matchers, "silence created");
    }
    Ok(selection.redirect("silenced-all"))
}

async fn page(
    deps: &HttpDeps,
    visitor: &Visitor,
    selection: Selection,
    act: BulkAction,
    draft: BulkDraft,
    problem: Option<String>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let sets = if act == BulkAction::Silence { selection.matchers() } else { Vec::new() };
    let silences = sets.iter().map(|matchers| matchers.iter().map(ToString::to_string).collect()).collect();
    let hides = match act {
        BulkAction::Acknowledge => None,
        BulkAction::Silence => Some(deps.app.store.preview(MatcherSets::new(sets), now).await?),
    };
    let page = BulkPage {
        now,
        act,
        alerts: lists::alert_views(deps, &selection.open).await?,
        over: selection.over,
        draft,
        durations: DURATIONS.to_vec(),
        silences,
        sentence: hides.as_ref().map(SilencePreview::sentence).unwrap_or_default(),
        hides,
        problem,
        back: selection.back,
    };
    Ok(render_page("chosen.html", &static_frame(Section::Alerts, visitor, now, ""), &page))
}

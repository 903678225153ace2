//! Several alerts at once: those that were chosen in the list, what acknowledging or silencing them would do, and doing it. Each is
//! done as it is done alone, and told in the log by itself.

use std::collections::BTreeSet;

use axum::extract::{Extension, State};
use axum::response::Response;
use serde::Serialize;

use super::alerts::matchers_of;
use super::silences::DURATIONS;
use super::{Asked, DeskResult, shown, still_frame};
use crate::http::access::{Visitor, forms, forms::FormFields, login::see};
use crate::http::{HttpDeps, lists};
use crate::ui::page::Section;
use crate::ui::view::AlertView;
use model::{
    AckResult, Alert, AlertFilter, AlertId, AlertState, Matcher, Silence, SilencePreview, SilenceRequest, Timestamp, ack_words,
    all_match, config::Span,
};
use store::StoreError;

/// Alerts that can be chosen at once: more than a page of the list has.
const MAX_CHOSEN: usize = 100;

/// What is to be done with those that were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ChosenAct {
    Acknowledge,
    Silence,
}

/// What somebody wrote into the form.
#[derive(Clone, Debug, Default, Serialize)]
struct ChosenDraft {
    author: String,
    comment: String,
    duration: String,
}

/// The alerts that were chosen.
struct Chosen {
    /// Those that are pending or fire.
    open: Vec<Alert>,
    /// How many are over, or are not known any more.
    over: usize,
    /// The list that they were chosen in.
    back: String,
}

#[derive(Serialize)]
struct ChosenPage {
    now: Timestamp,
    act: ChosenAct,
    alerts: Vec<AlertView>,
    over: usize,
    draft: ChosenDraft,
    durations: Vec<(&'static str, &'static str)>,
    /// The matchers of each silence that would be made.
    silences: Vec<Vec<String>>,
    sentence: String,
    hides: Option<SilencePreview>,
    problem: Option<String>,
    back: String,
}

impl Chosen {
    async fn read(deps: &HttpDeps, fields: &FormFields) -> Result<Self, StoreError> {
        let ids: BTreeSet<AlertId> = fields.all("alert").map(AlertId::from).take(MAX_CHOSEN).collect();
        let count = ids.len();
        let open = match count {
            0 => Vec::new(),
            _ => {
                let states = vec![AlertState::Pending, AlertState::Firing];
                let filter = AlertFilter { ids: ids.into_iter().collect(), states, limit: u32::MAX, ..AlertFilter::default() };
                deps.store.alerts(filter).await?
            }
        };
        let wanted = forms::local_path(fields.text("back"));
        let back = if wanted == "/alerts" || wanted.starts_with("/alerts?") { wanted } else { "/alerts" };
        Ok(Self { over: count.saturating_sub(open.len()), open, back: back.to_owned() })
    }

    /// The silences that take each of them and what is alike: of equal ones one.
    fn matchers(&self) -> Vec<Vec<Matcher>> {
        let mut sets: Vec<Vec<Matcher>> = Vec::new();
        for matchers in self.open.iter().map(matchers_of).filter(|matchers| !matchers.is_empty()) {
            if !sets.contains(&matchers) {
                sets.push(matchers);
            }
        }
        sets
    }

    /// Back to the list, which says what was done.
    fn back(&self, done: &str) -> Response {
        let joint = if self.back.contains('?') { '&' } else { '?' };
        see(&format!("{}{joint}done={done}", self.back))
    }
}

impl ChosenDraft {
    fn of(fields: &FormFields) -> Self {
        let text = |name: &str| fields.text(name).to_owned();
        Self { author: text("author"), comment: text("comment"), duration: text("duration") }
    }

    /// The silences that are asked for, or why they cannot be.
    fn silences(&self, sets: Vec<Vec<Matcher>>, now: Timestamp) -> Result<Vec<Silence>, String> {
        let span: Span = self.duration.parse().map_err(|error| format!("the duration: {error}"))?;
        let ends_at = now.checked_add_signed(span.delta()).ok_or("the duration is too long")?;
        let (author, comment) = (&self.author, &self.comment);
        let request =
            |matchers| SilenceRequest { matchers, author: author.clone(), comment: comment.clone(), starts_at: None, ends_at };
        sets.into_iter().map(|matchers| request(matchers).grant(now).map_err(|error| error.to_string())).collect()
    }
}

/// `POST /alerts/chosen`: what would be done with those that were chosen, and the form to do it.
pub(super) async fn preview(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let chosen = Chosen::read(&deps, &fields).await?;
    let act = if fields.text("act") == "silence" { ChosenAct::Silence } else { ChosenAct::Acknowledge };
    if chosen.open.is_empty() {
        return Ok(chosen.back(if chosen.over > 0 { "over-all" } else { "none-chosen" }));
    }
    let draft = ChosenDraft { duration: "4h".to_owned(), ..ChosenDraft::default() };
    page(&deps, &visitor, chosen, act, draft, None).await
}

/// `POST /alerts/chosen/acknowledge`.
pub(super) async fn acknowledge(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let chosen = Chosen::read(&deps, &fields).await?;
    let (author, comment) = match ack_words(fields.text("author"), fields.text("comment")) {
        Ok(words) => words,
        Err(error) => {
            let draft = ChosenDraft::of(&fields);
            return page(&deps, &visitor, chosen, ChosenAct::Acknowledge, draft, Some(error.to_string())).await;
        }
    };
    let mut over = chosen.over;
    for alert in &chosen.open {
        let id = alert.id.to_string();
        match deps.store.acknowledge(id, author.clone(), comment.clone(), deps.clock.now()).await? {
            AckResult::Done(alert) => {
                tracing::info!(alert = alert.id.as_str(), author, "an alert was acknowledged on a page");
            }
            AckResult::Unknown | AckResult::Several(_) => over += 1,
        }
    }
    Ok(chosen.back(if over > 0 { "acknowledged-some" } else { "acknowledged-all" }))
}

/// `POST /alerts/chosen/silence`.
pub(super) async fn silence(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let chosen = Chosen::read(&deps, &fields).await?;
    let (draft, now) = (ChosenDraft::of(&fields), deps.clock.now());
    if chosen.open.is_empty() {
        return Ok(chosen.back("over-all"));
    }
    // All of them can be made before one is.
    let silences = match draft.silences(chosen.matchers(), now) {
        Ok(silences) => silences,
        Err(problem) => return page(&deps, &visitor, chosen, ChosenAct::Silence, draft, Some(problem)).await,
    };
    for silence in silences {
        let (id, author, matchers) = (silence.id.clone(), silence.author.clone(), silence.matchers_line());
        deps.store.put_silence(silence).await?;
        tracing::info!(silence = id, author, matchers, "a silence was made on a page");
    }
    Ok(chosen.back("silenced-all"))
}

async fn page(
    deps: &HttpDeps,
    visitor: &Visitor,
    chosen: Chosen,
    act: ChosenAct,
    draft: ChosenDraft,
    problem: Option<String>,
) -> DeskResult {
    let now = deps.clock.now();
    let sets = if act == ChosenAct::Silence { chosen.matchers() } else { Vec::new() };
    let silences = sets.iter().map(|matchers| matchers.iter().map(ToString::to_string).collect()).collect();
    let hides = match act {
        ChosenAct::Acknowledge => None,
        ChosenAct::Silence => {
            let hides = move |labels: &model::Labels| sets.iter().any(|matchers| all_match(matchers, labels));
            Some(deps.store.preview(hides, now).await?)
        }
    };
    let page = ChosenPage {
        now,
        act,
        alerts: lists::alert_views(deps, &chosen.open).await?,
        over: chosen.over,
        draft,
        durations: DURATIONS.to_vec(),
        silences,
        sentence: hides.as_ref().map(SilencePreview::sentence).unwrap_or_default(),
        hides,
        problem,
        back: chosen.back,
    };
    Ok(shown("chosen.html", &still_frame(Section::Alerts, visitor, now, ""), &page))
}

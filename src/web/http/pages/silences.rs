//! The list of silences, with forms to preview, create, and expire one.

use axum::extract::{Extension, Path, Query, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::alerts::DoneQuery;
use super::{ActionResult, RequestVisitor, render_page, static_frame};
use crate::http::access::{ActDeps, Visitor, forms::FormFields, login::redirect};
use crate::http::request_limits::ReadDeps;
use crate::http::{HttpDeps, api::silences};
use crate::ui::page::Section;
use daemon::token_names::{FindTokenError, resolve_matchers};
use model::{
    Matcher, SilenceError, SilencePreview, SilenceRequest, SilenceState, SilenceView, Timestamp, config::Span, read_matchers,
};
use store::StoreError;

/// The maximum number of expired silences on the page.
const MAX_EXPIRED: usize = 20;
/// The choices for the duration of a silence: form value and label.
pub(super) const DURATIONS: [(&str, &str); 7] = [
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("1d", "1 day"),
    ("3d", "3 days"),
    ("7d", "1 week"),
    ("30d", "30 days"),
    ("90d", "90 days"),
];

/// The form fields of a new silence, as typed.
#[derive(Clone, Debug, Default, Serialize)]
struct SilenceDraft {
    /// One matcher per line.
    matchers: String,
    duration: String,
    author: String,
    comment: String,
}

impl SilenceDraft {
    fn of(fields: &FormFields) -> Self {
        let text = |name: &str| fields.text(name).to_owned();
        Self { matchers: text("matchers"), duration: text("duration"), author: text("author"), comment: text("comment") }
    }

    fn matchers(&self) -> Result<Vec<Matcher>, SilenceError> {
        let lines = self.matchers.lines().map(str::trim).filter(|line| !line.is_empty());
        let matchers = read_matchers(lines)?;
        match matchers.is_empty() {
            true => Err(SilenceError::NoMatchers),
            false => Ok(matchers),
        }
    }

    fn request(&self, matchers: Vec<Matcher>, now: Timestamp) -> Result<SilenceRequest, String> {
        let span: Span = self.duration.parse().map_err(|error| format!("the duration: {error}"))?;
        let ends_at = now.checked_add_signed(span.delta()).ok_or("the duration is too long")?;
        Ok(SilenceRequest { matchers, author: self.author.clone(), comment: self.comment.clone(), starts_at: None, ends_at })
    }
}

#[derive(Serialize)]
struct SilencesPage {
    now: Timestamp,
    open: Vec<SilenceRow>,
    over: Vec<SilenceRow>,
    draft: SilenceDraft,
    durations: Vec<(&'static str, &'static str)>,
    problem: Option<String>,
    hides: Option<SilencePreview>,
    sentence: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SilenceRow {
    #[serde(flatten)]
    view: SilenceView,
    /// The number of open alerts that the silence suppresses.
    hides: usize,
}

/// `GET /silences`. `?matcher=token="arbitrum"` fills in the form.
pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Query(DoneQuery { done }): Query<DoneQuery>,
    RawQuery(query): RawQuery,
) -> ActionResult {
    let query = query.unwrap_or_default();
    let given = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "matcher");
    let matchers = given.map(|(_, value)| value.into_owned()).take(32).collect::<Vec<_>>().join("\n");
    let draft = SilenceDraft { matchers, duration: "4h".to_owned(), ..SilenceDraft::default() };
    let has_matchers = !draft.matchers.is_empty();
    let (problem, hides) = match has_matchers {
        true => preview_draft(&deps, &draft).await?,
        false => (None, None),
    };
    page(&deps, &visitor, draft, problem, hides, &done).await
}

/// `POST /silences/preview`: the page with the alerts that the silence would suppress.
pub(super) async fn preview(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let draft = SilenceDraft::of(&fields);
    let (problem, hides) = preview_draft(&deps, &draft).await?;
    page(&deps, &visitor, draft, problem, hides, "").await
}

/// `POST /silences`.
pub(super) async fn create(
    ActDeps(deps): ActDeps,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let (draft, now) = (SilenceDraft::of(&fields), deps.app.clock.now());
    let granted = resolved_matchers(&deps, &draft).await?.and_then(|matchers| {
        let request = draft.request(matchers, now)?;
        request.into_silence(now).map_err(|error| error.to_string())
    });
    match granted {
        Ok(silence) => {
            deps.app.store.put_silence(silence.clone()).await?;
            tracing::info!(silence = silence.id, author = silence.author, matchers = silence.matchers_line(), "silence created");
            Ok(redirect("/silences?done=silenced"))
        }
        Err(problem) => page(&deps, &visitor, draft, Some(problem), None, "").await,
    }
}

/// `POST /silences/{id}/expire`.
pub(super) async fn expire(ActDeps(deps): ActDeps, Path(id): Path<String>) -> ActionResult {
    let is_done = deps.app.store.expire_silence(id.clone(), deps.app.clock.now()).await?;
    if is_done {
        tracing::info!(silence = id, "silence expired");
        (deps.app.wake)();
    }
    Ok(redirect(if is_done { "/silences?done=expired" } else { "/silences?done=gone" }))
}

async fn preview_draft(
    deps: &HttpDeps,
    draft: &SilenceDraft,
) -> Result<(Option<String>, Option<SilencePreview>), crate::http::error::WebError> {
    Ok(match resolved_matchers(deps, draft).await? {
        Ok(matchers) => (None, Some(silences::preview_matchers(deps, &matchers).await?)),
        Err(problem) => (Some(problem), None),
    })
}

/// Returns the matchers of a draft, with slugs instead of tickers, or the problem to show in the form.
async fn resolved_matchers(deps: &HttpDeps, draft: &SilenceDraft) -> Result<Result<Vec<Matcher>, String>, StoreError> {
    let matchers = match draft.matchers() {
        Ok(matchers) => matchers,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match resolve_matchers(&deps.app.store, matchers).await {
        Ok(matchers) => Ok(Ok(matchers)),
        Err(FindTokenError::Name(error)) => Ok(Err(error.to_string())),
        Err(FindTokenError::Store(error)) => Err(error),
    }
}

async fn page(
    deps: &HttpDeps,
    visitor: &Visitor,
    draft: SilenceDraft,
    problem: Option<String>,
    hides: Option<SilencePreview>,
    done: &str,
) -> ActionResult {
    let now = deps.app.clock.now();
    let silences = deps.app.store.silences(None).await?;
    // Expired silences suppress nothing, so the labels are not needed.
    let open = match silences.iter().any(|silence| silence.ends_at > now) {
        true => deps.app.store.open_labels().await?,
        false => Vec::new(),
    };
    let row = |silence: model::Silence| {
        let hides = open.iter().filter(|labels| silence.suppresses(labels, now)).count();
        SilenceRow { hides, view: SilenceView::of(silence, now) }
    };
    let all: Vec<SilenceRow> = silences.into_iter().map(row).collect();
    let (over, open): (Vec<_>, Vec<_>) = all.into_iter().partition(|row| row.view.state == SilenceState::Expired);
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let page = SilencesPage {
        now,
        open,
        over: over.into_iter().take(MAX_EXPIRED).collect(),
        durations: DURATIONS.to_vec(),
        sentence: hides.as_ref().map(SilencePreview::sentence).unwrap_or_default(),
        draft,
        problem,
        hides,
    };
    let response: Response = render_page("silences.html", &static_frame(Section::Silences, visitor, now, done), &page);
    Ok((status, response).into_response())
}

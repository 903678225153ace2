//! The calendar page.

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Html;

use crate::http::HttpDeps;
use crate::http::access::Visitor;
use crate::http::error::{PageResult, WebError};
use crate::http::error_code::ErrorCode;
use crate::http::feeds::CALENDAR;
use crate::http::group::SelectedGroups;
use crate::http::names;
use crate::http::parameters::{GROUP, MIN_VALUE, MONTH, OFFSET, Parameter, TOKEN, UNLOCK_ORDER, UNLOCK_TYPE, VIEW};
use crate::http::query::ListQuery;
use crate::ui::month::{self, BANDS, FeedSubscription, MonthForm, MonthParts, PER_DAY, RATES, ShownMonth};
use crate::ui::page::{PageFrame, Section, href};
use daemon::live;
use model::{MonthFilter, TokenId, UnlockOrder};

/// The number of unlocks on a page of the list.
const ROWS: usize = 100;

const PARAMETERS: &[Parameter] = &[MONTH, VIEW, TOKEN, GROUP, MIN_VALUE, UNLOCK_TYPE, UNLOCK_ORDER, OFFSET];

/// `GET /calendar`. Accepts the slug or ticker of a token. Invalid months, views, and orders mean the default.
pub(super) async fn show(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>, uri: Uri) -> PageResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(PARAMETERS, &uri);
    let live = deps.app.live.load_full();
    let shown = ShownMonth::parse(query.value_or_empty(MONTH), now);
    let is_list = query.value_or_empty(VIEW) == "list";
    let form = form(&query);
    let token = names::token(&deps, &query).await?;
    let groups = SelectedGroups::of(&query, &live)?;
    let (has_cliffs, has_linear) = (form.kind != "linear", form.kind != "cliff");
    let if_shown = |is_shown: bool, number: usize| if is_shown { number } else { 0 };
    let filter = MonthFilter {
        days: shown.days(),
        linear_from: now,
        watch: live.watch.clone(),
        tokens: groups.narrow(&deps, token.iter().cloned().collect()).await?,
        min_value: min_value(&query),
        per_day: if_shown(has_cliffs && !is_list, PER_DAY),
        bands: if_shown(has_linear && !is_list, BANDS),
        order: UnlockOrder::parse(query.value_or_empty(UNLOCK_ORDER)).unwrap_or_default(),
        offset: usize::try_from(query.integer(OFFSET)?.unwrap_or(0)).unwrap_or(usize::MAX),
        rows: if_shown(has_cliffs && is_list, ROWS),
        rates: if_shown(has_linear && is_list, RATES),
    };
    let mut month = deps.app.store.unlock_month(filter.clone()).await?;
    let watch = visitor.watch(&live.watch);
    month.rows.iter_mut().for_each(|row| watch.place(&mut row.token));
    month.rates.iter_mut().for_each(|row| watch.place(&mut row.token));
    let parameters = PARAMETERS.iter().filter(|parameter| parameter.name != OFFSET.name);
    let parts = MonthParts {
        now,
        shown,
        filter: &filter,
        month: &month,
        is_list,
        subscription: subscription(&deps, &visitor, &form, &groups.names().join(","), token.as_ref()).await?,
        form,
        parameters: parameters.map(|parameter| (parameter.name, query.value_or_empty(*parameter).to_owned())).collect(),
    };
    let picker = groups.picker(Section::Calendar, &query, &live);
    Ok(Html(month::page(parts, PageFrame::of(Section::Calendar, now).for_visitor(&visitor).with_groups(picker))))
}

fn form(query: &ListQuery) -> MonthForm {
    let text = |parameter| query.value_or_empty(parameter).to_owned();
    let min_value = if min_value(query).is_some() { text(MIN_VALUE) } else { String::new() };
    MonthForm { token: text(TOKEN), min_value, kind: text(UNLOCK_TYPE) }
}

fn min_value(query: &ListQuery) -> Option<f64> {
    query.number(MIN_VALUE).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Returns the address of the feed with the filters of the page. Only a logged-in user sees the secret one.
async fn subscription(
    deps: &HttpDeps,
    visitor: &Visitor,
    form: &MonthForm,
    group: &str,
    token: Option<&TokenId>,
) -> Result<FeedSubscription, WebError> {
    let token = token.map_or("", TokenId::as_str);
    let linear = if form.kind == "cliff" { "false" } else { "" };
    let filters = [("token", token), ("group", group), ("min_value", &form.min_value), ("linear", linear)];
    let base = deps.app.external_url.as_ref().map(|url| url.as_str().trim_end_matches('/')).unwrap_or_default();
    let plain =
        || FeedSubscription { url: href(&format!("{base}/{CALENDAR}"), &filters), is_secret: false, is_open: !visitor.has_login };
    if !visitor.is_logged_in() {
        return Ok(plain());
    }
    let secret = live::resolve(deps.app.bearer.clone()).await.map_err(|error| {
        tracing::error!(%error, "cannot read the token of [http]");
        WebError::new(ErrorCode::InternalError, "cannot read the token; see the log")
    })?;
    let Some(tag) = secret.as_ref().and_then(|token| notify::feed_link::tag(token.expose())) else { return Ok(plain()) };
    let path = format!("{base}/{}/{tag}/{CALENDAR}", notify::feed_link::PATH);
    Ok(FeedSubscription { url: href(&path, &filters), is_secret: true, is_open: false })
}

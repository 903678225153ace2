//! The list of changes.

use serde::Serialize;

use super::change::{ChangeItem, items};
use super::page::{Choice, PageFrame, Pager, href, render};
use super::range::{RangeQuery, RangeView};
use model::{ChangeFilter, ChangeKind, ChangeRow, TokenId, phrase};

const PATH: &str = "/changes";

#[derive(Debug, Serialize)]
struct ChangesPage {
    changes: Vec<ChangeItem>,
    pager: Pager,
    /// The token filter; empty for all tokens.
    token: String,
    /// The kind filter; empty for all kinds.
    kind: String,
    kinds: Vec<Choice>,
    range: RangeView,
}

/// Renders the page. `changes` are the rows of this page, out of `total` that match the filter. `token` is the token of the form.
pub fn page(
    changes: &[ChangeRow],
    filter: &ChangeFilter,
    token: Option<&TokenId>,
    range: &RangeQuery,
    total: u64,
    frame: &PageFrame,
) -> String {
    let token = token.map(|token| token.as_str().to_owned()).unwrap_or_default();
    let kind = filter.kinds.first().map(|kind| kind.as_str()).unwrap_or_default();
    let [since, from, to] = range.parameters();
    let kept = [("token", token.as_str()), ("kind", kind), since, from, to];
    let choice = |kind: Option<ChangeKind>| {
        let word = kind.map_or("", ChangeKind::as_str);
        let name = if word.is_empty() { "all".to_owned() } else { phrase::words(word) };
        Choice::new(
            name,
            href(PATH, &[("token", &token), ("kind", word), since, from, to]),
            filter.kinds.first().copied() == kind,
        )
    };
    let page = ChangesPage {
        changes: items(changes),
        pager: Pager::new(PATH, &kept, filter.offset.into(), filter.limit.into(), changes.len(), total),
        kinds: std::iter::once(None).chain(ChangeKind::ALL.into_iter().map(Some)).map(choice).collect(),
        range: range.view(|other| {
            let [since, from, to] = other.parameters();
            href(PATH, &[("token", token.as_str()), ("kind", kind), since, from, to])
        }),
        kind: kind.to_owned(),
        token: token.clone(),
    };
    render("changes.html", &PageFrame { refreshes: true, ..frame.clone() }, &page)
}

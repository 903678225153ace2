//! The list of changes: of all tokens or of one, of every kind or of one. Pure.

use serde::Serialize;

use super::change::{ChangeItem, items, kind_words};
use super::page::{Choice, PageFrame, Pager, href, render};
use super::range::{RangeView, RangeWords};
use model::{ChangeFilter, ChangeKind, ChangeRow};

const PATH: &str = "/changes";

#[derive(Debug, Serialize)]
struct ChangesPage {
    changes: Vec<ChangeItem>,
    pager: Pager,
    /// The token that is asked for, as it was written; empty for all.
    token: String,
    /// The kind that is asked for; empty for all.
    kind: String,
    kinds: Vec<Choice>,
    range: RangeView,
}

/// The page as HTML: `changes` are those of `filter`, of `total` that there are.
pub fn page(changes: &[ChangeRow], filter: &ChangeFilter, range: &RangeWords, total: u64, frame: &PageFrame) -> String {
    let token = filter.token.as_ref().map(|token| token.as_str().to_owned()).unwrap_or_default();
    let kind = filter.kind.map(ChangeKind::as_str).unwrap_or_default();
    let [since, from, to] = range.parameters();
    let kept = [("token", token.as_str()), ("kind", kind), since, from, to];
    let choice = |of: Option<ChangeKind>| {
        let word = of.map(ChangeKind::as_str).unwrap_or_default();
        let name = of.map_or_else(|| "all".to_owned(), kind_words);
        Choice::new(name, href(PATH, &[("token", &token), ("kind", word), since, from, to]), filter.kind == of)
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

//! The frame of every page, and what lists on pages share: where one is, filters, parts of a long list.
//!
//! A page is a template that extends `base.html`, a [`PageFrame`], and a value of its own that the template sees as `page`. [`render`]
//! puts the three together.

use minijinja::{Value, context, value::Serde};
use serde::Serialize;
use url::form_urlencoded;

use super::template::PAGES;
use model::Timestamp;

/// Rows of a list on a page.
pub const PAGE_ROWS: u32 = 50;

/// The pages that the navigation leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Overview,
    Tokens,
    Alerts,
    Changes,
    Rules,
    Deliveries,
    Silences,
    Digests,
}

impl Section {
    /// Those that there are, in the order of the navigation.
    pub const ALL: [Section; 8] = [
        Section::Overview,
        Section::Tokens,
        Section::Alerts,
        Section::Changes,
        Section::Rules,
        Section::Deliveries,
        Section::Silences,
        Section::Digests,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Tokens => "Tokens",
            Section::Alerts => "Alerts",
            Section::Changes => "Changes",
            Section::Rules => "Rules",
            Section::Deliveries => "Deliveries",
            Section::Silences => "Silences",
            Section::Digests => "Digests",
        }
    }

    /// The key that leads there, after `g`.
    pub fn key(self) -> &'static str {
        match self {
            Section::Overview => "o",
            Section::Tokens => "t",
            Section::Alerts => "a",
            Section::Changes => "c",
            Section::Rules => "r",
            Section::Deliveries => "d",
            Section::Silences => "s",
            Section::Digests => "i",
        }
    }

    pub fn href(self) -> &'static str {
        match self {
            Section::Overview => "/",
            Section::Tokens => "/tokens",
            Section::Alerts => "/alerts",
            Section::Changes => "/changes",
            Section::Rules => "/rules",
            Section::Deliveries => "/deliveries",
            Section::Silences => "/silences",
            Section::Digests => "/digests",
        }
    }
}

/// What stands around every page.
#[derive(Clone, Debug, Serialize)]
pub struct PageFrame {
    pub version: &'static str,
    /// As of when the page is; none where it shows nothing that changes.
    pub at: Option<Timestamp>,
    /// Empty before one has signed in.
    pub nav: Vec<NavItem>,
    /// What proves that a form is ours; none where the reader has no forms.
    pub csrf: Option<String>,
    /// Whether the reader has logged in, and so may change something.
    pub signed_in: bool,
    /// Where a reader who has not logged in does so, to come back here; none where that is not known of the reader.
    pub login: Option<String>,
    /// What was just done.
    pub flash: Option<Flash>,
    /// Whether the page hears of news.
    pub hears: bool,
    /// Whether a reader without scripts gets a fresh page each minute: not where one writes.
    pub refreshes: bool,
}

/// An entry of the navigation.
#[derive(Clone, Debug, Serialize)]
pub struct NavItem {
    pub name: &'static str,
    pub href: &'static str,
    /// See [`Section::key`].
    pub key: &'static str,
    pub is_current: bool,
    /// What there waits for somebody, such as dead letters; zero shows nothing.
    pub count: u64,
}

/// What was just done, or could not be.
#[derive(Clone, Debug, Serialize)]
pub struct Flash {
    /// `good`, `info`, `warn` or `bad`.
    pub tone: &'static str,
    pub text: String,
}

impl PageFrame {
    /// The frame of a page of that section, as of `at`, which hears of news.
    pub fn of(section: Section, at: Timestamp) -> Self {
        Self { at: Some(at), hears: true, ..Self::still(Some(section)) }
    }

    /// The frame of a page that hears of nothing: an error, a form.
    pub fn still(section: Option<Section>) -> Self {
        let item =
            |of: Section| NavItem { name: of.name(), href: of.href(), key: of.key(), is_current: section == Some(of), count: 0 };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            at: None,
            nav: Section::ALL.into_iter().map(item).collect(),
            csrf: None,
            signed_in: false,
            login: None,
            flash: None,
            hears: false,
            refreshes: false,
        }
    }

    /// With a number beside an entry of the navigation.
    #[must_use]
    pub fn counting(mut self, section: Section, count: u64) -> Self {
        if let Some(item) = self.nav.iter_mut().find(|item| item.href == section.href()) {
            item.count = count;
        }
        self
    }
}

/// The page as HTML. Should its template ever fail, the page says so instead.
pub fn render(template: &str, frame: &PageFrame, page: &impl Serialize) -> String {
    render_value(template, Value::from(Serde(frame)), Value::from(Serde(page)))
}

fn render_value(template: &str, frame: Value, page: Value) -> String {
    let rendered = PAGES.get_template(template).and_then(|found| found.render(context! { frame, page }));
    rendered.unwrap_or_else(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, template, "a page cannot be rendered");
        "<!doctype html><title>Cliffwatch</title><p>This page cannot be rendered; the log says why.".to_owned()
    })
}

/// A page that says why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorPage {
    pub title: String,
    pub text: String,
    /// What may be searched among the tokens instead; none for no search box.
    pub search: Option<String>,
}

impl ErrorPage {
    pub fn render(&self) -> String {
        render("error.html", &PageFrame::still(None), self)
    }
}

/// One of several views of the same, or a filter: a link that may be the current one.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    pub name: String,
    pub href: String,
    pub is_current: bool,
    /// How many there are, where that is known.
    pub count: Option<u64>,
}

impl Choice {
    pub fn new(name: impl Into<String>, href: String, is_current: bool) -> Self {
        Self { name: name.into(), href, is_current, count: None }
    }
}

/// An address with its query: parameters without a value are left out.
pub fn href(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Which part of a long list is shown, with the addresses of its neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pager {
    /// Number of the first row that is shown, from one.
    pub first: u64,
    pub last: u64,
    pub total: u64,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Pager {
    /// The pager of a list of `total` rows of which `shown` stand on the page, from row `offset` on, `rows` a page. `kept` are the
    /// other parameters of the address.
    pub fn new(path: &str, kept: &[(&str, &str)], offset: u64, rows: u64, shown: usize, total: u64) -> Self {
        let shown = u64::try_from(shown).unwrap_or(u64::MAX);
        let end = offset.saturating_add(shown);
        let to = |offset: u64| {
            let offset = if offset == 0 { String::new() } else { offset.to_string() };
            let mut parameters = kept.to_vec();
            parameters.push(("offset", &offset));
            href(path, &parameters)
        };
        Self {
            first: if shown == 0 { 0 } else { offset + 1 },
            last: end,
            total,
            previous: (offset > 0).then(|| to(offset.saturating_sub(rows))),
            next: (end < total && shown > 0).then(|| to(end)),
        }
    }
}

#[cfg(test)]
mod tests;

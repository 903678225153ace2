//! The frame of every page, and the elements that lists share: filters and pagination.
//!
//! [`render`] combines a template that extends `base.html`, a [`PageFrame`], and the value that the template reads as `page`.

use minijinja::{Value, context, value::Serde};
use serde::Serialize;
use url::form_urlencoded;

use super::template::PAGES;
use model::Timestamp;

/// The number of rows on a page of a list.
pub const PAGE_ROWS: u32 = 50;

/// A page in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Overview,
    Calendar,
    Tokens,
    Alerts,
    Changes,
    Rules,
    Deliveries,
    Silences,
    Digests,
    Audit,
}

impl Section {
    /// All sections, in the order of the navigation.
    pub const ALL: [Section; 10] = [
        Section::Overview,
        Section::Calendar,
        Section::Tokens,
        Section::Alerts,
        Section::Changes,
        Section::Rules,
        Section::Deliveries,
        Section::Silences,
        Section::Digests,
        Section::Audit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Calendar => "Calendar",
            Section::Tokens => "Tokens",
            Section::Alerts => "Alerts",
            Section::Changes => "Changes",
            Section::Rules => "Rules",
            Section::Deliveries => "Deliveries",
            Section::Silences => "Silences",
            Section::Digests => "Digests",
            Section::Audit => "Audit",
        }
    }

    /// The keyboard shortcut after `g`.
    pub fn key(self) -> &'static str {
        match self {
            Section::Overview => "o",
            Section::Calendar => "l",
            Section::Tokens => "t",
            Section::Alerts => "a",
            Section::Changes => "c",
            Section::Rules => "r",
            Section::Deliveries => "d",
            Section::Silences => "s",
            Section::Digests => "i",
            Section::Audit => "u",
        }
    }

    pub fn href(self) -> &'static str {
        match self {
            Section::Overview => "/",
            Section::Calendar => "/calendar",
            Section::Tokens => "/tokens",
            Section::Alerts => "/alerts",
            Section::Changes => "/changes",
            Section::Rules => "/rules",
            Section::Deliveries => "/deliveries",
            Section::Silences => "/silences",
            Section::Digests => "/digests",
            Section::Audit => "/audit",
        }
    }
}

/// The values of the layout that all pages share.
#[derive(Clone, Debug, Serialize)]
pub struct PageFrame {
    pub version: &'static str,
    /// The time of the data. `None` if the page shows no changing data.
    pub at: Option<Timestamp>,
    /// Empty if the reader must log in to see any page.
    pub nav: Vec<NavItem>,
    /// The CSRF token of the forms. `None` if the reader cannot post forms.
    pub csrf: Option<String>,
    /// Whether the reader is logged in and may change data.
    pub signed_in: bool,
    /// Whether the reader has a session to end.
    pub has_session: bool,
    /// The name of the reader. Empty without a login, and with the shared token.
    pub user: String,
    /// The login URL that returns to this page. `None` if the reader is logged in or login does not apply.
    pub login: Option<String>,
    /// The result of the last action.
    pub flash: Option<Flash>,
    /// The choice of a group. `None` on pages that do not depend on it, and if the config has no groups.
    pub groups: Option<GroupPicker>,
    /// Whether the page receives live updates.
    pub is_live: bool,
    /// Whether the page reloads every minute if scripts are disabled. `false` for pages with forms.
    pub refreshes: bool,
}

/// A link in the navigation.
#[derive(Clone, Debug, Serialize)]
pub struct NavItem {
    pub name: &'static str,
    pub href: &'static str,
    /// See [`Section::key`].
    pub key: &'static str,
    pub is_current: bool,
    /// The number of items that need attention, such as dead letters. Zero is not shown.
    pub count: u64,
}

/// The choice of a group to which a page is narrowed.
#[derive(Clone, Debug, Serialize)]
pub struct GroupPicker {
    /// The selected groups as text: `@portfolio`. `None` for all tokens.
    pub title: Option<String>,
    /// The path of the page.
    pub action: &'static str,
    /// The other query parameters of the page.
    pub others: Vec<(&'static str, String)>,
    /// The names of all groups.
    pub names: Vec<String>,
    /// The value of the selected name. Empty for all tokens.
    pub selected: String,
}

/// The result of an action.
#[derive(Clone, Debug, Serialize)]
pub struct Flash {
    /// `good`, `info`, `warn` or `bad`.
    pub severity: &'static str,
    pub text: String,
}

impl PageFrame {
    /// Returns the frame of a page with live updates.
    pub fn of(section: Section, at: Timestamp) -> Self {
        Self { at: Some(at), is_live: true, ..Self::still(Some(section)) }
    }

    /// Returns the frame of a page without live updates, such as an error or a form.
    pub fn still(section: Option<Section>) -> Self {
        let item =
            |of: Section| NavItem { name: of.name(), href: of.href(), key: of.key(), is_current: section == Some(of), count: 0 };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            at: None,
            nav: Section::ALL.into_iter().map(item).collect(),
            csrf: None,
            signed_in: false,
            has_session: false,
            user: String::new(),
            login: None,
            flash: None,
            groups: None,
            is_live: false,
            refreshes: false,
        }
    }

    /// Lets the reader narrow the page to a group.
    #[must_use]
    pub fn with_groups(self, picker: GroupPicker) -> Self {
        Self { groups: Some(picker).filter(|picker| !picker.names.is_empty()), ..self }
    }

    /// Sets the count next to a link of the navigation.
    #[must_use]
    pub fn with_count(mut self, section: Section, count: u64) -> Self {
        if let Some(item) = self.nav.iter_mut().find(|item| item.href == section.href()) {
            item.count = count;
        }
        self
    }
}

/// Renders a page. If the template fails, returns a page with an error message.
pub fn render(template: &str, frame: &PageFrame, page: &impl Serialize) -> String {
    render_value(template, Value::from(Serde(frame)), Value::from(Serde(page)))
}

fn render_value(template: &str, frame: Value, page: Value) -> String {
    let rendered = PAGES.get_template(template).and_then(|found| found.render(context! { frame, page }));
    rendered.unwrap_or_else(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, template, "cannot render a page");
        "<!doctype html><title>Cliffwatch</title><p>This page cannot be rendered. The log contains the reason.".to_owned()
    })
}

/// The page of an error response.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorPage {
    pub title: String,
    pub text: String,
    /// The text in the token search box. `None` hides the box.
    pub search: Option<String>,
}

impl ErrorPage {
    pub fn render(&self) -> String {
        render("error.html", &PageFrame::still(None), self)
    }
}

/// A link to a view or a filter.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    pub name: String,
    pub href: String,
    pub is_current: bool,
    /// The number of matching rows. `None` if unknown.
    pub count: Option<u64>,
}

impl Choice {
    pub fn new(name: impl Into<String>, href: String, is_current: bool) -> Self {
        Self { name: name.into(), href, is_current, count: None }
    }
}

/// Returns a path with its query. Omits parameters with an empty value.
pub fn href(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The position of a page in a list, with links to its neighbors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pager {
    /// The one-based number of the first row shown. Zero on an empty page.
    pub first: u64,
    pub last: u64,
    pub total: u64,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Pager {
    /// Returns the pager of a list of `total` rows. The page shows `shown` rows from `offset`; `rows` is the page size. `kept` are the
    /// other query parameters.
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
pub(crate) mod tests;

//! The groups of `[watch.groups]` to which a page or a list is narrowed, by the parameter `group`.
//!
//! A group selects the watched tokens that are in it. [`keep_group`] keeps the groups of a page in the address: each link and form on the
//! page leads to a page with the same groups, unless it names others.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::HttpDeps;
use super::error::WebError;
use super::error_code::ErrorCode;
use super::names;
use super::parameters::{AFTER, CHOSEN, GROUP, OFFSET};
use super::query::ListQuery;
use crate::ui::page::{GroupPicker, Section};
use chart::svg::escaped;
use daemon::live::LiveConfig;
use model::{GroupMembers, TokenId, Watch, phrase};
use store::StoreError;

/// Some groups of the config. Without any, all tokens are selected.
#[derive(Clone, Debug)]
pub(super) struct SelectedGroups {
    names: Vec<String>,
    /// The watch, narrowed to the groups.
    watch: Watch,
}

impl SelectedGroups {
    /// Reads the groups of a request.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if a group is not in the config.
    pub fn of(query: &ListQuery, live: &LiveConfig) -> Result<Self, WebError> {
        let names = names::groups(query, live)?;
        let patterns: Vec<String> = names.iter().map(|name| format!("@{name}")).collect();
        let unknown = |(_, problem, _)| WebError::new(ErrorCode::UnknownGroup, problem);
        let watch = if names.is_empty() { live.watch.clone() } else { live.watch.narrowed(&patterns).map_err(unknown)? };
        Ok(Self { names, watch })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the watched tokens of the groups, or all watched tokens without a group.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns the members of the groups. `None` without a group.
    pub async fn members(&self, deps: &HttpDeps) -> Result<Option<GroupMembers>, StoreError> {
        if self.names.is_empty() {
            return Ok(None);
        }
        let tokens = deps.app.store.token_ids(false).await?.into_iter().filter(|id| self.watch.covers(id)).collect();
        Ok(Some(GroupMembers { names: self.names.clone(), tokens }))
    }

    /// Returns which of `tokens` are in the groups; all members if `tokens` is empty. `None` if all tokens are selected.
    pub async fn narrow(&self, deps: &HttpDeps, tokens: Vec<TokenId>) -> Result<Option<Vec<TokenId>>, StoreError> {
        if tokens.is_empty() {
            return Ok(self.members(deps).await?.map(|members| members.tokens));
        }
        let is_member = |id: &TokenId| self.names.is_empty() || self.watch.covers(id);
        Ok(Some(tokens.into_iter().filter(is_member).collect()))
    }

    /// Returns the groups as text: `@portfolio`. `None` without a group.
    pub fn title(&self) -> Option<String> {
        let names: Vec<String> = self.names.iter().map(|name| format!("@{}", phrase::name(name))).collect();
        (!names.is_empty()).then(|| phrase::list(&names))
    }

    /// Returns the choice of a group on a page. Another group begins at the first page of a list.
    pub fn picker(&self, section: Section, query: &ListQuery, live: &LiveConfig) -> GroupPicker {
        let others = query.clone().with(GROUP, "").with(AFTER, "").with(CHOSEN, "").with(OFFSET, "");
        let mut names: Vec<String> = live.watch.groups().map(str::to_owned).collect();
        let selected = self.names.join(",");
        if self.names.len() > 1 {
            names.push(selected.clone());
        }
        GroupPicker { title: self.title(), action: section.href(), others: others.pairs(), names, selected }
    }
}

/// The size limit of a page.
const MAX_PAGE_BYTES: usize = 64 * 1024 * 1024;

/// Keeps the parameter `group` of a page in its links and forms, and in the address to which a form redirects.
pub(super) async fn keep_group(State(deps): State<HttpDeps>, request: Request, next: Next) -> Response {
    let query = ListQuery::from_page(&[GROUP], request.uri());
    let Some(group) = query.text(GROUP).map(str::to_owned) else { return next.run(request).await };
    if let Err(error) = SelectedGroups::of(&query, &deps.app.live.load()) {
        return error.into_response();
    }
    let mut response = next.run(request).await;
    if let Some(to) = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()) {
        if let Ok(kept) = HeaderValue::try_from(with_group(to, &group).as_ref()) {
            response.headers_mut().insert(header::LOCATION, kept);
        }
        return response;
    }
    let is_page = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if !is_page {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_PAGE_BYTES).await else {
        return WebError::new(ErrorCode::InternalError, "the page is too large").into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let html = String::from_utf8_lossy(&bytes);
    Response::from_parts(parts, Body::from(links_with_group(&html, &group)))
}

/// Adds the group to each link and each form of a page. `<`, `>`, and quotation marks in text are escaped, so each match is a tag.
fn links_with_group(html: &str, group: &str) -> String {
    let mut kept = String::with_capacity(html.len() + 1024);
    let mut rest = html;
    while let Some((text, tag_on)) = rest.find('<').and_then(|at| rest.split_at_checked(at)) {
        let (tag, after) = tag_on.split_at(tag_on.find('>').map_or(tag_on.len(), |end| end + 1));
        kept.push_str(text);
        let attribute = ADDRESSES.iter().find(|(start, _)| tag.starts_with(start)).map(|(_, attribute)| *attribute);
        match attribute.and_then(|attribute| Some((attribute, tag.split_once(attribute)?))) {
            // The query of the action is not sent with this method.
            Some(_) if tag.contains(" method=\"get\"") => {
                kept.push_str(tag);
                if !tag.contains(OWN_GROUP) {
                    kept.push_str(&format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", GROUP.name, escaped(group)));
                }
            }
            Some((attribute, (head, address_on))) => {
                let (address, tail) = address_on.split_at(address_on.find('"').unwrap_or(address_on.len()));
                kept.extend([head, attribute, &escaped(&with_group(&unescaped(address), group)), tail]);
            }
            None => kept.push_str(tag),
        }
        rest = after;
    }
    kept + rest
}

/// The tags with an address, and its attribute.
const ADDRESSES: [(&str, &str); 3] = [("<a ", " href=\""), ("<form ", " action=\""), ("<button ", " formaction=\"")];

/// The attribute of a form with a field for the group.
const OWN_GROUP: &str = " data-group";

/// Reverts [`escaped`].
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#x27;", "'").replace("&amp;", "&")
}

/// The paths below which an address is not a page.
const NO_PAGES: [&str; 9] = ["/api", "/assets/", "/feeds/", "/-/", "/events", "/metrics", "/login", "/logout", "/unsubscribe/"];

/// Adds the group to the address of a page of this server, unless the address has the parameter `group`.
fn with_group<'a>(address: &'a str, group: &str) -> Cow<'a, str> {
    let (path, fragment) = address.split_once('#').map_or((address, None), |(path, fragment)| (path, Some(fragment)));
    let (route, query) = path.split_once('?').unwrap_or((path, ""));
    let is_page = route.starts_with('/') && !route.starts_with("//") && !NO_PAGES.iter().any(|start| route.starts_with(start));
    if !is_page || url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == GROUP.name) {
        return Cow::Borrowed(address);
    }
    let value: String = url::form_urlencoded::byte_serialize(group.as_bytes()).collect();
    let separator = if query.is_empty() { "" } else { "&" };
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    Cow::Owned(format!("{route}?{query}{separator}{}={value}{fragment}", GROUP.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_to_a_page_keeps_the_group() {
        for (address, expected) in [
            ("/", "/?group=portfolio"),
            ("/tokens/arbitrum", "/tokens/arbitrum?group=portfolio"),
            ("/alerts?state=firing&severity=", "/alerts?state=firing&severity=&group=portfolio"),
            ("/tokens/a#supply", "/tokens/a?group=portfolio#supply"),
            ("/tokens?group=", "/tokens?group="),
            ("/tokens?group=l2", "/tokens?group=l2"),
            ("/api/v1/alerts", "/api/v1/alerts"),
            ("/assets/style.1.css", "/assets/style.1.css"),
            ("https://example.com/", "https://example.com/"),
            ("//example.com/", "//example.com/"),
            ("#main", "#main"),
        ] {
            assert_eq!(with_group(address, "portfolio"), expected, "{address}");
        }
    }

    #[test]
    fn links_and_forms_of_a_page_keep_the_group() {
        let page = "<a class=\"x\" href=\"/alerts?a=1&amp;b=2\">/alerts href=&quot;/x&quot;</a><form method=\"post\" action=\"/silences\">é</form>\
             <form method=\"get\" action=\"/tokens\"><form method=\"get\" action=\"/\" data-group><link href=\"/x\">";
        let expected = "<a class=\"x\" href=\"/alerts?a=1&amp;b=2&amp;group=a%26b\">/alerts href=&quot;/x&quot;</a>\
             <form method=\"post\" action=\"/silences?group=a%26b\">é</form>\
             <form method=\"get\" action=\"/tokens\"><input type=\"hidden\" name=\"group\" value=\"a&amp;b\">\
             <form method=\"get\" action=\"/\" data-group><link href=\"/x\">";
        assert_eq!(links_with_group(page, "a&b"), expected);
    }
}

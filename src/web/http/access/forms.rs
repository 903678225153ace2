//! Form fields and CSRF protection. Two independent checks apply: the origin that the browser reports, and a token that only pages of
//! this server contain.

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::{User, Visitor};
use model::AccessRole;

/// The form field of the CSRF token.
pub(in crate::http) const CSRF_FIELD: &str = "csrf";

/// The maximum number of fields of a form. Further fields are ignored.
const MAX_FIELDS: usize = 200;

/// The fields of a posted form, in their order. It is an extension of each authorized form request.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct FormFields(Vec<(String, String)>);

impl FormFields {
    pub fn parse(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns the first value of a field, trimmed. Empty if the field is missing.
    pub fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a field, not trimmed. Empty if the field is missing.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }
}

/// The reason to reject a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) enum FormError {
    /// A page of another site sent the form.
    CrossSite,
    /// The form changes state and the visitor has no session.
    NotLoggedIn,
    /// The role of the user is not sufficient.
    Role(User, AccessRole),
    /// The CSRF token is missing or old: the page was loaded before a restart or in another session.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FormKind {
    /// Changes state. Needs a login with this role.
    Change(AccessRole),
    /// Previews or simulates without changes. Needs no session where reading needs none.
    Trial,
    /// Logs in. Has no CSRF token yet.
    Login,
}

/// Checks the origin, the session, and the CSRF token of a form.
pub(in crate::http) fn check(
    fields: &FormFields,
    kind: FormKind,
    visitor: &Visitor,
    headers: &HeaderMap,
    external: Option<&Url>,
) -> Result<(), FormError> {
    if is_cross_site(headers, external) {
        return Err(FormError::CrossSite);
    }
    if kind == FormKind::Login {
        return Ok(());
    }
    if let FormKind::Change(required) = kind {
        let Some(user) = &visitor.user else { return Err(FormError::NotLoggedIn) };
        if user.role < required {
            return Err(FormError::Role(user.clone(), required));
        }
    }
    let Some(expected) = &visitor.csrf_token else { return Err(FormError::NotLoggedIn) };
    let given = fields.raw(CSRF_FIELD);
    match bool::from(given.as_bytes().ct_eq(expected.as_bytes())) {
        true => Ok(()),
        false => Err(FormError::Expired),
    }
}

/// Returns `true` if the browser reports that a page of another site sent the form. Clients that report no origin pass this check but
/// still need the CSRF token.
fn is_cross_site(headers: &HeaderMap, external: Option<&Url>) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return true;
    }
    let Some(origin) = text(header::ORIGIN.as_str()) else { return false };
    let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
    let is_host = !authority.is_empty() && text(header::HOST.as_str()).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    // A proxy may have changed the `Host` header.
    let is_external = external.is_some_and(|external| external.origin().ascii_serialization().eq_ignore_ascii_case(origin));
    !is_host && !is_external
}

/// Returns the requested path if it is on this server, else `/`. Prevents open redirects.
pub(in crate::http) fn local_path(requested: &str) -> &str {
    let is_local = requested.starts_with('/')
        && !requested.starts_with("//")
        && requested.len() <= 2048
        && requested.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { requested } else { "/" }
}

#[cfg(test)]
mod tests;

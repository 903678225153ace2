//! Forms: their fields, and whether one came from a page of ours. Two proofs are asked for, each enough by itself: what the browser says
//! of where the form was, and a text that only our pages know. Pure.

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::Visitor;

/// The field that carries what only our pages know.
pub(in crate::http) const KEY_FIELD: &str = "csrf";

/// Fields of one form.
const MAX_FIELDS: usize = 200;

/// What was posted. An extension of each request of a form that the gate lets in.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct FormFields(Vec<(String, String)>);

impl FormFields {
    pub fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).take(MAX_FIELDS).map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// The first value of a field, without space around; empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        self.whole(name).trim()
    }

    /// All values of a field.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a field as it is; empty where there is none.
    pub fn whole(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }
}

/// Why a form is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FormRefusal {
    /// It was posted from a page that is not ours.
    FromElsewhere,
    /// Whoever posts may not act: they have to log in.
    NotLoggedIn,
    /// It carries no key, or an old one: the page was made before a restart, or for another session.
    Stale,
}

/// What a form wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FormKind {
    /// To change something: for those alone who have logged in.
    Change,
    /// To have something tried or previewed: for all who may look.
    Trial,
}

/// Whether a form is let in.
pub(in crate::http) fn admit(
    fields: &FormFields,
    kind: FormKind,
    visitor: &Visitor,
    headers: &HeaderMap,
    external: Option<&Url>,
) -> Result<(), FormRefusal> {
    if is_from_elsewhere(headers, external) {
        return Err(FormRefusal::FromElsewhere);
    }
    if kind == FormKind::Change && !visitor.is_logged_in {
        return Err(FormRefusal::NotLoggedIn);
    }
    let Some(expected) = &visitor.form_key else { return Err(FormRefusal::NotLoggedIn) };
    let given = fields.whole(KEY_FIELD);
    match bool::from(given.as_bytes().ct_eq(expected.as_bytes())) {
        true => Ok(()),
        false => Err(FormRefusal::Stale),
    }
}

/// Whether the browser says that a form was on a page which is not ours. What says nothing, such as a program, needs the key all the
/// same.
pub(in crate::http) fn is_from_elsewhere(headers: &HeaderMap, external: Option<&Url>) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return true;
    }
    let Some(origin) = text(header::ORIGIN.as_str()) else { return false };
    let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
    let is_host = !authority.is_empty() && text(header::HOST.as_str()).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    // A proxy may have given the request another `Host`.
    let is_external = external.is_some_and(|external| external.origin().ascii_serialization().eq_ignore_ascii_case(origin));
    !is_host && !is_external
}

/// Where to go after a login: a path of ours, whatever was asked for.
pub(in crate::http) fn local_path(wanted: &str) -> &str {
    let is_local = wanted.starts_with('/')
        && !wanted.starts_with("//")
        && wanted.len() <= 2048
        && wanted.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { wanted } else { "/" }
}

#[cfg(test)]
mod tests;

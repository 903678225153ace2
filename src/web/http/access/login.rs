//! The pages to log in and out, and the response to a rejected form.

use axum::Extension;
use axum::extract::{Query, Request, State, rejection::QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::forms::{FormError, FormFields, local_path};
use super::{SESSION_COOKIE, Visitor, peer_of};
use crate::http::{HttpDeps, authorization, error::WebError, error_code::ErrorCode};
use crate::ui::page::{PageFrame, render};
use daemon::live;
use model::{AccessRole, MAX_SESSION_AGE};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct LoginQuery {
    /// The path to redirect to after the login.
    next: String,
}

/// `GET /login`.
pub(in crate::http) async fn form(
    Extension(visitor): Extension<Visitor>,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let next = query.map(|Query(query)| query.next).unwrap_or_default();
    // A user who may only read can log in with another key.
    if visitor.may(AccessRole::Act) {
        return redirect(local_path(&next));
    }
    page(&visitor, &next, None, StatusCode::OK)
}

/// `POST /login`: begins a session if the token or access key is valid.
pub(in crate::http) async fn log_in(State(deps): State<HttpDeps>, request: Request) -> Response {
    let fields = request.extensions().get::<FormFields>().cloned().unwrap_or_default();
    let visitor = request.extensions().get::<Visitor>().cloned().unwrap_or_default();
    let (peer, now) = (peer_of(&request), deps.app.clock.now());
    let next = local_path(fields.text("next")).to_owned();
    if let Some(wait) = deps.access.failed_logins(|logins| logins.retry_after(peer, now)) {
        let seconds = wait.num_seconds().max(1);
        let problem = format!("Too many failed logins from your address. Try again in {seconds} s.");
        let mut response = page(&visitor, &next, Some(&problem), StatusCode::TOO_MANY_REQUESTS);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        return response;
    }
    let token = live::resolve(deps.app.bearer.clone()).await.ok().flatten();
    // `text` trims the spaces and line ends of a pasted key.
    let caller = match authorization::caller_of(&deps, fields.text("token"), token.as_ref()).await {
        Ok(Some(caller)) => caller,
        Ok(None) if !visitor.has_login => return page(&visitor, &next, None, StatusCode::FORBIDDEN),
        Ok(None) => {
            deps.access.failed_logins(|logins| logins.record_failure(peer, now));
            tracing::warn!(%peer, "login failed: wrong access key");
            return page(&visitor, &next, Some("Wrong access key."), StatusCode::FORBIDDEN);
        }
        Err(error) => return WebError::from(error).into_response(),
    };
    deps.access.failed_logins(|logins| logins.record_success(peer));
    let value = match deps.access.begin_session(&deps.app.store, &caller, token.as_ref(), now).await {
        Ok(Some(value)) => value,
        Ok(None) => return (StatusCode::INTERNAL_SERVER_ERROR, "cannot get random bytes from the system\n").into_response(),
        Err(error) => return WebError::from(error).into_response(),
    };
    tracing::info!(%peer, name = caller.user.actor.name, "login succeeded");
    with_cookie(redirect(&next), &cookie(&deps, &value, MAX_SESSION_AGE.num_seconds()))
}

/// `POST /logout`: ends the session on all instances and deletes the cookie in the browser.
pub(in crate::http) async fn log_out(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>) -> Response {
    let ended = match &visitor.session {
        Some(session) => deps.access.end_session(&deps.app.store, session, deps.app.clock.now()).await,
        None => Ok(()),
    };
    let response = ended.map_or_else(|error| WebError::from(error).into_response(), |()| redirect("/login"));
    with_cookie(response, &cookie(&deps, "", 0))
}

/// Extends a session, unless the response begins or ends one.
pub(in crate::http) fn renew(deps: &HttpDeps, response: Response, (value, seconds): (String, i64)) -> Response {
    match response.headers().contains_key(header::SET_COOKIE) {
        true => response,
        false => with_cookie(response, &cookie(deps, &value, seconds)),
    }
}

fn cookie(deps: &HttpDeps, value: &str, seconds: i64) -> String {
    let is_https = deps.app.external_url.as_ref().is_some_and(|url| url.scheme() == "https");
    let secure = if is_https { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Redirects to another page after a form, so that reloading it does not repeat the action.
pub(in crate::http) fn redirect(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path.to_owned())]).into_response()
}

/// Returns a page that loads `path` again. The browser then sends the session cookie, because the request comes from this site.
pub(in crate::http) fn reload_from_same_site(path: &str) -> Response {
    let path = minijinja::HtmlEscape(local_path(path)).to_string();
    Html(format!("<!doctype html><title>Cliffwatch</title><meta http-equiv=\"refresh\" content=\"0; url={path}\"><a href=\"{path}\">Continue</a>"))
        .into_response()
}

/// The response to a rejected form.
pub(in crate::http) fn form_rejection(error: FormError, visitor: &Visitor) -> Response {
    let (code, text) = match error {
        FormError::CrossSite => (ErrorCode::FormRejected, "this form was not sent from a page of Cliffwatch"),
        FormError::NotLoggedIn if visitor.has_login => (ErrorCode::Unauthorized, "log in to make changes"),
        FormError::NotLoggedIn => {
            (ErrorCode::Unauthorized, "changes need a token, and none is set. The login page explains how to set one")
        }
        FormError::Role(user, required) => return WebError::insufficient_role(&user, required).into_response(),
        FormError::Expired => (ErrorCode::FormRejected, "the form has expired. Reload the page and try again"),
    };
    WebError::new(code, text).into_response()
}

#[derive(Serialize)]
struct LoginPage<'a> {
    next: &'a str,
    problem: Option<&'a str>,
    has_login: bool,
}

fn page(visitor: &Visitor, next: &str, problem: Option<&str>, status: StatusCode) -> Response {
    // No navigation: visitors without a session must not learn which pages exist.
    let frame = PageFrame { nav: Vec::new(), ..PageFrame::still(None) };
    let page = LoginPage { next: local_path(next), problem, has_login: visitor.has_login };
    (status, Html(render("login.html", &frame, &page))).into_response()
}

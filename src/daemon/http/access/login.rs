//! The pages to log in and out, and what is said where a form is refused.

use axum::Extension;
use axum::extract::{Query, Request, State, rejection::QueryRejection};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::forms::{FormFields, FormRefusal, local_path};
use super::{SESSION_COOKIE, Visitor, fingerprint_of, peer_of, session_cookie, sessions, unguessable};
use crate::http::{HttpDeps, gate};
use crate::live;
use crate::ui::page::{ErrorPage, PageFrame, render};

/// Where to go after the login.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct LoginQuery {
    next: String,
}

/// `GET /login`.
pub(in crate::http) async fn ask(
    Extension(visitor): Extension<Visitor>,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let next = query.map(|Query(query)| query.next).unwrap_or_default();
    if visitor.is_logged_in {
        return see(local_path(&next));
    }
    page(&visitor, &next, None, StatusCode::OK)
}

/// `POST /login`: a session for the right token.
pub(in crate::http) async fn log_in(State(deps): State<HttpDeps>, request: Request) -> Response {
    let fields = request.extensions().get::<FormFields>().cloned().unwrap_or_default();
    let visitor = request.extensions().get::<Visitor>().cloned().unwrap_or_default();
    let (peer, now) = (peer_of(&request), deps.clock.now());
    let next = local_path(fields.text("next")).to_owned();
    if let Some(wait) = deps.access.attempts(|attempts| attempts.wait(peer, now)) {
        let seconds = wait.num_seconds().max(1);
        let problem = format!("Too many wrong tokens came from your address. Try again in {seconds} s.");
        let mut response = page(&visitor, &next, Some(&problem), StatusCode::TOO_MANY_REQUESTS);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        return response;
    }
    let Ok(Some(token)) = live::resolve(deps.bearer.clone()).await else {
        return page(&visitor, &next, None, StatusCode::FORBIDDEN);
    };
    // Pasted texts come with spaces and line ends around them.
    if !gate::is_token(fields.text("token"), Some(&token)) {
        deps.access.attempts(|attempts| attempts.failed(peer, now));
        tracing::warn!(%peer, "a login was refused: the token is wrong");
        return page(&visitor, &next, Some("This is not the token."), StatusCode::FORBIDDEN);
    }
    let (Some(id), Some(form_key)) = (unguessable(), unguessable()) else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the system gave no random bytes\n").into_response();
    };
    deps.access.attempts(|attempts| attempts.succeeded(peer));
    deps.access.sessions(|sessions| sessions.begin(&id, form_key, fingerprint_of(&token), now));
    tracing::info!(%peer, "somebody logged in");
    with_cookie(see(&next), &cookie(&deps, &id, sessions::MAX_AGE.num_seconds()))
}

/// `POST /logout`: the session ends here, not only in the browser.
pub(in crate::http) async fn log_out(State(deps): State<HttpDeps>, headers: HeaderMap) -> Response {
    if let Some(id) = session_cookie(&headers) {
        deps.access.sessions(|sessions| sessions.end(id));
    }
    with_cookie(see("/login"), &cookie(&deps, "", 0))
}

fn cookie(deps: &HttpDeps, id: &str, seconds: i64) -> String {
    let is_https = deps.external_url.as_ref().is_some_and(|url| url.scheme() == "https");
    let secure = if is_https { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Goes on by looking at another page, so that a reload does nothing twice.
pub(in crate::http) fn see(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path.to_owned())]).into_response()
}

/// The same page once more, asked for from a page of ours.
pub(in crate::http) fn once_more(path: &str) -> Response {
    let path = minijinja::HtmlEscape(local_path(path)).to_string();
    Html(format!("<!doctype html><title>Cliffwatch</title><meta http-equiv=\"refresh\" content=\"0; url={path}\"><a href=\"{path}\">Go on</a>"))
        .into_response()
}

/// Why a form did nothing.
pub(in crate::http) fn refused_form(refusal: FormRefusal, visitor: &Visitor) -> Response {
    let (status, text) = match refusal {
        FormRefusal::FromElsewhere => (StatusCode::FORBIDDEN, "This form did not come from a page of Cliffwatch."),
        FormRefusal::NotLoggedIn if visitor.has_login => (StatusCode::UNAUTHORIZED, "To change something, log in first."),
        FormRefusal::NotLoggedIn => {
            (StatusCode::UNAUTHORIZED, "Nobody can change anything here before a token is set. The page to log in says how.")
        }
        FormRefusal::Stale => (StatusCode::FORBIDDEN, "This page was too old: load it again, then try once more."),
    };
    let page = ErrorPage { title: "Nothing was done".to_owned(), text: text.to_owned(), search: None };
    (status, Html(page.render())).into_response()
}

#[derive(Serialize)]
struct LoginPage<'a> {
    next: &'a str,
    problem: Option<&'a str>,
    has_login: bool,
}

fn page(visitor: &Visitor, next: &str, problem: Option<&str>, status: StatusCode) -> Response {
    // Whoever is not in yet learns of no page that there is.
    let frame = PageFrame { nav: Vec::new(), ..PageFrame::still(None) };
    let page = LoginPage { next: local_path(next), problem, has_login: visitor.has_login };
    (status, Html(render("login.html", &frame, &page))).into_response()
}

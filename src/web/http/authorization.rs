//! Authorization of requests.
//!
//! On loopback the `Host` header must name this server, which prevents DNS rebinding. On other addresses a request needs the token or a
//! session. On every address, API requests that change state need the token, and forms that change state need a session. Forms that only
//! preview need no more than read access. Each form must come from a page of this server. Failed logins are rate-limited per address.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use subtle::ConstantTimeEq as _;
use url::Url;

use super::access::{
    self, IdentifiedVisitor, Visitor,
    forms::{self, FormFields, FormKind},
};
use super::error::WebError;
use super::error_code::ErrorCode;
use super::{HttpDeps, MAX_REQUEST_BYTES};
use daemon::live;
use model::config::SecretText;

/// The authentication schemes of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    /// The token is the password. The user name is ignored.
    Basic,
}

impl Scheme {
    fn challenge(self) -> &'static str {
        match self {
            Scheme::Bearer => "Bearer realm=\"cliffwatch\"",
            Scheme::Basic => "Basic realm=\"cliffwatch: the token is the password\", charset=\"UTF-8\"",
        }
    }

    /// Returns the token in an `Authorization` header. `None` if the header uses another scheme.
    fn token(self, value: &str) -> Option<String> {
        let (name, rest) = value.split_once(' ')?;
        match self {
            Scheme::Bearer => name.eq_ignore_ascii_case("bearer").then(|| rest.trim().to_owned()),
            Scheme::Basic => {
                name.eq_ignore_ascii_case("basic").then_some(())?;
                let pair = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?;
                Some(String::from_utf8(pair).ok()?.split_once(':')?.1.to_owned())
            }
        }
    }
}

/// The kinds of requests, which differ in the authorization that they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Read,
    /// Changes state through the API.
    Api,
    /// Posts a form of a page.
    Form(FormKind),
    LoginPage,
}

impl RequestKind {
    fn of(method: &Method, path: &str) -> Self {
        let is_change = !matches!(*method, Method::GET | Method::HEAD);
        match path {
            "/login" if is_change => RequestKind::Form(FormKind::Login),
            "/login" => RequestKind::LoginPage,
            "/-/reload" => RequestKind::Api,
            _ if !is_change => RequestKind::Read,
            _ if path.starts_with("/api/") || path.starts_with("/-/") => RequestKind::Api,
            "/rules/playground" | "/silences/preview" => RequestKind::Form(FormKind::Trial),
            _ => RequestKind::Form(FormKind::Change),
        }
    }
}

pub(super) async fn authorize(State(deps): State<HttpDeps>, mut request: Request, next: Next) -> Response {
    let is_loopback = deps.app.address.ip().is_loopback();
    if is_loopback
        && !is_own_host(request.headers(), request.uri().host(), deps.app.external_url.as_ref().and_then(Url::host_str))
    {
        let message = "the Host header does not name this server; set `external_url` in [http] to allow another name";
        return WebError::new(ErrorCode::WrongHost, message).into_line().into_response();
    }
    let token = match live::resolve(deps.app.bearer.clone()).await {
        Ok(token) => token.filter(|token| !token.expose().is_empty()),
        Err(error) => {
            tracing::error!(%error, "cannot read the token of [http]");
            return WebError::new(ErrorCode::InternalError, "cannot read the token; see the log").into_line().into_response();
        }
    };
    let now = deps.app.clock.now();
    let identified = deps.access.identify(&deps.app.store, request.headers(), token.as_ref(), is_loopback, now).await;
    let IdentifiedVisitor { mut visitor, renewed_cookie } = identified;
    let kind = RequestKind::of(request.method(), request.uri().path());
    let rejection = match kind {
        RequestKind::Read if is_loopback || visitor.is_logged_in => None,
        RequestKind::Read => {
            let rejection = check_token(&deps, &request, token.as_ref(), &[Scheme::Bearer, Scheme::Basic]);
            rejection.map(|rejection| rejection.or_login(&request))
        }
        // Browsers and calendar programs send a password instead of a bearer token. It gives read access only, because a page of another
        // site can make a browser send it.
        RequestKind::Api => check_token(&deps, &request, token.as_ref(), &[Scheme::Bearer]).map(IntoResponse::into_response),
        RequestKind::Form(_) | RequestKind::LoginPage => None,
    };
    if let Some(rejection) = rejection {
        return rejection;
    }
    if let RequestKind::Form(form) = kind {
        request = match with_fields(request, &visitor, deps.app.external_url.as_ref(), form).await {
            Ok(request) => request,
            Err(rejection) => return rejection,
        };
    }
    visitor.sees_positions = visitor.is_logged_in || has_key(&deps, &request, token.as_ref());
    request.extensions_mut().insert(visitor);
    let response = next.run(request).await;
    match renewed_cookie {
        Some(cookie) => access::login::renew(&deps, response, cookie),
        None => response,
    }
}

/// The reason to reject a request without a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejection {
    /// The token is missing or wrong. Lists the accepted schemes.
    Unauthorized(&'static [Scheme]),
    /// The address must wait for a number of seconds after failed logins.
    RateLimited(i64),
}

impl Rejection {
    /// Redirects browsers to the login page. Other clients get the status.
    fn or_login(self, request: &Request) -> Response {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let is_page = header("accept").contains("text/html") && !request.headers().contains_key(header::AUTHORIZATION);
        if !is_page || self.is_rate_limit() || path.starts_with("/api/") {
            return self.into_response();
        }
        if header("sec-fetch-site") == "cross-site" && header("sec-fetch-mode") == "navigate" {
            // After a link on another site, the browser does not send the `SameSite=Strict` cookie, so the user seems to be logged out.
            return access::login::reload_from_same_site(path);
        }
        let next: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
        (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/login?next={next}"))]).into_response()
    }

    fn is_rate_limit(self) -> bool {
        matches!(self, Rejection::RateLimited(_))
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Rejection::Unauthorized(schemes) => {
                let message = "the request needs a bearer token: the value of `token` in [http]";
                let mut response = WebError::new(ErrorCode::Unauthorized, message).into_line().into_response();
                for scheme in schemes {
                    response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme.challenge()));
                }
                response
            }
            Rejection::RateLimited(seconds) => {
                let text = format!("too many failed logins from this address; try again in {seconds} s");
                let error = WebError::new(ErrorCode::TooManyFailedLogins, text).into_line();
                ([(header::RETRY_AFTER, seconds.to_string())], error).into_response()
            }
        }
    }
}

/// Checks the token of a request and counts failures. `None` if the token is valid.
fn check_token(deps: &HttpDeps, request: &Request, token: Option<&SecretText>, schemes: &'static [Scheme]) -> Option<Rejection> {
    let Some(value) = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return Some(Rejection::Unauthorized(schemes));
    };
    let (peer, now) = (access::peer_of(request), deps.app.clock.now());
    if let Some(wait) = deps.access.failed_logins(|logins| logins.retry_after(peer, now)) {
        return Some(Rejection::RateLimited(wait.num_seconds().max(1)));
    }
    let given = schemes.iter().find_map(|scheme| scheme.token(value));
    let is_valid = given.as_deref().is_some_and(|given| is_token(given, token));
    deps.access.failed_logins(|logins| match (is_valid, given.is_some()) {
        (true, _) => logins.record_success(peer),
        (false, true) => logins.record_failure(peer, now),
        (false, false) => {}
    });
    (!is_valid).then_some(Rejection::Unauthorized(schemes))
}

/// Returns whether the request has a valid key. A wrong one counts as a failed login, also where reading needs none.
fn has_key(deps: &HttpDeps, request: &Request, token: Option<&SecretText>) -> bool {
    let is_given = request.headers().contains_key(header::AUTHORIZATION);
    is_given && check_token(deps, request, token, &[Scheme::Bearer, Scheme::Basic]).is_none()
}

/// Compares a text with the token in constant time. Returns `false` if no token is configured.
pub(super) fn is_token(given: &str, token: Option<&SecretText>) -> bool {
    let Some(expected) = token.map(|token| token.expose().as_bytes()) else { return false };
    !given.is_empty() && !expected.is_empty() && bool::from(given.as_bytes().ct_eq(expected))
}

/// Checks a form request and attaches its fields.
async fn with_fields(request: Request, visitor: &Visitor, external: Option<&Url>, kind: FormKind) -> Result<Request, Response> {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return Err(WebError::new(ErrorCode::BodyTooLarge, "the form is too large").into_line().into_response());
    };
    let fields = FormFields::parse(&body);
    let checked = forms::check(&fields, kind, visitor, &parts.headers, external);
    checked.map_err(|error| access::login::form_rejection(error, visitor))?;
    parts.extensions.insert(fields);
    Ok(Request::from_parts(parts, Body::empty()))
}

/// Returns `true` if the request names this server. A page that uses DNS rebinding sends the name of its own host instead.
pub(super) fn is_own_host(headers: &HeaderMap, uri_host: Option<&str>, external: Option<&str>) -> bool {
    let Some(host) = uri_host.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok())) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || external.is_some_and(|external| external.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;

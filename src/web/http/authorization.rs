//! Authorization of requests.
//!
//! On loopback the `Host` header must name this server, which prevents DNS rebinding. On other addresses a request needs the token or a
//! session. On every address, API requests that change state need the token, and forms that change state need a session. Forms that only
//! preview need no more than read access. An access key is accepted instead of the token if its role is sufficient. A user whom a trusted
//! reverse proxy names needs no session. A request from such a proxy without a user needs a login, even from loopback. Each form
//! must come from a page of this server. Failed logins are rate-limited per address.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use subtle::ConstantTimeEq as _;
use url::Url;

use super::access::{
    self, Caller, IdentifiedVisitor, User, Visitor,
    forms::{self, FormFields, FormKind},
    rate_limit::{FailedLogins, LoginQuota},
};
use super::error::{WebError, is_for_programs};
use super::error_code::ErrorCode;
use super::{HttpDeps, MAX_REQUEST_BYTES};
use daemon::live;
use model::AccessRole;
use model::config::SecretText;
use store::StoreError;

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
    /// Needs this role: changes state through the API.
    Api(AccessRole),
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
            "/-/reload" => RequestKind::Api(AccessRole::Admin),
            _ if !is_change => RequestKind::Read,
            _ if is_for_programs(path) || path.starts_with("/-/") => RequestKind::Api(AccessRole::Act),
            "/rules/playground" | "/silences/preview" => RequestKind::Form(FormKind::Trial),
            "/logout" => RequestKind::Form(FormKind::Change(AccessRole::View)),
            "/rules/new" => RequestKind::Form(FormKind::Change(AccessRole::Admin)),
            _ => RequestKind::Form(FormKind::Change(AccessRole::Act)),
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
    let proxies = deps.proxies.as_deref();
    let user = proxies.and_then(|proxies| proxies.user(access::address_of(&request), request.headers()));
    let is_open = is_loopback && user.is_none();
    let identified = deps.access.identify(&deps.app.store, request.headers(), token.as_ref(), user, is_open, now).await;
    let IdentifiedVisitor { mut visitor, renewed_cookie } = identified;
    // Only pages offer a login. A health check must not wait for a database that does not respond.
    let path = request.uri().path();
    let is_page = !is_for_programs(path) && !path.starts_with("/-/") && path != "/metrics";
    if is_page && !visitor.has_login {
        visitor.has_login = deps.app.store.has_access_keys().await.unwrap_or_default();
    }
    let kind = RequestKind::of(request.method(), request.uri().path());
    let rejection = match kind {
        RequestKind::Read if is_open || visitor.is_logged_in() => None,
        RequestKind::Read => {
            let schemes = &[Scheme::Bearer, Scheme::Basic];
            let checked = check_token(&deps, &mut request, token.as_ref(), schemes, AccessRole::View).await;
            checked.err().map(|rejection| rejection.or_login(&request))
        }
        // Browsers and calendar programs send a password instead of a bearer token. It gives read access only, because a page of another
        // site can make a browser send it.
        RequestKind::Api(role) => {
            let checked = check_token(&deps, &mut request, token.as_ref(), &[Scheme::Bearer], role).await;
            checked.err().map(IntoResponse::into_response)
        }
        RequestKind::Form(_) | RequestKind::LoginPage => None,
    };
    if let Some(rejection) = rejection {
        // An unread body would close the connection, perhaps while the client sends its next request on it.
        to_bytes(request.into_body(), MAX_REQUEST_BYTES).await.ok();
        return rejection;
    }
    if let RequestKind::Form(form) = kind {
        request = match with_fields(request, &visitor, deps.app.external_url.as_ref(), form).await {
            Ok(request) => request,
            Err(rejection) => return rejection,
        };
    }
    visitor.sees_positions = visitor.is_logged_in() || has_key(&deps, &mut request, token.as_ref()).await;
    request.extensions_mut().insert(visitor);
    let response = next.run(request).await;
    match renewed_cookie {
        Some(cookie) => access::login::renew(&deps, response, cookie),
        None => response,
    }
}

/// The reason to reject a request without a session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rejection {
    /// The token is missing or wrong. Lists the accepted schemes.
    Unauthorized(&'static [Scheme], Option<LoginQuota>),
    /// The address must wait after failed logins.
    RateLimited(LoginQuota),
    /// The access key does not allow the request.
    Role {
        caller: Caller,
        required: AccessRole,
    },
    Failed(WebError),
}

impl Rejection {
    /// Redirects browsers to the login page. Other clients get the status.
    fn or_login(self, request: &Request) -> Response {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let is_page = header("accept").contains("text/html") && !request.headers().contains_key(header::AUTHORIZATION);
        if !is_page || !matches!(self, Rejection::Unauthorized(..)) || path.starts_with("/api/") {
            return self.into_response();
        }
        if header("sec-fetch-site") == "cross-site" && header("sec-fetch-mode") == "navigate" {
            // After a link on another site, the browser does not send the `SameSite=Strict` cookie, so the user seems to be logged out.
            return access::login::reload_from_same_site(path);
        }
        let next: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
        (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/login?next={next}"))]).into_response()
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Rejection::Unauthorized(schemes, quota) => {
                let message = "the request needs a bearer token: the value of `token` in [http], or an access key";
                let mut response = WebError::new(ErrorCode::Unauthorized, message).into_line().into_response();
                for scheme in schemes {
                    response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme.challenge()));
                }
                quota.into_iter().for_each(|quota| quota.add_to(response.headers_mut()));
                response
            }
            Rejection::RateLimited(quota) => {
                let seconds = quota.reset_secs;
                let text = format!("too many failed logins from this address; try again in {seconds} s");
                let error = WebError::new(ErrorCode::TooManyFailedLogins, text).into_line();
                let mut response = ([(header::RETRY_AFTER, seconds.to_string())], error).into_response();
                quota.add_to(response.headers_mut());
                response
            }
            Rejection::Role { caller, required } => {
                let mut response = WebError::insufficient_role(&caller.user, required).into_line().into_response();
                let challenge = format!("{}, error=\"insufficient_scope\", scope=\"{required}\"", Scheme::Bearer.challenge());
                response
                    .headers_mut()
                    .extend(HeaderValue::try_from(challenge).ok().map(|value| (header::WWW_AUTHENTICATE, value)));
                response
            }
            Rejection::Failed(error) => error.into_line().into_response(),
        }
    }
}

/// Checks the token or access key of a request, and counts failures. Attaches the [`Caller`] to the request.
async fn check_token(
    deps: &HttpDeps,
    request: &mut Request,
    token: Option<&SecretText>,
    schemes: &'static [Scheme],
    required: AccessRole,
) -> Result<(), Rejection> {
    let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(given) = value.map(|value| schemes.iter().find_map(|scheme| scheme.token(value))) else {
        return Err(Rejection::Unauthorized(schemes, None));
    };
    let (peer, now) = (access::peer_of(request), deps.app.clock.now());
    let blocked = |logins: &mut FailedLogins| logins.retry_after(peer, now).map(|_| logins.quota(peer, now));
    if let Some(quota) = deps.access.failed_logins(blocked) {
        return Err(Rejection::RateLimited(quota));
    }
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Err(Rejection::Unauthorized(schemes, None)) };
    let caller = match caller_of(deps, &given, token).await {
        Ok(Some(caller)) => caller,
        Ok(None) => {
            let quota = deps.access.failed_logins(|logins| {
                logins.record_failure(peer, now);
                logins.quota(peer, now)
            });
            return Err(Rejection::Unauthorized(schemes, Some(quota)));
        }
        Err(error) => return Err(Rejection::Failed(error.into())),
    };
    deps.access.failed_logins(|logins| logins.record_success(peer));
    if caller.user.role < required {
        return Err(Rejection::Role { caller, required });
    }
    request.extensions_mut().insert(caller);
    Ok(())
}

/// Returns the caller with this token or access key. `None` if it is neither.
pub(super) async fn caller_of(deps: &HttpDeps, given: &str, token: Option<&SecretText>) -> Result<Option<Caller>, StoreError> {
    let hash = access::fingerprint(given.as_bytes());
    if is_token(given, token) {
        return Ok(Some(Caller { hash, user: User::with_token() }));
    }
    let key = deps.app.store.access_key_with(hash).await?;
    Ok(key.map(|key| Caller { hash, user: User::with_key(key) }))
}

/// Returns whether the request has a valid token or access key. A wrong one counts as a failed login, also where reading needs none.
async fn has_key(deps: &HttpDeps, request: &mut Request, token: Option<&SecretText>) -> bool {
    if request.extensions().get::<Caller>().is_some() {
        return true;
    }
    let is_given = request.headers().contains_key(header::AUTHORIZATION);
    is_given && check_token(deps, request, token, &[Scheme::Bearer, Scheme::Basic], AccessRole::View).await.is_ok()
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

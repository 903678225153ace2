//! The gate: which requests are let in, and as whom.
//!
//! On loopback the `Host` of a request must name us, which keeps other people's web pages out (DNS rebinding); off loopback it must
//! carry the token or belong to a session that began with it. What changes something needs more, wherever we listen: a program the token,
//! a form a session. A form that only tries or previews is for all who may look. Each form must come from a page of ours. Wrong
//! tokens are counted for each address, and cost ever longer waits.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use subtle::ConstantTimeEq as _;
use url::Url;

use super::access::{
    self, Visitor,
    forms::{self, FormFields, FormKind, FormRefusal},
};
use super::{HttpDeps, MAX_REQUEST_BYTES};
use crate::live;
use model::config::SecretText;

/// How a request may carry the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// As it is.
    Bearer,
    /// As the password, whatever the user name.
    Basic,
}

impl Scheme {
    fn challenge(self) -> &'static str {
        match self {
            Scheme::Bearer => "Bearer realm=\"cliffwatch\"",
            Scheme::Basic => "Basic realm=\"cliffwatch: the token is the password\", charset=\"UTF-8\"",
        }
    }

    /// The token in the value of `Authorization`; none where it is of another scheme.
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

/// How a request is let in, by what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// It looks.
    Look,
    /// A program changes something.
    Program,
    /// A form of a page.
    Form(FormKind),
    /// The login, which is how one comes in.
    Login,
}

impl Door {
    fn of(method: &Method, path: &str) -> Self {
        let is_change = !matches!(*method, Method::GET | Method::HEAD);
        match path {
            "/login" => Door::Login,
            "/-/reload" => Door::Program,
            _ if !is_change => Door::Look,
            _ if path.starts_with("/api/") || path.starts_with("/-/") => Door::Program,
            "/rules/playground" | "/silences/preview" => Door::Form(FormKind::Trial),
            _ => Door::Form(FormKind::Change),
        }
    }
}

pub(super) async fn guard(State(deps): State<HttpDeps>, mut request: Request, next: Next) -> Response {
    let is_loopback = deps.address.ip().is_loopback();
    if is_loopback && !is_our_host(request.headers(), request.uri().host(), deps.external_url.as_ref().and_then(Url::host_str)) {
        return (StatusCode::FORBIDDEN, "this address is not served under that name\n").into_response();
    }
    let token = match live::resolve(deps.bearer.clone()).await {
        Ok(token) => token.filter(|token| !token.expose().is_empty()),
        Err(error) => {
            tracing::error!(%error, "the token of [http] cannot be read");
            return (StatusCode::INTERNAL_SERVER_ERROR, "the token cannot be checked; the log says why\n").into_response();
        }
    };
    let visitor = deps.access.visitor(request.headers(), token.as_ref(), is_loopback, deps.clock.now());
    let door = Door::of(request.method(), request.uri().path());
    let refused = match door {
        Door::Look if is_loopback || visitor.is_logged_in => None,
        Door::Look => by_token(&deps, &request, token.as_ref(), &[Scheme::Bearer, Scheme::Basic]).map(|r| r.or_login(&request)),
        // Browsers and calendars know no bearer tokens, but ask for a password. What they send by themselves may only read: another
        // site's page could make a browser send it.
        Door::Program => by_token(&deps, &request, token.as_ref(), &[Scheme::Bearer]).map(IntoResponse::into_response),
        Door::Form(_) | Door::Login => None,
    };
    if let Some(refusal) = refused {
        return refusal;
    }
    let kind = match door {
        Door::Form(kind) => Some(Some(kind)),
        Door::Login if request.method() == Method::POST => Some(None),
        _ => None,
    };
    if let Some(kind) = kind {
        request = match with_fields(request, &visitor, deps.external_url.as_ref(), kind).await {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// Why a request without a session is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateRefusal {
    /// It carries no right token.
    Token(&'static [Scheme]),
    /// Its address guessed wrong too often: it has to wait so many seconds.
    Wait(i64),
}

impl GateRefusal {
    /// As a page to log in, for a person with a browser.
    fn or_login(self, request: &Request) -> Response {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let is_page = header("accept").contains("text/html") && !request.headers().contains_key(header::AUTHORIZATION);
        if !is_page || self.is_wait() || path.starts_with("/api/") {
            return self.into_response();
        }
        if header("sec-fetch-site") == "cross-site" && header("sec-fetch-mode") == "navigate" {
            // Whoever follows a link in a web mail is logged in, but their browser keeps a strict cookie back. From a page of ours it
            // sends it.
            return access::login::once_more(path);
        }
        let next: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
        (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/login?next={next}"))]).into_response()
    }

    fn is_wait(self) -> bool {
        matches!(self, GateRefusal::Wait(_))
    }
}

impl IntoResponse for GateRefusal {
    fn into_response(self) -> Response {
        match self {
            GateRefusal::Token(takes) => {
                let mut refusal = (StatusCode::UNAUTHORIZED, "a bearer token is needed: [http] token\n").into_response();
                for scheme in takes {
                    refusal.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme.challenge()));
                }
                refusal
            }
            GateRefusal::Wait(seconds) => too_many(seconds),
        }
    }
}

/// The answer to an address that guessed wrong too often.
pub(super) fn too_many(seconds: i64) -> Response {
    let text = format!("too many wrong tokens from this address: try again in {seconds} s\n");
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], text).into_response()
}

/// Why a request is not let in by the token that it carries; none where it is.
fn by_token(deps: &HttpDeps, request: &Request, token: Option<&SecretText>, takes: &'static [Scheme]) -> Option<GateRefusal> {
    let Some(value) = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return Some(GateRefusal::Token(takes));
    };
    let (peer, now) = (access::peer_of(request), deps.clock.now());
    if let Some(wait) = deps.access.attempts(|attempts| attempts.wait(peer, now)) {
        return Some(GateRefusal::Wait(wait.num_seconds().max(1)));
    }
    let given = takes.iter().find_map(|scheme| scheme.token(value));
    let is_right = given.as_deref().is_some_and(|given| is_token(given, token));
    deps.access.attempts(|attempts| match (is_right, given.is_some()) {
        (true, _) => attempts.succeeded(peer),
        (false, true) => attempts.failed(peer, now),
        (false, false) => {}
    });
    (!is_right).then_some(GateRefusal::Token(takes))
}

/// Whether a text is the token. Without a token configured, none is.
pub(super) fn is_token(given: &str, token: Option<&SecretText>) -> bool {
    let Some(expected) = token.map(|token| token.expose().as_bytes()) else { return false };
    !given.is_empty() && !expected.is_empty() && bool::from(given.as_bytes().ct_eq(expected))
}

/// The request of a form, with its fields beside it; or why it is not let in. The login is of no kind: whoever posts it has no key yet.
async fn with_fields(
    request: Request,
    visitor: &Visitor,
    external: Option<&Url>,
    kind: Option<FormKind>,
) -> Result<Request, Response> {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the form is too long\n").into_response());
    };
    let fields = FormFields::read(&body);
    let admitted = match kind {
        None if forms::is_from_elsewhere(&parts.headers, external) => Err(FormRefusal::FromElsewhere),
        None => Ok(()),
        Some(kind) => forms::admit(&fields, kind, visitor, &parts.headers, external),
    };
    admitted.map_err(|refusal| access::login::refused_form(refusal, visitor))?;
    parts.extensions.insert(fields);
    Ok(Request::from_parts(parts, Body::empty()))
}

/// Whether the request names a host that is ours: a page of another origin that resolves its own name to 127.0.0.1 cannot.
fn is_our_host(headers: &HeaderMap, of_uri: Option<&str>, external: Option<&str>) -> bool {
    let Some(host) = of_uri.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok())) else {
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

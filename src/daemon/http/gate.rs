//! The gate: which requests are let in.
//!
//! On loopback the `Host` of a request must name us, which keeps other people's web pages out (DNS rebinding); off loopback it must
//! carry the token, `/-/healthy` alone excepted. What changes something needs the token always.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use subtle::ConstantTimeEq as _;
use url::Url;

use super::HttpDeps;
use crate::live;
use model::config::{Secret, SecretError};

/// How a request may carry the token.
#[derive(Clone, Copy)]
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

pub(super) async fn guard(State(deps): State<HttpDeps>, request: Request, next: Next) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD) || request.uri().path() == "/-/reload";
    let is_open = !deps.address.ip().is_loopback();
    if !is_open && !is_our_host(request.headers(), request.uri().host(), deps.external_url.as_ref().and_then(Url::host_str)) {
        return (StatusCode::FORBIDDEN, "this address is not served under that name\n").into_response();
    }
    if is_open || is_change {
        // Browsers and calendars know no bearer tokens, but ask for a password. What they send by themselves may only read: another
        // site's page could make a browser send it.
        let takes: &[Scheme] = if is_change { &[Scheme::Bearer] } else { &[Scheme::Bearer, Scheme::Basic] };
        match has_token(deps.bearer.clone(), request.headers(), takes).await {
            Ok(true) => {}
            Ok(false) => {
                let mut refusal = (StatusCode::UNAUTHORIZED, "a bearer token is needed: [http] token\n").into_response();
                for scheme in takes {
                    refusal.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme.challenge()));
                }
                return refusal;
            }
            Err(error) => {
                tracing::error!(%error, "the token of [http] cannot be read");
                return (StatusCode::INTERNAL_SERVER_ERROR, "the token cannot be checked; the log says why\n").into_response();
            }
        }
    }
    next.run(request).await
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

/// Whether the request carries the token, in one of these schemes. Without a token configured, none does.
pub(super) async fn has_token(bearer: Secret, headers: &HeaderMap, schemes: &[Scheme]) -> Result<bool, SecretError> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = value.and_then(|value| schemes.iter().find_map(|scheme| scheme.token(value)));
    let Some(expected) = live::resolve(bearer).await? else { return Ok(false) };
    let (given, expected) = (given.unwrap_or_default(), expected.expose().as_bytes());
    Ok(!given.is_empty() && !expected.is_empty() && bool::from(given.as_bytes().ct_eq(expected)))
}

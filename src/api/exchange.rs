//! One page: a turn of the pace, a request, its answer, and another try where that may help.

use std::time::Duration;

use reqwest::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION},
};
use tokio::time::sleep;

use super::{
    Failure, FailureKind,
    client::{Fetch, Inner, Tally},
    envelope::{self, NoAnswer, Page},
    gate::{Pass, Verdict},
    route::{Ask, Base},
    server::Server,
    shown,
    trouble::{Again, Trouble, said},
    walk,
};
use crate::{supply::ContentHash, wire::Credit};

/// The one header that carries the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Room made at once for a body of the length that the server tells, bytes; a longer one gets more as it comes.
const MAX_TRUSTED_LENGTH: usize = 1024 * 1024;

/// How much of the body of a refusal is read, bytes.
const MAX_ERROR_BODY: u64 = 64 * 1024;

impl Inner {
    /// Asks for one page until it comes or asking again is of no use.
    #[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename them")]
    pub(super) async fn page(
        &self,
        fetch: &Fetch<'_>,
        ask: &Ask,
        what: &str,
        number: u32,
        size: Option<i64>,
        pass: &Pass,
        tally: &mut Tally,
    ) -> Result<Page, Trouble> {
        let mut tried = 0;
        loop {
            self.pace.turn(|| self.gate.check(pass, what)).await.map_err(Trouble::unasked)?;
            let mut trouble = match self.send(fetch, ask, what, number, size, tally).await {
                Ok(page) => return Ok(page),
                Err(trouble) => trouble,
            };
            tried += 1;
            trouble.failure.message =
                shown::clip(&shown::without_key(&trouble.failure.message, fetch.key.as_ref()), shown::MAX_MESSAGE);
            let wait = match trouble.again {
                Again::No => return Err(trouble),
                _ if tried >= self.tuning.tries.max(1) => {
                    if tried > 1 {
                        let message = format!("{} (tried {tried} times)", trouble.failure.message);
                        trouble.failure.message = shown::clip(&message, shown::MAX_MESSAGE);
                    }
                    return Err(trouble);
                }
                Again::AfterBackoff => self.backoff(tried - 1),
                Again::After(wait) => {
                    self.pace.hold(wait);
                    Duration::ZERO // everybody waits at the pace
                }
            };
            tracing::debug!(tried, wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), "{}", trouble.failure.message);
            sleep(wait).await;
        }
    }

    /// Wait before another try: four times as long each time, 30 % more or less.
    pub(super) fn backoff(&self, tried: u32) -> Duration {
        let factor = 4_u32.saturating_pow(tried.min(8));
        self.tuning.backoff.saturating_mul(factor).mul_f64(0.7 + 0.6 * fastrand::f64())
    }

    /// One request and its answer.
    async fn send(
        &self,
        fetch: &Fetch<'_>,
        ask: &Ask,
        what: &str,
        number: u32,
        size: Option<i64>,
        tally: &mut Tally,
    ) -> Result<Page, Trouble> {
        let server = match ask.base {
            Base::Current => &self.current,
            Base::Legacy => &self.legacy,
        };
        let mut request = server.http.get(server.address(ask, number, self.source.page_size, size));
        if let Some(key) = &fetch.key {
            let Ok(mut value) = HeaderValue::from_str(key.expose().trim()) else {
                let message =
                    format!("{what} was not sent: the key from {} holds characters that no header can carry", self.key_place());
                return Err(Trouble {
                    failure: Failure { kind: FailureKind::Unauthorized, message: message.clone(), retry_at: None },
                    again: Again::No,
                    verdict: Verdict::Refused(message),
                });
            };
            value.set_sensitive(true);
            request = request.header(KEY_HEADER, value);
        }
        tally.requests += 1;
        let response = request.send().await.map_err(|error| self.broken(what, error))?;
        let status = response.status();
        tally.status = Some(status.as_u16());
        if status != StatusCode::OK {
            return Err(self.refusal(fetch, what, server, response, tally).await);
        }
        let content_type =
            response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let retry_after = self.retry_after(response.headers());
        let body = match self.body(response, self.source.max_body.0, tally).await {
            Ok(Body::Whole(body)) => body,
            Ok(Body::Longer(_)) => {
                let most = self.source.max_body.0;
                let message = format!("{what} answered with more than {most} bytes; see source.max_body");
                return Err(Trouble::of(FailureKind::TooLarge, message));
            }
            Err(error) => return Err(self.broken(what, error)),
        };
        match read(body, content_type.as_deref(), ask.is_list, fetch.known) {
            Ok(page) => {
                tally.credits += 1;
                if let Some(credit) = page.metadata.credit.get() {
                    self.report_credit(credit, tally);
                }
                self.learnt().accepted_at = Some(self.clock.now());
                Ok(page)
            }
            Err(NoAnswer::Malformed { problem, is_broken }) => {
                let message = shown::without_key(&format!("{what} answered {problem}"), fetch.key.as_ref());
                let again = if is_broken { Again::AfterBackoff } else { Again::No };
                Err(Trouble { again, ..Trouble::of(FailureKind::BadAnswer, message) })
            }
            Err(NoAnswer::Refused { code, message, credit }) => {
                if let Some(credit) = &credit {
                    self.report_credit(credit, tally);
                }
                let code = code.and_then(|code| u16::try_from(code).ok()).and_then(|code| StatusCode::from_u16(code).ok());
                let message = message.map(|text| shown::without_key(&text, fetch.key.as_ref()));
                let said = said(message.as_deref());
                match code {
                    Some(code) if code.is_client_error() || code.is_server_error() => {
                        let answered = format!("{what} answered status 200 with `status: false` and {code}{said}");
                        Err(self.trouble_of(fetch, code, what, answered, retry_after))
                    }
                    _ => Err(Trouble::of(FailureKind::BadAnswer, format!("{what} answered with `status: false`{said}"))),
                }
            }
        }
    }

    /// Any status but 200.
    async fn refusal(&self, fetch: &Fetch<'_>, what: &str, server: &Server, response: Response, tally: &mut Tally) -> Trouble {
        let status = response.status();
        let retry_after = self.retry_after(response.headers());
        if status.is_redirection() {
            let target = response
                .headers()
                .get(LOCATION)
                .and_then(|value| value.to_str().ok())
                .and_then(|target| server.base.join(target).ok())
                .and_then(|target| target.host_str().map(shown::excerpt));
            let to = target.map_or_else(|| "nowhere".to_owned(), |host| format!("to {host}"));
            let message = format!(
                "{what} answered {status}, a redirect {to}; redirects are not followed, for they would carry the key along"
            );
            return Trouble::of(FailureKind::UnexpectedStatus, message);
        }
        let body = match self.body(response, MAX_ERROR_BODY, tally).await {
            Ok(Body::Whole(body) | Body::Longer(body)) => body,
            Err(_) => Vec::new(), // the status says enough
        };
        let (message, credit) = envelope::read_error(&body);
        if let Some(credit) = &credit {
            self.report_credit(credit, tally);
        }
        let message = message.map(|text| shown::without_key(&text, fetch.key.as_ref()));
        let answered = format!("{what} answered {status}{}", said(message.as_deref()));
        self.trouble_of(fetch, status, what, answered, retry_after)
    }

    /// Reads a body up to `most` decoded bytes.
    async fn body(&self, mut response: Response, most: u64, tally: &mut Tally) -> Result<Body, reqwest::Error> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let told = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        let mut body = Vec::with_capacity(told.min(most).min(MAX_TRUSTED_LENGTH));
        while let Some(chunk) = response.chunk().await? {
            tally.bytes += chunk.len() as u64;
            if body.len().saturating_add(chunk.len()) > most {
                body.extend_from_slice(chunk.get(..most - body.len()).unwrap_or_default());
                return Ok(Body::Longer(body));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Body::Whole(body))
    }

    fn report_credit(&self, credit: &Credit, tally: &mut Tally) {
        tally.credit = Some(credit.clone());
        self.learnt().credit = Some(credit.clone());
    }
}

/// Reads a page: where an answer is `known`, goes through its `data` only if it is another one. One page of several is compared
/// with it once they are all here.
pub(super) fn read(
    body: Vec<u8>,
    content_type: Option<&str>,
    is_list: bool,
    known: Option<ContentHash>,
) -> Result<Page, NoAnswer> {
    let Some(known) = known else { return envelope::read(body, content_type, is_list) };
    let body = match envelope::skim(body, is_list) {
        Ok(page) if page.metadata.total_pages.copied().is_some_and(|pages| pages > 1) => return Ok(page),
        Ok(page) if walk::hash(std::slice::from_ref(&page)) == known => return Ok(page),
        Ok(page) => page.into_body(),
        Err(body) => body,
    };
    envelope::read(body, content_type, is_list)
}

enum Body {
    Whole(Vec<u8>),
    /// Cut off at the bound.
    Longer(Vec<u8>),
}

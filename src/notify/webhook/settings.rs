//! From the config of a webhook receiver to one that can send, or to every reason why not.

use std::sync::atomic::AtomicU64;

use super::{WebhookReceiver, address::check_address, signature::signing_keys};
use crate::KeyProblem;
use crate::format::{Credential, DEFAULT_FORMAT, FORMAT_NAMES, FormatKey, FormatKeyValue, FormatSpec, WebhookFormat};
use crate::network::Guard;
use crate::pace::RequestPace;
use crate::progress::TakenParts;
use model::{config, diagnostic, text::error_chain};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

impl WebhookReceiver {
    /// Checks a receiver's config and makes its client. Reads the files that it names, and connects nowhere. All problems are pushed
    /// to `problems`; None where there was one.
    pub(crate) fn build(
        receiver: &config::ReceiverSettings,
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
        problems: &mut Vec<KeyProblem>,
    ) -> Option<Self> {
        let before = problems.len();
        let spec = format_of(receiver, problems);
        let guard = allowed_networks(receiver, problems);
        let address = address_of(receiver, spec, &guard, problems);
        let format = read_format(receiver, spec, problems);
        let bearer = spec.key_for(FormatKeyValue::BearerToken).map(|key| key.credential(receiver));
        let signing = spec.key_for(FormatKeyValue::SigningSecrets).map(|key| key.credential(receiver));
        if let Some(signing) = &signing {
            check_secret(signing, signing.given_as, problems, |text| signing_keys(text).map(|_| ()));
        }
        let client = client(receiver, guard.clone(), delivery, problems);
        if problems.len() > before {
            return None;
        }
        Some(Self {
            spec,
            format: format?,
            address,
            bearer,
            signing,
            guard,
            client: client?,
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
            pace: spec.pace.map(|(burst, pause)| RequestPace::new(burst, pause)),
            progress: TakenParts::default(),
            template_failures: AtomicU64::new(0),
        })
    }
}

/// The format that is named; where there is none of that name, the default, so that the rest is checked all the same.
fn format_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> &'static FormatSpec {
    let Some(word) = receiver.format.as_deref() else { return DEFAULT_FORMAT };
    FormatSpec::named(word).unwrap_or_else(|| {
        let meant = diagnostic::closest(word, FORMAT_NAMES).unwrap_or(DEFAULT_FORMAT.name);
        problems.push(KeyProblem::wrong("format", format!("{word:?} is no format: did you mean \"{meant}\"?")));
        DEFAULT_FORMAT
    })
}

fn allowed_networks(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> Guard {
    let mut allowed = Vec::new();
    for text in &receiver.allow_networks {
        match text.parse() {
            Ok(network) => allowed.push(network),
            Err(message) => problems.push(KeyProblem::wrong("allow_networks", message)),
        }
    }
    Guard::new(allowed)
}

fn address_of(
    receiver: &config::ReceiverSettings,
    spec: &FormatSpec,
    guard: &Guard,
    problems: &mut Vec<KeyProblem>,
) -> Credential {
    let given_as = if receiver.url.is_none() && receiver.url_file.is_some() { "url_file" } else { "url" };
    let address = Credential { key: "url", given_as, secret: receiver.address() };
    let is_there = check_secret(&address, given_as, problems, |text| {
        check_address(text, guard).map(|_| ()).map_err(|error| error.to_string())
    });
    if !is_there && spec.address.is_none() {
        let credential = format!("{}-url", receiver.name);
        let message = format!("a webhook needs its address: give `url`, `url_file`, or the credential `{credential}`");
        problems.push(KeyProblem::absent("url", message));
    }
    address
}

/// The format with its settings, where it has all that it needs.
fn read_format(receiver: &config::ReceiverSettings, spec: &FormatSpec, problems: &mut Vec<KeyProblem>) -> Option<WebhookFormat> {
    let before = problems.len();
    for key in spec.keys {
        let is_there = match key.value {
            // Its words are keys; it is checked by itself.
            FormatKeyValue::SigningSecrets => true,
            secret if secret.is_secret() => check_secret(&key.credential(receiver), key.name, problems, check_header_text),
            _ => is_given(receiver, key),
        };
        if key.is_needed && !is_there {
            let message = format!("a receiver of format {:?} needs `{}`", spec.name, key.name);
            problems.push(match key.value.is_secret() {
                true => KeyProblem::absent(key.name, message),
                false => KeyProblem::wrong(key.name, message),
            });
        }
    }
    if problems.len() > before {
        return None;
    }
    spec.read(receiver).map_err(|problem| problems.push(problem)).ok()
}

fn is_given(receiver: &config::ReceiverSettings, key: &FormatKey) -> bool {
    let is_there = |name: &str| receiver.format_keys.contains_key(name);
    is_there(key.name) || key.file.is_some_and(is_there)
}

fn check_header_text(text: &str) -> Result<(), String> {
    let why = match text {
        "" => "is empty",
        _ if text.chars().any(char::is_control) => "holds a line break or another control character",
        _ => return Ok(()),
    };
    Err(format!("a secret of the receiver {why}"))
}

/// Reads a secret and checks it; whether it is given at all. A problem is that of `key`.
fn check_secret(
    credential: &Credential,
    key: &'static str,
    problems: &mut Vec<KeyProblem>,
    check: impl FnOnce(&str) -> Result<(), String>,
) -> bool {
    match credential.secret.resolve() {
        Err(error) => problems.push(KeyProblem::unreadable(key, error_chain(&error))),
        Ok(None) => return false,
        Ok(Some(text)) => problems.extend(check(text.expose()).err().map(|message| KeyProblem::wrong(key, message))),
    }
    true
}

/// A client that goes nowhere but where it is told.
fn client(
    receiver: &config::ReceiverSettings,
    guard: Guard,
    delivery: &config::DeliverySettings,
    problems: &mut Vec<KeyProblem>,
) -> Option<reqwest::Client> {
    crate::install_tls_provider();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("cliffwatch/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .dns_resolver(guard)
        .connect_timeout(CONNECT_TIMEOUT.min(delivery.timeout.0))
        .timeout(delivery.timeout.0)
        .pool_max_idle_per_host(delivery.concurrency as usize);
    let certificates = crate::read_certificates(receiver).map_err(|problem| problems.push(problem)).ok()?;
    let key = if certificates.is_some() { "tls_ca_file" } else { "type" };
    if let Some(pem) = certificates {
        match reqwest::Certificate::from_pem_bundle(&pem) {
            Ok(certificates) => builder = builder.tls_certs_merge(certificates),
            Err(error) => {
                let message = format!("not a PEM file with certificates: {}", error_chain(&error));
                problems.push(KeyProblem::wrong(key, message));
                return None;
            }
        }
    }
    let built = builder.build().map_err(|error| {
        let message = format!("cannot make the HTTP client: {}", error_chain(&error.without_url()));
        problems.push(KeyProblem::wrong(key, message));
    });
    built.ok()
}

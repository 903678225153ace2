//! Validates the config of a webhook receiver.

use std::sync::atomic::AtomicU64;

use super::{WebhookReceiver, address::check_address, signature::signing_keys};
use crate::KeyProblem;
use crate::allowed_addresses::Guard;
use crate::format::{Credential, DEFAULT_FORMAT, FORMAT_NAMES, FormatKey, FormatKeyValue, FormatSpec, WebhookFormat};
use crate::pace::RequestPace;
use crate::progress::AcceptedParts;
use model::{config, diagnostic, text::error_chain};

const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

impl WebhookReceiver {
    /// Validates a receiver's config and creates its HTTP client, but opens no connection. Pushes all problems to `problems`, and
    /// returns `None` if there were any.
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
        if let Some(signing) = spec.key_for(FormatKeyValue::SigningSecrets).map(|key| key.credential(receiver)) {
            check_secret(&signing, signing.given_as, problems, |text| signing_keys(text).map(|_| ()));
        }
        let secrets = spec.keys.iter().filter(|key| key.value.is_secret()).map(|key| key.credential(receiver)).collect();
        let client = client(receiver, guard.clone(), delivery, problems);
        if problems.len() > before {
            return None;
        }
        Some(Self {
            spec,
            format: format?,
            address,
            secrets,
            guard,
            client: client?,
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
            pace: spec.pace.map(|(burst, pause)| RequestPace::new(burst, pause)),
            progress: AcceptedParts::default(),
            template_failures: AtomicU64::new(0),
        })
    }
}

/// Returns the configured format, or the default one if its name is unknown, so that the other keys are checked all the same.
fn format_of(receiver: &config::ReceiverSettings, problems: &mut Vec<KeyProblem>) -> &'static FormatSpec {
    let Some(word) = receiver.format.as_deref() else { return DEFAULT_FORMAT };
    FormatSpec::named(word).unwrap_or_else(|| {
        let meant = diagnostic::closest(word, FORMAT_NAMES).unwrap_or(DEFAULT_FORMAT.name);
        problems.push(KeyProblem::wrong("format", format!("{word:?} is not a format: did you mean \"{meant}\"?")));
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
        let message = format!("a webhook receiver needs a URL: set `url`, `url_file`, or the credential `{credential}`");
        problems.push(KeyProblem::absent("url", message));
    }
    address
}

/// Reads the settings of the format, or returns `None` if a required key is missing or invalid.
fn read_format(receiver: &config::ReceiverSettings, spec: &FormatSpec, problems: &mut Vec<KeyProblem>) -> Option<WebhookFormat> {
    let before = problems.len();
    for key in spec.keys {
        let is_there = match key.value {
            // Signing secrets are parsed, and checked by the caller.
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
        _ if text.chars().any(char::is_control) => "contains a line break or another control character",
        _ => return Ok(()),
    };
    Err(format!("a secret of the receiver {why}"))
}

/// Reads and checks a secret, and pushes a problem under `key`. Returns whether the secret is configured.
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

/// Creates a client that follows no redirects, uses no proxy, and connects only to allowed addresses.
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
        let message = format!("cannot create the HTTP client: {}", error_chain(&error.without_url()));
        problems.push(KeyProblem::wrong(key, message));
    });
    built.ok()
}

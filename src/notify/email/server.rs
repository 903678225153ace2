//! The address of a mail server, and connections to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, path::Path};

use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder};
use lettre::transport::smtp::extension::ClientId;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::time::Instant;
use url::{Host, Url};

use super::pool::quit;
use super::session::step;
use crate::{KeyProblem, SendResult, allowed_addresses};
use model::text::error_chain;

// Default ports of mail submission.
const SUBMISSION_PORT: u16 = 587;
const SUBMISSIONS_PORT: u16 = 465;

const EXAMPLE: &str = "example: \"smtp://mail.example.com:587\" or \"smtps://mail.example.com:465\"";

#[derive(Debug)]
pub(super) struct MailServer {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: MailSecurity,
}

pub(super) enum MailSecurity {
    /// No encryption, which is allowed on loopback only.
    Plain,
    /// STARTTLS, which must succeed before any other command.
    StartTls(TlsTrust),
    /// TLS from the first byte.
    Implicit(TlsTrust),
}

/// The certificates that identify the server.
pub(super) struct TlsTrust {
    /// Accepts certificates for the server's name, issued by an authority of the system or of `tls_ca_file`.
    verified: TlsParameters,
    pinned: Option<PinnedCertificates>,
}

#[cfg(test)]
impl TlsTrust {
    /// Trusts only the authorities of `tls`, and pins no certificate.
    pub(super) fn verified(tls: TlsParameters) -> Self {
        Self { verified: tls, pinned: None }
    }
}

/// The server certificates in `tls_ca_file`, such as a self-signed one. Ordinary verification rejects a certificate that is used
/// both as authority and as server certificate. These are trusted because the operator listed them; the handshake proves that the
/// server has the private key.
struct PinnedCertificates {
    /// Accepts any certificate. The caller compares it before it sends a command.
    tls: TlsParameters,
    certificates: Vec<CertificateDer<'static>>,
    /// Whether the server presented a pinned certificate last time.
    is_presented: AtomicBool,
}

/// Returns TLS parameters that accept any certificate. The caller must compare it with the pinned ones.
fn any_certificate(host: &str) -> TlsParametersBuilder {
    let builder = TlsParameters::builder(host.to_owned());
    builder.dangerous_accept_invalid_certs(true).dangerous_accept_invalid_hostnames(true)
}

impl fmt::Debug for MailSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MailSecurity::Plain => "Plain",
            MailSecurity::StartTls(_) => "StartTls",
            MailSecurity::Implicit(_) => "Implicit",
        })
    }
}

impl MailServer {
    /// Parses the config key `smtp`.
    pub(super) fn parse(text: &str, certificates: Option<&[u8]>, file: Option<&Path>) -> Result<Self, KeyProblem> {
        let wrong = |why: &str| KeyProblem::wrong("smtp", format!("{why}: {EXAMPLE}"));
        // The errors never quote the text, which may contain a password by mistake.
        let url = Url::parse(text.trim()).map_err(|_| wrong("not a valid mail server URL"))?;
        if !matches!(url.scheme(), "smtp" | "smtps") {
            return Err(wrong("a mail server URL must begin with smtp:// or smtps://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a mail server URL must not contain a login; use `username` and `password_file`"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("a mail server URL must end after host and port"));
        }
        let name = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("the mail server URL has no host"))?;
        // The URL parser does not validate the host of a scheme that it does not know.
        let host = Host::parse(name).map_err(|_| wrong("the host of the mail server is not a valid host name"))?;
        let is_loopback = allowed_addresses::is_loopback_host(&match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(v4) => Host::Ipv4(*v4),
            Host::Ipv6(v6) => Host::Ipv6(*v6),
        });
        let host = match host {
            Host::Domain(name) => name,
            Host::Ipv4(v4) => v4.to_string(),
            Host::Ipv6(v6) => v6.to_string(),
        };
        let tls = || {
            let mut builder = TlsParameters::builder(host.clone());
            let mut named = Vec::new();
            if let Some(pem) = certificates {
                let certificate = Certificate::from_pem(pem).map_err(|error| {
                    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
                    KeyProblem::wrong(
                        "tls_ca_file",
                        format!("{file} is not a PEM file with certificates: {}", error_chain(&error)),
                    )
                })?;
                builder = builder.add_root_certificate(certificate);
                named = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
            }
            let failed = |error: lettre::transport::smtp::Error| {
                KeyProblem::wrong("smtp", format!("cannot prepare TLS for the mail server: {}", error_chain(&error)))
            };
            let pinned = match named.is_empty() {
                true => None,
                false => Some(PinnedCertificates {
                    tls: any_certificate(&host).build().map_err(failed)?,
                    certificates: named,
                    is_presented: AtomicBool::new(false),
                }),
            };
            Ok(TlsTrust { verified: builder.build().map_err(failed)?, pinned })
        };
        let (port, security) = match url.scheme() {
            "smtps" => (SUBMISSIONS_PORT, MailSecurity::Implicit(tls()?)),
            // No one can eavesdrop on loopback, but a configured certificate requests TLS all the same.
            _ if is_loopback && certificates.is_none() => (SUBMISSION_PORT, MailSecurity::Plain),
            _ => (SUBMISSION_PORT, MailSecurity::StartTls(tls()?)),
        };
        Ok(Self { port: url.port().unwrap_or(port), host, security })
    }

    /// Opens a connection that is ready for login, with TLS if configured.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<AsyncSmtpConnection, SendResult> {
        let trust = match &self.security {
            MailSecurity::Plain => return self.connect_by(None, deadline).await,
            MailSecurity::StartTls(trust) | MailSecurity::Implicit(trust) => trust,
        };
        let Some(pinned) = &trust.pinned else { return self.connect_by(Some(&trust.verified), deadline).await };
        if pinned.is_presented.load(Ordering::Relaxed)
            && let Some(connection) = self.connect_pinned(pinned, deadline).await?
        {
            return Ok(connection);
        }
        match self.connect_by(Some(&trust.verified), deadline).await {
            // The library reports a certificate error only in its text.
            Err(refused) if refused.status.is_none() && refused.text.contains("certificate") => {
                let connection = self.connect_pinned(pinned, deadline).await?;
                pinned.is_presented.store(connection.is_some(), Ordering::Relaxed);
                connection.ok_or(refused)
            }
            result => result,
        }
    }

    /// Opens a connection if the server presents a pinned certificate. Returns `None` if it presents another one.
    async fn connect_pinned(
        &self,
        pinned: &PinnedCertificates,
        deadline: Instant,
    ) -> Result<Option<AsyncSmtpConnection>, SendResult> {
        let connection = self.connect_by(Some(&pinned.tls), deadline).await?;
        let presented = connection.peer_certificate().unwrap_or_default();
        if pinned.certificates.iter().any(|named| named.as_ref() == presented) {
            return Ok(Some(connection));
        }
        quit(connection);
        Ok(None)
    }

    async fn connect_by(&self, tls: Option<&TlsParameters>, deadline: Instant) -> Result<AsyncSmtpConnection, SendResult> {
        let Self { host, port, security } = self;
        let hello = ClientId::default();
        let implicit = tls.filter(|_| matches!(security, MailSecurity::Implicit(_))).cloned();
        let address = (host.as_str(), *port);
        // The name of a server can have several addresses, and the first one may be unreachable.
        let per_address = Some(deadline.saturating_duration_since(Instant::now()) / 3);
        let connecting = AsyncSmtpConnection::connect_tokio1(address, per_address, &hello, implicit, None);
        let mut connection = step(deadline, "the greeting", connecting).await?;
        if let (MailSecurity::StartTls(_), Some(tls)) = (security, tls) {
            if !connection.can_starttls() {
                quit(connection);
                let text = "the mail server does not offer STARTTLS, and mail is never sent unencrypted over a network: use a server \
                            or port with STARTTLS, or smtps://";
                return Err(SendResult::later(text));
            }
            step(deadline, "STARTTLS", connection.starttls(tls.clone(), &hello)).await?;
        }
        Ok(connection)
    }
}

//! How a mail server is reached: its address, and the way to a connection on which mail may be sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, path::Path};

use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder};
use lettre::transport::smtp::extension::ClientId;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::time::Instant;
use url::{Host, Url};

use super::pool::hang_up;
use super::session::{SessionFailure, step};
use crate::{KeyProblem, network, retry::Outcome};
use model::text::error_chain;

/// Ports of submission.
const SUBMISSION_PORT: u16 = 587;
const SUBMISSIONS_PORT: u16 = 465;

const EXAMPLE: &str = "write it like \"smtp://mail.example.com:587\" or \"smtps://mail.example.com:465\"";

#[derive(Debug)]
pub(super) struct MailServer {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: MailSecurity,
}

pub(super) enum MailSecurity {
    /// As it is: loopback alone.
    Plain,
    /// Plain until STARTTLS, which must succeed before anything else is said.
    StartTls(TlsTrust),
    /// From the first byte.
    Implicit(TlsTrust),
}

/// Whom we believe to be the server.
pub(super) struct TlsTrust {
    /// Whoever has a certificate of the system's authorities, or of those of `tls_ca_file`, for the server's name.
    verified: TlsParameters,
    pinned: Option<PinnedCertificates>,
}

#[cfg(test)]
impl TlsTrust {
    /// Nothing but what the system's authorities, or those of the parameters, vouch for.
    pub(super) fn verified(tls: TlsParameters) -> Self {
        Self { verified: tls, pinned: None }
    }
}

/// A server's own certificate that `tls_ca_file` names, such as one that it made and signed itself. The verification by authorities takes
/// it for one that signs others, and refuses it. Who presents it has its key, as the handshake shows; that it was named is the trust.
struct PinnedCertificates {
    /// Takes any certificate: what came is compared before anything is said.
    tls: TlsParameters,
    certificates: Vec<CertificateDer<'static>>,
    /// Whether one of them was presented last time.
    is_presented: AtomicBool,
}

/// Takes whatever certificate comes, of whatever name; whether it is one that was named is for us to say.
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
    /// Reads `smtp`: what is wrong comes back with the key it belongs to.
    pub(super) fn parse(text: &str, certificates: Option<&[u8]>, file: Option<&Path>) -> Result<Self, KeyProblem> {
        let wrong = |why: &str| KeyProblem::wrong("smtp", format!("{why}: {EXAMPLE}"));
        // A password in it is a mistake that must not be repeated in a message, so the text never is.
        let url = Url::parse(text.trim()).map_err(|_| wrong("this is no address of a mail server"))?;
        if !matches!(url.scheme(), "smtp" | "smtps") {
            return Err(wrong("a mail server's address begins with smtp:// or smtps://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a mail server's address holds no login: give `username` and `password_file`"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("a mail server's address is a host and a port, nothing behind them"));
        }
        let name =
            url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("the mail server's address names no host"))?;
        // A scheme that the URL standard does not know leaves the host unread.
        let host = Host::parse(name).map_err(|_| wrong("the mail server's host is no host name"))?;
        let is_loopback = network::is_loopback_host(&match &host {
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
                    KeyProblem::wrong("tls_ca_file", format!("{file} is no PEM file with certificates: {}", error_chain(&error)))
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
            // On this machine nobody listens in between; a certificate of one's own asks for TLS all the same.
            _ if is_loopback && certificates.is_none() => (SUBMISSION_PORT, MailSecurity::Plain),
            _ => (SUBMISSION_PORT, MailSecurity::StartTls(tls()?)),
        };
        Ok(Self { port: url.port().unwrap_or(port), host, security })
    }

    /// A new connection on which mail may be sent: greeted, and encrypted where that is asked for.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<AsyncSmtpConnection, SessionFailure> {
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
            // The library says in words alone that it was the certificate.
            Err(refused) if refused.code.is_none() && refused.text.contains("certificate") => {
                let connection = self.connect_pinned(pinned, deadline).await?;
                pinned.is_presented.store(connection.is_some(), Ordering::Relaxed);
                connection.ok_or(refused)
            }
            result => result,
        }
    }

    /// A connection to a server that presents a certificate which was named; none where it presents another.
    async fn connect_pinned(
        &self,
        pinned: &PinnedCertificates,
        deadline: Instant,
    ) -> Result<Option<AsyncSmtpConnection>, SessionFailure> {
        let connection = self.connect_by(Some(&pinned.tls), deadline).await?;
        let presented = connection.peer_certificate().unwrap_or_default();
        if pinned.certificates.iter().any(|named| named.as_ref() == presented) {
            return Ok(Some(connection));
        }
        hang_up(connection);
        Ok(None)
    }

    async fn connect_by(&self, tls: Option<&TlsParameters>, deadline: Instant) -> Result<AsyncSmtpConnection, SessionFailure> {
        let Self { host, port, security } = self;
        let hello = ClientId::default();
        let implicit = tls.filter(|_| matches!(security, MailSecurity::Implicit(_))).cloned();
        let address = (host.as_str(), *port);
        let connecting = AsyncSmtpConnection::connect_tokio1(address, None, &hello, implicit, None);
        let mut connection = step(deadline, "the greeting", connecting).await?;
        if let (MailSecurity::StartTls(_), Some(tls)) = (security, tls) {
            if !connection.can_starttls() {
                hang_up(connection);
                let text = "the mail server offers no STARTTLS, and nothing is sent in plain text over a network: use a server or port \
                            that does, or smtps://";
                return Err(SessionFailure { outcome: Outcome::LATER, code: None, text: text.into() });
            }
            step(deadline, "STARTTLS", connection.starttls(tls.clone(), &hello)).await?;
        }
        Ok(connection)
    }
}

//! TLS connections to the server, with the TLS library of the rest of the program, and explanations of failures.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::PgFault;

type Cause = Box<dyn Error + Send + Sync>;

/// The maximum number of certificate names in a message, and of the characters of each.
const NAMES_SHOWN: usize = 5;
const MAX_NAME: usize = 80;

/// The reason why a TLS connection failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsProblem {
    #[error("cannot read the trusted certificates from {}: correct `tls_ca_file`", path.display())]
    CaFile { path: PathBuf, source: Cause },
    #[error("{} contains no certificate in PEM format: correct `tls_ca_file`", path.display())]
    EmptyCaFile { path: PathBuf },
    #[error(
        "this system has no trusted certificates: install them (Debian: ca-certificates), or set `tls_ca_file` in [store] (or `sslrootcert` in the URL)"
    )]
    NoAuthorities(#[source] Cause),
    #[error(
        "its certificate is not signed by a trusted authority: set `tls_ca_file` in [store] (or `sslrootcert` in the URL) to the certificate of the authority or of the server"
    )]
    UnknownIssuer,
    #[error(
        "its certificate is a CA certificate, and not trusted itself: set `tls_ca_file` in [store] (or `sslrootcert` in the URL) to this certificate"
    )]
    CaCertificate,
    #[error(
        "its certificate is not valid for the host in the URL{}: use a name of the certificate, or give the server a certificate for this host",
        names(_0)
    )]
    NameMismatch(Vec<String>),
    #[error("its certificate has expired: renew it, or correct the clock of this machine")]
    Expired,
    #[error("its certificate is not valid yet: correct the clock of this machine")]
    NotYetValid,
    #[error(
        "it does not support encryption: set `ssl = on` on the server, or add `?sslmode=disable` to the URL if the network is trusted"
    )]
    NotSupported,
    #[error("its certificate cannot be used: {0:?}")]
    Certificate(CertificateError),
}

fn names(presented: &[String]) -> String {
    let shown: Vec<String> = presented.iter().take(NAMES_SHOWN).map(|name| model::text::replaced(name, '?', MAX_NAME)).collect();
    match shown.is_empty() {
        true => ": it has no subjectAltName (the CN is ignored)".to_owned(),
        false => format!(", only for {}", shown.join(", ")),
    }
}

impl TlsProblem {
    /// Returns whether the problem can end without a change of our configuration.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Expired | Self::NotYetValid)
    }

    /// Returns the TLS problem behind a connection error.
    pub(super) fn of(error: &tokio_postgres::Error) -> Option<Self> {
        let cause = error.source()?;
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return match error.get_ref()?.downcast_ref::<rustls::Error>()? {
                rustls::Error::InvalidCertificate(problem) => Some(Self::of_certificate(problem)),
                _ => None,
            };
        }
        // The driver reports an unencrypted server only as text.
        (cause.to_string() == "server does not support TLS").then_some(Self::NotSupported)
    }

    fn of_certificate(problem: &CertificateError) -> Self {
        match problem {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::NotValidForName => Self::NameMismatch(Vec::new()),
            CertificateError::NotValidForNameContext { presented, .. } => Self::NameMismatch(presented.clone()),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => Self::CaCertificate,
            other => Self::Certificate(other.clone()),
        }
    }
}

/// Returns the TLS configuration: with the certificates of the file, or else the certificates that the system trusts. Reads
/// files.
pub(super) fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, PgFault> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| PgFault::Unreachable(Box::new(error)))?;
    let Some(path) = ca_file else {
        let builder = builder.with_platform_verifier().map_err(|error| TlsProblem::NoAuthorities(Box::new(error)))?;
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let unread = |source: Cause| TlsProblem::CaFile { path: path.to_owned(), source };
    let named = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let named = named.map_err(|error| unread(Box::new(error)))?;
    if named.is_empty() {
        return Err(TlsProblem::EmptyCaFile { path: path.to_owned() }.into());
    }
    let mut roots = RootCertStore::empty();
    for certificate in &named {
        roots.add(certificate.clone()).map_err(|error| unread(Box::new(error)))?;
    }
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let authorities = authorities.build().map_err(|error| unread(Box::new(error)))?;
    let verifier = NamedCertificates { named, authorities };
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()))
}

/// Accepts certificates signed by an authority of the file, and certificates that are in the file themselves. The
/// latter allows the self-signed certificates of PostgreSQL's documentation, which the usual verification rejects as CA
/// certificates. The handshake proves that the server has the key.
#[derive(Debug)]
struct NamedCertificates {
    named: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.named.iter().any(|named| named.as_ref() == presented.as_ref()) {
            true => Ok(ServerCertVerified::assertion()),
            false => self.authorities.verify_server_cert(presented, between, name, ocsp, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// A TLS connector, or none if the connection is unencrypted.
#[derive(Clone)]
pub(super) struct OptionalTls(Option<Arc<ClientConfig>>);

impl OptionalTls {
    pub(super) fn plain() -> Self {
        Self(None)
    }

    pub(super) fn tls(config: Arc<ClientConfig>) -> Self {
        Self(Some(config))
    }
}

impl MakeTlsConnect<Socket> for OptionalTls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let Some(config) = &self.0 else { return Ok(Handshake(None)) };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Handshake(Some((TlsConnector::from(config.clone()), name))))
    }
}

/// A TLS handshake to be made.
pub(super) struct Handshake(Option<(TlsConnector, ServerName<'static>)>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let Some((connector, name)) = self.0 else { return Err(io::Error::other("encryption is disabled")) };
            Ok(Encrypted(Box::new(connector.connect(name, stream).await?)))
        })
    }
}

pub(super) struct Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is verified already, and channel binding would need another hash library.
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}

//! Encrypted connections to the server, by the TLS that the rest of the program uses, and what is wrong where none comes about.

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

type Failed = Box<dyn Error + Send + Sync>;

/// Names of a certificate that a message repeats, and how much of each.
const NAMES_SHOWN: usize = 5;
const MAX_NAME: usize = 80;

/// Why no encrypted connection comes about, and what helps.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsProblem {
    #[error("the certificates to trust cannot be read from {}: correct `tls_ca_file`", path.display())]
    CaFile { path: PathBuf, source: Failed },
    #[error("{} holds no certificate in PEM form: correct `tls_ca_file`", path.display())]
    EmptyCaFile { path: PathBuf },
    #[error(
        "this system trusts no authority: install its certificates (Debian: ca-certificates), or name some by `tls_ca_file` of [store] (or `sslrootcert` in the address)"
    )]
    NoAuthorities(#[source] Failed),
    #[error(
        "its certificate is signed by nobody who is trusted here: name the certificate of its authority, or its own, by `tls_ca_file` of [store] (or `sslrootcert` in the address)"
    )]
    UnknownIssuer,
    #[error(
        "its certificate is one that signs others, and is not named as trusted: name that very certificate by `tls_ca_file` of [store] (or `sslrootcert` in the address)"
    )]
    SignsOthers,
    #[error(
        "its certificate is not for the name in the address{}: write one of those it is for, or give the server one for this name",
        names(_0)
    )]
    OtherName(Vec<String>),
    #[error("its certificate has ended: give the server a new one; if it has not, this machine's clock is wrong")]
    Ended,
    #[error("its certificate is not valid yet: see whether this machine's clock is right")]
    NotYet,
    #[error(
        "it does not encrypt: set `ssl = on` there, or, where nobody can listen in between, say `?sslmode=disable` in the address"
    )]
    NotOffered,
    #[error("its certificate cannot be used: {0:?}")]
    Certificate(CertificateError),
}

fn names(presented: &[String]) -> String {
    let shown: Vec<String> = presented.iter().take(NAMES_SHOWN).map(|name| model::text::replaced(name, '?', MAX_NAME)).collect();
    match shown.is_empty() {
        true => ", for it has no subjectAltName (its CN counts for nothing)".to_owned(),
        false => format!(", but for {}", shown.join(", ")),
    }
}

impl TlsProblem {
    /// It may be over without anybody changing anything here.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Ended | Self::NotYet)
    }

    /// What an attempt to connect failed of, where it is this.
    pub(super) fn of(error: &tokio_postgres::Error) -> Option<Self> {
        let cause = error.source()?;
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return match error.get_ref()?.downcast_ref::<rustls::Error>()? {
                rustls::Error::InvalidCertificate(problem) => Some(Self::of_certificate(problem)),
                _ => None,
            };
        }
        // The driver says in words alone that the server answered no.
        (cause.to_string() == "server does not support TLS").then_some(Self::NotOffered)
    }

    fn of_certificate(problem: &CertificateError) -> Self {
        match problem {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::NotValidForName => Self::OtherName(Vec::new()),
            CertificateError::NotValidForNameContext { presented, .. } => Self::OtherName(presented.clone()),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Ended,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYet,
            CertificateError::Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => Self::SignsOthers,
            other => Self::Certificate(other.clone()),
        }
    }
}

/// How certificates are checked: by those of the file, else by those that the system trusts. Reads files.
pub(super) fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, PgFault> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| PgFault::Unreachable(Box::new(error)))?;
    let Some(path) = ca_file else {
        let builder = builder.with_platform_verifier().map_err(|error| TlsProblem::NoAuthorities(Box::new(error)))?;
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let unread = |source: Failed| TlsProblem::CaFile { path: path.to_owned(), source };
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

/// Believes those for whom an authority of the file vouches; and a server whose very certificate is in it, such as one that it made and
/// signed itself, as PostgreSQL's own instructions do. An authority's check takes that for one that signs others, and refuses it. Who
/// presents it has its key, as the handshake shows; that it was named is the trust.
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

/// Makes connections encrypted; without a configuration it refuses to.
#[derive(Clone)]
pub(super) struct NoTlsOr(Option<Arc<ClientConfig>>);

impl NoTlsOr {
    pub(super) fn plain() -> Self {
        Self(None)
    }

    pub(super) fn tls(config: Arc<ClientConfig>) -> Self {
        Self(Some(config))
    }
}

impl MakeTlsConnect<Socket> for NoTlsOr {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let Some(config) = &self.0 else { return Ok(Handshake(None)) };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Handshake(Some((TlsConnector::from(config.clone()), name))))
    }
}

/// One handshake that is to come.
pub(super) struct Handshake(Option<(TlsConnector, ServerName<'static>)>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let Some((connector, name)) = self.0 else { return Err(io::Error::other("encryption was not asked for")) };
            Ok(Encrypted(Box::new(connector.connect(name, stream).await?)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate was checked already; a binding would need a second library of hashes.
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

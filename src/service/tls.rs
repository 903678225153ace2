//! TLS without a proxy. Certificates and key are PEM files, read at startup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto::ring};
use tokio_rustls::TlsAcceptor;

#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// An error while loading certificate and key. Contains no part of the key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {what} from {}", path.display())]
    File { what: &'static str, path: PathBuf, source: pem::Error },
    #[error("{} contains no certificate: expected a PEM file", .0.display())]
    NoCertificate(PathBuf),
    #[error("the certificate and the key do not match, or cannot be used")]
    Unfit(#[source] rustls::Error),
}

impl Tls {
    /// Reads the server's certificate, followed by its intermediate certificates, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::File { what, path, source }
        };
        let chain = CertificateDer::pem_file_iter(certificate).map_err(failed("the certificate", certificate))?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(failed("the certificate", certificate))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(certificate.to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(failed("the key", key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(TlsError::Unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

//! TLS of the service's own, for those who have no proxy before it: certificates and key are files of PEM, read at the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto::ring};
use tokio_rustls::TlsAcceptor;

/// With what a listener encrypts.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Why there is no TLS. Holds no part of the key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {what} from {}", path.display())]
    File {
        /// Which of both.
        what: &'static str,
        path: PathBuf,
        source: pem::Error,
    },
    #[error("{} holds no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    #[error("certificate and key do not fit each other, or cannot be used")]
    Unfit(#[source] rustls::Error),
}

impl Tls {
    /// Reads the server's certificate, with those between it and its authority behind it, and its key.
    /// Fails where one cannot be read, or both do not belong together.
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

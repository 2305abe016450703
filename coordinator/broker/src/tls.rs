//! TLS of the listener.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The certificate and key of a listener, loaded and checked.
#[derive(Clone)]
pub struct ListenerTls(pub(crate) Arc<ServerConfig>);

/// The reason why a listener cannot have TLS.
#[derive(Debug, thiserror::Error)]
pub enum ListenerTlsError {
    /// A file cannot be read or is not PEM.
    #[error("cannot read {}: {cause}; name a PEM file", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: pem::Error,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate; name a PEM file with the broker's and those that signed it", .0.display())]
    NoCertificate(PathBuf),
    /// They cannot be used.
    #[error("the broker's certificate and key cannot be used: {0}; make both anew")]
    Rejected(#[from] rustls::Error),
}

impl ListenerTls {
    /// Loads a certificate, with those that signed it, and its private key.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, ListenerTlsError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |cause| ListenerTlsError::File { path, cause }
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .map_err(file(certificate))?
            .collect::<Result<_, _>>()
            .map_err(file(certificate))?;
        if chain.is_empty() {
            return Err(ListenerTlsError::NoCertificate(certificate.to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(file(key))?;
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenerTls")
    }
}

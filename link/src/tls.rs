//! TLS: trusted authorities and the client's certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The PEM files of a TLS configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the trusted authorities; the system's if absent.
    pub ca: Option<PathBuf>,
    /// The client's certificate, with its chain, for brokers that require one.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate`.
    pub key: Option<PathBuf>,
}

/// A TLS configuration that was loaded and checked. Cheap to clone: a fleet shares one.
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<ClientConfig>);

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or is not PEM.
    #[error("cannot read {}: {cause}; name a PEM file", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        cause: pem::Error,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate; name a PEM file with one", .0.display())]
    NoCertificate(PathBuf),
    /// Certificate without key, or the other way round.
    #[error("a client certificate needs its private key and the other way round; name both files or none")]
    Unpaired,
    /// The system has no root certificates.
    #[error("the system has no usable root certificates; name the broker's CA file")]
    NoSystemRoots,
    /// The certificates cannot be used.
    #[error("the certificates cannot be used: {0}")]
    Rejected(#[from] rustls::Error),
}

impl Tls {
    /// Loads the files.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let roots = match &files.ca {
            Some(path) => roots_of(path)?,
            None => system_roots()?,
        };
        // Named here, so that a program needs no process-wide crypto provider.
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match (&files.certificate, &files.key) {
            (Some(certificate), Some(key)) => {
                builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?)?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(TlsError::Unpaired),
        };
        Ok(Self(Arc::new(config)))
    }

    /// The configuration, for connections of other protocols.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn roots_of(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsError::NoSystemRoots) } else { Ok(roots) }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |cause| TlsError::File { path: path.to_owned(), cause };
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(file)?.collect::<Result<_, _>>().map_err(file)?;
    if certificates.is_empty() { Err(TlsError::NoCertificate(path.to_owned())) } else { Ok(certificates) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|cause| TlsError::File { path: path.to_owned(), cause })
}

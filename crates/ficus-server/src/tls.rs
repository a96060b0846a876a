//! TLS: from PEM files to an acceptor.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig as RustlsConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::TlsConfig;

/// Reads certificate and key. Errors name the file.
pub(crate) fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, String> {
    let fault = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&config.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| fault(&config.certificate, &error))?;
    if certificates.is_empty() {
        return Err(fault(&config.certificate, &"holds no certificate in PEM form"));
    }
    let key = PrivateKeyDer::from_pem_file(&config.key).map_err(|error| fault(&config.key, &error))?;
    let mut rustls = RustlsConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| fault(&config.key, &error))?;
    rustls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(rustls)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let config = TlsConfig { certificate: "/nowhere/cert.pem".into(), key: "/nowhere/key.pem".into() };
        assert!(acceptor(&config).is_err_and(|message| message.starts_with("/nowhere/cert.pem: ")));
    }
}

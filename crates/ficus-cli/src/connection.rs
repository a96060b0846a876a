//! Connections to servers, with or without TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Time in which a server must accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where systems keep the certificates that all programs trust, as OpenSSL is built to look for them.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom a client takes for the server it means.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Trust {
    /// For servers at https:// or wss://: a PEM file of the certificates to trust, instead of those that the system trusts.
    #[arg(long, value_name = "FILE", env = "FICUS_CA_FILE")]
    ca_file: Option<PathBuf>,
}

/// The two ends of a connection's bytes.
pub trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A connection, whatever it goes over.
pub type Connection = Box<dyn Bytes>;

/// Connects to `HOST:PORT`. Errors name it.
pub async fn connect(address: &str, is_encrypted: bool, trust: &Trust) -> Result<Connection, String> {
    let connecting = async {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        // Requests are small and each waits for its answer: they must not wait for more to send.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if !is_encrypted {
            return Ok(Box::new(stream) as Connection);
        }
        let connector = connector(trust)?;
        let name = server_name(address)?;
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream) as Connection),
            Err(error) => Err(told(&error)),
        }
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(connected) => connected.map_err(|reason| format!("{address}: {reason}")),
        Err(_) => Err(format!("{address}: no answer in {} s", CONNECT_TIMEOUT.as_secs())),
    }
}

/// Adds to what went wrong at the beginning of a conversation without TLS that the server may speak it.
pub fn with_hint(reason: String, is_encrypted: bool) -> String {
    // What a server with TLS says to others is no HTTP.
    match !is_encrypted && reason.contains("HTTP version") {
        true => format!("{reason}; if the server speaks TLS, write wss:// or https:// before its name"),
        false => reason,
    }
}

fn told(error: &io::Error) -> String {
    let text = error.to_string();
    if text.contains("UnknownIssuer") {
        return format!("{text}; name its certificate, or that of its issuer, with --ca-file");
    }
    if text.contains("InvalidContentType") {
        return format!("{text}; the server may not speak TLS");
    }
    text
}

/// The name that the server's certificate has to bear.
fn server_name(address: &str) -> Result<ServerName<'static>, String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned()).map_err(|_| format!("'{host}' is no name that a certificate could bear"))
}

fn connector(trust: &Trust) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match &trust.ca_file {
        Some(file) => {
            let certificates = certificates(file)?;
            if certificates.is_empty() {
                return Err(format!("{}: holds no certificate in PEM form", file.display()));
            }
            for certificate in certificates {
                roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        None => {
            let Some(file) = SYSTEM_FILES.iter().map(Path::new).find(|file| file.is_file()) else {
                return Err("the system has no list of certificates to trust; give one with --ca-file".into());
            };
            // There may be old ones among them that nobody can use.
            roots.add_parsable_certificates(certificates(file)?);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_certificates_are_those_of_hosts() {
        for (address, expected) in [
            ("db.example:8182", "DnsName(\"db.example\")"),
            ("127.0.0.1:1", "IpAddress(V4"),
            ("[::1]:1", "IpAddress(V6"),
        ] {
            let name = format!("{:?}", server_name(address).expect(address));
            assert!(name.starts_with(expected), "{name}");
        }
        assert!(server_name("not a name:1").is_err());
    }

    #[test]
    fn files_that_hold_no_certificates_are_named() {
        let trust = |file: &str| Trust { ca_file: Some(file.into()) };
        let refused = |file: &str| connector(&trust(file)).err().expect("it is refused");
        assert!(refused("/nowhere/ca.pem").starts_with("/nowhere/ca.pem: "));
        assert!(refused(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).contains("no certificate"));
    }
}

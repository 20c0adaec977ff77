//! The CA, the client certificate and its key from files, and the TLS configuration that is built from them.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::{Config, client::ConfigExt};
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{
    ConnectError,
    credential_file::{CredentialFileError, Refreshed, read},
};
use crate::kube_api::latest_value::LatestSender;

/// The TLS configuration and the files that it comes from.
pub(super) struct TlsFiles {
    sources: Sources,
    current: LatestSender<Current>,
}

/// The sources of the TLS configuration.
struct Sources {
    /// The configuration without the files.
    config: Config,
    authority: Option<String>,
    client_certificate: Option<String>,
    client_key: Option<String>,
}

/// The contents in use.
struct Current {
    contents: Contents,
    tls: Arc<Tls>,
}

/// The contents of each file.
#[derive(PartialEq, Eq)]
struct Contents {
    authority: Option<Vec<u8>>,
    client_certificate: Option<Vec<u8>>,
    client_key: Option<Vec<u8>>,
}

/// A TLS configuration for each set of HTTP versions.
pub(super) struct Tls {
    pub(super) any_version: Arc<ClientConfig>,
    pub(super) http1_only: Arc<ClientConfig>,
}

impl Tls {
    fn new(config: ClientConfig) -> Tls {
        let mut any_version = config.clone();
        any_version.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Tls {
            any_version: Arc::new(any_version),
            http1_only: Arc::new(config),
        }
    }
}

impl TlsFiles {
    /// Takes the files out of the configuration and reads them.
    pub(super) async fn take(config: &mut Config) -> Result<TlsFiles, ConnectError> {
        let sources = Sources::take(config);
        let contents = sources.read().await?;
        let config = sources.config_of(&contents)?.rustls_client_config();
        let tls = Arc::new(Tls::new(config.map_err(ConnectError::Tls)?));
        let current = LatestSender::new(Current { contents, tls });
        Ok(TlsFiles { sources, current })
    }

    pub(super) fn has_files(&self) -> bool {
        !self.sources.paths().is_empty()
    }

    pub(super) fn current(&self) -> Arc<Tls> {
        Arc::clone(&self.current.borrow().tls)
    }

    /// Reads the files again, and uses the contents if all of them are valid together.
    pub(super) async fn refresh(&self) -> Result<Refreshed, CredentialFileError> {
        let contents = self.sources.read().await?;
        if contents == self.current.borrow().contents {
            return Ok(Refreshed::Same);
        }
        // The source of this error may quote a line of the files.
        let config = self.sources.config_of(&contents)?.rustls_client_config();
        let config = config.map_err(|_| CredentialFileError::Tls {
            paths: self.sources.paths().join(", "),
        })?;
        let tls = Arc::new(Tls::new(config));
        self.current.send_replace(Current { contents, tls });
        Ok(Refreshed::Changed)
    }
}

impl Sources {
    /// As in a kubeconfig, inline data takes precedence over a file.
    fn take(config: &mut Config) -> Sources {
        // A server that is trusted without verification needs no CA.
        let authority = config.root_cert_file.take().filter(|_| !config.accept_invalid_certs);
        let auth = &mut config.auth_info;
        let client_certificate = auth.client_certificate.take();
        let client_key = auth.client_key.take();
        Sources {
            authority: authority.map(|path| path.display().to_string()),
            client_certificate: client_certificate.filter(|_| auth.client_certificate_data.is_none()),
            client_key: client_key.filter(|_| auth.client_key_data.is_none()),
            config: config.clone(),
        }
    }

    fn paths(&self) -> Vec<&str> {
        let paths = [&self.authority, &self.client_certificate, &self.client_key];
        paths.into_iter().flatten().map(String::as_str).collect()
    }

    async fn read(&self) -> Result<Contents, CredentialFileError> {
        Ok(Contents {
            authority: read_if(self.authority.as_deref()).await?,
            client_certificate: read_if(self.client_certificate.as_deref()).await?,
            client_key: read_if(self.client_key.as_deref()).await?,
        })
    }

    /// Returns the configuration with the contents of the files as inline data.
    fn config_of(&self, contents: &Contents) -> Result<Config, CredentialFileError> {
        let Contents {
            authority,
            client_certificate,
            client_key,
        } = contents;
        let mut config = self.config.clone();
        if let (Some(path), Some(pem)) = (&self.authority, authority) {
            let certificates =
                certificates(pem).ok_or_else(|| CredentialFileError::NoAuthority { path: path.clone() })?;
            config.root_cert = Some(certificates);
        }
        let auth = &mut config.auth_info;
        if let Some(pem) = client_certificate {
            auth.client_certificate_data = Some(BASE64_STANDARD.encode(pem));
        }
        if let Some(pem) = client_key {
            auth.client_key_data = Some(BASE64_STANDARD.encode(pem).into());
        }
        Ok(config)
    }
}

async fn read_if(path: Option<&str>) -> Result<Option<Vec<u8>>, CredentialFileError> {
    match path {
        Some(path) => read(path).await.map(Some),
        None => Ok(None),
    }
}

/// Returns at least one certificate; `None` if the text is incomplete.
fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.ok().filter(|certificates| !certificates.is_empty())?;
    Some(
        certificates
            .into_iter()
            .map(|certificate| certificate.to_vec())
            .collect(),
    )
}

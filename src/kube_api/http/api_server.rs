//! The API server of a configuration, with the credentials from its files.
//!
//! Tokens, certificates, keys and the CA can be replaced in their files at any time. A refresh reads the files again,
//! outside of the request path; requests use the contents of the last refresh. A file that cannot be used changes
//! nothing.
//!
//! The first request after a change of a certificate, its key or the CA opens a new connection, and the old one closes
//! after its last answer. The API server checks the client certificate at every request, so an old connection would be
//! refused once its certificate has expired.
//!
//! Data inside a kubeconfig (`*-data`), certificates from a credential plugin, and the CAs of the system are read once.

use std::sync::Arc;

use http::{Request, header::AUTHORIZATION};
use hyper::rt::{Read, Write};
use hyper_rustls::{
    DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, MaybeHttpsStream, ResolveServerName,
};
use hyper_util::client::legacy::connect::Connection;
use kube::{Config, client::Body};
use rustls::ClientConfig;
use tower::util::MapRequestLayer;

use super::{
    ConnectError, Connector,
    credential_file::{CredentialFileError, Refreshed},
    proxy::{Proxy, through_proxy},
    tls_files::{Tls, TlsFiles},
    token_file::TokenFile,
};

/// An API server with its credentials. Clones share them.
#[derive(Clone)]
pub struct ApiServer {
    /// The configuration, without the files that are read again.
    config: Arc<Config>,
    token: Option<Arc<TokenFile>>,
    tls: Arc<TlsFiles>,
    server_name: Arc<dyn ResolveServerName + Send + Sync>,
    proxy: Option<Proxy>,
}

impl ApiServer {
    /// Reads all files for the first time. The network is not used.
    pub async fn open(config: &Config) -> Result<ApiServer, ConnectError> {
        let proxy = Proxy::of(config)?;
        let mut config = config.clone();
        let token = TokenFile::take(&mut config).await?.map(Arc::new);
        let tls = Arc::new(TlsFiles::take(&mut config).await?);
        let server_name: Arc<dyn ResolveServerName + Send + Sync> = match config.tls_server_name.take() {
            None => Arc::new(DefaultServerNameResolver::default()),
            Some(name) => match name.clone().try_into() {
                Ok(server_name) => Arc::new(FixedServerNameResolver::new(server_name)),
                Err(_) => return Err(ConnectError::ServerName { name }),
            },
        };
        Ok(ApiServer {
            config: Arc::new(config),
            token,
            tls,
            server_name,
            proxy,
        })
    }

    /// Whether there are files to refresh.
    pub fn has_files(&self) -> bool {
        self.token.is_some() || self.tls.has_files()
    }

    /// Reads the token again.
    pub async fn refresh_token(&self) -> Result<Refreshed, CredentialFileError> {
        match &self.token {
            Some(token) => token.refresh().await,
            None => Ok(Refreshed::Same),
        }
    }

    /// Reads the CA, the client certificate and its key again.
    pub async fn refresh_certificates(&self) -> Result<Refreshed, CredentialFileError> {
        self.tls.refresh().await
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Adds the token to requests, if it comes from a file.
    pub(super) fn token_layer(
        &self,
    ) -> Option<MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + use<>>> {
        let token = self.token.clone()?;
        Some(MapRequestLayer::new(move |mut request: Request<Body>| {
            request.headers_mut().insert(AUTHORIZATION, token.header());
            request
        }))
    }

    /// Returns the TLS configuration of new connections.
    pub(super) fn tls(&self) -> Arc<Tls> {
        self.tls.current()
    }

    /// Adds the proxy and TLS to a connector, for the HTTP versions of the TLS configuration.
    pub(super) fn connector<S>(&self, tls: &Arc<ClientConfig>, tcp: Connector<S>) -> Connector<MaybeHttpsStream<S>>
    where
        S: Connection + Read + Write + Unpin + Send + 'static,
    {
        let tcp = through_proxy(self.proxy.as_ref(), tcp);
        let server_name = Arc::clone(&self.server_name);
        Connector::new(HttpsConnector::new(tcp, Arc::clone(tls), false, server_name))
    }
}

#[cfg(test)]
mod tests;

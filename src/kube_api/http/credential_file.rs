//! A file that holds a credential or a CA, and that is replaced while we run.

use std::io;

/// What a reading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The contents that are in use.
    Same,
    /// Others, in use for all requests from here on.
    Changed,
}

/// Why files cannot be used. Names the files and never says what they hold.
#[derive(Debug, thiserror::Error)]
pub enum CredentialFileError {
    /// Missing, or not ours to read.
    #[error("{path} cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Empty, or of characters that no token has.
    #[error("{path} holds no bearer token")]
    NoToken {
        /// The file.
        path: String,
    },
    /// Empty, incomplete, or no PEM.
    #[error("{path} holds no CA certificates in PEM")]
    NoAuthority {
        /// The file.
        path: String,
    },
    /// Each may be good by itself, as while one of them is replaced before the other.
    #[error("{paths} cannot be used for TLS: certificates that cannot be read, or a key that does not match")]
    Tls {
        /// The files.
        paths: String,
    },
}

/// Reads a file without holding a thread of async tasks up.
pub(super) async fn read(path: &str) -> Result<Vec<u8>, CredentialFileError> {
    tokio::fs::read(path).await.map_err(|source| CredentialFileError::Read {
        path: path.to_owned(),
        source,
    })
}

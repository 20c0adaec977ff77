//! A file with a credential or a CA that can be replaced at any time.

use std::io;

/// The result of reading files again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The contents are unchanged.
    Same,
    /// The contents changed and are used for all requests from now on.
    Changed,
}

/// The reasons why files cannot be used. Errors name the files and never their contents.
#[derive(Debug, thiserror::Error)]
pub enum CredentialFileError {
    /// The file is missing or not readable.
    #[error("{path} cannot be read")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is empty or contains characters that no token has.
    #[error("{path} holds no bearer token")]
    NoToken {
        /// The file.
        path: String,
    },
    /// The file is empty, incomplete, or not PEM.
    #[error("{path} holds no CA certificates in PEM")]
    NoAuthority {
        /// The file.
        path: String,
    },
    /// Each file may be valid by itself, for example while one of them is replaced before the other.
    #[error("{paths} cannot be used for TLS: certificates that cannot be read, or a key that does not match")]
    Tls {
        /// The files.
        paths: String,
    },
}

/// Reads a file without blocking async tasks.
pub(super) async fn read(path: &str) -> Result<Vec<u8>, CredentialFileError> {
    tokio::fs::read(path).await.map_err(|source| CredentialFileError::Read {
        path: path.to_owned(),
        source,
    })
}

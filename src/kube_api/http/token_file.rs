//! The bearer token from the last read of a file.

use http::HeaderValue;
use kube::Config;

use super::credential_file::{CredentialFileError, Refreshed, read};
use crate::kube_api::latest_value::LatestSender;

/// A token file and its contents.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: String,
    header: LatestSender<HeaderValue>,
}

impl TokenFile {
    /// Takes the token file out of the configuration, if its credentials are a token in a file.
    pub(super) async fn take(config: &mut Config) -> Result<Option<TokenFile>, CredentialFileError> {
        let auth = &mut config.auth_info;
        // `kube` prefers these to the file.
        let is_other = auth.token.is_some() || auth.auth_provider.is_some() || auth.username.is_some();
        if is_other {
            return Ok(None);
        }
        let Some(path) = auth.token_file.take() else {
            return Ok(None);
        };
        // `kube` prefers the file to this.
        auth.exec = None;
        let header = LatestSender::new(read_header(&path).await?);
        Ok(Some(TokenFile { path, header }))
    }

    /// Reads the file again. Without a token in the file the former one stays in use: some tools remove the file after
    /// it was read, and a file that is being written is empty at first.
    pub(super) async fn refresh(&self) -> Result<Refreshed, CredentialFileError> {
        let header = read_header(&self.path).await?;
        if header == *self.header.borrow() {
            return Ok(Refreshed::Same);
        }
        self.header.send_replace(header);
        Ok(Refreshed::Changed)
    }

    /// Returns the value of the header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.borrow().clone()
    }
}

async fn read_header(path: &str) -> Result<HeaderValue, CredentialFileError> {
    let bytes = read(path).await?;
    header(&bytes).ok_or_else(|| CredentialFileError::NoToken { path: path.to_owned() })
}

fn header(bytes: &[u8]) -> Option<HeaderValue> {
    let token = str::from_utf8(bytes).ok()?.trim();
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .ok()
        .filter(|_| !token.is_empty())?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    /// A file that is removed with the value.
    struct Held(PathBuf);

    impl Held {
        fn new(name: &str, text: &str) -> Held {
            let path = std::env::temp_dir().join(format!("cronwheel-{}-{name}.token", std::process::id()));
            fs::write(&path, text).unwrap();
            Held(path)
        }

        /// Replaces the file by another one, like a kubelet.
        fn replace(&self, text: &str) {
            let new = self.0.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &self.0).unwrap();
        }

        fn config(&self) -> Config {
            let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
            config.auth_info.token_file = Some(self.0.display().to_string());
            config
        }

        async fn open(&self) -> TokenFile {
            TokenFile::take(&mut self.config()).await.unwrap().unwrap()
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // A test may have removed it.
            let _ = fs::remove_file(&self.0);
        }
    }

    #[tokio::test]
    async fn a_replaced_token_file_is_read_again() {
        let held = Held::new("replaced", "first\n");
        let file = held.open().await;
        assert_eq!(file.header(), "Bearer first");
        assert_eq!(file.refresh().await.unwrap(), Refreshed::Same);
        held.replace(" other\n");
        assert_eq!(file.refresh().await.unwrap(), Refreshed::Changed);
        assert_eq!(file.header(), "Bearer other");
        fs::write(&held.0, "third").unwrap();
        assert_eq!(file.refresh().await.unwrap(), Refreshed::Changed);
        assert_eq!(file.header(), "Bearer third");
        assert!(file.header().is_sensitive());
    }

    #[tokio::test]
    async fn the_last_token_is_used_while_the_file_is_unusable() {
        let held = Held::new("gone", "first");
        let file = held.open().await;
        for unusable in ["", "\n", "two\nlines"] {
            held.replace(unusable);
            let error = file.refresh().await.unwrap_err().to_string();
            assert_eq!(error, format!("{} holds no bearer token", held.0.display()));
            assert_eq!(file.header(), "Bearer first", "{unusable:?}");
        }
        fs::remove_file(&held.0).unwrap();
        let error = file.refresh().await.unwrap_err();
        assert!(matches!(error, CredentialFileError::Read { .. }), "{error}");
        assert_eq!(file.header(), "Bearer first");
        held.replace("second");
        assert_eq!(file.refresh().await.unwrap(), Refreshed::Changed);
        assert_eq!(file.header(), "Bearer second");
    }

    #[tokio::test]
    async fn a_token_file_is_used_only_without_an_inline_token() {
        let held = Held::new("taken", "first");
        let mut config = held.config();
        config.auth_info.token = Some("inline".to_owned().into());
        assert!(TokenFile::take(&mut config).await.unwrap().is_none());
        assert!(config.auth_info.token_file.is_some());
        config.auth_info.token = None;
        assert!(TokenFile::take(&mut config).await.unwrap().is_some());
        assert_eq!(config.auth_info.token_file, None);
        assert!(TokenFile::take(&mut config).await.unwrap().is_none());

        held.replace("\n");
        let error = TokenFile::take(&mut held.config()).await.unwrap_err();
        assert!(error.to_string().contains(".token"), "{error}");
    }
}

//! The bearer token that requests carry where a file holds it: always what the file holds at that moment.
//!
//! The file is rewritten while we run, and the token that it held may be good for nothing from then on. `kube` keeps what
//! it has read for a minute; we look at the file's stamp at each request, and read it where that has changed.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::SystemTime,
};

use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Config, client::Body};
use tower::{Layer, Service};

use super::ConnectError;

/// Puts the token on requests. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct TokenFileLayer {
    file: Arc<TokenFile>,
}

impl TokenFileLayer {
    /// The layer for this configuration, where its credentials are a token in a file; they are taken out of it then.
    pub(super) fn take(config: &mut Config) -> Result<Option<TokenFileLayer>, ConnectError> {
        let auth = &mut config.auth_info;
        // What `kube` prefers to the file.
        let is_other = auth.token.is_some() || auth.auth_provider.is_some() || auth.username.is_some();
        if is_other {
            return Ok(None);
        }
        let Some(path) = auth.token_file.take() else {
            return Ok(None);
        };
        // Comes after the file.
        auth.exec = None;
        let file = TokenFile::open(PathBuf::from(&path)).map_err(|source| ConnectError::TokenFile { path, source })?;
        Ok(Some(TokenFileLayer { file: Arc::new(file) }))
    }
}

impl<S> Layer<S> for TokenFileLayer {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken {
            inner,
            file: Arc::clone(&self.file),
        }
    }
}

/// See [`TokenFileLayer`].
#[derive(Clone, Debug)]
pub(super) struct WithToken<S> {
    inner: S,
    file: Arc<TokenFile>,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for WithToken<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        request.headers_mut().insert(AUTHORIZATION, self.file.header());
        self.inner.call(request)
    }
}

#[derive(Debug)]
struct TokenFile {
    path: PathBuf,
    /// Held while the file is looked at, which is on this machine.
    read: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    /// Of before the file was read, so that what is written meanwhile is read the next time.
    stamp: Stamp,
    header: HeaderValue,
}

/// What changes when a file is rewritten or another takes its place.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    inode: u64,
    len_bytes: u64,
}

impl TokenFile {
    fn open(path: PathBuf) -> io::Result<TokenFile> {
        let stamp = stamp(&path)?;
        let header = header(&path)?;
        Ok(TokenFile {
            path,
            read: Mutex::new(Read { stamp, header }),
        })
    }

    /// Without a file that can be used the last one holds: some take it away once it was read, and one that is just being
    /// written is empty at first.
    fn header(&self) -> HeaderValue {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(stamp) = stamp(&self.path)
            && stamp != read.stamp
            && let Ok(header) = header(&self.path)
        {
            *read = Read { stamp, header };
        }
        read.header.clone()
    }
}

fn stamp(path: &PathBuf) -> io::Result<Stamp> {
    let metadata = fs::metadata(path)?;
    Ok(Stamp {
        modified: metadata.modified()?,
        inode: metadata.ino(),
        len_bytes: metadata.len(),
    })
}

fn header(path: &PathBuf) -> io::Result<HeaderValue> {
    let text = fs::read_to_string(path)?;
    let token = text.trim();
    if token.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it holds no token"));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that goes with the value.
    struct Held(PathBuf);

    impl Held {
        fn new(name: &str, text: &str) -> Held {
            let path = std::env::temp_dir().join(format!("cronwheel-{}-{name}.token", std::process::id()));
            fs::write(&path, text).unwrap();
            Held(path)
        }

        /// As a kubelet does: another file takes the place of this one.
        fn replace(&self, text: &str) {
            let new = self.0.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &self.0).unwrap();
        }

        fn open(&self) -> TokenFile {
            TokenFile::open(self.0.clone()).unwrap()
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // A test may have removed it.
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_that_is_another_is_read_at_once_and_what_surrounds_the_token_is_not_sent() {
        let held = Held::new("replaced", "first\n");
        let file = held.open();
        assert_eq!(file.header(), "Bearer first");
        held.replace(" other\n");
        assert_eq!(file.header(), "Bearer other");
        assert!(file.header().is_sensitive());
    }

    #[test]
    fn a_file_that_grows_in_place_is_read_at_once() {
        let held = Held::new("rewritten", "first");
        let file = held.open();
        fs::write(&held.0, "the second").unwrap();
        assert_eq!(file.header(), "Bearer the second");
    }

    #[test]
    fn without_a_usable_file_the_last_token_holds_until_there_is_one() {
        let held = Held::new("gone", "first");
        let file = held.open();
        for unusable in ["", "\n", "two\nlines"] {
            held.replace(unusable);
            assert_eq!(file.header(), "Bearer first", "{unusable:?}");
        }
        fs::remove_file(&held.0).unwrap();
        assert_eq!(file.header(), "Bearer first");
        held.replace("second");
        assert_eq!(file.header(), "Bearer second");
    }

    #[test]
    fn a_file_is_taken_only_where_it_is_what_counts_and_must_be_usable_at_the_start() {
        let held = Held::new("taken", "first");
        let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
        assert!(TokenFileLayer::take(&mut config).unwrap().is_none());
        config.auth_info.token_file = Some(held.0.display().to_string());
        config.auth_info.token = Some("inline".to_owned().into());
        assert!(TokenFileLayer::take(&mut config).unwrap().is_none());
        assert!(config.auth_info.token_file.is_some());
        config.auth_info.token = None;
        assert!(TokenFileLayer::take(&mut config).unwrap().is_some());
        assert_eq!(config.auth_info.token_file, None);

        held.replace("\n");
        config.auth_info.token_file = Some(held.0.display().to_string());
        let error = TokenFileLayer::take(&mut config).unwrap_err();
        assert!(error.to_string().contains(".token"), "{error}");
    }
}

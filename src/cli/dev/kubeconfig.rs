//! The kubeconfig file that leads `kubectl` to the API server of `dev`: made for its owner alone, gone when it is dropped.
//!
//! Invariant: no file is overwritten that something else has made, nor one that another `dev` still uses.

use std::{
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, Write},
    net::SocketAddr,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

/// How a file of ours begins.
const MARK: &str = "# Made by `cronwheel dev`, which removes it when it ends.\n";

/// For its owner alone: kubectl warns of others.
const MODE: u32 = 0o600;

/// Why there is no kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file cannot be had.
    #[error("--kubeconfig {}: cannot be written; give a file in a folder that you may write to", .path.display())]
    Write {
        /// As configured.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It may be the way to somebody's cluster.
    #[error("--kubeconfig {}: is there and was not made by `cronwheel dev`; give another file", .path.display())]
    Foreign {
        /// As configured.
        path: PathBuf,
    },
    /// Two would take turns in overwriting it.
    #[error("--kubeconfig {}: another `cronwheel dev` uses it; give another file, and another --port", .path.display())]
    InUse {
        /// As configured.
        path: PathBuf,
    },
}

/// The file, locked for as long as it is kept.
#[derive(Debug)]
pub(super) struct KubeconfigFile {
    path: PathBuf,
    locked: File,
}

impl KubeconfigFile {
    /// Writes it; one that a killed `dev` has left is written anew.
    pub(super) fn write(path: &Path, server: SocketAddr) -> Result<KubeconfigFile, KubeconfigError> {
        let named = || path.to_owned();
        // A link, a device or a pipe: whatever it leads to is not ours to write to.
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(KubeconfigError::Foreign { path: named() });
        }
        let failed = |source| KubeconfigError::Write { path: named(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            // Where there are no locks, the mark has to do.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(KubeconfigError::InUse { path: named() }),
        }
        if !is_ours(&mut file).map_err(failed)? {
            return Err(KubeconfigError::Foreign { path: named() });
        }
        fill(&mut file, server).map_err(failed)?;
        Ok(KubeconfigFile {
            path: named(),
            locked: file,
        })
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // Somebody may have removed it already, which is as good, or put something else in its place.
        if leads_to(&self.path, &self.locked).unwrap_or(false) {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let [found, ours] = [fs::symlink_metadata(path)?, file.metadata()?];
    Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino()))
}

/// Whether nothing is in it but what we have written. One of another user could be changed by them later, and make
/// `kubectl` run what they like.
fn is_ours(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut begin)?;
    Ok(begin.is_empty() || begin == MARK.as_bytes())
}

fn fill(file: &mut File, server: SocketAddr) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(content(server).as_bytes())?;
    file.flush()
}

fn content(server: SocketAddr) -> String {
    format!(
        "{MARK}apiVersion: v1
kind: Config
clusters:
- name: cronwheel-dev
  cluster: {{server: \"http://{server}\"}}
users:
- name: anybody
  user: {{}}
contexts:
- name: cronwheel-dev
  context: {{cluster: cronwheel-dev, user: anybody, namespace: default}}
current-context: cronwheel-dev
"
    )
}

#[cfg(test)]
mod tests;

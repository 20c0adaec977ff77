//! The kubeconfig file for the API server of `dev`. Only its owner can read it, and it is removed when it is dropped.
//!
//! Invariant: no file is overwritten that another program created or that another `dev` still uses.

use std::{
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, Write},
    net::SocketAddr,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::cli::error::CommandError;

/// The first line of a file that `dev` created.
const MARK: &str = "# Made by `cronwheel dev`, which removes it when it ends.\n";

/// Readable by its owner alone; kubectl warns otherwise.
const MODE: u32 = 0o600;

/// The file, locked until it is dropped.
#[derive(Debug)]
pub(super) struct KubeconfigFile {
    path: PathBuf,
    locked: File,
}

impl KubeconfigFile {
    /// Writes the file. A file that a killed `dev` left is replaced.
    pub(super) fn write(path: &Path, server: SocketAddr) -> Result<KubeconfigFile, CommandError> {
        let text = |problem: &str| format!("--kubeconfig {}: {problem}", path.display());
        let foreign = || text("is there and was not made by `cronwheel dev`; give another file");
        // A link, a device or a pipe may lead to a file that `dev` must not write.
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(foreign().into());
        }
        let failed = |error: io::Error| {
            let problem = "cannot be written; give a file in a folder that you may write to";
            CommandError::caused(text(problem), error)
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            // On a file system without locks only the first line is checked.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(text("another `cronwheel dev` uses it; give another file, and another --port").into());
            }
        }
        if !is_ours(&mut file).map_err(failed)? {
            return Err(foreign().into());
        }
        fill(&mut file, server).map_err(failed)?;
        Ok(KubeconfigFile {
            path: path.to_owned(),
            locked: file,
        })
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // The file may have been removed already, or replaced by another one.
        if leads_to(&self.path, &self.locked).unwrap_or(false) {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let [found, ours] = [fs::symlink_metadata(path)?, file.metadata()?];
    Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino()))
}

/// Whether `dev` wrote the whole file. A file of another user could be changed by them later, and make `kubectl` run
/// any command.
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

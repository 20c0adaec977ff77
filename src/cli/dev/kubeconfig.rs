//! The kubeconfig file for the API server of `dev`. Only its owner can read it, and it is removed when it is dropped.
//!
//! Invariant: no file is overwritten or removed that another program wrote or that another `dev` still uses.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::cli::error::CommandError;

/// The first line of a file that `dev` created.
const MARK: &str = "# Made by `cronwheel dev`, which removes it when it ends.\n";

/// Readable by its owner alone; kubectl warns otherwise.
const MODE: u32 = 0o600;

/// The file. It is locked until it is dropped, so that another `dev` replaces only the file of a killed one.
#[derive(Debug)]
pub(super) struct KubeconfigFile {
    path: PathBuf,
    file: File,
    content: String,
}

impl KubeconfigFile {
    /// Writes the file. A file that a killed `dev` left is replaced.
    pub(super) fn write(path: &Path, server: SocketAddr) -> Result<KubeconfigFile, CommandError> {
        let text = |problem: &str| format!("--kubeconfig {}: {problem}", path.display());
        let failed = |error: io::Error| {
            // The file may be the access to another cluster.
            if error.kind() == io::ErrorKind::AlreadyExists {
                return text("is there and was not made by `cronwheel dev`; give another file").into();
            }
            let problem = "cannot be written; give a file in a folder that you may write to";
            CommandError::caused(text(problem), error)
        };
        if let Some(left) = made_by_dev(path) {
            // On a file system without locks only the first line is checked.
            if matches!(left.try_lock(), Err(TryLockError::WouldBlock)) {
                return Err(text("another `cronwheel dev` uses it; give another file, and another --port").into());
            }
            fs::remove_file(path).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(MODE).open(path);
        let mut kubeconfig = KubeconfigFile {
            path: path.to_owned(),
            file: file.map_err(failed)?,
            content: content(server),
        };
        let _is_locked = kubeconfig.file.try_lock();
        kubeconfig
            .file
            .write_all(kubeconfig.content.as_bytes())
            .map_err(failed)?;
        Ok(kubeconfig)
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // A file that somebody replaced or edited stays. After a failed write, the file has the beginning of the content.
        let is_ours = |text: String| self.content.starts_with(&text);
        if is_regular_file(&self.path) && fs::read_to_string(&self.path).is_ok_and(is_ours) {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Opens a file that is empty or that `dev` wrote.
fn made_by_dev(path: &Path) -> Option<File> {
    if !is_regular_file(path) {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut begin = Vec::new();
    (&file).take(MARK.len() as u64).read_to_end(&mut begin).ok()?;
    (begin.is_empty() || begin == MARK.as_bytes()).then_some(file)
}

/// Whether the path is a file that can be opened. To open a pipe would block.
fn is_regular_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
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

//! The place of the history file: one file for each cluster, for its user alone.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::sql;
use crate::shard::fnv1a_64;

/// Where the application id ends in the header of SQLite. It has four bytes.
const APPLICATION_ID_END: usize = 72;

/// The folder of the files in the state directory.
const FOLDER: &str = "cronwheel";

/// The tables are described in the first pages of a file.
const EXAMINED_BYTES_MAX: u64 = 64 << 10;

/// A cluster, by the address of its API server.
///
/// The address is what every client knows. The uid of the namespace `kube-system` would survive a new address, but needs
/// a permission beyond CronJobs and Jobs. The certificate authority would give a new history after each rotation. If a
/// new cluster has the address of a former one, then their CronJobs share a file, but have different uids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterId {
    name: Box<str>,
    server: Box<str>,
}

impl ClusterId {
    /// `name` is for people, such as the cluster's name in the kubeconfig. `server` is the address of the API server.
    pub fn new(name: &str, server: &str) -> ClusterId {
        ClusterId {
            name: name.into(),
            server: server.trim_end_matches('/').to_ascii_lowercase().into(),
        }
    }

    /// The address of the API server, without a slash at its end.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The name, and a hash of the address, because names are not unique.
    fn file_name(&self) -> String {
        const NAME_LENGTH_MAX: usize = 40;
        let is_plain = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let replaced = self.name.chars().map(|c| if is_plain(&c) { c } else { '_' });
        let name: String = replaced.take(NAME_LENGTH_MAX).collect();
        format!("{name}-{:016x}.sqlite", fnv1a_64(self.server.as_bytes()))
    }
}

/// The file of a cluster in the user's state directory: `$XDG_STATE_HOME/cronwheel`, or `~/.local/state/cronwheel`.
///
/// `variable` returns an environment variable. `None` if neither variable has an absolute path.
pub fn default_path(cluster: &ClusterId, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join(FOLDER).join(cluster.file_name()))
}

/// Creates the folder and an empty file if they are missing. SQLite gives its other files the mode of this one.
pub(super) fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.map(drop),
    }
}

/// Returns the application id in the header of an SQLite file; 0 if there is none, and `None` for an empty file.
///
/// It is read without SQLite, which would change a file that its application did not close. Reading ends the locks that
/// this process has on the file, so call this before SQLite opens it.
pub(super) fn application_id(path: &Path) -> io::Result<Option<i32>> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut header = Vec::with_capacity(APPLICATION_ID_END);
    File::open(path)?
        .take(APPLICATION_ID_END as u64)
        .read_to_end(&mut header)?;
    let id = header.last_chunk().filter(|_| header.len() == APPLICATION_ID_END);
    let id = id.filter(|_| header.starts_with(MAGIC));
    Ok((!header.is_empty()).then(|| id.map_or(0, |bytes| i32::from_be_bytes(*bytes))))
}

/// Whether a file without the header of a history is one nevertheless: it has the name that only cronwheel gives, it has
/// its tables, or nothing is left in it, as after a loss of power.
pub(super) fn is_damaged_history(path: &Path, cluster: &ClusterId) -> io::Result<bool> {
    let is_named_so = path.file_name() == Some(OsStr::new(&cluster.file_name()));
    let is_in_folder = path.parent().and_then(Path::file_name) == Some(OsStr::new(FOLDER));
    if is_named_so && is_in_folder {
        return Ok(true);
    }
    let mut start = Vec::new();
    File::open(path)?.take(EXAMINED_BYTES_MAX).read_to_end(&mut start)?;
    let mark = sql::TABLE_MARK.as_bytes();
    let has_tables = || start.windows(mark.len()).any(|part| part == mark);
    Ok(start.iter().all(|byte| *byte == 0) || has_tables())
}

/// Renames a file that cannot be used, with the files that SQLite keeps beside it. `reason` becomes a part of its name.
/// Returns the new path.
pub(super) fn set_aside(path: &Path, reason: &str, now: Timestamp) -> io::Result<PathBuf> {
    let time = now.strftime("%Y%m%dT%H%M%SZ");
    let first = with_suffix(path, format!(".{reason}-{time}"));
    let others = (2..10).map(|number| with_suffix(&first, format!("-{number}")));
    let target = std::iter::once(first.clone()).chain(others).find(|path| !path.exists());
    let target = target.ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(path, &target)?;
    for suffix in ["-wal", "-journal"] {
        // Mostly there is none. SQLite ignores one that stays behind, because the new file is empty.
        let _ = fs::rename(with_suffix(path, suffix), with_suffix(&target, suffix));
    }
    Ok(target)
}

/// Appends to the file name.
pub(super) fn with_suffix(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

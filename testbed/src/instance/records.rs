//! The records in the folder of a control plane: its manifest, its pid files, and those of processes of the caller.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

use super::{Instance, InstanceError};
use crate::process::ProcessRecord;

impl Instance {
    /// Registers a process of the caller that is killed when the control plane is stopped, also by a sweep after the
    /// caller was killed. `name` is the name of its pid file.
    pub fn attach(&self, name: &str, pid: u32) -> Result<(), InstanceError> {
        let attach = |source| InstanceError::Attached {
            name: name.to_owned(),
            source,
        };
        let record = ProcessRecord::of(pid).map_err(attach)?;
        write_json(&self.path(&format!("attached/{name}.json")), &record)
    }

    pub(super) fn kill_attached(&self) -> Result<(), InstanceError> {
        let path = self.path("attached");
        let access = |source| InstanceError::Access {
            path: path.clone(),
            source,
        };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(access(error)),
        };
        for entry in entries {
            let path = entry.map_err(access)?.path();
            if let Some(record) = read_json::<ProcessRecord>(&path)? {
                record.kill().map_err(|source| InstanceError::Attached {
                    name: path.display().to_string(),
                    source,
                })?;
            }
        }
        Ok(())
    }
}

/// Reads a JSON file. Returns `None` if it does not exist.
pub(super) fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, InstanceError> {
    let path = path.to_owned();
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| InstanceError::Malformed { path, source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(InstanceError::Access { path, source }),
    }
}

/// Writes a JSON file atomically, so that readers and crashes never see a partial file.
pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), InstanceError> {
    let text = serde_json::to_vec_pretty(value).map_err(|source| InstanceError::Malformed {
        path: path.to_owned(),
        source,
    })?;
    let new_path = path.with_extension("new");
    fs::write(&new_path, text)
        .and_then(|()| fs::rename(&new_path, path))
        .map_err(|source| InstanceError::Access {
            path: path.to_owned(),
            source,
        })
}

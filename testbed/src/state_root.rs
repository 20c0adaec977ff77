//! The folder of all control planes of this user on this machine, including the leftovers of killed owners.
//!
//! Each [`Instance`] is a subfolder. A single lock protects the creation of folders, the allocation of ports and the
//! sweep.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use crate::{
    instance::{Instance, InstanceError, Manifest},
    ports::Ports,
};

/// A shared memory file system smaller than this is not used. Containers often have only 64 MiB.
const TMPFS_SIZE_MIN_BYTES: u64 = 2 << 30;

/// Why an operation on the folder failed.
#[derive(Debug, thiserror::Error)]
pub enum StateRootError {
    /// It cannot be read or written.
    #[error("cannot use {path} as state folder")]
    Access {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user created the folder.
    #[error("the state folder {path} belongs to another user")]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// A control plane with this name exists.
    #[error("a control plane named {name} exists")]
    Exists {
        /// Its name.
        name: String,
    },
    /// All ports of the range are in use.
    #[error("no free ports left")]
    NoPorts,
    /// A control plane in the folder cannot be read or removed.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// The folder of all control planes of this user.
#[derive(Clone, Debug)]
pub struct StateRoot {
    folder: PathBuf,
}

impl StateRoot {
    /// Opens the default folder: on tmpfs if there is a large enough one, otherwise in the folder for temporary files.
    pub fn usual() -> Result<StateRoot, StateRootError> {
        let shared_memory = Path::new("/dev/shm");
        // This uses the total size instead of the free space, so that every call returns the same folder.
        let is_roomy = rustix::fs::statvfs(shared_memory)
            .is_ok_and(|status| status.f_blocks.saturating_mul(status.f_frsize) >= TMPFS_SIZE_MIN_BYTES);
        let parent = if is_roomy {
            shared_memory.to_owned()
        } else {
            env::temp_dir()
        };
        let user = rustix::process::getuid().as_raw();
        StateRoot::at(parent.join(format!("cronwheel-testbed-{user}")))
    }

    /// Opens another folder, and creates it if necessary. It holds keys, so it must be accessible only to this user.
    pub fn at(folder: PathBuf) -> Result<StateRoot, StateRootError> {
        let access = |source| StateRootError::Access {
            path: folder.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(access)?;
        let metadata = fs::symlink_metadata(&folder).map_err(access)?;
        if !metadata.is_dir() || metadata.uid() != rustix::process::getuid().as_raw() {
            return Err(StateRootError::Foreign { path: folder });
        }
        Ok(StateRoot { folder })
    }

    /// Returns the control plane with this name, if it exists.
    pub fn find(&self, name: &str) -> Result<Option<Instance>, StateRootError> {
        let _lock = self.lock()?;
        let folder = self.folder.join(name);
        if folder.is_dir() {
            Ok(Some(Instance::open(folder)?))
        } else {
            Ok(None)
        }
    }

    /// Stops and removes control planes whose owner no longer runs. Returns their names.
    pub fn sweep(&self) -> Result<Vec<String>, StateRootError> {
        let _lock = self.lock()?;
        let mut swept = Vec::new();
        for folder in self.folders()? {
            match Instance::open(folder.clone()) {
                Ok(instance) if instance.is_abandoned() => {
                    instance.stop_all()?;
                    instance.remove_folder()?;
                    swept.push(instance.name());
                }
                Ok(_) => {}
                // Folder and manifest are created under the lock. A folder without a manifest is left over from an
                // interrupted removal.
                Err(InstanceError::NoManifest { .. }) => {
                    fs::remove_dir_all(&folder).map_err(|source| StateRootError::Access { path: folder, source })?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(swept)
    }

    /// Stops all processes of a control plane and removes its folder.
    pub fn remove(&self, instance: &Instance) -> Result<(), StateRootError> {
        instance.stop_all()?;
        let _lock = self.lock()?;
        Ok(instance.remove_folder()?)
    }

    /// Creates the folder of a new control plane and allocates its ports.
    pub(crate) fn claim(
        &self,
        name: &str,
        manifest: impl FnOnce(Ports) -> Manifest,
    ) -> Result<Instance, StateRootError> {
        let _lock = self.lock()?;
        let folder = self.folder.join(name);
        if folder.exists() {
            return Err(StateRootError::Exists { name: name.to_owned() });
        }
        let mut taken = BTreeSet::new();
        for folder in self.folders()? {
            if let Ok(instance) = Instance::open(folder) {
                taken.extend(instance.ports().all());
            }
        }
        let ports = Ports::choose(&taken, std::process::id()).ok_or(StateRootError::NoPorts)?;
        Ok(Instance::create(folder, manifest(ports))?)
    }

    fn folders(&self) -> Result<Vec<PathBuf>, StateRootError> {
        let access = |source| StateRootError::Access {
            path: self.folder.clone(),
            source,
        };
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(access)? {
            let path = entry.map_err(access)?.path();
            if path.is_dir() {
                folders.push(path);
            }
        }
        folders.sort();
        Ok(folders)
    }

    /// Locks the folder. The lock is held until the file is dropped or the process dies.
    fn lock(&self) -> Result<File, StateRootError> {
        let path = self.folder.join(".lock");
        let access = |source| StateRootError::Access {
            path: path.clone(),
            source,
        };
        let file = File::options().create(true).append(true).open(&path).map_err(access)?;
        file.lock().map_err(access)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests;

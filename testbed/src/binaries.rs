//! The programs of a control plane. They come from `KUBEBUILDER_ASSETS` if set. Otherwise the pinned Go modules are
//! built once into a cache folder outside the repository.

mod go_build;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use go_build::{CLOCKED_REFERENCE, CONTROL_PLANE, Go, HELM, Module, PROMETHEUS, SCHEDULE_ORACLE, SCHEDULER, build};

/// The folder of envtest. Programs in it are used as they are.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Overrides the cache folder.
const CACHE_VARIABLE: &str = "CRONWHEEL_TESTBED_CACHE";

/// Why the programs cannot be found or built.
#[derive(Debug, thiserror::Error)]
pub enum BinariesError {
    /// Go is not installed or not in the path.
    #[error(
        "the programs of the control plane are built with Go, and `go version` does not run: install Go {minimum} or \
         newer (https://go.dev/dl), or set {ASSETS_VARIABLE} to a folder with etcd, kube-apiserver, \
         kube-controller-manager, kubectl and kwok"
    )]
    GoMissing {
        /// The oldest supported Go version.
        minimum: GoVersion,
        /// The cause.
        source: io::Error,
    },
    /// Go is older than the modules require.
    #[error("Go {found} is too old: the modules of the test bed require {minimum} or newer (https://go.dev/dl)")]
    GoTooOld {
        /// The output of `go version`.
        found: String,
        /// The oldest supported Go version.
        minimum: GoVersion,
    },
    /// No cache folder can be determined.
    #[error("no folder for the programs: set {CACHE_VARIABLE}, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// The cache folder cannot be read or written.
    #[error("cannot use {path} as cache of programs")]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The build command cannot be started.
    #[error("cannot run `go build`")]
    RunBuild {
        /// The cause.
        source: io::Error,
    },
    /// The build failed. Its output is on stderr.
    #[error("`go build` of {module} failed ({status}), see its output above")]
    Build {
        /// The module.
        module: &'static str,
        /// The exit status.
        status: std::process::ExitStatus,
    },
}

/// A Go version: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoVersion(u32, u32);

impl std::fmt::Display for GoVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The path of each program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
    /// kwok.
    pub kwok: PathBuf,
    /// kube-scheduler. Only control planes for Deployments have it.
    #[serde(default)]
    pub kube_scheduler: Option<PathBuf>,
}

impl Binaries {
    /// Finds all programs and builds the missing ones, which takes about four minutes the first time. Progress goes to
    /// stderr. Concurrent callers build only once.
    pub fn find_or_build() -> Result<Binaries, BinariesError> {
        let assets = env::var_os(ASSETS_VARIABLE)
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        let in_assets = |program: &str| {
            let path = assets.as_ref()?.join(program);
            path.is_file().then_some(path)
        };
        let mut found = BTreeMap::new();
        for module in &CONTROL_PLANE {
            let is_elsewhere = |program: &str| in_assets(program).is_some();
            let is_needed = module.programs.iter().any(|program| !is_elsewhere(program.file_name));
            let built = is_needed
                .then(|| find_or_build_module(module, &is_elsewhere))
                .transpose()?;
            for name in module.programs.iter().map(|program| program.file_name) {
                let path = in_assets(name).or_else(|| Some(built.as_ref()?.join(name)));
                found.insert(name, path.unwrap_or_default());
            }
        }
        let mut take = |program: &str| found.remove(program).unwrap_or_default();
        Ok(Binaries {
            etcd: take("etcd"),
            kube_apiserver: take("kube-apiserver"),
            kube_controller_manager: take("kube-controller-manager"),
            kubectl: take("kubectl"),
            kwok: take("kwok"),
            kube_scheduler: None,
        })
    }

    /// The folders of the programs: one for each Go module, and `KUBEBUILDER_ASSETS` if it holds some of them.
    pub fn folders(&self) -> Vec<&Path> {
        let all = [
            &self.etcd,
            &self.kube_apiserver,
            &self.kube_controller_manager,
            &self.kubectl,
            &self.kwok,
        ];
        let mut folders: Vec<&Path> = all.into_iter().filter_map(|program| program.parent()).collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }
}

/// Whether programs may come from a folder of the caller, so that their release is not the pinned one.
pub(crate) fn are_from_elsewhere() -> bool {
    env::var_os(ASSETS_VARIABLE).is_some()
}

/// Finds kube-scheduler of the release of the control plane. Builds it if it is missing, which takes a minute if the
/// control plane was built before.
pub(crate) fn find_or_build_scheduler() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&SCHEDULER, &|_| false)?.join("kube-scheduler"))
}

/// Finds the program that answers queries about schedules with the library that Kubernetes uses. Builds it if it is
/// missing, which takes seconds. `modules/schedule-oracle/main.go` documents its protocol.
pub fn find_or_build_schedule_oracle() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&SCHEDULE_ORACLE, &|_| false)?.join("schedule-oracle"))
}

/// Finds the built-in CronJob controller as a separate program, with `--kubeconfig`, `--namespace` and
/// `--clock-offset`. Builds it if it is missing. The build takes seconds if the control plane was built before, else
/// minutes.
pub fn find_or_build_clocked_reference() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&CLOCKED_REFERENCE, &|_| false)?.join("clocked-reference"))
}

/// Finds helm, which renders and installs the chart in `deploy/helm`. Builds it if it is missing, which takes four
/// minutes.
pub fn find_or_build_helm() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&HELM, &|_| false)?.join("helm"))
}

/// Finds promtool, which checks and tests the alerts in `deploy/helm`. Builds it if it is missing, together with
/// prometheus, which takes two minutes.
pub fn find_or_build_promtool() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&PROMETHEUS, &|_| false)?.join("promtool"))
}

/// Finds prometheus, for the queries of alerts and dashboards. Builds it if it is missing, together with promtool.
pub fn find_or_build_prometheus() -> Result<PathBuf, BinariesError> {
    Ok(find_or_build_module(&PROMETHEUS, &|_| false)?.join("prometheus"))
}

/// Returns the cache folder with every program of the module that is not found elsewhere.
fn find_or_build_module(module: &Module, is_elsewhere: &dyn Fn(&str) -> bool) -> Result<PathBuf, BinariesError> {
    let go = Go::find()?;
    let root = cache_root(|name| env::var_os(name)).ok_or(BinariesError::NoCacheFolder)?;
    let folder = root.join(go.cache_key(module));
    let is_missing = |program: &str| !is_elsewhere(program) && !folder.join(program).is_file();
    if !module.programs.iter().any(|program| is_missing(program.file_name)) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|source| BinariesError::Cache {
        path: folder.clone(),
        source,
    })?;
    let _lock = lock(&folder.join(".lock"))?;
    // Checked again: another process may have built them while this one waited for the lock.
    let missing: Vec<_> = module
        .programs
        .iter()
        .filter(|program| is_missing(program.file_name))
        .collect();
    if !missing.is_empty() {
        build(module, &missing, &folder)?;
    }
    Ok(folder)
}

fn cache_root(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder(CACHE_VARIABLE)
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("cronwheel-testbed")))
        .or_else(|| Some(folder("HOME")?.join(".cache/cronwheel-testbed")))
}

/// Locks a file. The lock is held until the file is dropped or the process dies.
fn lock(path: &Path) -> Result<File, BinariesError> {
    let cache_error = |source| BinariesError::Cache {
        path: path.to_owned(),
        source,
    };
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(cache_error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("testbed: another build is under way, waiting for it");
            file.lock().map_err(cache_error)?;
        }
        Err(TryLockError::Error(source)) => return Err(cache_error(source)),
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_folder_is_from_own_variable_then_xdg_then_home() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
            let found = cache_root(|name| variables.get(name).map(OsString::from));
            assert_eq!(found, expected.map(PathBuf::from), "{variables:?}");
        };
        check(
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), (CACHE_VARIABLE, "/own")],
            Some("/own"),
        );
        check(
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")],
            Some("/x/cronwheel-testbed"),
        );
        check(
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "")],
            Some("/h/.cache/cronwheel-testbed"),
        );
        check(&[], None);
    }

    #[test]
    fn folders_of_binaries_are_listed_once() {
        let binaries = Binaries {
            etcd: "/assets/etcd".into(),
            kube_apiserver: "/assets/kube-apiserver".into(),
            kube_controller_manager: "/cache/kube-controller-manager".into(),
            kubectl: "/assets/kubectl".into(),
            kwok: "/cache/kwok".into(),
            kube_scheduler: None,
        };
        assert_eq!(binaries.folders(), [Path::new("/assets"), Path::new("/cache")]);
    }
}

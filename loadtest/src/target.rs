//! The API server under load: our own control plane, a running one, or one in memory.

mod in_memory;

use std::{
    fmt::{self, Display, Formatter},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testbed::{Binaries, Component, Kubectl, Options, Testbed};

use self::in_memory::InMemory;
use crate::{
    audit::{self, Request},
    watched::WatchedJobs,
};

/// The permissions of cronwheel, as installed in production.
const RBAC: &str = include_str!("../../deploy/manifests/rbac.yaml");

/// The service account that [`RBAC`] creates.
pub(crate) const ACCOUNT: &str = "cronwheel";
const ACCOUNT_NAMESPACE: &str = "kube-system";

/// The kind of API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TargetKind {
    /// A new control plane: etcd without fsync, on tmpfs if available, and raised request limits.
    #[default]
    Testbed,
    /// The same with etcd's fsync, on disk, and the API server's default request limits (400 and 200).
    ServerDefaults,
    /// An API server in memory, on loopback. It has no audit log and does not support the built-in controller.
    Apisim,
    /// The cluster of a kubeconfig.
    #[value(skip)]
    Cluster,
}

impl Display for TargetKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetKind::Testbed => {
                "test bed: etcd with --unsafe-no-fsync, on tmpfs where there is one; API server with raised limits on \
                 requests (3000 and 1500)"
            }
            TargetKind::ServerDefaults => {
                "test bed with defaults: etcd with fsync, on disk; API server with its limits on requests (400 and 200)"
            }
            TargetKind::Apisim => "API server in memory",
            TargetKind::Cluster => "cluster of a kubeconfig",
        })
    }
}

/// The API server to use.
#[derive(Clone, Debug)]
pub(crate) enum TargetOptions {
    Testbed {
        server_defaults: bool,
    },
    /// A running cluster. The kubeconfig is that of an administrator, and the audit log must be on this machine.
    Running {
        kubeconfig: PathBuf,
        audit_log: Option<PathBuf>,
    },
    InMemory,
}

/// An API server.
#[derive(Debug)]
pub(crate) struct Target {
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    audit_log: Option<PathBuf>,
    /// The watch in place of an audit log, if there is none.
    watched: Option<WatchedJobs>,
    home: Home,
}

/// The owner of the API server. Our own API server is stopped on drop, with everything on it.
#[derive(Debug)]
enum Home {
    Testbed(Box<Testbed>),
    InMemory { _server: InMemory },
    Foreign,
}

impl Target {
    /// Starts a control plane with the defaults of the test bed.
    pub(crate) fn start() -> anyhow::Result<Target> {
        Target::start_testbed(false)
    }

    /// Starts or opens the API server, and watches Jobs if it has no audit log.
    pub(crate) async fn open(options: &TargetOptions, scratch: &Path) -> anyhow::Result<Target> {
        let mut target = match options {
            TargetOptions::Testbed { server_defaults } => Target::start_testbed(*server_defaults)?,
            TargetOptions::Running { kubeconfig, audit_log } => {
                Target::running(kubeconfig.clone(), audit_log.clone(), scratch)?
            }
            TargetOptions::InMemory => Target::in_memory(scratch).await?,
        };
        if target.audit_log.is_none() {
            let client = crate::scenario::client(&target.kubeconfig).await?;
            target.watched = Some(WatchedJobs::begin(client));
        }
        Ok(target)
    }

    fn start_testbed(server_defaults: bool) -> anyhow::Result<Target> {
        // The default state folder is on tmpfs, where fsync does nothing.
        let on_disk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/loadtest-state");
        let testbed = Testbed::start(Options {
            audit: true,
            server_defaults,
            state_root: server_defaults.then_some(on_disk),
            ..Options::default()
        })?;
        let audit_log = testbed.audit_log_path().context("the control plane has no audit log")?;
        Ok(Target {
            kubectl: testbed.kubectl(),
            kubeconfig: testbed.kubeconfig(),
            audit_log: Some(audit_log),
            watched: None,
            home: Home::Testbed(Box::new(testbed)),
        })
    }

    /// Uses a running cluster.
    pub(crate) fn running(kubeconfig: PathBuf, audit_log: Option<PathBuf>, scratch: &Path) -> anyhow::Result<Target> {
        let program = Binaries::find_or_build()?.kubectl;
        Ok(Target {
            kubectl: Kubectl::new(program, kubeconfig.clone(), scratch.join("kubectl-cache")),
            kubeconfig,
            audit_log,
            watched: None,
            home: Home::Foreign,
        })
    }

    async fn in_memory(scratch: &Path) -> anyhow::Result<Target> {
        let server = InMemory::start().await?;
        let kubeconfig = scratch.join("in-memory.kubeconfig");
        fs::write(&kubeconfig, server.kubeconfig())
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        Ok(Target {
            home: Home::InMemory { _server: server },
            ..Target::running(kubeconfig, None, scratch)?
        })
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn has_audit_log(&self) -> bool {
        self.audit_log.is_some()
    }

    /// Whether the cluster has other users.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.home, Home::Foreign)
    }

    /// The requests of a user in the audit log. Without an audit log, a create for each Job of any user.
    pub(crate) fn requests(&self, user: &str) -> anyhow::Result<Vec<Request>> {
        match (&self.audit_log, &self.watched) {
            (Some(path), _) => audit::read(path, user),
            (None, Some(watched)) => Ok(watched.requests()),
            (None, None) => bail!("there is neither an audit log nor a watch"),
        }
    }

    /// Our own control plane, if any. The built-in controller runs only there.
    pub(crate) fn testbed_mut(&mut self) -> Option<&mut Testbed> {
        match &mut self.home {
            Home::Testbed(testbed) => Some(testbed),
            Home::InMemory { .. } | Home::Foreign => None,
        }
    }

    pub(crate) fn testbed(&self) -> Option<&Testbed> {
        match &self.home {
            Home::Testbed(testbed) => Some(testbed),
            Home::InMemory { .. } | Home::Foreign => None,
        }
    }

    /// The process ids of our own API server and etcd.
    pub(crate) fn server_pids(&self) -> Vec<(Component, u32)> {
        let pid = |component| Some((component, self.testbed()?.pid(component)?));
        [Component::ApiServer, Component::Etcd]
            .into_iter()
            .filter_map(pid)
            .collect()
    }

    /// The process ids of all our own components, without the controller under test.
    pub(crate) fn own_pids(&self) -> Vec<u32> {
        let beside = [Component::ControllerManager, Component::Kwok];
        let pid = |component| self.testbed()?.pid(component);
        let servers = self.server_pids().into_iter().map(|(_, pid)| pid);
        servers.chain(beside.into_iter().filter_map(pid)).collect()
    }

    /// Creates the service account that cronwheel runs as. Writes a JSON kubeconfig with a token for it.
    pub(crate) fn candidate_kubeconfig(&self, scratch: &Path) -> anyhow::Result<PathBuf> {
        self.account_kubeconfig(ACCOUNT, scratch)
    }

    /// Creates a service account with the rights of a release of this name. Writes a JSON kubeconfig with a token for it.
    pub(crate) fn account_kubeconfig(&self, account: &str, scratch: &Path) -> anyhow::Result<PathBuf> {
        if matches!(self.home, Home::InMemory { .. }) {
            // The in-memory server does not authenticate clients.
            return Ok(self.kubeconfig.clone());
        }
        self.kubectl.apply(&RBAC.replace(ACCOUNT, account))?;
        let token = self.kubectl.run(&[
            "create",
            "token",
            account,
            "--namespace",
            ACCOUNT_NAMESPACE,
            "--duration=24h",
        ])?;
        let admin = self
            .kubectl
            .run(&["config", "view", "--raw", "--minify", "--flatten", "--output=json"])?;
        let config = with_token(&admin, token.trim()).context("the kubeconfig has no user to replace")?;
        let path = scratch.join("candidate.kubeconfig");
        fs::write(&path, config).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// The user name of that service account.
    pub(crate) fn candidate_user() -> String {
        Target::user_of(ACCOUNT)
    }

    /// The user name of a service account of [`Target::account_kubeconfig`].
    pub(crate) fn user_of(account: &str) -> String {
        format!("system:serviceaccount:{ACCOUNT_NAMESPACE}:{account}")
    }

    /// Fails if the API server has dropped lines of its audit log. Missed Jobs are then indistinguishable from lost
    /// lines.
    pub(crate) fn check_audit_log(&self) -> anyhow::Result<()> {
        match self.n_dropped_audit_lines()? {
            n_dropped if n_dropped > 0.0 => bail!("the API server has dropped {n_dropped} lines of its audit log"),
            _ => Ok(()),
        }
    }

    /// The number of lines of its audit log that the API server has dropped.
    pub(crate) fn n_dropped_audit_lines(&self) -> anyhow::Result<f64> {
        let metrics = self.kubectl.run(&["get", "--raw", "/metrics"])?;
        let n_dropped = crate::exposition::Exposition::parse(&metrics).total("apiserver_audit_error_total");
        Ok(n_dropped.unwrap_or_default())
    }
}

/// Returns a kubeconfig for the same cluster with another user.
fn with_token(kubeconfig: &str, token: &str) -> Option<String> {
    let mut config: Value = serde_json::from_str(kubeconfig).ok()?;
    *config.get_mut("users")?.get_mut(0)?.get_mut("user")? = json!({ "token": token });
    Some(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_the_user_are_replaced_completely() {
        let admin = r#"{"clusters":[{"name":"c"}],"users":[{"name":"u","user":{"client-key-data":"secret"}}]}"#;
        let config = with_token(admin, "t").unwrap();
        assert_eq!(
            config,
            r#"{"clusters":[{"name":"c"}],"users":[{"name":"u","user":{"token":"t"}}]}"#
        );
        assert_eq!(with_token(r#"{"users":null}"#, "t"), None);
    }

    #[test]
    fn service_account_matches_the_manifest() {
        assert!(RBAC.contains("name: cronwheel\n  namespace: kube-system\n"));
    }
}

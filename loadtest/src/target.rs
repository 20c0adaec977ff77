//! The API server that is driven: one of our own, or one that runs already.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use testbed::{Binaries, Component, Kubectl, Options, Testbed};

/// What cronwheel may do where it is installed, and so here.
const RBAC: &str = include_str!("../../deploy/manifests/rbac.yaml");

/// The account that [`RBAC`] makes.
const ACCOUNT: &str = "cronwheel";
const ACCOUNT_NAMESPACE: &str = "kube-system";

/// An API server with an audit log.
#[derive(Debug)]
pub(crate) struct Target {
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
    /// Ours, and with it everything that is on it.
    testbed: Option<Testbed>,
}

impl Target {
    /// Starts an API server.
    pub(crate) fn start() -> anyhow::Result<Target> {
        Target::start_with(Vec::new())
    }

    /// Starts an API server with feature gates, as `Name=true`.
    pub(crate) fn start_with(feature_gates: Vec<String>) -> anyhow::Result<Target> {
        let testbed = Testbed::start(Options {
            audit: true,
            feature_gates,
            ..Options::default()
        })?;
        let audit_log = testbed.audit_log_path().context("the control plane has no audit log")?;
        Ok(Target {
            kubectl: testbed.kubectl(),
            kubeconfig: testbed.kubeconfig(),
            audit_log,
            testbed: Some(testbed),
        })
    }

    /// Takes one that runs. The kubeconfig is an administrator's; the audit log is read here, so it must be on this machine.
    pub(crate) fn running(kubeconfig: PathBuf, audit_log: PathBuf, scratch: &Path) -> anyhow::Result<Target> {
        let program = Binaries::find_or_build()?.kubectl;
        let kubectl = Kubectl::new(program, kubeconfig.clone(), scratch.join("kubectl-cache"));
        Ok(Target {
            kubectl,
            kubeconfig,
            audit_log,
            testbed: None,
        })
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// An administrator's.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// Ours, where it is ours: the built-in controller runs on no other.
    pub(crate) fn testbed_mut(&mut self) -> Option<&mut Testbed> {
        self.testbed.as_mut()
    }

    pub(crate) fn testbed(&self) -> Option<&Testbed> {
        self.testbed.as_ref()
    }

    /// Process ids of API server and etcd, where they are ours.
    pub(crate) fn server_pids(&self) -> Vec<(Component, u32)> {
        let pid = |component| Some((component, self.testbed.as_ref()?.pid(component)?));
        [Component::ApiServer, Component::Etcd]
            .into_iter()
            .filter_map(pid)
            .collect()
    }

    /// Process ids of everything that is ours, without the controller under test.
    pub(crate) fn own_pids(&self) -> Vec<u32> {
        let beside = [Component::ControllerManager, Component::Kwok];
        let pid = |component| self.testbed.as_ref()?.pid(component);
        let servers = self.server_pids().into_iter().map(|(_, pid)| pid);
        servers.chain(beside.into_iter().filter_map(pid)).collect()
    }

    /// Makes the account that cronwheel runs as, and writes a kubeconfig with a token of it.
    pub(crate) fn candidate_kubeconfig(&self, scratch: &Path) -> anyhow::Result<PathBuf> {
        self.kubectl.apply(RBAC)?;
        let token = self.kubectl.run(&[
            "create",
            "token",
            ACCOUNT,
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

    /// The user name of that account.
    pub(crate) fn candidate_user() -> String {
        format!("system:serviceaccount:{ACCOUNT_NAMESPACE}:{ACCOUNT}")
    }

    /// Fails where the API server has dropped lines of its audit log: then nothing can be said about missed Jobs.
    pub(crate) fn check_audit_log(&self) -> anyhow::Result<()> {
        match self.n_dropped_audit_lines()? {
            n_dropped if n_dropped > 0.0 => bail!("the API server has dropped {n_dropped} lines of its audit log"),
            _ => Ok(()),
        }
    }

    /// How many lines of its audit log the API server has dropped.
    pub(crate) fn n_dropped_audit_lines(&self) -> anyhow::Result<f64> {
        let metrics = self.kubectl.run(&["get", "--raw", "/metrics"])?;
        let n_dropped = crate::exposition::Exposition::parse(&metrics).total("apiserver_audit_error_total");
        Ok(n_dropped.unwrap_or_default())
    }
}

/// The same cluster, another user.
fn with_token(kubeconfig: &str, token: &str) -> Option<String> {
    let mut config: Value = serde_json::from_str(kubeconfig).ok()?;
    *config.get_mut("users")?.get_mut(0)?.get_mut("user")? = json!({ "token": token });
    Some(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_replaced_whole() {
        let admin = r#"{"clusters":[{"name":"c"}],"users":[{"name":"u","user":{"client-key-data":"secret"}}]}"#;
        let config = with_token(admin, "t").unwrap();
        assert_eq!(
            config,
            r#"{"clusters":[{"name":"c"}],"users":[{"name":"u","user":{"token":"t"}}]}"#
        );
        assert_eq!(with_token(r#"{"users":null}"#, "t"), None);
    }

    #[test]
    fn the_account_is_the_one_that_the_manifest_makes() {
        assert!(RBAC.contains("name: cronwheel\n  namespace: kube-system\n"));
    }
}

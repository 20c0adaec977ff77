//! Identities for the clients under test.
//!
//! The identity matters for API priority and fairness: `system:masters` is exempt, service accounts in kube-system
//! belong to `workload-high`, others to `workload-low`. A fair comparison with the built-in controller needs a service
//! account in kube-system.

use std::path::PathBuf;

use crate::{
    instance::Instance,
    kubeconfig::{self, Credential},
    testbed::TestbedError,
};

/// Longer than any test takes.
const TOKEN_DURATION: &str = "--duration=24h";

impl Instance {
    /// Creates a `ServiceAccount` with its own `ClusterRole`, and returns a kubeconfig with a token for it. `rules` is
    /// the YAML list of the role's rules, as under its `rules:`.
    pub fn service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
        rules: &str,
    ) -> Result<PathBuf, TestbedError> {
        self.kubectl().apply(&manifest(namespace, name, rules))?;
        self.token_kubeconfig(namespace, name)
    }

    /// Returns a kubeconfig with a token for an existing `ServiceAccount`.
    pub fn token_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf, TestbedError> {
        let token = self
            .kubectl()
            .run(&["create", "token", name, "--namespace", namespace, TOKEN_DURATION])?;
        let setup = self.setup();
        let keys = setup.key_path("");
        let text = kubeconfig::text(&self.api_server_url(), &keys, &Credential::Token(token.trim()));
        Ok(self.write(&format!("{namespace}-{name}.kubeconfig"), &text)?)
    }
}

fn manifest(namespace: &str, name: &str, rules: &str) -> String {
    let rules = if rules.trim().is_empty() {
        " []"
    } else {
        &format!("\n{rules}")
    };
    format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules:{rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: ServiceAccount, name: {name}, namespace: {namespace}}}]
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_lists_its_rules_or_an_empty_list() {
        let with_rules = manifest(
            "kube-system",
            "candidate",
            "- {apiGroups: [batch], resources: [jobs], verbs: [get]}",
        );
        assert!(with_rules.contains("\nrules:\n- {apiGroups: [batch]"), "{with_rules}");
        assert!(manifest("kube-system", "candidate", "").contains("\nrules: []\n"));
    }
}

//! A second installation of cronwheel on the same API server, with namespaces, an account and a policy of its own.

use std::path::{Path, PathBuf};

use super::{POLICY, built_in_policies};
use crate::{
    controller::{Candidate, Controller},
    generator::Load,
    target::Target,
};

/// The name of the installation, of its account, and the beginning of the names of its policies.
const NAME: &str = "second";

/// The label of its namespaces.
const MANAGED: &str = "second.example/managed";

/// The installation and its load.
#[derive(Clone, Debug)]
pub(super) struct Second {
    pub(super) load: Load,
    candidate: Candidate,
}

impl Second {
    pub(super) fn new(load: Load, program: PathBuf) -> Second {
        let mut arguments = vec![
            format!("--installation={NAME}"),
            format!("--namespace-selector={MANAGED}=true"),
        ];
        arguments.extend(built_in_policies(NAME));
        Second {
            load,
            candidate: Candidate::Cronwheel { program, arguments },
        }
    }

    /// Creates its namespaces and its policy, and starts its replica.
    pub(super) async fn start(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<Controller> {
        target.kubectl().apply(&self.load.namespaces_manifest())?;
        for namespace in self.load.namespaces() {
            super::label(target, MANAGED, &namespace, true)?;
        }
        target.kubectl().apply(&policy())?;
        let folder = scratch.join(NAME);
        std::fs::create_dir_all(&folder)?;
        Controller::start_as(NAME, &self.candidate, target, &folder).await
    }

    /// The user of its account.
    pub(super) fn user() -> String {
        Target::user_of(NAME)
    }
}

/// The policy of a release with this name and this label.
fn policy() -> String {
    POLICY
        .replace(super::MANAGED, MANAGED)
        .replace("cronwheel-built-in", &format!("{NAME}-built-in"))
        .replace(
            "cronwheel.dev/lease: cronwheel",
            &format!("cronwheel.dev/lease: {NAME}"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_policy_shares_no_name_no_lease_and_no_label_with_the_first() {
        let policy = policy();
        for shared in [
            "cronwheel-built-in",
            "cronwheel.dev/lease: cronwheel",
            super::super::MANAGED,
        ] {
            assert!(POLICY.contains(shared) && !policy.contains(shared), "{shared}");
        }
        assert_eq!(policy.matches(&format!("key: {MANAGED}\n")).count(), 2);
        assert_eq!(policy.matches("cronwheel.dev/lease: second\n").count(), 2);
    }
}

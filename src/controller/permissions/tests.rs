//! Tests that the table of permissions equals `deploy/manifests/rbac.yaml`, and tests of the messages.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_missing_permission_names_its_consequence_and_role() {
    let find = |verb: &str, resource: &str| {
        let is_same = |it: &&Permission| (it.verb, it.resource) == (verb, resource);
        *PERMISSIONS.iter().find(is_same).unwrap()
    };
    let scopes = ["a", "b", "c", "d", "e"].map(|name| Scope::Namespace(name.into()));
    let missing = MissingPermission {
        permission: find("create", "jobs"),
        scopes: scopes.into(),
        n_needed: 9,
    };
    let expected = "create jobs in namespace a, namespace b, namespace c and 2 others: no Job starts";
    assert_eq!(missing.to_string(), expected);
    let leases = MissingPermission {
        permission: find("patch", "leases"),
        scopes: vec![Scope::Namespace("kube-system".into())],
        n_needed: 1,
    };
    let text = leases.explanation();
    for part in ["may not patch leases in namespace kube-system", "Role cronwheel-leases"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Verb, group and resource of a permission, and whether it belongs to the namespace of the Leases.
type Row = (String, String, String, bool);

/// Parses the items of `key: [a, b]`.
fn inline_list(line: &str, key: &str) -> Option<Vec<String>> {
    let list = line.trim_start_matches("- ").strip_prefix(key)?.strip_prefix(": [")?;
    let (list, _) = list.split_once(']')?;
    Some(list.split(", ").map(|item| item.trim_matches('"').to_owned()).collect())
}

/// Parses the rules of one document of the manifest.
fn rules(document: &str, is_for_leases: bool) -> Vec<Row> {
    let (mut groups, mut resources) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    for line in document.lines().map(str::trim) {
        if let Some(list) = inline_list(line, "apiGroups") {
            groups = list;
        } else if let Some(list) = inline_list(line, "resources") {
            resources = list;
        } else if let Some((verb, reason)) = line.strip_prefix("- ").and_then(|line| line.split_once('#')) {
            assert!(!reason.trim().is_empty(), "{verb} has no reason");
            let (group, resource) = (groups[0].clone(), resources[0].clone());
            rows.push((verb.trim().to_owned(), group, resource, is_for_leases));
        }
    }
    rows
}

#[test]
fn permission_table_matches_the_installed_rbac_rules() {
    let manifest = include_str!("../../../deploy/manifests/rbac.yaml");
    let is_role = |document: &&str| document.contains("\nrules:\n");
    let roles = manifest.split("\n---\n").filter(is_role);
    let installed: Vec<Row> = roles
        .flat_map(|role| rules(role, role.contains("\nkind: Role\n")))
        .collect();
    let in_table: Vec<Row> = PERMISSIONS
        .into_iter()
        .chain(POLICY_PERMISSIONS)
        .map(|permission| {
            (
                permission.verb.to_owned(),
                permission.group.to_owned(),
                permission.resource.to_owned(),
                permission.place == Place::LeaseNamespace,
            )
        })
        .collect();
    let as_set = |rows: &[Row]| rows.iter().cloned().collect::<BTreeSet<Row>>();
    assert_eq!(as_set(&in_table), as_set(&installed));
    assert_eq!(in_table.len(), installed.len(), "one row for each rule");
}

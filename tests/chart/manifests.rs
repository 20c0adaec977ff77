//! The files in `deploy/manifests` are rendered from the chart, for installations without helm.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{chart, check_or_write, render_as, root};

/// Each file with a comment about its contents, its templates, and the values for them.
fn files() -> [(&'static str, &'static str, &'static [&'static str], Value); 6] {
    [
        (
            "rbac.yaml",
            "The service account and its permissions. It is in kube-system, because API priority and fairness assigns service\n\
             # accounts of that namespace to `workload-high`, like the account of the built-in controller, and others to\n\
             # `workload-low`. To use another account, change it in all files of this folder.",
            &["serviceaccount", "rbac"],
            json!({}),
        ),
        (
            "cronwheel.yaml",
            "The replicas. Replace the image by yours.",
            &["deployment", "service", "poddisruptionbudget"],
            json!({}),
        ),
        (
            "built-in-policy.yaml",
            "Keeps the built-in controller out of the namespaces with the label of --namespace-selector in cronwheel.yaml.",
            &["builtinpolicy", "builtinpolicy-leases"],
            json!({}),
        ),
        ("flow-schema.yaml", "Optional.", &["flowschema"], json!({})),
        (
            "fence-policy.yaml",
            "Optional. The match condition `by-cronwheel` has the name of the account.",
            &["fencepolicy"],
            json!({"fencePolicy": {"enabled": true}}),
        ),
        (
            "ui.yaml",
            "Optional: the page of `cronwheel ui`, with its own account. Replace the image by yours. Its history ends with the Pod.",
            &[
                "ui-serviceaccount",
                "ui-rbac",
                "ui-deployment",
                "ui-service",
                "ui-networkpolicy",
            ],
            json!({"ui": {"enabled": true}}),
        ),
    ]
}

/// A rendered text without lines that are only valid for an installation with helm.
fn without_helm(text: &str) -> String {
    let is_ours = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("# Source: ")
            && !line.starts_with("helm.sh/chart:")
            && line != "app.kubernetes.io/managed-by: Helm"
    };
    let documents = text.split("---\n").map(|document| {
        let lines: Vec<&str> = document.lines().filter(is_ours).collect();
        lines.join("\n").trim().to_owned()
    });
    let documents: Vec<String> = documents.filter(|document| !document.is_empty()).collect();
    documents.join("\n---\n")
}

#[test]
fn manifests_match_the_rendered_chart() {
    for (file, purpose, templates, values) in files() {
        let mut generated =
            format!("# {purpose}\n# Rendered from the chart in deploy/helm/cronwheel: change the chart instead.\n");
        let show_only: Vec<String> = templates
            .iter()
            .map(|template| format!("--show-only=templates/{template}.yaml"))
            .collect();
        let show_only: Vec<&str> = show_only.iter().map(String::as_str).collect();
        let rendered = render_as("cronwheel", &chart(), &values, &show_only).unwrap();
        writeln!(generated, "{}", without_helm(&rendered)).unwrap();
        check_or_write(&root().join("deploy/manifests").join(file), &generated);
    }
}

#[test]
fn manifests_contain_all_default_objects_of_the_chart() {
    let by_default = super::objects_of(&json!({}));
    let names = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
    let mut in_files = Vec::new();
    for (file, ..) in files() {
        let text = std::fs::read_to_string(root().join("deploy/manifests").join(file)).unwrap();
        in_files.extend(super::objects(&text).iter().map(names));
    }
    for object in &by_default {
        assert!(in_files.contains(&names(object)), "{:?}", names(object));
    }
}

#[test]
fn only_helm_labels_and_source_comments_are_removed() {
    let text = "---\n# Source: a.yaml\nkind: A\nmetadata:\n  labels:\n    helm.sh/chart: c\n    a: b\n---\nkind: B\n\n";
    assert_eq!(
        without_helm(text),
        "kind: A\nmetadata:\n  labels:\n    a: b\n---\nkind: B"
    );
}

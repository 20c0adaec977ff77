//! The permissions of controllers, and a service account for a single case. The account has its own connection, and its
//! permissions and identity can be withdrawn.

use std::{
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use kube::{Client, api::DeleteParams, config::Kubeconfig};
use serde_json::{Value, json};
use testbed::Proxy;

use super::kubernetes::{Namespace, client, code_of_list, wait};

const NAME: &str = "candidate";

/// The service account of the controllers of one case.
pub(super) struct Account {
    /// The proxy through which its controllers reach the API server.
    pub(super) proxy: Proxy,
    /// The token file of its controllers. It is rewritten when the token changes.
    token_path: PathBuf,
}

impl Account {
    /// Creates a service account that may only use the Leases of the case. Controllers of this case use it from now on.
    pub(super) async fn create_for(namespace: &mut Namespace) -> Account {
        let shared = Rc::clone(&namespace.control_plane);
        let text = fs::read_to_string(&shared.controller_kubeconfig).expect("a kubeconfig");
        let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
        let server = kubeconfig["clusters"][0]["cluster"]["server"].take();
        let server = server.as_str().expect("an address").trim_start_matches("https://");
        let proxy = Proxy::to(server).await.expect("a port");
        let token_path = shared
            .controller_kubeconfig
            .with_file_name(format!("{}.token", namespace.name));
        kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", proxy.address()));
        kubeconfig["users"][0]["user"] = json!({"tokenFile": token_path});
        let path = token_path.with_extension("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
        namespace.control_plane = Rc::new(shared.with_controller_kubeconfig(path));
        let account = Account { proxy, token_path };
        account.begin(namespace).await;
        account.permit_leases(namespace).await;
        account
    }

    async fn begin(&self, namespace: &Namespace) {
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}});
        namespace.create(object).await;
        let token = namespace.kubectl(&["create", "token", NAME]).await;
        fs::write(&self.token_path, token.trim()).expect("a token");
    }

    /// Replaces the identity by a new one with the same name, as forced rotations do. On return, the API server no
    /// longer accepts the first token, and the new one is in the file.
    pub(super) async fn rotate(&self, namespace: &Namespace) {
        let former = self.client(namespace).await;
        namespace.delete("ServiceAccount", NAME, DeleteParams::default()).await;
        self.begin(namespace).await;
        // The API server caches authenticated tokens for ten seconds.
        let is_unknown = wait(async || code_of_list(&former, namespace).await == 401).await;
        assert!(is_unknown, "the former token is still good");
    }

    /// Grants the permissions of cronwheel.
    pub(super) async fn permit(&self, namespace: &Namespace) {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cronwheel"});
        namespace
            .create(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": namespace.name},
                "roleRef": role,
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace.name}],
            }))
            .await;
        self.wait_for_code(namespace, 200).await;
    }

    /// Binds the Role for Leases, which the case has already.
    async fn permit_leases(&self, namespace: &Namespace) {
        let account = format!("--serviceaccount={}:{NAME}", namespace.name);
        namespace
            .kubectl(&["create", "rolebinding", NAME, "--role=cronwheel-leases", &account])
            .await;
    }

    /// Withdraws all permissions except those for Leases.
    pub(super) async fn forbid(&self, namespace: &Namespace) {
        namespace
            .delete("ClusterRoleBinding", &namespace.name, DeleteParams::default())
            .await;
        self.wait_for_code(namespace, 403).await;
    }

    async fn wait_for_code(&self, namespace: &Namespace, code: u16) {
        let client = self.client(namespace).await;
        let is_in_force = wait(async || code_of_list(&client, namespace).await == code).await;
        assert!(is_in_force, "{}: the account does not get {code}", namespace.name);
    }

    /// A client with the current token that returns errors without retries.
    async fn client(&self, namespace: &Namespace) -> Client {
        let mut kubeconfig =
            Kubeconfig::read_from(&namespace.control_plane.controller_kubeconfig).expect("a kubeconfig");
        let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user");
        user.token_file = None;
        user.token = Some(fs::read_to_string(&self.token_path).expect("a token").into());
        client(kubeconfig, false).await
    }
}

/// The rules of cronwheel's `ClusterRole`, as installed.
pub(super) fn rules() -> String {
    let manifest = include_str!("../../deploy/manifests/rbac.yaml");
    let role = manifest.split("\nrules:\n").nth(1).expect("a role");
    role.split("\n---").next().expect("its rules").to_owned()
}

/// Applies the Role for Leases and its binding, in the namespace of the case.
pub(super) async fn permit_leases(namespace: &Namespace) {
    let kubeconfig = &namespace.control_plane.controller_kubeconfig;
    let file = lease_role_file(kubeconfig, &namespace.name);
    namespace
        .kubectl(&["apply", "-f", file.to_str().expect("a path")])
        .await;
}

/// Writes the Role for Leases and its binding, for a namespace, to a file next to a kubeconfig.
pub(super) fn lease_role_file(kubeconfig: &Path, namespace: &str) -> PathBuf {
    let manifest = include_str!("../../deploy/manifests/rbac.yaml");
    let documents = manifest
        .split("\n---\n")
        .filter(|document| document.contains("name: cronwheel-leases\n"));
    let documents = documents.collect::<Vec<_>>().join("\n---\n");
    let here = format!("name: cronwheel-leases\n  namespace: {namespace}\n");
    let documents = documents.replace("name: cronwheel-leases\n  namespace: kube-system\n", &here);
    assert_eq!(documents.matches(&here).count(), 2, "a Role and its binding");
    let file = kubeconfig.with_file_name(format!("{namespace}.yaml"));
    fs::write(&file, documents).expect("a file");
    file
}

/// A verb, an API group and a resource.
pub(super) type Right = (&'static str, &'static str, &'static str);

/// Creates a service account with these rights in all namespaces. Returns the path of its kubeconfig.
pub(super) async fn account_with(namespace: &Namespace, name: &str, rights: &[Right]) -> PathBuf {
    namespace.kubectl(&["create", "serviceaccount", name]).await;
    let rules: Vec<Value> = rights
        .iter()
        .map(|(verb, group, resource)| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]}))
        .collect();
    let (group, full_name) = ("rbac.authorization.k8s.io", format!("{}-{name}", namespace.name));
    let metadata = json!({"name": full_name});
    let version = format!("{group}/v1");
    let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules});
    namespace.create(role).await;
    namespace
        .create(json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": full_name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace.name}],
        }))
        .await;
    let token = namespace.kubectl(&["create", "token", name]).await;
    let shared = &namespace.control_plane.controller_kubeconfig;
    let text = fs::read_to_string(shared).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = shared.with_file_name(format!("{full_name}.kubeconfig"));
    fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
    path
}

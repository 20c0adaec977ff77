//! The policy of the chart that keeps the built-in controller out of managed namespaces, a member Lease written by
//! hand, and requests in the name of the control plane's users.

use std::{fs, process::Command};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};

use super::{
    cases::installing::{Response, client, send_with},
    kubernetes::{Namespace, wait},
};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel");

/// The account of the built-in controller.
pub(super) const OWN: &str = "system:serviceaccount:kube-system:cronjob-controller";

/// The account that it shares with others if kube-controller-manager uses no service accounts.
pub(super) const SHARED: &str = "system:kube-controller-manager";

/// A member Lease of the policy's installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// There is none.
    Absent,
    /// Its member does not act.
    NotActing,
    /// Its member acts, and renewed it this many seconds ago.
    Acting(i64),
}

/// An applied policy, and the Leases that it takes as parameters.
pub(super) struct Policy<'n> {
    namespace: &'n Namespace,
    release: String,
    file: String,
    admin: Client,
}

impl<'n> Policy<'n> {
    /// Applies the policy of a release whose Leases are in this namespace. It is in force some seconds later.
    pub(super) async fn apply(namespace: &'n Namespace, release: &str, values: &[&str]) -> Policy<'n> {
        let file = Policy::render(namespace, release, values);
        namespace.kubectl(&["apply", "-f", &file]).await;
        Policy {
            namespace,
            release: release.to_owned(),
            file,
            admin: client(&namespace.control_plane.admin_kubeconfig).await,
        }
    }

    /// Writes the policy that the chart renders to a file, and returns its path.
    pub(super) fn render(namespace: &Namespace, release: &str, values: &[&str]) -> String {
        let kubeconfig = &namespace.control_plane.admin_kubeconfig;
        let file = kubeconfig.with_file_name(format!("{release}-policy.yaml"));
        fs::write(&file, rendered(release, &namespace.name, values)).expect("a file");
        file.to_str().expect("a path").to_owned()
    }

    /// Removes the policy. Keeps what helm keeps.
    pub(super) async fn remove(self) {
        self.unbind().await;
        self.delete("validatingadmissionpolicies").await;
    }

    /// Deletes the bindings, as the emergency exit does.
    pub(super) async fn unbind(&self) {
        self.delete("validatingadmissionpolicybindings").await;
    }

    async fn delete(&self, resource: &str) {
        let names = ["writes", "deletes"].map(|policy| format!("{}-built-in-{policy}", self.release));
        self.namespace
            .kubectl(&["delete", "--ignore-not-found", resource, &names[0], &names[1]])
            .await;
    }

    /// Applies the policy again.
    pub(super) async fn bind(&self) {
        self.namespace.kubectl(&["apply", "-f", &self.file]).await;
    }

    /// Asserts that the API server stores the policy as it is rendered. Otherwise tools that compare both would report a
    /// difference. Members that the API server adds to an object are none, and those in an element of a list are one.
    pub(super) async fn assert_stored_as_rendered(&self) {
        let text = fs::read_to_string(&self.file).expect("the policy");
        let rendered: Vec<Value> = serde_saphyr::from_multiple(&text).expect("objects");
        assert_eq!(rendered.len(), 6);
        for object in rendered {
            let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
            let [kind, name] = [kind, name].map(|text| text.as_str().expect("text"));
            let stored = self.namespace.find(kind, name).await.expect("the object");
            assert!(has_all_of(&stored["spec"], &object["spec"]), "{stored:#}");
        }
    }

    /// Brings the Lease of this member into a state.
    pub(super) async fn set_lease(&self, member: &str, state: LeaseState) {
        let name = format!("{}-{member}", self.release);
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace.name);
        let one = format!("{path}/{name}");
        let (acts, age) = match state {
            LeaseState::Absent => {
                let code = send_with(&self.admin, &[], "DELETE", &one, json!({})).await.code;
                assert!([200, 404].contains(&code), "{code}");
                return;
            }
            LeaseState::NotActing => (Value::Null, 0),
            LeaseState::Acting(age) => (json!("true"), age),
        };
        let renewed = Timestamp::now() - SignedDuration::from_secs(age);
        let lease = json!({
            "metadata": {
                "name": name,
                "labels": {"cronwheel.dev/lease": self.release, "cronwheel.dev/acts": acts},
            },
            "spec": {"holderIdentity": "a", "renewTime": format!("{renewed:.6}")},
        });
        let patched = send_with(&self.admin, &[], "PATCH", &one, lease.clone()).await;
        if patched.code == 404 {
            let mut lease = lease;
            if acts.is_null() {
                lease["metadata"]["labels"] = json!({"cronwheel.dev/lease": self.release});
            }
            let created = send_with(&self.admin, &[], "POST", &path, lease).await;
            assert_eq!(created.code, 201, "{}", created.body);
        } else {
            assert_eq!(patched.code, 200, "{}", patched.body);
        }
    }

    /// Sends a request as a dry run in the name of a user who has all permissions.
    pub(super) async fn try_as(&self, user: &str, method: &str, path: &str, body: Value) -> Response {
        // A deletion takes its options from its body.
        let body = if method == "DELETE" {
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]})
        } else {
            body
        };
        let headers = [("impersonate-user", user), ("impersonate-group", "system:masters")];
        send_with(&self.admin, &headers, method, &format!("{path}?dryRun=All"), body).await
    }

    /// Reads an object.
    pub(super) async fn read(&self, path: &str) -> Value {
        let found = send_with(&self.admin, &[], "GET", path, Value::Null).await;
        assert_eq!(found.code, 200, "{}", found.body);
        found.body
    }

    /// Creates an object.
    pub(super) async fn create(&self, path: &str, object: Value) {
        let created = send_with(&self.admin, &[], "POST", path, object).await;
        assert_eq!(created.code, 201, "{}", created.body);
    }

    /// Whether this policy refused a request. A request that failed for another reason fails the test.
    pub(super) fn has_refused(&self, response: &Response) -> bool {
        let is_refused = self.is_refusal(response);
        assert!(is_refused || is_success(response), "{}", response.body);
        is_refused
    }

    fn is_refusal(&self, response: &Response) -> bool {
        let message = response.body["message"].as_str().unwrap_or_default();
        response.code == 403 && message.contains(&format!("ValidatingAdmissionPolicy '{}-", self.release))
    }

    /// Waits until this policy refuses Jobs of CronJobs by the built-in controller in a namespace, or until nothing
    /// refuses them.
    pub(super) async fn wait_until_creates_are(&self, namespace: &Namespace, refused: bool) {
        let path = format!("/apis/batch/v1/namespaces/{}/jobs", namespace.name);
        let mut last = Value::Null;
        let is_so = async || {
            let job = job_of_cron_job("probe", json!({}));
            let response = self.try_as(OWN, "POST", &path, job).await;
            let is_so = if refused {
                self.is_refusal(&response)
            } else {
                is_success(&response)
            };
            last = response.body;
            is_so
        };
        let name = &namespace.name;
        assert!(wait(is_so).await, "{name}: refused is not {refused}: {last}");
    }
}

/// Whether a value has these members, and others only in objects outside of lists.
fn has_all_of(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(name, inner)| value.get(name).is_some_and(|value| has_all_of(value, inner))),
        (value, expected) => value == expected,
    }
}

fn is_success(response: &Response) -> bool {
    (200..300).contains(&response.code)
}

/// A Job whose controller is a CronJob.
pub(super) fn job_of_cron_job(name: &str, annotations: Value) -> Value {
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "controller": true,
        "name": "hello", "uid": "11111111-2222-3333-4444-555555555555",
    });
    let mut job = super::kubernetes::own_job(name, json!({"outcome": "hang", "run-for": "0s"}));
    job["metadata"]["ownerReferences"] = json!([owner]);
    job["metadata"]["annotations"] = annotations;
    job
}

/// The policy that the chart renders.
fn rendered(release: &str, lease_namespace: &str, values: &[&str]) -> String {
    let values = values.iter().map(|value| format!("--set={value}"));
    let output = Command::new(testbed::find_or_build_helm().expect("helm"))
        .args(["template", release, CHART, "--namespace", lease_namespace])
        .arg("--show-only=templates/builtinpolicy*.yaml")
        .arg(format!("--set=fullnameOverride={release}"))
        .arg(format!("--set=controller.installation={release}"))
        .args(values)
        .env("KUBECONFIG", "/dev/null")
        .output()
        .expect("helm");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).expect("text")
}

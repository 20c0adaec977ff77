//! The requests of the release's service account, read from the API server's audit log.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    ops::RangeInclusive,
};

use cronwheel::controller::permissions::{PERMISSIONS, POLICY_PERMISSIONS, Permission};
use serde_json::Value;

use super::{
    cluster::{Cluster, now, wait_for},
    release::NAMESPACE,
    tenant::{MINUTELY, TENANT},
};

const ACCOUNT: &str = "system:serviceaccount:cronwheel:cronwheel";
/// The only permission that no request uses: it is for an admission plugin that this API server does not have.
const UNUSED: [&str; 1] = ["update batch cronjobs/finalizers"];

/// The requests of the account, in the order of the log.
pub(crate) struct Audit {
    requests: Vec<Value>,
}

impl Audit {
    /// Reads the log up to now.
    pub(crate) fn read(cluster: &Cluster) -> Audit {
        Audit::of_account(cluster, ACCOUNT)
    }

    /// Reads the requests of another account up to now.
    pub(crate) fn of_account(cluster: &Cluster, account: &str) -> Audit {
        // The log has all earlier requests once it has this one.
        let marker = format!("marker-{}", now());
        cluster.kubectl(&["get", "job", &marker, "--namespace", TENANT, "--ignore-not-found"]);
        let path = cluster.testbed.audit_log_path().unwrap();
        let text = wait_for("the audit log", || {
            let text = fs::read_to_string(&path).unwrap();
            text.contains(&marker).then_some(text)
        });
        // The last line may be incomplete.
        let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_ours = |request: &Value| request["user"]["username"] == account && request["stage"] != "ResponseStarted";
        Audit {
            requests: requests.filter(is_ours).collect(),
        }
    }

    /// Asserts exactly one Job of each minutely CronJob for each of these minutes.
    pub(crate) fn assert_runs(&self, minutes: RangeInclusive<u64>) {
        self.assert_runs_of(&MINUTELY, minutes);
    }

    /// Asserts exactly one Job of each of these CronJobs for each of these minutes.
    pub(crate) fn assert_runs_of(&self, cron_jobs: &[impl fmt::Display], minutes: RangeInclusive<u64>) {
        let mut created: BTreeMap<&str, usize> = BTreeMap::new();
        for request in self.of("create", "jobs").filter(|request| code(request) == 201) {
            *created
                .entry(request["objectRef"]["name"].as_str().unwrap())
                .or_default() += 1;
        }
        let doubled: Vec<_> = created.iter().filter(|(_, count)| **count > 1).collect();
        assert!(doubled.is_empty(), "created twice: {doubled:?}");
        let slots = minutes.flat_map(|minute| cron_jobs.iter().map(move |name| format!("{name}-{minute}")));
        let slots: Vec<String> = slots.collect();
        let missed: Vec<&String> = slots
            .iter()
            .filter(|slot| !created.contains_key(slot.as_str()))
            .collect();
        assert!(
            missed.is_empty() && !slots.is_empty(),
            "missed: {missed:?} of {slots:?}"
        );
        eprintln!("{} runs, none missed or doubled", slots.len());
    }

    /// The Jobs created in a namespace for slots from a minute on.
    pub(crate) fn created_in(&self, namespace: &str, since: u64) -> Vec<&str> {
        let is_it = |request: &&Value| code(request) == 201 && request["objectRef"]["namespace"] == namespace;
        let created = self.of("create", "jobs").filter(is_it);
        let names = created.map(|request| request["objectRef"]["name"].as_str().unwrap());
        let is_late =
            |name: &&str| name.rsplit('-').next().and_then(|minute| minute.parse::<u64>().ok()) >= Some(since);
        names.filter(is_late).collect()
    }

    /// Asserts that no request was forbidden.
    pub(crate) fn assert_nothing_forbidden(&self) {
        self.assert_nothing_forbidden_but("no path");
    }

    /// Asserts that no request was forbidden except under this path.
    pub(crate) fn assert_nothing_forbidden_but(&self, path: &str) {
        let mut forbidden = self.forbidden();
        forbidden.retain(|(_, uri)| !uri.starts_with(path));
        assert!(forbidden.is_empty(), "missing permissions: {forbidden:?}");
    }

    /// The Pod and the URI of each forbidden request.
    pub(crate) fn forbidden(&self) -> Vec<(&str, &str)> {
        let forbidden = self.requests.iter().filter(|request| code(request) == 403);
        let requests = forbidden.map(|request| {
            let pod = &request["user"]["extra"]["authentication.kubernetes.io/pod-name"][0];
            (
                pod.as_str().unwrap_or_default(),
                request["requestURI"].as_str().unwrap(),
            )
        });
        requests.collect()
    }

    /// The permissions that the requests used, named by [`permission_name`].
    pub(crate) fn used_permissions(&self) -> BTreeSet<String> {
        let permission = |request: &Value| {
            let target = &request["objectRef"];
            let text = |member: &str| target[member].as_str().unwrap_or_default();
            let resource = [text("resource"), text("subresource")].join("/");
            let place = if target["namespace"].is_null() {
                CLUSTER
            } else {
                NAMESPACE
            };
            permission_name(
                request["verb"].as_str()?,
                text("apiGroup"),
                resource.trim_end_matches('/'),
                place,
            )
        };
        self.requests.iter().filter_map(permission).collect()
    }

    fn of(&self, verb: &str, resource: &str) -> impl Iterator<Item = &Value> {
        let requests = self.requests.iter();
        requests.filter(move |request| request["verb"] == verb && request["objectRef"]["resource"] == resource)
    }
}

fn code(request: &Value) -> u64 {
    request["responseStatus"]["code"].as_u64().unwrap_or_default()
}

const CLUSTER: &str = "all namespaces";

/// The name of a permission. Only for Leases does it depend on the place: one permission covers the namespace of the
/// release, another one covers all namespaces.
fn permission_name(verb: &str, group: &str, resource: &str, place: &str) -> Option<String> {
    // All users may create access reviews of themselves.
    let is_granted_by_us = group != "authorization.k8s.io" && !resource.is_empty();
    let place = if resource == "leases" && place == CLUSTER {
        " in all namespaces"
    } else {
        ""
    };
    let parts = [verb, group, resource].into_iter().filter(|part| !part.is_empty());
    is_granted_by_us.then(|| parts.collect::<Vec<_>>().join(" ") + place)
}

/// The permissions that the program may need.
fn needed() -> BTreeSet<String> {
    let name = |it: &Permission| permission_name(it.verb, it.group, it.resource, NAMESPACE);
    PERMISSIONS.iter().chain(&POLICY_PERMISSIONS).filter_map(name).collect()
}

impl Cluster {
    /// The permissions of the release in its `ClusterRole` and its Role.
    fn granted(&self) -> BTreeSet<String> {
        let cluster_wide = self.get(&["clusterrole", "cronwheel"]);
        let role = self.get(&["role", "cronwheel-leases", "--namespace", NAMESPACE]);
        let mut granted = BTreeSet::new();
        for (role, place) in [(cluster_wide, CLUSTER), (role, NAMESPACE)] {
            for rule in role["rules"].as_array().unwrap() {
                for verb in texts(&rule["verbs"]) {
                    for resource in texts(&rule["resources"]) {
                        let group = rule["apiGroups"][0].as_str().unwrap();
                        granted.extend(permission_name(verb, group, resource, place));
                    }
                }
            }
        }
        granted
    }

    /// Waits until requests have used every permission that the program may need. Asserts that none was refused, and
    /// that the release has no other permissions.
    pub(crate) fn assert_permissions(&self) {
        let needed = needed();
        let used = wait_for("all permissions in use", || {
            let audit = Audit::read(self);
            audit.assert_nothing_forbidden();
            let used = audit.used_permissions();
            let unused: Vec<&String> = needed.difference(&used).collect();
            eprintln!("unused: {unused:?}");
            (unused == UNUSED).then_some(used)
        });
        let granted = self.granted();
        let unused: Vec<&String> = granted.difference(&used).collect();
        assert_eq!(unused, UNUSED, "granted, and not used");
        eprintln!(
            "{} permissions, none missing, all used except {UNUSED:?}",
            granted.len()
        );
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(verb: &str, resource: &str, name: &str, code: u16) -> Value {
        let extra = json!({"authentication.kubernetes.io/pod-name": ["cronwheel-1"]});
        json!({
            "verb": verb,
            "requestURI": "/here",
            "user": {"username": ACCOUNT, "extra": extra},
            "objectRef": {"apiGroup": "batch", "resource": resource, "namespace": TENANT, "name": name},
            "responseStatus": {"code": code},
        })
    }

    /// All runs of two minutes.
    fn runs() -> Vec<Value> {
        let runs = (7..=8).flat_map(|minute| MINUTELY.map(|name| format!("{name}-{minute}")));
        runs.map(|name| request("create", "jobs", &name, 201)).collect()
    }

    #[test]
    fn audit_accepts_one_run_per_minute() {
        let mut requests = runs();
        requests.push(request("create", "jobs", "minutely-0-7", 409));
        let audit = Audit { requests };
        audit.assert_runs(7..=8);
        assert_eq!(audit.created_in(TENANT, 8).len(), MINUTELY.len());
        assert!(audit.created_in("other", 0).is_empty());
    }

    #[test]
    #[should_panic(expected = r#"missed: ["minutely-3-8"]"#)]
    fn missed_run_fails_the_audit() {
        let mut requests = runs();
        requests.pop();
        Audit { requests }.assert_runs(7..=8);
    }

    #[test]
    #[should_panic(expected = r#"created twice: [("minutely-0-7", 2)]"#)]
    fn doubled_run_fails_the_audit() {
        let mut requests = runs();
        requests.push(requests[0].clone());
        Audit { requests }.assert_runs(7..=8);
    }

    #[test]
    #[should_panic(expected = r#"missing permissions: [("cronwheel-1", "/here")]"#)]
    fn missing_permission_fails_the_audit() {
        let requests = vec![request("delete", "jobs", "a", 403)];
        Audit { requests }.assert_nothing_forbidden();
    }

    #[test]
    fn permissions_are_named_after_the_requests() {
        let lease = |verb| {
            let mut request = request(verb, "leases", "", 200);
            request["objectRef"]["apiGroup"] = json!("coordination.k8s.io");
            request
        };
        let mut everywhere = lease("list");
        everywhere["objectRef"]["namespace"] = Value::Null;
        let mut status = request("update", "cronjobs", "a", 200);
        status["objectRef"]["subresource"] = json!("status");
        let mut review = request("create", "selfsubjectaccessreviews", "", 201);
        review["objectRef"]["apiGroup"] = json!("authorization.k8s.io");
        let refused = request("delete", "jobs", "a", 403);
        let used = Audit {
            requests: vec![lease("watch"), everywhere, status, review, refused],
        }
        .used_permissions();
        let everywhere = "list coordination.k8s.io leases in all namespaces";
        let expected = [
            "delete batch jobs",
            everywhere,
            "update batch cronjobs/status",
            "watch coordination.k8s.io leases",
        ];
        assert_eq!(used, expected.map(str::to_owned).into());
        let not_needed: Vec<String> = used.difference(&needed()).cloned().collect();
        assert_eq!(not_needed, [everywhere]);
    }
}

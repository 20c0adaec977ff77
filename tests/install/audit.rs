//! What the release's account asked of the API server, by the audit log.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    ops::RangeInclusive,
};

use cronwheel::controller::permissions::{PERMISSIONS, Permission, Place};
use serde_json::Value;

use super::{
    cluster::{Cluster, now, wait_for},
    release::NAMESPACE,
    tenant::{MINUTELY, TENANT},
};

const ACCOUNT: &str = "system:serviceaccount:cronwheel:cronwheel";
/// The only right that no request uses: it is for an admission plugin that this API server does not have.
const UNUSED: [&str; 1] = ["update batch cronjobs/finalizers"];

/// The requests of the account, in the order of the log.
pub(crate) struct Audit {
    requests: Vec<Value>,
}

impl Audit {
    /// Reads the log up to now.
    pub(crate) fn read(cluster: &Cluster) -> Audit {
        // Asked for last, so that all earlier requests are in the log once it is.
        let marker = format!("asked-for-at-{}", now());
        cluster.kubectl(&["get", "job", &marker, "--namespace", TENANT, "--ignore-not-found"]);
        let path = cluster.testbed.audit_log_path().unwrap();
        let text = wait_for("the audit log", || {
            let text = fs::read_to_string(&path).unwrap();
            text.contains(&marker).then_some(text)
        });
        // The last line may not be whole.
        let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_ours = |request: &Value| request["user"]["username"] == ACCOUNT && request["stage"] != "ResponseStarted";
        Audit {
            requests: requests.filter(is_ours).collect(),
        }
    }

    /// Demands exactly one Job of each minutely CronJob for each of these minutes.
    pub(crate) fn demand_runs(&self, minutes: RangeInclusive<u64>) {
        self.demand_runs_of(&MINUTELY, minutes);
    }

    /// Demands exactly one Job of each of these CronJobs for each of these minutes.
    pub(crate) fn demand_runs_of(&self, cron_jobs: &[impl fmt::Display], minutes: RangeInclusive<u64>) {
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

    /// The Jobs that were created in a namespace since a minute.
    pub(crate) fn created_in(&self, namespace: &str, since: u64) -> Vec<&str> {
        let is_it = |request: &&Value| code(request) == 201 && request["objectRef"]["namespace"] == namespace;
        let created = self.of("create", "jobs").filter(is_it);
        let names = created.map(|request| request["objectRef"]["name"].as_str().unwrap());
        let is_late =
            |name: &&str| name.rsplit('-').next().and_then(|minute| minute.parse::<u64>().ok()) >= Some(since);
        names.filter(is_late).collect()
    }

    /// Demands that no request was forbidden.
    pub(crate) fn demand_nothing_forbidden(&self) {
        let forbidden = self.forbidden();
        assert!(forbidden.is_empty(), "rights are missing: {forbidden:?}");
    }

    /// The requests that were forbidden, with the Pod that sent them.
    pub(crate) fn forbidden(&self) -> Vec<(&str, &str)> {
        let forbidden = self.requests.iter().filter(|request| code(request) == 403);
        let told = forbidden.map(|request| {
            let pod = &request["user"]["extra"]["authentication.kubernetes.io/pod-name"][0];
            (
                pod.as_str().unwrap_or_default(),
                request["requestURI"].as_str().unwrap(),
            )
        });
        told.collect()
    }

    /// The rights that the requests asked for, as [`named`] names them.
    fn asked_for(&self) -> BTreeSet<String> {
        let right = |request: &Value| {
            let target = &request["objectRef"];
            let text = |member: &str| target[member].as_str().unwrap_or_default();
            let resource = [text("resource"), text("subresource")].join("/");
            let place = if target["namespace"].is_null() {
                CLUSTER
            } else {
                NAMESPACE
            };
            named(
                request["verb"].as_str()?,
                text("apiGroup"),
                resource.trim_end_matches('/'),
                place,
            )
        };
        self.requests.iter().filter_map(right).collect()
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

/// A right. Leases alone may be asked for in one namespace and in all of them by two different rights.
fn named(verb: &str, group: &str, resource: &str, place: &str) -> Option<String> {
    // Everybody may ask what they may do.
    let is_own = group != "authorization.k8s.io" && !resource.is_empty();
    let place = if resource == "leases" && place == CLUSTER {
        " in all namespaces"
    } else {
        ""
    };
    let words = [verb, group, resource].into_iter().filter(|word| !word.is_empty());
    is_own.then(|| words.collect::<Vec<_>>().join(" ") + place)
}

/// The rights that the program may need.
fn needed() -> BTreeSet<String> {
    let name = |it: &Permission| {
        let place = if it.place == Place::Cluster { CLUSTER } else { NAMESPACE };
        named(it.verb, it.group, it.resource, place)
    };
    PERMISSIONS.iter().filter_map(name).collect()
}

impl Cluster {
    /// The rights of the release, by its `ClusterRole` and its Role.
    fn granted(&self) -> BTreeSet<String> {
        let cluster_wide = self.get(&["clusterrole", "cronwheel"]);
        let role = self.get(&["role", "cronwheel-leases", "--namespace", NAMESPACE]);
        let mut granted = BTreeSet::new();
        for (role, place) in [(cluster_wide, CLUSTER), (role, NAMESPACE)] {
            for rule in role["rules"].as_array().unwrap() {
                for verb in texts(&rule["verbs"]) {
                    for resource in texts(&rule["resources"]) {
                        let group = rule["apiGroups"][0].as_str().unwrap();
                        granted.extend(named(verb, group, resource, place));
                    }
                }
            }
        }
        granted
    }

    /// Waits until every right that the program may need was asked for. Demands that none was refused, and that the
    /// release has no other.
    pub(crate) fn demand_rights(&self) {
        let needed = needed();
        let asked_for = wait_for("every right was asked for", || {
            let audit = Audit::read(self);
            audit.demand_nothing_forbidden();
            let asked_for = audit.asked_for();
            let others: Vec<&String> = needed.difference(&asked_for).collect();
            eprintln!("not asked for: {others:?}");
            (others == UNUSED).then_some(asked_for)
        });
        let granted = self.granted();
        let unused: Vec<&String> = granted.difference(&asked_for).collect();
        assert_eq!(unused, UNUSED, "granted, and not used");
        eprintln!("{} rights, none missing, all used but {UNUSED:?}", granted.len());
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
        audit.demand_runs(7..=8);
        assert_eq!(audit.created_in(TENANT, 8).len(), MINUTELY.len());
        assert!(audit.created_in("other", 0).is_empty());
    }

    #[test]
    #[should_panic(expected = r#"missed: ["minutely-3-8"]"#)]
    fn a_missed_run_is_noticed() {
        let mut requests = runs();
        requests.pop();
        Audit { requests }.demand_runs(7..=8);
    }

    #[test]
    #[should_panic(expected = r#"created twice: [("minutely-0-7", 2)]"#)]
    fn a_doubled_run_is_noticed() {
        let mut requests = runs();
        requests.push(requests[0].clone());
        Audit { requests }.demand_runs(7..=8);
    }

    #[test]
    #[should_panic(expected = r#"rights are missing: [("cronwheel-1", "/here")]"#)]
    fn a_missing_right_is_noticed() {
        let requests = vec![request("patch", "jobs", "a", 403)];
        Audit { requests }.demand_nothing_forbidden();
    }

    #[test]
    fn permissions_are_named_after_the_requests() {
        let mut everywhere = request("list", "leases", "", 200);
        everywhere["objectRef"] = json!({"apiGroup": "coordination.k8s.io", "resource": "leases"});
        let mut status = request("update", "cronjobs", "a", 200);
        status["objectRef"]["subresource"] = json!("status");
        let mut review = request("create", "selfsubjectaccessreviews", "", 201);
        review["objectRef"]["apiGroup"] = json!("authorization.k8s.io");
        let requests = vec![everywhere, status, review, request("delete", "jobs", "a", 403)];
        let expected = [
            "delete batch jobs",
            "list coordination.k8s.io leases in all namespaces",
            "update batch cronjobs/status",
        ];
        let asked_for = Audit { requests }.asked_for();
        assert_eq!(asked_for, expected.map(str::to_owned).into());
        assert!(asked_for.is_subset(&needed()));
    }
}

//! A cluster with the release, an autoscaler and metrics, and the actions of a test on it.

use std::{
    collections::BTreeMap,
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testbed::{Autoscaling, Instance};

use super::{metrics_api::MetricsApi, shards::Shards};
use crate::{
    cluster::{Cluster, wait_for},
    prometheus::{Prometheus, samples},
    release::{CHART, NAMESPACE, name_of},
    tenant::{TENANT, cron_job},
};

/// The KEDA example, which contains our query.
const KEDA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/autoscaling/keda.yaml"));
const POLL: Duration = Duration::from_secs(1);
/// The periods and windows of the chart, divided by sixty.
const PACE: u64 = 60;

/// Fields are dropped in this order: the users of the cluster before the cluster.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) metrics_api: MetricsApi,
    pub(crate) prometheus: Prometheus,
    pub(crate) cluster: Cluster,
    pace: Autoscaling,
}

/// The release at one moment.
#[derive(Debug)]
pub(crate) struct State {
    /// The number of replicas in the Deployment's spec.
    pub(crate) n_replicas: u64,
    /// The number of shards of each Pod.
    pub(crate) shares: BTreeMap<String, usize>,
}

/// A replica that was killed.
#[derive(Debug)]
pub(crate) struct Kill {
    pub(crate) at: Instant,
    pub(crate) pod: String,
}

/// Our query in the KEDA example.
fn query() -> String {
    let keda: Value = serde_saphyr::from_str(KEDA).unwrap();
    let triggers = keda["spec"]["triggers"].as_array().unwrap();
    let query = triggers
        .iter()
        .find_map(|trigger| trigger["metadata"]["query"].as_str());
    query.unwrap().to_owned()
}

/// The chart's default behaviour, with windows and periods divided by [`PACE`].
fn behavior() -> Value {
    let values = fs::read_to_string(format!("{CHART}/values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&values).unwrap();
    let mut behavior = values["autoscaling"]["behavior"].clone();
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &mut behavior[direction];
        shorten(&mut rules["stabilizationWindowSeconds"]);
        for policy in rules["policies"].as_array_mut().unwrap() {
            shorten(&mut policy["periodSeconds"]);
        }
    }
    behavior
}

fn shorten(seconds: &mut Value) {
    *seconds = json!(seconds.as_u64().unwrap() / PACE);
}

impl Rig {
    pub(crate) fn start(pace: Autoscaling) -> Rig {
        let cluster = Cluster::start_with(pace);
        let instance = Instance::clone(&cluster.testbed);
        let prometheus = Prometheus::start(&instance, cluster.nodes.processes());
        let metrics_api = MetricsApi::start(&cluster, prometheus.client().clone(), query());
        Rig {
            metrics_api,
            prometheus,
            cluster,
            pace,
        }
    }

    /// Installs the release with these values for the autoscaler. At the fast pace it has one to five replicas and
    /// short windows and periods. Otherwise it has the chart's.
    pub(crate) fn install(&self, autoscaling: &Value) {
        let range = match self.pace {
            Autoscaling::Fast => json!({"minReplicas": 1, "maxReplicas": 5, "behavior": behavior()}),
            Autoscaling::Usual | Autoscaling::Off => json!({}),
        };
        let mut values = json!({
            "autoscaling": {"enabled": true},
            // With a small request, the autoscaler measures usage in small steps.
            "resources": {"requests": {"cpu": "10m"}},
        });
        let all = values["autoscaling"].as_object_mut().unwrap();
        for more in [&range, autoscaling] {
            all.extend(more.as_object().unwrap().clone());
        }
        let file = self.cluster.testbed.folder().join("values.json");
        fs::write(&file, values.to_string()).unwrap();
        self.cluster.create_namespace();
        self.cluster.create_tenants();
        let values = format!("--values={}", file.display());
        self.cluster.release("install", &[CHART, &values]);
    }

    /// Changes a value of the release.
    pub(crate) fn set(&self, path: &str, value: u32) {
        let value = format!("--set={path}={value}");
        self.cluster.release("upgrade", &[CHART, "--reuse-values", &value]);
    }

    /// Creates CronJobs that start a Job every minute. Returns their names.
    pub(crate) fn create_minutely(&self, name: &str, n_cron_jobs: usize) -> Vec<String> {
        let names: Vec<String> = (0..n_cron_jobs).map(|number| format!("{name}-{number}")).collect();
        let all: Vec<Value> = names.iter().map(|name| cron_job(TENANT, name)).collect();
        self.cluster.create(&all);
        names
    }

    /// Creates CronJobs that are not due during the test.
    pub(crate) fn create_spare(&self, n_cron_jobs: usize) {
        let spare = |number: usize| {
            let mut spare = cron_job(TENANT, &format!("spare-{number}"));
            spare["metadata"]["labels"] = json!({"spare": "true"});
            spare["spec"]["schedule"] = json!("0 0 29 2 *");
            spare
        };
        self.cluster.create(&(0..n_cron_jobs).map(spare).collect::<Vec<_>>());
    }

    pub(crate) fn delete_spare(&self) {
        let selector = "--selector=spare=true";
        self.cluster
            .kubectl(&["delete", "cronjobs", "--namespace", TENANT, selector, "--wait=false"]);
    }

    /// The number of replicas in the Deployment's spec.
    pub(crate) fn replicas(&self) -> u64 {
        let deployment = self.cluster.get(&["deployment", "cronwheel", "--namespace", NAMESPACE]);
        deployment["spec"]["replicas"].as_u64().unwrap()
    }

    /// Waits until the Deployment's spec has this many replicas and they are ready.
    pub(crate) fn wait_for_replicas(&self, n_replicas: u64) {
        wait_for("the number of replicas", || {
            (self.replicas() == n_replicas).then_some(())
        });
        self.cluster.wait_for_pods(usize::try_from(n_replicas).unwrap());
    }

    /// Asserts that the number of replicas stays the same for this duration.
    pub(crate) fn assert_replicas(&self, why: &str, n_replicas: u64, duration: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < duration {
            assert_eq!(self.replicas(), n_replicas, "{why}, after {:?}", begin.elapsed());
            sleep(POLL);
        }
        eprintln!("{why}: {n_replicas} replicas for {duration:?}");
    }

    /// The reason why the autoscaler cannot scale. Empty if it can.
    fn failure(&self) -> String {
        let autoscaler = self
            .cluster
            .get(&["horizontalpodautoscaler", "cronwheel", "--namespace", NAMESPACE]);
        let conditions = autoscaler["status"]["conditions"].as_array();
        let active = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "ScalingActive");
        let failure = active.filter(|condition| condition["status"] == "False");
        failure.map_or_else(String::new, |condition| {
            condition["reason"].as_str().unwrap().to_owned()
        })
    }

    /// Asserts that the autoscaler cannot scale, for a reason with this prefix.
    pub(crate) fn assert_failure(&self, reason: &str) {
        let failure = self.failure();
        assert!(failure.starts_with(reason), "{failure:?}");
    }

    pub(crate) fn wait_for_failure(&self, reason: &str) {
        wait_for(reason, || self.failure().starts_with(reason).then_some(()));
    }

    /// Waits until our query returns this number.
    pub(crate) fn wait_for_cron_jobs_led(&self, n_cron_jobs: usize) {
        let query = query().replace("kube-system", NAMESPACE);
        let expected = f64::from(u32::try_from(n_cron_jobs).unwrap());
        wait_for("CronJobs led", || {
            let samples = samples(self.prometheus.client(), &query)?;
            let is_it = matches!(&samples[..], [only] if (only.value - expected).abs() < 0.5);
            is_it.then_some(())
        });
    }

    /// The number of Pods with processor time in the cluster's metrics API.
    pub(crate) fn pods_with_processor_time(&self) -> usize {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods");
        let metrics: Value = serde_json::from_str(&self.cluster.kubectl(&["get", "--raw", &path])).unwrap();
        metrics["items"].as_array().unwrap().len()
    }

    /// Makes the scrapes of one replica fail, and waits until our query returns nothing.
    pub(crate) fn lose_a_replica(&self) {
        let pods = self.cluster.pods();
        self.prometheus.lose(Some(name_of(&pods[0])));
        let query = query().replace("kube-system", NAMESPACE);
        wait_for("a query without a result", || {
            samples(self.prometheus.client(), &query)?.is_empty().then_some(())
        });
    }

    /// Kills the process of a replica that is not terminating. Its container is restarted.
    pub(crate) fn kill_a_replica(&self) -> Kill {
        let pods = self.cluster.pods();
        let pod = name_of(&pods[0]).to_owned();
        let process = self.cluster.nodes.process(&pod).unwrap();
        let pid = Pid::from_raw(process.pid.try_into().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        Kill {
            at: Instant::now(),
            pod,
        }
    }

    /// Whether the Deployment's spec has two replicas and no other Pod is left.
    pub(crate) fn has_two_replicas(&self) -> bool {
        self.replicas() == 2 && self.cluster.list(&["pods", "--namespace", NAMESPACE]).len() == 2
    }

    pub(crate) fn state(&self) -> State {
        let kinds = "deployments.apps,leases.coordination.k8s.io";
        let objects = self.cluster.list(&[kinds, "--namespace", NAMESPACE]);
        let is = |object: &Value, kind: &str| object["kind"] == kind;
        let deployment = objects.iter().find(|object| is(object, "Deployment")).unwrap();
        let leases: Vec<Value> = objects.iter().filter(|object| is(object, "Lease")).cloned().collect();
        let held = Shards::of(&leases);
        let shares = held.shares().into_iter();
        State {
            n_replicas: deployment["spec"]["replicas"].as_u64().unwrap(),
            shares: shares.map(|(pod, share)| (pod.to_owned(), share)).collect(),
        }
    }
}

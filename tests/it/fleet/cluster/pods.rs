//! Actions on Pods, and queries about their shards.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use apisim::{Fault, Rule, RuleId};
use cronwheel::{
    controller::{RuntimeError, clock::SimulatedWall},
    coordination::PROTOCOL_VERSION,
    kube_api::latest_value::LatestSender,
    schedule::Zone,
};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use tokio::time::sleep;
use tower::ServiceExt as _;

use super::Fleet;
use crate::fleet::pod::{Pod, Process};

impl Fleet {
    /// Adds a Pod without a process.
    pub(in crate::fleet) fn add(&mut self, name: &str) {
        let pod = Pod {
            name: name.to_owned(),
            identity: (name.to_owned(), format!("uid-{name}")),
            wall: SimulatedWall::starting_at(self.now()),
            is_cut: LatestSender::new(false),
            n_lost_watches: LatestSender::new(0),
            front_end: 0,
            object_watches_at: None,
            write_connections_at: Vec::new(),
            revision: "1".to_owned(),
            default_zone: Zone::utc(),
            shard_count: self.shard_count,
            protocol: PROTOCOL_VERSION,
            freeze_at_create: Arc::default(),
            fail_lease_task: Arc::default(),
            lease_response_delay_millis: Arc::default(),
            process: None,
        };
        self.pods.borrow_mut().insert(name.to_owned(), pod);
    }

    /// Changes a Pod before its start.
    pub(in crate::fleet) fn change(&self, name: &str, change: impl FnOnce(&mut Pod)) {
        change(self.pods.borrow_mut().get_mut(name).unwrap());
    }

    fn with<T>(&self, name: &str, read: impl FnOnce(&Pod) -> T) -> T {
        read(self.pods.borrow().get(name).unwrap_or_else(|| panic!("no pod {name}")))
    }

    /// Starts a process in a Pod, which is added if necessary. Returns the number of the process.
    pub(in crate::fleet) fn start(&mut self, name: &str) -> u64 {
        self.n_processes += 1;
        self.start_as(name, self.n_processes, 0)
    }

    /// Starts a process with this number, whose lives are numbered from `first_life`.
    pub(in crate::fleet) fn start_as(&mut self, name: &str, number: u64, first_life: u64) -> u64 {
        if !self.pods.borrow().contains_key(name) {
            self.add(name);
        }
        self.change(name, |pod| {
            pod.start(number, first_life, &self.api, &self.clock, &self.records);
        });
        number
    }

    pub(in crate::fleet) fn start_all(&mut self, names: &[&str]) {
        for name in names {
            self.start(name);
        }
    }

    /// Kills a process, whether it is frozen or not. Returns its number.
    pub(in crate::fleet) async fn kill(&self, name: &str) -> u64 {
        let process = self.pods.borrow_mut().get_mut(name).unwrap().process.take().unwrap();
        let number = process.number;
        process.kill().await;
        self.thaw(name);
        number
    }

    /// Requests the termination of a process.
    pub(in crate::fleet) fn terminate(&self, name: &str) {
        self.with(name, |pod| pod.process.as_ref().unwrap().terminate());
    }

    pub(in crate::fleet) fn has_ended(&self, name: &str) -> bool {
        self.with(name, |pod| pod.process.as_ref().is_none_or(Process::has_ended))
    }

    /// Waits until a process has ended. Returns its result.
    pub(in crate::fleet) async fn ended(&self, name: &str) -> Result<(), RuntimeError> {
        let process = self.pods.borrow_mut().get_mut(name).unwrap().process.take().unwrap();
        process.ended().await
    }

    /// Requests the termination of a process and waits until it has ended. Returns the duration.
    pub(in crate::fleet) async fn drain(&self, name: &str) -> Duration {
        let begun = self.now();
        self.terminate(name);
        self.ended(name).await.unwrap();
        self.since(begun)
    }

    pub(in crate::fleet) fn freeze(&self, name: &str) {
        self.with(name, |pod| pod.wall.freeze());
    }

    pub(in crate::fleet) fn thaw(&self, name: &str) {
        self.with(name, |pod| pod.wall.thaw());
    }

    /// Adds a fault for every existing Pod, and for no other client.
    pub(in crate::fleet) fn add_fault(&self, rule: Rule) -> Vec<RuleId> {
        let pods = self.pods.borrow();
        pods.keys().map(|name| self.add_fault_for(name, rule.clone())).collect()
    }

    /// Adds a fault for one Pod.
    pub(in crate::fleet) fn add_fault_for(&self, name: &str, rule: Rule) -> RuleId {
        let client = Some(name.to_owned());
        self.api.faults().add(Rule { client, ..rule })
    }

    pub(in crate::fleet) fn remove_faults(&self, rules: Vec<RuleId>) {
        for rule in rules {
            self.api.faults().remove(rule);
        }
    }

    /// Freezes a process at its nth create from now, after the decision to send it and before the send.
    pub(in crate::fleet) fn freeze_at_create(&self, name: &str, nth: u64) {
        self.with(name, |pod| pod.freeze_at_create.store(nth, Ordering::Relaxed));
    }

    /// Cuts the connection of a Pod. All traffic is lost, and neither side gets an error.
    pub(in crate::fleet) fn cut(&self, name: &str) -> [RuleId; 2] {
        self.with(name, |pod| pod.is_cut.set(true));
        let elapsed: Duration = self.since(self.start);
        let dead_at = elapsed + Duration::from_secs(5);
        let of = |fault: Fault, from: Duration, until: Duration| Rule {
            client: Some(name.to_owned()),
            during: from..until,
            ..Rule::new(fault)
        };
        [
            of(Fault::StallWatch, elapsed, dead_at),
            // Requests wait at the connection until then.
            of(Fault::Outage, dead_at, Duration::MAX),
        ]
        .map(|rule| self.api.faults().add(rule))
    }

    pub(in crate::fleet) fn is_cut(&self, name: &str) -> bool {
        self.with(name, |pod| pod.is_cut.get())
    }

    pub(in crate::fleet) fn heal(&self, name: &str, rules: [RuleId; 2]) {
        for rule in rules {
            self.api.faults().remove(rule);
        }
        self.with(name, |pod| pod.is_cut.set(false));
    }

    /// Loses all packets of a Pod. Its open watches of CronJobs and Jobs stay silent even after packets arrive again:
    /// the API server repeats their data late. A watch of Leases has a keep-alive.
    pub(in crate::fleet) fn lose_packets(&self, name: &str) {
        self.with(name, |pod| {
            pod.is_cut.set(true);
            pod.n_lost_watches.update(|n_lost| n_lost + 1);
        });
    }

    /// Ends `lose_packets`.
    pub(in crate::fleet) fn deliver_packets(&self, name: &str) {
        self.with(name, |pod| pod.is_cut.set(false));
    }

    pub(in crate::fleet) fn number(&self, name: &str) -> u64 {
        self.with(name, |pod| pod.process.as_ref().unwrap().number)
    }

    pub(in crate::fleet) fn names(&self) -> Vec<String> {
        let pods = self.pods.borrow();
        let running = pods.values().filter(|pod| pod.process.is_some());
        running.map(|pod| pod.name.clone()).collect()
    }

    /// Reads a value from the process in a Pod.
    pub(in crate::fleet) fn inspect<T>(&self, name: &str, read: impl FnOnce(&Process) -> T) -> T {
        self.with(name, |pod| read(pod.process.as_ref().unwrap()))
    }

    /// Returns the reason in `/readyz` why the process in a Pod is not ready. The reason is empty if it is ready.
    pub(in crate::fleet) async fn not_ready(&self, name: &str) -> String {
        let (is_ready, body) = self.readiness(name).await;
        if is_ready { String::new() } else { body }
    }

    /// Whether the process in a Pod is ready, with the body of `/readyz`.
    pub(in crate::fleet) async fn readiness(&self, name: &str) -> (bool, String) {
        let router = self.inspect(name, Process::admin).router();
        let request = http::Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let is_ready = response.status().is_success();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        (is_ready, body)
    }

    /// The reason in the metrics why the process in a Pod takes no shards.
    pub(in crate::fleet) fn takes_no_shards(&self, name: &str) -> Option<String> {
        self.inspect(name, Process::takes_no_shards)
    }

    /// The number of shards without a leader, in the metrics of the process in a Pod. It is 0 if there is no such metric.
    pub(in crate::fleet) fn n_without_leader(&self, name: &str) -> u64 {
        let value = self.inspect(name, |process| process.metric("cronwheel_shards_unowned "));
        value.map_or(0, |value| value.parse().unwrap())
    }

    pub(in crate::fleet) fn wall(&self, name: &str) -> SimulatedWall {
        self.with(name, |pod| pod.wall.clone())
    }

    /// The number of shards for which the process in each Pod acts.
    pub(in crate::fleet) fn shares(&self) -> BTreeMap<String, usize> {
        let pods = self.pods.borrow();
        let running = pods.values().filter_map(|pod| Some((pod, pod.process.as_ref()?)));
        running
            .map(|(pod, process)| (pod.name.clone(), process.acts_on().len()))
            .collect()
    }

    pub(in crate::fleet) fn n_led(&self) -> usize {
        self.shares().values().sum()
    }

    /// Waits until every shard has a leader. Returns the duration.
    pub(in crate::fleet) async fn all_led(&self, patience: Duration) -> Duration {
        let begun = self.now();
        while self.n_led() < usize::from(self.shard_count.get()) {
            let waited = self.since(begun);
            assert!(waited <= patience, "leaders after {waited:?}: {:?}", self.shares());
            sleep(Duration::from_millis(5)).await;
        }
        self.since(begun)
    }

    pub(in crate::fleet) fn since(&self, begun: Timestamp) -> Duration {
        self.now().duration_since(begun).try_into().unwrap_or_default()
    }
}

//! The replicas of one case, the CronJobs that they share, and the leaders of shards.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use serde_json::Value;
use testbed::replica::{
    Replica, ReplicaSetup,
    turns::{handovers, led_since},
    turns_in,
};
use tokio::time::{Instant, sleep};

use super::{
    cron_jobs::{create_all, cron_jobs},
    sightings::Sightings,
    verdict::{self, Lateness},
};
use crate::{
    account::permit_leases,
    controller::free_port,
    exchange,
    kubernetes::{Namespace, job_name, wait},
};

pub(super) use testbed::replica::N_SHARDS;

/// Time for the start, for the first replica to lead all shards, for the settle window and for rebalancing.
const START_SECONDS: i64 = 20;

const POLL: Duration = Duration::from_millis(50);
const READY_WAIT_MAX: Duration = Duration::from_secs(30);
const END_WAIT_MAX: Duration = Duration::from_secs(25);

/// One process.
struct Member {
    replica: Replica,
    /// Whether the shards in its log count as led: it has not ended and is not frozen.
    is_acting: bool,
}

/// The replicas of one case.
pub(super) struct Group {
    pub(super) namespace: Namespace,
    members: Vec<Member>,
    /// The offset of the replicas' clocks.
    ahead: SignedDuration,
    /// The minute of the namespace from which the offset applies.
    ahead_since: i64,
    /// The minute of the namespace that is the first of the case. It is later if the replicas took longer to start.
    begin: i64,
    sightings: Sightings,
    folder: PathBuf,
}

impl Group {
    /// Starts replicas and waits until the shards are evenly distributed, at least this long before the first slot of
    /// the case.
    pub(super) async fn start(namespace: Namespace, n_replicas: usize, lead_seconds: i64) -> Group {
        permit_leases(&namespace).await;
        create_all(&namespace).await;
        let sightings = Sightings::begin(&namespace);
        let kubeconfig = &namespace.control_plane.controller_kubeconfig;
        let folder = kubeconfig.with_file_name(format!("{}.logs", namespace.name));
        fs::create_dir_all(&folder).expect("a folder");
        let lead = SignedDuration::from_secs(START_SECONDS + lead_seconds);
        let ahead = (namespace.minute(0) - lead).duration_since(Timestamp::now());
        let mut group = Group {
            namespace,
            members: Vec::new(),
            ahead,
            ahead_since: 0,
            begin: 0,
            sightings,
            folder,
        };
        for _ in 0..n_replicas {
            group.add("r1");
        }
        group.wait_until_all_led(SignedDuration::from_secs(20)).await;
        group.wait_until_even(n_replicas).await;
        while group.minute(0) - SignedDuration::from_secs(lead_seconds) < group.now() {
            group.begin += 1;
        }
        group
    }

    /// When this slot of the case is due.
    fn minute(&self, slot: i64) -> Timestamp {
        self.namespace.minute(self.begin + slot)
    }

    /// The time of the replicas' clocks.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    /// Sets the clocks of replicas that start from now on to this time before a minute of the case.
    pub(super) fn advance_to(&mut self, minute: i64, lead: SignedDuration) {
        self.ahead_since = self.begin + minute - 1;
        self.ahead = (self.minute(minute) - lead).duration_since(Timestamp::now());
    }

    /// Starts a replica in a new Pod. Returns its number.
    pub(super) fn add(&mut self, revision: &str) -> usize {
        let kubeconfig = self.namespace.control_plane.controller_kubeconfig.clone();
        self.add_by(revision, &kubeconfig)
    }

    /// Starts a replica with its own kubeconfig.
    pub(super) fn add_by(&mut self, revision: &str, kubeconfig: &Path) -> usize {
        let number = self.members.len();
        let setup = ReplicaSetup {
            program: env!("CARGO_BIN_EXE_cronwheel").into(),
            kubeconfig: kubeconfig.to_owned(),
            lease_namespace: self.namespace.name.clone(),
            pod_name: format!("cw-{number}"),
            pod_uid: format!("uid-{number}"),
            revision: revision.to_owned(),
            address: format!("127.0.0.1:{}", free_port()),
            arguments: Vec::new(),
            log: PathBuf::new(),
        };
        self.begin(setup)
    }

    /// Restarts a replica that has ended, in the same Pod. Returns its number.
    pub(super) fn restart(&mut self, number: usize) -> usize {
        self.begin(self.members[number].replica.setup().clone())
    }

    fn begin(&mut self, setup: ReplicaSetup) -> usize {
        let number = self.members.len();
        let setup = ReplicaSetup {
            log: self.folder.join(format!("{number}.log")),
            arguments: vec![
                format!("--namespace={}", self.namespace.name),
                format!("--clock-offset={}ms", self.ahead.as_millis()),
            ],
            ..setup
        };
        let replica = Replica::start(setup).expect("a process");
        self.members.push(Member {
            replica,
            is_acting: true,
        });
        number
    }

    pub(super) fn pod_uid(&self, number: usize) -> String {
        self.members[number].replica.setup().pod_uid.clone()
    }

    /// Waits until the replica is ready to take shards.
    pub(super) async fn wait_until_ready(&self, number: usize) {
        let address = self.members[number].replica.setup().address.clone();
        let limit = Instant::now() + READY_WAIT_MAX;
        while exchange::get(&address, "/readyz").await.is_none() {
            assert!(Instant::now() < limit, "replica {number} is not ready");
            sleep(POLL).await;
        }
    }

    /// Terminates a replica as a rollout does. Returns how long that took.
    pub(super) async fn end(&mut self, number: usize) -> Duration {
        let begun = Instant::now();
        self.members[number].replica.terminate().expect("a signal");
        self.wait_for_end(number).await;
        begun.elapsed()
    }

    async fn wait_for_end(&mut self, number: usize) {
        let limit = Instant::now() + END_WAIT_MAX;
        let member = &mut self.members[number];
        loop {
            if let Some(status) = member.replica.ending().expect("a status") {
                assert!(status.success(), "replica {number}: {status}");
                member.is_acting = false;
                return;
            }
            assert!(Instant::now() < limit, "replica {number} does not end");
            sleep(POLL).await;
        }
    }

    /// Kills a replica as in a crash. Returns the time of the kill.
    pub(super) fn kill(&mut self, number: usize) -> Timestamp {
        let member = &mut self.members[number];
        member.is_acting = false;
        member.replica.kill().expect("a kill");
        self.now()
    }

    pub(super) fn freeze(&mut self, number: usize) -> Timestamp {
        self.members[number].is_acting = false;
        self.members[number].replica.freeze().expect("a signal");
        self.now()
    }

    pub(super) fn thaw(&mut self, number: usize) {
        self.members[number].is_acting = true;
        self.members[number].replica.thaw().expect("a signal");
    }

    /// Sets whether the shards in its log count as led, for example while it is cut off.
    pub(super) fn set_acting(&mut self, number: usize, is_acting: bool) {
        self.members[number].is_acting = is_acting;
    }

    /// Since when each led shard has been led, according to the logs.
    fn led(&self) -> BTreeMap<u64, Timestamp> {
        let turns = |member: &Member| turns_in(&member.replica.setup().log).expect("a log");
        let logs: Vec<_> = self
            .members
            .iter()
            .map(|member| (member.is_acting, turns(member)))
            .collect();
        led_since(logs.iter().map(|(is_acting, turns)| (*is_acting, &turns[..])))
    }

    /// Waits until all shards are led by acting replicas. Returns when the last one got its leader.
    pub(super) async fn wait_until_all_led(&self, limit: SignedDuration) -> Timestamp {
        self.wait_until_all_led_by(self.now() + limit).await
    }

    async fn wait_until_all_led_by(&self, limit: Timestamp) -> Timestamp {
        loop {
            let led = self.led();
            if led.len() == N_SHARDS as usize {
                return led.into_values().max().expect("shards");
            }
            assert!(
                self.now() < limit,
                "{}: {} shards are led",
                self.namespace.name,
                led.len()
            );
            sleep(POLL).await;
        }
    }

    /// Asserts that all shards are led again within this time after an instant. Returns how long it took, in seconds.
    pub(super) async fn assert_all_led_within(&self, since: Timestamp, seconds: i64) -> f64 {
        let limit = since + SignedDuration::from_secs(seconds);
        let last = self.wait_until_all_led_by(limit).await;
        let took = last.duration_since(since).as_secs_f64();
        eprintln!("        {}: all shards led after {took:.2} s", self.namespace.name);
        took
    }

    /// The Lease of each shard: its term and the uid of its holder's Pod.
    pub(super) async fn shard_leases(&self) -> BTreeMap<String, (u64, String)> {
        let list = self.namespace.api("Lease").list(&ListParams::default()).await;
        let lease = |object: kube::api::DynamicObject| {
            let name = object.metadata.name.expect("a name");
            let spec: &Value = &object.data["spec"];
            let holder = spec["holderIdentity"].as_str().unwrap_or_default();
            let pod_uid = holder.split('/').nth(1).unwrap_or_default().to_owned();
            let term = spec["leaseTransitions"].as_u64().unwrap_or_default();
            name.starts_with("cronwheel-shard-").then_some((name, (term, pod_uid)))
        };
        list.expect("Leases").into_iter().filter_map(lease).collect()
    }

    /// The number of shards that each Pod leads according to the Leases.
    pub(super) async fn shares(&self) -> BTreeMap<String, u32> {
        let mut shares = BTreeMap::new();
        for (_, pod_uid) in self.shard_leases().await.into_values() {
            *shares.entry(pod_uid).or_default() += 1;
        }
        shares
    }

    /// Waits until this many Pods lead equally many shards, or one more.
    pub(super) async fn wait_until_even(&self, n_pods: usize) {
        let mut shares = BTreeMap::new();
        let is_even = async || {
            shares = self.shares().await;
            let (least, most) = (shares.values().min(), shares.values().max());
            let difference = most.zip(least).map(|(most, least)| most - least);
            shares.len() == n_pods && difference.is_some_and(|difference| difference <= 1)
        };
        assert!(wait(is_even).await, "{}: {shares:?}", self.namespace.name);
    }

    /// The sum of a metric over its labels.
    pub(super) async fn metric(&self, number: usize, name: &str) -> u64 {
        let address = &self.members[number].replica.setup().address;
        let text = exchange::get(address, "/metrics").await.expect("metrics");
        let samples = text.lines().filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            (sample.split('{').next() == Some(name)).then(|| value.parse::<u64>().expect("a whole number"))
        });
        samples.sum()
    }

    pub(super) async fn wait_for_metric(&self, number: usize, name: &str, least: u64) {
        let is_reached = wait(async || self.metric(number, name).await >= least).await;
        assert!(is_reached, "{}: replica {number}: {name}", self.namespace.name);
    }

    /// Sleeps until this many seconds after a minute of the case. May be negative.
    pub(super) async fn sleep_until(&self, minute: i64, seconds: i64) {
        let instant = self.minute(minute) + SignedDuration::from_secs(seconds);
        let left = instant.duration_since(self.now());
        let left = Duration::try_from(left).unwrap_or_else(|_| {
            panic!("{}: {instant} is past by {left:#}", self.namespace.name);
        });
        sleep(left).await;
    }

    /// The complete Jobs of a slot that were created more than this many seconds after it. No other Job waits for
    /// them.
    pub(super) fn complete_jobs_later_than(&self, slot: i64, seconds: i64) -> Vec<String> {
        let minute = self.minute(slot);
        let of_slot: BTreeSet<String> = cron_jobs().map(|cron_job| job_name(&cron_job, minute)).collect();
        let from = minute + SignedDuration::from_secs(seconds) - self.ahead;
        let sightings = self.sightings.all().into_iter();
        sightings
            .filter(|job| of_slot.contains(&job.name) && job.created >= from && job.completed.is_some())
            .map(|job| job.name)
            .collect()
    }

    /// Prints how long shards took to change hands.
    fn print_handovers(&self) {
        let turns = |member: &Member| turns_in(&member.replica.setup().log).expect("a log");
        let turns: Vec<_> = self.members.iter().flat_map(turns).collect();
        let (handovers, n_without) = handovers(&turns);
        let mut took: Vec<_> = handovers
            .iter()
            .map(|handover| handover.live.duration_since(handover.sealed).as_millis())
            .collect();
        took.sort_unstable();
        eprintln!(
            "        {}: {} handovers, seal to live p50 {:?}, most {:?} ms; {n_without} seals without one",
            self.namespace.name,
            took.len(),
            took.get(took.len() / 2),
            took.last()
        );
    }

    /// Stops all replicas and checks this many slots.
    pub(super) async fn finish(self, n_slots: i64) {
        let slots: Vec<i64> = (0..n_slots).collect();
        self.finish_with(&slots).await;
    }

    /// Stops all replicas shortly after the last of these slots, and checks the slots. Slots before the first of the
    /// case were due too.
    pub(super) async fn finish_with(mut self, slots: &[i64]) {
        let last = slots.iter().max().expect("a slot");
        if self.now() < self.minute(*last) + SignedDuration::from_secs(6) {
            self.sleep_until(*last, 6).await;
        }
        let running: Vec<usize> = (0..self.members.len())
            .filter(|number| self.members[*number].is_acting)
            .collect();
        for number in &running {
            self.members[*number].replica.terminate().expect("a signal");
        }
        for number in running {
            self.wait_for_end(number).await;
        }
        self.print_handovers();
        let lateness = Lateness {
            ahead: self.ahead,
            first_minute: self.ahead_since,
        };
        let of_case = slots.iter().map(|slot| self.begin + slot);
        let slots: Vec<i64> = (0..self.begin).chain(of_case).collect();
        verdict::check(&self.namespace, &self.sightings, &slots, lateness).await;
    }
}

//! The replicas of a run, youngest last, and their combined logs.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use testbed::replica::{
    N_SHARDS, Replica, ReplicaSetup,
    turns::{Turn, TurnKind, led_since},
    turns_in,
};

use super::table::Drain;
use crate::{
    controller::get,
    measure::{ProcessUsage, reset_resident_max},
};

/// Maximum wait for readiness, for leaders of all shards, and for an exit. Replicas that start together list all Jobs,
/// which takes up to a minute beside hundreds of thousands of them, and more than five where three replicas list 400,000 on
/// two busy cores.
const WAIT_MAX: Duration = Duration::from_mins(15);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Poll interval while waiting for an exit. It is short because the duration is measured.
const END_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Poll interval for logs. It is long because logs are read completely; their lines have their own timestamps.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The replicas of a run.
pub(in crate::scenario) struct Fleet {
    template: ReplicaSetup,
    scratch: PathBuf,
    running: VecDeque<Replica>,
    last_killed: Option<ReplicaSetup>,
    frozen: Vec<Replica>,
    /// The logs of the replicas that have ended.
    ended: Vec<PathBuf>,
    n_started: usize,
}

impl Fleet {
    pub(in crate::scenario) fn new(program: &Path, kubeconfig: &Path, scratch: &Path) -> Fleet {
        Fleet {
            template: ReplicaSetup {
                program: program.to_owned(),
                kubeconfig: kubeconfig.to_owned(),
                lease_namespace: "kube-system".to_owned(),
                pod_name: String::new(),
                pod_uid: String::new(),
                revision: String::new(),
                address: String::new(),
                arguments: Vec::new(),
                log: PathBuf::new(),
            },
            scratch: scratch.to_owned(),
            running: VecDeque::new(),
            last_killed: None,
            frozen: Vec::new(),
            ended: Vec::new(),
            n_started: 0,
        }
    }

    /// Starts a replica in a new Pod. Returns the port of its endpoints.
    pub(in crate::scenario) fn add(&mut self, revision: &str) -> anyhow::Result<u16> {
        let number = self.n_started;
        self.begin(ReplicaSetup {
            pod_name: format!("cw-{number}"),
            pod_uid: format!("uid-{number}"),
            revision: revision.to_owned(),
            ..self.template.clone()
        })
    }

    /// Restarts the replica that was killed last, in the same Pod.
    pub(in crate::scenario) fn restart_last_killed(&mut self) -> anyhow::Result<()> {
        let setup = self.last_killed.take().context("none was killed")?;
        self.begin(setup).map(drop)
    }

    fn begin(&mut self, setup: ReplicaSetup) -> anyhow::Result<u16> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let replica = Replica::start(ReplicaSetup {
            address: format!("127.0.0.1:{port}"),
            log: self.scratch.join(format!("replica-{}.log", self.n_started)),
            ..setup
        })?;
        self.n_started += 1;
        self.running.push_back(replica);
        Ok(port)
    }

    pub(in crate::scenario) async fn wait_until_ready(&mut self, port: u16) -> anyhow::Result<()> {
        let begin = Instant::now();
        while get(port, "/readyz").is_err() {
            if let Some(replica) = self.running.back_mut()
                && let Some(status) = replica.ending()?
            {
                bail!("a replica ended ({status}) before it was ready\n{}", tail(replica));
            }
            if begin.elapsed() > WAIT_MAX {
                bail!("a replica is not ready after {} s", WAIT_MAX.as_secs());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Stops the oldest replica and waits for its exit.
    pub(in crate::scenario) async fn drain_oldest(&mut self) -> anyhow::Result<Drain> {
        let mut replica = self.running.pop_front().context("there is no replica")?;
        let requested = Timestamp::now();
        let begin = Instant::now();
        replica.terminate()?;
        wait_for_end(&mut replica).await?;
        let took = begin.elapsed();
        self.ended.push(replica.setup().log.clone());
        let turns = replica.turns()?;
        let leaves = turns.iter().filter(|turn| matches!(turn.kind, TurnKind::Leaves { .. }));
        let last = leaves.map(|turn| turn.at).max().context("it had no shards")?;
        Ok(Drain {
            requested,
            handed_over: last.duration_since(requested).try_into()?,
            took,
        })
    }

    /// Kills the oldest replica as in a crash. Returns when.
    pub(in crate::scenario) fn kill_oldest(&mut self) -> anyhow::Result<Timestamp> {
        let mut replica = self.running.pop_front().context("there is no replica")?;
        let killed = Timestamp::now();
        replica.kill()?;
        self.ended.push(replica.setup().log.clone());
        self.last_killed = Some(replica.setup().clone());
        Ok(killed)
    }

    /// Freezes the oldest replica. Returns when.
    pub(in crate::scenario) fn freeze_oldest(&mut self) -> anyhow::Result<Timestamp> {
        let replica = self.running.pop_front().context("there is no replica")?;
        let frozen = Timestamp::now();
        replica.freeze()?;
        self.ended.push(replica.setup().log.clone());
        self.frozen.push(replica);
        Ok(frozen)
    }

    /// Kills the replicas that are frozen.
    pub(in crate::scenario) fn kill_frozen(&mut self) -> anyhow::Result<()> {
        for mut replica in self.frozen.drain(..) {
            replica.kill()?;
        }
        Ok(())
    }

    /// Waits until all shards are led. Returns when the last one got its leader.
    pub(in crate::scenario) async fn wait_until_all_led(&self) -> anyhow::Result<Timestamp> {
        let begin = Instant::now();
        loop {
            let led = self.led()?;
            if led.len() == N_SHARDS as usize {
                return led.into_values().max().context("there are no shards");
            }
            if begin.elapsed() > WAIT_MAX {
                let log = self.running.back().map(tail).unwrap_or_default();
                bail!("{} shards are led after {} s\n{log}", led.len(), WAIT_MAX.as_secs());
            }
            tokio::time::sleep(LOG_POLL_INTERVAL).await;
        }
    }

    fn led(&self) -> anyhow::Result<BTreeMap<u64, Timestamp>> {
        let mut logs = Vec::new();
        for replica in &self.running {
            logs.push((true, replica.turns()?));
        }
        for log in &self.ended {
            logs.push((false, turns_in(log)?));
        }
        Ok(led_since(logs.iter().map(|(is_alive, turns)| (*is_alive, &turns[..]))))
    }

    /// Returns the most memory that a running replica has used since the last call.
    pub(in crate::scenario) fn take_resident_max_mib(&self) -> anyhow::Result<f64> {
        let mut max_kib = 0;
        for replica in &self.running {
            max_kib = max_kib.max(ProcessUsage::of(replica.pid())?.resident_max_kib);
            reset_resident_max(replica.pid())?;
        }
        #[expect(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
        Ok(max_kib as f64 / 1_024.0)
    }

    /// Returns the most memory that a running replica uses now.
    pub(in crate::scenario) fn resident_mib(&self) -> anyhow::Result<f64> {
        let mut max_kib = 0;
        for pid in self.pids() {
            max_kib = max_kib.max(ProcessUsage::of(pid)?.resident_kib);
        }
        #[expect(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
        Ok(max_kib as f64 / 1_024.0)
    }

    /// The processes of the running replicas, the youngest last.
    pub(in crate::scenario) fn pids(&self) -> impl Iterator<Item = u32> {
        self.running.iter().map(Replica::pid)
    }

    /// Stops all replicas. Returns the turns in their logs.
    pub(in crate::scenario) async fn end_all(mut self) -> anyhow::Result<Vec<Turn>> {
        for replica in &self.running {
            replica.terminate()?;
        }
        for mut replica in std::mem::take(&mut self.running) {
            wait_for_end(&mut replica).await?;
            self.ended.push(replica.setup().log.clone());
        }
        let mut turns = Vec::new();
        for log in &self.ended {
            turns.extend(turns_in(log)?);
        }
        Ok(turns)
    }
}

async fn wait_for_end(replica: &mut Replica) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        if let Some(status) = replica.ending()? {
            if !status.success() {
                bail!("a replica ended with {status}\n{}", tail(replica));
            }
            return Ok(());
        }
        if begin.elapsed() > WAIT_MAX {
            bail!("a replica does not end\n{}", tail(replica));
        }
        tokio::time::sleep(END_POLL_INTERVAL).await;
    }
}

/// Returns the last lines of its log.
fn tail(replica: &Replica) -> String {
    let text = fs::read_to_string(&replica.setup().log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

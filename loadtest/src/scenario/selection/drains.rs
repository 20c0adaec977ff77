//! How long replicas take to drain. The replicas that take over their shards load them first.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use testbed::replica::{Replica, ReplicaSetup};
use tokio::time::sleep;

use crate::{
    controller::{free_port, get},
    exposition::Exposition,
};

const N_SHARDS: u32 = 64;
const N_REPLICAS: u32 = 5;
/// Drains stop when this many replicas are left.
const N_LEFT: usize = 2;
/// The minimum number of shards that each replica leads before a drain.
const LED_MIN: f64 = 3.0;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_mins(3);

/// Drains one of five replicas after the other. Returns how long each drain took.
pub(super) async fn seconds(program: &Path, kubeconfig: &Path) -> anyhow::Result<Vec<f64>> {
    let mut replicas = Vec::new();
    for number in 0..N_REPLICAS {
        let port = free_port()?;
        replicas.push((port, start(program, kubeconfig, number, port)?));
    }
    let mut took = Vec::new();
    while replicas.len() > N_LEFT {
        wait_until_shared_out(&replicas).await?;
        let (_, mut leaving) = replicas.remove(0);
        let begun = Instant::now();
        leaving.terminate()?;
        while leaving.ending()?.is_none() {
            ensure!(begun.elapsed() < WAIT_MAX, "a replica does not end");
            sleep(POLL_INTERVAL).await;
        }
        took.push(begun.elapsed().as_secs_f64());
    }
    Ok(took)
}

fn start(program: &Path, kubeconfig: &Path, number: u32, port: u16) -> anyhow::Result<Replica> {
    Ok(Replica::start(ReplicaSetup {
        program: program.to_owned(),
        kubeconfig: kubeconfig.to_owned(),
        lease_namespace: "default".to_owned(),
        n_shards: N_SHARDS,
        pod_name: format!("cw-{number}"),
        pod_uid: format!("uid-{number}"),
        revision: "r1".to_owned(),
        address: format!("127.0.0.1:{port}"),
        arguments: vec!["--namespace=default".to_owned()],
        log: kubeconfig.with_file_name(format!("replica-{number}.log")),
    })?)
}

/// Waits until all shards are led, and each replica leads some.
async fn wait_until_shared_out(replicas: &[(u16, Replica)]) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let led: Vec<f64> = replicas.iter().map(|(port, _)| n_led(*port)).collect();
        if led.iter().sum::<f64>() >= f64::from(N_SHARDS) && led.iter().all(|n_led| *n_led >= LED_MIN) {
            return Ok(());
        }
        ensure!(begun.elapsed() < WAIT_MAX, "the shards are not shared out: {led:?}");
        sleep(POLL_INTERVAL * 20).await;
    }
}

/// The number of shards that a replica leads. 0 while it does not respond.
fn n_led(port: u16) -> f64 {
    let metrics = get(port, "/metrics").unwrap_or_default();
    Exposition::parse(&metrics)
        .total("cronwheel_leader")
        .unwrap_or_default()
}

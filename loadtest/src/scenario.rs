//! The scenarios and their shared functions.

use std::{path::Path, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{audit::Request, generator::Load, slots::Slot, target::Target};

pub(crate) mod beside;
pub(crate) mod burst;
pub(crate) mod compare;
pub(crate) mod endurance;
pub(crate) mod handovers;
pub(crate) mod minutely;
pub(crate) mod takeovers;

/// Figures are taken this long before a slot, so that they never split a burst.
const BEFORE_SLOT: SignedDuration = SignedDuration::from_secs(1);

/// The audit log lags behind the requests. It is complete when it has not grown for this long.
const AUDIT_LOG_QUIET: Duration = Duration::from_millis(500);

/// The minimum rate of creating CronJobs, even on a small and busy machine, and a margin before the first slot.
const CREATES_PER_SECOND_MIN: u32 = 200;
const MARGIN_BEFORE_FIRST_SLOT: SignedDuration = SignedDuration::from_secs(5);

/// Creates the CronJobs between two slots, so that all have the same first slot.
async fn create_between_slots(load: &Load, target: &Target) -> anyhow::Result<Slot> {
    wait_for_room(load.n_cron_jobs).await;
    progress(&format!("creating {} CronJobs", load.n_cron_jobs));
    load.create(target.kubeconfig()).await?;
    // If this took longer than expected, some CronJobs fire earlier than others. The returned slot is the first that
    // all have in common.
    Ok(Slot::at_or_after(Timestamp::now() + BEFORE_SLOT))
}

/// Waits until there is enough time to create this many CronJobs before the next slot. Returns that slot.
async fn wait_for_room(n_cron_jobs: u32) -> Slot {
    let creation = SignedDuration::from_secs(i64::from(n_cron_jobs / CREATES_PER_SECOND_MIN) + 1);
    // A load that takes longer than a minute starts at once.
    let room = (creation + MARGIN_BEFORE_FIRST_SLOT).min(SignedDuration::from_secs(55));
    let next_slot = Slot::at_or_after(Timestamp::now());
    if Timestamp::now() + room > next_slot.start() {
        sleep_until(next_slot.start() + SignedDuration::from_secs(1)).await;
    }
    Slot::at_or_after(Timestamp::now())
}

/// Creates a client for a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn whole_audit_log(target: &Target, user: &str) -> anyhow::Result<Vec<Request>> {
    // A controller renews its Leases for as long as it runs.
    let n_settled = |requests: &[Request]| requests.iter().filter(|it| it.resource != "leases").count();
    let mut requests = target.requests(user)?;
    loop {
        tokio::time::sleep(AUDIT_LOG_QUIET).await;
        let later = target.requests(user)?;
        if n_settled(&later) == n_settled(&requests) {
            return Ok(later);
        }
        requests = later;
    }
}

async fn sleep_until(instant: Timestamp) {
    // The wall clock may jump during the sleep, so the remaining time is computed again.
    while let Ok(left) = Duration::try_from(instant.duration_since(Timestamp::now())) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

fn progress(text: &str) {
    eprintln!("loadtest: {text}");
}

//! What is driven at the API server, and what all of it needs.

use std::{path::Path, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{audit::Request, generator::Load, slots::Slot, target::Target};

pub(crate) mod burst;
pub(crate) mod compare;
pub(crate) mod handovers;
pub(crate) mod minutely;
pub(crate) mod selection;

/// Figures are taken this long before a slot, so that no burst is cut in two.
const BEFORE_SLOT: SignedDuration = SignedDuration::from_secs(1);

/// The audit log is written behind the requests: it is whole when it has not grown for so long.
const AUDIT_LOG_QUIET: Duration = Duration::from_millis(500);

/// How fast `CronJobs` are made even on a small, busy machine, and what is kept besides until the first slot.
const CREATES_PER_SECOND_MIN: u32 = 200;
const MARGIN_BEFORE_FIRST_SLOT: SignedDuration = SignedDuration::from_secs(5);

/// Creates the `CronJobs` in one go between two slots, so that all have the same first one.
async fn create_between_slots(load: &Load, target: &Target) -> anyhow::Result<Slot> {
    wait_for_room(load.n_cron_jobs).await;
    progress(&format!("creating {} CronJobs", load.n_cron_jobs));
    load.create(target.kubeconfig()).await?;
    // Where it took longer after all, some fire before the others; the first slot that counts is one for all.
    Ok(Slot::at_or_after(Timestamp::now() + BEFORE_SLOT))
}

/// Waits until so many `CronJobs` can be created before the next slot, which is returned.
async fn wait_for_room(n_cron_jobs: u32) -> Slot {
    let creation = SignedDuration::from_secs(i64::from(n_cron_jobs / CREATES_PER_SECOND_MIN) + 1);
    // A load that takes longer than a minute begins at once.
    let room = (creation + MARGIN_BEFORE_FIRST_SLOT).min(SignedDuration::from_secs(55));
    let next_slot = Slot::at_or_after(Timestamp::now());
    if Timestamp::now() + room > next_slot.start() {
        sleep_until(next_slot.start() + SignedDuration::from_secs(1)).await;
    }
    Slot::at_or_after(Timestamp::now())
}

/// A client that acts as the user of a kubeconfig.
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
    // Wall time may be set meanwhile, so what is left is looked at again.
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

//! A replica's watch of CronJobs, on a separate thread so that its processor time can be measured.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use cronwheel::{
    kube_api::{
        WatchItem,
        ordered_watch::OrderedSender,
        watch::{WatchedShards, cron_job_cache::CACHE_BYTES_MAX, cron_jobs, delivered_versions::DeliveredVersions},
    },
    shard::{Input, Scope, ShardCount, ShardSet, input::WatchStage},
};
use futures::StreamExt as _;
use tokio::{runtime::Runtime, sync::watch};

use super::{super::decoder, Cost, counted, thread_cpu};

/// The time for the last events to arrive.
const SETTLE: Duration = Duration::from_secs(3);

/// The interval for publishing the processor time.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(50);

/// A watch on a separate thread.
pub(super) struct Watcher {
    counters: Counters,
    is_open: watch::Receiver<bool>,
    end: watch::Sender<bool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// The cost of the watch so far.
#[derive(Clone, Default)]
struct Counters {
    n_bytes: Arc<AtomicU64>,
    cpu_micros: Arc<AtomicU64>,
}

impl Watcher {
    pub(super) fn start(kubeconfig: PathBuf, is_selecting: bool, count: ShardCount, shards: ShardSet) -> Watcher {
        let counters = Counters::default();
        let (opened, is_open) = watch::channel(false);
        let (end, ended) = watch::channel(false);
        let shared_counters = counters.clone();
        let thread = thread::spawn(move || {
            let work = watched(&kubeconfig, is_selecting, count, shards, shared_counters, opened, ended);
            runtime()?.block_on(work)
        });
        Watcher {
            counters,
            is_open,
            end,
            thread,
        }
    }

    /// Returns the cost once the watch is idle.
    pub(super) async fn cost(&self) -> Cost {
        tokio::time::sleep(SETTLE).await;
        Cost {
            cpu: Duration::from_micros(self.counters.cpu_micros.load(Ordering::Relaxed)),
            n_bytes: self.counters.n_bytes.load(Ordering::Relaxed),
        }
    }

    /// Returns the cost once the watch has started.
    pub(super) async fn opened(&mut self) -> anyhow::Result<Cost> {
        let opened = self.is_open.wait_for(|is_open| *is_open).await;
        opened.context("a watch has ended before it began")?;
        Ok(self.cost().await)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        // This fails only if the thread has ended, and the join below returns its error.
        let _ = self.end.send(true);
        self.thread.join().map_err(|_| anyhow!("a watch has panicked"))?
    }
}

/// Creates a runtime that works only on this thread.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn watched(
    kubeconfig: &Path,
    is_selecting: bool,
    count: ShardCount,
    shards: ShardSet,
    counters: Counters,
    opened: watch::Sender<bool>,
    mut ended: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let client = counted(super::super::client(kubeconfig).await?, is_selecting, counters.n_bytes);
    let held = OrderedSender::new(shards);
    let shards = WatchedShards {
        wanted: held.subscribe(),
        delivered: DeliveredVersions::new(Scope::Cluster, count, CACHE_BYTES_MAX),
    };
    let mut items = pin!(cron_jobs(client, Scope::Cluster, decoder(count), Some(shards)));
    loop {
        let item = tokio::select! {
            item = items.next() => item,
            _ = ended.changed() => return Ok(()),
            () = tokio::time::sleep(PUBLISH_INTERVAL) => None,
        };
        if let Some(WatchItem::Input(Input::WatchUpdated(selected))) = &item
            && matches!(selected.stage, WatchStage::Watching(_))
        {
            opened.send_replace(true);
        }
        if item.is_none() {
            let micros = u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX);
            counters.cpu_micros.store(micros, Ordering::Relaxed);
        }
    }
}

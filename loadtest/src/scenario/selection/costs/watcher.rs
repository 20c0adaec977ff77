//! A replica's watch of `CronJobs`, on a thread of its own so that its processor time is known.

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
        watch::{WatchedShards, cron_job_cache::CACHE_BYTES_MAX, cron_jobs, progress::WatchProgress},
    },
    shard::{Input, Scope, ShardCount, ShardSet, input::SelectionStage},
};
use futures::StreamExt as _;
use tokio::{runtime::Runtime, sync::watch};

use super::{super::decoder, Cost, counted, thread_cpu};

/// What the last events may take to arrive.
const SETTLE: Duration = Duration::from_secs(3);

/// How often the processor time is told.
const TELL_INTERVAL: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Watcher {
    told: Told,
    is_open: watch::Receiver<bool>,
    end: watch::Sender<bool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

#[derive(Clone, Default)]
struct Told {
    n_bytes: Arc<AtomicU64>,
    cpu_micros: Arc<AtomicU64>,
}

impl Watcher {
    pub(super) fn start(kubeconfig: PathBuf, is_selecting: bool, count: ShardCount, shards: ShardSet) -> Watcher {
        let told = Told::default();
        let (opened, is_open) = watch::channel(false);
        let (end, ended) = watch::channel(false);
        let told_there = told.clone();
        let thread = thread::spawn(move || {
            let work = watched(&kubeconfig, is_selecting, count, shards, told_there, opened, ended);
            runtime()?.block_on(work)
        });
        Watcher {
            told,
            is_open,
            end,
            thread,
        }
    }

    /// Once it has nothing to do.
    pub(super) async fn cost(&self) -> Cost {
        tokio::time::sleep(SETTLE).await;
        Cost {
            cpu: Duration::from_micros(self.told.cpu_micros.load(Ordering::Relaxed)),
            n_bytes: self.told.n_bytes.load(Ordering::Relaxed),
        }
    }

    /// The same once the watch has begun.
    pub(super) async fn opened(&mut self) -> anyhow::Result<Cost> {
        let opened = self.is_open.wait_for(|is_open| *is_open).await;
        opened.context("a watch has ended before it began")?;
        Ok(self.cost().await)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        // Fails only where the thread has ended, which it then says itself.
        let _ = self.end.send(true);
        self.thread.join().map_err(|_| anyhow!("a watch has panicked"))?
    }
}

/// A runtime that works on this thread alone.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn watched(
    kubeconfig: &Path,
    is_selecting: bool,
    count: ShardCount,
    shards: ShardSet,
    told: Told,
    opened: watch::Sender<bool>,
    mut ended: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let client = counted(super::super::client(kubeconfig).await?, is_selecting, told.n_bytes);
    let held = OrderedSender::new(shards);
    let shards = WatchedShards {
        count,
        wanted: held.subscribe(),
        progress: WatchProgress::new(Scope::Cluster, count, CACHE_BYTES_MAX),
    };
    let mut items = pin!(cron_jobs(client, Scope::Cluster, decoder(count), Some(shards)));
    loop {
        let item = tokio::select! {
            item = items.next() => item,
            _ = ended.changed() => return Ok(()),
            () = tokio::time::sleep(TELL_INTERVAL) => None,
        };
        if let Some(WatchItem::Input(Input::Selected(selected))) = &item
            && matches!(selected.stage, SelectionStage::Watching(_))
        {
            opened.send_replace(true);
        }
        if item.is_none() {
            let micros = u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX);
            told.cpu_micros.store(micros, Ordering::Relaxed);
        }
    }
}

//! The cost of the watch and the lists of a replica with a fifth of the shards, with and without `shardSelector`. Both
//! use the same API server and the same changes, and the clients differ in nothing else.

mod watcher;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cronwheel::{
    kube_api::watch::{
        collection::Freshness,
        lists::{ListSource, list_cron_jobs},
    },
    shard::{Scope, ShardCount, ShardId, ShardSet},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use self::watcher::Watcher;
use super::{N_IN_FLIGHT, create, cron_jobs, decoder, report::Saving};

/// The number of lists of each kind.
const N_LISTS: u32 = 5;

/// Processor time and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    cpu: Duration,
    n_bytes: u64,
}

impl Cost {
    fn since(self, before: Cost) -> Cost {
        Cost {
            cpu: self.cpu.saturating_sub(before.cpu),
            n_bytes: self.n_bytes - before.n_bytes,
        }
    }
}

/// Creates the CronJobs and measures the cost of listing and watching them.
pub(super) async fn measured(kubeconfig: &Path, n_cron_jobs: usize) -> anyhow::Result<Vec<Saving>> {
    let api = cron_jobs(kubeconfig).await?;
    let names = create(&api, n_cron_jobs).await?;
    let count = ShardCount::default();
    let one: ShardSet = [ShardId(7)].into_iter().collect();
    // The shards that each remaining replica takes when one of five drains.
    let twentieth: ShardSet = count.shards().filter(|shard| shard.0 % 20 == 1).collect();
    let mut savings = Vec::new();
    for (what, shards) in [("list of one shard", one), ("list of a twentieth", twentieth)] {
        let without = list_of(kubeconfig, false, count, shards).await?;
        let with = list_of(kubeconfig, true, count, shards).await?;
        savings.push(saving(
            format!("{what}, median"),
            "ms",
            [without, with].map(|(time, _)| time.as_secs_f64() * 1e3),
        ));
        savings.extend(savings_of(what, [without, with].map(|(_, cost)| cost)));
    }
    let fifth: ShardSet = count.shards().filter(|shard| shard.0 % 5 == 0).collect();
    let start = |is_selecting| Watcher::start(kubeconfig.to_owned(), is_selecting, count, fifth);
    let (mut without, mut with) = (start(false), start(true));
    let begun = [without.opened().await?, with.opened().await?];
    savings.extend(savings_of("list of a fifth, at the start", begun));
    touch_all(&api, &names).await?;
    let ended = [without.cost().await, with.cost().await];
    let watched = [ended[0].since(begun[0]), ended[1].since(begun[1])];
    savings.extend(savings_of("watch, while each CronJob changes once", watched));
    without.stop()?;
    with.stop()?;
    Ok(savings)
}

fn saving(what: String, unit: &str, [without, with]: [f64; 2]) -> Saving {
    Saving {
        what,
        unit: unit.to_owned(),
        without,
        with,
    }
}

fn savings_of(what: &str, costs: [Cost; 2]) -> [Saving; 2] {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a measurement are far below 2^52")]
    let kib = costs.map(|cost| cost.n_bytes as f64 / 1_024.0);
    [
        saving(format!("{what}, received"), "KiB", kib),
        saving(
            format!("{what}, processor time"),
            "ms",
            costs.map(|cost| cost.cpu.as_secs_f64() * 1e3),
        ),
    ]
}

/// A client that counts received bytes, and optionally removes `shardSelector` from requests.
fn counted(client: Client, is_selecting: bool, n_bytes: Arc<AtomicU64>) -> Client {
    let service = tower::service_fn(move |mut request: Request<Body>| {
        if !is_selecting {
            let uri = request.uri().to_string();
            let before = uri.split_once("&shardSelector=").map(|(before, _)| before.parse());
            if let Some(Ok(before)) = before {
                *request.uri_mut() = before;
            }
        }
        let (client, n_bytes) = (client.clone(), Arc::clone(&n_bytes));
        async move {
            let answer = client.send(request).await?;
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    let n_read = frame.data_ref().map_or(0, bytes::Bytes::len);
                    n_bytes.fetch_add(n_read as u64, Ordering::Relaxed);
                    frame
                })
            }))
        }
    });
    Client::new(service, "default")
}

/// The processor time of this thread.
fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Lists shards repeatedly, as a replica does before it takes them. Returns the median time, and the average cost of a
/// list.
async fn list_of(
    kubeconfig: &Path,
    is_selecting: bool,
    count: ShardCount,
    shards: ShardSet,
) -> anyhow::Result<(Duration, Cost)> {
    let kubeconfig = kubeconfig.to_owned();
    // On a single thread, so that its processor time is that of the lists.
    let lists = move || {
        watcher::runtime()?.block_on(async {
            let n_bytes: Arc<AtomicU64> = Arc::default();
            let client = counted(super::client(&kubeconfig).await?, is_selecting, Arc::clone(&n_bytes));
            let (mut times, cpu_before) = (Vec::new(), thread_cpu());
            for _ in 0..N_LISTS {
                let begun = Instant::now();
                let source = ListSource {
                    client: client.clone(),
                    scope: Scope::Cluster,
                    freshness: Freshness::Consistent,
                };
                let pages = list_cron_jobs(source, decoder(count), count, shards);
                let _pages: Vec<_> = pages.try_collect().await?;
                times.push(begun.elapsed());
            }
            times.sort();
            let cost = Cost {
                cpu: thread_cpu().saturating_sub(cpu_before) / N_LISTS,
                n_bytes: n_bytes.load(Ordering::Relaxed) / u64::from(N_LISTS),
            };
            Ok((times[times.len() / 2], cost))
        })
    };
    tokio::task::spawn_blocking(lists).await?
}

/// Changes every CronJob once, as a status write by another client does.
async fn touch_all(api: &Api<CronJob>, names: &[String]) -> anyhow::Result<()> {
    let status = json!({"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}});
    let touch = |name: &String| {
        let (name, status) = (name.clone(), Patch::Merge(status.clone()));
        async move {
            api.patch_status(&name, &PatchParams::default(), &status)
                .await
                .map(drop)
        }
    };
    stream::iter(names)
        .map(touch)
        .buffer_unordered(N_IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    Ok(())
}

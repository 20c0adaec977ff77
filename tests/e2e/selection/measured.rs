//! What the watch and the lists of a replica that holds a fifth of the shards cost it, with `shardSelector` and without:
//! at one API server, of the same changes, by clients that differ in nothing else.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use cronwheel::{
    kube_api::{
        WatchItem,
        ordered_watch::{self, OrderedSender},
        watch::{
            cron_job_cache::CACHE_BYTES_MAX,
            held_cron_jobs,
            lists::{ListSource, list_cron_jobs},
            progress::WatchProgress,
            selection::Freshness,
        },
    },
    shard::{Input, Scope, ShardCount, ShardId, ShardSet, input::SelectionStage},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use http_body_util::BodyExt as _;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::{CronJob, N_IN_FLIGHT, create, decoder, fifth, on_a_control_plane};

/// How many lists of a shard of each kind.
const N_LISTS: usize = 5;

/// What the last events may take to arrive.
const SETTLE: Duration = Duration::from_secs(3);

/// Set to the number of CronJobs.
const N_CRON_JOBS: &str = "CRONWHEEL_SELECTION";

/// On how many CronJobs to measure.
pub(super) fn n_cron_jobs() -> usize {
    let text = std::env::var(N_CRON_JOBS).ok();
    text.map_or(20_000, |text| {
        text.parse().expect("CRONWHEEL_SELECTION is a number of CronJobs")
    })
}

/// A client that counts what it receives, and may leave `shardSelector` out of what it asks for.
fn counted(client: Client, is_selecting: bool, n_bytes: Arc<AtomicU64>) -> Client {
    let service = tower::service_fn(move |mut request: Request<Body>| {
        if !is_selecting {
            let uri = request.uri().to_string();
            if let Some((before, _)) = uri.split_once("&shardSelector=") {
                *request.uri_mut() = before.parse().expect("a URI");
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

fn thread_cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(used).expect("a time")
}

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

/// A watch on a thread of its own.
struct Watcher {
    n_bytes: Arc<AtomicU64>,
    cpu_micros: Arc<AtomicU64>,
    is_open: ordered_watch::OrderedReceiver<bool>,
    end: OrderedSender<bool>,
    thread: JoinHandle<()>,
}

impl Watcher {
    fn start(kubeconfig: PathBuf, is_selecting: bool, count: ShardCount, shards: ShardSet) -> Watcher {
        let (n_bytes, cpu_micros): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let opened = OrderedSender::new(false);
        let is_open = opened.subscribe();
        let end = OrderedSender::new(false);
        let (bytes_seen, cpu_told, mut ended) = (Arc::clone(&n_bytes), Arc::clone(&cpu_micros), end.subscribe());
        let work = async move {
            let client = counted(super::client(&kubeconfig).await, is_selecting, bytes_seen);
            let held = OrderedSender::new(shards);
            let receiver = held.subscribe();
            let mut items = pin!(held_cron_jobs(
                client,
                decoder(count),
                count,
                receiver,
                WatchProgress::new(Scope::Cluster, count, CACHE_BYTES_MAX)
            ));
            loop {
                let item = tokio::select! {
                    item = items.next() => item,
                    _ = ended.changed() => return,
                    () = tokio::time::sleep(Duration::from_millis(50)) => None,
                };
                if let Some(WatchItem::Input(Input::Selected(selected))) = &item
                    && matches!(selected.stage, SelectionStage::Watching(_))
                {
                    opened.set(true);
                }
                if item.is_none() {
                    let micros = u64::try_from(thread_cpu().as_micros()).expect("not so long");
                    cpu_told.store(micros, Ordering::Relaxed);
                }
            }
        };
        let thread = std::thread::spawn(|| runtime().block_on(work));
        Watcher {
            n_bytes,
            cpu_micros,
            is_open,
            end,
            thread,
        }
    }

    /// Once it has nothing to do.
    async fn cost(&self) -> Cost {
        tokio::time::sleep(SETTLE).await;
        Cost {
            cpu: Duration::from_micros(self.cpu_micros.load(Ordering::Relaxed)),
            n_bytes: self.n_bytes.load(Ordering::Relaxed),
        }
    }

    async fn opened(&mut self) -> Cost {
        self.is_open.wait_for(|is_open| *is_open).await.expect("it opens");
        self.cost().await
    }

    fn stop(self) {
        self.end.set(true);
        self.thread.join().expect("no panic");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

/// Lists shards again and again, as a replica does that is to take them; the median time, and the rest of one.
async fn list_of(kubeconfig: &Path, is_selecting: bool, count: ShardCount, shards: ShardSet) -> (Duration, Cost) {
    let n_bytes: Arc<AtomicU64> = Arc::default();
    let client = counted(super::client(kubeconfig).await, is_selecting, Arc::clone(&n_bytes));
    let (mut times, cpu_before) = (Vec::new(), thread_cpu());
    for _ in 0..N_LISTS {
        let begun = Instant::now();
        let source = ListSource {
            client: client.clone(),
            scope: Scope::Cluster,
            freshness: Freshness::Consistent,
        };
        let pages = list_cron_jobs(source, decoder(count), count, shards);
        let _pages: Vec<_> = pages.try_collect().await.expect("a list");
        times.push(begun.elapsed());
    }
    times.sort();
    let n_lists = u32::try_from(N_LISTS).expect("few");
    let cost = Cost {
        cpu: thread_cpu().saturating_sub(cpu_before) / n_lists,
        n_bytes: n_bytes.load(Ordering::Relaxed) / u64::from(n_lists),
    };
    (times[N_LISTS / 2], cost)
}

/// Changes every CronJob once, as somebody else's status write does.
async fn touch_all(api: &Api<CronJob>, names: &[String]) {
    let touch = |name: &String| {
        let (name, status) = (
            name.clone(),
            json!({"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}),
        );
        async move {
            let patched = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await;
            patched.expect("a patch");
        }
    };
    stream::iter(names)
        .map(touch)
        .buffer_unordered(N_IN_FLIGHT)
        .collect::<()>()
        .await;
}

fn row(table: &mut String, what: &str, without: &str, with: &str, ratio: f64) {
    writeln!(table, "| {what} | {without} | {with} | {ratio:.3} |").expect("a string");
}

fn rows(table: &mut String, what: &str, [without, with]: [Cost; 2]) {
    let [kib, their_kib] =
        [without, with].map(|cost| f64::from(u32::try_from(cost.n_bytes / 1024).expect("below a tebibyte")));
    let bytes = format!("{what}, received");
    row(
        table,
        &bytes,
        &format!("{kib:.0} KiB"),
        &format!("{their_kib:.0} KiB"),
        their_kib / kib,
    );
    let [millis, their_millis] = [without, with].map(|cost| cost.cpu.as_secs_f64() * 1e3);
    let cpu = format!("{what}, processor time");
    row(
        table,
        &cpu,
        &format!("{millis:.1} ms"),
        &format!("{their_millis:.1} ms"),
        their_millis / millis,
    );
}

pub(super) fn what_a_replica_saves_is_measured() {
    let n_cron_jobs = n_cron_jobs();
    on_a_control_plane(&["ShardedListAndWatch=true"], async |kubeconfig| {
        let api: Api<CronJob> = Api::default_namespaced(super::client(kubeconfig).await);
        let names: Vec<String> = create(&api, n_cron_jobs)
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let count = ShardCount::default();
        let mut table = "| | without | with | ratio |\n|---|---|---|---|\n".to_owned();
        let one: ShardSet = [ShardId(7)].into_iter().collect();
        // What each of the others takes when one of five replicas drains.
        let twentieth: ShardSet = count.shards().filter(|shard| shard.0 % 20 == 1).collect();
        for (what, shards) in [("list of one shard", one), ("list of a twentieth", twentieth)] {
            let lists = [
                list_of(kubeconfig, false, count, shards).await,
                list_of(kubeconfig, true, count, shards).await,
            ];
            let [without, with] = lists.map(|(time, _)| time.as_secs_f64() * 1e3);
            let median = format!("{what}, median");
            row(
                &mut table,
                &median,
                &format!("{without:.1} ms"),
                &format!("{with:.1} ms"),
                with / without,
            );
            rows(&mut table, what, lists.map(|(_, cost)| cost));
        }
        let start = |is_selecting| Watcher::start(kubeconfig.to_owned(), is_selecting, count, fifth(count));
        let [mut without, mut with] = [false, true].map(start);
        let begun = [without.opened().await, with.opened().await];
        rows(&mut table, "list of a fifth, at the start", begun);
        touch_all(&api, &names).await;
        let ended = [without.cost().await, with.cost().await];
        let watched = [ended[0].since(begun[0]), ended[1].since(begun[1])];
        rows(&mut table, "watch, while each CronJob changes once", watched);
        without.stop();
        with.stop();
        eprintln!("{n_cron_jobs} CronJobs\n{table}");
    });
}

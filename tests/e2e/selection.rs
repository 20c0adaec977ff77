//! Selection of CronJobs by shard on a real API server, with and without the feature gate `ShardedListAndWatch`.

use std::{path::Path, pin::pin, sync::Arc, time::Duration};

use cronwheel::{
    kube_api::{
        ApiServer, Decoder, WatchItem,
        ordered_watch::OrderedSender,
        watch::{
            self, WatchedShards,
            collection::{Freshness, SelectedBy},
            cron_job_cache::CACHE_BYTES_MAX,
            delivered_versions::DeliveredVersions,
            lists::{ListSource, list_cron_jobs},
        },
        watch_client,
    },
    schedule::Zone,
    shard::{Input, Scope, ShardCount, ShardId, ShardSet, Uid, input::WatchStage},
};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use libtest_mimic::Trial;
use serde_json::json;
use testbed::{JobLife, Options, Testbed};
use tokio::time::timeout;

use crate::{check, control_plane::without};

const PATIENCE: Duration = Duration::from_secs(30);
const N_CRON_JOBS: usize = 200;
const N_IN_FLIGHT: usize = 16;

type CronJob = k8s_openapi::api::batch::v1::CronJob;

/// The client that a run uses for its watches.
async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let server = ApiServer::open(&config.expect("a configuration"))
        .await
        .expect("credentials");
    watch_client(&server).expect("a client")
}

fn decoder(count: ShardCount) -> Arc<Decoder> {
    Arc::new(Decoder {
        default_zone: Zone::utc(),
        shard_count: Some(count),
        ..Decoder::default()
    })
}

fn cron_job(number: usize) -> CronJob {
    let object = json!({
        "metadata": {"name": format!("selected-{number:05}"), "labels": {"app": "selected", "team": "load"}},
        "spec": {"schedule": "* * * * *", "suspend": true, "jobTemplate": {"spec": {"template": {
            "metadata": {"annotations": {"run-for": "3s"}},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "work", "image": "registry/work:1.2.3", "command": ["work", "--once"]},
            ]},
        }}}},
    });
    serde_json::from_value(object).expect("a CronJob")
}

/// Creates CronJobs. Returns their names and uids.
async fn create(api: &Api<CronJob>, n_cron_jobs: usize) -> Vec<(String, Uid)> {
    let create = |number| async move {
        let made = api.create(&PostParams::default(), &cron_job(number)).await;
        let metadata = made.expect("a CronJob").metadata;
        (metadata.name.expect("a name"), Uid::new(&metadata.uid.expect("a uid")))
    };
    stream::iter(0..n_cron_jobs)
        .map(create)
        .buffer_unordered(N_IN_FLIGHT)
        .collect()
        .await
}

/// The shards of one of five replicas. Each is a separate range.
fn fifth(count: ShardCount) -> ShardSet {
    count.shards().filter(|shard| shard.0 % 5 == 0).collect()
}

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    [check(
        "selection::shard_selection_follows_the_feature_gate_of_the_api_server",
        || {
            without(shard_selection_follows_the_feature_gate_of_the_api_server);
        },
    )]
    .into_iter()
}

/// Runs a check on a separate control plane.
fn on_a_control_plane(feature_gates: &[&str], check: impl AsyncFnOnce(&Path)) {
    let testbed = Testbed::start(Options {
        jobs: JobLife::None,
        feature_gates: feature_gates.iter().map(ToString::to_string).collect(),
        ..Options::default()
    })
    .expect("a control plane");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(check(&testbed.kubeconfig()));
    testbed.stop().expect("everything stops");
}

fn shard_selection_follows_the_feature_gate_of_the_api_server() {
    for (gates, expected) in [
        (&["ShardedListAndWatch=true"][..], SelectedBy::Server),
        (&[][..], SelectedBy::Replica),
    ] {
        on_a_control_plane(gates, async |kubeconfig| {
            let client = client(kubeconfig).await;
            let api: Api<CronJob> = Api::default_namespaced(client.clone());
            let cron_jobs = create(&api, N_CRON_JOBS).await;
            lists_are_selected(&client, &cron_jobs, expected).await;
            watch_follows_the_shards(&client, &api, &cron_jobs, expected).await;
        });
    }
}

async fn lists_are_selected(client: &Client, cron_jobs: &[(String, Uid)], expected: SelectedBy) {
    let number = |number: u64| ShardCount::new(number).expect("a count");
    let every_other = |count: ShardCount| count.shards().filter(|shard| shard.0 % 2 == 0).collect::<ShardSet>();
    // The maximum number of ranges, a single range, the last shard, and all shards.
    for (count, shards) in [
        (number(1024), every_other(number(1024))),
        (number(256), fifth(number(256))),
        (number(16), [ShardId(15)].into_iter().collect()),
        (number(16), ShardSet::all(number(16))),
    ] {
        let source = ListSource {
            client: client.clone(),
            scope: Scope::Cluster,
            freshness: Freshness::Consistent,
        };
        let pages = list_cron_jobs(source, decoder(count), count, shards);
        let pages: Vec<_> = pages.try_collect().await.expect("a list");
        let wanted = cron_jobs.iter().filter(|(_, uid)| shards.contains(count.shard_of(uid)));
        let n_found: usize = pages.iter().map(|page| page.items.len()).sum();
        assert_eq!(n_found, wanted.count(), "{count:?}");
        assert!(
            pages.iter().all(|page| page.selected_by == expected),
            "{count:?}: {pages:?}"
        );
        let n_passed_over: u64 = pages.iter().map(|page| page.n_passed_over).sum();
        let n_others = if expected == SelectedBy::Server {
            0
        } else {
            cron_jobs.len() - n_found
        };
        assert_eq!(usize::try_from(n_passed_over).expect("few"), n_others);
    }
}

/// The relevant items of a watch.
#[derive(Debug, PartialEq, Eq)]
enum Observed {
    Has(Uid),
    Lost(Uid),
    Watching,
    Listed(SelectedBy),
    PassedOver,
}

async fn next(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> Observed {
    loop {
        let item = timeout(PATIENCE, items.next()).await.expect("it goes on");
        match item.expect("it never ends") {
            WatchItem::Input(Input::CronJobApplied(record)) => return Observed::Has(record.identity.uid.clone()),
            WatchItem::Input(Input::CronJobDeleted(uid)) => return Observed::Lost(uid),
            WatchItem::Input(Input::WatchUpdated(selected)) => {
                if let WatchStage::Watching(_) = selected.stage {
                    return Observed::Watching;
                }
            }
            WatchItem::Listed(selected_by) => return Observed::Listed(selected_by),
            WatchItem::PassedOver => return Observed::PassedOver,
            WatchItem::Error { message, .. } => panic!("{message}"),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::CacheFull
            | WatchItem::HistoryWentBack { .. } => {}
        }
    }
}

async fn watch_follows_the_shards(
    client: &Client,
    api: &Api<CronJob>,
    cron_jobs: &[(String, Uid)],
    expected: SelectedBy,
) {
    let count = ShardCount::new(16).expect("a count");
    let held = OrderedSender::new(ShardSet::EMPTY);
    let receiver = held.subscribe();
    let shards = WatchedShards {
        wanted: receiver,
        delivered: DeliveredVersions::new(Scope::Cluster, count, CACHE_BYTES_MAX),
    };
    let mut items = pin!(watch::cron_jobs(
        client.clone(),
        Scope::Cluster,
        decoder(count),
        Some(shards)
    ));
    // A server that does not select sends everything, so that the replica can cache it.
    let n_listed = match expected {
        SelectedBy::Server => 0,
        SelectedBy::Replica => cron_jobs.len(),
    };
    for _ in 0..n_listed {
        assert_eq!(next(&mut items).await, Observed::PassedOver);
    }
    assert_eq!(next(&mut items).await, Observed::Listed(expected));
    assert_eq!(next(&mut items).await, Observed::Watching);
    let mut shards = ShardSet::EMPTY;
    // For each added shard, a CronJob is deleted before the watch handles the change of shards.
    for shard in [3, 15, 4].map(ShardId) {
        let of_shard = |(_, uid): &&(String, Uid)| count.shard_of(uid) == shard;
        let (name, uid) = cron_jobs.iter().find(of_shard).expect("one of two hundred");
        shards.insert(shard);
        held.set(shards);
        api.delete(name, &DeleteParams::default()).await.expect("a deletion");
        let (mut n_openings, mut n_passed_over) = (0, 0);
        loop {
            match next(&mut items).await {
                Observed::Lost(lost) if lost == *uid => break,
                Observed::Watching => n_openings += 1,
                Observed::PassedOver => n_passed_over += 1,
                other @ (Observed::Has(_) | Observed::Lost(_) | Observed::Listed(_)) => panic!("{other:?}"),
            }
        }
        let is_selected = expected == SelectedBy::Server;
        assert_eq!((n_openings, n_passed_over), (usize::from(is_selected), 0), "{shard:?}");
    }
}

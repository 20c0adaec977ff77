//! Lists and watches of CronJobs by shard, with API servers that support shard selectors or do not.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
};

use apisim::{ApiService, Fault, Options, Resource, Rule};
use cronwheel::{
    kube_api::{
        Decoder, WatchItem,
        watch::{
            self,
            collection::{Freshness, SelectedBy},
            cron_job_cache::{CACHE_BYTES_MAX, CronJobCache},
            delivered_versions::DeliveredVersions,
            lists::{ListSource, list_cron_jobs, recall_cron_jobs},
        },
    },
    schedule::Zone,
    shard::{Input, ResourceVersion, Scope, ShardCount, ShardId, ShardSet, Uid, input::WatchStage},
};
use futures::{Stream, StreamExt, TryStreamExt as _};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube::{Client, client::Body};
use serde_json::json;
use tower::Service;

use super::{Bench, PATIENCE};
use crate::random::Random;

const SELECTOR: &str = "shardSelector=";

/// The connections to the API servers. Lists and watches may use different servers.
struct Connections {
    client: Client,
    queries: Arc<Mutex<Vec<String>>>,
}

impl Connections {
    /// Applies `change` to the body of each list.
    fn new(
        lists: ApiService,
        watches: ApiService,
        change: impl Fn(String) -> String + Clone + Send + 'static,
    ) -> Connections {
        let queries: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&queries);
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let is_watch = query.contains("watch=true");
            recorded.lock().unwrap().push(query);
            let mut server = if is_watch { watches.clone() } else { lists.clone() };
            let change = change.clone();
            async move {
                let (parts, body) = server.call(request).await?.into_parts();
                if is_watch {
                    let body = body.map_err(tower::BoxError::from).boxed_unsync();
                    return Ok(http::Response::from_parts(parts, body));
                }
                let text = body.collect().await?.to_bytes();
                let text = change(String::from_utf8(text.to_vec())?);
                let body = Full::from(text).map_err(|never| match never {}).boxed_unsync();
                Ok::<_, tower::BoxError>(http::Response::from_parts(parts, body))
            }
        });
        Connections {
            client: Client::new(service, "default"),
            queries,
        }
    }

    /// Returns whether each list since the last call had a selector, and whether each watch had one.
    fn take_requests(&self) -> (Vec<bool>, Vec<bool>) {
        let queries = std::mem::take(&mut *self.queries.lock().unwrap());
        let (watches, lists): (Vec<_>, Vec<_>) = queries.into_iter().partition(|query| query.contains("watch=true"));
        let with_selector = |queries: Vec<String>| queries.iter().map(|query| query.contains(SELECTOR)).collect();
        (with_selector(lists), with_selector(watches))
    }
}

/// Creates two API servers on one store, each with or without support for shard selectors.
fn bench(serves: [bool; 2]) -> Bench {
    let bench = Bench::with(Options {
        n_front_ends: 2,
        ..Options::default()
    });
    for (front_end, serves) in serves.into_iter().enumerate() {
        bench.api.set_serves_shard_selectors(front_end, serves);
    }
    bench
}

impl Bench {
    fn connections(&self) -> Connections {
        let service = self.api.client("controller");
        Connections::new(service.clone(), service.at_front_end(1), |body| body)
    }

    fn shard_of(&self, cron_job: &Uid) -> ShardId {
        self.count.shard_of(cron_job)
    }

    /// Creates CronJobs until two have different shards. Returns the first and the last one.
    async fn create_two(&self) -> [(String, Uid); 2] {
        let first = self.create_cron_job("a-0").await;
        for at in 1.. {
            let name = format!("a-{at}");
            let next = self.create_cron_job(&name).await;
            if self.shard_of(&next) != self.shard_of(&first) {
                return [("a-0".to_owned(), first), (name, next)];
            }
            self.send_to("cronjobs", "DELETE", &name, None).await;
        }
        unreachable!("one in sixteen");
    }

    async fn touch(&self, name: &str) {
        let change = json!({"spec": {"suspend": true}});
        self.send_to("cronjobs", "PATCH", name, Some(change.clone())).await;
    }

    fn cron_jobs(&self, connections: &Connections) -> impl Stream<Item = WatchItem> + Send + use<> {
        self.cron_jobs_with(connections, &self.delivered_with(CACHE_BYTES_MAX))
    }

    fn cron_jobs_with(
        &self,
        connections: &Connections,
        delivered: &DeliveredVersions,
    ) -> impl Stream<Item = WatchItem> + Send + use<> {
        let shards = Some(self.shards(delivered));
        watch::cron_jobs(connections.client.clone(), Scope::Cluster, decoder(self.count), shards)
    }

    fn delivered_with(&self, bytes_max: usize) -> DeliveredVersions {
        DeliveredVersions::new(Scope::Cluster, self.count, bytes_max)
    }
}

fn decoder(count: ShardCount) -> Arc<Decoder> {
    Arc::new(Decoder {
        default_zone: Zone::utc(),
        shard_count: Some(count),
        ..Decoder::default()
    })
}

/// Returns a short description of the next item: the uid of a CronJob, or the state of lists and watches.
async fn next(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> String {
    let item = tokio::time::timeout(PATIENCE, items.next())
        .await
        .expect("an item within the limit");
    let item = item.expect("an endless watch");
    match item {
        WatchItem::Input(Input::CronJobApplied(record)) => format!("has {}", record.identity.uid),
        WatchItem::Input(Input::CronJobDeleted(uid)) => format!("lost {uid}"),
        WatchItem::Input(Input::WatchUpdated(update)) => {
            let of: Vec<u16> = update.shards.iter().map(|shard| shard.0).collect();
            match update.stage {
                WatchStage::ListBegun => format!("lists {of:?}"),
                WatchStage::ListDone => format!("listed {of:?}"),
                WatchStage::Watching(_) if update.shards == ShardSet::EVERY => "watches all".to_owned(),
                WatchStage::Watching(_) => format!("watches {of:?}"),
                WatchStage::NotPermitted => "not permitted".to_owned(),
                WatchStage::Interrupted => "interrupted".to_owned(),
            }
        }
        WatchItem::Listed(selected_by) => format!("by {selected_by:?}"),
        WatchItem::PassedOver => "PassedOver".to_owned(),
        WatchItem::CacheFull => "CacheFull".to_owned(),
        WatchItem::Input(_)
        | WatchItem::Undecodable { .. }
        | WatchItem::HistoryWentBack { .. }
        | WatchItem::Error { .. } => format!("{item:?}"),
    }
}

async fn take(n_items: usize, items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> Vec<String> {
    let mut taken = Vec::new();
    for _ in 0..n_items {
        taken.push(next(items).await);
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn selecting_server_sends_only_wanted_shards() {
    let bench = bench([true, true]);
    let [(first_name, first), (other_name, other)] = bench.create_two().await;
    let (ours, others) = (bench.shard_of(&first), bench.shard_of(&other));
    let connections = bench.connections();
    let mut items = pin!(bench.cron_jobs(&connections));
    let received = take(4, &mut items).await;
    assert_eq!(received, ["lists []", "listed []", "by Server", "watches []"]);
    let (lists, watches) = connections.take_requests();
    // The list is the probe, which also gives the version. The watch is for no shards.
    assert_eq!((lists, watches), (vec![true], vec![false]));
    bench.wanted.set([ours].into_iter().collect());
    bench.touch(&first_name).await;
    bench.touch(&other_name).await;
    let received = take(2, &mut items).await;
    assert_eq!(received, [format!("watches [{}]", ours.0), format!("has {first}")]);
    assert_eq!(connections.take_requests(), (vec![], vec![true]), "no list");
    // The watch yields events since the addition of a shard, although it has not noticed the addition yet. It also yields
    // the earlier state.
    bench.wanted.set([ours, others].into_iter().collect());
    bench.send_to("cronjobs", "DELETE", &other_name, None).await;
    let received = take(3, &mut items).await;
    assert!(received[0].starts_with("watches"), "{received:?}");
    assert_eq!(received[1..], [format!("has {other}"), format!("lost {other}")]);
    bench.wanted.set([ours].into_iter().collect());
    assert_eq!(next(&mut items).await, format!("watches [{}]", ours.0), "after a while");
}

#[tokio::test(start_paused = true)]
async fn server_that_ignores_the_selector_sends_all_cron_jobs() {
    let bench = bench([false, false]);
    let [(first_name, first), (other_name, other)] = bench.create_two().await;
    let (ours, others) = (bench.shard_of(&first), bench.shard_of(&other));
    bench.wanted.set([ours].into_iter().collect());
    let connections = bench.connections();
    let mut items = pin!(bench.cron_jobs(&connections));
    let received = take(6, &mut items).await;
    let list = [
        format!("lists [{}]", ours.0),
        format!("has {first}"),
        "PassedOver".to_owned(),
    ];
    assert_eq!(received[..3], list);
    let end = [
        format!("listed [{}]", ours.0),
        "by Replica".to_owned(),
        "watches all".to_owned(),
    ];
    assert_eq!(received[3..], end);
    // The server is probed before the full list, and again before the watch is opened.
    assert_eq!(connections.take_requests(), (vec![true, false, true], vec![false]));
    bench.touch(&other_name).await;
    bench.touch(&first_name).await;
    assert_eq!(
        take(2, &mut items).await,
        ["PassedOver".to_owned(), format!("has {first}")]
    );
    // The watch needs no reopening.
    bench.wanted.set([ours, others].into_iter().collect());
    bench.send_to("cronjobs", "DELETE", &other_name, None).await;
    assert_eq!(next(&mut items).await, format!("lost {other}"));
    assert_eq!(connections.take_requests(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn watch_of_all_cron_jobs_fills_the_cache() {
    let bench = bench([false, false]);
    let [(first_name, first), (other_name, other)] = bench.create_two().await;
    bench.wanted.set([bench.shard_of(&first)].into_iter().collect());
    let (connections, delivered) = (bench.connections(), bench.delivered_with(CACHE_BYTES_MAX));
    let mut items = pin!(bench.cron_jobs_with(&connections, &delivered));
    assert_eq!(recall(&bench, &delivered.cache), None);
    while next(&mut items).await != "watches all" {}
    let mut both = vec![first.to_string(), other.to_string()];
    both.sort();
    let (listed_at, found) = recall(&bench, &delivered.cache).unwrap();
    assert_eq!(found, both);
    bench.touch(&other_name).await;
    bench.send_to("cronjobs", "DELETE", &first_name, None).await;
    assert_eq!(
        take(2, &mut items).await,
        ["PassedOver".to_owned(), format!("lost {first}")]
    );
    let (version, found) = recall(&bench, &delivered.cache).unwrap();
    assert_eq!(found, [other.to_string()]);
    assert_eq!(version.0, listed_at.0 + 2, "events of every shard advance the version");
    let mut pages = recall_cron_jobs(&delivered.cache, decoder(bench.count), &ShardSet::all(bench.count)).unwrap();
    assert!(
        matches!(&pages.next().unwrap().items[..], [Input::CronJobApplied(record)] if record.is_suspended),
        "the cache has the current state"
    );
}

#[tokio::test(start_paused = true)]
async fn selected_watch_does_not_fill_the_cache() {
    let bench = bench([true, true]);
    let [(_, first), _] = bench.create_two().await;
    bench.wanted.set([bench.shard_of(&first)].into_iter().collect());
    let (connections, delivered) = (bench.connections(), bench.delivered_with(CACHE_BYTES_MAX));
    let mut items = pin!(bench.cron_jobs_with(&connections, &delivered));
    while !next(&mut items).await.starts_with("watches") {}
    assert_eq!(recall(&bench, &delivered.cache), None);
}

#[tokio::test(start_paused = true)]
async fn full_cache_is_dropped_and_reported_once() {
    let bench = bench([false, false]);
    bench.create_two().await;
    let (connections, delivered) = (bench.connections(), bench.delivered_with(500));
    let mut items = pin!(bench.cron_jobs_with(&connections, &delivered));
    let received = take(6, &mut items).await;
    assert_eq!(
        received.iter().filter(|item| *item == "CacheFull").count(),
        1,
        "{received:?}"
    );
    assert_eq!(recall(&bench, &delivered.cache), None);
}

/// Returns the version of the cached CronJobs, and their uids.
fn recall(bench: &Bench, kept: &CronJobCache) -> Option<(ResourceVersion, Vec<String>)> {
    let pages: Vec<_> = recall_cron_jobs(kept, decoder(bench.count), &ShardSet::all(bench.count))?.collect();
    let [page] = &pages[..] else {
        panic!("{pages:?}");
    };
    let mut found: Vec<String> = page
        .items
        .iter()
        .map(|listed| listed.cron_job().unwrap().to_string())
        .collect();
    found.sort();
    Some((page.version, found))
}

#[tokio::test(start_paused = true)]
async fn reopened_watch_uses_new_selector_support() {
    let bench = bench([false, false]);
    let [(first_name, first), (other_name, _)] = bench.create_two().await;
    let ours = bench.shard_of(&first);
    bench.wanted.set([ours].into_iter().collect());
    let connections = bench.connections();
    let mut items = pin!(bench.cron_jobs(&connections));
    while next(&mut items).await != "watches all" {}
    for front_end in 0..2 {
        bench.api.set_serves_shard_selectors(front_end, true);
    }
    bench.api.faults().add(Rule {
        resource: Some(Resource::CronJob),
        client: Some("controller".to_owned()),
        times_max: Some(1),
        ..Rule::new(Fault::CloseWatch)
    });
    bench.touch(&other_name).await;
    let watching = format!("watches [{}]", ours.0);
    while next(&mut items).await != watching {}
    bench.touch(&other_name).await;
    bench.touch(&first_name).await;
    assert_eq!(next(&mut items).await, format!("has {first}"));
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_agree_between_servers_with_and_without_selection() {
    for serves in [[true, false], [false, true], [true, true], [false, false]] {
        let bench = bench(serves);
        let [(first_name, first), (other_name, other)] = bench.create_two().await;
        let (ours, others) = (bench.shard_of(&first), bench.shard_of(&other));
        bench.wanted.set([ours].into_iter().collect());
        let connections = bench.connections();
        let mut items = pin!(bench.cron_jobs(&connections));
        let mut of_cron_jobs = Vec::new();
        let is_open = |item: &String| item.starts_with("watches");
        while of_cron_jobs.last().is_none_or(|item| !is_open(item)) {
            of_cron_jobs.push(next(&mut items).await);
        }
        bench.touch(&other_name).await;
        bench.touch(&first_name).await;
        bench.wanted.set([ours, others].into_iter().collect());
        bench.send_to("cronjobs", "DELETE", &other_name, None).await;
        bench.send_to("cronjobs", "DELETE", &first_name, None).await;
        let last = format!("lost {first}");
        while of_cron_jobs.last() != Some(&last) {
            of_cron_jobs.push(next(&mut items).await);
        }
        let has_first = of_cron_jobs.iter().filter(|item| **item == format!("has {first}"));
        // From the list, and from the change unless the deletion followed in the same step.
        assert!(has_first.count() >= 1, "{serves:?}: {of_cron_jobs:?}");
        assert!(
            of_cron_jobs.contains(&format!("lost {other}")),
            "{serves:?}: {of_cron_jobs:?}"
        );
        let by = if serves[0] { "by Server" } else { "by Replica" };
        assert!(of_cron_jobs.contains(&by.to_owned()), "{serves:?}: {of_cron_jobs:?}");
        let (_, watches) = connections.take_requests();
        assert!(
            watches.iter().all(|is_selected| *is_selected == serves[0]),
            "{serves:?}"
        );
    }
}

/// Lists shards. Returns the uids of the CronJobs, which side selected them, and how many CronJobs it skipped.
async fn list(client: Client, count: ShardCount, shards: ShardSet) -> (Vec<String>, SelectedBy, u64) {
    let source = ListSource {
        client,
        scope: Scope::Cluster,
        freshness: Freshness::Consistent,
    };
    let pages = list_cron_jobs(source, decoder(count), count, shards);
    let pages: Vec<_> = pages.try_collect().await.unwrap();
    let (mut found, mut selected_by, mut n_passed_over) = (Vec::new(), SelectedBy::Server, 0);
    for page in pages {
        found.extend(page.items.iter().map(|listed| listed.cron_job().unwrap().to_string()));
        selected_by = selected_by.and(page.selected_by);
        n_passed_over += page.n_passed_over;
    }
    found.sort();
    (found, selected_by, n_passed_over)
}

#[tokio::test(start_paused = true)]
async fn server_and_replica_select_the_same_cron_jobs() {
    const N_CRON_JOBS: usize = 300;
    let bench = bench([true, false]);
    let mut random = Random::new(5);
    for at in 0..N_CRON_JOBS {
        bench.create_cron_job(&format!("a-{at}")).await;
    }
    let service = bench.api.client("user");
    let [selecting, other] = [0, 1].map(|at| Client::new(service.clone().at_front_end(at), "default"));
    for number in [16, 256, 1024] {
        let count = ShardCount::new(number).unwrap();
        let one = |number: u16| ShardSet::from_iter([ShardId(number)]);
        let mut sets = vec![one(0), one(count.get() - 1), ShardSet::all(count)];
        sets.extend((0..5).map(|_| count.shards().filter(|_| random.is_one_in(3)).collect::<ShardSet>()));
        // Every second shard: the maximum number of ranges.
        sets.push(count.shards().filter(|shard| shard.0 % 2 == 1).collect());
        for set in sets {
            let (found, selected_by, n_passed_over) = list(selecting.clone(), count, set).await;
            assert_eq!((selected_by, n_passed_over), (SelectedBy::Server, 0), "{number}");
            let (same, selected_by, n_passed_over) = list(other.clone(), count, set).await;
            assert_eq!(found, same, "{number}");
            assert_eq!(selected_by, SelectedBy::Replica);
            assert_eq!(found.len() + usize::try_from(n_passed_over).unwrap(), N_CRON_JOBS);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_shard_info_is_not_trusted() {
    let bench = bench([true, true]);
    let [(_, first), (_, other)] = bench.create_two().await;
    let all = ShardSet::all(bench.count);
    let service = bench.api.client("controller");
    let expected = {
        let mut both = vec![first.to_string(), other.to_string()];
        both.sort();
        both
    };
    let less = |body: String| {
        if body.contains("shardInfo") {
            json!({"metadata": {"resourceVersion": "1", "shardInfo": {"selector": "x"}}, "items": []}).to_string()
        } else {
            body
        }
    };
    let otherwise = |body: String| body.replace(r#""shardInfo":{"selector""#, r#""shardInfo":{"ranges""#);
    for (connections, how) in [
        (Connections::new(service.clone(), service.clone(), less), "less"),
        (
            Connections::new(service.clone(), service.clone(), otherwise),
            "otherwise",
        ),
    ] {
        let found = list(connections.client.clone(), bench.count, all).await;
        assert_eq!(found, (expected.clone(), SelectedBy::Replica, 0), "{how}");
        assert_eq!(connections.take_requests(), (vec![true, false], vec![]), "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_shard_selector_is_omitted() {
    let bench = bench([true, true]);
    let [(_, first), _] = bench.create_two().await;
    let ours = bench.shard_of(&first);
    bench.wanted.set([ours].into_iter().collect());
    let service = bench.api.client("controller");
    let refusing = tower::service_fn(move |request: Request<Body>| {
        let (mut service, is_refused) = (service.clone(), request.uri().to_string().contains(SELECTOR));
        async move {
            if !is_refused {
                return Ok(service
                    .call(request)
                    .await?
                    .map(|body| body.map_err(tower::BoxError::from).boxed_unsync()));
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "invalid shard selector: it may be something else by now", "code": 500});
            let body = Full::from(status.to_string())
                .map_err(|never| match never {})
                .boxed_unsync();
            Ok::<_, tower::BoxError>(http::Response::builder().status(500).body(body).unwrap())
        }
    });
    let client = Client::new(refusing, "default");
    let shards = Some(bench.shards(&bench.delivered_with(CACHE_BYTES_MAX)));
    let mut items = pin!(watch::cron_jobs(client, Scope::Cluster, decoder(bench.count), shards));
    let received = take(6, &mut items).await;
    assert!(
        received.contains(&format!("has {first}")) && received.contains(&"PassedOver".to_owned()),
        "{received:?}"
    );
    assert_eq!(received[4..], ["by Replica", "watches all"]);
}

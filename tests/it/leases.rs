//! Leases over an API: what an election asks and what it is told. The cases of `told` run against a real kube-apiserver too.

mod faults;
mod overlaps;
pub(crate) mod told;

use std::time::Duration;

use apisim::{Api, Options, Server, WallClock};
use cronwheel::{
    coordination::{LeaseKey, LeaseWrite},
    kube_api::{ApiServer, LeaseApi, lease_client},
    shard::{ShardCount, ShardId},
};
use jiff::Timestamp;
use kube::Client;

const BEGUN: &str = "2026-01-02T03:04:30Z";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

fn api() -> Api {
    Api::new(Options::default(), WallClock::starting_at(BEGUN.parse().unwrap()))
}

pub(crate) fn client(api: &Api) -> Client {
    Client::new(api.client("replica"), "default")
}

pub(crate) fn leases(client: Client, namespace: &str) -> LeaseApi {
    LeaseApi::new(client, namespace, ShardCount::default(), None)
}

pub(crate) fn member(uid: &str) -> LeaseKey {
    LeaseKey::Member(uid.into())
}

pub(crate) fn shard(number: u16) -> LeaseKey {
    LeaseKey::Shard(ShardId(number))
}

/// A wall time with six digits of a second.
pub(crate) fn wall() -> Timestamp {
    "2026-01-02T03:04:31.000250Z".parse().unwrap()
}

/// A write that changes nothing.
pub(crate) fn write(key: LeaseKey) -> LeaseWrite {
    LeaseWrite {
        key,
        holder: None,
        duration_secs: None,
        term: None,
        is_renewal: false,
        is_acquisition: false,
        annotations: [].into(),
    }
}

/// A write that makes a life the holder.
pub(crate) fn held(key: LeaseKey, holder: &str) -> LeaseWrite {
    LeaseWrite {
        holder: Some(holder.into()),
        duration_secs: Some(10),
        is_renewal: true,
        ..write(key)
    }
}

macro_rules! in_memory {
    ($($case:ident),* $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $case() {
            told::$case(client(&api()), "default").await;
        }
    )*};
}

in_memory![
    a_lease_is_made_renewed_and_read,
    a_write_based_on_what_was_is_a_conflict,
    what_a_server_cannot_store_is_refused,
    a_list_and_a_watch_from_it_miss_nothing,
    a_lease_without_our_label_is_gone_until_it_is_written_again,
    installations_of_two_names_see_nothing_of_each_other,
    whoever_comes_first_makes_the_installation,
    an_installation_that_cannot_be_is_told_with_the_fix,
    what_people_should_know_stands_on_the_lease,
];

/// Without TLS there is HTTP/1.1, where a watch has a connection to itself.
#[tokio::test]
async fn a_plain_server_is_asked_and_watched_side_by_side() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), api().client("replica"))
        .await
        .unwrap();
    let config = kube::Config::new(format!("http://{}", server.address()).parse().unwrap());
    let asking = async {
        let client = lease_client(&ApiServer::open(&config).await.unwrap()).unwrap();
        told::a_list_and_a_watch_from_it_miss_nothing(client.clone(), "default").await;
        told::a_write_based_on_what_was_is_a_conflict(client, "default").await;
    };
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let serving = server.run(async {
        let _stopped = stopped.await;
    });
    tokio::join!(
        async {
            asking.await;
            stop.send(()).unwrap();
        },
        serving
    );
}

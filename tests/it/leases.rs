//! Leases over an API: the requests of an election, and their responses. The cases of `told` also run against a real
//! kube-apiserver.

mod faults;
mod overlaps;
pub(crate) mod told;

use apisim::{Api, Options, Server, WallClock};
use cronwheel::kube_api::{ApiServer, lease_client};
use kube::Client;

pub(crate) use told::{TIMEOUT, held, leases, member, shard, wall, write};

const BEGUN: &str = "2026-01-02T03:04:30Z";

fn api() -> Api {
    Api::new(Options::default(), WallClock::starting_at(BEGUN.parse().unwrap()))
}

pub(crate) fn client(api: &Api) -> Client {
    Client::new(api.client("replica"), "default")
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

/// Without TLS, HTTP/1.1 is used, and a watch has a separate connection.
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

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
    lease_is_created_read_and_renewed,
    lease_write_at_a_stale_version_is_a_conflict,
    invalid_lease_is_refused,
    lease_watch_from_a_list_misses_no_change,
    lease_without_its_label_is_gone_until_the_next_write,
    installations_with_different_names_are_independent,
    first_replica_creates_the_installation,
    invalid_installation_error_names_the_fix,
    warning_is_recorded_as_an_event_of_the_lease,
];

/// Without TLS, HTTP/1.1 is used, and a watch has a separate connection.
#[tokio::test]
async fn plain_http_server_serves_lease_requests_beside_a_watch() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), api().client("replica"))
        .await
        .unwrap();
    let config = kube::Config::new(format!("http://{}", server.address()).parse().unwrap());
    let asking = async {
        let client = lease_client(&ApiServer::open(&config).await.unwrap()).unwrap();
        told::lease_watch_from_a_list_misses_no_change(client.clone(), "default").await;
        told::lease_write_at_a_stale_version_is_a_conflict(client, "default").await;
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

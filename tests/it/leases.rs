//! Lease requests against the in-memory API. The cases in `every_server` also run against a real kube-apiserver.

pub(crate) mod every_server;
mod faults;

use apisim::{Api, Options, Server, WallClock};
use cronwheel::kube_api::{ApiServer, lease_client};
use kube::Client;

pub(crate) use every_server::{TIMEOUT, held, leases, member, shard, wall, write};

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
            every_server::$case(client(&api()), "default").await;
        }
    )*};
}

every_server::for_each_case!(in_memory);

/// Without TLS, the client uses HTTP/1.1 and opens a separate connection for a watch.
#[tokio::test]
async fn plain_http_server_serves_lease_requests_beside_a_watch() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), api().client("replica"))
        .await
        .unwrap();
    let config = kube::Config::new(format!("http://{}", server.address()).parse().unwrap());
    let requests = async {
        let client = lease_client(&ApiServer::open(&config).await.unwrap()).unwrap();
        every_server::lease_watch_from_a_list_misses_no_change(client.clone(), "default").await;
        every_server::lease_write_at_a_stale_version_is_a_conflict(client, "default").await;
    };
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let serving = server.run(async {
        let _stopped = stopped.await;
    });
    tokio::join!(
        async {
            requests.await;
            stop.send(()).unwrap();
        },
        serving
    );
}

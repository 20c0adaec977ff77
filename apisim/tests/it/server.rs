//! The loopback server, as kubectl and a client over sockets see it.

use apisim::{Api, Options, Server, ServerError, WallClock};
use serde_json::json;

fn api() -> Api {
    Api::new(
        Options::default(),
        WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()),
    )
}

#[tokio::test]
async fn it_serves_over_sockets_and_stops_when_told() {
    let service = api().client("").named_by_user_agent();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), service).await.unwrap();
    let config = kube::Config::new(format!("http://{}", server.address()).parse().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async {
        let _stopped = stopped.await;
    }));
    let client = kube::Client::try_from(config).unwrap();
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client, "default");
    let object = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&kube::api::PostParams::default(), &object).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap().metadata.name.as_deref(), Some("a"));
    stop.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn it_listens_on_loopback_alone() {
    let refused = Server::bind("0.0.0.0:0".parse().unwrap(), api().client("a")).await;
    assert!(matches!(refused, Err(ServerError::NotLoopback { .. })));
}

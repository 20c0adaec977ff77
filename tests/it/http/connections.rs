//! `WriteConnections`: the distribution of requests over connections, and the bytes on a real socket.

use std::{
    convert::Infallible,
    future::{IntoFuture, pending},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use cronwheel::{
    kube_api::{
        ApiClient, ApiServer, WatchItem, WriteConnections, http::MAX_IN_FLIGHT_PER_CONNECTION, watch, watch_client,
    },
    shard::Scope,
};
use futures::{FutureExt, StreamExt, future::join_all, stream};
use http::{HeaderMap, Uri};
use kube::Config;
use tokio::{net::TcpListener, time::timeout};

fn config(address: &str) -> Config {
    Config::new(format!("http://{address}").parse().unwrap())
}

async fn server(address: &str) -> ApiServer {
    ApiServer::open(&config(address)).await.unwrap()
}

#[tokio::test]
async fn write_connections_bound_the_requests_in_flight() {
    let connections = WriteConnections::connect(&server("127.0.0.1:1").await, 3).unwrap();
    let capacity = 3 * MAX_IN_FLIGHT_PER_CONNECTION;
    let mut permits = join_all((0..capacity).map(|_| connections.acquire_avoiding(None))).await;
    assert!(connections.acquire_avoiding(None).now_or_never().is_none());
    permits.pop();
    let permit = connections.acquire_avoiding(None).now_or_never();
    assert!(permit.is_some());
    permits.clear();
    drop(permit);
    join_all((0..capacity).map(|_| connections.acquire_avoiding(None))).await;
}

#[tokio::test]
async fn write_connections_are_filled_evenly() {
    let connections = WriteConnections::connect(&server("127.0.0.1:1").await, 3).unwrap();
    let mut permits = Vec::new();
    for n_each in 1..=MAX_IN_FLIGHT_PER_CONNECTION {
        permits.extend(join_all((0..3).map(|_| connections.acquire_avoiding(None))).await);
        let mut n_in_flight = [0_usize; 3];
        for permit in &permits {
            n_in_flight[permit.connection()] += 1;
        }
        assert_eq!(n_in_flight, [n_each; 3]);
    }
    let connection = permits.swap_remove(100).connection();
    assert_eq!(connections.acquire_avoiding(None).await.connection(), connection);
}

#[tokio::test]
async fn there_is_at_least_one_connection() {
    let connections = WriteConnections::connect(&server("127.0.0.1:1").await, 0).unwrap();
    assert!(connections.acquire_avoiding(None).now_or_never().is_some());
}

#[tokio::test]
async fn refused_connection_returns_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let api = ApiClient::new(WriteConnections::connect(&server(&address).await, 1).unwrap());
    let answered = api.post_event("shop", b"{}".to_vec()).await;
    assert_eq!(answered.code, None);
    let message = format!("{answered:?}");
    assert!(
        message.contains("Unavailable") && message.contains("refused"),
        "{message}"
    );
}

#[tokio::test]
async fn plain_http_requests_carry_user_agent_and_token() {
    let received: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&listener.local_addr().unwrap().to_string());
    config.auth_info.token = Some("t0ken".to_owned().into());
    let app = axum::Router::new().fallback({
        let received = Arc::clone(&received);
        move |headers: HeaderMap| async move {
            received.lock().unwrap().push(headers);
            "{}"
        }
    });
    let calls = async {
        let server = ApiServer::open(&config).await.unwrap();
        let api = ApiClient::new(WriteConnections::connect(&server, 2).unwrap());
        join_all((0..8).map(|_| api.post_event("shop", b"{}".to_vec()))).await;
        let version = http::Request::get("/version").body(Vec::new()).unwrap();
        watch_client(&server).unwrap().request_text(version).await.unwrap();
    };
    tokio::select! {
        biased;
        () = calls => {}
        served = axum::serve(listener, app).into_future() => panic!("{served:?}"),
    }
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 9);
    for headers in &*received {
        let ours = concat!("cronwheel/", env!("CARGO_PKG_VERSION"));
        assert_eq!(headers.get_all("user-agent").iter().collect::<Vec<_>>(), [ours]);
        assert_eq!(headers["authorization"], "Bearer t0ken");
    }
}

#[tokio::test]
async fn refreshed_token_of_a_file_is_sent() {
    let received: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&listener.local_addr().unwrap().to_string());
    let path = std::env::temp_dir().join(format!("cronwheel-{}-connections.token", std::process::id()));
    config.auth_info.token_file = Some(path.display().to_string());
    let app = axum::Router::new().fallback({
        let received = Arc::clone(&received);
        move |headers: HeaderMap| async move {
            received.lock().unwrap().push(headers);
            "{}"
        }
    });
    let calls = async {
        std::fs::write(&path, "first\n").unwrap();
        let server = ApiServer::open(&config).await.unwrap();
        let api = ApiClient::new(WriteConnections::connect(&server, 1).unwrap());
        let watch = watch_client(&server).unwrap();
        for token in ["first", "the second"] {
            std::fs::write(&path, token).unwrap();
            server.refresh_token().await.unwrap();
            api.post_event("shop", b"{}".to_vec()).await;
            let version = http::Request::get("/version").body(Vec::new()).unwrap();
            watch.request_text(version).await.unwrap();
        }
    };
    tokio::select! {
        biased;
        () = calls => {}
        served = axum::serve(listener, app).into_future() => panic!("{served:?}"),
    }
    std::fs::remove_file(&path).unwrap();
    let received = received.lock().unwrap();
    let tokens: Vec<&[u8]> = received
        .iter()
        .map(|headers| headers["authorization"].as_bytes())
        .collect();
    let (first, second): (&[u8], &[u8]) = (b"Bearer first", b"Bearer the second");
    assert_eq!(tokens, [first, first, second, second]);
}

/// The point at which a server stops responding forever.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SilentIn {
    List,
    PageBody,
    WatchStart,
    Watch,
}

async fn respond(silent_in: SilentIn, query: &str) -> Body {
    const LIST: &str = r#"{"kind":"JobList","apiVersion":"batch/v1","metadata":{"resourceVersion":"11"},"items":[]}"#;
    let never = stream::pending::<Result<Bytes, Infallible>>();
    match (silent_in, query.contains("watch=true")) {
        (SilentIn::List, false) | (SilentIn::WatchStart, true) => pending().await,
        (SilentIn::PageBody, false) => Body::from_stream(stream::iter([Ok(Bytes::from(&LIST[..20]))]).chain(never)),
        (_, false) => Body::from(LIST),
        (_, true) => Body::from_stream(never),
    }
}

#[tokio::test(start_paused = true)]
async fn list_and_watch_restart_when_the_server_is_silent() {
    async fn check(silent_in: SilentIn, n_lists: usize, n_watches: usize) {
        let queries: Arc<Mutex<Vec<String>>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = watch_client(&server(&listener.local_addr().unwrap().to_string()).await).unwrap();
        let app = axum::Router::new().fallback({
            let queries = Arc::clone(&queries);
            move |uri: Uri| async move {
                let query = uri.query().unwrap().to_owned();
                queries.lock().unwrap().push(query.clone());
                respond(silent_in, &query).await
            }
        });
        let errors = async {
            let mut watch = std::pin::pin!(watch::jobs(client, Scope::Cluster));
            for _ in 0..2 {
                while !matches!(watch.next().await, Some(WatchItem::Error { .. })) {}
            }
        };
        tokio::select! {
            biased;
            errors = timeout(Duration::from_secs(170), errors) => errors.unwrap_or_else(|_| panic!("{silent_in:?}")),
            served = axum::serve(listener, app).into_future() => panic!("{served:?}"),
        }
        let queries = queries.lock().unwrap();
        let watches = queries.iter().filter(|query| query.contains("watch=true"));
        assert_eq!(watches.clone().count(), n_watches, "{silent_in:?}: {queries:?}");
        assert!(watches.clone().all(|query| query.contains("resourceVersion=11")));
        assert_eq!(queries.len() - n_watches, n_lists, "{silent_in:?}: {queries:?}");
    }
    check(SilentIn::List, 2, 0).await;
    check(SilentIn::PageBody, 2, 0).await;
    check(SilentIn::WatchStart, 2, 2).await;
    check(SilentIn::Watch, 2, 2).await;
}

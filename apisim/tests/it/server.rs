//! The loopback server over sockets: HTTP/1.1, and HTTP/2 with prior knowledge.

use std::net::SocketAddr;

use apisim::{Api, ApiService, Options, Server, ServerError, WallClock};
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response, Version, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};

use crate::requests::MAPS;

fn service() -> ApiService {
    let clock = WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    Api::new(Options::default(), clock).client("").named_by_user_agent()
}

/// A running server.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn start() -> Running {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), service()).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let address = server.address();
    let ended = tokio::spawn(server.run(async {
        let _stopped = stopped.await;
    }));
    Running { address, stop, ended }
}

impl Running {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap();
    }
}

/// A connection of one version of HTTP.
#[derive(Debug)]
enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    async fn open(address: SocketAddr, version: Version) -> Connection {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        if version == Version::HTTP_2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            Connection::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            Connection::Http1(sender)
        }
    }

    async fn send(&mut self, address: SocketAddr, method: &str, path: &str, body: &Value) -> Response<Incoming> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        // HTTP/2 takes the authority from the URI, HTTP/1.1 from a header.
        let uri = match self {
            Connection::Http1(_) => path.to_owned(),
            Connection::Http2(_) => format!("http://{address}{path}"),
        };
        let request = Request::builder().method(method).uri(uri);
        let request = request
            .header(header::HOST, address.to_string())
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        match self {
            Connection::Http1(sender) => sender.send_request(request).await.unwrap(),
            Connection::Http2(sender) => sender.send_request(request).await.unwrap(),
        }
    }
}

async fn json_of(response: Response<Incoming>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn server_speaks_http_1_and_2_and_ends_watches_when_stopped() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let server = start().await;
        let address = server.address;
        let mut connection = Connection::open(address, version).await;
        let object = json!({"metadata": {"name": "a"}});
        let created = connection.send(address, "POST", MAPS, &object).await;
        assert_eq!((created.status().as_u16(), created.version()), (201, version));
        json_of(created).await;
        let read = connection
            .send(address, "GET", &format!("{MAPS}/a"), &Value::Null)
            .await;
        assert_eq!(json_of(read).await["metadata"]["name"], "a");
        let watch = connection
            .send(address, "GET", &format!("{MAPS}?watch=1"), &Value::Null)
            .await;
        let mut lines = watch.into_body();
        let line = lines.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(line.starts_with(b"{\"type\":\"ADDED\""), "{line:?}");
        server.stop().await;
        let rest = lines.collect().await.unwrap().to_bytes();
        assert!(rest.is_empty(), "{version:?}: {rest:?}");
        assert!(TcpStream::connect(address).await.is_err(), "{version:?}");
    }
}

#[tokio::test]
async fn http2_connection_carries_many_requests_beside_a_watch() {
    let server = start().await;
    let address = server.address;
    let Connection::Http2(sender) = Connection::open(address, Version::HTTP_2).await else {
        panic!("the connection is not HTTP/2")
    };
    let mut watch_connection = Connection::Http2(sender.clone());
    let watch = watch_connection
        .send(address, "GET", &format!("{MAPS}?watch=1"), &Value::Null)
        .await;
    let creates = (0..50).map(|at| {
        let mut connection = Connection::Http2(sender.clone());
        async move {
            let object = json!({"metadata": {"name": format!("a-{at:02}")}});
            connection.send(address, "POST", MAPS, &object).await.status().as_u16()
        }
    });
    assert_eq!(join_all(creates).await, [201; 50]);
    let mut lines = watch.into_body();
    let mut received = Vec::new();
    while received.split(|byte| *byte == b'\n').count() <= 50 {
        received.extend(lines.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    server.stop().await;
}

#[tokio::test]
async fn server_listens_only_on_loopback() {
    let refused = Server::bind("0.0.0.0:0".parse().unwrap(), service()).await;
    assert!(matches!(refused, Err(ServerError::NotLoopback { .. })));
}

//! Connections through a proxy in the test process.

use std::sync::{Arc, Mutex};

use cronwheel::kube_api::{Answer, ApiServer, EventOutcome, watch_client};
use futures::future::join_all;
use http::{Uri, Version};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::tls::{Server, api, certificate, post, unavailable};

/// A proxy that serves `CONNECT` requests, or refuses them with a status line.
struct Proxy {
    listener: TcpListener,
    /// The lines of each received request head.
    heads: Arc<Mutex<Vec<Vec<String>>>>,
    refusal: Option<&'static str>,
}

impl Proxy {
    async fn new(refusal: Option<&'static str>) -> Proxy {
        Proxy {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            heads: Arc::default(),
            refusal,
        }
    }

    fn url(&self) -> Uri {
        let address = self.listener.local_addr().unwrap();
        format!("http://us%65r:s3cret@{address}").parse().unwrap()
    }

    /// Serves while `calls` runs. Returns its result and the received request heads.
    async fn during<T>(self, calls: impl Future<Output = T>) -> (T, Vec<Vec<String>>) {
        let answers = tokio::select! {
            biased;
            answers = calls => answers,
            () = self.serve() => unreachable!("the proxy serves until it is dropped"),
        };
        let heads = self.heads.lock().unwrap().clone();
        (answers, heads)
    }

    async fn serve(&self) {
        let mut tunnels = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = self.listener.accept().await.unwrap();
            tunnels.spawn(tunnel(stream, Arc::clone(&self.heads), self.refusal));
        }
    }
}

async fn tunnel(stream: TcpStream, heads: Arc<Mutex<Vec<Vec<String>>>>, refusal: Option<&'static str>) {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let target = head[0].split(' ').nth(1).unwrap().to_owned();
    heads.lock().unwrap().push(head);
    if let Some(refusal) = refusal {
        stream.write_all(refusal.as_bytes()).await.unwrap();
        return;
    }
    let mut server = TcpStream::connect(target).await.unwrap();
    stream
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await
        .unwrap();
    // Either side may disconnect at any time.
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

#[tokio::test]
async fn requests_go_through_the_proxy_over_http2_and_watches_over_http1() {
    let server = Server::new(&certificate("127.0.0.1"), &["h2", "http/1.1"]).await;
    let proxy = Proxy::new(None).await;
    let mut config = server.config.clone();
    config.proxy_url = Some(proxy.url());
    let calls = async {
        let api = api(&config, 2).await;
        let answers = join_all((0..50).map(|_| post(&api))).await;
        let watches = watch_client(&ApiServer::open(&config).await.unwrap()).unwrap();
        let version = http::Request::get("/version").body(Vec::new()).unwrap();
        watches.request_text(version).await.unwrap();
        answers
    };
    let ((answers, heads), received) = server.during(proxy.during(calls)).await;
    for answered in answers {
        assert_eq!(answered.answer, Answer::Outcome(EventOutcome::Stored));
    }
    assert_eq!(received.protocols, ["h2", "h2", ""], "watches negotiate no protocol");
    assert_eq!(received.versions[..50], [Version::HTTP_2; 50]);
    assert_eq!(received.versions[50..], [Version::HTTP_11]);
    assert_eq!(heads.len(), 3, "{heads:?}");
    let server = config.cluster_url.authority().unwrap();
    for head in heads {
        assert_eq!(head[0], format!("CONNECT {server} HTTP/1.1"));
        assert!(
            head.contains(&"Proxy-Authorization: Basic dXNlcjpzM2NyZXQ=".to_owned()),
            "{head:?}"
        );
    }
}

#[tokio::test]
async fn proxy_error_names_the_proxy_without_its_password() {
    for (refusal, reason) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "proxy authorization required",
        ),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", "unsuccessful"),
    ] {
        let server = Server::new(&certificate("127.0.0.1"), &["h2"]).await;
        let proxy = Proxy::new(Some(refusal)).await;
        let mut config = server.config.clone();
        config.proxy_url = Some(proxy.url());
        let address = proxy.listener.local_addr().unwrap();
        let calls = async { post(&api(&config, 1).await).await };
        let ((answered, _), received) = server.during(proxy.during(calls)).await;
        let message = unavailable(answered);
        let expected = format!("cannot connect through the proxy {address}: tunnel error: {reason}");
        assert!(message.contains(&expected), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
        assert!(received.versions.is_empty());
    }
}

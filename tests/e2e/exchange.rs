//! A plain HTTP exchange on loopback, for servers without TLS: a controller's endpoints, etcd.

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Returns the body of a 200 response.
pub(super) async fn get(address: &str, path: &str) -> Option<String> {
    exchange(address, &format!("GET {path} HTTP/1.0\r\n\r\n")).await
}

/// Posts JSON. Returns the body of a 200 response.
pub(super) async fn post(address: &str, path: &str, body: &Value) -> Option<String> {
    let body = body.to_string();
    let length = body.len();
    exchange(
        address,
        &format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"),
    )
    .await
}

async fn exchange(address: &str, request: &str) -> Option<String> {
    let (code, body) = send(address, request).await?;
    (code == 200).then_some(body)
}

/// Returns the status code and the body of any response.
pub(super) async fn send(address: &str, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, body.to_owned()))
}

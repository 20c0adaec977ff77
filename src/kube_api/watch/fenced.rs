//! Ends the open watches at a fence of the replica.
//!
//! If the network loses the packets of a connection, the watch is silent and gets no error until the kernel or a proxy
//! gives the connection up. If the network recovers earlier, the watch stays silent until the server sends its data
//! again. A fence indicates such an outage: the watch is then interrupted, and is opened again over another connection.
//!
//! A fence ends no list of more than one object. A healthy watch may be silent for long. A list may not: it must begin
//! within 65 seconds, and then never pause for 80. A long list can overload the API server and so cause the fence: a list
//! that began again at each fence might never end.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyStream, StreamBody};
use hyper::body::Frame;
use kube::{Client, client::Body};

use super::observed::asks_for_version;
use crate::kube_api::latest_value::{LatestReceiver, LatestSender};

/// A fence ended the watch.
#[derive(Debug, thiserror::Error)]
#[error("the replica was fenced")]
struct Fenced;

impl From<Fenced> for kube::Error {
    fn from(fenced: Fenced) -> kube::Error {
        kube::Error::Service(fenced.into())
    }
}

/// Wraps the client of lists and watches. Each change of the number of fences ends its watches with an error, and its
/// requests for the current version.
pub fn ended_by_fences(client: Client, n_fences: LatestReceiver<u64>) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let mut n_fences = if ends_at_fence(&request) {
            n_fences.clone()
        } else {
            // A receiver without a sender never changes.
            LatestSender::new(0).subscribe()
        };
        async move {
            n_fences.see();
            let answer = tokio::select! {
                biased;
                () = n_fences.changed() => return Err(Fenced.into()),
                answer = client.send(request) => answer?,
            };
            Ok::<_, kube::Error>(answer.map(|body| until_fence(body, n_fences)))
        }
    });
    Client::new(service, default_namespace)
}

/// Whether the request is a watch, or asks for the current version before a watch resumes.
fn ends_at_fence(request: &Request<Body>) -> bool {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1")) || asks_for_version(request)
}

fn until_fence(
    body: Body,
    n_fences: LatestReceiver<u64>,
) -> StreamBody<impl Stream<Item = kube::Result<Frame<Bytes>>> + Send> {
    let parts = (BodyStream::new(body), n_fences);
    StreamBody::new(stream::try_unfold(parts, |(mut frames, mut n_fences)| async move {
        tokio::select! {
            biased;
            () = n_fences.changed() => Err(Fenced.into()),
            frame = frames.next() => Ok(frame.transpose()?.map(|frame| (frame, (frames, n_fences)))),
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use http::Response;
    use http_body_util::BodyExt as _;

    use super::*;

    const DELAY: Duration = Duration::from_secs(2);

    /// A client whose server delays the beginning of each answer and its body.
    fn slow_client(n_fences: &LatestSender<u64>) -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            tokio::time::sleep(DELAY).await;
            let frame = stream::once(async {
                tokio::time::sleep(DELAY).await;
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"all")))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(frame)))
        });
        ended_by_fences(Client::new(service, "default"), n_fences.subscribe())
    }

    /// Sends a request, with a fence after this time. Returns the body if the request succeeds.
    async fn fenced_after(query: &str, millis: u64) -> Option<Bytes> {
        let n_fences = LatestSender::new(0);
        let client = slow_client(&n_fences);
        let request = Request::get(format!("/apis/batch/v1/jobs?{query}")).body(Body::empty());
        let answer = async {
            let body = client.send(request.unwrap()).await.ok()?.into_body();
            Some(body.collect().await.ok()?.to_bytes())
        };
        let fence = async {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            n_fences.set(1);
        };
        tokio::join!(answer, fence).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_ends_watches_and_no_lists() {
        for fence in [1_000, 3_000] {
            assert_eq!(fenced_after("watch=true&resourceVersion=7", fence).await, None);
            assert_eq!(fenced_after("limit=500&watch=1", fence).await, None);
            assert_eq!(fenced_after("labelSelector=a&limit=1", fence).await, None);
            let listed = Some(Bytes::from_static(b"all"));
            for query in ["limit=500&labelSelector=watch%3Dtrue", "limit=1&continue=a"] {
                assert_eq!(fenced_after(query, fence).await, listed);
            }
        }
    }
}

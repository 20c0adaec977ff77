//! Ends the requests of a watch at a fence of the replica.
//!
//! If the network loses the packets of a connection, the watch is silent and gets no error until the kernel or a proxy
//! gives the connection up. If the network recovers earlier, the watch stays silent until the server sends its data
//! again. A fence indicates such an outage: the watch is then interrupted, and is opened again over another connection.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyStream, StreamBody};
use hyper::body::Frame;
use kube::{Client, client::Body};

use crate::kube_api::ordered_watch::OrderedReceiver;

/// A fence ended the request.
#[derive(Debug, thiserror::Error)]
#[error("the replica was fenced")]
struct Fenced;

impl From<Fenced> for kube::Error {
    fn from(fenced: Fenced) -> kube::Error {
        kube::Error::Service(fenced.into())
    }
}

/// Wraps the client of a watch. Each change of the number of fences ends its requests in flight with an error.
pub fn ended_by_fences(client: Client, n_fences: OrderedReceiver<u64>) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, mut n_fences) = (client.clone(), n_fences.clone());
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

fn until_fence(
    body: Body,
    n_fences: OrderedReceiver<u64>,
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

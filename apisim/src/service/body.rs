//! The body of a response: complete, or an open watch.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body::{Body, Frame, SizeHint};

/// The connection broke during a request or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the API server was lost")]
pub struct ConnectionLost;

type Lines = Pin<Box<dyn Stream<Item = Result<Bytes, ConnectionLost>> + Send>>;

/// The body of a response.
pub struct ApiBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Watch(Lines),
}

impl ApiBody {
    pub(super) fn whole(bytes: Bytes) -> ApiBody {
        ApiBody(Kind::Whole(Some(bytes)))
    }

    pub(super) fn watch(lines: impl Stream<Item = Result<Bytes, ConnectionLost>> + Send + 'static) -> ApiBody {
        ApiBody(Kind::Watch(Box::pin(lines)))
    }
}

impl ApiBody {
    /// Ends a watch, as at its timeout, when `end` completes.
    pub(crate) fn until(self, end: impl Future<Output = ()> + Send + 'static) -> ApiBody {
        match self.0 {
            Kind::Whole(_) => self,
            Kind::Watch(lines) => ApiBody(Kind::Watch(Box::pin(lines.take_until(end)))),
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = ConnectionLost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionLost>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Watch(lines) => lines
                .as_mut()
                .poll_next(context)
                .map(|line| line.map(|line| line.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}

//! Requests about Leases, on a separate connection: a burst of Jobs delays no renewal.
//!
//! Every write except a create carries the version that it is based on and is a merge patch, so unknown fields of a
//! Lease survive. There are no retries, and no request outlives its timeout: the caller decides what follows. A Lease
//! of the installation has [`LEASE_LABEL`] and a name that [`LeaseNames::parse`] accepts.
//!
//! [`LEASE_LABEL`]: crate::coordination::LEASE_LABEL

mod answer;
mod body;
mod event;
mod object;
mod watch;

use std::{sync::Arc, time::Duration};

use futures::Stream;
use http::Method;
use jiff::Timestamp;
use tokio::sync::Semaphore;

use self::{
    answer::RequestKind,
    object::{LeasePage, selector},
};
use crate::{
    coordination::{InstallationName, LeaseAnswer, LeaseKey, LeaseList, LeaseNames, LeaseRecord, LeaseWrite},
    kube_api::{
        exchange::{self, ExchangeError, Request},
        http::ServerDate,
        objects::classify::{RawAnswer, Refusal, error_text},
        page_sizes::{LEASE_PAGE_BYTES_MAX, LEASE_PAGES_MAX, PAGE_SIZE},
        paths::{COORDINATION, namespaced, push_segment},
    },
    shard::{ResourceVersion, ShardCount},
};

/// Maximum number of shard requests in flight, of the 100 streams that an API server allows one connection: renewals
/// and the watch never wait for a stream.
const SHARD_REQUESTS_MAX: usize = 64;

/// Maximum size of a Lease: its annotations are at most 256 KiB, and its managed fields not many times that.
const LEASE_MAX_BYTES: usize = 2 << 20;

/// The Leases of one installation, on a separate connection. Cheap to clone.
#[derive(Clone)]
pub struct LeaseApi {
    client: kube::Client,
    namespace: Arc<str>,
    names: Arc<LeaseNames>,
    owner: Option<Arc<OwnerPod>>,
    shard_requests: Arc<Semaphore>,
}

/// The Pod that owns the member Lease of this replica, so that the Lease is deleted with it. It must be in the
/// namespace of the Leases: the garbage collector ignores owners elsewhere and would delete the Lease as an orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerPod {
    /// The name of the Pod.
    pub name: Box<str>,
    /// The uid of the Pod.
    pub uid: Box<str>,
}

/// An answer with its side information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseReply {
    /// The classified answer.
    pub answer: LeaseAnswer,
    /// The HTTP status, if there was an answer.
    pub code: Option<u16>,
    /// The `Date` header and the connection of the answer.
    pub server_date: Option<ServerDate>,
    /// The message of the server or of the transport, if the request did not succeed.
    pub message: Option<String>,
}

/// An event of the watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// A Lease that is new or changed.
    Applied(LeaseRecord),
    /// A Lease that was deleted, and the version of the deletion.
    Deleted(LeaseKey, ResourceVersion),
    /// Everything up to this version was delivered. Also stands for events of foreign Leases.
    Bookmark(ResourceVersion),
}

/// The reasons why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The server refused the request; with 410 because the version is too old, and a list is needed.
    #[error("{request}: {message} ({code})")]
    Refused {
        /// The request.
        request: String,
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// There is no answer, or it ended early.
    #[error("{request}")]
    Unanswered {
        /// The request.
        request: String,
        /// The cause.
        source: ExchangeError,
    },
    /// The answer cannot be parsed.
    #[error("{request}: the answer cannot be read: {message}")]
    Unreadable {
        /// The request.
        request: String,
        /// The problem.
        message: String,
    },
}

impl LeaseError {
    fn unanswered(request: &str, source: ExchangeError) -> LeaseError {
        LeaseError::Unanswered {
            request: request.to_owned(),
            source,
        }
    }
}

impl LeaseApi {
    /// Returns the namespace of the Leases.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns a client for the installation with this name.
    #[must_use]
    pub fn of_installation(self, installation: InstallationName) -> LeaseApi {
        let count = self.names.count;
        LeaseApi {
            names: Arc::new(LeaseNames { installation, count }),
            ..self
        }
    }

    /// Creates a client for the Leases of a namespace, of the installation with the default name. `owner` is `None`
    /// outside the cluster.
    pub fn new(client: kube::Client, namespace: &str, count: ShardCount, owner: Option<OwnerPod>) -> LeaseApi {
        LeaseApi {
            client,
            namespace: namespace.into(),
            names: Arc::new(LeaseNames {
                installation: InstallationName::default(),
                count,
            }),
            owner: owner.map(Arc::new),
            shard_requests: Arc::new(Semaphore::new(SHARD_REQUESTS_MAX)),
        }
    }

    /// Creates a Lease. `now` is the wall time to write.
    pub async fn create(&self, write: &LeaseWrite, now: Timestamp, timeout: Duration) -> LeaseReply {
        let body = body::create(write, &self.names, self.owner.as_deref(), now);
        let request = Request::new(Method::POST, self.leases_path()).json(body);
        let sent = self.send_about(&write.key, request, timeout).await;
        reply(&write.key, RequestKind::Create, sent)
    }

    /// Patches a Lease if it still has this version. `now` is the wall time to write.
    pub async fn patch(
        &self,
        write: &LeaseWrite,
        precondition: ResourceVersion,
        now: Timestamp,
        timeout: Duration,
    ) -> LeaseReply {
        let body = body::patch(write, &self.names, precondition, now);
        let request = Request::new(Method::PATCH, self.lease_path(&write.key)).merge_patch(body);
        let sent = self.send_about(&write.key, request, timeout).await;
        reply(&write.key, RequestKind::Patch, sent)
    }

    /// Deletes a Lease if it still has this version. The answer does not contain the deleted Lease.
    pub async fn delete(&self, key: &LeaseKey, precondition: ResourceVersion, timeout: Duration) -> LeaseReply {
        let request = Request::new(Method::DELETE, self.lease_path(key)).json(body::delete(precondition));
        let sent = self.send_about(key, request, timeout).await;
        reply(key, RequestKind::Delete(precondition), sent)
    }

    /// Reads a Lease from the quorum.
    pub async fn read(&self, key: &LeaseKey, timeout: Duration) -> LeaseReply {
        let request = Request::new(Method::GET, self.lease_path(key));
        let sent = self.send_about(key, request, timeout).await;
        reply(key, RequestKind::Read, sent)
    }

    /// Lists the Leases of the installation at one version, which is no older than the request.
    pub async fn list(&self, timeout: Duration) -> Result<LeaseList, LeaseError> {
        let what = format!("listing the Leases of {}", self.namespace);
        let list = tokio::time::timeout(timeout, self.all_pages(&what, timeout)).await;
        list.unwrap_or_else(|_| Err(LeaseError::unanswered(&what, ExchangeError::Timeout(timeout))))
    }

    async fn all_pages(&self, what: &str, timeout: Duration) -> Result<LeaseList, LeaseError> {
        let mut leases = Vec::new();
        let mut next = None;
        let list = format!(
            "{}?labelSelector={}&limit={PAGE_SIZE}",
            self.leases_path(),
            selector(&self.names.installation)
        );
        for _ in 0..LEASE_PAGES_MAX {
            let page = self.page(what, &list, next.as_deref(), timeout).await?;
            leases.extend(object::records(page.leases, &self.names).map_err(|error| unreadable(what, &error))?);
            match page.next {
                Some(token) => next = Some(token),
                None => {
                    return Ok(LeaseList {
                        resource_version: page.resource_version,
                        leases,
                    });
                }
            }
        }
        Err(LeaseError::Unreadable {
            request: what.to_owned(),
            message: format!("it has more than {LEASE_PAGES_MAX} pages"),
        })
    }

    /// Requests a page of a list of Leases, the first or the one at `next`. `list` is its path with a query.
    async fn page(
        &self,
        what: &str,
        list: &str,
        next: Option<&str>,
        timeout: Duration,
    ) -> Result<LeasePage, LeaseError> {
        let mut path = list.to_owned();
        if let Some(token) = next {
            path.push_str("&continue=");
            push_segment(&mut path, token);
        }
        let request = Request::new(Method::GET, path);
        let answer = answered(what, self.send(request, LEASE_PAGE_BYTES_MAX, timeout).await)?;
        object::page(&answer.body).map_err(|error| unreadable(what, &error))
    }

    /// Watches the Leases of the installation from a version. The watch ends when the server ends it, and at the first
    /// error. Keep-alives end it if the peer vanishes. A silent server does not end it once the watch has begun, within
    /// `opens_within`.
    pub fn watch(
        &self,
        from: ResourceVersion,
        opens_within: Duration,
    ) -> impl Stream<Item = Result<LeaseEvent, LeaseError>> + Send + 'static {
        let path = format!(
            "{}?labelSelector={}&watch=true&allowWatchBookmarks=true&resourceVersion={from}",
            self.leases_path(),
            selector(&self.names.installation)
        );
        watch::watch(
            self.client.clone(),
            Request::new(Method::GET, path),
            format!("watching the Leases of {}", self.namespace),
            Arc::clone(&self.names),
            opens_within,
        )
    }

    /// Sends a request about one Lease.
    async fn send_about(
        &self,
        key: &LeaseKey,
        request: Request,
        timeout: Duration,
    ) -> Result<RawAnswer, ExchangeError> {
        let exchange = async {
            let _permit = match key {
                LeaseKey::Member(_) => None,
                LeaseKey::Shard(_) => self.shard_requests.acquire().await.ok(),
            };
            self.send(request, LEASE_MAX_BYTES, timeout).await
        };
        let sent = tokio::time::timeout(timeout, exchange).await;
        sent.unwrap_or(Err(ExchangeError::Timeout(timeout)))
    }

    /// Sends a request. The server gives it up after the timeout too.
    async fn send(
        &self,
        request: Request,
        body_max_bytes: usize,
        timeout: Duration,
    ) -> Result<RawAnswer, ExchangeError> {
        exchange::send(
            &self.client,
            request.with_server_timeout(timeout),
            body_max_bytes,
            timeout,
        )
        .await
    }

    fn leases_path(&self) -> String {
        namespaced(COORDINATION, &self.namespace, &["leases"])
    }

    fn lease_path(&self, key: &LeaseKey) -> String {
        namespaced(COORDINATION, &self.namespace, &["leases", &self.names.name(key)])
    }
}

fn reply(key: &LeaseKey, kind: RequestKind, sent: Result<RawAnswer, ExchangeError>) -> LeaseReply {
    let (answer, message, sent) = match sent {
        Ok(sent) => {
            let (answer, message) = answer::classify(&sent, kind, key);
            (answer, message, Some(sent))
        }
        Err(error @ ExchangeError::Request(_)) => (LeaseAnswer::Refused, Some(error_text(&error)), None),
        Err(error) => (LeaseAnswer::Unknown, Some(error_text(&error)), None),
    };
    LeaseReply {
        answer,
        code: sent.as_ref().map(|sent| sent.status.as_u16()),
        server_date: sent.and_then(|sent| sent.server_date),
        message,
    }
}

/// Returns the answer if the request succeeded.
fn answered(what: &str, sent: Result<RawAnswer, ExchangeError>) -> Result<RawAnswer, LeaseError> {
    let sent = sent.map_err(|source| LeaseError::unanswered(what, source))?;
    if sent.status.is_success() {
        return Ok(sent);
    }
    Err(LeaseError::Refused {
        request: what.to_owned(),
        code: sent.status.as_u16(),
        message: Refusal::read(&sent).message,
    })
}

fn unreadable(what: &str, error: &object::ObjectError) -> LeaseError {
    LeaseError::Unreadable {
        request: what.to_owned(),
        message: error_text(error),
    }
}

#[cfg(test)]
mod tests;

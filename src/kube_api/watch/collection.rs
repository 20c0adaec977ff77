//! Lists and watches of the objects of some shards, by label or by hash. `kube` supports labels only.
//!
//! A server without `shardSelector` (KEP-5866) ignores the parameter and sends everything, so the caller checks every
//! object. A server that supports it says so in the metadata of a list. A list counts as selected only if the metadata
//! repeats exactly the requested selector. For any other selection it is unknown what was left out, and the request is
//! repeated without the parameter. A watch reports nothing; it is selected if the list before it was.
//!
//! The API server limits pages by number of objects. 2,000 CronJobs of 1 MiB are 2 GiB, held several times while they
//! are decoded, so the size of a page is limited as well.

use futures::{AsyncReadExt as _, Stream};
use kube::{
    Client,
    api::{ListParams, VersionMatch, WatchParams},
    core::{Request, WatchEvent},
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;

use crate::{
    kube_api::{
        objects::decode::{Content, Received},
        page_sizes::{LARGE_PAGE_SIZE, PAGE_BYTES_MAX},
        paths::{BATCH, namespaced},
    },
    shard::{ResourceVersion, Scope},
};

/// Divisor for the next limit: 2,000 objects of 1.5 MiB, the maximum that etcd stores, need three steps.
const LIMIT_DIVISOR: u32 = 8;

/// Prefix of the message with which a server rejects a `shardSelector`.
const REJECTION: &str = "invalid shard selector";

/// The parameters of a request that select objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    /// A label selector; empty for none.
    pub(super) labels: String,
    /// A `shardSelector`, which a server may ignore.
    pub(super) shards: Option<String>,
}

impl Selector {
    pub(super) fn by_label(labels: String) -> Selector {
        Selector { labels, shards: None }
    }

    pub(super) fn by_hash(shards: String) -> Selector {
        Selector {
            labels: String::new(),
            shards: Some(shards),
        }
    }

    fn label_selector(&self) -> Option<String> {
        Some(self.labels.clone()).filter(|labels| !labels.is_empty())
    }
}

/// Who leaves out the objects of other shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedBy {
    /// The API server does not send them.
    Server,
    /// This replica receives and ignores them.
    Replica,
}

impl SelectedBy {
    /// Combines two parts of one list.
    #[must_use]
    pub fn and(self, other: SelectedBy) -> SelectedBy {
        if self == other { self } else { SelectedBy::Replica }
    }
}

/// The minimum freshness of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Everything that was written before the list begins. The server reads the current version from its storage and
    /// waits until its cache has it.
    Consistent,
    /// Everything that was written up to this version (`resourceVersionMatch=NotOlderThan`). The server answers from
    /// its cache; a server that is far behind refuses.
    NotOlderThan(ResourceVersion),
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The objects.
    pub items: Vec<T>,
    /// The version of the whole list.
    pub version: ResourceVersion,
    /// Who left out the CronJobs of other shards.
    pub selected_by: SelectedBy,
    /// Number of received CronJobs of other shards that are not among the objects.
    pub n_passed_over: u64,
}

/// A list in progress. It is dropped after an error.
pub(super) struct Pager {
    collection: Collection,
    /// What is listed.
    pub(super) selector: Selector,
    freshness: Freshness,
    /// The maximum number of objects of the next page.
    limit: u32,
    /// The continue token of the next page; `None` before the first page and after the last one.
    pub(super) next: Option<String>,
}

impl Pager {
    /// Requests the first page, or the next one, and lowers the limit if the page is too large.
    pub(super) async fn next_page<O: DeserializeOwned>(&mut self) -> kube::Result<Page<O>> {
        let params = ListParams {
            label_selector: self.selector.label_selector(),
            ..ListParams::default()
        };
        let params = match (&self.next, self.freshness) {
            // The token determines the version.
            (Some(next), _) => params.continue_token(next),
            (None, Freshness::NotOlderThan(version)) => {
                params.at(&version.to_string()).matching(VersionMatch::NotOlderThan)
            }
            (None, Freshness::Consistent) => params,
        };
        let (list, selected_by) = self.request_selected(&params).await?;
        self.next = list.metadata.next.filter(|next| !next.is_empty());
        Ok(Page {
            items: list.items.unwrap_or_default(),
            version: ResourceVersion::read(&list.metadata.resource_version.unwrap_or_default()),
            selected_by,
            n_passed_over: 0,
        })
    }

    /// Requests a page with the `shardSelector`. If the server rejects it or applies another one, requests the page
    /// without it.
    async fn request_selected<O: DeserializeOwned>(
        &mut self,
        params: &ListParams,
    ) -> kube::Result<(List<O>, SelectedBy)> {
        let shards = self.selector.shards.clone();
        let shards = shards.as_deref();
        match self.request_page(params, shards).await {
            Ok(list) if list.metadata.is_of_others_than(shards) => {}
            Ok(list) if list.metadata.shard_info.is_some() => return Ok((list, SelectedBy::Server)),
            Ok(list) => return Ok((list, SelectedBy::Replica)),
            Err(error) if shards.is_some() && is_selector_rejected(&error) => {}
            Err(error) => return Err(error),
        }
        Ok((self.request_page(params, None).await?, SelectedBy::Replica))
    }

    /// Requests a page. One larger than [`PAGE_BYTES_MAX`] is dropped and requested again with a lower limit.
    async fn request_page<O: DeserializeOwned>(
        &mut self,
        params: &ListParams,
        shards: Option<&str>,
    ) -> kube::Result<List<O>> {
        let Collection { client, request } = &self.collection;
        loop {
            let params = params.clone().limit(self.limit);
            let request = request.list(&params).map_err(kube::Error::BuildRequest)?;
            let answer = client.request_stream(of_shards(request, shards)?).await?;
            let mut body = Vec::new();
            // etcd limits the size of a single object.
            let bytes_max = if self.limit == 1 { u64::MAX } else { PAGE_BYTES_MAX };
            let n_bytes = answer.take(bytes_max.saturating_add(1)).read_to_end(&mut body).await;
            let n_bytes = n_bytes.map_err(|error| kube::Error::Service(error.into()))?;
            if n_bytes as u64 > bytes_max {
                self.limit = (self.limit / LIMIT_DIVISOR).max(1);
            } else {
                return serde_json::from_slice(&body).map_err(kube::Error::SerdeError);
            }
        }
    }
}

/// The collection of a kind in a scope.
#[derive(Clone)]
pub(super) struct Collection {
    client: Client,
    request: Request,
}

impl Collection {
    pub(super) fn new<C: Content>(client: Client, scope: &Scope) -> Collection {
        let path = match scope {
            Scope::Cluster => format!("{BATCH}/{}", C::PLURAL),
            Scope::Namespace(namespace) => namespaced(BATCH, namespace, &[C::PLURAL]),
        };
        Collection {
            client,
            request: Request::new(path),
        }
    }

    /// Begins a list.
    pub(super) fn list(&self, selector: Selector, freshness: Freshness) -> Pager {
        Pager {
            collection: self.clone(),
            selector,
            freshness,
            limit: LARGE_PAGE_SIZE,
            next: None,
        }
    }

    /// Returns the current version and who selects, by a list of one object.
    pub(super) async fn probe(&self, selector: Selector) -> kube::Result<(ResourceVersion, SelectedBy)> {
        let mut pager = Pager {
            limit: 1,
            ..self.list(selector, Freshness::Consistent)
        };
        let page: Page<IgnoredAny> = pager.next_page().await?;
        Ok((page.version, page.selected_by))
    }

    /// Opens a watch at a version. The API server ends it after `watch_secs` seconds, or after minutes.
    pub(super) async fn watch<C: Content>(
        &self,
        selector: &Selector,
        version: ResourceVersion,
        watch_secs: Option<u32>,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<Received<C>>>> + use<C>> {
        let params = WatchParams {
            label_selector: selector.label_selector(),
            timeout: watch_secs,
            ..WatchParams::default()
        };
        let request = self.request.watch(&params, &version.to_string());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let request = of_shards(request, selector.shards.as_deref())?;
        self.client.request_events(request).await
    }
}

/// Adds a `shardSelector` to a request that already has a query.
fn of_shards(mut request: http::Request<Vec<u8>>, shards: Option<&str>) -> kube::Result<http::Request<Vec<u8>>> {
    if let Some(shards) = shards {
        let value: String = form_urlencoded::byte_serialize(shards.as_bytes()).collect();
        let uri = format!("{}&shardSelector={value}", request.uri());
        let uri = uri.parse().map_err(http::Error::from);
        *request.uri_mut() =
            uri.map_err(|error| kube::Error::BuildRequest(kube::core::request::Error::BuildRequest(error)))?;
    }
    Ok(request)
}

/// Whether a server that supports `shardSelector` rejected this one.
pub(super) fn is_selector_rejected(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.starts_with(REJECTION))
}

#[derive(Deserialize)]
struct List<O> {
    #[serde(default)]
    metadata: ListMetadata,
    items: Option<Vec<O>>,
}

/// The decoded part of a list's metadata.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
    shard_info: Option<Value>,
}

impl ListMetadata {
    /// Whether the server applied a different selection than requested.
    fn is_of_others_than(&self, requested: Option<&str>) -> bool {
        let reported = self.shard_info.as_ref();
        reported.is_some_and(|reported| reported.get("selector").and_then(Value::as_str) != requested)
    }
}

#[cfg(test)]
mod tests;

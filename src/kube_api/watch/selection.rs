//! Lists and watches of the objects of some shards, by label or by hash: `kube` knows labels alone.
//!
//! A server that does not know `shardSelector` (KEP-5866) passes it over and sends everything, so whoever asks looks at
//! what comes. One that knows it says so in a list's metadata. A list is taken for selected by nothing but the
//! repetition of exactly what was asked for: of anything else it is not known what is left out, so it is asked for
//! again without. A watch says nothing; it is selected where the list before it was.

use futures::Stream;
use kube::{
    Client,
    api::{ListParams, VersionMatch, WatchParams},
    core::{NamespaceResourceScope, Request, WatchEvent},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::shard::{ResourceVersion, Scope};

/// Objects in one page of a list: as many as the built-in controllers ask for.
const PAGE_SIZE: u32 = 500;

/// And where the server need not read its storage: some six megabytes, in one exchange of what may be many.
const CACHED_PAGE_SIZE: u32 = 2_000;

/// How the message begins by which a server refuses a `shardSelector`.
const REFUSAL: &str = "invalid shard selector";

/// Which objects are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    /// A label selector; empty for none.
    pub(super) labels: String,
    /// A `shardSelector`, which a server may pass over.
    pub(super) shards: Option<String>,
}

/// Who leaves out what is of other shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedBy {
    /// The API server: it does not send it.
    Server,
    /// We: it is received and passed over.
    Replica,
}

impl SelectedBy {
    /// Of two parts of one list.
    #[must_use]
    pub fn and(self, other: SelectedBy) -> SelectedBy {
        if self == other { self } else { SelectedBy::Replica }
    }
}

/// What a list must show at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Everything that was written before it begins: the server asks its storage how far that is, and waits until it knows
    /// as much.
    Consistent,
    /// Everything that was written up to this version, as `resourceVersionMatch` means it: the server answers from what it
    /// has. One that is far behind refuses.
    NotOlderThan(ResourceVersion),
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct ListPage<O> {
    pub(super) items: Vec<O>,
    /// Of the whole list.
    pub(super) version: String,
    /// Where it goes on, if it does.
    pub(super) next: Option<String>,
    /// By hash; labels every server knows.
    pub(super) selected_by: SelectedBy,
}

/// The objects of a kind in a scope.
#[derive(Clone)]
pub(super) struct Collection {
    client: Client,
    request: Request,
}

impl Collection {
    pub(super) fn new<O>(client: Client, scope: &Scope) -> Collection
    where
        O: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let namespace = match scope {
            Scope::Cluster => None,
            Scope::Namespace(namespace) => Some(&**namespace),
        };
        Collection {
            client,
            request: Request::new(O::url_path(&(), namespace)),
        }
    }

    /// A page, the first or the one at `next`.
    pub(super) async fn list<O: DeserializeOwned>(
        &self,
        selector: &Selector,
        next: Option<&str>,
        freshness: Freshness,
    ) -> kube::Result<ListPage<O>> {
        let limit = match freshness {
            Freshness::Consistent => PAGE_SIZE,
            Freshness::NotOlderThan(_) => CACHED_PAGE_SIZE,
        };
        self.list_some(selector, next, freshness, limit).await
    }

    /// The version that there is now, and who would select: `selector` should take no more than a few objects.
    pub(super) async fn probe<O: DeserializeOwned>(&self, selector: &Selector) -> kube::Result<(String, SelectedBy)> {
        let page: ListPage<O> = self.list_some(selector, None, Freshness::Consistent, 1).await?;
        Ok((page.version, page.selected_by))
    }

    async fn list_some<O: DeserializeOwned>(
        &self,
        selector: &Selector,
        next: Option<&str>,
        freshness: Freshness,
        limit: u32,
    ) -> kube::Result<ListPage<O>> {
        let params = ListParams::default().limit(limit).labels(&selector.labels);
        let params = match (next, freshness) {
            // The token says at which version.
            (Some(next), _) => params.continue_token(next),
            (None, Freshness::NotOlderThan(version)) => {
                params.at(&version.to_string()).matching(VersionMatch::NotOlderThan)
            }
            (None, Freshness::Consistent) => params,
        };
        let asked = selector.shards.as_deref();
        let page = match self.client.request(self.list_request(&params, asked)?).await {
            Ok(List { metadata, .. }) if metadata.is_of_others_than(asked) => None,
            Ok(list) => Some(list),
            Err(error) if asked.is_some() && is_refusal(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(list) = page {
            return Ok(list.into_page());
        }
        let list: List<O> = self.client.request(self.list_request(&params, None)?).await?;
        Ok(ListPage {
            selected_by: SelectedBy::Replica,
            ..list.into_page()
        })
    }

    /// A watch from a version on.
    pub(super) async fn watch<O: Clone + DeserializeOwned + 'static>(
        &self,
        selector: &Selector,
        version: &str,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<O>>> + use<O>> {
        let params = WatchParams::default().labels(&selector.labels);
        let request = self.request.watch(&params, version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let request = of_shards(request, selector.shards.as_deref())?;
        self.client.request_events(request).await
    }

    fn list_request(&self, params: &ListParams, shards: Option<&str>) -> kube::Result<http::Request<Vec<u8>>> {
        let request = self.request.list(params).map_err(kube::Error::BuildRequest)?;
        of_shards(request, shards)
    }
}

/// The request with a `shardSelector`; it has a query already.
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

/// Whether a server knows `shardSelector` and does not take ours.
pub(super) fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.starts_with(REFUSAL))
}

#[derive(Deserialize)]
struct List<O> {
    #[serde(default)]
    metadata: ListMetadata,
    items: Option<Vec<O>>,
}

/// What we read of `metadata` of a list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
    shard_info: Option<Value>,
}

impl ListMetadata {
    /// Whether the server left out something else than it was asked to.
    fn is_of_others_than(&self, asked: Option<&str>) -> bool {
        let told = self.shard_info.as_ref();
        told.is_some_and(|told| told.get("selector").and_then(Value::as_str) != asked)
    }
}

impl<O> List<O> {
    fn into_page(self) -> ListPage<O> {
        ListPage {
            items: self.items.unwrap_or_default(),
            selected_by: match self.metadata.shard_info {
                Some(_) => SelectedBy::Server,
                None => SelectedBy::Replica,
            },
            version: self.metadata.resource_version.unwrap_or_default(),
            next: self.metadata.next.filter(|next| !next.is_empty()),
        }
    }
}

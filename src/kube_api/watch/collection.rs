//! Lists and watches of all CronJobs or Jobs of a scope, of its calendars, and of namespaces.
//!
//! The API server limits pages by number of objects. 2,000 CronJobs of 1 MiB are 2 GiB, held several times while they
//! are decoded, so the size of a page is limited as well.

use futures::{AsyncReadExt as _, Stream};
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::{Request, WatchEvent},
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::{
    kube_api::{
        namespace_selector::NamespaceSelector,
        objects::decode::{CalendarContent, Content, NamespaceContent, Received},
        page_sizes::{LARGE_PAGE_SIZE, PAGE_BYTES_MAX},
        paths::{BATCH, CORE, namespaced},
    },
    schedule::options::CALENDAR_LABEL,
    shard::{ResourceVersion, Scope},
};

/// Divisor for the next limit: 2,000 objects of 1.5 MiB, the maximum that etcd stores, need three steps.
const LIMIT_DIVISOR: u32 = 8;

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<T> {
    /// The objects.
    pub(super) items: Vec<T>,
    /// The version of the whole list.
    pub(super) version: ResourceVersion,
}

/// A list in progress: everything that was written before it began. It is dropped after an error.
pub(super) struct Pager {
    collection: Collection,
    /// The maximum number of objects of the next page.
    limit: u32,
    /// The continue token of the next page; `None` before the first page and after the last one.
    pub(super) next: Option<String>,
}

impl Pager {
    /// Requests the first page, or the next one. A page larger than [`PAGE_BYTES_MAX`] is dropped and requested again
    /// with a lower limit.
    pub(super) async fn next_page<O: DeserializeOwned>(&mut self) -> kube::Result<Page<O>> {
        let Collection { client, request, .. } = &self.collection;
        loop {
            let params = ListParams {
                continue_token: self.next.clone(),
                label_selector: self.collection.label_selector.clone(),
                ..ListParams::default()
            };
            let request = request
                .list(&params.limit(self.limit))
                .map_err(kube::Error::BuildRequest)?;
            let answer = client.request_stream(request).await?;
            let mut body = Vec::new();
            // etcd limits the size of a single object.
            let bytes_max = if self.limit == 1 { u64::MAX } else { PAGE_BYTES_MAX };
            let n_bytes = answer.take(bytes_max.saturating_add(1)).read_to_end(&mut body).await;
            let n_bytes = n_bytes.map_err(|error| kube::Error::Service(error.into()))?;
            if n_bytes as u64 > bytes_max {
                self.limit = (self.limit / LIMIT_DIVISOR).max(1);
                continue;
            }
            let list: List<O> = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
            self.next = list.metadata.next.filter(|next| !next.is_empty());
            return Ok(Page {
                items: list.items.unwrap_or_default(),
                version: ResourceVersion::read(&list.metadata.resource_version.unwrap_or_default()),
            });
        }
    }
}

/// The collection of a kind in a scope.
#[derive(Clone)]
pub(super) struct Collection {
    client: Client,
    request: Request,
    /// Selects the objects; all if `None`.
    label_selector: Option<String>,
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
            label_selector: None,
        }
    }

    /// The namespaces that the selector selects.
    pub(super) fn of_namespaces(client: Client, selector: &NamespaceSelector) -> Collection {
        Collection {
            client,
            request: Request::new(format!("{CORE}/{}", NamespaceContent::PLURAL)),
            label_selector: Some(selector.to_string()),
        }
    }

    /// The ConfigMaps of a scope that are calendars.
    pub(super) fn of_calendars(client: Client, scope: &Scope) -> Collection {
        let plural = CalendarContent::PLURAL;
        let path = match scope {
            Scope::Cluster => format!("{CORE}/{plural}"),
            Scope::Namespace(namespace) => namespaced(CORE, namespace, &[plural]),
        };
        Collection {
            client,
            request: Request::new(path),
            label_selector: Some(format!("{CALENDAR_LABEL}=true")),
        }
    }

    /// Begins a list.
    pub(super) fn list(&self) -> Pager {
        Pager {
            collection: self.clone(),
            limit: LARGE_PAGE_SIZE,
            next: None,
        }
    }

    /// Returns the current version, from the quorum of etcd, by a list of one object.
    pub(super) async fn current_version(&self) -> kube::Result<ResourceVersion> {
        let mut pager = Pager {
            limit: 1,
            ..self.list()
        };
        let page: Page<IgnoredAny> = pager.next_page().await?;
        Ok(page.version)
    }

    /// Opens a watch at a version. The API server ends it after `watch_secs` seconds, or after minutes.
    pub(super) async fn watch<C: Content>(
        &self,
        version: ResourceVersion,
        watch_secs: Option<u32>,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<Received<C>>>> + use<C>> {
        let params = WatchParams {
            timeout: watch_secs,
            label_selector: self.label_selector.clone(),
            ..WatchParams::default()
        };
        let request = self.request.watch(&params, &version.to_string());
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request_events(request).await
    }
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
}

#[cfg(test)]
mod tests;

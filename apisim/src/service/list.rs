//! Reads: single objects, and lists at a consistent version (B-16: what the controller may rely on).

use std::time::Duration;

use http::StatusCode;
use tokio::time::sleep_until;

use super::{
    ApiService, ParsedRequest,
    query::Continue,
    reply::{List, Reply},
};
use crate::{
    Resource,
    api::State,
    clock::instant,
    failure::Failure,
    registry::Target,
    store::{Compacted, Selector, Table, View},
};

/// How long a front end waits for a version that is not visible yet, as in the API server.
const VERSION_WAIT_MAX: Duration = Duration::from_secs(3);

/// The version of a list.
enum At {
    Latest,
    /// This version or a newer one that is visible at the front end. 0 means any.
    NotOlderThan(u64),
    Exactly(u64),
}

impl ApiService {
    pub(super) fn get(&self, request: &ParsedRequest) -> Result<Reply, Failure> {
        let (target, _) = request.call.target()?;
        let state = self.api.shared.state();
        let stored = state.registry.get(target)?;
        Ok(Reply::Object(
            StatusCode::OK,
            target.resource,
            stored.json(),
            Vec::new(),
        ))
    }

    pub(super) async fn list(&self, request: &ParsedRequest) -> Result<Reply, Failure> {
        let (target, _) = request.call.target()?;
        let selector = request.query.selector(target.resource)?;
        if !request.query.continue_token.is_empty() {
            return self.continue_list(request, target, &selector);
        }
        let version = match list_version(request)? {
            At::Latest if request.stale_by.is_some() => self.version_before(request, target.resource),
            At::NotOlderThan(version) if request.stale_by.is_some() => {
                self.version_before(request, target.resource).max(version)
            }
            At::Latest => self.api.shared.state().registry.store.version(),
            At::NotOlderThan(version) => self.visible_version(request, target.resource, version).await?,
            At::Exactly(version) => {
                self.visible_version(request, target.resource, version).await?;
                version
            }
        };
        // The watch cache ignores the limit for `resourceVersion=0`.
        let limit = request.query.limit.filter(|_| request.query.resource_version != "0");
        let state = self.api.shared.state();
        let table = state.registry.store.table(target.resource);
        let view = table
            .view(version)
            .map_err(|Compacted { oldest }| too_old(version, oldest))?;
        let page = Page {
            target,
            selector: &selector,
            limit,
        };
        Ok(Reply::List(page.list(&view, version, None)))
    }

    /// Waits until at least the given version is visible at the front end. Returns the visible version.
    pub(super) async fn visible_version(
        &self,
        request: &ParsedRequest,
        resource: Resource,
        at_least: u64,
    ) -> Result<u64, Failure> {
        let limit = instant() + VERSION_WAIT_MAX;
        loop {
            let changed = self.api.shared.state().registry.store.changed(resource);
            let mut is_changed = std::pin::pin!(changed.notified());
            is_changed.as_mut().enable();
            let progress = self.api.shared.state().progress(request.front_end, resource);
            if progress.version >= at_least {
                return Ok(progress.version);
            }
            if instant() >= limit {
                return Err(Failure::too_large_version(at_least, progress.version));
            }
            let wake = progress.next_at.map_or(limit, |next_at| next_at.min(limit));
            tokio::select! {
                biased;
                () = is_changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Returns the version that was current `stale_by` ago, for stale lists.
    fn version_before(&self, request: &ParsedRequest, resource: Resource) -> u64 {
        let state = self.api.shared.state();
        let store = &state.registry.store;
        let then = request.stale_by.and_then(|age| instant().checked_sub(age));
        let hidden = match then {
            Some(then) => store.table(resource).first_change_after(then),
            None => store.table(resource).first_change(),
        };
        hidden.map_or(store.version(), |change| change.object.version - 1)
    }

    fn continue_list(
        &self,
        request: &ParsedRequest,
        target: Target<'_>,
        selector: &Selector,
    ) -> Result<Reply, Failure> {
        if !matches!(request.query.resource_version.as_str(), "" | "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Failure::bad_request(message));
        }
        let token = Continue::parse(&request.query.continue_token)?;
        let state = self.api.shared.state();
        let store = &state.registry.store;
        let table = store.table(target.resource);
        let version = token.version.unwrap_or(store.version());
        if version > store.version() {
            return Err(Failure::bad_request(
                "continue key is not valid: its version is in the future",
            ));
        }
        let view = table.view(version).map_err(|_| expired_page(&token))?;
        let page = Page {
            target,
            selector,
            limit: request.query.limit,
        };
        Ok(Reply::List(page.list(&view, version, Some(&token))))
    }
}

impl State {
    /// Returns the position of a front end.
    pub(super) fn progress(&mut self, front_end: usize, resource: Resource) -> crate::front_end::Progress {
        let State {
            registry, front_ends, ..
        } = self;
        let at = front_end.min(front_ends.len() - 1);
        front_ends[at].progress(resource, &registry.store, instant())
    }
}

fn list_version(request: &ParsedRequest) -> Result<At, Failure> {
    let query = &request.query;
    let version = query.version()?;
    match (query.resource_version_match.as_str(), version) {
        ("", None) => Ok(At::Latest),
        ("", Some(0)) => Ok(At::NotOlderThan(0)),
        ("", Some(version)) if query.limit.is_some() => Ok(At::Exactly(version)),
        ("" | "NotOlderThan", Some(version)) => Ok(At::NotOlderThan(version)),
        ("Exact", Some(version)) if version > 0 => Ok(At::Exactly(version)),
        ("Exact" | "NotOlderThan", _) => Err(Failure::bad_request(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless a matching resourceVersion is provided",
        )),
        (other, _) => Err(Failure::bad_request(format!(
            "resourceVersionMatch: Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\""
        ))),
    }
}

fn too_old(version: u64, oldest: u64) -> Failure {
    Failure::expired(format!(
        "The resourceVersion for the provided list is too old: {version} ({oldest})"
    ))
}

/// The version of the first page has expired. The client may continue at the current version.
fn expired_page(token: &Continue) -> Failure {
    let mut failure = Failure::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
         the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
         Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let next = Continue {
        version: None,
        after: token.after.clone(),
        n_remaining: None,
    };
    failure.continue_token = Some(next.token());
    failure
}

/// The parameters of one page of a list.
struct Page<'a> {
    target: Target<'a>,
    selector: &'a Selector,
    limit: Option<usize>,
}

impl Page<'_> {
    fn list(&self, view: &View<'_>, version: u64, begun: Option<&Continue>) -> List {
        let prefix = Table::prefix(self.target.namespace);
        let mut objects = view
            .range(&prefix, begun.map(|begun| &begun.after))
            .filter(|object| self.selector.matches(object));
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut page = Vec::new();
        let mut last = None;
        for object in objects.by_ref().take(limit) {
            page.push(object.json());
            last = Some(&object.key);
        }
        let has_more = objects.next().is_some();
        let is_counted = has_more && self.selector.is_everything();
        // Only the first page counts: later pages have the same version.
        let known = begun.and_then(|begun| begun.n_remaining);
        let n_from_begin = || known.unwrap_or_else(|| view.range(&prefix, begun.map(|begun| &begun.after)).count());
        let n_remaining = is_counted.then(|| n_from_begin().saturating_sub(page.len()));
        let token = last.filter(|_| has_more).map(|last| Continue {
            version: Some(version),
            after: last.clone(),
            n_remaining,
        });
        List {
            resource: self.target.resource,
            version,
            continue_token: token.map(|token| token.token()).unwrap_or_default(),
            n_remaining,
            items: page,
        }
    }
}

//! Reads Leases and CronJobs and follows their changes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use jiff::Timestamp;

use super::{ANSWER_TIMEOUT, CronJobName, Known, cannot_read_leases};
use crate::{
    cli::{error::CommandError, plan::Plan},
    kube_api::{
        Decoder, LeaseApi, LeaseError, LeaseEvent, NamespaceSelector, WatchItem, objects::classify::error_text, watch,
    },
    schedule::Zone,
    shard::{Input, ManagedNamespaces, Scope, input::WatchStage},
};

/// Pause before a retry.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of CronJob items per change. A change costs a listing of everything, so items of a burst share one.
const ITEMS_MAX: usize = 512;

pub(super) struct Gathering {
    pub(super) known: Known,
    /// The reason why the account may not list the CronJobs.
    pub(super) denial: Option<String>,
    api: LeaseApi,
    leases: BoxStream<'static, Result<LeaseEvent, LeaseError>>,
    cron_jobs: BoxStream<'static, Vec<ScopedItem>>,
}

/// An item of the watch of CronJobs in a scope.
type ScopedItem = (Scope, WatchItem);

impl Gathering {
    /// Reads everything once, of the CronJobs only those in the scopes that the Leases have at this time. If the account
    /// may not list them, only the Leases are followed.
    pub(super) async fn begin(
        api: LeaseApi,
        client: kube::Client,
        default_zone: Zone,
        wanted: Option<&CronJobName>,
        mut known: Known,
    ) -> Result<Gathering, CommandError> {
        let list = api.list(ANSWER_TIMEOUT).await.map_err(cannot_read_leases)?;
        known.list_leases(list.leases);
        let decoder = Arc::new(Decoder {
            default_zone,
            other_controllers: known.other_controllers.clone(),
            owner_label: None,
        });
        let mut watches = Vec::new();
        let mut denial = None;
        if let Some(selector) = known.namespace_selector() {
            known.namespaces = selected_namespaces(client.clone(), selector).await?;
            known.other_controllers.observe_only(known.namespaces.clone());
        }
        for scope in scopes(&known, wanted)? {
            let items = watch::cron_jobs(client.clone(), scope.clone(), decoder.clone());
            let tag = scope.clone();
            let mut items = items.map(move |item| (tag.clone(), item)).boxed();
            denial = list_cron_jobs(&mut known, &mut items, &scope).await?;
            if denial.is_some() {
                known.cron_jobs = None;
                watches.clear();
                break;
            }
            watches.push(items);
        }
        Ok(Gathering {
            known,
            denial,
            leases: api.watch(list.resource_version, ANSWER_TIMEOUT).fuse().boxed(),
            cron_jobs: stream::select_all(watches).ready_chunks(ITEMS_MAX).boxed(),
            api,
        })
    }

    /// Waits for the next change. Returns an error message if it was a failure.
    pub(super) async fn next(&mut self) -> Option<String> {
        tokio::select! {
            event = self.leases.next() => self.take_lease(event).await,
            Some(items) = self.cron_jobs.next() => {
                let mut trouble = None;
                for (scope, item) in items {
                    trouble = take_cron_job(&mut self.known, scope, item).or(trouble);
                }
                trouble
            }
        }
    }

    async fn take_lease(&mut self, event: Option<Result<LeaseEvent, LeaseError>>) -> Option<String> {
        let failure = match event {
            Some(Ok(LeaseEvent::Applied(record))) => {
                self.known.leases.insert(record.key.clone(), record);
                return None;
            }
            Some(Ok(LeaseEvent::Deleted(key, _))) => {
                self.known.leases.remove(&key);
                return None;
            }
            Some(Ok(LeaseEvent::Bookmark(_))) => return None,
            Some(Err(error)) => Some(error_text(&error)),
            None => None,
        };
        tokio::time::sleep(PAUSE).await;
        // If the list fails, the finished watch returns None again at once, so the list is retried after the pause.
        let listed = self.list_leases().await;
        failure.or(listed.err().map(|error| error_text(&error)))
    }

    /// Lists the Leases, and watches from there.
    async fn list_leases(&mut self) -> Result<(), LeaseError> {
        let list = self.api.list(ANSWER_TIMEOUT).await?;
        self.known.list_leases(list.leases);
        self.leases = self.api.watch(list.resource_version, ANSWER_TIMEOUT).fuse().boxed();
        Ok(())
    }
}

/// Returns the scopes of the installation, or the namespace of the wanted CronJob if it is in one of them.
fn scopes(known: &Known, wanted: Option<&CronJobName>) -> Result<BTreeSet<Scope>, CommandError> {
    let scopes = known.scopes();
    let Some(CronJobName { namespace, name }) = wanted else {
        return Ok(scopes);
    };
    if !known.namespaces.contains(namespace)
        && let Some(selector) = known.namespace_selector()
    {
        return Err(format!(
            "CronJob {namespace}/{name}: the installation does not manage namespace {namespace}, which does not match \
             --namespace-selector {selector}; select it: {}",
            selector.label_command()
        )
        .into());
    }
    if scopes.iter().any(|scope| scope.contains(namespace)) {
        return Ok([Scope::Namespace(namespace.as_str().into())].into());
    }
    let names = scopes.iter().filter_map(|scope| match scope {
        Scope::Cluster => None,
        Scope::Namespace(name) => Some(&**name),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    Err(format!(
        "CronJob {namespace}/{name}: not in the namespaces {names}, in which the installation works; check the namespace \
         and --installation"
    )
    .into())
}

/// Lists the namespaces that a selector selects.
async fn selected_namespaces(
    client: kube::Client,
    selector: NamespaceSelector,
) -> Result<ManagedNamespaces, CommandError> {
    let namespaces = ManagedNamespaces::selected();
    let mut items = watch::namespaces(client, selector).boxed();
    while !namespaces.are_known() {
        match items.next().await {
            // Since when a namespace is selected is not known, so all evidence counts.
            Some(WatchItem::Input(Input::NamespaceUpdated(update))) => {
                namespaces.apply(update, Timestamp::MIN);
            }
            Some(WatchItem::Error { message, .. }) => {
                return Err(format!("cannot read the namespaces that the installation manages: {message}").into());
            }
            Some(_) => {}
            None => break,
        }
    }
    Ok(namespaces)
}

/// Applies the items of the first list. Returns an error message if the account may not list the CronJobs.
async fn list_cron_jobs(
    known: &mut Known,
    items: &mut (impl Stream<Item = ScopedItem> + Unpin),
    scope: &Scope,
) -> Result<Option<String>, CommandError> {
    while let Some((_, item)) = items.next().await {
        if let WatchItem::Error { message, code, .. } = item {
            let text = format!("cannot read the CronJobs: {message}");
            if code != Some(403) {
                return Err(text.into());
            }
            let place = match scope {
                Scope::Cluster => "all namespaces".to_owned(),
                Scope::Namespace(name) => format!("namespace {name}"),
            };
            return Ok(Some(format!(
                "{text}; the account needs list and watch on cronjobs in {place}"
            )));
        }
        let is_complete = matches!(
            &item,
            WatchItem::Input(Input::WatchUpdated(update)) if update.stage == WatchStage::ListDone
        );
        take_cron_job(known, scope.clone(), item);
        if is_complete {
            break;
        }
    }
    Ok(None)
}

/// Applies an item. Returns an error message if it was a failure.
fn take_cron_job(known: &mut Known, scope: Scope, item: WatchItem) -> Option<String> {
    let cron_jobs = known.cron_jobs.as_mut()?.entry(scope).or_default();
    match item {
        WatchItem::Input(Input::CronJobApplied(record)) if !known.namespaces.contains(&record.identity.namespace) => {}
        WatchItem::Undecodable { error, .. } if !known.namespaces.contains(&error.namespace) => {}
        WatchItem::Input(Input::CronJobApplied(record)) => {
            cron_jobs.put(&record.identity.uid, Some(Plan::of(&record)));
        }
        WatchItem::Input(Input::CronJobDeleted(uid)) => cron_jobs.remove(&uid),
        WatchItem::Undecodable {
            input: Some(Input::CronJobUndecodable(uid)),
            ..
        } => cron_jobs.put(&uid, None),
        WatchItem::Input(Input::WatchUpdated(update)) => match update.stage {
            WatchStage::ListBegun => cron_jobs.begin_relist(),
            WatchStage::ListDone => cron_jobs.end_relist(),
            WatchStage::Watching(_)
            | WatchStage::Reached(_)
            | WatchStage::Unchanged { .. }
            | WatchStage::NotPermitted
            | WatchStage::Interrupted => {}
        },
        WatchItem::Error { message, .. } => return Some(format!("watching CronJobs: {message}")),
        // CronJob watches have no other items.
        WatchItem::Input(_) | WatchItem::Undecodable { .. } | WatchItem::HistoryWentBack { .. } => {}
    }
    None
}

//! The namespaces whose CronJobs this installation manages, as labels select them.
//!
//! A CronJob of another namespace is to its leader what every CronJob is to a shard on standby: recorded, and no more.
//! The shards follow the labels by [`NamespaceUpdate`]. Every write asks once more immediately before it is sent, since it
//! may have waited.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use crate::schedule::options::NamespaceOptions;

/// How long after the release of a namespace the statuses that follow from its last requests may be written.
pub const RELEASE_TIMEOUT: SignedDuration = SignedDuration::from_secs(2);

/// How long actions of another controller are no evidence after a namespace is managed, or after an installation has begun:
/// the admission policy begins to refuse them a few seconds later.
pub const SETTLE_TIME: SignedDuration = SignedDuration::from_secs(10);

/// A step of the list or of the watch of the selected namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceUpdate {
    /// A list begins. A namespace that is not selected before the end of the list is released.
    ListBegun,
    /// The labels of this namespace match, and it has these options.
    Selected {
        /// Its name.
        name: Box<str>,
        /// The options in its annotations.
        options: Option<Box<NamespaceOptions>>,
    },
    /// The labels of this namespace do not match any more, or it is gone.
    Released(Box<str>),
    /// The list is complete.
    ListDone,
}

#[cfg(test)]
impl NamespaceUpdate {
    /// The labels of a namespace without options match.
    pub(crate) fn selected(name: Box<str>) -> NamespaceUpdate {
        NamespaceUpdate::Selected { name, options: None }
    }
}

/// The managed namespaces. Clones share them. By default all namespaces are managed.
#[derive(Clone, Debug, Default)]
pub struct ManagedNamespaces(Option<Arc<Mutex<Selection>>>);

#[derive(Debug, Default)]
struct Selection {
    was_listed: bool,
    /// The managed namespaces.
    managed: BTreeMap<Box<str>, ManagedNamespace>,
    /// The instants at which other namespaces were released, for [`RELEASE_TIMEOUT`].
    released: BTreeMap<Box<str>, Timestamp>,
    /// The namespaces of the list in progress.
    listing: Option<BTreeSet<Box<str>>>,
}

#[derive(Debug)]
struct ManagedNamespace {
    /// The instant from which it is managed.
    since: Timestamp,
    options: Option<Arc<NamespaceOptions>>,
}

impl ManagedNamespaces {
    /// Only the selected namespaces. None is managed before the first list is complete.
    pub fn selected() -> ManagedNamespaces {
        ManagedNamespaces(Some(Arc::default()))
    }

    /// Whether the namespace is managed.
    pub fn contains(&self, namespace: &str) -> bool {
        let selection = self.selection();
        selection.is_none_or(|selection| selection.managed.contains_key(namespace))
    }

    /// Whether the namespace is managed, and was at this instant.
    pub fn contained(&self, namespace: &str, at: Timestamp) -> bool {
        let is_since = |selection: MutexGuard<'_, Selection>| {
            selection.managed.get(namespace).is_some_and(|known| known.since <= at)
        };
        self.selection().is_none_or(is_since)
    }

    /// Whether a status may be written in the namespace: it is managed, or was until shortly.
    pub fn accepts_status(&self, namespace: &str, now: Timestamp) -> bool {
        self.selection().is_none_or(|selection| {
            let is_recent = |&released: &Timestamp| is_recent(released, now);
            selection.managed.contains_key(namespace) || selection.released.get(namespace).is_some_and(is_recent)
        })
    }

    /// Whether the managed namespaces are known: a list is complete, or all are managed.
    pub fn are_known(&self) -> bool {
        self.selection().is_none_or(|selection| selection.was_listed)
    }

    /// The options of a managed namespace. None are known if all namespaces are managed.
    pub fn options(&self, namespace: &str) -> Option<Arc<NamespaceOptions>> {
        self.selection()?.managed.get(namespace)?.options.clone()
    }

    /// The number of managed namespaces; `None` if all are.
    pub fn count(&self) -> Option<usize> {
        self.selection().map(|selection| selection.managed.len())
    }

    /// Handles an update. Returns the namespaces that are managed from now on, those that are not any more, and those
    /// whose options have changed.
    pub(crate) fn apply(&self, update: NamespaceUpdate, now: Timestamp) -> BTreeSet<Box<str>> {
        let Some(mut selection) = self.selection() else {
            return BTreeSet::new();
        };
        match update {
            NamespaceUpdate::ListBegun => {
                selection.listing = Some(BTreeSet::new());
                BTreeSet::new()
            }
            NamespaceUpdate::Selected { name, options } => selection.select(name, options, now),
            NamespaceUpdate::Released(name) => selection.release([name].into(), now),
            NamespaceUpdate::ListDone => {
                selection.was_listed = true;
                let listed = selection.listing.take().unwrap_or_default();
                let gone = selection.managed.keys().filter(|name| !listed.contains(*name));
                let gone = gone.cloned().collect();
                selection.release(gone, now)
            }
        }
    }

    /// Locks the selection; `None` if all namespaces are managed. It is consistent after every statement that can panic.
    fn selection(&self) -> Option<MutexGuard<'_, Selection>> {
        let selection = self.0.as_ref()?;
        Some(selection.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Selection {
    fn select(&mut self, name: Box<str>, options: Option<Box<NamespaceOptions>>, now: Timestamp) -> BTreeSet<Box<str>> {
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let known = self.managed.get(&name);
        if known.is_some_and(|known| known.options.as_deref() == options.as_deref()) {
            return BTreeSet::new();
        }
        let since = known.map_or(now, |known| known.since);
        let options = options.map(Arc::from);
        self.released.remove(&name);
        self.managed.insert(name.clone(), ManagedNamespace { since, options });
        [name].into()
    }

    fn release(&mut self, mut names: BTreeSet<Box<str>>, now: Timestamp) -> BTreeSet<Box<str>> {
        names.retain(|name| self.managed.remove(name).is_some());
        self.released.retain(|_, released| is_recent(*released, now));
        self.released.extend(names.iter().map(|name| (name.clone(), now)));
        names
    }
}

/// Whether a namespace that was released at this instant may still get statuses. A clock that was set back must not
/// prolong that.
fn is_recent(released: Timestamp, now: Timestamp) -> bool {
    now.duration_since(released).abs() < RELEASE_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-05-05T{text}Z").parse().unwrap()
    }

    fn selected(name: &str) -> NamespaceUpdate {
        NamespaceUpdate::selected(name.into())
    }

    fn set(names: &[&str]) -> BTreeSet<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    /// Applies a list of these namespaces. Returns all changes.
    fn list(namespaces: &ManagedNamespaces, names: &[&str], now: &str) -> BTreeSet<Box<str>> {
        let selected = names.iter().map(|name| selected(name));
        let updates = [NamespaceUpdate::ListBegun].into_iter().chain(selected);
        let updates = updates.chain([NamespaceUpdate::ListDone]);
        updates.flat_map(|update| namespaces.apply(update, at(now))).collect()
    }

    #[test]
    fn without_a_selector_every_namespace_is_managed() {
        let all = ManagedNamespaces::default();
        assert!(all.are_known() && all.contains("shop") && all.contained("shop", Timestamp::MIN));
        assert!(all.accepts_status("shop", Timestamp::MAX));
        assert_eq!(all.count(), None);
        assert_eq!(
            all.apply(NamespaceUpdate::Released("shop".into()), at("10:00:00")),
            set(&[])
        );
        assert!(all.contains("shop"));
    }

    #[test]
    fn a_list_selects_its_namespaces_and_releases_all_others() {
        let namespaces = ManagedNamespaces::selected();
        assert!(!namespaces.are_known() && !namespaces.contains("a"));
        assert_eq!(list(&namespaces, &["a", "b"], "10:00:00"), set(&["a", "b"]));
        assert!(namespaces.are_known());
        assert_eq!(namespaces.count(), Some(2));
        let selected = namespaces.apply(selected("c"), at("10:00:30"));
        assert_eq!(selected, set(&["c"]));
        assert_eq!(list(&namespaces, &["b", "d"], "10:01:00"), set(&["a", "c", "d"]));
        let is_managed = |name: &&str| namespaces.contains(name);
        assert!(["b", "d"].iter().all(is_managed) && !["a", "c", "e"].iter().any(is_managed));
    }

    #[test]
    fn an_incomplete_list_releases_nothing() {
        let namespaces = ManagedNamespaces::selected();
        list(&namespaces, &["a", "b"], "10:00:00");
        let apply = |update| namespaces.apply(update, at("10:01:00"));
        apply(NamespaceUpdate::ListBegun);
        assert_eq!(apply(selected("a")), set(&[]), "it is selected already");
        // The list fails and begins again.
        apply(NamespaceUpdate::ListBegun);
        assert!(namespaces.contains("b"));
        apply(selected("b"));
        assert_eq!(apply(NamespaceUpdate::ListDone), set(&["a"]));
    }

    #[test]
    fn a_released_namespace_accepts_statuses_for_two_seconds() {
        let namespaces = ManagedNamespaces::selected();
        list(&namespaces, &["a"], "10:00:00");
        let release = |now| namespaces.apply(NamespaceUpdate::Released("a".into()), at(now));
        assert_eq!(release("10:00:10"), set(&["a"]));
        assert_eq!(release("10:00:11"), set(&[]), "it is released already");
        assert!(!namespaces.contains("a"));
        for (now, expected) in [("10:00:11.9", true), ("10:00:12", false), ("09:59:00", false)] {
            assert_eq!(namespaces.accepts_status("a", at(now)), expected, "{now}");
        }
        assert!(!namespaces.accepts_status("never", at("10:00:11")));
    }

    #[test]
    fn changed_options_of_a_namespace_are_a_change() {
        let namespaces = ManagedNamespaces::selected();
        list(&namespaces, &["a"], "10:00:00");
        let frozen = NamespaceOptions::read(|name| name.ends_with("freeze-until").then_some("2026-12-27T06:00:00Z"));
        let apply = |options: Option<NamespaceOptions>, now| {
            let options = options.map(Box::new);
            let name = "a".into();
            namespaces.apply(NamespaceUpdate::Selected { name, options }, at(now))
        };
        assert_eq!(apply(frozen.clone(), "10:00:10"), set(&["a"]));
        assert_eq!(apply(frozen.clone(), "10:00:20"), set(&[]));
        assert_eq!(namespaces.options("a").as_deref(), frozen.as_ref());
        assert!(
            namespaces.contained("a", at("10:00:00")),
            "it stays managed since its selection"
        );
        assert_eq!(apply(None, "10:00:30"), set(&["a"]));
        assert_eq!(namespaces.options("a"), None);
    }

    #[test]
    fn a_namespace_is_managed_from_the_instant_of_its_selection() {
        let namespaces = ManagedNamespaces::selected();
        list(&namespaces, &["a"], "10:00:00");
        assert!(!namespaces.contained("a", at("09:59:59")) && namespaces.contained("a", at("10:00:00")));
        namespaces.apply(NamespaceUpdate::Released("a".into()), at("10:00:10"));
        assert!(!namespaces.contained("a", at("10:00:05")));
        namespaces.apply(selected("a"), at("10:00:20"));
        assert!(!namespaces.contained("a", at("10:00:05")) && namespaces.contained("a", at("10:00:20")));
    }
}

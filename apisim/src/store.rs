//! The versioned store: the latest version of every object, and a bounded log of changes for each kind.
//!
//! One counter assigns the versions of all kinds. The log serves watches. Older versions of the store are rebuilt by
//! undoing changes; versions older than the log get 410. The store depends only on the structure of metadata, not on
//! the rules of Kubernetes.

mod key;
mod object;
mod selector;
mod selector_error;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

pub(crate) use self::{
    key::Key,
    object::{Owner, Stored, Uid},
    selector::{FieldSelector, Selector},
    table::{Change, ChangeKind, Compacted, Table, View},
};
use crate::Resource;

/// The kind and the key of an object.
pub(crate) type Place = (Resource, Key);

/// All stored objects.
#[derive(Clone)]
pub(crate) struct Store {
    version: u64,
    tables: [Table; Resource::COUNT],
    /// The place of the object with each uid. Never iterated.
    places: HashMap<Uid, Place>,
    /// The objects with an owner reference to each uid. Never iterated.
    dependents: HashMap<Uid, BTreeSet<Place>>,
}

impl Store {
    /// Creates an empty store that keeps this many changes of each kind.
    pub(crate) fn new(log_capacity: usize) -> Store {
        Store {
            // 0 means "any version" in requests.
            version: 1,
            tables: std::array::from_fn(|_| Table::new(log_capacity)),
            places: HashMap::new(),
            dependents: HashMap::new(),
        }
    }

    /// Returns the version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn table(&self, resource: Resource) -> &Table {
        &self.tables[resource.index()]
    }

    /// Notified at every change of the kind.
    pub(crate) fn changed(&self, resource: Resource) -> Arc<Notify> {
        Arc::clone(&self.table(resource).changed)
    }

    pub(crate) fn get(&self, resource: Resource, key: &Key) -> Option<&Arc<Stored>> {
        self.table(resource).get(key)
    }

    /// Returns the place of the object with this uid, if it exists.
    pub(crate) fn place(&self, uid: Uid) -> Option<&Place> {
        self.places.get(&uid)
    }

    /// Returns whether an owner exists. Owners of kinds that are not served count as existing.
    pub(crate) fn has_owner(&self, owner: &Owner) -> bool {
        !owner.is_served || self.places.contains_key(&owner.uid)
    }

    /// Returns the objects with an owner reference to this uid, in order.
    pub(crate) fn dependents(&self, uid: Uid) -> Vec<Place> {
        self.dependents
            .get(&uid)
            .map(|places| places.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Stores an object under the next version, which is written into its metadata.
    pub(crate) fn put(&mut self, resource: Resource, key: Key, mut object: Value, at: Instant) -> Arc<Stored> {
        let stored = Stored::new(key, self.version + 1, &mut object, None);
        self.put_stored(resource, stored, at)
    }

    /// Stores an object like `put`, with the given text in place of its spec.
    pub(crate) fn put_with_spec(
        &mut self,
        resource: Resource,
        key: Key,
        mut object: Value,
        spec: &[u8],
        at: Instant,
    ) -> Arc<Stored> {
        let stored = Stored::new(key, self.version + 1, &mut object, Some(spec));
        self.put_stored(resource, stored, at)
    }

    /// Stores an object with another status under the next version.
    pub(crate) fn put_status(&mut self, resource: Resource, object: &Stored, status: &Value, at: Instant) {
        let stored = object.changed(self.version + 1, Some(status));
        self.put_stored(resource, stored, at);
    }

    fn put_stored(&mut self, resource: Resource, stored: Stored, at: Instant) -> Arc<Stored> {
        self.version = stored.version;
        let stored = Arc::new(stored);
        let previous = self.table(resource).get(&stored.key).cloned();
        let is_linked = |previous: &Stored| previous.uid == stored.uid && previous.owners == stored.owners;
        if !previous.as_deref().is_some_and(is_linked) {
            self.link(resource, &stored, previous.as_deref());
        }
        self.tables[resource.index()].put(Arc::clone(&stored), previous, at);
        stored
    }

    /// Updates the indexes by uid and by owner after a write.
    fn link(&mut self, resource: Resource, object: &Stored, previous: Option<&Stored>) {
        if let Some(previous) = previous {
            self.forget(resource, previous);
        }
        let place = (resource, object.key.clone());
        for owner in &object.owners {
            self.dependents.entry(owner.uid).or_default().insert(place.clone());
        }
        self.places.insert(object.uid, place);
    }

    /// Removes an object. Watches get its last state with the version of the deletion.
    pub(crate) fn remove(&mut self, resource: Resource, key: &Key, at: Instant) -> Option<Arc<Stored>> {
        let previous = Arc::clone(self.get(resource, key)?);
        self.version += 1;
        let last = previous.changed(self.version, None);
        self.forget(resource, &previous);
        self.places.remove(&previous.uid);
        self.tables[resource.index()].remove(Arc::new(last), Arc::clone(&previous), at);
        Some(previous)
    }

    fn forget(&mut self, resource: Resource, object: &Stored) {
        let place = (resource, object.key.clone());
        for owner in &object.owners {
            if let Some(places) = self.dependents.get_mut(&owner.uid) {
                places.remove(&place);
                if places.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Forgets all changes up to and including a version.
    pub(crate) fn compact(&mut self, version: u64) {
        for table in &mut self.tables {
            table.compact(version.min(self.version));
        }
    }

    /// Restores the contents of a snapshot. Versions continue from the snapshot's, plus `bump`. Earlier changes are
    /// forgotten.
    pub(crate) fn restore(&mut self, snapshot: &Store, bump: u64) {
        // The clone shares the notifiers, so waiting tasks keep waiting on them.
        *self = snapshot.clone();
        self.version += bump;
        for table in &mut self.tables {
            table.forget_changes(self.version);
        }
    }

    /// Returns the number of objects of a kind.
    pub(crate) fn count(&self, resource: Resource) -> usize {
        self.table(resource).len()
    }

    /// Returns whether a namespace is empty.
    pub(crate) fn is_empty_namespace(&self, namespace: &str) -> bool {
        let is_empty = |resource: &Resource| {
            !resource.is_namespaced() || self.table(*resource).keys_in(namespace).next().is_none()
        };
        Resource::ALL.iter().all(is_empty)
    }
}

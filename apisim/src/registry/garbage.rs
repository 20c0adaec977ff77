//! The garbage collector and the namespace controller, without delay: dependents of deleted owners are deleted, owners
//! that wait for dependents or for orphaning are released, and namespaces are emptied.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Moment, Registry,
    delete::{DeleteOptions, FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Propagation},
    metadata,
};
use crate::{
    Resource,
    store::{Key, Stored, Uid},
};

impl Registry {
    /// Removes an object and handles all consequences.
    pub(super) fn remove(&mut self, resource: Resource, key: &Key, moment: Moment) {
        let Some(removed) = self.store.remove(resource, key, moment.at) else {
            return;
        };
        for (resource, key) in self.store.dependents(removed.uid) {
            self.collect_if_orphaned(resource, &key, moment);
        }
        self.release_owners(&removed, moment);
        if let Some(namespace) = key.namespace() {
            self.remove_empty_namespace(namespace, moment);
        }
    }

    /// Deletes an object whose owners are all gone. If it still has an owner, removes only the references to owners
    /// that are gone.
    pub(super) fn collect_if_orphaned(&mut self, resource: Resource, key: &Key, moment: Moment) {
        let Some(stored) = self.store.get(resource, key).cloned() else {
            return;
        };
        let presences: Vec<bool> = stored.owners.iter().map(|owner| self.store.has_owner(owner)).collect();
        if presences.iter().all(|is_present| *is_present) {
            return;
        }
        if presences.iter().all(|is_present| !is_present) {
            self.delete_all(
                resource,
                std::slice::from_ref(key),
                &by(Propagation::Background),
                moment,
            );
            return;
        }
        let mut object = stored.value();
        let rest = references(&object)
            .into_iter()
            .zip(presences)
            .filter_map(|(owner, is_present)| is_present.then_some(owner));
        let rest: Vec<Value> = rest.collect();
        metadata::members(&mut object).insert("ownerReferences".to_owned(), rest.into());
        self.store.put(resource, key.clone(), object, moment.at);
    }

    /// Deletes or orphans the dependents of an object that is marked for deletion, as its propagation finalizers
    /// require.
    pub(super) fn propagate(&mut self, resource: Resource, key: &Key, moment: Moment) {
        let Some(stored) = self.store.get(resource, key).cloned() else {
            return;
        };
        let object = stored.value();
        if metadata::has_finalizer(&object, ORPHAN_FINALIZER) {
            for place in self.store.dependents(stored.uid) {
                self.remove_owner_reference(place, stored.uid, moment);
            }
            self.release(resource, key, ORPHAN_FINALIZER, moment);
        } else if metadata::has_finalizer(&object, FOREGROUND_FINALIZER) {
            self.delete_dependents(&stored, moment);
            self.release_if_unblocked(resource, key, moment);
        }
    }

    fn delete_dependents(&mut self, owner: &Stored, moment: Moment) {
        for (resource, key) in self.store.dependents(owner.uid) {
            let Some(child) = self.store.get(resource, &key) else {
                continue;
            };
            // A dependent with another owner stays.
            if child.owners.len() > 1 {
                continue;
            }
            let propagation = if self.store.dependents(child.uid).is_empty() {
                Propagation::Background
            } else {
                Propagation::Foreground
            };
            self.delete_all(resource, &[key], &by(propagation), moment);
        }
    }

    /// Releases owners that waited for this dependent.
    fn release_owners(&mut self, removed: &Stored, moment: Moment) {
        for owner in &removed.owners {
            if let Some((resource, key)) = self.store.place(owner.uid).cloned() {
                self.release_if_unblocked(resource, &key, moment);
            }
        }
    }

    fn release_if_unblocked(&mut self, resource: Resource, key: &Key, moment: Moment) {
        let Some(stored) = self.store.get(resource, key) else {
            return;
        };
        let blocks = |child: &Arc<Stored>| {
            child
                .owners
                .iter()
                .any(|owner| owner.uid == stored.uid && owner.is_blocking)
        };
        let is_blocked = self
            .store
            .dependents(stored.uid)
            .iter()
            .any(|(resource, key)| self.store.get(*resource, key).is_some_and(blocks));
        if !is_blocked && stored.is_deleting {
            self.release(resource, key, FOREGROUND_FINALIZER, moment);
        }
    }

    /// Removes a finalizer, and the object if that was the last one.
    fn release(&mut self, resource: Resource, key: &Key, finalizer: &str, moment: Moment) {
        let Some(stored) = self.store.get(resource, key).cloned() else {
            return;
        };
        let mut object = stored.value();
        if !metadata::has_finalizer(&object, finalizer) {
            return;
        }
        metadata::remove_finalizer(&mut object, finalizer);
        if metadata::finalizers(&object).is_empty() {
            self.remove(resource, key, moment);
        } else {
            self.store.put(resource, key.clone(), object, moment.at);
        }
    }

    /// Removes the reference to an owner from a dependent.
    fn remove_owner_reference(&mut self, (resource, key): (Resource, Key), owner: Uid, moment: Moment) {
        let Some(stored) = self.store.get(resource, &key) else {
            return;
        };
        let mut object = stored.value();
        let is_other = |reference: &Value| reference["uid"].as_str().and_then(Uid::parse) != Some(owner);
        let rest: Vec<Value> = references(&object)
            .iter()
            .filter(|reference| is_other(reference))
            .cloned()
            .collect();
        let metadata = metadata::members(&mut object);
        if rest.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".to_owned(), rest.into());
        }
        self.store.put(resource, key, object, moment.at);
    }

    /// Deletes the objects in a namespace, and the namespace once it is empty.
    pub(super) fn empty_namespace(&mut self, namespace: &str, moment: Moment) {
        for resource in Resource::ALL.into_iter().filter(|resource| resource.is_namespaced()) {
            let keys: Vec<Key> = self.store.table(resource).keys_in(namespace).cloned().collect();
            self.delete_all(resource, &keys, &by(Propagation::Background), moment);
        }
        self.remove_empty_namespace(namespace, moment);
    }

    fn remove_empty_namespace(&mut self, namespace: &str, moment: Moment) {
        let key = Key::new(None, namespace);
        let is_deleting = |stored: &Arc<Stored>| stored.is_deleting;
        if self.store.get(Resource::Namespace, &key).is_some_and(is_deleting)
            && self.store.is_empty_namespace(namespace)
        {
            self.store.remove(Resource::Namespace, &key, moment.at);
        }
    }
}

fn references(object: &Value) -> Vec<Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn by(propagation: Propagation) -> DeleteOptions {
    DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    }
}

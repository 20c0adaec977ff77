//! The permissions that the service account lacks, for the gauge and for `/readyz`.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::IntGaugeVec;

use crate::controller::permissions::{MissingPermission, PERMISSIONS, Purpose};

/// The result of the last check. Clones share the state.
#[derive(Clone, Debug)]
pub struct PermissionSnapshot {
    missing: Arc<Mutex<Vec<MissingPermission>>>,
    /// Namespaces in which a permission is missing, by verb and resource.
    n_missing: IntGaugeVec,
}

impl PermissionSnapshot {
    pub(super) fn new(n_missing: IntGaugeVec) -> PermissionSnapshot {
        let snapshot = PermissionSnapshot {
            missing: Arc::default(),
            n_missing,
        };
        snapshot.publish(Vec::new());
        snapshot
    }

    /// Replaces the published result.
    pub fn publish(&self, missing: Vec<MissingPermission>) {
        let checked = PERMISSIONS.iter().filter(|it| it.purpose != Purpose::Optional);
        for permission in checked {
            let found = missing.iter().find(|it| it.permission == *permission);
            let n_scopes = found.map_or(0, |it| it.scopes.len());
            let labels = [permission.verb, permission.resource];
            let gauge = self.n_missing.with_label_values(&labels);
            gauge.set(n_scopes.try_into().unwrap_or(i64::MAX));
        }
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = missing;
    }

    /// The last published result.
    pub fn read(&self) -> Vec<MissingPermission> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

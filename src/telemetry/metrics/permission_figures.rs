//! The gauge of the permissions that the service account lacks.

use super::{Register, gauge_value, table};
use crate::controller::permissions::{
    CALENDAR_PERMISSIONS, MissingPermission, PERMISSIONS, POLICY_PERMISSIONS, Permission,
};

impl Register<'_> {
    /// Creates the gauge with the result of the last check: namespaces in which a permission is missing, by verb and
    /// resource.
    pub(super) fn permission_figures(&self, missing: &[MissingPermission]) {
        let n_missing = self.gauges(&table::PERMISSIONS_MISSING);
        let is_missing = |permission: &Permission| missing.iter().any(|it| it.permission == *permission);
        // Only some installations need them.
        let optional = CALENDAR_PERMISSIONS.into_iter().chain(POLICY_PERMISSIONS);
        for permission in PERMISSIONS.into_iter().chain(optional.filter(is_missing)) {
            let found = missing.iter().find(|it| it.permission == permission);
            let n_scopes = found.map_or(0, |it| it.scopes.len());
            let gauge = n_missing.with_label_values(&[permission.verb, permission.resource]);
            gauge.set(gauge_value(n_scopes));
        }
    }
}

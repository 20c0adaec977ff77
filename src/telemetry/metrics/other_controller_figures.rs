//! The gauge of other controllers, whose evidence decays with time.

use super::{Register, table};
use crate::kube_api::other_controllers::{Evidence, Sighting};

impl Register<'_> {
    /// Creates the gauge with the evidence that counts at present.
    pub(super) fn other_controllers(&self, active: &[Sighting]) {
        let gauges = self.gauges(&table::OTHER_CONTROLLER);
        for evidence in Evidence::ALL {
            let is_active = active.iter().any(|sighting| sighting.evidence == evidence);
            gauges.with_label_values(&[evidence.as_str()]).set(i64::from(is_active));
        }
    }
}

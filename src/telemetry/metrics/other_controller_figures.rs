//! The gauge of other controllers. Their evidence decays with time, so the gauge is set at each scrape.

use jiff::Timestamp;
use prometheus::IntGaugeVec;

use crate::kube_api::other_controllers::{Evidence, OtherControllers};

/// The evidence of other controllers, and its gauge. Clones share both.
#[derive(Clone, Debug)]
pub struct OtherControllerFigures {
    /// The evidence.
    pub evidence: OtherControllers,
    active: IntGaugeVec,
}

impl OtherControllerFigures {
    pub(super) fn new(active: IntGaugeVec) -> OtherControllerFigures {
        let evidence = OtherControllers::default();
        let figures = OtherControllerFigures { evidence, active };
        figures.set(Timestamp::UNIX_EPOCH);
        figures
    }

    /// Sets the gauge as of this instant.
    pub fn set(&self, now: Timestamp) {
        let active = self.evidence.active(now);
        for evidence in Evidence::ALL {
            let is_active = active.iter().any(|sighting| sighting.evidence == evidence);
            let gauge = self.active.with_label_values(&[evidence.as_str()]);
            gauge.set(i64::from(is_active));
        }
    }
}

//! Detects and reports other installations that work in the same namespaces.
//!
//! Two such installations both start the runs of these namespaces, and only the name of the Job prevents a second run.
//! Neither is stopped: an operator must decide which one continues. The leader of shard 0 checks once a minute.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use prometheus::IntGauge;
use tokio::sync::watch;

use super::clock::Clock;
use crate::{
    coordination::{Leadership, LeaseKey, MemberSettings},
    kube_api::leases::{LeaseApi, LeaseError, LeaseScope, OverlappingInstallation},
    shard::{BootInstant, ShardId},
    telemetry::metrics::gauge_value,
};

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_mins(1);

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Interval after which a persistent overlap, or a failed check, is reported again.
const REPORT_INTERVAL: Duration = Duration::from_hours(1);

/// Maximum number of overlaps reported within [`REPORT_INTERVAL`]. Leases elsewhere may be forged, and each report is
/// an Event.
const REPORTS_MAX: usize = 16;

/// The task that detects overlapping installations.
pub struct OverlapTask {
    /// Client for Leases.
    pub api: LeaseApi,
    /// Settings of this installation.
    pub settings: MemberSettings,
    /// Uid of this replica's Pod, whose Lease carries the Event.
    pub pod_uid: Box<str>,
    /// The clock.
    pub clock: Clock,
    /// The shards that this replica leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Gauge of overlapping installations.
    pub overlapping: IntGauge,
}

impl OverlapTask {
    /// Checks while this replica leads shard 0; never returns.
    pub async fn run(self) {
        let mut scope = LeaseScope::AllNamespaces;
        let mut reports = Reports::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let is_ours = self
                .leadership
                .borrow()
                .shard_term(ShardId(0), self.clock.boot())
                .is_some();
            let found = if is_ours {
                self.find_overlapping(&mut scope, &mut reports).await
            } else {
                Vec::new()
            };
            self.overlapping.set(gauge_value(found.len()));
            for overlapping in found {
                if reports.is_due(Some(&overlapping), self.clock.boot()) {
                    self.report(&overlapping).await;
                }
            }
        }
    }

    /// Returns the overlapping installations that the account may list.
    async fn find_overlapping(&self, scope: &mut LeaseScope, reports: &mut Reports) -> Vec<OverlappingInstallation> {
        let mut found = self.list(*scope).await;
        if let Err(LeaseError::Refused { code: 403, .. }) = &found
            && *scope == LeaseScope::AllNamespaces
        {
            tracing::info!(
                "the account may not list leases in all namespaces: overlaps with installations whose Leases are \
                 elsewhere are not detected"
            );
            *scope = LeaseScope::OwnNamespace;
            found = self.list(*scope).await;
        }
        match found {
            Ok(found) => found.into_iter().collect(),
            Err(error) => {
                if reports.is_due(None, self.clock.boot()) {
                    tracing::warn!(%error, "overlaps with other installations cannot be detected");
                }
                Vec::new()
            }
        }
    }

    async fn list(&self, scope: LeaseScope) -> Result<BTreeSet<OverlappingInstallation>, LeaseError> {
        let now = self.clock.now();
        self.api.overlapping(scope, &self.settings, now, TIMEOUT).await
    }

    async fn report(&self, overlapping: &OverlappingInstallation) {
        let OverlappingInstallation {
            namespace,
            installation,
        } = overlapping;
        let message = format!(
            "a Lease of installation {installation} in namespace {namespace} says that it works in namespaces of this one: \
             both start the runs there; give each of them other --namespace flags, or delete the Lease if it is forged"
        );
        tracing::error!("{message}");
        let key = LeaseKey::Member(self.pod_uid.clone());
        let stored = self
            .api
            .warn(&key, "InstallationsOverlap", &message, self.clock.now(), TIMEOUT);
        if let Err(error) = stored.await {
            tracing::debug!(%error, "Event not stored");
        }
    }
}

/// The reports of the last [`REPORT_INTERVAL`]; the key is `None` for a failed check.
#[derive(Default)]
struct Reports(BTreeMap<Option<OverlappingInstallation>, BootInstant>);

impl Reports {
    /// Returns whether an overlap, or a failed check, must be reported now, and if so records it as reported.
    fn is_due(&mut self, overlapping: Option<&OverlappingInstallation>, now: BootInstant) -> bool {
        self.0.retain(|_, reported| now.since(*reported) < REPORT_INTERVAL);
        let is_too_many = overlapping.is_some() && self.0.keys().flatten().count() >= REPORTS_MAX;
        if is_too_many || self.0.contains_key(&overlapping.cloned()) {
            return false;
        }
        self.0.insert(overlapping.cloned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_sixteen_overlaps_an_hour_are_reported() {
        let at = |minutes| BootInstant::after_boot(Duration::from_mins(minutes));
        let installation = |number: usize| OverlappingInstallation {
            namespace: format!("team-{number}"),
            installation: "cronwheel".to_owned(),
        };
        let mut reports = Reports::default();
        assert!(reports.is_due(Some(&installation(0)), at(1)));
        assert!(!reports.is_due(Some(&installation(0)), at(60)));
        assert!(reports.is_due(Some(&installation(0)), at(61)));
        let n_reported = (1..1_000)
            .filter(|number| reports.is_due(Some(&installation(*number)), at(62)))
            .count();
        assert_eq!(n_reported, 15);
        let failures = [62, 63, 122].map(|minutes| reports.is_due(None, at(minutes)));
        assert_eq!(failures, [true, false, true]);
    }
}

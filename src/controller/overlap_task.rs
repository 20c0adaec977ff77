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
    kube_api::{
        leases::{LeaseApi, LeaseError, LeaseScope, OverlappingInstallation},
        objects::classify::error_text,
    },
    shard::{BootInstant, ShardId},
    telemetry::metrics::gauge_value,
};

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_mins(1);

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Interval after which an overlap or a problem of the checks that persists is reported again.
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
        let mut reports = Reports::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let is_ours = self
                .leadership
                .borrow()
                .shard_term(ShardId(0), self.clock.boot())
                .is_some();
            if is_ours {
                self.check(&mut reports).await;
            } else {
                self.overlapping.set(0);
            }
        }
    }

    /// Publishes and reports the overlapping installations. If they cannot be listed, the last result stays: an overlap
    /// does not end because a check fails.
    async fn check(&self, reports: &mut Reports) {
        match self.find_overlapping(reports).await {
            Ok(found) => {
                self.overlapping.set(gauge_value(found.len()));
                for overlapping in found {
                    if reports.is_due(Report::Overlap(overlapping.clone()), self.clock.boot()) {
                        self.report(&overlapping).await;
                    }
                }
            }
            Err(error) => {
                if reports.is_due(Report::Failure, self.clock.boot()) {
                    let error = error_text(&error);
                    tracing::warn!(error, "overlaps with other installations cannot be detected");
                }
            }
        }
    }

    /// Returns the overlapping installations that the account may list. Every check begins with all namespaces, since an
    /// API server that has just started refuses everything.
    async fn find_overlapping(&self, reports: &mut Reports) -> Result<BTreeSet<OverlappingInstallation>, LeaseError> {
        let found = self.list(LeaseScope::AllNamespaces).await;
        if !matches!(found, Err(LeaseError::Refused { code: 403, .. })) {
            return found;
        }
        if reports.is_due(Report::OwnNamespaceOnly, self.clock.boot()) {
            tracing::info!(
                "the account may not list leases in all namespaces: overlaps with installations whose Leases are \
                 elsewhere are not detected"
            );
        }
        self.list(LeaseScope::OwnNamespace).await
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
            tracing::debug!(error = error_text(&error), "Event not stored");
        }
    }
}

/// The subject of a report.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Report {
    /// The checks include only the Leases in the namespace of this installation.
    OwnNamespaceOnly,
    /// A check failed.
    Failure,
    /// An installation overlaps.
    Overlap(OverlappingInstallation),
}

/// The reports of the last [`REPORT_INTERVAL`].
#[derive(Default)]
struct Reports(BTreeMap<Report, BootInstant>);

impl Reports {
    /// Returns whether a report must be made now, and if so records it as made.
    fn is_due(&mut self, report: Report, now: BootInstant) -> bool {
        self.0.retain(|_, reported| now.since(*reported) < REPORT_INTERVAL);
        let is_overlap = |report: &Report| matches!(report, Report::Overlap(_));
        let n_overlaps = self.0.keys().filter(|report| is_overlap(report)).count();
        if is_overlap(&report) && n_overlaps >= REPORTS_MAX || self.0.contains_key(&report) {
            return false;
        }
        self.0.insert(report, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_sixteen_overlaps_an_hour_are_reported() {
        let at = |minutes| BootInstant::after_boot(Duration::from_mins(minutes));
        let overlap = |number: usize| {
            Report::Overlap(OverlappingInstallation {
                namespace: format!("team-{number}"),
                installation: "cronwheel".to_owned(),
            })
        };
        let mut reports = Reports::default();
        assert!(reports.is_due(overlap(0), at(1)));
        assert!(!reports.is_due(overlap(0), at(60)));
        assert!(reports.is_due(overlap(0), at(61)));
        let n_reported = (1..1_000)
            .filter(|number| reports.is_due(overlap(*number), at(62)))
            .count();
        assert_eq!(n_reported, 15);
        let failures = [62, 63, 122].map(|minutes| reports.is_due(Report::Failure, at(minutes)));
        assert_eq!(failures, [true, false, true]);
    }
}

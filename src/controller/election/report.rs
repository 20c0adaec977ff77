//! Reports the state of the election to the log, to Events on the member Lease, to metrics and to probes.

use std::time::Duration;

use super::ElectionTask;
use crate::{
    coordination::{LeaseKey, LeaseWrite, NoShardsReason, Overview, annotation},
    shard::BootInstant,
    telemetry::metrics::{ElectionFigures, gauge_value},
};

/// The number of led shards is logged when it has not changed for this long: a start or a handover changes it up to 256
/// times within a second.
const LED_SETTLED: Duration = Duration::from_secs(1);

/// Decides when the number of led shards is logged.
#[derive(Debug, Default)]
pub(super) struct LedLog {
    n_led: usize,
    changed_at: Option<BootInstant>,
}

impl LedLog {
    /// Takes note of the number at an instant. Returns whether to log it.
    fn note(&mut self, n_led: usize, now: BootInstant) -> bool {
        if n_led != self.n_led {
            self.n_led = n_led;
            self.changed_at = Some(now);
        }
        let is_settled = |at: BootInstant| now.since(at) >= LED_SETTLED;
        self.changed_at.take_if(|at| is_settled(*at)).is_some()
    }
}

impl ElectionTask {
    /// Publishes a snapshot, and logs when this replica begins or ceases to act.
    pub(super) fn publish(&mut self) {
        let overview = self.election.overview(self.clock.boot());
        let n_senders = overview.n_takers.try_into().unwrap_or(u32::MAX);
        self.channels
            .leadership
            .send_if_modified(|it| it.share_among(n_senders));
        let n_led = overview.led.len();
        self.channels.metrics.led.set(gauge_value(n_led));
        if self.led_log.note(n_led, self.clock.boot()) {
            tracing::info!(n_led, of = self.config.installation.shard_count.get(), "leads shards");
        }
        if overview.no_shards_reason != self.logged_reason {
            self.logged_reason.clone_from(&overview.no_shards_reason);
            self.report_ownership(&overview);
        }
        self.channels.snapshot.send_replace(Some(ElectionFigures {
            overview,
            fence_after: self.config.timing.self_fence,
            clock: self.clock.clone(),
        }));
    }

    pub(super) fn note_eviction(&self, write: &LeaseWrite) {
        if let Some(Some(_)) = write.annotations.get(annotation::EVICTED_BY) {
            tracing::warn!(member = ?write.key, "evicts a member whose Lease expired");
            let message = format!(
                "{} saw no renewal of it for longer than it advertises; other replicas take its shards",
                self.config.pod_name
            );
            self.warn(write.key.clone(), "MemberEvicted", message);
            self.channels.metrics.evictions.inc();
        }
    }

    fn report_ownership(&self, overview: &Overview) {
        match &overview.no_shards_reason {
            None => tracing::info!(identity = %overview.identity, "takes shards"),
            Some(reason) if reason.is_disagreement() => {
                tracing::error!(%reason, "takes no shards");
                let key = LeaseKey::Member(self.config.pod_uid.clone());
                self.warn(key, "TakesNoShards", NoShardsReason::to_string(reason));
            }
            Some(reason) => tracing::info!(%reason, "takes no shards"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_led_shards_is_logged_once_it_has_settled() {
        let at = |millis| BootInstant::after_boot(Duration::from_millis(millis));
        let mut log = LedLog::default();
        for (millis, n_led, is_logged) in [
            (0, 0, false),
            (5_000, 1, false),
            (5_300, 256, false),
            (6_200, 256, false),
            (6_300, 256, true),
            (9_000, 256, false),
            (9_100, 255, false),
            (9_200, 256, false),
            (11_000, 256, true),
            (11_100, 0, false),
            (12_100, 0, true),
        ] {
            assert_eq!(log.note(n_led, at(millis)), is_logged, "{millis}");
        }
    }
}

//! What an election says of itself: to the log, to people on its Lease, to metrics and probes.

use super::ElectionTask;
use crate::{runtime::metrics::ElectionFigures, state::lease::LeaseKey};

impl ElectionTask {
    /// Says how things stand, and tells the log when it begins or ceases to take shards.
    pub(super) fn publish(&mut self) {
        let overview = self.election.overview(self.clock.boot());
        if overview.not_owning != self.told_not_owning {
            self.told_not_owning.clone_from(&overview.not_owning);
            match &overview.not_owning {
                None => tracing::info!(identity = %overview.identity, "takes shards"),
                Some(reason) if reason.is_disagreement() => {
                    tracing::error!(%reason, "takes no shards");
                    let key = LeaseKey::Member(self.config.pod_uid.clone());
                    self.notices.warn(key, "TakesNoShards", reason.to_string());
                }
                Some(reason) => tracing::info!(%reason, "takes no shards"),
            }
        }
        let n_senders = overview.n_takers.try_into().unwrap_or(u32::MAX);
        self.links.leadership.send_if_modified(|it| it.share_among(n_senders));
        self.links.quiet_until.set(overview.quiet_until);
        let n_led = overview.led.len().try_into().unwrap_or(i64::MAX);
        self.links.metrics.led.set(n_led);
        let refusal = self.refusals.text(self.asker.api.namespace());
        if let Some(refusal) = &refusal
            && self.refusals.is_due_for_log(self.clock.boot())
        {
            tracing::error!("{refusal}");
        }
        self.links.board.publish(ElectionFigures {
            refusal,
            overview,
            fence_after: self.config.timing.parts().self_fence,
            clock: self.clock.clone(),
        });
    }
}

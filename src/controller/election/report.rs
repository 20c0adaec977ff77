//! Reports the state of the election to the log, to Events on the member Lease, to metrics and to probes.

use super::ElectionTask;
use crate::{
    coordination::{LeaseKey, LeaseWrite, NoShardsReason, Overview, annotation},
    telemetry::metrics::{ElectionFigures, gauge_value},
};

impl ElectionTask {
    /// Publishes a snapshot, and logs when this replica begins or ceases to act.
    pub(super) fn publish(&mut self) {
        let mut overview = self.election.overview(self.clock.boot());
        if self.is_alone {
            // Without the permissions no other replica is visible, so this replica acts unguarded. It waits if it ever
            // had them or observes another replica. The patience equals the silence after which another replica's Lease
            // is evicted.
            let patience = self.config.timing.evict_after;
            self.refusals.note_membership(overview.act_until.is_some());
            let is_unguarded = self.refusals.never_had_permission(patience) && !self.election.sees_another_active();
            if is_unguarded {
                self.refusals.report_once(self.lease_requests.api.namespace());
                overview.no_shards_reason = None;
            }
            self.act_alone(&overview, is_unguarded);
        } else {
            let n_senders = overview.n_takers.try_into().unwrap_or(u32::MAX);
            self.channels
                .leadership
                .send_if_modified(|it| it.share_among(n_senders));
            self.channels.metrics.led.set(gauge_value(overview.led.len()));
            self.channels.jobs_labelled.set(self.election.jobs_labelled());
            let next_eviction = self.election.next_eviction(self.clock.boot());
            self.channels.next_eviction.set(next_eviction);
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

    /// A replica with `--alone` acts while its Lease is renewed and no other replica acts, or while it acts unguarded.
    fn act_alone(&self, overview: &Overview, is_unguarded: bool) {
        let now = self.clock.boot();
        let may_lead = overview.no_shards_reason.is_none();
        let act_until = overview.act_until.filter(|until| may_lead && *until > now);
        let acts = is_unguarded || act_until.is_some();
        self.channels.metrics.led.set(i64::from(acts));
        self.channels.leadership.send_if_modified(|leadership| match act_until {
            _ if is_unguarded => leadership.set_until(None),
            Some(until) => leadership.set_until(Some(until)),
            // A leadership that is over already needs no new end.
            None => leadership.may_act(now) && leadership.set_until(Some(now)),
        });
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
        let consequence = if self.is_alone {
            "starts no Jobs"
        } else {
            "takes no shards"
        };
        match &overview.no_shards_reason {
            None if self.is_alone => tracing::info!(identity = %overview.identity, "starts Jobs"),
            None => tracing::info!(identity = %overview.identity, "takes shards"),
            Some(reason) if reason.is_disagreement() => {
                tracing::error!(%reason, "{consequence}");
                let key = LeaseKey::Member(self.config.pod_uid.clone());
                self.warn(key, "TakesNoShards", NoShardsReason::to_string(reason));
            }
            Some(reason) => tracing::info!(%reason, "{consequence}"),
        }
    }
}

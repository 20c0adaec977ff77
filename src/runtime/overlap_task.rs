//! Notices installations that work in the same namespaces as ours, and reports them.
//!
//! Two such installations start every run of these namespaces twice, with the name of the Job as the only lock. Nothing is
//! held back: which of them should go on is for people to say. The leader of shard 0 looks once a minute.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use prometheus::IntGauge;
use tokio::sync::watch;

use super::{
    clock::Clock,
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    cluster::leases::{LeaseApi, LeaseError, LeaseScope, Taker},
    state::{
        lease::{LeaseKey, MemberSettings},
        sharding::{Leadership, ShardId},
    },
};

/// How often it looks.
const INTERVAL: Duration = Duration::from_mins(1);

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A member that renewed its Lease longer ago is gone: twice the longest duration of a Lease, and some for its clock.
const SILENCE_MAX: SignedDuration = SignedDuration::from_mins(1);

/// See the module.
pub struct OverlapTask {
    /// For Leases.
    pub api: LeaseApi,
    /// Our own settings.
    pub settings: MemberSettings,
    /// The uid of our Pod, whose Lease bears the Event.
    pub pod_uid: Box<str>,
    /// The clock.
    pub clock: Clock,
    /// Whether we lead shard 0.
    pub leadership: watch::Receiver<Leadership>,
    /// How many installations overlap.
    pub overlapping: IntGauge,
    /// When to end.
    pub phase: PhaseReceiver,
}

/// An installation that works in namespaces of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Overlap {
    namespace: String,
    installation: String,
    settings: String,
}

impl OverlapTask {
    /// Works until the intake stops.
    pub async fn run(self) {
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::StopIntake) => {}
            () = self.look_for_ever() => {}
        }
    }

    async fn look_for_ever(&self) {
        let mut scope = LeaseScope::AllNamespaces;
        let mut known = BTreeSet::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let is_ours = self
                .leadership
                .borrow()
                .mandate(ShardId(0), self.clock.boot())
                .is_some();
            let found = if is_ours {
                self.look(&mut scope).await
            } else {
                Some(BTreeSet::new())
            };
            let Some(found) = found else { continue };
            for overlap in found.difference(&known) {
                self.report(overlap).await;
            }
            self.overlapping.set(i64::try_from(found.len()).unwrap_or(i64::MAX));
            known = found;
        }
    }

    /// The installations that overlap; none where that cannot be known.
    async fn look(&self, scope: &mut LeaseScope) -> Option<BTreeSet<Overlap>> {
        let mut takers = self.api.takers(*scope, TIMEOUT).await;
        if let Err(LeaseError::Refused { code: 403, .. }) = &takers
            && *scope == LeaseScope::AllNamespaces
        {
            tracing::info!(
                "the account may not list leases in all namespaces: installations with Leases elsewhere are not compared \
                 with ours"
            );
            *scope = LeaseScope::OwnNamespace;
            takers = self.api.takers(*scope, TIMEOUT).await;
        }
        match takers {
            Ok(takers) => Some(self.overlaps(&takers, self.clock.now())),
            Err(error) => {
                tracing::debug!(%error, "installations cannot be compared with ours");
                None
            }
        }
    }

    fn overlaps(&self, takers: &[Taker], now: Timestamp) -> BTreeSet<Overlap> {
        let (namespace, installation) = (self.api.namespace(), self.api.installation_name().to_string());
        let others = takers.iter().filter(|taker| {
            let is_ours = taker.namespace == namespace && taker.installation == installation;
            let is_live = now.duration_since(taker.renewed_at).abs() < SILENCE_MAX;
            !is_ours && is_live && taker.settings.may_overlap(&self.settings)
        });
        let overlap = |taker: &Taker| Overlap {
            namespace: taker.namespace.clone(),
            installation: taker.installation.clone(),
            settings: taker.settings.to_string(),
        };
        others.map(overlap).collect()
    }

    async fn report(&self, overlap: &Overlap) {
        let Overlap {
            namespace,
            installation,
            settings,
        } = overlap;
        let message = format!(
            "installation {installation} with Leases in namespace {namespace} ({settings}) works in namespaces of this one \
             ({}): both start the runs there; give each of them other --namespace flags",
            self.settings
        );
        tracing::error!("{message}");
        let key = LeaseKey::Member(self.pod_uid.clone());
        let told = self
            .api
            .warn(&key, "InstallationsOverlap", &message, self.clock.now(), TIMEOUT);
        if let Err(error) = told.await {
            tracing::debug!(%error, "Event not stored");
        }
    }
}

//! Lists of the Jobs of some shards: those with the labels of these shards, and those without any label of a shard unless
//! a proof shows that none of them belongs to a CronJob.

use std::time::Duration;

use futures::StreamExt;

use super::{Broken, ListTask};
use crate::{
    controller::{clock::ClockVerdict, label_task::LABELLING_SHARD},
    coordination::JobsLabelled,
    kube_api::watch::{
        delivered_versions::DeliveredVersions,
        lists::{ListSource, list_jobs},
        selection::Freshness,
    },
    shard::{ListOrder, ResourceVersion},
};

/// How long a replica that does not hold the labelling shard waits for a proof that Jobs have their label, if Jobs without
/// it fill more than one page. Replicas that start together then list these Jobs once instead of once each. It is less
/// than the grace period of a replica that drains.
const PROOF_WAIT: Duration = Duration::from_secs(20);

impl ListTask {
    /// Lists the Jobs of some shards. Returns the version of the list.
    pub(super) async fn jobs(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, Broken> {
        let proof = self.proof();
        // The watches select by label: they do not report the deletion of a Job that is deleted before it is labelled.
        let mut source = self.source(must_be_new, delivered, &delivered.jobs);
        if let (Some(proof), Freshness::NotOlderThan(version)) = (proof, &mut source.freshness) {
            // In an older version, a Job may lack the label that the proof is about.
            *version = proof.version.max(*version);
        }
        let labels = self.count.label_selector(&order.shards);
        let labels = labels.unwrap_or_else(|| self.without_label());
        let labelled = self.forward(&order.shards, list_jobs(source.clone(), labels));
        // Without a proof, Jobs without the label may belong to these shards as well.
        let unlabelled = async {
            match proof {
                Some(_) => Ok(()),
                None => self.list_unlabelled(order, source.clone()).await,
            }
        };
        let (labelled, ()) = tokio::try_join!(biased; labelled, unlabelled)?;
        Ok(labelled.version)
    }

    /// Selects the Jobs without the label of a shard.
    fn without_label(&self) -> String {
        format!("!{}", self.count.label_key())
    }

    /// The latest proof that every Job of a CronJob has its label, if it is recent enough to count.
    fn proof(&self) -> Option<JobsLabelled> {
        let proof = self.jobs_labelled.get();
        proof.filter(|proof| proof.counts_at(self.clock.now()))
    }

    /// Ends once there is a proof that counts.
    async fn is_proven(&self) {
        let mut jobs_labelled = self.jobs_labelled.clone();
        let counts = |proof: &Option<JobsLabelled>| proof.is_some_and(|proof| proof.counts_at(self.clock.now()));
        if jobs_labelled.wait_for(counts).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until this replica holds the labelling shard, so that it is the one to prove that Jobs have their label. Ends
    /// after [`PROOF_WAIT`].
    async fn wait_for_labelling_shard(&self) {
        let mut held = self.held.clone();
        let holds_it = held.wait_for(|shards| shards.contains(LABELLING_SHARD));
        drop(tokio::time::timeout(PROOF_WAIT, holds_it).await);
    }

    /// Whether the watches of all Jobs have one version in common, so that a proof is possible.
    fn is_provable(&self) -> bool {
        self.delivered.len() == 1
    }

    /// Lists the Jobs without the label of a shard, or ends once there is a proof that none of them belongs to a CronJob.
    async fn list_unlabelled(&self, order: &ListOrder, source: ListSource) -> Result<(), Broken> {
        let (begun, freshness) = (self.clock.now(), source.freshness);
        let pages = list_jobs(source, self.without_label());
        let pages = pages.enumerate().then(async |(number, page)| {
            if number == 1 && self.is_provable() {
                self.wait_for_labelling_shard().await;
            }
            page
        });
        tokio::select! {
            biased;
            listed = self.forward(&order.shards, pages) => {
                let listed = listed?;
                let is_current = freshness == Freshness::Consistent && self.clock.verdict() == ClockVerdict::Fine;
                if listed.n_objects == 0 && is_current && self.is_provable() {
                    let version = listed.version;
                    self.proofs.set(Some(JobsLabelled { at: begun, version }));
                }
                Ok(())
            }
            () = self.is_proven() => Err(Broken::Shortened),
        }
    }
}

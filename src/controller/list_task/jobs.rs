//! Lists of the Jobs of some shards: those with the labels of these shards, and those without any label of a shard unless
//! a proof shows that none of them belongs to a CronJob.

use super::ListTask;
use crate::{
    coordination::JobsLabelled,
    kube_api::watch::{
        collection::Freshness,
        delivered_versions::DeliveredVersions,
        lists::{ListError, ListSource, list_jobs},
    },
    shard::{ListRequest, ResourceVersion},
};

impl ListTask {
    /// Lists the Jobs of some shards. Returns the version of the list.
    pub(super) async fn jobs(
        &self,
        order: &ListRequest,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, ListError> {
        loop {
            let proof = self.latest_proof.get();
            // The watches select by label: they do not report the deletion of a Job that is deleted before it is
            // labelled.
            let mut source = self.source(order, delivered, &delivered.jobs);
            if let (Some(proof), Freshness::NotOlderThan(version)) = (proof, &mut source.freshness) {
                // In an older version, a Job may lack the label that the proof is about.
                *version = proof.version.max(*version);
            }
            let labels = self.count.label_selector(&order.shards);
            let labels = labels.unwrap_or_else(|| self.without_label());
            let labelled = self.forward(&order.shards, list_jobs(source.clone(), labels));
            let unlabelled = async {
                match proof {
                    Some(_) => Ok(true),
                    None => self.list_unlabelled(order, source.clone()).await,
                }
            };
            let (labelled, is_complete) = tokio::try_join!(biased; labelled, unlabelled)?;
            if is_complete {
                return Ok(labelled.version);
            }
        }
    }

    /// Selects the Jobs without the label of a shard.
    fn without_label(&self) -> String {
        format!("!{}", self.count.label_key())
    }

    /// Lists the Jobs without the label of a shard. Without a proof, they may belong to any shard. A complete list that
    /// contains no Job of a CronJob is a proof. Returns `false` if another proof arrives first.
    async fn list_unlabelled(&self, order: &ListRequest, source: ListSource) -> Result<bool, ListError> {
        let at = self.clock.now();
        // The lists of several namespaces have no version in common.
        let is_provable =
            source.freshness == Freshness::Consistent && self.delivered.len() == 1 && self.clock.is_fine();
        let pages = list_jobs(source, self.without_label());
        tokio::select! {
            biased;
            listed = self.forward(&order.shards, pages) => {
                let listed = listed?;
                if is_provable && listed.n_found == 0 {
                    let proof = JobsLabelled { at, version: listed.version };
                    self.proofs.update(|known| known.max(Some(proof)));
                }
                Ok(true)
            }
            () = self.latest_proof.arrives() => Ok(false),
        }
    }
}

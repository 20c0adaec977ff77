//! The latest proof of any replica that every Job of a CronJob has the label of its shard.

use super::clock::Clock;
use crate::{coordination::JobsLabelled, kube_api::ordered_watch::OrderedReceiver};

/// The latest proof that the election has learned of.
#[derive(Clone)]
pub struct LatestProof {
    /// The proof, which may be too old to count.
    pub received: OrderedReceiver<Option<JobsLabelled>>,
    /// The clock.
    pub clock: Clock,
}

impl LatestProof {
    /// Returns the proof if it is recent enough to count.
    pub fn get(&self) -> Option<JobsLabelled> {
        self.received.get().filter(|proof| self.counts(proof))
    }

    /// Ends once there is a proof that counts.
    pub async fn arrives(&self) {
        let counts = |proof: &Option<JobsLabelled>| proof.as_ref().is_some_and(|proof| self.counts(proof));
        self.received.clone().wait_for(counts).await;
    }

    fn counts(&self, proof: &JobsLabelled) -> bool {
        proof.counts_at(self.clock.now())
    }
}

//! Pauses the shards while the replica may not act.

use jiff::Timestamp;

use super::HeldShards;

impl HeldShards {
    /// Lets every shard record facts without deciding, while the replica may not act.
    pub fn pause(&mut self) {
        if !std::mem::replace(&mut self.is_paused, true) {
            for held in self.held.values_mut() {
                held.state.pause();
            }
        }
    }

    /// Lets every shard decide again.
    pub fn resume(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_paused) {
            for (shard, held) in &mut self.held {
                held.is_wakeup_old = true;
                held.state.resume(now);
                self.with_effects.insert(*shard);
            }
        }
    }
}

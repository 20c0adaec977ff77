//! The pass over the CronJobs of all led shards that finds those in trouble.
//!
//! A pass takes many short steps, between which the replica starts Jobs. Its report replaces the one of the pass
//! before. Each replica names at most its share of the installation's limit, in proportion to the shards that it
//! leads.

use std::{sync::Arc, time::Duration};

use super::HeldShards;
use crate::shard::{
    BootInstant, Clocks, ManagedNamespaces, ShardId, ShardSet, TroubleKind,
    index::OwnerIndex,
    trouble::selection::{Trouble, TroubleReport},
};

/// The maximum number of troubles that all replicas of an installation name together. Each is two time series
/// of Prometheus.
pub const NAMED_MAX: usize = 500;

/// Maximum number of CronJobs and Jobs that a step examines. A due slot waits for the end of a step: less than a
/// millisecond.
const STEP_MAX: usize = 1_024;

/// Interval between the steps of a pass. A pass over 100,000 CronJobs with 400,000 Jobs takes twelve seconds.
const STEP_INTERVAL: Duration = Duration::from_millis(25);

/// Minimum interval between the beginnings of two passes, shorter than the interval of most scrapes.
const PASS_INTERVAL: Duration = Duration::from_secs(10);

/// The pass, and the report of the last one.
#[derive(Default)]
pub(super) struct Survey {
    is_on: bool,
    /// The pass under way.
    pass: Option<Pass>,
    /// No step before this instant.
    next_at: Option<BootInstant>,
    report: Arc<TroubleReport>,
    /// The shards to which the report is restricted.
    shards: Option<ShardSet>,
}

impl Survey {
    /// Leaves the CronJobs of all other namespaces out of the report, and out of the next one.
    pub(super) fn keep_namespaces(&mut self, namespaces: &ManagedNamespaces) {
        Arc::make_mut(&mut self.report).keep_namespaces(namespaces);
        if let Some(pass) = &mut self.pass {
            pass.report.keep_namespaces(namespaces);
        }
    }
}

struct Pass {
    begun: BootInstant,
    /// The next place to examine.
    next: (ShardId, OwnerIndex),
    report: TroubleReport,
    /// The maximum number of troubles in the report.
    n_named_max: usize,
}

impl HeldShards {
    /// Switches the survey of CronJobs on or off. It is off at first.
    pub fn survey_cron_jobs(&mut self, is_on: bool) {
        self.survey.is_on = is_on;
    }

    /// Makes the next step of the survey if its time has come. A replica that may not act has no report.
    pub fn survey(&mut self, clocks: Clocks) {
        if !self.survey.is_on {
            return;
        }
        if self.is_paused() {
            self.survey = Survey {
                is_on: true,
                ..Survey::default()
            };
            return;
        }
        if self.survey.next_at.is_some_and(|next_at| clocks.boot < next_at) {
            return;
        }
        let acting = self.acting();
        let mut pass = self.survey.pass.take().unwrap_or_else(|| Pass {
            begun: clocks.boot,
            next: (ShardId(0), OwnerIndex::MIN),
            report: TroubleReport::default(),
            n_named_max: self.named_max(&acting),
        });
        if let Some(next) = self.examine(&mut pass, clocks) {
            pass.next = next;
            self.survey.pass = Some(pass);
            self.survey.next_at = Some(clocks.boot + STEP_INTERVAL);
        } else {
            self.survey.next_at = Some((pass.begun + PASS_INTERVAL).max(clocks.boot + STEP_INTERVAL));
            pass.report.finish(pass.n_named_max);
            self.survey.report = Arc::new(pass.report);
            self.survey.shards = None;
        }
    }

    /// The instant of the next call of [`HeldShards::survey`] during a pass. `None` between passes, when one call per
    /// second is enough.
    pub fn next_survey(&self) -> Option<BootInstant> {
        self.survey.next_at.filter(|_| self.survey.pass.is_some())
    }

    /// The CronJobs in trouble, as of the last pass, of the shards for which this replica still acts.
    pub fn trouble_report(&mut self) -> Arc<TroubleReport> {
        let acting = self.acting();
        // Shards may have changed hands since the pass began.
        if self.survey.shards != Some(acting) {
            let named_max = self.named_max(&acting);
            Arc::make_mut(&mut self.survey.report).keep(&acting, named_max);
            self.survey.shards = Some(acting);
        }
        self.survey.report.clone()
    }

    /// The shards for which this replica acts.
    fn acting(&mut self) -> ShardSet {
        if self.is_paused() {
            return ShardSet::EMPTY;
        }
        self.take_changes();
        self.totals.acting
    }

    /// The maximum number of troubles that this replica names while it acts for these shards.
    fn named_max(&self, acting: &ShardSet) -> usize {
        NAMED_MAX * acting.len() / usize::from(self.count.get())
    }

    /// Examines the places from the next one of a pass. Returns where the next step begins; `None` after the last place.
    fn examine(&mut self, pass: &mut Pass, clocks: Clocks) -> Option<(ShardId, OwnerIndex)> {
        let (first_shard, first_place) = pass.next;
        let mut n_examined = 0;
        for (&shard, held) in self.held.range_mut(first_shard..) {
            let state = &mut held.state;
            if !state.phase().acts() {
                continue;
            }
            let first = if shard == first_shard {
                first_place
            } else {
                OwnerIndex::MIN
            };
            for place in first..state.places().end {
                if n_examined >= STEP_MAX {
                    return Some((shard, place));
                }
                let found = state.examine(place, clocks.wall);
                if found.has_panicked {
                    self.with_effects.insert(shard);
                    self.changed.insert(shard);
                }
                n_examined += found.n_objects;
                for kind in TroubleKind::ALL {
                    if let Some(since) = found.since[kind as usize] {
                        let cron_job = state.identity(place);
                        let trouble = Trouble {
                            since,
                            cron_job,
                            kind,
                            shard,
                            owner: state.owner(place),
                        };
                        pass.report.add(trouble, pass.n_named_max);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;

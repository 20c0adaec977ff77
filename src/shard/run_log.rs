//! The runs that ended and wait to be logged.
//!
//! A shard adds a run when its slot ends; the task of the shards logs it later, so that no log line delays a create. What
//! is not selected is not added. The queue is bounded, and the rest is counted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use super::{CronJobIdentity, InstantOutcome, ShardTerm};

/// Maximum number of runs that wait to be logged, 2 MB: those of a hundred seconds at the rate of the log. Further ones are
/// only counted.
pub const WAITING_MAX: usize = 10_000;

/// Maximum length of an error of the API server in a run, in bytes. The Event has the whole text.
const ERROR_MAX_BYTES: usize = 256;

/// Which runs are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedRuns {
    /// No run.
    #[default]
    None,
    /// Runs that are lost: [`InstantOutcome::is_lost`].
    Lost,
    /// Lost runs, and each run that started.
    All,
}

/// A slot, or several in a row, that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// The shard and the term; `None` for a shard without an election.
    pub shard_term: Option<ShardTerm>,
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// How it ended.
    pub outcome: InstantOutcome,
    /// The details of that end.
    pub end: RunEnd,
}

/// The details of an [`EndedRun`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It has no Job.
    Lost {
        /// The slots.
        slots: LostSlots,
        /// The last error of its create.
        error: Option<Box<str>>,
        /// The next slot of the CronJob, if it is known.
        next: Option<Timestamp>,
    },
    /// It has its Job.
    Started {
        /// The slot.
        slot: Timestamp,
        /// The name of the Job.
        job: Box<str>,
        /// The time from the instant at which it should have started until the Job was created. `None` if its tenant has
        /// delayed it, or if the Job was found.
        lateness: Option<SignedDuration>,
    },
    /// It was asked for by the option `run-now`, and has its Job.
    Asked {
        /// The token.
        token: Box<str>,
        /// The name of the Job.
        job: Box<str>,
    },
}

/// The slots that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostSlots {
    /// One slot.
    One(Timestamp),
    /// The slots between these instants, which passed while nothing was decided.
    Between {
        /// The instant after which they begin.
        after: Timestamp,
        /// The slot before which they end.
        before: Timestamp,
        /// Their number; above a hundred, an estimate.
        n_slots: u64,
    },
}

/// Shortens an error of the API server for [`RunEnd::Lost`].
pub(crate) fn shortened(error: &str) -> Box<str> {
    error[..error.floor_char_boundary(ERROR_MAX_BYTES)].into()
}

/// The runs that wait to be logged. Clones share them. By default none is selected.
#[derive(Clone, Debug, Default)]
pub struct EndedRuns {
    logged: LoggedRuns,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    runs: VecDeque<EndedRun>,
    n_omitted: u64,
}

impl EndedRuns {
    pub(crate) fn new(logged: LoggedRuns) -> EndedRuns {
        EndedRuns {
            logged,
            waiting: Arc::default(),
        }
    }

    /// Which runs are logged.
    pub(crate) fn logged(&self) -> LoggedRuns {
        self.logged
    }

    /// Whether runs with this outcome are logged.
    pub(crate) fn logs(&self, outcome: InstantOutcome) -> bool {
        match self.logged {
            LoggedRuns::None => false,
            LoggedRuns::Lost => outcome.is_lost(),
            LoggedRuns::All => outcome.is_lost() || outcome.is_started(),
        }
    }

    /// Adds a run, or counts it if too many wait.
    pub(crate) fn add(&self, run: EndedRun) {
        let mut waiting = self.waiting();
        if waiting.runs.len() < WAITING_MAX {
            waiting.runs.push_back(run);
        } else {
            waiting.n_omitted += 1;
        }
    }

    /// Removes and returns the oldest runs, at most this number.
    pub fn take(&self, n_max: usize) -> Vec<EndedRun> {
        let mut waiting = self.waiting();
        let n_taken = waiting.runs.len().min(n_max);
        waiting.runs.drain(..n_taken).collect()
    }

    /// The number of runs that were not added since the last call, because too many waited.
    pub fn take_omitted(&self) -> u64 {
        std::mem::take(&mut self.waiting().n_omitted)
    }

    /// Locks the queue. It is consistent after every statement, so a panic elsewhere does not invalidate it.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Uid;

    fn lost(minute: i64) -> EndedRun {
        EndedRun {
            shard_term: None,
            cron_job: Arc::new(CronJobIdentity {
                namespace: "shop".into(),
                name: "backup".into(),
                uid: Uid::new("1"),
            }),
            outcome: InstantOutcome::Superseded,
            end: RunEnd::Lost {
                slots: LostSlots::One(Timestamp::from_second(60 * minute).unwrap()),
                error: None,
                next: None,
            },
        }
    }

    #[test]
    fn outcomes_are_logged_as_selected() {
        let logged = |logged| {
            let log = EndedRuns::new(logged);
            let outcomes = InstantOutcome::ALL.into_iter().filter(|outcome| log.logs(*outcome));
            outcomes.map(InstantOutcome::as_str).collect::<Vec<_>>()
        };
        let lost = [
            "superseded",
            "deadline_exceeded",
            "missed",
            "foreign_job",
            "look_up_refused",
            "refused",
            "unschedulable",
        ];
        assert_eq!(logged(LoggedRuns::None), [""; 0]);
        assert_eq!(logged(LoggedRuns::Lost), lost);
        assert_eq!(logged(LoggedRuns::All), [&["created", "adopted"][..], &lost].concat());
    }

    #[test]
    fn a_bounded_number_of_runs_waits_and_the_rest_is_counted() {
        let log = EndedRuns::new(LoggedRuns::Lost);
        for minute in 0..i64::try_from(WAITING_MAX).unwrap() + 5 {
            log.add(lost(minute));
        }
        assert_eq!(log.take(2), [lost(0), lost(1)]);
        assert_eq!((log.take_omitted(), log.take_omitted()), (5, 0));
        assert_eq!(log.take(usize::MAX).len(), WAITING_MAX - 2);
    }

    #[test]
    fn an_error_is_cut_at_a_character() {
        assert_eq!(&*shortened("no"), "no");
        assert_eq!(shortened(&"ü".repeat(200)).len(), 256);
        assert_eq!(shortened(&format!("a{}", "ü".repeat(200))).len(), 255);
    }
}

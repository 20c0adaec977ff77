//! Counts of due instants: each instant ends in exactly one outcome, or is still open.

macro_rules! instant_outcomes {
    ($($(#[$doc:meta])* $outcome:ident $label:literal,)*) => {
        /// The outcome of a due instant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum InstantOutcome {
            $($(#[$doc])* $outcome,)*
        }

        impl InstantOutcome {
            /// All outcomes, in the order of [`OutcomeCounts::outcomes`].
            pub const ALL: [InstantOutcome; [$($label),*].len()] = [$(InstantOutcome::$outcome),*];

            /// The label value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(InstantOutcome::$outcome => $label,)*
                }
            }
        }
    };
}

instant_outcomes! {
    /// Its Job was created (B-12.1).
    Created "created",
    /// Its Job existed already and belongs to the CronJob (B-12.3, B-5.1).
    Adopted "adopted",
    /// A later slot became due before its Job could be created (B-9.4).
    Superseded "superseded",
    /// A later slot became due while Forbid and a running Job held it back (B-10.3).
    HeldByForbid "forbidden",
    /// A running Job had its name until a later slot became due (B-10.2).
    AlreadyActive "already_active",
    /// Its starting deadline passed (B-10.1).
    DeadlineExceeded "deadline_exceeded",
    /// The CronJob was suspended until a later slot became due (B-6.3).
    Suspended "suspended",
    /// Its namespace was frozen until a later slot became due.
    Frozen "frozen",
    /// The calendar of the option `not-on` excludes it.
    Excluded "excluded",
    /// It was missed, and the option `missed-runs` is `skip`.
    Missed "missed",
    /// The CronJob was deleted, or its deletion began (B-6.1).
    Deleted "deleted",
    /// The schedule was changed (B-2.2).
    ScheduleChanged "schedule_changed",
    /// A Job of its name exists and does not belong to the CronJob (B-12.3).
    ForeignJob "foreign_job",
    /// Its create was not answered, and looking up its Job is not permitted: a later slot became due under Allow, or two
    /// minutes passed.
    LookUpRefused "look_up_refused",
    /// The API server refused its Job until a later slot became due, the starting deadline passed or `missed-runs: skip`
    /// gave it up (B-12.4): the Job is invalid, or its namespace, a quota or admission does not permit it.
    RefusedDueToTenant "refused",
    /// Its CronJob can no longer run: while it was open, the zone or the text became invalid (B-6.2, B-6.4), the object
    /// could not be decoded, or cronwheel panicked on it.
    Unschedulable "unschedulable",
    /// The shard was handed over or lost while it was open. The next leader accounts for it.
    HandedOver "handed_over",
}

impl InstantOutcome {
    /// Whether the run started.
    pub fn is_started(self) -> bool {
        matches!(self, InstantOutcome::Created | InstantOutcome::Adopted)
    }

    /// Whether a slot that ended in this way is not started again.
    pub(crate) fn is_over(self) -> bool {
        matches!(
            self,
            InstantOutcome::ForeignJob | InstantOutcome::Unschedulable | InstantOutcome::LookUpRefused
        )
    }

    /// Whether the run is lost: it should have started, has no Job, and gets none.
    pub fn is_lost(self) -> bool {
        self.loss().is_some()
    }

    /// Why a lost run has no Job. `None` if the run started, if its CronJob or its namespace asked for no start, or if
    /// another leader accounts for it.
    pub fn loss(self) -> Option<&'static str> {
        Some(match self {
            InstantOutcome::Superseded => "a later slot was due before its Job could be created",
            InstantOutcome::DeadlineExceeded => "its starting deadline passed",
            InstantOutcome::Missed => "it was missed, and missed-runs is skip",
            InstantOutcome::ForeignJob => "a Job of its name exists and does not belong to the CronJob",
            InstantOutcome::LookUpRefused => "whether it has a Job is unknown: looking up Jobs is not permitted",
            InstantOutcome::RefusedDueToTenant => "the API server refused its Job",
            InstantOutcome::Unschedulable => "the CronJob can no longer run: an Event has the cause",
            InstantOutcome::Created
            | InstantOutcome::Adopted
            | InstantOutcome::HeldByForbid
            | InstantOutcome::AlreadyActive
            | InstantOutcome::Suspended
            | InstantOutcome::Frozen
            | InstantOutcome::Excluded
            | InstantOutcome::Deleted
            | InstantOutcome::ScheduleChanged
            | InstantOutcome::HandedOver => return None,
        })
    }
}

/// Counts since the shard was created. `due_instants` always equals the sum of `outcomes` and `open_instants`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Instants that became due.
    pub due_instants: u64,
    /// Instants that ended, by outcome, in the order of [`InstantOutcome::ALL`].
    pub outcomes: [u64; InstantOutcome::ALL.len()],
    /// Instants that are due and have not ended.
    pub open_instants: u64,
    /// Jobs that name a CronJob as their controller but belong to no run. They have no effect (B-5.1).
    pub unexpected_jobs: u64,
    /// Runs that were asked for (O-10), by result, in the order of [`RunNowResult::ALL`]. They are no due instants.
    pub runs_asked_for: [u64; RunNowResult::ALL.len()],
}

/// The answer to a run that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunNowResult {
    /// Its Job was created.
    Created,
    /// Forbid and a running Job held it back.
    Refused,
    /// The API server refused its Job, or another Job has its name.
    Failed,
}

impl RunNowResult {
    /// All results, in the order of their numbers.
    pub const ALL: [RunNowResult; 3] = [RunNowResult::Created, RunNowResult::Refused, RunNowResult::Failed];

    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            RunNowResult::Created => "created",
            RunNowResult::Refused => "refused",
            RunNowResult::Failed => "failed",
        }
    }
}

impl OutcomeCounts {
    pub(crate) fn open(&mut self) {
        self.due_instants += 1;
        self.open_instants += 1;
    }

    pub(crate) fn close(&mut self, outcome: InstantOutcome) {
        debug_assert!(
            self.open_instants > 0,
            "an instant ended that was not open: {outcome:?}"
        );
        self.open_instants = self.open_instants.saturating_sub(1);
        self.outcomes[outcome as usize] += 1;
    }

    /// Counts instants that became due and ended before they were evaluated.
    pub(crate) fn pass(&mut self, n_instants: u64, outcome: InstantOutcome) {
        self.due_instants += n_instants;
        self.outcomes[outcome as usize] += n_instants;
    }

    /// Replaces a part of a sum.
    pub(crate) fn replace(&mut self, former: &OutcomeCounts, current: &OutcomeCounts) {
        let replace = |sum: &mut u64, former, current| *sum = *sum + current - former;
        replace(&mut self.due_instants, former.due_instants, current.due_instants);
        replace(&mut self.open_instants, former.open_instants, current.open_instants);
        replace(
            &mut self.unexpected_jobs,
            former.unexpected_jobs,
            current.unexpected_jobs,
        );
        let parts = former.outcomes.into_iter().zip(current.outcomes);
        let runs = former.runs_asked_for.into_iter().zip(current.runs_asked_for);
        let sums = self.outcomes.iter_mut().chain(&mut self.runs_asked_for);
        for (sum, (former, current)) in sums.zip(parts.chain(runs)) {
            replace(sum, former, current);
        }
    }

    /// The number of instants with this outcome.
    pub fn outcome(&self, outcome: InstantOutcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}

//! The reasons why a CronJob starts a Job or does not: a name, a sentence and a rule for each reason.

use self::Decision::{Fire, Skip, Wait};
use crate::schedule::policy::{Decision as PolicyDecision, SkipReason};

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The create of a Job is sent.
    Fire,
    /// No create is sent, although a slot is due or the CronJob is not scheduled.
    Skip,
    /// Nothing is due.
    Wait,
}

impl Decision {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Decision::Fire => "fire",
            Decision::Skip => "skip",
            Decision::Wait => "wait",
        }
    }
}

/// All possible reasons, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Created,
    Adopted,
    ForeignJob,
    CreateFailed,
    NotDue,
    LookUpFailed,
    Forbidden,
    AlreadyActive,
    DeadlineExceeded,
    ScheduleChanged,
    Suspended,
    Deleting,
    UnknownTimeZone,
    UnparseableSchedule,
    NeverRuns,
    Undecodable,
}

/// The decision of a reason, and its texts.
pub(super) struct Meaning {
    pub(super) decision: Decision,
    /// The name in JSON, which never changes.
    pub(super) name: &'static str,
    /// The rules of the built-in controller's behaviour that it comes from.
    pub(super) rules: &'static str,
    /// The explanation as a sentence.
    pub(super) sentence: &'static str,
    /// The behaviour of the built-in controller, if it differs.
    pub(super) difference: Option<&'static str>,
}

/// The texts of all reasons, in the order of [`Reason`].
pub(super) static MEANINGS: [Meaning; 16] = [
    plain(
        Fire,
        "Created",
        "B-9.2, B-12.1",
        "the slot is due and nothing holds it back",
    ),
    plain(
        Fire,
        "Adopted",
        "B-12.3",
        "the slot is due, and a Job of its name already belongs to this CronJob: that Job counts as the slot's \
         run",
    ),
    differing(
        Fire,
        "ForeignJob",
        "B-12.3",
        "the slot is due, and a Job of its name belongs to another owner: the slot gets no Job",
        "the built-in controller emits no Event and does not process the CronJob before its next event",
    ),
    differing(
        Fire,
        "CreateFailed",
        "B-12.4",
        "the slot is due and the create failed: it is retried while the slot is the latest one and within its \
         deadline",
        "the built-in controller retries after up to 1000 s and is not woken for the next slot",
    ),
    plain(Wait, "NotDue", "B-9.5", "no slot was due since the last started one"),
    plain(
        Skip,
        "LookUpFailed",
        "B-5.4",
        "the state of a Job in status.active is unknown: no Job starts until a look-up succeeds",
    ),
    plain(
        Skip,
        "Forbidden",
        "B-10.3",
        "an earlier run is active and concurrencyPolicy is Forbid: the latest slot starts when that run ends, \
         within its deadline",
    ),
    plain(
        Skip,
        "AlreadyActive",
        "B-10.2",
        "a running Job already has the slot's name",
    ),
    differing(
        Skip,
        "DeadlineExceeded",
        "B-10.1",
        "the slot is older than startingDeadlineSeconds allows: it is missed",
        "the built-in controller emits no Event",
    ),
    differing(
        Skip,
        "ScheduleChanged",
        "B-2.2",
        "the slot is earlier than the change of the schedule",
        "the built-in controller may start it",
    ),
    plain(Skip, "Suspended", "B-6.3", "spec.suspend is true"),
    plain(Skip, "Deleting", "B-6.1", "the CronJob is being deleted"),
    plain(
        Skip,
        "UnknownTimeZone",
        "B-6.2",
        "spec.timeZone is not a known time zone",
    ),
    plain(Skip, "UnparseableSchedule", "B-6.4", "spec.schedule does not parse"),
    plain(Skip, "NeverRuns", "B-6.5", "no instant matches spec.schedule"),
    differing(
        Skip,
        "Undecodable",
        "cronwheel's own",
        "the object cannot be decoded: the CronJob starts nothing until it can, and then its latest slot",
        "the built-in controller decodes typed objects and cannot list any CronJob while such an object exists",
    ),
];

impl Reason {
    /// Returns the reason for a decision without an order, with the message of the parser or the zone loader.
    pub(super) fn of_decision(decision: &PolicyDecision) -> (Reason, Option<String>) {
        let PolicyDecision::Skip(skip) = decision else {
            return (Reason::CreateFailed, None);
        };
        match skip {
            SkipReason::Deleting => (Reason::Deleting, None),
            SkipReason::UnknownTimeZone(text) => (Reason::UnknownTimeZone, Some(text.clone())),
            SkipReason::Suspended => (Reason::Suspended, None),
            SkipReason::Unparseable(text) => (Reason::UnparseableSchedule, Some(text.clone())),
            SkipReason::NeverRuns(text) => (Reason::NeverRuns, Some(text.clone())),
            SkipReason::NotDue => (Reason::NotDue, None),
            SkipReason::ScheduleChanged(_) => (Reason::ScheduleChanged, None),
            SkipReason::DeadlineExceeded(_) => (Reason::DeadlineExceeded, None),
            SkipReason::AlreadyActive(_) => (Reason::AlreadyActive, None),
            SkipReason::Forbidden(_) => (Reason::Forbidden, None),
        }
    }

    /// Whether the CronJob starts nothing until it is changed, and the API server would refuse it.
    pub(super) fn is_unfit(self) -> bool {
        matches!(
            self,
            Reason::UnknownTimeZone | Reason::UnparseableSchedule | Reason::NeverRuns | Reason::Undecodable
        )
    }

    pub(super) fn meaning(self) -> &'static Meaning {
        &MEANINGS[self as usize]
    }
}

const fn plain(decision: Decision, name: &'static str, rules: &'static str, sentence: &'static str) -> Meaning {
    Meaning {
        decision,
        name,
        rules,
        sentence,
        difference: None,
    }
}

const fn differing(
    decision: Decision,
    name: &'static str,
    rules: &'static str,
    sentence: &'static str,
    difference: &'static str,
) -> Meaning {
    Meaning {
        difference: Some(difference),
        ..plain(decision, name, rules, sentence)
    }
}

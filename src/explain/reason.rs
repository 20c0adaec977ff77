//! The reasons why a CronJob starts a Job or does not: a name, a sentence and a rule for each reason.

use crate::schedule::policy::{Decision as PolicyDecision, SkipReason};

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The slot is due and may start: the create of a Job is sent, unless an ended Job already has its name.
    Fire,
    /// No create is sent, although a slot is due or the CronJob is not scheduled.
    Skip,
    /// Nothing is due.
    Wait,
    /// A slot is due, and only the controller knows whether it starts, or why it has not started.
    Unknown,
}

impl Decision {
    /// The name in JSON, which never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Fire => "fire",
            Decision::Skip => "skip",
            Decision::Wait => "wait",
            Decision::Unknown => "unknown",
        }
    }
}

/// The reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Created,
    Adopted,
    ForeignJob,
    CreateFailed,
    NotStarted,
    PerhapsResumed,
    NotDue,
    LookUpFailed,
    Forbidden,
    AlreadyActive,
    DeadlineExceeded,
    ScheduleChanged,
    Missed,
    Resumed,
    Excluded,
    Suspended,
    Frozen,
    Deleting,
    UnknownTimeZone,
    UnparseableSchedule,
    NeverRuns,
    Undecodable,
}

/// The decision of a reason, and its texts.
pub struct Meaning {
    /// What the controller does.
    pub decision: Decision,
    /// The name in JSON, which never changes.
    pub name: &'static str,
    /// The rules of the built-in controller's behaviour that it comes from.
    pub rules: &'static str,
    /// The explanation as a sentence.
    pub sentence: &'static str,
    /// The behaviour of the built-in controller, if it differs.
    pub difference: Option<&'static str>,
}

/// Returns the meaning of each reason, in the order of the help.
pub fn reasons() -> impl Iterator<Item = Meaning> {
    Reason::ALL.into_iter().map(Reason::meaning)
}

impl Reason {
    /// All reasons, in the order of the help.
    const ALL: [Reason; 22] = [
        Reason::Created,
        Reason::Adopted,
        Reason::ForeignJob,
        Reason::CreateFailed,
        Reason::NotStarted,
        Reason::PerhapsResumed,
        Reason::NotDue,
        Reason::LookUpFailed,
        Reason::Forbidden,
        Reason::AlreadyActive,
        Reason::DeadlineExceeded,
        Reason::ScheduleChanged,
        Reason::Missed,
        Reason::Resumed,
        Reason::Excluded,
        Reason::Suspended,
        Reason::Frozen,
        Reason::Deleting,
        Reason::UnknownTimeZone,
        Reason::UnparseableSchedule,
        Reason::NeverRuns,
        Reason::Undecodable,
    ];

    /// Returns the reason for a decision without an order, with the message of the parser or the zone loader.
    pub(super) fn of_decision(decision: &PolicyDecision) -> (Reason, Option<String>) {
        let PolicyDecision::Skip(skip) = decision else {
            return (Reason::CreateFailed, None);
        };
        match skip {
            SkipReason::Deleting => (Reason::Deleting, None),
            SkipReason::UnknownTimeZone(text) => (Reason::UnknownTimeZone, Some(text.clone())),
            SkipReason::Suspended => (Reason::Suspended, None),
            SkipReason::Frozen(until) => (Reason::Frozen, Some(format!("until {until}"))),
            SkipReason::Unparseable(text) => (Reason::UnparseableSchedule, Some(text.clone())),
            SkipReason::NeverRuns(text) => (Reason::NeverRuns, Some(text.clone())),
            SkipReason::NotDue => (Reason::NotDue, None),
            SkipReason::ScheduleChanged(_) => (Reason::ScheduleChanged, None),
            SkipReason::DeadlineExceeded(_) => (Reason::DeadlineExceeded, None),
            SkipReason::AlreadyActive(_) => (Reason::AlreadyActive, None),
            SkipReason::HeldByForbid(_) => (Reason::Forbidden, None),
            SkipReason::Missed(_) => (Reason::Missed, None),
            SkipReason::Resumed(_) => (Reason::Resumed, None),
            SkipReason::Excluded(_) => (Reason::Excluded, None),
        }
    }

    /// Whether the CronJob starts nothing until it is changed, and the API server would refuse it.
    pub(super) fn is_unfit(self) -> bool {
        matches!(
            self,
            Reason::UnknownTimeZone | Reason::UnparseableSchedule | Reason::NeverRuns | Reason::Undecodable
        )
    }

    pub(super) fn meaning(self) -> Meaning {
        let fire = |name, rules, sentence| Meaning::new(Decision::Fire, name, rules, sentence);
        let skip = |name, rules, sentence| Meaning::new(Decision::Skip, name, rules, sentence);
        let wait = |name, rules, sentence| Meaning::new(Decision::Wait, name, rules, sentence);
        match self {
            Reason::Created => fire("Created", "B-9.2, B-12.1", "the slot is due and nothing holds it back"),
            Reason::Adopted => fire(
                "Adopted",
                "B-12.3",
                "the slot is due, and a Job of its name already belongs to this CronJob: that Job counts as the slot's \
                 run",
            ),
            Reason::ForeignJob => fire(
                "ForeignJob",
                "B-12.3",
                "the slot is due, and a Job of its name belongs to another owner: the slot gets no Job",
            )
            .differing("the built-in controller emits no Event and does not process the CronJob before its next event"),
            Reason::CreateFailed => fire(
                "CreateFailed",
                "B-12.4",
                "the slot is due and the create failed: it is retried while the slot is the latest one and within its \
                 deadline",
            )
            .differing("the built-in controller retries after up to 1000 s and is not woken for the next slot"),
            Reason::NotStarted => Meaning::new(
                Decision::Unknown,
                "NotStarted",
                "cronwheel's own",
                "the slot of a CronJob in a cluster is due for more than a minute and has no Job: the Events may say why",
            ),
            Reason::Missed | Reason::Resumed | Reason::PerhapsResumed | Reason::Excluded | Reason::Frozen => {
                self.meaning_by_option()
            }
            Reason::NotDue => wait("NotDue", "B-9.5", "no slot was due since the last started one"),
            Reason::LookUpFailed => skip(
                "LookUpFailed",
                "B-5.4",
                "the state of a Job in status.active is unknown: no Job starts until a look-up succeeds, or \
                 has not been permitted for two minutes",
            ),
            Reason::Forbidden => skip(
                "Forbidden",
                "B-10.3",
                "an earlier run is active and concurrencyPolicy is Forbid: the slot starts when that run ends, within its \
                 deadline, unless later ones supersede it",
            ),
            Reason::AlreadyActive => skip("AlreadyActive", "B-10.2", "a running Job already has the slot's name"),
            Reason::DeadlineExceeded => skip(
                "DeadlineExceeded",
                "B-10.1",
                "the slot is older than startingDeadlineSeconds allows: it is missed",
            )
            .differing("the built-in controller emits no Event"),
            Reason::ScheduleChanged => skip(
                "ScheduleChanged",
                "B-2.2",
                "the slot is earlier than the change of the schedule",
            )
            .differing("the built-in controller may start it"),
            Reason::Suspended => skip("Suspended", "B-6.3", "spec.suspend is true"),
            Reason::Deleting => skip("Deleting", "B-6.1", "the CronJob is being deleted"),
            Reason::UnknownTimeZone => skip("UnknownTimeZone", "B-6.2", "spec.timeZone is not a known time zone"),
            Reason::UnparseableSchedule => skip("UnparseableSchedule", "B-6.4", "spec.schedule does not parse"),
            Reason::NeverRuns => skip("NeverRuns", "B-6.5", "no instant matches the schedule"),
            Reason::Undecodable => Meaning::undecodable(),
        }
    }
}

impl Reason {
    /// The meaning of a reason that comes from an option.
    fn meaning_by_option(self) -> Meaning {
        if self == Reason::Frozen {
            let sentence = "the annotation cronwheel.dev/freeze-until of the namespace lets nothing start";
            return Meaning::by_option("Frozen", "O-7", sentence);
        }
        if self == Reason::Excluded {
            let sentence =
                "every due slot is on a date of the ConfigMap that the annotation cronwheel.dev/not-on names";
            return Meaning::by_option("Excluded", "O-11", sentence);
        }
        if self == Reason::PerhapsResumed {
            let sentence = "if the CronJob was suspended at the slot, nothing starts, since cronwheel.dev/on-resume, or \
                            without it missed-runs, is skip; otherwise the slot starts";
            return Meaning::new(Decision::Unknown, "PerhapsResumed", "O-3", sentence);
        }
        if self == Reason::Missed {
            return Meaning::by_option(
                "Missed",
                "O-2",
                "the slot was missed, and the annotation cronwheel.dev/missed-runs is skip",
            );
        }
        Meaning::by_option(
            "Resumed",
            "O-3",
            "the slot passed while the CronJob was held back, and cronwheel.dev/on-resume, or without it missed-runs, is \
             skip",
        )
    }
}

impl Meaning {
    fn new(decision: Decision, name: &'static str, rules: &'static str, sentence: &'static str) -> Meaning {
        Meaning {
            decision,
            name,
            rules,
            sentence,
            difference: None,
        }
    }

    /// The meaning of a reason that an option gives.
    fn by_option(name: &'static str, rules: &'static str, sentence: &'static str) -> Meaning {
        Meaning::new(Decision::Skip, name, rules, sentence).differing("the built-in controller starts it")
    }

    fn undecodable() -> Meaning {
        let sentence =
            "the object cannot be decoded: the CronJob starts nothing until it can, and then its latest slot";
        Meaning::new(Decision::Skip, "Undecodable", "cronwheel's own", sentence).differing(
            "the built-in controller decodes typed objects and cannot list any CronJob while such an object exists",
        )
    }

    /// Adds the behaviour of the built-in controller.
    fn differing(self, difference: &'static str) -> Meaning {
        Meaning {
            difference: Some(difference),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn every_reason_has_its_name_and_a_rule() {
        for (position, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, position);
            let meaning = reason.meaning();
            assert_eq!(meaning.name, format!("{reason:?}"));
            assert!(!meaning.rules.is_empty() && !meaning.sentence.is_empty(), "{reason:?}");
        }
    }
}

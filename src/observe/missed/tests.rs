//! The list of one invented cluster as text and as JSON.

use jiff::SignedDuration;
use serde_json::Value;

use super::*;
use crate::{
    observe::{facts::RunResult, sample::instant, slot::LossReason},
    shard::{Uid, naming::job_name},
};

fn source() -> MissedSource {
    MissedSource {
        cluster: "prod-eu".to_owned(),
        since: instant("2026-11-27T00:00:00Z"),
        now: instant("2026-11-27T06:00:30Z"),
        unreadable_namespaces: Vec::new(),
        notes: vec!["One sentence.".to_owned()],
    }
}

fn name(namespace: &str, name: &str) -> CronJobName {
    CronJobName {
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn slot(at: &str, outcome: SlotOutcome) -> Slot {
    Slot {
        other_jobs: Vec::new(),
        at: instant(&format!("2026-11-{at}:00Z")),
        held_until: None,
        outcome,
        with_cronwheel: None,
    }
}

fn started(at: &str) -> Slot {
    let at = instant(&format!("2026-11-{at}:00Z"));
    Slot {
        other_jobs: Vec::new(),
        at,
        held_until: None,
        outcome: SlotOutcome::Started {
            job_uid: Uid::new("1"),
            job_name: job_name("backup", at),
            created: at,
            finished: None,
            result: RunResult::Running,
            is_backfilled: false,
            replaced_by: None,
        },
        with_cronwheel: None,
    }
}

fn held(at: &str, job_name: &str) -> Slot {
    let job_name = job_name.into();
    slot(at, SlotOutcome::Skipped(SkipCause::HeldByForbid { job_name }))
}

fn invented() -> Missed {
    use SlotOutcome::{Lost, NotObserved, Open, Skipped};
    let backup = vec![
        slot("26T23:00", Lost(LossReason::NotStarted)),
        slot("27T00:00", NotObserved),
        slot("27T01:00", Lost(LossReason::Superseded)),
        slot("27T02:00", Lost(LossReason::Superseded)),
        started("27T03:00"),
        slot("27T04:00", Lost(LossReason::DeadlineExceeded)),
        slot("27T05:00", Skipped(SkipCause::Suspended)),
        slot("27T06:00", Open),
        slot("27T07:00", Open),
    ];
    let load = vec![
        slot("26T22:00", Open),
        held("27T01:00", "load-1"),
        held("27T02:00", "load-1"),
        held("27T03:00", "load-2"),
        slot("27T04:00", Skipped(SkipCause::SameMinute)),
        slot("27T05:00", Skipped(SkipCause::Deleting)),
    ];
    let cron_jobs = [(name("data", "load"), load), (name("shop", "backup"), backup)];
    let command = BackfillCommand::default().with("--context", "prod-eu".to_owned());
    Missed::new(cron_jobs.into_iter(), source(), &command)
}

#[test]
fn slots_without_a_job_are_listed_by_cron_job_and_cause() {
    let expected = "\
prod-eu: 10 slots of 2 CronJobs without a Job, and 1 of which that is not known, from 27 Nov 00:00 UTC to 27 Nov 06:00:30 UTC
note: One sentence.

NAMESPACE   CRONJOB   SLOTS   FIRST                  LAST                   WHY
data        load          1   2026-11-26T22:00:00Z   2026-11-26T22:00:00Z   Open: no Job yet
data        load          2   2026-11-27T01:00:00Z   2026-11-27T02:00:00Z   HeldByForbid: Forbid: Job load-1 still ran
data        load          1   2026-11-27T03:00:00Z   2026-11-27T03:00:00Z   HeldByForbid: Forbid: Job load-2 still ran
data        load          1   2026-11-27T05:00:00Z   2026-11-27T05:00:00Z   Deleting: the CronJob was being deleted
shop        backup        1   2026-11-27T00:00:00Z   2026-11-27T00:00:00Z   Unknown: nothing watched the cluster, and it keeps no Job of that time
shop        backup        2   2026-11-27T01:00:00Z   2026-11-27T02:00:00Z   Superseded: the controller was late and started a later slot instead
shop        backup        1   2026-11-27T04:00:00Z   2026-11-27T04:00:00Z   DeadlineExceeded: startingDeadlineSeconds passed before the controller started it
shop        backup        1   2026-11-27T05:00:00Z   2026-11-27T05:00:00Z   Suspended: the CronJob was suspended
shop        backup        1   2026-11-27T06:00:00Z   2026-11-27T06:00:00Z   Open: no Job yet

To start the lost slots of a CronJob, from the first to the last one:
  cronwheel backfill backup -n shop --from 2026-11-27T01:00:00Z --to 2026-11-27T04:00:00Z --context=prod-eu
";
    let text = invented().to_text();
    assert_eq!(text, expected, "{text}");
}

#[test]
fn json_has_each_entry_with_its_command() {
    let json: Value = serde_json::from_str(&invented().to_json().unwrap()).unwrap();
    let counts = ["nCronJobs", "nSlots", "nUnknown", "nEntries"].map(|name| json[name].as_u64());
    assert_eq!(counts, [2, 10, 1, 9].map(Some));
    let held = serde_json::json!({
        "namespace": "data",
        "name": "load",
        "reason": "HeldByForbid",
        "sentence": "Forbid: Job load-1 still ran",
        "heldBy": "load-1",
        "nSlots": 2,
        "first": "2026-11-27T01:00:00Z",
        "last": "2026-11-27T02:00:00Z",
        "slots": ["2026-11-27T01:00:00Z", "2026-11-27T02:00:00Z"],
        "command": "cronwheel backfill load -n data --from 2026-11-27T01:00:00Z --to 2026-11-27T02:00:00Z --context=prod-eu",
    });
    assert_eq!(json["missed"][1], held);
    assert_eq!(json["missed"][3]["command"], Value::Null, "it is being deleted");
    let unknown = json["missed"][4]["command"].as_str().unwrap();
    assert!(unknown.contains(" --include-unknown "), "{unknown}");
}

#[test]
fn long_lists_are_cut() {
    let minute = |n: i64| source().since + SignedDuration::from_mins(n);
    let lost = |n| Slot {
        other_jobs: Vec::new(),
        at: minute(n),
        held_until: None,
        outcome: SlotOutcome::Lost(LossReason::NotStarted),
        with_cronwheel: None,
    };
    let cron_jobs = (0..1_001).map(|n| (name("shop", &format!("job-{n}")), (0..150).map(lost).collect()));
    let missed = Missed::new(cron_jobs, source(), &BackfillCommand::default());
    assert_eq!((missed.missed.len(), missed.n_entries), (1_000, 1_001));
    let entry = &missed.missed[0];
    assert_eq!(
        (entry.n_slots, entry.slots.len(), entry.slots[99]),
        (150, 100, minute(149))
    );
    assert_eq!((entry.first, entry.last), (minute(0), minute(149)));
    let text = missed.to_text();
    assert!(text.contains("\n… and 1 more lines; "));
    assert_eq!(text.matches("  cronwheel backfill ").count(), 5);
    assert!(
        text.ends_with("\n… and 996 more CronJobs with lost slots; -o json has all commands\n"),
        "{text}"
    );
}

#[test]
fn only_lost_slots_have_a_command_in_the_text() {
    use SlotOutcome::{Lost, Skipped};
    let lost = |at| slot(at, Lost(LossReason::NotStarted));
    let suspended = |at| slot(at, Skipped(SkipCause::Suspended));
    let text = |cron_jobs: Vec<(&str, Vec<Slot>)>| {
        let cron_jobs = cron_jobs.into_iter().map(|(of, slots)| (name("shop", of), slots));
        Missed::new(cron_jobs, source(), &BackfillCommand::default()).to_text()
    };
    let commands = text(vec![
        ("a", vec![suspended("27T01:00")]),
        ("b", vec![lost("27T01:00"), suspended("27T02:00")]),
        ("c", vec![lost("27T03:00")]),
    ]);
    let (_, commands) = commands.split_once("\n\nTo start ").unwrap();
    assert_eq!(
        commands,
        "the lost slots of a CronJob, from the first to the last one:\n  \
         cronwheel backfill b -n shop --from 2026-11-27T01:00:00Z --to 2026-11-27T01:00:00Z\n  \
         cronwheel backfill c -n shop --from 2026-11-27T03:00:00Z --to 2026-11-27T03:00:00Z\n"
    );
    let between = text(vec![(
        "a",
        vec![lost("27T01:00"), suspended("27T02:00"), lost("27T03:00")],
    )]);
    assert!(
        between
            .ends_with("\nSlots between these that have no Job for another reason start too; --dry-run lists them.\n"),
        "{between}"
    );
    let none = text(vec![("a", vec![suspended("27T01:00")])]);
    assert!(!none.contains("cronwheel backfill"), "{none}");
}

#[test]
fn nothing_missed_is_one_line() {
    let mut source = source();
    source.notes.clear();
    let cron_jobs = [(name("shop", "backup"), vec![started("27T03:00")])];
    let missed = Missed::new(cron_jobs.into_iter(), source, &BackfillCommand::default());
    assert_eq!(
        missed.to_text(),
        "prod-eu: no slot of 1 CronJob without a Job, from 27 Nov 00:00 UTC to 27 Nov 06:00:30 UTC\n"
    );
}

#[test]
fn what_backfill_does_not_start_has_no_command() {
    let frozen = |until: &str| SkipCause::Frozen {
        until: instant(until),
        reason: "audit".into(),
    };
    let excluded = SkipCause::Excluded {
        calendar: "holidays".into(),
        note: "Christmas".into(),
    };
    for (cause, sentence, has_command) in [
        (
            frozen("2026-11-27T06:00:00Z"),
            "in a freeze of the namespace until 27 Nov 06:00 UTC: audit",
            true,
        ),
        (
            frozen("2026-11-27T07:00:00Z"),
            "in a freeze of the namespace until 27 Nov 07:00 UTC: audit",
            false,
        ),
        (excluded, "the calendar holidays excludes the date: Christmas", false),
    ] {
        let slots = vec![slot("27T05:00", SlotOutcome::Skipped(cause))];
        let cron_jobs = [(name("shop", "backup"), slots)];
        let missed = Missed::new(cron_jobs.into_iter(), source(), &BackfillCommand::default());
        let entry = &missed.missed[0];
        assert_eq!((&*entry.sentence, entry.command.is_some()), (sentence, has_command));
        assert!(!missed.to_text().contains("cronwheel backfill"), "it is not lost");
    }
}

//! Calendars of the option `not-on` in a shard.

use std::sync::Arc;

use super::world::{World, at, complete, cron_job, entry, job, schedule_with};
use crate::{
    schedule::options::Calendar,
    shard::{
        CalendarUpdate, Calendars, ConcurrencyPolicy, CronJobRecord, CronJobStatus, EndedRuns, InstantOutcome,
        JobRecord, LoggedRuns, ResourceVersion, RunEnd, Scope,
    },
};

/// A CronJob of every full hour with these options besides `not-on`, which last ran at 22:00 on 4 May.
fn hourly(options: &[(&str, &str)]) -> CronJobRecord {
    let options: Vec<_> = options.iter().copied().chain([("not-on", "holidays")]).collect();
    CronJobRecord {
        schedule: schedule_with("0 * * * *", &options, 0),
        status: CronJobStatus {
            last_schedule_time: Some(at("2026-05-04T22:00:00Z")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

fn count(world: &World, outcome: InstantOutcome) -> u64 {
    world.shard.outcome_counts().outcome(outcome)
}

impl World {
    /// A leading shard that has listed these calendars and this CronJob.
    fn with_calendar(now: &str, record: CronJobRecord, dates: &str) -> World {
        World::with_jobs(now, record, vec![], dates)
    }

    /// [`World::with_calendar`] with Jobs.
    fn with_jobs(now: &str, record: CronJobRecord, jobs: Vec<JobRecord>, dates: &str) -> World {
        let mut world = World::new(now, vec![], vec![]);
        world.shard.calendars = Calendars::of_scopes(&[Scope::Cluster]);
        world.update_calendars(CalendarUpdate::ListBegun(Scope::Cluster));
        world.set_calendar(dates);
        world.update_calendars(CalendarUpdate::ListDone(Scope::Cluster));
        world.list(vec![record], jobs);
        world
    }

    fn set_calendar(&mut self, dates: &str) {
        self.update_calendars(CalendarUpdate::Applied {
            namespace: "default".into(),
            name: "holidays".into(),
            calendar: Calendar::read([("dates", dates)].into_iter())
                .map(Arc::new)
                .map_err(Into::into),
        });
    }

    fn update_calendars(&mut self, update: CalendarUpdate) {
        let change = self.shard.calendars.apply(update);
        self.shard.follow_calendars(&change, self.now);
    }

    /// Answers the creates until none is left. Returns the slots.
    fn started(&mut self) -> Vec<String> {
        let mut slots = Vec::new();
        loop {
            self.effects();
            let Some(order) = self.creates.first() else { break };
            slots.push(order.slot.strftime("%d %H:%M").to_string());
            self.created();
        }
        slots
    }
}

#[test]
fn an_excluded_slot_does_not_start_and_is_counted_when_it_is_due() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-05 Liberation Day");
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
    world.advance_to("02:30:00");
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 3, "00:00, 01:00, 02:00");
    world.advance_to("2026-05-06T00:00:00Z");
    assert_eq!(world.started(), ["06 00:00"]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 24);
    let counts = world.shard.outcome_counts();
    assert_eq!((counts.due_instants, counts.open_instants), (26, 0));
}

#[test]
fn after_an_outage_the_latest_slot_starts_that_is_not_excluded() {
    for (options, expected, n_superseded) in [
        (&[] as &[_], &["04 23:00"] as &[_], 0),
        (&[("missed-runs", "all 2")], &["04 23:00"], 0),
        (&[("missed-runs", "skip")], &[], 0),
    ] {
        let mut world = World::with_calendar("03:30:00", hourly(options), "2026-05-05");
        assert_eq!(world.started(), expected, "{options:?}");
        assert_eq!(
            count(&world, InstantOutcome::Excluded),
            4,
            "{options:?}: 00:00 to 03:00"
        );
        assert_eq!(count(&world, InstantOutcome::Superseded), n_superseded, "{options:?}");
        world.advance_to("04:00:00");
        assert_eq!(world.started(), [""; 0], "{options:?}");
        assert_eq!(count(&world, InstantOutcome::Excluded), 5, "{options:?}");
    }
}

#[test]
fn all_starts_the_last_slots_around_a_holiday() {
    let record = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("2026-05-03T20:00:00Z")),
            ..CronJobStatus::default()
        },
        ..hourly(&[("missed-runs", "all 3")])
    };
    let mut world = World::with_calendar("01:30:00", record, "2026-05-04");
    let mut started = world.started();
    world.advance_to("01:31:00");
    started.extend(world.started());
    world.advance_to("01:32:00");
    started.extend(world.started());
    assert_eq!(started, ["03 23:00", "05 00:00", "05 01:00"]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 24);
    assert_eq!(count(&world, InstantOutcome::Superseded), 2, "21:00 and 22:00");
    assert_eq!(world.shard.outcome_counts().due_instants, 29);
}

#[test]
fn a_deadline_counts_for_the_slot_before_the_holiday() {
    for (deadline, expected) in [(4 * 3600, &["04 23:00"] as &[_]), (3600, &[])] {
        let record = CronJobRecord {
            starting_deadline_seconds: Some(deadline),
            ..hourly(&[])
        };
        let mut world = World::with_calendar("02:30:00", record, "2026-05-05");
        assert_eq!(world.started(), expected, "{deadline} s");
        assert_eq!(count(&world, InstantOutcome::Excluded), 3);
        let n_lost = u64::from(expected.is_empty());
        assert_eq!(count(&world, InstantOutcome::DeadlineExceeded), n_lost);
        world.advance_to("05:30:00");
        assert_eq!(count(&world, InstantOutcome::Excluded), 6);
        assert_eq!(count(&world, InstantOutcome::DeadlineExceeded), n_lost);
    }
}

#[test]
fn a_slot_that_forbid_holds_back_starts_on_a_holiday() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..hourly(&[])
    };
    let running = job("hello", "2026-05-04T22:00:00Z");
    let record = CronJobRecord {
        status: CronJobStatus {
            active: vec![entry(&running)],
            ..record.status.clone()
        },
        ..record
    };
    let jobs = vec![running.clone()];
    let mut world = World::with_jobs("2026-05-04T22:30:00Z", record, jobs, "2026-05-05");
    world.advance_to("01:30:00");
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 2, "00:00, 01:00");
    assert_eq!(count(&world, InstantOutcome::HeldByForbid), 0, "23:00 is open");
    world.apply_job(complete(running, "01:30:00"));
    assert_eq!(world.started(), ["04 23:00"]);
}

#[test]
fn slots_of_a_suspension_on_a_holiday_count_as_excluded() {
    let record = CronJobRecord {
        is_suspended: true,
        ..hourly(&[])
    };
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", record, "2026-05-05");
    world.advance_to("02:30:00");
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 3);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(11),
        ..hourly(&[])
    });
    assert_eq!(world.started(), ["04 23:00"], "the latest slot of the suspension");
}

#[test]
fn a_missing_calendar_is_reported_and_counts_from_when_it_appears() {
    let mut world = World::new("2026-05-04T22:30:00Z", vec![], vec![]);
    world.shard.calendars = Calendars::of_scopes(&[Scope::Cluster]);
    world.list(vec![hourly(&[])], vec![]);
    world.advance_to("2026-05-04T23:00:00Z");
    world.expect(&[]);
    world.update_calendars(CalendarUpdate::ListBegun(Scope::Cluster));
    world.update_calendars(CalendarUpdate::ListDone(Scope::Cluster));
    let effects = world.effects();
    assert_eq!(effects.len(), 2, "{effects:?}");
    assert!(
        effects[0].starts_with("Warning InvalidOption: annotation cronwheel.dev/not-on is \"holidays\": the namespace"),
        "{effects:?}"
    );
    assert!(effects[1].starts_with("create hello-"), "{effects:?}");
    world.created();
    world.effects();
    world.advance_to("00:00:00");
    assert_eq!(world.started(), ["05 00:00"], "it runs as without the option");
    world.advance_to("00:30:00");
    world.set_calendar("2026-05-05");
    world.advance_to("01:30:00");
    world.expect(&[]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 1);
    world.update_calendars(CalendarUpdate::Removed {
        namespace: "default".into(),
        name: "holidays".into(),
    });
    let effects = world.effects();
    assert!(
        effects.len() == 1 && effects[0].starts_with("Warning InvalidOption"),
        "{effects:?}"
    );
    world.advance_to("02:00:00");
    assert_eq!(world.started(), ["05 02:00"], "01:00 was excluded when it was due");
}

#[test]
fn a_changed_calendar_counts_for_later_slots_and_withdraws_a_create() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-06");
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
    world.advance_to("00:00:00");
    let effects = world.effects();
    assert!(
        effects.iter().any(|effect| effect.starts_with("create hello-")),
        "{effects:?}"
    );
    world.set_calendar("2026-05-05");
    world.expect(&["withdraw the create of hello"]);
    world.answer_create(crate::shard::CreateOutcome::Withdrawn);
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 1);
    // The date is removed: only later slots start.
    world.advance_to("02:10:00");
    world.set_calendar("2026-05-07");
    world.set_calendar("2026-05-08");
    assert_eq!(world.started(), [""; 0]);
    world.advance_to("03:00:00");
    assert_eq!(world.started(), ["05 03:00"]);
    let counts = world.shard.outcome_counts();
    assert_eq!((counts.outcome(InstantOutcome::Excluded), counts.due_instants), (3, 5));
}

#[test]
fn the_next_leader_knows_which_slots_a_former_calendar_excluded() {
    let mut world = World::on_standby("2026-05-04T22:30:00Z", vec![], vec![]);
    world.shard.calendars = Calendars::of_scopes(&[]);
    world.set_calendar("2026-05-05");
    let record = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("2026-05-04T23:00:00Z")),
            ..CronJobStatus::default()
        },
        ..hourly(&[])
    };
    world.list(vec![record], vec![]);
    world.advance_to("02:30:00");
    world.set_calendar("2026-05-07");
    world.lead();
    assert_eq!(world.started(), [""; 0]);
    world.advance_to("03:00:00");
    assert_eq!(world.started(), ["05 03:00"]);
}

#[test]
fn an_annotation_that_is_removed_starts_no_excluded_slot() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-05");
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
    world.stored("hello");
    world.advance_to("02:30:00");
    let status = CronJobStatus {
        last_schedule_time: Some(at("2026-05-04T23:00:00Z")),
        ..CronJobStatus::default()
    };
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(200),
        schedule: schedule_with("0 * * * *", &[], 0),
        status,
        ..cron_job("hello")
    });
    assert_eq!(world.started(), [""; 0]);
    world.advance_to("03:00:00");
    assert_eq!(world.started(), ["05 03:00"]);
}

#[test]
fn a_calendar_of_another_namespace_or_name_has_no_effect() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-07");
    for (namespace, name) in [("other", "holidays"), ("default", "other")] {
        world.update_calendars(CalendarUpdate::Applied {
            namespace: namespace.into(),
            name: name.into(),
            calendar: Calendar::read([("dates", "2026-05-04..2026-05-05")].into_iter())
                .map(Arc::new)
                .map_err(Into::into),
        });
    }
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
}

#[test]
fn a_clock_that_is_set_back_delays_no_slot_and_no_count() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-05");
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
    // The clock is ahead, and the calendar changes.
    world.jump_to("12:30:00");
    world.set_calendar("2026-05-07");
    world.jump_to("2026-05-04T23:30:00Z");
    world.advance_to("00:00:00");
    assert_eq!(world.started(), ["05 00:00"]);
    // It is ahead on an excluded day.
    world.set_calendar("2026-05-05");
    world.jump_to("12:30:00");
    let n_ahead = count(&world, InstantOutcome::Excluded);
    world.jump_to("00:30:00");
    world.advance_to("02:30:00");
    assert_eq!(count(&world, InstantOutcome::Excluded), n_ahead + 2, "01:00 and 02:00");
}

#[test]
fn excluded_slots_are_not_lost_when_the_date_is_removed() {
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", hourly(&[]), "2026-05-05");
    world.advance_to("2026-05-04T23:00:00Z");
    assert_eq!(world.started(), ["04 23:00"]);
    world.advance_to("02:10:00");
    world.set_calendar("2026-05-07");
    world.jump_to("04:10:00");
    assert_eq!(world.started(), ["05 04:00"]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 3);
    assert_eq!(count(&world, InstantOutcome::Superseded), 1, "03:00");
}

#[test]
fn the_next_slot_of_a_lost_run_is_one_that_starts() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(3600),
        ..hourly(&[])
    };
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", record, "2026-05-05");
    world.shard.ended_runs = EndedRuns::new(LoggedRuns::Lost);
    world.started();
    world.jump_to("02:30:00");
    world.effects();
    let runs = world.shard.ended_runs.take(10);
    let next = runs.iter().map(|run| match run.end {
        RunEnd::Lost { next, .. } => next,
        RunEnd::Started { .. } | RunEnd::Asked { .. } => None,
    });
    assert_eq!(next.collect::<Vec<_>>(), [Some(at("2026-05-06T00:00:00Z"))]);
}

#[test]
fn a_scope_that_is_not_listed_stops_no_cron_job_of_another_scope() {
    let scopes = ["default", "other"].map(|name| Scope::Namespace(name.into()));
    let mut world = World::new("2026-05-04T22:30:00Z", vec![], vec![]);
    world.shard.calendars = Calendars::of_scopes(&scopes);
    world.list(vec![hourly(&[])], vec![]);
    world.update_calendars(CalendarUpdate::ListBegun(scopes[0].clone()));
    world.set_calendar("2026-05-05");
    world.advance_to("2026-05-04T23:00:00Z");
    world.expect(&[]);
    world.update_calendars(CalendarUpdate::ListDone(scopes[0].clone()));
    assert_eq!(world.started(), ["04 23:00"]);
    world.advance_to("00:30:00");
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(count(&world, InstantOutcome::Excluded), 1);
}

#[test]
fn a_cron_job_follows_the_calendar_that_it_names_since_a_change() {
    let without = CronJobRecord {
        schedule: schedule_with("0 * * * *", &[], 0),
        ..hourly(&[])
    };
    let mut world = World::with_calendar("2026-05-04T22:30:00Z", without, "2026-05-07");
    for (version, dates, expected) in [(11, "2026-05-04", &[] as &[_]), (12, "2026-05-08", &["05 00:00"])] {
        world.apply(CronJobRecord {
            resource_version: ResourceVersion(version),
            ..hourly(&[])
        });
        world.set_calendar(dates);
        world.advance_to(if version == 11 {
            "2026-05-04T23:30:00Z"
        } else {
            "00:30:00"
        });
        assert_eq!(world.started(), expected, "{dates}");
    }
    assert_eq!(count(&world, InstantOutcome::Excluded), 1);
}

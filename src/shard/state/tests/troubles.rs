//! Tests that a leader and the next leader report the same CronJobs as in trouble.

use super::world::*;
use crate::shard::{
    ConcurrencyPolicy, CronJobRecord, CronJobStatus, Input, JobRecord, ResourceVersion, Threshold, TroubleKind,
    TroubleThresholds,
};

/// The kinds of trouble of all CronJobs.
fn troubles(world: &mut World) -> Vec<&'static str> {
    let (shard, now) = (&mut world.shard, world.now);
    let found = shard.places().map(|place| shard.examine(place, now).since);
    let kinds = found.flat_map(|since| TroubleKind::ALL.into_iter().zip(since));
    kinds.filter_map(|(kind, since)| since.map(|_| kind.as_str())).collect()
}

/// The kinds that the next leader finds, after it has listed these objects.
fn after_a_handover(now: &str, record: &CronJobRecord, jobs: &[JobRecord]) -> Vec<&'static str> {
    troubles(&mut World::new(now, vec![record.clone()], jobs.to_vec()))
}

/// A minutely CronJob whose last run succeeded.
fn healthy() -> CronJobRecord {
    with_status(cron_job("hello"), "09:59:00", "09:59:10")
}

fn with_status(record: CronJobRecord, last_schedule: &str, last_successful: &str) -> CronJobRecord {
    let status = CronJobStatus {
        last_schedule_time: Some(at(last_schedule)),
        last_successful_time: Some(at(last_successful)),
        ..record.status
    };
    CronJobRecord { status, ..record }
}

fn changed(record: &CronJobRecord) -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(record.resource_version.0 + 1_000),
        ..record.clone()
    }
}

#[test]
fn a_failed_job_is_reported_until_a_later_success() {
    let mut world = World::new("09:59:30", vec![healthy()], vec![]);
    assert_eq!(troubles(&mut world), [""; 0]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    let first = failed(job("hello", "10:00:00"));
    world.apply_job(first.clone());
    world.advance_to("10:00:30");
    assert_eq!(troubles(&mut world), ["failing"]);
    let stored = with_status(healthy(), "10:00:00", "09:59:10");
    assert_eq!(
        after_a_handover("10:00:30", &stored, std::slice::from_ref(&first)),
        ["failing"]
    );

    world.advance_to("10:01:00");
    world.effects();
    world.created();
    assert_eq!(troubles(&mut world), ["failing"], "the next run has begun");
    let second = complete(job("hello", "10:01:00"), "10:01:10");
    world.apply_job(second.clone());
    assert_eq!(troubles(&mut world), [""; 0]);
    let stored = with_status(healthy(), "10:01:00", "10:01:10");
    assert_eq!(after_a_handover("10:01:10", &stored, &[first, second]), [""; 0]);
}

#[test]
fn foreign_and_future_failed_jobs_are_not_reported() {
    let foreign = JobRecord {
        namespace: "other".into(),
        ..failed(job("hello", "10:00:00"))
    };
    let of_the_future = failed(job("hello", "10:05:00"));
    assert_eq!(
        after_a_handover("10:00:30", &healthy(), &[foreign, of_the_future]),
        [""; 0]
    );
    let manual = failed(manual_job("hello", "by-hand"));
    let started = JobRecord {
        started: Some(at("09:59:40")),
        ..manual
    };
    assert_eq!(
        after_a_handover("09:59:50", &healthy(), &[started]),
        ["failing"],
        "a manual run counts"
    );
}

#[test]
fn runs_blocked_by_forbid_are_reported_until_the_job_ends() {
    let running = job("hello", "09:59:00");
    let mut record = with_status(cron_job("hello"), "09:59:00", "09:58:10");
    record.concurrency_policy = ConcurrencyPolicy::Forbid;
    record.status.active.push(entry(&running));
    // A slot that is lost to its deadline also counts as held back.
    record.starting_deadline_seconds = Some(20);
    let mut world = World::new("09:59:30", vec![record.clone()], vec![running.clone()]);
    for (now, expected) in [
        ("10:00:30", &[][..]),
        ("10:01:59", &["no_success"]),
        ("10:02:00", &["no_success", "blocked"]),
        ("10:02:40", &["no_success", "blocked"]),
    ] {
        world.advance_to(now);
        assert_eq!(troubles(&mut world), expected, "at {now}");
        assert_eq!(
            after_a_handover(now, &record, std::slice::from_ref(&running)),
            expected,
            "at {now}"
        );
    }
    world.apply_job(complete(running, "10:02:45"));
    assert_eq!(troubles(&mut world), [""; 0]);
}

/// Lets time pass, while the API server refuses every create.
fn refuse_until(world: &mut World, seconds: std::ops::Range<i64>) {
    for second in seconds {
        world.advance_to(&format!("10:{:02}:{:02}", second / 60, second % 60));
        world.effects();
        while !world.creates.is_empty() {
            world.refused("exceeded quota");
        }
    }
}

#[test]
fn a_minutely_run_whose_create_is_refused_is_late_from_the_next_slot() {
    let mut world = World::new("09:59:30", vec![healthy()], vec![]);
    refuse_until(&mut world, 0..60);
    assert_eq!(troubles(&mut world), [""; 0]);
    refuse_until(&mut world, 60..100);
    assert_eq!(troubles(&mut world), ["late"]);
    assert_eq!(after_a_handover("10:01:39", &healthy(), &[]), ["late"]);
    refuse_until(&mut world, 100..110);
    assert_eq!(
        troubles(&mut world),
        ["late"],
        "the trouble continues with a later slot"
    );
    refuse_until(&mut world, 110..121);
    world.advance_to("10:03:10");
    world.effects();
    world.created();
    assert_eq!(troubles(&mut world), ["no_success"]);
    world.apply_job(complete(job("hello", "10:03:00"), "10:03:11"));
    assert_eq!(troubles(&mut world), [""; 0]);
}

#[test]
fn a_run_whose_create_is_unanswered_is_late_from_the_next_slot() {
    let mut world = World::new("09:59:30", vec![healthy()], vec![]);
    world.advance_to("10:00:59");
    assert_eq!(troubles(&mut world), [""; 0]);
    world.advance_to("10:01:00");
    assert_eq!(troubles(&mut world), ["late"]);
}

#[test]
fn a_new_cron_job_has_no_trouble_before_its_third_activation() {
    let record = CronJobRecord {
        created: at("10:00:10"),
        status: CronJobStatus::default(),
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:11", vec![record], vec![]);
    assert_eq!(troubles(&mut world), [""; 0]);
    world.advance_to("10:01:00");
    world.effects();
    world.created();
    world.advance_to("10:02:59");
    world.effects();
    world.created();
    assert_eq!(troubles(&mut world), [""; 0]);
    world.advance_to("10:03:00");
    world.effects();
    world.created();
    assert_eq!(troubles(&mut world), ["no_success"], "from the third activation");
}

#[test]
fn a_stopped_or_undecodable_cron_job_has_no_trouble() {
    let failing = failed(job("hello", "09:59:00"));
    let never = cron_job("hello");
    assert_eq!(
        after_a_handover("09:59:30", &never, std::slice::from_ref(&failing)),
        ["failing", "no_success"]
    );
    for stopped in [
        CronJobRecord {
            is_suspended: true,
            ..never.clone()
        },
        CronJobRecord {
            is_deleting: true,
            ..never.clone()
        },
    ] {
        assert_eq!(
            after_a_handover("09:59:30", &stopped, std::slice::from_ref(&failing)),
            [""; 0]
        );
    }
    let mut world = World::new("09:59:30", vec![never.clone()], vec![failing]);
    world.input(Input::CronJobUndecodable(uid("hello")));
    assert_eq!(troubles(&mut world), [""; 0]);
    world.apply(changed(&never));
    assert_eq!(troubles(&mut world), ["failing", "no_success"]);
}

#[test]
fn troubles_follow_a_schedule_change() {
    let hourly = CronJobRecord {
        schedule: schedule("0 * * * *", None),
        ..with_status(cron_job("hello"), "09:00:00", "09:05:00")
    };
    let mut world = World::new("09:30:20", vec![hourly.clone()], vec![]);
    assert_eq!(troubles(&mut world), [""; 0]);
    let minutely = CronJobRecord {
        schedule: schedule("* * * * *", None),
        ..changed(&hourly)
    };
    world.apply(minutely.clone());
    assert_eq!(troubles(&mut world), ["no_success"]);
    world.apply(CronJobRecord {
        schedule: schedule("nonsense", None),
        ..changed(&minutely)
    });
    assert_eq!(troubles(&mut world), ["invalid"]);
}

#[test]
fn a_cron_job_whose_alerts_are_off_is_in_no_trouble() {
    let invalid = CronJobRecord {
        schedule: schedule("0 0 31 2 *", None),
        ..cron_job("hello")
    };
    let mut without_alerts = CronJobRecord {
        resource_version: ResourceVersion(11),
        ..invalid.clone()
    };
    without_alerts.trouble_thresholds.set_alerts("none");
    let mut world = World::new("10:00:30", vec![invalid], vec![]);
    assert_eq!(troubles(&mut world), ["invalid"]);
    world.apply(without_alerts);
    assert_eq!(troubles(&mut world), [""; 0]);
}

#[test]
fn no_cron_job_of_a_namespace_whose_alerts_are_off_is_in_trouble() {
    let invalid = CronJobRecord {
        schedule: schedule("0 0 31 2 *", None),
        ..cron_job("hello")
    };
    let mut world = World::selecting("10:00:30", vec![invalid], vec![]);
    for (value, expected) in [("all", &["invalid"][..]), ("none", &[]), ("", &["invalid"])] {
        world.select_with(&[("alerts", value)]);
        assert_eq!(troubles(&mut world), expected, "{value}");
    }
}

#[test]
fn an_invalid_threshold_annotation_is_reported_until_it_is_fixed() {
    let with_threshold = |record: &CronJobRecord, value: &str| {
        let mut thresholds = TroubleThresholds::default();
        thresholds.set(Threshold::NoSuccess, value);
        CronJobRecord {
            trouble_thresholds: thresholds,
            ..changed(record)
        }
    };
    let warning = "Warning InvalidAnnotation: the value of the annotation cronwheel.dev/no-success-after-seconds is \
                   invalid: write a whole number of seconds from 1 to 4294967295; the default applies";
    let record = healthy();
    let mut world = World::new("09:59:20", vec![record.clone()], vec![]);
    world.expect(&[]);
    let invalid = with_threshold(&record, "10m");
    world.apply(invalid.clone());
    world.expect(&[warning]);
    let again = with_threshold(&invalid, "20m");
    world.apply(again.clone());
    world.expect(&[]);
    let valid = with_threshold(&again, "10");
    world.apply(valid.clone());
    world.expect(&[]);
    assert_eq!(troubles(&mut world), ["no_success"]);
    world.apply(with_threshold(&valid, "x"));
    world.expect(&[warning]);
    assert_eq!(troubles(&mut world), [""; 0], "the default applies");
}

#[test]
fn at_most_a_thousand_jobs_of_a_cron_job_are_examined() {
    let record = CronJobRecord {
        is_suspended: true,
        failed_jobs_history_limit: None,
        ..cron_job("hello")
    };
    let jobs = (0..3_000).map(|number| failed(manual_job("hello", &format!("manual-{number}"))));
    let mut world = World::new("09:59:30", vec![record, cron_job("other")], jobs.collect());
    let (shard, now) = (&mut world.shard, world.now);
    let examined: Vec<usize> = shard
        .places()
        .map(|place| shard.examine(place, now).n_objects)
        .collect();
    assert_eq!(examined, [1_001, 1]);
}

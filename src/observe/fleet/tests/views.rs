//! Overview, strip and list of a fleet of several CronJobs.

use jiff::{SignedDuration, Timestamp};

use super::script::{World, at, facts, run, schedule};
use crate::{
    observe::{
        facts::{Creator, CronJobFacts, Run},
        fleet::{Fleet, FleetConfig},
        slot::Mark,
        view::{Filter, Next, StateFilter},
    },
    schedule::ConcurrencyPolicy,
    shard::Uid,
};

fn named(namespace: &str, name: &str) -> CronJobFacts {
    CronJobFacts {
        uid: Uid::new(&format!("{namespace}/{name}")),
        namespace: namespace.into(),
        name: name.into(),
        ..facts()
    }
}

/// Starts the Job of a slot.
fn start(fleet: &mut Fleet, namespace: &str, name: &str, slot: Timestamp, now: Timestamp) -> Uid {
    let mut job = run(slot, now);
    job.cron_job = Uid::new(&format!("{namespace}/{name}"));
    job.job_uid = Uid::new(&format!("{namespace}/{name}/{slot}"));
    let uid = job.job_uid.clone();
    fleet.advance(now);
    fleet.apply_run(job, now);
    uid
}

/// At 10:02:30: `a/fast` is in time, `a/lost` lost 10:01 and is late with 10:02, `b/held` is held by Forbid,
/// `b/suspended`, `c/never` and `c/noon` start nothing.
fn fleet() -> Fleet {
    let begin = at("10:00:30");
    let mut fleet = Fleet::new(FleetConfig::of_slots(50), begin);
    let mut fast = named("a", "fast");
    fast.labels = [("team".into(), "payments".into())].into_iter().collect();
    let mut held = named("b", "held");
    held.concurrency_policy = ConcurrencyPolicy::Forbid;
    let mut suspended = named("b", "suspended");
    suspended.is_suspended = true;
    let mut never = named("c", "never");
    never.schedule = schedule("0 0 30 2 *");
    let mut noon = named("c", "noon");
    noon.schedule = schedule("0 12 * * *");
    for facts in [fast, named("a", "lost"), held, suspended, never, noon] {
        fleet.apply_cron_job(facts, begin);
    }
    fleet.set_watches_current(true, begin);
    start(&mut fleet, "a", "fast", at("10:01"), at("10:01:01"));
    start(&mut fleet, "b", "held", at("10:01"), at("10:01:01"));
    start(&mut fleet, "a", "fast", at("10:02"), at("10:02:03"));
    fleet.advance(at("10:02:30"));
    fleet
}

const NOW: &str = "10:02:30";

fn names(filter: Filter) -> Vec<String> {
    let limit = if filter.limit == 0 { 100 } else { filter.limit };
    let rows = fleet().rows(&Filter { limit, ..filter }, at(NOW));
    let names = rows.rows.iter();
    names
        .map(|row| format!("{}/{}", row.cron_job.namespace, row.cron_job.name))
        .collect()
}

#[test]
fn tiles_count_the_cluster() {
    let overview = fleet().overview(at(NOW));
    let tiles = overview.tiles;
    assert_eq!((tiles.n_cron_jobs, tiles.n_suspended, tiles.n_never), (6, 1, 1));
    assert_eq!((tiles.n_running, tiles.n_late_now), (3, 1));
    assert_eq!((tiles.n_lost, tiles.n_failed, tiles.n_late), (1, 0, 0));
    // Three CronJobs start every minute.
    assert!(
        (177..=183).contains(&tiles.n_due_next_hour),
        "{}",
        tiles.n_due_next_hour
    );
    let [controller] = overview.controllers.as_slice() else {
        panic!("one controller: {:?}", overview.controllers)
    };
    assert_eq!((&controller.creator, controller.n_jobs), (&Creator::BuiltIn, 3));
    assert_eq!(controller.lateness_p50, Some(SignedDuration::from_secs(1)));
    assert_eq!(controller.last, at("10:02:03"));
    assert_eq!(overview.known_since, Some(at("10:00:30")));
    let troubles: Vec<&str> = overview.attention.iter().map(|found| found.trouble.as_str()).collect();
    assert_eq!(troubles, ["lost", "never"]);
}

#[test]
fn the_limit_of_the_built_in_controller_is_seen_if_its_jobs_were_seen_to_come() {
    for (creator, watched, expected) in [
        (Creator::BuiltIn, "10:00:30", Some((15, 8))),
        (Creator::BuiltIn, "10:01:30", None),
        (Creator::Cronwheel, "10:00:30", None),
    ] {
        let mut fleet = Fleet::new(FleetConfig::of_slots(50), at("10:00:30"));
        for number in 0..120 {
            fleet.apply_cron_job(named("a", &format!("load-{number}")), at("10:00:30"));
        }
        fleet.set_watches_current(true, at(watched));
        for number in 0..120 {
            let created = at("10:01") + SignedDuration::from_secs(number / 8);
            let job = Run {
                cron_job: Uid::new(&format!("a/load-{number}")),
                job_uid: Uid::new(&format!("load-{number}")),
                creator: creator.clone(),
                ..run(at("10:01"), created)
            };
            fleet.apply_run(job, created.max(at(watched)));
        }
        fleet.advance(at("10:01:40"));
        let overview = fleet.overview(at("10:01:40"));
        let busy = overview.controllers[0].busy_time;
        let seen = busy.map(|busy| (busy.duration.as_secs(), busy.jobs_per_second));
        assert_eq!(seen, expected, "{creator:?}, watched since {watched}");
    }
}

#[test]
fn the_list_is_filtered() {
    let text = |text: &str| Filter {
        text: text.to_owned(),
        ..Filter::default()
    };
    let state = |state| Filter {
        state: Some(state),
        ..Filter::default()
    };
    let all = ["a/fast", "a/lost", "b/held", "b/suspended", "c/never", "c/noon"];
    for (filter, expected) in [
        (Filter::default(), all.to_vec()),
        (text("st"), vec!["a/fast", "a/lost"]),
        (text("a/l"), vec!["a/lost"]),
        (text("s b"), vec!["b/suspended"]),
        (text("team=payments"), vec!["a/fast"]),
        (text("team=other"), vec![]),
        (state(StateFilter::Running), vec!["a/fast", "b/held"]),
        (state(StateFilter::Late), vec!["a/lost"]),
        (state(StateFilter::Lost), vec!["a/lost"]),
        (state(StateFilter::Failed), vec![]),
        (state(StateFilter::Suspended), vec!["b/suspended"]),
        (state(StateFilter::Never), vec!["c/never"]),
        (state(StateFilter::Due), vec!["a/fast", "a/lost", "b/held"]),
        (state(StateFilter::Blocked), vec!["b/held"]),
        (
            Filter {
                namespace: Some("c".into()),
                ..Filter::default()
            },
            vec!["c/never", "c/noon"],
        ),
        (
            Filter {
                slots_between: Some((at("12:00"), at("12:00:01"))),
                text: "c/".to_owned(),
                ..Filter::default()
            },
            vec!["c/noon"],
        ),
        (
            Filter {
                offset: 1,
                limit: 2,
                ..Filter::default()
            },
            vec!["a/lost", "b/held"],
        ),
    ] {
        assert_eq!(names(filter.clone()), expected, "{filter:?}");
    }
    let rows = fleet().rows(&Filter { limit: 1, ..text("/") }, at(NOW));
    assert_eq!((rows.n_matching, rows.n_all, rows.rows.len()), (6, 6, 1));
}

#[test]
fn a_row_tells_the_schedule_the_last_slots_and_the_next_one() {
    let filter = Filter {
        limit: 100,
        ..Filter::default()
    };
    let rows = fleet().rows(&filter, at(NOW)).rows;
    let next: Vec<&Next> = rows.iter().map(|row| &row.next).collect();
    let soon = Next::At(at("10:03"));
    let expected = [
        &soon,
        &soon,
        &Next::HeldBack(at("10:02")),
        &Next::Suspended,
        &Next::Never,
        &Next::At(at("12:00")),
    ];
    assert_eq!(next, expected);
    assert_eq!(rows[1].marks, [Mark::Lost, Mark::Late]);
    assert_eq!(rows[0].schedule_text, "every minute");
    assert_eq!(rows[0].zone.name(), "UTC");
}

#[test]
fn the_strip_has_a_row_for_each_namespace_and_the_rest_in_one() {
    let fleet = fleet();
    let (from, to) = (at("10:00"), at("10:10"));
    let strip = fleet.strip(from, to, 10, at(NOW));
    assert_eq!((strip.from, strip.to, strip.cell_minutes), (from, to, 1));
    assert_eq!(strip.now, at("10:03"));
    let row = |place: usize| {
        let row = &strip.rows[place];
        let cells: Vec<(u32, u32)> = row.cells.iter().map(|cell| (cell.n_runs, cell.n_lost)).collect();
        (row.namespace.as_deref(), cells)
    };
    let future = [(2, 0); 7];
    assert_eq!(row(0), (Some("a"), [&[(0, 0), (1, 0), (1, 1)][..], &future].concat()));
    assert_eq!(
        row(1),
        (Some("b"), [&[(0, 0), (1, 0), (0, 0)][..], &[(1, 0); 7]].concat())
    );
    assert_eq!(strip.rows.len(), 2);
    let merged = fleet.strip(from, to, 1, at(NOW));
    let namespaces: Vec<Option<&str>> = merged.rows.iter().map(|row| row.namespace.as_deref()).collect();
    assert_eq!(namespaces, [Some("a"), None]);
    let peak = merged.peak.expect("starts");
    assert_eq!((peak.at, peak.n_starts), (at("12:00"), 4));
    let wide = fleet.strip(
        at(NOW) - SignedDuration::from_hours(24),
        at(NOW) + SignedDuration::from_hours(24),
        10,
        at(NOW),
    );
    assert_eq!(wide.cell_minutes, 15);
    let sum: u32 = wide.rows[0].cells.iter().map(|cell| cell.n_runs).sum();
    assert!((2 + 2 * 1_415..=2 + 2 * 1_455).contains(&sum), "{sum}");
    let of_now = wide.rows[0].cells.iter().find(|cell| cell.n_runs > 0);
    assert_eq!(
        of_now.map(|cell| cell.n_runs),
        Some(2),
        "the cell of now has no starts that are ahead"
    );
}

#[test]
fn what_a_deleted_cron_job_did_stays_for_a_day() {
    let mut fleet = fleet();
    fleet.remove_cron_job(&Uid::new("a/lost"), at(NOW));
    let tiles = fleet.tiles(at(NOW));
    assert_eq!((tiles.n_cron_jobs, tiles.n_lost, tiles.n_late_now), (5, 1, 0));
    let tomorrow = at("2026-05-06T10:02:30Z");
    fleet.advance(tomorrow);
    let past = fleet.strip(at(NOW), tomorrow, 10, tomorrow);
    let n_lost: u32 = past
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| cell.n_lost)
        .sum();
    assert_eq!(u64::from(n_lost), fleet.tiles(tomorrow).n_lost);
}

#[test]
fn a_list_of_one_namespace_concerns_only_that_namespace() {
    let mut fleet = fleet();
    fleet.retain_cron_jobs(&[Uid::new("c/noon")].into(), Some("c"), at(NOW));
    assert_eq!(fleet.tiles(at(NOW)).n_cron_jobs, 5);
    fleet.retain_runs(&[].into(), Some("b"), at(NOW));
    assert_eq!(fleet.tiles(at(NOW)).n_running, 2);
}

#[test]
fn a_cron_job_that_is_created_again_has_the_name() {
    let mut fleet = fleet();
    let again = CronJobFacts {
        uid: Uid::new("again"),
        created: at(NOW),
        last_schedule_time: None,
        ..named("a", "fast")
    };
    fleet.apply_cron_job(again, at(NOW));
    fleet.remove_cron_job(&Uid::new("a/fast"), at(NOW));
    let name = crate::observe::view::CronJobName {
        namespace: "a".into(),
        name: "fast".into(),
    };
    assert_eq!(fleet.detail(&name, at(NOW)).map(|detail| detail.slots.len()), Some(0));
    assert_eq!(fleet.cron_jobs().count(), 6);
}

#[test]
fn the_version_changes_with_the_views_and_a_wakeup_tells_when() {
    let mut world = World::of("10:00:30 watch\n10:01:30 wait");
    let version = world.fleet.version();
    world.fleet.advance(at("10:01:40"));
    assert_eq!(world.fleet.version(), version);
    assert_eq!(world.fleet.next_wakeup(), Some(at("10:02")));
    world.fleet.advance(at("10:02"));
    assert!(world.fleet.version() > version);
    // The slot is late after more than five seconds.
    assert_eq!(world.fleet.next_wakeup(), Some(at("10:02:06")));
    world.play("10:02:03 start 10:02");
    assert_eq!(world.fleet.next_wakeup(), Some(at("10:03")));
}

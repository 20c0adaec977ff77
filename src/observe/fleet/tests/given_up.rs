//! A lost slot counts when it is given up.

use jiff::SignedDuration;

use super::script::{World, at, facts, schedule};

#[test]
fn a_lost_daily_run_counts_for_a_day() {
    let mut daily = facts();
    daily.schedule = schedule("0 8 * * *");
    daily.last_schedule_time = Some(at("2026-05-03T08:00:00Z"));
    let mut world = World::new(daily, 50);
    world.play("2026-05-03T09:00:00Z watch");
    for (until, n_lost) in [
        ("2026-05-04T18:00:00Z", 0),
        ("2026-05-05T08:00:30Z", 1),
        ("2026-05-05T18:00:00Z", 1),
        ("2026-05-06T07:59:00Z", 1),
    ] {
        world.play(&format!("{until} wait"));
        assert_eq!(world.fleet.tiles(world.now).n_lost, n_lost, "{until}");
        assert_eq!(
            world.restarted(50).fleet.tiles(world.now).n_lost,
            n_lost,
            "{until}, restarted"
        );
    }
    // In the strip it is in the minute in which it was given up.
    let given_up = at("2026-05-05T08:00:00Z");
    let minute = SignedDuration::from_mins(1);
    let strip = world.fleet.strip(given_up - minute, given_up + minute, 10, world.now);
    let n_lost: Vec<u32> = strip.rows[0].cells.iter().map(|cell| cell.n_lost).collect();
    assert_eq!(n_lost, [0, 1]);
}

#[test]
fn a_late_job_takes_a_loss_back() {
    let mut world = World::of("10:00:30 watch\n10:05:10 wait");
    assert_eq!(world.fleet.tiles(world.now).n_lost, 4);
    // The slot after it closes another way now; the loss leaves the minute that it was added to.
    world.play("10:05:20 schedule */5 * * * *\n10:05:30 start 10:04");
    assert_eq!(world.fleet.tiles(world.now).n_lost, 3);
    world.play("10:05:40 start 10:01\n10:05:41 start 10:02\n10:05:42 start 10:03");
    assert_eq!(world.fleet.tiles(world.now).n_lost, 0);
}

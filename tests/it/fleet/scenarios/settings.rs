//! Replicas with different settings that affect when CronJobs run. `--default-time-zone` also stands for `--namespace`.

use std::time::Duration;

use cronwheel::schedule::Zone;

use super::{THREE, begin};
use crate::fleet::{Size, cluster::Fleet, play};

/// Starts a replica with another default time zone.
fn start_in_berlin(fleet: &mut Fleet, name: &str) {
    fleet.add(name);
    fleet.change(name, |pod| {
        pod.default_zone = Zone::load("Europe/Berlin").unwrap();
        "2".clone_into(&mut pod.revision);
    });
    fleet.start(name);
}

/// The number of shards that these replicas lead together.
fn n_led_by(fleet: &Fleet, names: &[&str]) -> usize {
    let shares = fleet.shares();
    names.iter().filter_map(|name| shares.get(*name)).sum()
}

#[test]
fn rolling_update_of_the_default_time_zone_misses_no_run() {
    play(231, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let all = usize::from(fleet.shard_count.get());
        for (old, new) in [("a", "x"), ("b", "y"), ("c", "z")] {
            start_in_berlin(fleet, new);
            tokio::time::sleep(Duration::from_secs(4)).await;
            // The replica leads no shard, but it is ready: a rolling update would stop otherwise.
            assert_eq!(fleet.not_ready(new).await, "", "{new}");
            assert_eq!(fleet.takes_no_shards(new).as_deref(), Some("settings_differ"), "{new}");
            assert_eq!(n_led_by(fleet, &["x", "y", "z"]), 0, "{new}");
            let begun = fleet.now();
            fleet.drain(old).await;
            let gap = fleet.all_led(Duration::from_secs(3)).await;
            fleet.allow_late(begun, gap.as_secs_f64() + 5.0);
        }
        fleet.at(3, 20.0).await;
        assert_eq!(n_led_by(fleet, &["x", "y", "z"]), all);
        assert_eq!(fleet.takes_no_shards("x"), None);
    });
}

#[test]
fn only_one_of_two_deployments_with_different_settings_leads_shards() {
    play(232, Size::default(), async |fleet| {
        fleet.start_all(&["a", "b"]);
        for name in ["x", "y"] {
            start_in_berlin(fleet, name);
        }
        fleet.at(0, 55.0).await;
        let all = usize::from(fleet.shard_count.get());
        let (first, second) = (n_led_by(fleet, &["a", "b"]), n_led_by(fleet, &["x", "y"]));
        assert!(
            (first, second) == (all, 0) || (first, second) == (0, all),
            "{first} and {second}"
        );
        let waiting = if first == 0 { "a" } else { "x" };
        assert_eq!(fleet.takes_no_shards(waiting).as_deref(), Some("settings_differ"));
        fleet.at(3, 20.0).await;
        assert_eq!(n_led_by(fleet, &["a", "b", "x", "y"]), all);
    });
}

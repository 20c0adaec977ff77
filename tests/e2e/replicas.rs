//! Several replicas as processes that share the CronJobs of a namespace. They start, stop, crash, freeze and are cut
//! off.
//!
//! Each case has its own Leases, replicas and CronJobs. It is checked by the audit log and by the creator recorded in
//! each Job: no slot is missed or doubled, Forbid never overlaps, and no Job of a term follows one of the next term. By
//! default three cases run, with one slot each; `make replicas` runs all of them with two.

mod absence;
mod admission;
mod crashes;
mod cron_jobs;
mod deletions;
mod freezes;
mod group;
mod outage;
mod partition;
mod restarts;
mod scaling;
mod sightings;
mod verdict;

use std::{pin::Pin, time::Duration};

use libtest_mimic::Trial;

use crate::{
    block_on,
    control_plane::{Purpose, share, take},
    kubernetes::{ControlPlane, Namespace},
};

type Run = Pin<Box<dyn Future<Output = ()>>>;

struct Case {
    name: &'static str,
    run: fn(Namespace) -> Run,
}

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        [$(Case {
            name: concat!("replicas::", stringify!($case)),
            run: |namespace| Box::pin($module::$case(namespace)),
        }),*]
    };
}

const DURATION_MAX: Duration = Duration::from_mins(5);

/// The number of slots in a case. One shows the effect of the fault, another that everything continues.
fn n_slots() -> i64 {
    let n_slots = std::env::var("CRONWHEEL_REPLICAS_SLOTS").ok();
    n_slots.map_or(1, |n_slots| {
        n_slots.parse().expect("CRONWHEEL_REPLICAS_SLOTS is a number")
    })
}

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let short = cases![
        restarts::rolling_restart_moves_at_most_three_shards_twice,
        crashes::all_shards_are_led_after_a_replica_restarts_in_its_pod,
        freezes::frozen_for_9_seconds_a_replica_loses_its_shards_at_most_once,
    ];
    let long = cases![
        crashes::shards_of_a_killed_replica_move_to_the_others,
        freezes::frozen_for_5_seconds_a_replica_keeps_its_shards,
        freezes::frozen_for_11_seconds_a_replica_loses_its_shards_once,
        freezes::frozen_for_60_seconds_a_replica_loses_its_shards_once,
        scaling::scaling_from_one_to_five_to_two_moves_few_shards,
        deletions::all_shards_are_led_after_a_member_lease_is_deleted,
        deletions::all_shards_are_led_after_a_shard_lease_is_deleted,
        deletions::all_shards_are_led_after_all_leases_are_deleted,
        partition::cut_off_for_30_seconds_a_replica_loses_its_shards_once,
        partition::fence_policy_denies_creates_delayed_by_the_network,
        admission::dead_webhook_delays_jobs_and_loses_none,
        absence::only_the_latest_slot_starts_after_minutes_without_replicas,
    ];
    let short = short.into_iter().map(|case| (case, false));
    let long = long.into_iter().map(|case| (case, true));
    let cases = short
        .chain(long)
        .map(|(case, is_long)| shared(case).with_ignored_flag(is_long));
    cases.chain([outage().with_ignored_flag(true)])
}

fn shared(Case { name, run }: Case) -> Trial {
    Trial::test(name, move || {
        share(Purpose::Replicas, |access| {
            block_on(DURATION_MAX, async {
                run(Namespace::create_for(name, ControlPlane::connect(access).await).await).await;
            });
        });
        Ok(())
    })
}

/// This case stops the API server for all others, so it runs alone.
fn outage() -> Trial {
    const NAME: &str = "replicas::api_server_outage_of_30_seconds_moves_no_shard";
    Trial::test(NAME, || {
        take(Purpose::ReplicasOutage, |testbed, access| {
            block_on(DURATION_MAX, async {
                let namespace = Namespace::create_for(NAME, ControlPlane::connect(access).await).await;
                outage::away(testbed, namespace).await;
            });
        });
        Ok(())
    })
}

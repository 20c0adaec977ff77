//! Two installations with selectors of namespaces, and namespaces whose labels move between them, on the in-memory API in
//! virtual time.

mod cluster;

use std::{collections::BTreeSet, time::Duration};

use apisim::{Fault, Rule};
use jiff::{SignedDuration, Timestamp};

use self::cluster::{Cluster, NAMESPACES, Seen, TEAMS, Write};
use crate::random::Random;

/// The time from the change of a label until a watch has delivered it, with room for the request.
const DELIVERY: SignedDuration = SignedDuration::from_millis(50);

/// The time after which a released namespace gets nothing more.
const RELEASE_TIMEOUT: SignedDuration = SignedDuration::from_secs(2);

/// Moves labels at random for a time, with pauses of up to a hundred seconds. A namespace may belong to nobody.
async fn move_labels(cluster: &Cluster, random: &mut Random, minutes: i64) {
    let end = cluster.now() + SignedDuration::from_mins(minutes);
    while cluster.now() < end {
        let namespace = random.pick(&NAMESPACES);
        let team = random.pick(&[Some(TEAMS[0]), Some(TEAMS[1]), Some(TEAMS[0]), Some(TEAMS[1]), None]);
        cluster.label(namespace, team).await;
        cluster::pass(Duration::from_millis(random.next() % 100_000)).await;
    }
}

/// Checks that each write was sent while the labels permitted it, or as shortly after as they permit.
fn check_writes(cluster: &Cluster, writes: &[Write]) {
    for write in writes {
        let patience = if write.resource == "cronjobs" {
            RELEASE_TIMEOUT + DELIVERY
        } else {
            DELIVERY
        };
        let is_permitted = cluster.was_of(&write.namespace, write.team, write.at, patience);
        assert!(is_permitted, "{write:?}\n{:#?}", cluster.moves());
    }
}

/// Checks that no slot has two Jobs, and that each slot in a namespace that had one owner around it has one.
fn check_runs(cluster: &Cluster, seen: &Seen, calm_from: Timestamp) {
    for ((namespace, name), uids) in seen {
        assert_eq!(uids.len(), 1, "{namespace}/{name} was created {} times", uids.len());
    }
    let mut n_checked = 0;
    let mut minute = calm_from + SignedDuration::from_secs(60 - calm_from.as_second().rem_euclid(60));
    while minute < cluster.now() - SignedDuration::from_secs(10) {
        for namespace in NAMESPACES {
            let Some(team) = cluster.owner_around(namespace, minute, SignedDuration::from_secs(5)) else {
                continue;
            };
            for name in cluster::CRON_JOBS {
                let job = format!("{name}-{}", minute.as_second() / 60);
                let is_seen = seen.contains_key(&(namespace.to_owned(), job.clone()));
                assert!(
                    is_seen,
                    "{team} started no {namespace}/{job} at {minute}\n{:#?}",
                    cluster.moves()
                );
                n_checked += 1;
            }
        }
        minute += SignedDuration::from_secs(60);
    }
    assert!(n_checked > 15, "{n_checked}");
}

/// Runs both installations, of two replicas each, while labels move, and returns all writes and Jobs.
fn play(faults: &[(u32, Fault)], minutes: i64, seed: u64) {
    cluster::run(async {
        let mut random = Random::new(seed);
        let cluster = Cluster::new(seed);
        cluster.fill().await;
        let replicas = TEAMS.into_iter().flat_map(|team| [(team, 0), (team, 1)]);
        let begun: Vec<_> = replicas.map(|(team, number)| cluster.start(team, number)).collect();
        let watcher = cluster.collect_jobs();
        cluster::pass(Duration::from_secs(30)).await;
        let mut calm_from = cluster.now();
        let rules: Vec<_> = faults
            .iter()
            .flat_map(|(per_million, fault)| TEAMS.map(|team| (team, *per_million, fault.clone())))
            .map(|(team, per_million, fault)| {
                cluster.api().faults().add(Rule {
                    client: Some(team.to_owned()),
                    per_million,
                    ..Rule::new(fault)
                })
            })
            .collect();
        move_labels(&cluster, &mut random, minutes).await;
        if !rules.is_empty() {
            for rule in rules {
                cluster.api().faults().remove(rule);
            }
            cluster::pass(Duration::from_mins(2)).await;
            calm_from = cluster.now();
            move_labels(&cluster, &mut random, 15).await;
        }
        cluster.label(NAMESPACES[0], Some(TEAMS[0])).await;
        cluster::pass(Duration::from_mins(5)).await;
        check_writes(&cluster, &cluster.writes(calm_from));
        check_runs(&cluster, &watcher.seen(), calm_from);
        let active: BTreeSet<String> = begun.iter().flat_map(cluster::Replica::other_controllers).collect();
        if faults.is_empty() {
            assert_eq!(active, BTreeSet::new(), "each works in its own namespaces");
        }
        assert!(begun.iter().all(cluster::Replica::is_running));
    });
}

#[test]
fn namespaces_move_between_installations_without_a_missed_or_doubled_run() {
    play(&[], 60, 1);
}

#[test]
fn namespaces_move_between_installations_among_faults_without_a_doubled_run() {
    let faults = [
        (20_000, Fault::DropBefore),
        (20_000, Fault::DropAfter),
        (20_000, Fault::InternalError),
        (20_000, Fault::Conflict),
        (20_000, Fault::CloseWatch),
        (10_000, Fault::Throttle { retry_after_seconds: 2 }),
        (5_000, Fault::Expired),
    ];
    play(&faults, 40, 1);
}

#[test]
fn without_a_matching_namespace_nothing_runs_and_readyz_names_the_command() {
    cluster::run(async {
        let cluster = Cluster::new(7);
        cluster.fill().await;
        let replica = cluster.start(TEAMS[0], 0);
        let watcher = cluster.collect_jobs();
        cluster::pass(Duration::from_mins(10)).await;
        assert_eq!(watcher.seen().len(), 0);
        assert_eq!(cluster.writes(Timestamp::MIN).len(), 0);
        let expected = "ok\nno namespace matches --namespace-selector team=red, so no CronJob is managed; select one: \
                        kubectl label namespace NAME team=red\n";
        assert_eq!(replica.readyz().await, (200, expected.to_owned()));
        let figures = [
            "cronwheel_managed_namespaces 0\n",
            "cronwheel_cron_jobs 0\n",
            "cronwheel_cron_jobs_led 0\n",
        ];
        let text = replica.metrics();
        assert!(figures.iter().all(|figure| text.contains(figure)), "{text}");
        cluster.label(NAMESPACES[0], Some(TEAMS[0])).await;
        cluster::pass(Duration::from_mins(2)).await;
        assert_eq!(replica.readyz().await, (200, "ok\n".to_owned()));
        let text = replica.metrics();
        assert!(text.contains("cronwheel_managed_namespaces 1\n"), "{text}");
        assert!(text.contains("cronwheel_cron_jobs 4\n"), "{text}");
        assert!(watcher.seen().len() >= 4, "{:?}", watcher.seen());
    });
}

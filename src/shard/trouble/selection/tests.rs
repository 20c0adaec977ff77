//! Tests of the selection of the named CronJobs when too many are in trouble.

use std::collections::BTreeMap;

use super::*;
use crate::shard::Uid;

fn trouble(namespace: &str, name: &str, minute: i64) -> Trouble {
    Trouble {
        since: Timestamp::from_second(60 * minute).unwrap(),
        cron_job: Arc::new(CronJobIdentity {
            namespace: namespace.into(),
            name: name.into(),
            uid: Uid::new(name),
        }),
        kind: TroubleKind::Failing,
        shard: ShardId(0),
        owner: None,
    }
}

fn select(n_max: usize, troubles: impl IntoIterator<Item = Trouble>) -> TroubleReport {
    let mut report = TroubleReport::default();
    for trouble in troubles {
        report.add(trouble, n_max);
    }
    report.finish(n_max);
    report
}

fn names(report: &TroubleReport) -> Vec<&str> {
    report.named.iter().map(|trouble| &*trouble.cron_job.name).collect()
}

#[test]
fn troubles_are_selected_by_namespace_in_turn_longest_first() {
    // Each CronJob of the large namespace has been in trouble longer than those of the other namespaces.
    let large = (0..100).map(|number| trouble("large", &format!("large-{number}"), 100 - number));
    let others = [
        trouble("b", "b-1", 500),
        trouble("b", "b-2", 400),
        trouble("c", "c-1", 600),
    ];
    let report = select(5, large.chain(others));
    assert_eq!(names(&report), ["large-99", "b-2", "c-1", "large-98", "b-1"]);
    assert_eq!(report.n_omitted, [98, 0, 0, 0, 0]);
}

#[test]
fn all_troubles_are_named_if_they_fit() {
    let mut invalid = trouble("a", "x", 1);
    invalid.kind = TroubleKind::Invalid;
    let report = select(3, [trouble("a", "x", 2), invalid, trouble("a", "y", 3)]);
    assert_eq!(names(&report), ["x", "x", "y"]);
    assert_eq!(report.n_omitted, [0; 5]);
    let nothing = select(0, [trouble("a", "x", 1), trouble("a", "y", 1)]);
    assert_eq!((nothing.named.len(), nothing.n_omitted[0]), (0, 2));
}

#[test]
fn a_recreated_cron_job_is_named_once() {
    let (former, mut later) = (trouble("a", "x", 1), trouble("a", "x", 2));
    later.shard = ShardId(1);
    assert_eq!(select(9, [former, later]).named.len(), 1);
}

/// The selection by turn and age, from all troubles at once.
fn expected(n_max: usize, troubles: &[Trouble]) -> Vec<Trouble> {
    let mut sorted = troubles.to_vec();
    sorted.sort();
    let mut n_of: BTreeMap<Box<str>, usize> = BTreeMap::new();
    let mut placed: Vec<(usize, Trouble)> = Vec::new();
    for trouble in sorted {
        let n_before = n_of.entry(trouble.cron_job.namespace.clone()).or_default();
        placed.push((*n_before, trouble));
        *n_before += 1;
    }
    placed.sort();
    placed.truncate(n_max);
    placed.into_iter().map(|(_, trouble)| trouble).collect()
}

#[test]
fn selection_does_not_depend_on_the_order() {
    let mut random = 7_u64;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..300 {
        let (n_namespaces, n_max) = (1 + draw(6), draw(12));
        let mut troubles: Vec<Trouble> = (0..draw(40))
            .map(|number| {
                let minute = i64::try_from(draw(20)).unwrap();
                trouble(&format!("n{}", draw(n_namespaces)), &format!("c{number}"), minute)
            })
            .collect();
        let n_max = usize::try_from(n_max).unwrap();
        let expected = expected(n_max, &troubles);
        for _ in 0..3 {
            let report = select(n_max, troubles.iter().cloned());
            assert_eq!(report.named, expected, "round {round}");
            assert_eq!(
                report.named.len() as u64 + report.n_omitted[0],
                troubles.len() as u64,
                "round {round}"
            );
            let middle = troubles.len() / 3;
            troubles.rotate_left(middle);
            troubles.reverse();
        }
    }
}

#[test]
fn troubles_of_other_shards_are_removed_from_a_report() {
    let on = |shard, name: &str, minute| Trouble {
        shard: ShardId(shard),
        ..trouble("a", name, minute)
    };
    let mut report = select(9, [on(1, "x", 1), on(2, "y", 2), on(1, "z", 3)]);
    report.keep(&[ShardId(1)].into_iter().collect(), 1);
    assert_eq!(names(&report), ["x"]);
    assert_eq!(report.n_omitted[0], 1, "one omitted trouble of the remaining shard");
}

#[test]
fn a_report_names_a_bounded_number_of_owners() {
    let owned = |number: usize, owner: usize| Trouble {
        owner: Some(format!("team-{owner}").into()),
        ..trouble("shop", &format!("backup-{number}"), i64::try_from(number).unwrap())
    };
    let troubles = (0..200).map(|number| owned(number, number % (OWNERS_MAX + 20)));
    let report = select(500, troubles);
    let owners = report.named.iter().map(|trouble| trouble.owner.as_deref().unwrap());
    let n_other = owners.clone().filter(|owner| *owner == OTHER_OWNER).count();
    let distinct: std::collections::BTreeSet<&str> = owners.collect();
    assert_eq!((distinct.len(), n_other), (OWNERS_MAX + 1, 20));
}

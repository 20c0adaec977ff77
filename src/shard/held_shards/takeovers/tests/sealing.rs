//! Tests of sealing: a shard acts until its requests are answered and its statuses stored, and one shard at a time
//! has no leader.

use super::*;

#[test]
fn shard_is_sealed_after_all_responses_and_reports_its_versions() {
    let mut replica = Replica::leading();
    assert_eq!(replica.creates(), [(Term(1), at("10:00:00"))]);
    replica.seal(1);
    assert_eq!(replica.reports(), [], "a create is unanswered");
    replica.pass(700);
    replica.answer(1, created());
    replica.store_status();
    assert_eq!(
        replica.reports(),
        [ShardReport::Sealed {
            shard_term: shard_term(1),
            at: replica.boot,
            fired_through: Some(at("10:00:05") + SignedDuration::from_millis(700)),
            written_through: Some(written(1_101, 1_100)),
        }]
    );
    replica.pass(120_000);
    assert_eq!((replica.creates(), replica.reports()), (vec![], vec![]));
}

#[test]
fn closing_shard_still_creates_due_jobs() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.pass(52_000);
    replica.seal(1);
    replica.pass(3_000);
    replica.answer(1, created());
    assert_eq!(
        replica.creates(),
        [(Term(1), at("10:01:00"))],
        "the slot that became due meanwhile"
    );
}

#[test]
fn shard_stays_closing_while_a_create_is_unanswered() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.pass(52_000);
    replica.seal(1);
    replica.pass(3_000);
    replica.answer(1, created());
    replica.store_status();
    assert_eq!(replica.reports(), []);
    let phase = |replica: &Replica| replica.shards.held[&shard()].state.phase();
    assert_eq!(
        phase(&replica),
        ShardPhase::Closing,
        "the create of 10:01 is unanswered"
    );
    replica.pass(1_000);
    assert_eq!(phase(&replica), ShardPhase::Sealed, "the time limit has passed");
}

#[test]
fn shard_reports_sealed_two_seconds_after_the_seal_without_responses() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.seal(1);
    replica.pass(4_000);
    replica.pass(1_999);
    assert_eq!(replica.reports(), []);
    replica.pass(1);
    assert!(
        matches!(replica.reports()[..], [ShardReport::Sealed { fired_through: Some(through), .. }] if through == at("10:00:09"))
    );
}

#[test]
fn a_second_seal_command_can_bring_the_seal_forward() {
    let mut replica = Replica::leading();
    assert_eq!(replica.creates().len(), 1);
    replica.seal(1);
    replica.pass(100);
    assert_eq!(replica.reports(), []);
    let commanded_at = replica.boot;
    let at_once = ShardCommand::Seal(SealOrder {
        shard_term: shard_term(1),
        close_by: commanded_at,
        has_other_taker: true,
    });
    replica.command(at_once);
    replica.pass(1_000);
    replica.command(at_once);
    replica.pass(999);
    assert_eq!(replica.reports(), [], "answers are missing");
    replica.pass(1);
    assert!(matches!(replica.reports()[..], [ShardReport::Sealed { at, .. }] if at == commanded_at));
}

#[test]
fn unsent_create_is_left_to_the_next_leader() {
    let mut replica = Replica::leading();
    assert_eq!(replica.creates().len(), 1);
    replica.seal(1);
    replica.pass(3_999);
    assert_eq!(replica.reports(), [], "the answer is missing");
    replica.pass(1);
    replica.answer(1, abandoned());
    assert!(matches!(
        replica.reports()[..],
        [ShardReport::Sealed { at, .. }] if at == replica.boot
    ));
    replica.pass(60_000);
    assert_eq!(replica.creates(), []);
}

fn sealed(replica: &mut Replica) -> Vec<u16> {
    let reports = replica.reports().into_iter();
    reports
        .filter_map(|report| match report {
            ShardReport::Sealed { shard_term, .. } => Some(shard_term.shard.0),
            ShardReport::Synced | ShardReport::Leading(_) => None,
        })
        .collect()
}

/// A replica that leads shards 0 to 3, which have no CronJobs, and has to seal them within four seconds.
fn sealing_four(has_other_taker: bool) -> Replica {
    let mut replica = Replica::new();
    let shard_terms = (0..4).map(|shard| ShardTerm {
        shard: ShardId(shard),
        term: Term(1),
    });
    for shard_term in shard_terms.clone() {
        replica.command(ShardCommand::Lead {
            shard_term,
            entry: Entry::Current,
            fired_through: None,
        });
    }
    replica.answer_versions(written(0, 0));
    let close_by = replica.boot + Duration::from_secs(4);
    for shard_term in shard_terms {
        replica.command(ShardCommand::Seal(SealOrder {
            shard_term,
            close_by,
            has_other_taker,
        }));
    }
    replica
}

#[test]
fn one_shard_at_a_time_is_without_a_leader() {
    let mut replica = sealing_four(true);
    assert_eq!(sealed(&mut replica), [0]);
    replica.pass(1_000);
    assert_eq!(
        sealed(&mut replica),
        Vec::<u16>::new(),
        "the next leader of shard 0 does not lead yet"
    );
    for shard in 0..3 {
        replica.command(ShardCommand::Release(ShardId(shard)));
        assert_eq!(sealed(&mut replica), [shard + 1]);
    }
    assert_eq!(replica.shards.next_lifecycle_step(), None);
}

#[test]
fn shards_that_wait_for_slow_transfers_are_spread_over_the_time_limit() {
    let mut replica = sealing_four(true);
    let mut sealed_at = Vec::new();
    for ms in 0..=4_000 {
        sealed_at.extend(sealed(&mut replica).into_iter().map(|shard| (shard, ms)));
        replica.pass(1);
    }
    assert_eq!(sealed_at, [(0, 0), (1, 1_334), (2, 2_667), (3, 4_000)]);
    assert_eq!(replica.shards.next_lifecycle_step(), None, "nothing waits");
}

#[test]
fn shards_without_a_next_leader_are_sealed_together() {
    let mut replica = sealing_four(false);
    assert_eq!(sealed(&mut replica), [0, 1, 2, 3]);
    let mut replica = sealing_four(true);
    assert_eq!(sealed(&mut replica), [0]);
    replica.command(ShardCommand::Seal(SealOrder {
        shard_term: ShardTerm {
            shard: ShardId(3),
            term: Term(1),
        },
        close_by: replica.boot + Duration::from_secs(4),
        has_other_taker: false,
    }));
    assert_eq!(sealed(&mut replica), [3], "the other members have left");
}

#[test]
fn shard_about_to_fire_fires_before_it_is_sealed() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.answer(1, created());
    replica.creates();
    replica.pass(54_850);
    replica.seal(1);
    replica.pass(149);
    assert_eq!(replica.creates(), []);
    replica.pass(1);
    assert_eq!(replica.creates(), [(Term(1), at("10:01:00"))]);
    replica.pass(3_850);
    let reports = replica.reports();
    assert_eq!(reports, [], "a create is unanswered");
    replica.pass(2_000);
    let reports = replica.reports();
    assert!(
        matches!(&reports[..], [ShardReport::Sealed { fired_through: Some(through), .. }] if *through == at("10:01:03") + SignedDuration::from_millis(850)),
        "{reports:?}"
    );
}

#[test]
fn shard_with_late_responses_fires_before_it_is_sealed() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.pass(52_000);
    replica.seal(1);
    replica.pass(2_900);
    replica.answer(1, created());
    replica.store_status();
    assert_eq!(replica.reports(), [], "a slot is due in 100 ms");
    replica.pass(100);
    assert_eq!(replica.creates(), [(Term(1), at("10:01:00"))]);
}

#[test]
fn shard_that_was_never_led_is_sealed_at_once() {
    let mut replica = Replica::new();
    replica.command(ShardCommand::Lead {
        shard_term: shard_term(5),
        entry: Entry::Current,
        fired_through: None,
    });
    replica.seal(5);
    assert_eq!(
        replica.reports(),
        [
            ShardReport::Synced,
            ShardReport::Sealed {
                shard_term: shard_term(5),
                at: replica.boot,
                fired_through: None,
                written_through: None,
            }
        ]
    );
    assert_eq!(replica.shards.poll_version_request(), None);
    assert_eq!(replica.reports(), [], "a sealed shard is not led");
    let mut replica = Replica::leading();
    replica.seal(1);
    replica.command(ShardCommand::ReleaseAll);
    replica.pass(10_000);
    assert_eq!(replica.reports(), []);
    assert_eq!(replica.creates(), []);
    assert_eq!(replica.shards.next_lifecycle_step(), None);
}

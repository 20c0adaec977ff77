//! Tests of answers to orders of a former term.

use super::*;

/// A replica that ordered the create of 10:00 in two terms of the shard. The first one is not answered.
fn led_again() -> Replica {
    let mut replica = Replica::leading();
    assert_eq!(replica.creates(), [(Term(1), at("10:00:00"))]);
    replica.command(ShardCommand::Release(shard()));
    replica.lead(3, Entry::Current);
    replica.answer_versions(written(0, 0));
    assert_eq!(replica.creates(), [(Term(3), at("10:00:00"))]);
    replica
}

#[test]
fn an_answer_of_a_former_term_is_not_taken_for_the_present_one() {
    let mut replica = led_again();
    replica.answer(1, abandoned());
    replica.answer(3, created());
    replica.pass(2_000);
    assert_eq!(replica.creates(), [], "the Job of the slot exists");
}

/// The next leader of the shard must observe what a former term wrote.
#[test]
fn a_write_of_a_former_term_counts_for_the_next_handover() {
    let mut replica = led_again();
    replica.answer(1, created());
    let held = replica.shards.held.get(&shard()).unwrap();
    assert_eq!(held.written_through().jobs, ResourceVersion(1_100));
}

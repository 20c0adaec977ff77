//! Tests of the order of the members: fixed values, and properties of the ring.

use super::*;

fn ring(identities: &[&str]) -> MemberRing {
    let members = identities.iter().map(|identity| (*identity).into()).collect();
    MemberRing::new(members, ShardCount::default())
}

#[test]
fn ring_order_is_stable() {
    let ring = ring(&["pod-a", "pod-b", "pod-c", "pod-d"]);
    for (shard, order) in [
        (0, [1, 3, 2, 0]),
        (1, [3, 0, 1, 2]),
        (100, [0, 2, 3, 1]),
        (255, [0, 1, 2, 3]),
    ] {
        assert_eq!(
            ring.preference(ShardId(shard)).collect::<Vec<_>>(),
            order,
            "shard {shard}"
        );
    }
}

#[test]
fn each_shard_ranks_every_member_once() {
    let identities: Vec<String> = (0..50).map(|number| format!("member-{number}")).collect();
    let ring = ring(&identities.iter().map(String::as_str).collect::<Vec<_>>());
    for shard in ShardCount::default().shards() {
        let mut order: Vec<usize> = ring.preference(shard).collect();
        let last = order.last().copied().unwrap();
        assert_eq!((ring.rank(shard, order[0]), ring.rank(shard, last)), (0, 49));
        order.sort_unstable();
        assert!(order.into_iter().eq(0..50), "{shard:?}");
    }
    assert_eq!(ring.rank(ShardId(0), 50), 50);
}

#[test]
fn an_empty_ring_has_no_preferences() {
    let ring = ring(&[]);
    assert_eq!(ring.preference(ShardId(0)).count(), 0);
}

#[test]
fn a_new_member_does_not_change_the_order_of_the_others() {
    let before = ring(&["a", "b", "d"]);
    let after = ring(&["a", "b", "c", "d"]);
    let former = [0, 1, 3];
    for shard in ShardCount::default().shards() {
        let expected: Vec<usize> = before.preference(shard).map(|member| former[member]).collect();
        let kept: Vec<usize> = after.preference(shard).filter(|member| *member != 2).collect();
        assert_eq!(kept, expected, "{shard:?}");
    }
}

//! Tests of fixed values, on which Leases in clusters and other versions depend.

use super::*;
use crate::shard::ShardSet;

impl ShardCount {
    /// One shard: cannot be balanced, but is small enough for a model check.
    pub(crate) const ONE: ShardCount = ShardCount { level: 0 };
}

fn shards(numbers: &[u16]) -> ShardSet {
    numbers.iter().copied().map(ShardId).collect()
}

fn count(number: u64) -> ShardCount {
    ShardCount::new(number).unwrap()
}

#[test]
fn a_uid_is_in_the_same_bucket_in_every_process_and_version() {
    for (uid, bucket) in [
        ("9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48", 141),
        ("00000000-0000-0000-0000-000000000000", 496),
        ("0190f3c2-7a5b-7c3d-8e4f-a1b2c3d4e5f6", 830),
        ("not-a-uuid", 906),
        ("", 815),
    ] {
        let found = Bucket::of(&Uid::new(uid));
        assert_eq!(found, Bucket::of_text(uid.as_bytes()), "{uid}");
        assert_eq!(found.0, bucket, "{uid}");
        assert_eq!(u64::from(bucket), fnv1a_64(uid.as_bytes()) >> 54, "{uid}");
    }
}

#[test]
fn every_shard_is_a_contiguous_range_of_buckets() {
    for number in [16, 64, 256, 1024] {
        let count = count(number);
        for bucket in (0..Bucket::COUNT).map(Bucket) {
            let shard = bucket.shard(count);
            assert!(count.has(shard), "{bucket:?} of {number}");
            assert_eq!(u64::from(shard.0), u64::from(bucket.0) * number / 1024);
        }
    }
}

#[test]
fn a_shard_count_is_a_power_of_two_from_16_to_1024() {
    for number in [16, 32, 64, 128, 256, 512, 1024] {
        assert_eq!(u64::from(count(number).get()), number);
    }
    assert_eq!(ShardCount::default().get(), 256);
    for number in [0, 1, 8, 17, 100, 1000, 2048, u64::MAX] {
        assert_eq!(ShardCount::new(number), None);
    }
}

#[test]
fn shard_set_ignores_out_of_range_shards() {
    let mut set = shards(&[1023, 1024, u16::MAX]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [ShardId(1023)]);
    assert!(!set.insert(ShardId(1023)) && set.insert(ShardId(0)));
    assert!(!set.remove(ShardId(1024)) && set.remove(ShardId(1023)) && !set.remove(ShardId(1023)));
    assert_eq!(
        (set.len(), set.is_empty(), set.contains(ShardId(1024))),
        (1, false, false)
    );
}

//! Tests of fixed values, on which labels in clusters and other versions depend.

use super::*;

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
            let hash = u64::from(bucket.0) << 54;
            let range = count.hash_range(shard);
            assert!((range.start..=range.last).contains(&hash), "{bucket:?} of {number}");
        }
    }
}

#[test]
fn a_shard_count_is_a_power_of_two_from_16_to_1024() {
    for number in [16, 32, 64, 128, 256, 512, 1024] {
        assert_eq!(u64::from(count(number).get()), number);
    }
    assert_eq!(ShardCount::default().get(), 256);
    for (number, nearest) in [
        (0, 16),
        (1, 16),
        (17, 16),
        (23, 16),
        (24, 32),
        (100, 128),
        (1000, 1024),
        (2048, 1024),
        (u64::MAX, 1024),
    ] {
        let error = ShardCount::new(number).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("shard count {number}: not a power of two from 16 to 1024; give {nearest}")
        );
    }
}

#[test]
fn shard_selector_has_half_open_hex_ranges() {
    let count = count(16);
    assert_eq!(
        count.shard_selector(&shards(&[0])).unwrap(),
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x1000000000000000')"
    );
    assert_eq!(
        count.shard_selector(&shards(&[3, 4, 5, 14, 15])).unwrap(),
        "shardRange(object.metadata.uid, '0x3000000000000000', '0x6000000000000000') || \
         shardRange(object.metadata.uid, '0xe000000000000000', '0x10000000000000000')"
    );
    assert_eq!(
        count.shard_selector(&ShardSet::all(count)).unwrap(),
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"
    );
    assert_eq!(count.shard_selector(&ShardSet::EMPTY), None);
}

#[test]
fn hash_ranges_of_shards_cover_all_hashes_without_overlap() {
    for number in [16, 256, 1024] {
        let count = count(number);
        let ranges: Vec<HashRange> = count.shards().map(|shard| count.hash_range(shard)).collect();
        assert_eq!(ranges.first().map(|range| range.start), Some(0));
        assert_eq!(ranges.last().map(|range| range.last), Some(u64::MAX));
        assert!(ranges.windows(2).all(|pair| pair[0].last + 1 == pair[1].start));
    }
}

#[test]
fn label_selector_lists_the_shards() {
    let count = count(256);
    assert_eq!(count.label_key(), "cronwheel.dev/shard-256");
    assert_eq!(
        count.label_selector(&shards(&[7, 0, 255])).unwrap(),
        "cronwheel.dev/shard-256 in (0,7,255)"
    );
    assert_eq!(count.label_selector(&ShardSet::EMPTY), None);
}

#[test]
fn shard_set_is_encoded_as_hex() {
    let count16 = count(16);
    let set = shards(&[0, 5, 6, 15]);
    assert_eq!(set.to_hex(count16), "8601");
    assert_eq!(ShardSet::from_hex("8601", count16), Some(set));
    assert_eq!(ShardSet::all(ShardCount::MAX).to_hex(ShardCount::MAX), "f".repeat(256));
    for text in ["", "860", "86010", "86g1", "86é"] {
        assert_eq!(ShardSet::from_hex(text, count16), None, "{text}");
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

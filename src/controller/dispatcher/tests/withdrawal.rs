//! Tests of requests that their shard withdraws.

use super::*;

/// Withdraws the request of a CronJob. Returns the answer if the request was not sent.
fn withdraw(bench: &Bench, namespace: &str, name: &str, shard_term: ShardTerm) -> Option<String> {
    let withdrawal = Withdrawal {
        cron_job: identity(namespace, name),
        job: None,
    };
    let TermedAnswer { answer, .. } = bench.queue.withdraw(shard_term, &withdrawal)?;
    let OrderAnswer::Create { cron_job, answer, .. } = answer else {
        panic!("not an answer to a create: {answer:?}");
    };
    Some(format!("{cron_job} {}", kind(&format!("{answer:?}"))))
}

#[tokio::test(start_paused = true)]
async fn queued_creates_are_withdrawn_from_every_lane() {
    let mut bench = Bench::new(Vec::new());
    let overdue = JobCreate {
        slot: after(-3_600),
        start: after(-3_600),
        is_on_time: false,
        late_from: None,
        ..order("a", "overdue", 60)
    };
    let mut unread = order("a", "unread", 60);
    unread.template = record(&cron_job("a", "unread", 1, "another image")).template;
    bench.push(Request::Create(overdue));
    bench.push(Request::Create(unread));
    bench.push(create("b", "other", 60));
    bench.push(create("b", "due", 60));
    for (namespace, name) in [("a", "overdue"), ("a", "unread"), ("b", "due")] {
        assert_eq!(
            withdraw(&bench, namespace, name, of_term(9)),
            None,
            "{name} of another term"
        );
        assert_eq!(
            withdraw(&bench, namespace, name, WHOLE),
            Some(format!("{name} Withdrawn"))
        );
        assert_eq!(withdraw(&bench, namespace, name, WHOLE), None, "{name} is gone");
    }
    bench.start();
    assert_eq!(bench.answer().await, "other Created");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.api.requests(), ["other"]);
    assert!(bench.answers.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_create_in_flight_cannot_be_withdrawn() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "sent", 60));
    bench.start();
    tokio::time::sleep(LATENCY / 2).await;
    assert_eq!(withdraw(&bench, "a", "sent", WHOLE), None);
    assert_eq!(bench.answer().await, "sent Created");
    // The next create of the CronJob is another request.
    bench.push(create("a", "sent", 60));
    assert_eq!(bench.answer().await, "sent Created");
}

#[tokio::test(start_paused = true)]
async fn a_create_withdrawn_in_flight_is_not_retried() {
    let throttled = Response::status(429, "TooManyRequests", "later");
    let mut bench = Bench::new(vec![Some(throttled)]);
    bench.push(create("a", "sent", 60));
    bench.start();
    tokio::time::sleep(LATENCY / 2).await;
    assert_eq!(withdraw(&bench, "a", "sent", WHOLE), None);
    assert_eq!(bench.answer().await, "sent Withdrawn");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.api.requests(), ["sent"]);
}

#[tokio::test(start_paused = true)]
async fn a_replace_delete_is_withdrawn_by_its_job_uid() {
    let mut bench = Bench::new(Vec::new());
    bench.push(replace_delete("a", "running"));
    bench.push(replace_delete("a", "other"));
    let withdrawal = Withdrawal {
        cron_job: identity("a", "hello"),
        job: Some(Uid::new("running")),
    };
    let answer = bench.queue.withdraw(WHOLE, &withdrawal);
    assert!(format!("{answer:?}").contains("Withdrawn"), "{answer:?}");
    bench.start();
    assert_eq!(bench.answer().await, "other Deleted");
    assert_eq!(bench.api.requests(), ["other"]);
}

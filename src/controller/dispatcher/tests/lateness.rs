//! Tests of the metric of lateness.

use super::*;

#[tokio::test(start_paused = true)]
async fn lateness_counts_each_created_job_once_and_from_its_due_instant() {
    let mut bench = Bench::new(Vec::new());
    let held = JobCreate {
        late_from: None,
        ..order("a", "held", 60)
    };
    let caught_up = JobCreate {
        is_on_time: false,
        n_attempts_before: 1,
        late_from: Some(after(-5_400)),
        ..order("a", "caught-up", 60)
    };
    for order in [held, caught_up, order("a", "due", 60)] {
        bench.push(Request::Create(order));
    }
    bench.start();
    bench.n_answers(3).await;
    let text = bench.metrics.text();
    assert!(text.contains("cronwheel_lateness_seconds_count 2"), "{text}");
    assert!(
        text.contains("cronwheel_lateness_seconds_bucket{le=\"3600\"} 1"),
        "the catch-up is 90 minutes late: {text}"
    );
}

/// The full channel of answers blocks the task between the decision and the send.
#[tokio::test(start_paused = true)]
async fn lateness_excludes_an_attempt_that_was_not_sent() {
    let mut bench = Bench::new(Vec::new());
    let dispatcher = bench.dispatcher.take().unwrap();
    let (answers_in, answers) = mpsc::channel(1);
    answers_in.try_send(filler()).unwrap();
    bench.answers = answers;
    bench.push(create("a", "one", 60));
    let stale = Queued::new(create("a", "stale", 90), of_term(0));
    bench.queue.push(stale, epoch()).unwrap();
    let channels = DispatcherChannels {
        answers: answers_in,
        ..dispatcher.channels
    };
    tokio::spawn(Dispatcher::new(bench.api.client(), bench.clock.clone(), channels, 128).run());
    tokio::time::sleep(Duration::from_secs(1)).await;
    doubt(&bench.clock);
    assert_eq!(bench.n_answers(2).await, ["filler Abandoned", "stale Abandoned"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(bench.api.requests().is_empty());
    trust(&bench.clock);
    assert_eq!(bench.answer().await, "one Created");
    let text = bench.metrics.text();
    assert!(text.contains("cronwheel_lateness_seconds_count 1"), "{text}");
    assert!(text.contains("cronwheel_lateness_seconds_sum 2\n"), "{text}");
}

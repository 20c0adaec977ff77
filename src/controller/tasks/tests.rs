//! Tests of the end of a run: by a signal, by a second signal, and by a task that ends unexpectedly.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::mpsc;

use super::*;
use crate::{
    controller::{clock::Clock, shutdown::phases},
    kube_api::latest_value::LatestSender,
};

/// A process of two tasks, with a log of their ends.
struct Bench {
    phases: PhaseSender,
    log: Arc<Mutex<Vec<&'static str>>>,
    signals: mpsc::Sender<&'static str>,
    received: mpsc::Receiver<&'static str>,
    went_back: LatestSender<bool>,
}

impl Bench {
    fn new() -> Bench {
        let (signals, received) = mpsc::channel(2);
        Bench {
            phases: phases(),
            log: Arc::default(),
            signals,
            received,
            went_back: LatestSender::new(false),
        }
    }

    /// Creates a task that ends `patience` after its phase is reached.
    fn task(&self, name: &'static str, ends_in: Phase, patience: Duration) -> Task {
        let (mut phase, log) = (self.phases.subscribe(), Arc::clone(&self.log));
        Task::spawn(name, ends_in, async move {
            phase.reached(ends_in).await;
            tokio::time::sleep(patience).await;
            log.lock().unwrap().push(name);
        })
    }

    async fn supervise(&mut self, tasks: Vec<Task>) -> Result<(), RuntimeError> {
        let (received, mut went_back) = (&mut self.received, self.went_back.subscribe());
        let next_signal = async || received.recv().await.unwrap();
        supervise(tasks, &self.phases, &mut went_back, next_signal).await
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_signal_each_phase_ends_before_the_next_begins() {
    let mut bench = Bench::new();
    let tasks = vec![
        bench.task("last", Phase::End, Duration::ZERO),
        bench.task("first", Phase::StopIntake, Duration::from_secs(5)),
    ];
    bench.signals.try_send("SIGTERM").unwrap();
    bench.supervise(tasks).await.unwrap();
    assert_eq!(*bench.log.lock().unwrap(), ["first", "last"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_the_process_at_once() {
    let mut bench = Bench::new();
    let hanging = bench.task("hanging", Phase::StopIntake, Duration::from_hours(1));
    let signals = bench.signals.clone();
    let watcher = bench.phases.subscribe();
    let second = tokio::spawn(async move {
        signals.send("SIGTERM").await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(watcher.has_reached(Phase::StopIntake), "the first begins the end");
        signals.send("SIGINT").await.unwrap();
    });
    let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
    let error = bench.supervise(vec![hanging]).await.unwrap_err();
    assert_eq!(error.to_string(), "SIGINT while going down: ended at once");
    assert_eq!(clock.boot().since_boot(), Duration::from_secs(3));
    assert!(!bench.phases.subscribe().has_reached(Phase::EndShards));
    second.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_unexpectedly_ends_the_process() {
    let mut bench = Bench::new();
    let lasting = bench.task("lasting", Phase::End, Duration::ZERO);
    let ending = Task::spawn("brief", Phase::End, async {});
    let error = bench.supervise(vec![lasting, ending]).await.unwrap_err();
    assert_eq!(error.to_string(), "the brief task ended unexpectedly");
    let failing = Task::spawn("failing", Phase::End, async { panic!("on purpose") });
    let error = bench.supervise(vec![failing]).await.unwrap_err();
    assert_eq!(error.to_string(), "the failing task failed");
}

#[tokio::test(start_paused = true)]
async fn an_older_history_ends_the_process_at_once() {
    let mut bench = Bench::new();
    let task = bench.task("hanging", Phase::End, Duration::from_hours(1));
    bench.went_back.set(true);
    let error = bench.supervise(vec![task]).await.unwrap_err();
    assert!(matches!(error, RuntimeError::HistoryWentBack), "{error}");
    assert!(bench.log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_task_ends_it() {
    let (alive, mut ended) = tokio::sync::mpsc::channel::<()>(1);
    let handle = tokio::spawn(async move {
        let _alive = alive;
        std::future::pending::<()>().await;
    });
    drop(Task {
        name: "endless",
        ends_in: Phase::End,
        handle,
    });
    assert_eq!(ended.recv().await, None);
}

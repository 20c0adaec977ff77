//! Tests of the version task against the in-memory API, on a simulated clock.

use std::sync::Mutex;

use apisim::{Api, Options, WallClock};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use tower::Service as _;

use super::*;

/// The query of a second watch.
const SECOND_WATCH: &str = "timeoutSeconds=3";

struct Bench {
    requests: mpsc::Sender<VersionRequest>,
    answers: mpsc::Receiver<VersionAnswer>,
    queries: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    /// A task whose API server refuses the first requests.
    fn new(n_refused: usize) -> Bench {
        let begun: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let api = Api::new(Options::default(), WallClock::starting_at(begun));
        let queries: Arc<Mutex<Vec<String>>> = Arc::default();
        let (recorded, server) = (Arc::clone(&queries), api.client("replica"));
        let recording = tower::service_fn(move |request: Request<Body>| {
            let mut queries = recorded.lock().unwrap();
            queries.push(request.uri().to_string());
            let answer = (queries.len() > n_refused).then(|| server.clone().call(request));
            async move {
                match answer {
                    Some(answer) => answer.await.map_err(Into::into),
                    None => Err("refused".into()),
                }
            }
        });
        let recording = tower::ServiceBuilder::new()
            .map_err(|error: tower::BoxError| error)
            .service(recording);
        let (requests, wanted) = mpsc::channel(1);
        let (answers_in, answers) = mpsc::channel(4);
        let task = VersionTask {
            client: kube::Client::new(recording, "default"),
            answers: answers_in,
            failures: FailureLog::default(),
            clock: Clock::simulated(begun),
        };
        tokio::spawn(task.run(wanted));
        Bench {
            requests,
            answers,
            queries,
        }
    }

    async fn request(&self, cron_jobs: u64, jobs: u64) {
        let reached = ResourceVersions {
            cron_jobs: ResourceVersion(cron_jobs),
            jobs: ResourceVersion(jobs),
        };
        let request = VersionRequest {
            reached: vec![(Scope::Cluster, reached)],
        };
        self.requests.send(request).await.unwrap();
    }

    async fn current(&mut self) -> ResourceVersions {
        match self.answers.recv().await.unwrap() {
            VersionAnswer::Current(versions) => versions[0],
            VersionAnswer::Unchanged(input) => panic!("{input:?}"),
        }
    }

    /// The resources of which the next answers show that they have not changed.
    async fn unchanged(&mut self, n_answers: usize) -> Vec<WatchedResource> {
        let mut unchanged = Vec::new();
        for _ in 0..n_answers {
            let answer = self.answers.recv().await.unwrap();
            let VersionAnswer::Unchanged(Input::WatchUpdated(update)) = answer else {
                panic!("{answer:?}")
            };
            unchanged.push(update.resource);
        }
        unchanged.sort();
        unchanged
    }

    fn n_second_watches(&self) -> usize {
        let queries = self.queries.lock().unwrap();
        queries.iter().filter(|query| query.contains(SECOND_WATCH)).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_by_current_versions_and_second_watches() {
    let mut bench = Bench::new(0);
    bench.request(1, 1).await;
    assert!(bench.current().await.cron_jobs >= ResourceVersion(1));
    let both = [WatchedResource::CronJobs, WatchedResource::Jobs];
    assert_eq!(bench.unchanged(2).await, both);
    assert_eq!(bench.n_second_watches(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_in_quick_succession_open_one_second_watch_after_another() {
    let mut bench = Bench::new(0);
    for _ in 0..20 {
        bench.request(1, 1).await;
        bench.current().await;
    }
    assert_eq!(bench.n_second_watches(), 2, "one of each resource");
    bench.unchanged(4).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.n_second_watches(), 4, "one more for the requests after the first");
}

#[tokio::test(start_paused = true)]
async fn current_versions_that_are_not_answered_are_requested_again() {
    let mut bench = Bench::new(6);
    bench.request(0, 0).await;
    bench.current().await;
    assert_eq!(bench.n_second_watches(), 0, "the watches have not listed");
}

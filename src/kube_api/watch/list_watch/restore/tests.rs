//! Tests against a scripted API server that answers requests in sequence and records their paths and queries.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt as _;
use http::{Request, Response};
use kube::{Client, client::Body};

use super::*;
use crate::{kube_api::watch, shard::Scope};

const LIST: &str = "/apis/batch/v1/jobs?&limit=2000";
const PROBE: &str = "/apis/batch/v1/jobs?&limit=1";

/// Clones share their state.
#[derive(Clone, Default)]
struct Script {
    requests: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
}

impl Script {
    fn answer(self, code: u16, body: &str) -> Script {
        self.answers.lock().unwrap().push_back((code, body.to_owned()));
        self
    }

    fn list_at(self, version: u64) -> Script {
        let list = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[]}}"#);
        self.answer(200, &list)
    }

    /// A watch that the server ends after a bookmark.
    fn watch_until(self, version: u64) -> Script {
        let bookmark =
            format!(r#"{{"kind":"Job","apiVersion":"batch/v1","metadata":{{"resourceVersion":"{version}"}}}}"#);
        self.answer(200, &format!("{{\"type\":\"BOOKMARK\",\"object\":{bookmark}}}\n"))
    }

    /// Watches until no answer is left. Asserts the requests, and the versions of other histories.
    async fn check(self, requests: &[String], went_back: &[(u64, u64)]) {
        let script = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path_and_query().unwrap().to_string();
            script.requests.lock().unwrap().push(path);
            let answer = script.answers.lock().unwrap().pop_front();
            async move {
                let Some((code, body)) = answer else {
                    return std::future::pending().await;
                };
                let answer = Response::builder().status(code).body(Body::from(body.into_bytes()));
                Ok::<_, Infallible>(answer.unwrap())
            }
        });
        let mut items = pin!(watch::jobs(Client::new(service, "default"), Scope::Cluster));
        let mut reported = Vec::new();
        // Time is virtual: it advances once nothing else can happen.
        while let Ok(item) = tokio::time::timeout(Duration::from_mins(1), items.next()).await {
            if let Some(WatchItem::HistoryWentBack { newest, current }) = item {
                reported.push((newest.0, current.0));
            }
        }
        assert_eq!(*self.requests.lock().unwrap(), requests);
        assert_eq!(reported, went_back);
    }
}

/// The watch from a version.
fn watch_from(version: u64) -> String {
    format!("/apis/batch/v1/jobs?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion={version}")
}

fn requests(requests: &[&str]) -> Vec<String> {
    requests.iter().map(|request| (*request).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_watch_resumes_only_in_the_same_history() {
    let script = Script::default()
        .list_at(70)
        .watch_until(75)
        .list_at(75)
        .watch_until(75);
    let script = script.list_at(74).list_at(74);
    let before = requests(&[LIST, &watch_from(70), PROBE, &watch_from(75), PROBE]);
    let after = requests(&[LIST, &watch_from(74)]);
    script.check(&[before, after].concat(), &[(75, 74)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_after_an_interrupted_watch_is_checked_too() {
    let script = Script::default().list_at(70).answer(410, "").list_at(12).list_at(12);
    let expected = requests(&[LIST, &watch_from(70), LIST, LIST, &watch_from(12)]);
    script.check(&expected, &[(70, 12)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_history_check_does_not_resume_the_watch() {
    let script = Script::default()
        .list_at(70)
        .watch_until(70)
        .answer(503, "away")
        .list_at(70);
    let expected = requests(&[LIST, &watch_from(70), PROBE, PROBE, &watch_from(70)]);
    script.check(&expected, &[]).await;
}

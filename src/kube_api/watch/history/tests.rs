//! Tests against a scripted API server that answers requests in sequence and records their paths and queries.

use std::{collections::VecDeque, sync::Mutex};

use super::*;

/// Clones share their state.
#[derive(Clone, Default)]
struct Script {
    requests: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
}

impl Script {
    fn client(&self, went_back: &OrderedSender<bool>) -> Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let script = script.clone();
            async move {
                let path = request.uri().path_and_query().unwrap().to_string();
                script.requests.lock().unwrap().push(path);
                let (code, body) = script.answers.lock().unwrap().pop_front().expect("an answer");
                let mut answer = Response::new(Full::new(Bytes::from(body)));
                *answer.status_mut() = code.try_into().unwrap();
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        checked_history(Client::new(service, "default"), went_back.clone())
    }

    fn answer(&self, code: u16, body: &str) {
        self.answers.lock().unwrap().push_back((code, body.to_owned()));
    }

    fn list_at(&self, version: u64) {
        self.answer(
            200,
            &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[]}}"#),
        );
    }

    fn n_requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn get(client: &Client, path: &str) -> (u16, Bytes) {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().unwrap();
    let (head, body) = client.send(request).await.unwrap().into_parts();
    (head.status.as_u16(), body.collect().await.unwrap().to_bytes())
}

const WATCH: &str = "/apis/batch/v1/jobs?watch=true&resourceVersion=70";

#[tokio::test]
async fn an_interrupted_watch_resumes_only_in_the_same_history() {
    let (script, went_back) = (Script::default(), OrderedSender::new(false));
    let client = script.client(&went_back);
    script.answer(200, "");
    assert_eq!(get(&client, WATCH).await.0, 200);
    assert_eq!(script.n_requests(), 1, "the first watch follows a list without a check");
    script.list_at(70);
    script.answer(200, "");
    assert_eq!(get(&client, WATCH).await.0, 200);
    assert_eq!(script.requests.lock().unwrap()[1], "/apis/batch/v1/jobs?limit=1");
    assert!(!went_back.get());
    script.list_at(69);
    let (code, body) = get(&client, WATCH).await;
    assert_eq!((code, &body[..]), (410, EXPIRED.as_bytes()));
    assert!(went_back.get());
}

#[tokio::test]
async fn a_list_after_an_interrupted_watch_is_checked_too() {
    let (script, went_back) = (Script::default(), OrderedSender::new(false));
    let client = script.client(&went_back);
    script.answer(500, "");
    get(&client, WATCH).await;
    script.list_at(12);
    assert_eq!(get(&client, "/apis/batch/v1/jobs?limit=500").await.0, 410);
    assert!(went_back.get());
}

#[tokio::test]
async fn a_failed_history_check_does_not_resume_the_watch() {
    let (script, went_back) = (Script::default(), OrderedSender::new(false));
    let client = script.client(&went_back);
    script.answer(200, "");
    get(&client, WATCH).await;
    script.answer(503, "away");
    assert_eq!(get(&client, WATCH).await.0, 503);
    assert_eq!(script.n_requests(), 2, "the watch is not opened");
    script.list_at(70);
    script.answer(200, "");
    assert_eq!(get(&client, WATCH).await.0, 200);
    assert!(!went_back.get());
}

#[tokio::test]
async fn a_dropped_watch_is_reopened_without_a_check() {
    let (script, went_back) = (Script::default(), OrderedSender::new(false));
    let client = script.client(&went_back);
    for n_requests in 1..=3 {
        script.answer(200, "");
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = WATCH.parse().unwrap();
        drop(client.send(request).await.unwrap());
        assert_eq!(script.n_requests(), n_requests);
    }
}

//! Tests of the size of pages, against a server whose objects all have the same size.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;

use super::*;
use crate::kube_api::objects::decode::CronJobText;

/// Returns a client of a server with pages of objects of this size, and the limits that the server receives.
fn server(object_bytes: usize) -> (Client, Arc<Mutex<Vec<usize>>>) {
    let limits = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&limits);
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap();
        let mut parameters = query.split('&');
        let limit = parameters.find_map(|parameter| parameter.strip_prefix("limit="));
        let limit: usize = limit.unwrap().parse().unwrap();
        recorded.lock().unwrap().push(limit);
        let items = vec![format!("\"{}\"", "x".repeat(object_bytes)); limit].join(",");
        let list = format!(r#"{{"metadata":{{"resourceVersion":"7","continue":"more"}},"items":[{items}]}}"#);
        async move { Ok::<_, kube::Error>(Response::new(Body::from(list.into_bytes()))) }
    });
    (Client::new(service, "default"), limits)
}

async fn check(object_bytes: usize, n_pages: usize, expected: &[usize]) {
    let (client, limits) = server(object_bytes);
    let collection = Collection::new::<CronJobText>(client, &Scope::Cluster);
    let mut pager = collection.list();
    for _ in 0..n_pages {
        let page: Page<IgnoredAny> = pager.next_page().await.unwrap();
        assert_eq!(Some(&page.items.len()), limits.lock().unwrap().last());
    }
    assert_eq!(*limits.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_page_of_large_objects_is_repeated_with_a_limit_that_later_pages_keep() {
    check(100, 2, &[2_000, 2_000]).await;
    check(20 << 10, 3, &[2_000, 250, 250, 250]).await;
}

#[tokio::test]
async fn one_object_may_have_any_size() {
    let (client, limits) = server(33 << 20);
    let collection = Collection::new::<CronJobText>(client, &Scope::Cluster);
    let version = collection.current_version().await.unwrap();
    assert_eq!((version.0, limits.lock().unwrap().len()), (7, 1));
}

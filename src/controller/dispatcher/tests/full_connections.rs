//! Tests of creates that wait for a place on a connection, which other requests occupy.

use tokio::sync::Semaphore;

use super::*;
use crate::{
    coordination::Timing,
    kube_api::http::MAX_IN_FLIGHT_PER_CONNECTION,
    shard::{BootInstant, held_shards::WHOLE},
};

/// A dispatcher with one connection whose places are all taken until `probes_end`.
struct FullConnection {
    bench: Bench,
    /// Gets permits when the requests in flight may end.
    probes_end: Arc<Semaphore>,
    /// The time after which the server gives up each create, in milliseconds.
    creates: Arc<Mutex<Vec<Option<u128>>>>,
}

impl FullConnection {
    async fn new(leadership: Leadership) -> FullConnection {
        let mut bench = Bench::new(Vec::new());
        let (probes_end, creates) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<_>>>::default());
        let (hold, sent) = (Arc::clone(&probes_end), Arc::clone(&creates));
        let api = fake_server::client(&bench.clock, 1, move |received| {
            let (hold, sent) = (Arc::clone(&hold), Arc::clone(&sent));
            async move {
                if received.method == Method::POST {
                    sent.lock()
                        .unwrap()
                        .push(received.timeout().map(|life| life.as_millis()));
                } else {
                    hold.acquire().await.unwrap().forget();
                }
                Response::stored(1)
            }
        });
        for _ in 0..MAX_IN_FLIGHT_PER_CONNECTION {
            let api = api.clone();
            tokio::spawn(async move { api.probe().await });
        }
        let dispatcher = bench.dispatcher.take().unwrap();
        let mut channels = dispatcher.channels;
        bench.leadership = LatestSender::new(leadership);
        channels.leadership = bench.leadership.subscribe();
        tokio::time::sleep(Duration::from_millis(10)).await;
        bench.push(create("a", "one", 60));
        tokio::spawn(Dispatcher::new(api, bench.clock.clone(), channels, 128).run());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(creates.lock().unwrap().is_empty());
        FullConnection {
            bench,
            probes_end,
            creates,
        }
    }

    fn boot(&self) -> BootInstant {
        self.bench.clock.boot()
    }

    /// Ends the requests in flight; returns the answer to the create.
    async fn end_probes(&mut self) -> String {
        self.probes_end.add_permits(MAX_IN_FLIGHT_PER_CONNECTION);
        self.bench.answer().await
    }

    fn creates(&self) -> Vec<Option<u128>> {
        self.creates.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_that_waits_for_a_connection_is_not_sent_after_the_fence() {
    let mut full = FullConnection::new(Leadership::of_one(WHOLE)).await;
    let fence = full.boot();
    full.bench
        .leadership
        .send_modify(|leadership| assert!(leadership.set_until(fence)));
    assert_eq!(full.end_probes().await, "one Abandoned");
    assert_eq!(full.creates(), []);
}

#[tokio::test(start_paused = true)]
async fn the_lifetime_of_a_create_counts_from_its_place_on_a_connection() {
    let start = BootInstant::after_boot(Duration::ZERO);
    let mut leadership = Leadership::of_none_until(start + Duration::from_secs(7), 1, Timing::DEFAULT);
    leadership.begin(WHOLE);
    let mut full = FullConnection::new(leadership.clone()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let limits = leadership.write_limits(WHOLE, full.boot(), Duration::ZERO);
    assert_eq!(full.end_probes().await, "one Created");
    assert_eq!(full.creates(), [Some(limits.life.as_millis())]);
}

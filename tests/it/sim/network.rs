//! The way between a controller and the API server: it takes its time, and loses messages in either direction.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use apisim::{Api, ApiBody, ConnectionLost};
use http::{Request, Response};
use kube::{Client, client::Body};
use tower::Service as _;

use crate::random::Random;

/// A message gets lost once in so many.
const LOST_ONE_IN: u64 = 200;

#[derive(Clone)]
pub(super) struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    random: Mutex<Random>,
    is_lossy: bool,
    n_lost: AtomicU64,
}

impl Network {
    pub(super) fn new(seed: u64, is_lossy: bool) -> Network {
        Network {
            shared: Arc::new(Shared {
                random: Mutex::new(Random::new(!seed)),
                is_lossy,
                n_lost: AtomicU64::new(0),
            }),
        }
    }

    /// How many messages were lost so far.
    pub(super) fn n_lost(&self) -> u64 {
        self.shared.n_lost.load(Ordering::Relaxed)
    }

    /// A client over it.
    pub(super) fn client(&self, api: &Api, name: &str) -> Client {
        let (network, service) = (self.clone(), api.client(name));
        let ask = move |request: Request<Body>| {
            let (network, mut service) = (network.clone(), service.clone());
            async move {
                network.carry().await?;
                let answer: Response<ApiBody> = service.call(request).await?;
                network.carry().await?;
                Ok::<_, ConnectionLost>(answer)
            }
        };
        Client::new(tower::service_fn(ask), "default")
    }

    /// One way.
    async fn carry(&self) -> Result<(), ConnectionLost> {
        let (delay, is_lost) = {
            let mut random = self.shared.random.lock().unwrap();
            let delay = Duration::from_millis(random.next() % 20);
            (delay, self.shared.is_lossy && random.is_one_in(LOST_ONE_IN))
        };
        tokio::time::sleep(delay).await;
        if is_lost {
            self.shared.n_lost.fetch_add(1, Ordering::Relaxed);
            return Err(ConnectionLost);
        }
        Ok(())
    }
}

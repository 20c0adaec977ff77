//! Service times: simulates a server with one storage. Writes run one after another, and so do reads. Requests beyond a
//! maximum in flight get 429.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::{clock::instant, failure::Failure};

/// How long requests take. By default they take no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceTimes {
    /// The duration of a write. For example, a server with 1,000 writes a second takes a millisecond.
    pub write: Duration,
    /// The duration of a read, both for gets and lists.
    pub read: Duration,
    /// The maximum number of requests in flight, without watches. `None` means unlimited.
    pub in_flight_max: Option<usize>,
}

/// The queue for the storage. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Queue(Arc<Mutex<State>>);

struct State {
    times: ServiceTimes,
    n_in_flight: usize,
    write_free_at: Instant,
    read_free_at: Instant,
}

/// A request in flight, until it is dropped.
pub(crate) struct InFlight(Queue);

impl Queue {
    pub(crate) fn new(times: ServiceTimes) -> Queue {
        let now = instant();
        Queue(Arc::new(Mutex::new(State {
            times,
            n_in_flight: 0,
            write_free_at: now,
            read_free_at: now,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, times: ServiceTimes) {
        self.lock().times = times;
    }

    /// Waits for the request's turn and for its service time.
    pub(crate) async fn serve(&self, is_write: bool) -> Result<InFlight, Failure> {
        let (done, in_flight) = self.enter(is_write)?;
        if done > instant() {
            sleep_until(done).await;
        }
        Ok(in_flight)
    }

    fn enter(&self, is_write: bool) -> Result<(Instant, InFlight), Failure> {
        let mut state = self.lock();
        if state.times.in_flight_max.is_some_and(|max| state.n_in_flight >= max) {
            return Err(Failure::too_many_requests(1));
        }
        state.n_in_flight += 1;
        let State {
            times,
            write_free_at,
            read_free_at,
            ..
        } = &mut *state;
        let (free_at, time) = if is_write {
            (write_free_at, times.write)
        } else {
            (read_free_at, times.read)
        };
        *free_at = (*free_at).max(instant()) + time;
        Ok((*free_at, InFlight(self.clone())))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.n_in_flight = state.n_in_flight.saturating_sub(1);
    }
}

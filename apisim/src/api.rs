//! The API as a whole: one store, its front ends and its clock. A client is a handle to the API and a tower service.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    Resource,
    clock::{WallClock, instant},
    faults::Faults,
    front_end::FrontEnd,
    objects::validation::Checks,
    random::Random,
    registry::{Moment, Registry, Target},
    service::ApiService,
    service_time::{Queue, ServiceTimes},
    store::Store,
};

/// Options for a new API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed for uids, generated names and the durations of watches.
    pub seed: u64,
    /// Number of changes kept per kind for watches and older lists. Older versions get 410.
    pub log_capacity: usize,
    /// Number of API servers on the shared store, numbered from 0.
    pub n_front_ends: usize,
    /// Namespaces that exist from the start.
    pub namespaces: Vec<String>,
    /// Interval of bookmarks on watches that request them.
    pub bookmark_interval: Duration,
    /// How validation checks schedules and time zones.
    pub checks: Checks,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            // Enough for one change to each of 50,000 objects. A change holds about 2 KiB each for the new and the old
            // object.
            log_capacity: 50_000,
            n_front_ends: 1,
            namespaces: ["default", "kube-system", "kube-public", "kube-node-lease"]
                .map(ToOwned::to_owned)
                .to_vec(),
            // The interval of the real API server.
            bookmark_interval: Duration::from_mins(1),
            checks: Checks::default(),
        }
    }
}

/// An in-memory Kubernetes API. Clones are cheap and refer to the same API.
#[derive(Clone)]
pub struct Api {
    pub(crate) shared: Arc<Shared>,
}

/// The contents of the store at one instant.
#[derive(Clone)]
pub struct Snapshot(Store);

pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) clock: WallClock,
    pub(crate) bookmark_interval: Duration,
    pub(crate) faults: Faults,
    pub(crate) queue: Queue,
}

pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) front_ends: Vec<FrontEnd>,
    pub(crate) random: Random,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moment(&self, front_end: usize) -> Moment {
        Moment {
            wall: self.wall(front_end),
            at: instant(),
        }
    }

    /// Returns the wall time on the clock of a front end.
    pub(crate) fn wall(&self, front_end: usize) -> Timestamp {
        let now = self.clock.now();
        let state = self.state();
        let ahead = state.front_ends.get(front_end).map(|front_end| front_end.clock_ahead);
        now.saturating_add(ahead.unwrap_or_default()).unwrap_or(now)
    }
}

impl Api {
    /// Creates an API that contains only its namespaces.
    pub fn new(options: Options, clock: WallClock) -> Api {
        let mut random = Random::new(options.seed);
        let registry = Registry::new(options.log_capacity, Random::new(random.bits()), options.checks);
        let faults = Faults::new(Random::new(random.bits()), instant());
        let shared = Shared {
            state: Mutex::new(State {
                registry,
                front_ends: vec![FrontEnd::default(); options.n_front_ends.max(1)],
                random,
            }),
            clock,
            bookmark_interval: options.bookmark_interval,
            faults,
            queue: Queue::new(ServiceTimes::default()),
        };
        let api = Api {
            shared: Arc::new(shared),
        };
        for namespace in &options.namespaces {
            api.create_namespace(namespace);
        }
        api
    }

    /// Creates a namespace, unless it exists.
    pub fn create_namespace(&self, name: &str) {
        let resource = Resource::Namespace;
        let target = Target {
            resource,
            namespace: None,
            name: "",
            writer: "",
        };
        let object = json!({"kind": resource.kind(), "apiVersion": resource.api_version(), "metadata": {"name": name}});
        let moment = self.shared.moment(0);
        let _exists_or_created = self.shared.state().registry.create(target, object, false, moment);
    }

    /// Returns a client with this name, connected to the first front end.
    pub fn client(&self, name: &str) -> ApiService {
        ApiService::new(self.clone(), name)
    }

    /// Sets how long a front end hides changes from watches and from lists with `resourceVersion=0`. A change that was
    /// visible stays visible. Unknown front ends are ignored.
    pub fn set_lag(&self, front_end: usize, lag: Duration) {
        let mut state = self.shared.state();
        let State {
            registry, front_ends, ..
        } = &mut *state;
        if let Some(front_end) = front_ends.get_mut(front_end) {
            front_end.set_lag(lag, &registry.store, instant());
        }
        for resource in Resource::ALL {
            registry.store.changed(resource).notify_waiters();
        }
    }

    /// Sets the clock of a front end ahead of the right time, or behind it. The offset affects the `Date` header and
    /// the times that the front end writes into objects. Unknown front ends are ignored.
    pub fn set_clock_ahead(&self, front_end: usize, by: SignedDuration) {
        if let Some(front_end) = self.shared.state().front_ends.get_mut(front_end) {
            front_end.clock_ahead = by;
        }
    }

    /// The fault rules, which can be added and removed.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Sets how long later requests take.
    pub fn set_service_times(&self, times: ServiceTimes) {
        self.shared.queue.set(times);
    }

    /// Forgets all changes so far. Requests for a version before the last change of a kind then get 410.
    pub fn compact(&self) {
        let mut state = self.shared.state();
        let version = state.registry.store.version();
        state.registry.store.compact(version);
    }

    /// Copies the store, as `etcdctl snapshot save` does.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shared.state().registry.store.clone())
    }

    /// Restores a snapshot, as `etcdutl snapshot restore --bump-revision --mark-compacted` does. With a `bump` of 0,
    /// versions go back as well, as they do without these flags. In a real cluster the API servers restart after a
    /// restore; add an outage at the same time to break the watches.
    pub fn restore(&self, snapshot: &Snapshot, bump: u64) {
        let mut state = self.shared.state();
        state.registry.store.restore(&snapshot.0, bump);
        for front_end in &mut state.front_ends {
            front_end.restart();
        }
    }

    /// Returns the version of the last change.
    pub fn version(&self) -> u64 {
        self.shared.state().registry.store.version()
    }

    /// Returns the number of objects of a kind.
    pub fn count(&self, resource: Resource) -> usize {
        self.shared.state().registry.store.count(resource)
    }
}

//! The API as a whole: one store, its front ends, its clock. Handles to it are clients, each a tower service.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    clock::{WallClock, instant},
    faults::Faults,
    front_end::FrontEnd,
    objects::validation::Checks,
    random::Random,
    registry::{Moment, Registry, Target},
    resource::Resource,
    service::ApiService,
    service_time::{Queue, ServiceTimes},
    store::Store,
};

/// How an API is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where uids, generated names and the lengths of watches come from.
    pub seed: u64,
    /// Changes that are kept of each kind for watches and older lists; beyond them is 410.
    pub log_capacity: usize,
    /// API servers on the one store, numbered from 0.
    pub n_front_ends: usize,
    /// Namespaces that are there from the beginning.
    pub namespaces: Vec<String>,
    /// How often a watch that wants bookmarks gets one.
    pub bookmark_interval: Duration,
    /// What validation asks about schedules and zones.
    pub checks: Checks,
    /// Whether `shardSelector` selects: the feature gate `ShardedListAndWatch`, off as there.
    pub serves_shard_selectors: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            // A burst of a change for each of 50,000 objects, at about 2 KiB each for new and old.
            log_capacity: 50_000,
            n_front_ends: 1,
            namespaces: ["default", "kube-system", "kube-public", "kube-node-lease"]
                .map(ToOwned::to_owned)
                .to_vec(),
            // As the API server's.
            bookmark_interval: Duration::from_mins(1),
            checks: Checks::default(),
            serves_shard_selectors: false,
        }
    }
}

/// An in-memory Kubernetes API. Cheap to clone; all clones are the same API.
#[derive(Clone)]
pub struct Api {
    pub(crate) shared: Arc<Shared>,
}

/// Everything that was stored at an instant.
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

    /// The wall time by the clock of a front end.
    pub(crate) fn wall(&self, front_end: usize) -> Timestamp {
        let now = self.clock.now();
        let state = self.state();
        let ahead = state.front_ends.get(front_end).map(|front_end| front_end.clock_ahead);
        now.saturating_add(ahead.unwrap_or_default()).unwrap_or(now)
    }
}

impl Api {
    /// An API with nothing in it but its namespaces.
    pub fn new(options: Options, clock: WallClock) -> Api {
        let mut random = Random::new(options.seed);
        let registry = Registry::new(options.log_capacity, Random::new(random.bits()), options.checks);
        let faults = Faults::new(Random::new(random.bits()), instant());
        let front_end = FrontEnd::new(options.serves_shard_selectors);
        let shared = Shared {
            state: Mutex::new(State {
                registry,
                front_ends: vec![front_end; options.n_front_ends.max(1)],
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

    /// Creates a namespace; one that is there stays.
    pub fn create_namespace(&self, name: &str) {
        let resource = Resource::Namespace;
        let target = Target {
            resource,
            namespace: None,
            name: "",
        };
        let object = json!({"kind": resource.kind(), "apiVersion": resource.api_version(), "metadata": {"name": name}});
        let moment = self.shared.moment(0);
        let _exists_or_created = self.shared.state().registry.create(target, object, false, moment);
    }

    /// A client by name, at the first front end.
    pub fn client(&self, name: &str) -> ApiService {
        ApiService::new(self.clone(), name)
    }

    /// How long changes stay hidden from watches and from lists of `resourceVersion=0` at a front end. What was shown
    /// stays shown. An unknown front end is none.
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

    /// Whether `shardSelector` selects at a front end, for requests from now on: API servers of one cluster may have
    /// other feature gates. An unknown front end is none.
    pub fn set_serves_shard_selectors(&self, front_end: usize, serves: bool) {
        if let Some(front_end) = self.shared.state().front_ends.get_mut(front_end) {
            front_end.serves_shard_selectors = serves;
        }
    }

    /// Sets the clock of a front end ahead of the right time, or behind it. It shows in `Date` and in what the front end
    /// stamps on objects. An unknown front end is none.
    pub fn set_clock_ahead(&self, front_end: usize, by: SignedDuration) {
        if let Some(front_end) = self.shared.state().front_ends.get_mut(front_end) {
            front_end.clock_ahead = by;
        }
    }

    /// What goes wrong: rules to add and to take away.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// How long requests take from now on.
    pub fn set_service_times(&self, times: ServiceTimes) {
        self.shared.queue.set(times);
    }

    /// Forgets all changes up to now, so that a version before the last change of a kind is 410.
    pub fn compact(&self) {
        let mut state = self.shared.state();
        let version = state.registry.store.version();
        state.registry.store.compact(version);
    }

    /// What is stored now, as `etcdctl snapshot save` keeps it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shared.state().registry.store.clone())
    }

    /// Goes back to a snapshot, as `etcdutl snapshot restore --bump-revision --mark-compacted` does; with a `bump` of 0
    /// versions go back too, as without these flags. The API servers of a cluster restart then: an outage at the same
    /// time breaks the watches.
    pub fn restore(&self, snapshot: &Snapshot, bump: u64) {
        let mut state = self.shared.state();
        state.registry.store.restore(&snapshot.0, bump);
        for front_end in &mut state.front_ends {
            front_end.restart();
        }
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.shared.state().registry.store.version()
    }

    /// How many objects of a kind there are.
    pub fn count(&self, resource: Resource) -> usize {
        self.shared.state().registry.store.count(resource)
    }
}

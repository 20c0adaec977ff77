//! What goes wrong, on purpose: rules that a test scripts, each for some clients and requests, for a time, by chance from the seed.
//!
//! The same rules, seed and requests give the same faults. Rules are asked in their order: delays add up, the first
//! other fault of a request stands.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{failure::Failure, random::Random, resource::Resource, verb::Verb};

/// What a rule does to a request or a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request waits before it is looked at.
    Delay {
        /// At least so long.
        shortest: Duration,
        /// At most so long.
        longest: Duration,
    },
    /// The connection breaks, and nothing was done.
    DropBefore,
    /// The request is carried out, and the connection breaks before the answer.
    DropAfter,
    /// 403: admission denies it, with this text.
    Forbid(String),
    /// 403: the authorizer does not permit it, and an access review says so.
    NotPermitted,
    /// 409: somebody was faster.
    Conflict,
    /// 410: what is asked for is too old.
    Expired,
    /// 429, with `Retry-After`.
    Throttle {
        /// In seconds.
        retry_after_seconds: u64,
    },
    /// 500.
    InternalError,
    /// 503.
    Unavailable,
    /// A list shows what was so long ago.
    StaleList {
        /// The age of what it shows.
        age: Duration,
    },
    /// A watch ends as if its time were up: when it is opened, and after each event, each by the rule's chance.
    CloseWatch,
    /// A watch that is open says nothing while the rule holds, not even that its time is up.
    StallWatch,
    /// Each event of a watch comes so much after the one before.
    SlowWatch {
        /// Between two events.
        pause: Duration,
    },
    /// There is no server: every connection breaks, watches too.
    Outage,
}

/// A fault, for whom, when and how often.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What goes wrong.
    pub fault: Fault,
    /// For this client alone.
    pub client: Option<String>,
    /// At this front end alone.
    pub front_end: Option<usize>,
    /// For this kind alone.
    pub resource: Option<Resource>,
    /// For requests about this namespace alone. Requests about all namespaces are not concerned.
    pub namespace: Option<String>,
    /// For these verbs alone; for all where there are none.
    pub verbs: Vec<Verb>,
    /// Since the API was made.
    pub during: Range<Duration>,
    /// In so many of a million cases.
    pub per_million: u32,
    /// No more often than this.
    pub times_max: Option<u32>,
}

impl Rule {
    /// This fault for everybody, always.
    pub fn new(fault: Fault) -> Rule {
        Rule {
            fault,
            client: None,
            front_end: None,
            resource: None,
            namespace: None,
            verbs: Vec::new(),
            during: Duration::ZERO..Duration::MAX,
            per_million: 1_000_000,
            times_max: None,
        }
    }

    fn concerns(&self, asker: &Asker<'_>, elapsed: Duration) -> bool {
        self.during.contains(&elapsed)
            && self.times_max != Some(0)
            && self.client.as_deref().is_none_or(|client| client == asker.client)
            && self.front_end.is_none_or(|front_end| front_end == asker.front_end)
            && self.resource.is_none_or(|resource| Some(resource) == asker.resource)
            && (self.namespace.is_none() || self.namespace.as_deref() == asker.namespace)
            && (self.verbs.is_empty() || self.verbs.contains(&asker.verb))
    }
}

/// A rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u64);

/// The rules of an API. Cheap to clone; all clones are the same rules.
#[derive(Clone)]
pub struct Faults {
    rules: Arc<Mutex<Rules>>,
    /// Woken when rules come or go.
    pub(crate) changed: Arc<Notify>,
    begun: Instant,
}

struct Rules {
    listed: Vec<(RuleId, Rule)>,
    /// How often each rule has struck, also of those that are gone.
    counts: BTreeMap<RuleId, u64>,
    next_id: u64,
    random: Random,
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) client: &'a str,
    pub(crate) front_end: usize,
    pub(crate) verb: Verb,
    pub(crate) resource: Option<Resource>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) refusal: Option<Failure>,
    pub(crate) is_dropped_before: bool,
    pub(crate) is_dropped_after: bool,
    pub(crate) stale_by: Option<Duration>,
}

/// What becomes of an open watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchState {
    pub(crate) is_broken: bool,
    pub(crate) is_stalled: bool,
    pub(crate) pause: Duration,
    /// When a rule begins or ceases to hold by itself.
    pub(crate) next_change: Option<Instant>,
}

impl Faults {
    pub(crate) fn new(random: Random, begun: Instant) -> Faults {
        Faults {
            rules: Arc::new(Mutex::new(Rules {
                listed: Vec::new(),
                counts: BTreeMap::new(),
                next_id: 0,
                random,
            })),
            changed: Arc::new(Notify::new()),
            begun,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule after those that there are.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.lock();
        let id = RuleId(rules.next_id);
        rules.next_id += 1;
        rules.listed.push((id, rule));
        drop(rules);
        self.changed.notify_waiters();
        id
    }

    /// Takes a rule away.
    pub fn remove(&self, id: RuleId) {
        self.lock().listed.retain(|(known, _)| *known != id);
        self.changed.notify_waiters();
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.lock().listed.clear();
        self.changed.notify_waiters();
    }

    /// How often a rule has struck a request, or closed a watch.
    pub fn count(&self, id: RuleId) -> u64 {
        self.lock().counts.get(&id).copied().unwrap_or_default()
    }

    /// What becomes of a request that comes now.
    pub(crate) fn verdict(&self, asker: &Asker<'_>, now: Instant) -> Verdict {
        let elapsed = now.duration_since(self.begun);
        let mut verdict = Verdict::default();
        let Rules {
            listed, random, counts, ..
        } = &mut *self.lock();
        for (id, rule) in listed {
            let is_settled = verdict.is_settled();
            let is_of_requests = !matches!(
                rule.fault,
                Fault::CloseWatch | Fault::StallWatch | Fault::SlowWatch { .. }
            );
            if is_of_requests && !is_settled && rule.concerns(asker, elapsed) && random.happens(rule.per_million) {
                rule.count();
                *counts.entry(*id).or_default() += 1;
                verdict.take(&rule.fault, asker, random);
            }
        }
        verdict
    }

    /// Whether the authorizer would permit a request. Rules that strike by chance or a number of times do not count.
    pub(crate) fn is_permitted(&self, asker: &Asker<'_>, now: Instant) -> bool {
        let elapsed = now.duration_since(self.begun);
        let forbids = |rule: &Rule| {
            let is_certain = rule.per_million >= 1_000_000 && rule.times_max.is_none();
            rule.fault == Fault::NotPermitted && is_certain && rule.concerns(asker, elapsed)
        };
        !self.lock().listed.iter().any(|(_, rule)| forbids(rule))
    }

    /// What becomes of an open watch for now.
    pub(crate) fn watch_state(&self, asker: &Asker<'_>, now: Instant) -> WatchState {
        let elapsed = now.duration_since(self.begun);
        let rules = self.lock();
        let mut state = WatchState::default();
        for (_, rule) in &rules.listed {
            let bounds = [rule.during.start, rule.during.end];
            let next = bounds
                .into_iter()
                .filter(|at| *at > elapsed)
                .filter_map(|at| self.begun.checked_add(at))
                .min();
            state.next_change = [state.next_change, next].into_iter().flatten().min();
            if !rule.concerns(asker, elapsed) {
                continue;
            }
            match rule.fault {
                Fault::Outage => state.is_broken = true,
                Fault::StallWatch => state.is_stalled = true,
                Fault::SlowWatch { pause } => state.pause += pause,
                Fault::Delay { .. }
                | Fault::DropBefore
                | Fault::DropAfter
                | Fault::Forbid(_)
                | Fault::NotPermitted
                | Fault::Conflict
                | Fault::Expired
                | Fault::Throttle { .. }
                | Fault::InternalError
                | Fault::Unavailable
                | Fault::StaleList { .. }
                | Fault::CloseWatch => {}
            }
        }
        state
    }

    /// Whether a watch ends here: at its opening or after an event.
    pub(crate) fn closes_watch(&self, asker: &Asker<'_>, now: Instant) -> bool {
        let elapsed = now.duration_since(self.begun);
        let Rules {
            listed, random, counts, ..
        } = &mut *self.lock();
        for (id, rule) in listed {
            let is_it = rule.fault == Fault::CloseWatch && rule.concerns(asker, elapsed);
            if is_it && random.happens(rule.per_million) {
                rule.count();
                *counts.entry(*id).or_default() += 1;
                return true;
            }
        }
        false
    }
}

/// As the API server words it for its authorizer.
fn not_permitted(asker: &Asker<'_>) -> Failure {
    let resource = asker.resource.unwrap_or(Resource::Namespace);
    let (client, verb) = (asker.client, asker.verb.name());
    let (plural, group) = (resource.plural(), resource.group());
    let place = asker.namespace.map_or_else(
        || "at the cluster scope".to_owned(),
        |namespace| format!("in the namespace \"{namespace}\""),
    );
    let why = format!("User \"{client}\" cannot {verb} resource \"{plural}\" in API group \"{group}\" {place}");
    Failure::not_permitted(resource, asker.name, &why)
}

impl Rule {
    fn count(&mut self) {
        if let Some(times_max) = &mut self.times_max {
            *times_max = times_max.saturating_sub(1);
        }
    }
}

impl Verdict {
    fn is_settled(&self) -> bool {
        self.refusal.is_some() || self.is_dropped_before || self.is_dropped_after
    }

    fn take(&mut self, fault: &Fault, asker: &Asker<'_>, random: &mut Random) {
        // What is refused without a kind is a document; the texts name some kind.
        let resource = asker.resource.unwrap_or(Resource::Namespace);
        match fault {
            Fault::Delay { shortest, longest } => self.delay += random.between(*shortest, *longest),
            Fault::DropBefore | Fault::Outage => self.is_dropped_before = true,
            Fault::DropAfter => self.is_dropped_after = true,
            Fault::Forbid(why) => self.refusal = Some(Failure::forbidden(resource, asker.name, why)),
            Fault::NotPermitted => self.refusal = Some(not_permitted(asker)),
            Fault::Conflict => self.refusal = Some(Failure::modified(resource, asker.name)),
            Fault::Expired => {
                let message = "The resourceVersion for the provided request is too old.";
                self.refusal = Some(Failure::expired(message));
            }
            Fault::Throttle { retry_after_seconds } => {
                self.refusal = Some(Failure::too_many_requests(*retry_after_seconds));
            }
            Fault::InternalError => self.refusal = Some(Failure::internal("a fault was ordered")),
            Fault::Unavailable => self.refusal = Some(Failure::unavailable()),
            Fault::StaleList { age } => self.stale_by = Some(*age),
            Fault::CloseWatch | Fault::StallWatch | Fault::SlowWatch { .. } => {}
        }
    }
}

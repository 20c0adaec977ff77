//! Fault injection. A test adds rules, each for certain clients and requests, for a period, with a probability.
//!
//! The same rules, seed and requests give the same faults. Rules apply in order: delays add up, and of the other
//! faults of a request only the first applies.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{Resource, failure::Failure, random::Random, verb::Verb};

/// The effect of a rule on a request or a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request waits before it is processed.
    Delay {
        /// Minimum delay.
        shortest: Duration,
        /// Maximum delay.
        longest: Duration,
    },
    /// The connection breaks before the request is processed.
    DropBefore,
    /// The request is processed, and the connection breaks before the response.
    DropAfter,
    /// Admission webhooks delay a create.
    SlowAdmission {
        /// The delay by mutating webhooks, before the object gets its `creationTimestamp`.
        mutating: Duration,
        /// The delay by validating webhooks, after policies were evaluated and before the object is stored.
        validating: Duration,
    },
    /// 403: a `ValidatingAdmissionPolicy` denies a create whose `creationTimestamp` is later than the time in one of
    /// its annotations. Objects without the annotation are accepted.
    DenyLate {
        /// The name of the policy and of its binding.
        policy: String,
        /// The name of the annotation.
        annotation: String,
    },
    /// 403: admission denies the request, with this message.
    Forbid(String),
    /// 403: the authorizer denies the request, and access reviews report this.
    NotPermitted,
    /// 409: the object has been modified.
    Conflict,
    /// 410: the requested version is too old.
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
    /// A list returns an old state.
    StaleList {
        /// The age of that state.
        age: Duration,
    },
    /// A watch ends as at its timeout. The rule applies when the watch opens and after each event, each time with its
    /// probability.
    CloseWatch,
    /// An open watch sends nothing while the rule applies, and does not end at its timeout either.
    StallWatch,
    /// Events of a watch are sent with a pause between them.
    SlowWatch {
        /// The pause between two events.
        pause: Duration,
    },
    /// The server is down: every connection breaks, including those of watches.
    Outage,
}

/// A fault, with the requests, the period and the probability that it applies to.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The fault.
    pub fault: Fault,
    /// Only for this client.
    pub client: Option<String>,
    /// Only at this front end.
    pub front_end: Option<usize>,
    /// Only for this kind.
    pub resource: Option<Resource>,
    /// Only for requests in this namespace. Requests for all namespaces are not affected.
    pub namespace: Option<String>,
    /// Only for these verbs. Empty means all verbs.
    pub verbs: Vec<Verb>,
    /// The period, measured from the creation of the API.
    pub during: Range<Duration>,
    /// The probability, per million.
    pub per_million: u32,
    /// The maximum number of times that the rule applies. `None` means unlimited.
    pub times_max: Option<u32>,
}

impl Rule {
    /// Creates a rule that always applies to every client.
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

    fn matches(&self, attributes: &RequestAttributes<'_>, elapsed: Duration) -> bool {
        self.during.contains(&elapsed)
            && self.times_max != Some(0)
            && self.client.as_deref().is_none_or(|client| client == attributes.client)
            && self.front_end.is_none_or(|front_end| front_end == attributes.front_end)
            && self
                .resource
                .is_none_or(|resource| Some(resource) == attributes.resource)
            && (self.namespace.is_none() || self.namespace.as_deref() == attributes.namespace)
            && (self.verbs.is_empty() || self.verbs.contains(&attributes.verb))
    }
}

/// Identifies a rule that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u64);

/// The rules of an API. Clones are cheap and share the same rules.
#[derive(Clone)]
pub struct Faults {
    rules: Arc<Mutex<Rules>>,
    /// Notified when rules are added or removed.
    pub(crate) changed: Arc<Notify>,
    begun: Instant,
}

struct Rules {
    listed: Vec<(RuleId, Rule)>,
    /// How often each rule has applied, including rules that were removed.
    counts: BTreeMap<RuleId, u64>,
    next_id: u64,
    random: Random,
}

/// The attributes of a request that rules match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAttributes<'a> {
    pub(crate) client: &'a str,
    pub(crate) front_end: usize,
    pub(crate) verb: Verb,
    pub(crate) resource: Option<Resource>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

/// The combined effect of the rules on the admission of a create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) mutating: Duration,
    pub(crate) validating: Duration,
    /// Policies that deny late creates: the name of each, and the annotation with the latest time.
    pub(crate) latest: Vec<(String, String)>,
}

/// The combined effect of the rules on a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) admission: Admission,
    pub(crate) refusal: Option<Failure>,
    pub(crate) is_dropped_before: bool,
    pub(crate) is_dropped_after: bool,
    pub(crate) stale_by: Option<Duration>,
}

/// The combined effect of the rules on an open watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchState {
    pub(crate) is_broken: bool,
    pub(crate) is_stalled: bool,
    pub(crate) pause: Duration,
    /// When the period of a rule next begins or ends.
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

    /// Appends a rule.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.lock();
        let id = RuleId(rules.next_id);
        rules.next_id += 1;
        rules.listed.push((id, rule));
        drop(rules);
        self.changed.notify_waiters();
        id
    }

    /// Removes a rule.
    pub fn remove(&self, id: RuleId) {
        self.lock().listed.retain(|(known, _)| *known != id);
        self.changed.notify_waiters();
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.lock().listed.clear();
        self.changed.notify_waiters();
    }

    /// Returns how often a rule has applied to a request or closed a watch.
    pub fn count(&self, id: RuleId) -> u64 {
        self.lock().counts.get(&id).copied().unwrap_or_default()
    }

    /// Evaluates the rules for a request that arrives now.
    pub(crate) fn verdict(&self, attributes: &RequestAttributes<'_>, now: Instant) -> Verdict {
        let elapsed = now.duration_since(self.begun);
        let mut verdict = Verdict::default();
        let Rules {
            listed, random, counts, ..
        } = &mut *self.lock();
        for (id, rule) in listed {
            let is_settled = verdict.is_settled();
            let affects_requests = !matches!(
                rule.fault,
                Fault::CloseWatch | Fault::StallWatch | Fault::SlowWatch { .. }
            );
            if affects_requests && !is_settled && rule.matches(attributes, elapsed) && random.happens(rule.per_million)
            {
                rule.count();
                *counts.entry(*id).or_default() += 1;
                verdict.take(&rule.fault, attributes, random);
            }
        }
        verdict
    }

    /// Returns whether the authorizer permits a request. Rules with a probability or a maximum count are ignored.
    pub(crate) fn is_permitted(&self, attributes: &RequestAttributes<'_>, now: Instant) -> bool {
        let elapsed = now.duration_since(self.begun);
        let forbids = |rule: &Rule| {
            let is_certain = rule.per_million >= 1_000_000 && rule.times_max.is_none();
            rule.fault == Fault::NotPermitted && is_certain && rule.matches(attributes, elapsed)
        };
        !self.lock().listed.iter().any(|(_, rule)| forbids(rule))
    }

    /// Evaluates the rules for an open watch at this time.
    pub(crate) fn watch_state(&self, attributes: &RequestAttributes<'_>, now: Instant) -> WatchState {
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
            if !rule.matches(attributes, elapsed) {
                continue;
            }
            match rule.fault {
                Fault::Outage => state.is_broken = true,
                Fault::StallWatch => state.is_stalled = true,
                Fault::SlowWatch { pause } => state.pause += pause,
                Fault::Delay { .. }
                | Fault::SlowAdmission { .. }
                | Fault::DenyLate { .. }
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

    /// Returns whether a rule closes a watch now, at its opening or after an event.
    pub(crate) fn closes_watch(&self, attributes: &RequestAttributes<'_>, now: Instant) -> bool {
        let elapsed = now.duration_since(self.begun);
        let Rules {
            listed, random, counts, ..
        } = &mut *self.lock();
        for (id, rule) in listed {
            let is_match = rule.fault == Fault::CloseWatch && rule.matches(attributes, elapsed);
            if is_match && random.happens(rule.per_million) {
                rule.count();
                *counts.entry(*id).or_default() += 1;
                return true;
            }
        }
        false
    }
}

/// Returns the 403 of the authorizer, with the message of the real API server.
fn not_permitted(attributes: &RequestAttributes<'_>) -> Failure {
    let resource = attributes.resource.unwrap_or(Resource::Namespace);
    let (client, verb) = (attributes.client, attributes.verb.name());
    let (plural, group) = (resource.plural(), resource.group());
    let place = attributes.namespace.map_or_else(
        || "at the cluster scope".to_owned(),
        |namespace| format!("in the namespace \"{namespace}\""),
    );
    let why = format!("User \"{client}\" cannot {verb} resource \"{plural}\" in API group \"{group}\" {place}");
    Failure::not_permitted(resource, attributes.name, &why)
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

    fn take(&mut self, fault: &Fault, attributes: &RequestAttributes<'_>, random: &mut Random) {
        // Requests for documents have no kind, but the messages need one.
        let resource = attributes.resource.unwrap_or(Resource::Namespace);
        match fault {
            Fault::Delay { shortest, longest } => self.delay += random.between(*shortest, *longest),
            Fault::SlowAdmission { mutating, validating } => {
                self.admission.mutating += *mutating;
                self.admission.validating += *validating;
            }
            Fault::DenyLate { policy, annotation } => {
                self.admission.latest.push((policy.clone(), annotation.clone()));
            }
            Fault::DropBefore | Fault::Outage => self.is_dropped_before = true,
            Fault::DropAfter => self.is_dropped_after = true,
            Fault::Forbid(why) => self.refusal = Some(Failure::forbidden(resource, attributes.name, why)),
            Fault::NotPermitted => self.refusal = Some(not_permitted(attributes)),
            Fault::Conflict => self.refusal = Some(Failure::modified(resource, attributes.name)),
            Fault::Expired => {
                let message = "The resourceVersion for the provided request is too old.";
                self.refusal = Some(Failure::expired(message));
            }
            Fault::Throttle { retry_after_seconds } => {
                self.refusal = Some(Failure::too_many_requests(*retry_after_seconds));
            }
            Fault::InternalError => self.refusal = Some(Failure::internal("injected fault")),
            Fault::Unavailable => self.refusal = Some(Failure::unavailable()),
            Fault::StaleList { age } => self.stale_by = Some(*age),
            Fault::CloseWatch | Fault::StallWatch | Fault::SlowWatch { .. } => {}
        }
    }
}

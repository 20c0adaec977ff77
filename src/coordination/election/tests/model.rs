//! A model check of the protocol with the production `Election`, one shard, time in whole seconds, and faults at every
//! point that a budget allows. It shows that two concurrent leaders are unreachable. With a guard disabled, it finds a
//! counterexample. The guard against a view that is behind an answer has another test, `stale_view`.
//!
//! A step is a second: timers run, then all messages in flight arrive, one replica's first. The requests, responses and
//! watch of a replica can each be stalled and released. A replica can be frozen, restarted or drained, its seals
//! can take long, and Leases can be deleted. Each fault costs one unit of the budget; ending it is free. `CRONWHEEL_MODEL_FAULTS=2` spends two faults
//! of any kind, which takes minutes. All clocks run at the same rate; the slack for different rates is in
//! [`crate::coordination::Timing`], and the simulation draws rates.

mod checks;

use std::{
    collections::{BTreeMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use jiff::Timestamp;
use stateright::{Model, Property};

use super::{
    super::{Election, ElectionConfig, Guards},
    store::{Event, Store},
};
use crate::{
    coordination::{
        ElectionEffect, ElectionInput, Incarnation, Installation, LeaseKey, LeaseRecord, MemberSettings,
        PROTOCOL_VERSION, Timing,
    },
    shard::{BootInstant, ResourceVersion, ResourceVersions, ShardCount, ShardId, ShardReport, ShardTerm, Term},
};

const SHARD: ShardId = ShardId(0);
/// The only leader at the start.
const LEADER: usize = 0;
/// The maximum number of deliveries in a step. More of them mean a cycle.
const DELIVERIES_MAX: usize = 200;

/// The smallest whole seconds that satisfy the invariant and leave room for a late response.
fn timing() -> Timing {
    let seconds = Duration::from_secs;
    let timing = Timing {
        renew_interval: seconds(2),
        attempt_timeout: seconds(3),
        self_fence: seconds(8),
        write_life_min: seconds(1),
        evict_after: seconds(10),
        stagger: seconds(1),
        settle_window: seconds(1_000),
    };
    timing.check();
    timing
}

/// A fault of a replica or of its dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Fault {
    /// Its requests do not arrive.
    StallRequests(usize),
    /// Responses to it do not arrive.
    StallAnswers(usize),
    /// Its watch delivers nothing, without an error; lists are not answered.
    StallWatch(usize),
    /// Responses to it do not arrive, and its watch delivers nothing.
    Slow(usize),
    /// No message to or from it arrives.
    Cut(usize),
    /// It does not run.
    Freeze(usize),
    /// The API server neither responds to any replica nor delivers events.
    Outage,
    /// Its process is killed and starts again.
    Restart(usize),
    /// It is drained.
    Drain(usize),
    /// Its shard acts until the end of the fault after the order to seal it.
    SlowSeal(usize),
    /// Its member Lease is deleted by a third party.
    DeleteMember(usize),
    /// The shard's Lease is deleted by a third party.
    DeleteShard,
}

impl Fault {
    /// Whether the fault lasts until it is ended.
    fn lasts(self) -> bool {
        matches!(
            self,
            Fault::StallRequests(_)
                | Fault::StallAnswers(_)
                | Fault::StallWatch(_)
                | Fault::Slow(_)
                | Fault::Cut(_)
                | Fault::Freeze(_)
                | Fault::SlowSeal(_)
                | Fault::Outage
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Begin(Fault),
    End(Fault),
    /// A second passes; messages in flight arrive, this replica's first.
    Step {
        first: usize,
    },
}

/// A request in flight from a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Request {
    Write(ElectionEffect),
    List { requested_at: BootInstant },
}

/// One replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    election: Option<Election>,
    acting: Option<Term>,
    /// The term whose seal is ordered and not reported.
    sealing: Option<ShardTerm>,
    act_until: u64,
    incarnation: u64,
    requests: VecDeque<Request>,
    answers: VecDeque<ElectionInput>,
    watch: VecDeque<Event>,
    has_listed: bool,
}

/// The time of a change of a Lease, the version before it, and the total seconds of outage until then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Change {
    from: ResourceVersion,
    at: u64,
    outage_secs: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    store: Store,
    nodes: Vec<Node>,
    faults: Vec<Fault>,
    budget: usize,
    /// The recent changes of each Lease: those within a response time-out, and at least one.
    changes: BTreeMap<LeaseKey, Vec<Change>>,
    outage_secs: u64,
    /// Whether a member was evicted before it could renew, since the API server was not up for the member's duration.
    is_evicted_early: bool,
    /// Whether an eviction was sent although the API server had a newer version for longer than a response takes.
    is_eviction_blind: bool,
}

/// The configuration of a check.
#[derive(Clone, Debug)]
struct Protocol {
    guards: Guards,
    /// Whether the API server checks preconditions.
    has_preconditions: bool,
    n_nodes: usize,
    faults: Vec<Fault>,
    budget: usize,
    /// A fault that has lasted for this many steps when the search begins.
    former: Option<(Fault, u64)>,
    /// Whether the check varies which replica is served first.
    has_orders: bool,
    /// Faults begin before this instant.
    faults_until: u64,
    horizon: u64,
}

fn wall(now: u64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + i64::try_from(now).unwrap()).unwrap()
}

/// The world's time by the clock of a replica; clocks have different origins.
fn local(node: usize, now: u64) -> BootInstant {
    BootInstant::after_boot(Duration::from_secs(1_000 * (node as u64 + 1) + now))
}

fn global(node: usize, local: BootInstant) -> u64 {
    local.since_boot().as_secs() - 1_000 * (node as u64 + 1)
}

fn member_key(node: usize) -> LeaseKey {
    LeaseKey::Member(format!("uid-{node}").into())
}

impl Protocol {
    fn new(budget: usize, faults: &[Fault]) -> Protocol {
        Protocol {
            guards: Guards::ALL,
            has_preconditions: true,
            n_nodes: 2,
            faults: faults.to_vec(),
            budget,
            former: None,
            has_orders: false,
            faults_until: 9,
            horizon: 26,
        }
    }

    fn boot(&self, node: usize, incarnation: u64, now: u64) -> Election {
        let config = ElectionConfig {
            pod_name: format!("pod-{node}").into(),
            pod_uid: format!("uid-{node}").into(),
            incarnation: Incarnation(incarnation),
            revision: "one".into(),
            protocol: PROTOCOL_VERSION,
            installation: Installation::of(ShardCount::ONE),
            settings: MemberSettings::of(&[crate::shard::Scope::Cluster], "UTC"),
            timing: timing(),
        };
        let mut election = Election::new(config, local(node, now));
        election.guards = self.guards;
        election
    }

    /// A fleet at rest, led by the first replica.
    fn at_rest(&self) -> State {
        let node = |_| Node {
            election: None,
            acting: None,
            sealing: None,
            act_until: 0,
            incarnation: 0,
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            watch: VecDeque::new(),
            has_listed: false,
        };
        let mut state = State {
            now: 0,
            store: Store {
                is_lax: !self.has_preconditions,
                ..Store::default()
            },
            nodes: (0..self.n_nodes).map(node).collect(),
            faults: Vec::new(),
            budget: self.budget,
            changes: BTreeMap::new(),
            outage_secs: 0,
            is_evicted_early: false,
            is_eviction_blind: false,
        };
        for node in 0..self.n_nodes {
            self.start(&mut state, node);
            for _ in 0..3 {
                self.step(&mut state, 0);
            }
        }
        assert_eq!(state.nodes[LEADER].acting, Some(Term(1)), "{state:#?}");
        state
    }

    fn start(&self, state: &mut State, at: usize) {
        let now = state.now;
        let node = &mut state.nodes[at];
        node.incarnation += 1;
        node.election = Some(self.boot(at, node.incarnation, now));
        node.acting = None;
        node.sealing = None;
        node.answers.clear();
        node.watch.clear();
        node.has_listed = false;
        let requested_at = local(at, now);
        node.requests.push_back(Request::List { requested_at });
        self.input(state, at, ElectionInput::Shards(ShardReport::Synced));
    }

    fn step(&self, state: &mut State, first: usize) {
        state.now += 1;
        state.outage_secs += u64::from(state.faults.contains(&Fault::Outage));
        for at in 0..state.nodes.len() {
            if !state.faults.contains(&Fault::Freeze(at)) {
                self.wake(state, at);
            }
        }
        for _ in 0..DELIVERIES_MAX {
            let n_nodes = state.nodes.len();
            let mut order = (0..n_nodes).map(|offset| (first + offset) % n_nodes);
            if !order.any(|at| self.deliver_one(state, at)) {
                return;
            }
        }
        panic!("the deliveries form a cycle: {state:#?}");
    }

    /// Delivers one message to or from a replica; returns whether there was one.
    fn deliver_one(&self, state: &mut State, at: usize) -> bool {
        let is_stalled = |fault| state.faults.contains(&fault);
        let is_outage = is_stalled(Fault::Outage);
        let is_cut = is_outage || is_stalled(Fault::Cut(at));
        let is_deaf = is_cut || is_stalled(Fault::Slow(at));
        let has_requests = !is_cut && !is_stalled(Fault::StallRequests(at));
        let is_awake = !is_stalled(Fault::Freeze(at));
        let has_answers = is_awake && !is_deaf && !is_stalled(Fault::StallAnswers(at));
        let has_watch = is_awake && !is_deaf && !is_stalled(Fault::StallWatch(at));
        let has_seal = is_awake && !is_stalled(Fault::SlowSeal(at));
        let node = &mut state.nodes[at];
        if has_requests && let Some(request) = node.requests.pop_front() {
            state.serve(at, request);
        } else if has_answers && let Some(answer) = node.answers.pop_front() {
            self.input(state, at, answer);
        } else if has_watch && let Some(event) = node.watch.pop_front() {
            self.input(state, at, event.into_input());
        } else if has_seal && let Some(shard_term) = node.sealing.take() {
            self.seal(state, at, shard_term);
        } else {
            return false;
        }
        true
    }

    fn wake(&self, state: &mut State, at: usize) {
        let now = local(at, state.now);
        if let Some(election) = &mut state.nodes[at].election {
            let effects = election.handle_timeout(now);
            self.carry_out(state, at, effects);
        }
    }

    fn input(&self, state: &mut State, at: usize, input: ElectionInput) {
        let now = local(at, state.now);
        if let Some(election) = &mut state.nodes[at].election {
            let effects = election.handle(input, now);
            self.carry_out(state, at, effects);
        }
    }

    /// Seals the shard of a replica.
    fn seal(&self, state: &mut State, at: usize, shard_term: ShardTerm) {
        let now = state.now;
        state.nodes[at].acting.take_if(|term| *term == shard_term.term);
        let report = ShardReport::Sealed {
            shard_term,
            at: local(at, now),
            fired_through: Some(wall(now)),
            written_through: Some(ResourceVersions::default()),
        };
        self.input(state, at, ElectionInput::Shards(report));
    }

    fn carry_out(&self, state: &mut State, at: usize, effects: Vec<ElectionEffect>) {
        for effect in effects {
            let now = state.now;
            let node = &mut state.nodes[at];
            match effect {
                ElectionEffect::Write { .. } | ElectionEffect::Delete { .. } | ElectionEffect::Read { .. } => {
                    node.requests.push_back(Request::Write(effect.clone()));
                    state.judge_request(at, &effect);
                }
                ElectionEffect::Relist => node.requests.push_back(Request::List {
                    requested_at: local(at, now),
                }),
                ElectionEffect::ActUntil(until) => node.act_until = global(at, until),
                ElectionEffect::Lead { shard_term, .. } => node.acting = Some(shard_term.term),
                ElectionEffect::Stop { .. } => node.acting = None,
                ElectionEffect::Seal(order) => {
                    node.sealing = Some(order.shard_term);
                }
                ElectionEffect::Rejoin(_) => {
                    node.acting = None;
                    node.sealing = None;
                    node.incarnation += 1;
                    let incarnation = Incarnation(node.incarnation);
                    self.input(state, at, ElectionInput::Rejoined(incarnation));
                }
                ElectionEffect::Left | ElectionEffect::Exit(_) => {
                    node.election = None;
                    node.acting = None;
                }
                ElectionEffect::Fence => {}
            }
        }
    }

    fn begin(&self, state: &mut State, fault: Fault) {
        state.budget -= 1;
        if fault.lasts() {
            state.faults.push(fault);
            state.faults.sort_unstable();
        }
        let before = state.store.leases.clone();
        match fault {
            Fault::Restart(at) => self.start(state, at),
            Fault::Drain(at) => self.input(state, at, ElectionInput::DrainRequested),
            Fault::DeleteMember(at) => {
                state.store.delete(&member_key(at));
            }
            Fault::DeleteShard => {
                state.store.delete(&LeaseKey::Shard(SHARD));
            }
            Fault::StallRequests(_)
            | Fault::StallAnswers(_)
            | Fault::StallWatch(_)
            | Fault::Slow(_)
            | Fault::Cut(_)
            | Fault::Freeze(_)
            | Fault::SlowSeal(_)
            | Fault::Outage => {}
        }
        state.spread(&before);
    }
}

impl State {
    fn serve(&mut self, at: usize, request: Request) {
        match request {
            Request::List { .. } if self.faults.contains(&Fault::StallWatch(at)) => {}
            Request::List { requested_at } => {
                self.nodes[at].has_listed = true;
                let list = self.store.list();
                let input = ElectionInput::Listed { requested_at, list };
                self.nodes[at].answers.push_back(input);
            }
            Request::Write(effect) => {
                let before = self.store.leases.clone();
                let answer = self.store.carry_out(&effect, wall(self.now));
                if let ElectionEffect::Write { write, .. } = &effect
                    && write.key != member_key(at)
                    && matches!(write.key, LeaseKey::Member(_))
                    && self.store.leases.get(&write.key) != before.get(&write.key)
                {
                    self.judge_eviction(&write.key);
                }
                self.nodes[at].answers.extend(answer);
                self.spread(&before);
            }
        }
    }

    /// Judges an eviction. A member may be evicted if it could have renewed within its duration and did not; of an
    /// outage, only as many seconds count as a trusted view spans.
    fn judge_eviction(&mut self, victim: &LeaseKey) {
        let last = self.changes.get(victim).and_then(|changes| changes.last());
        let (changed_at, outage_before) = last.map_or((0, 0), |change| (change.at, change.outage_secs));
        let renewable_for = (self.now - changed_at) - (self.outage_secs - outage_before);
        let spanned = 2 * timing().renew_interval;
        self.is_evicted_early |= renewable_for < timing().evict_after.saturating_sub(spanned).as_secs();
    }

    /// Records the changes, and adds them to every watch.
    fn spread(&mut self, before: &BTreeMap<LeaseKey, LeaseRecord>) {
        for event in std::mem::take(&mut self.store.log) {
            let key = event.key();
            let from = before
                .get(key)
                .map_or(ResourceVersion(0), |lease| lease.resource_version);
            let (now, outage_secs) = (self.now, self.outage_secs);
            let changes = self.changes.entry(key.clone()).or_default();
            changes.retain(|change| now - change.at < timing().attempt_timeout.as_secs());
            changes.push(Change {
                from,
                at: now,
                outage_secs,
            });
            for node in self.nodes.iter_mut().filter(|node| node.has_listed) {
                node.watch.push_back(event.clone());
            }
        }
        self.store.moves.clear();
        self.store.n_writes = [0, 0];
    }

    /// Judges an eviction request. It is blind if its precondition was outdated for longer than a response time-out.
    fn judge_request(&mut self, at: usize, effect: &ElectionEffect) {
        let ElectionEffect::Write {
            precondition: Some(precondition),
            write,
            ..
        } = effect
        else {
            return;
        };
        let LeaseKey::Member(_) = write.key else { return };
        if write.key == member_key(at) {
            return;
        }
        let current = self.store.leases.get(&write.key).map(|lease| lease.resource_version);
        if current == Some(*precondition) {
            return;
        }
        let is_recent = self.changes.get(&write.key).is_some_and(|changes| {
            changes
                .iter()
                .any(|change| change.from == *precondition && self.now - change.at < timing().attempt_timeout.as_secs())
        });
        self.is_eviction_blind |= !is_recent;
    }
}

/// Whether two replicas lead the shard, or one leads while a request of the other can be alive.
fn has_two_leaders(state: &State) -> bool {
    let write_life = timing().write_life_min.as_secs();
    let leads = |node: &Node| node.acting.is_some() && state.now < node.act_until;
    let may_write = |node: &Node| node.acting.is_some() && state.now < node.act_until + write_life;
    (0..state.nodes.len()).any(|at| {
        leads(&state.nodes[at]) && (0..state.nodes.len()).any(|other| other != at && may_write(&state.nodes[other]))
    })
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = self.at_rest();
        if let Some((fault, steps)) = self.former {
            state.faults.push(fault);
            for _ in 0..steps {
                self.step(&mut state, 0);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.budget > 0 && state.now < self.faults_until {
            let is_new = |fault: &&Fault| !state.faults.contains(fault);
            actions.extend(self.faults.iter().filter(is_new).copied().map(Action::Begin));
        }
        actions.extend(state.faults.iter().copied().map(Action::End));
        let n_orders = if self.has_orders { state.nodes.len() } else { 1 };
        actions.extend((0..n_orders).map(|first| Action::Step { first }));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Begin(fault) => self.begin(&mut next, fault),
            Action::End(fault) => {
                next.faults.retain(|other| *other != fault);
            }
            Action::Step { first } => self.step(&mut next, first),
        }
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.now <= self.horizon
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one leader", |_, state: &State| !has_two_leaders(state)),
            Property::always("terms go up by one", |_, state: &State| {
                state.store.wrong_term.is_none()
            }),
            Property::always("no member is evicted before it can renew", |_, state: &State| {
                !state.is_evicted_early
            }),
            Property::always("no eviction is blind", |_, state: &State| !state.is_eviction_blind),
            Property::sometimes("another takes over", |_, state: &State| {
                state.nodes[LEADER].acting.is_none() && state.nodes.iter().any(|node| node.acting.is_some())
            }),
        ]
    }
}

const ALL_FAULTS: &[Fault] = &[
    Fault::StallRequests(0),
    Fault::StallAnswers(0),
    Fault::StallWatch(0),
    Fault::Slow(0),
    Fault::Cut(0),
    Fault::Freeze(0),
    Fault::Restart(0),
    Fault::Drain(0),
    Fault::SlowSeal(0),
    Fault::DeleteMember(0),
    Fault::DeleteShard,
    Fault::Outage,
    Fault::StallRequests(1),
    Fault::StallAnswers(1),
    Fault::StallWatch(1),
    Fault::Cut(1),
    Fault::Freeze(1),
    Fault::Restart(1),
    Fault::Drain(1),
];

//! A cluster in one thread: replicas with separate clocks, a store, and messages that are delayed or lost.
//!
//! At every step the world checks that no shard acts in two replicas, that no request of a former leader can be alive
//! when another replica takes the shard, and that terms increase by one.

mod effects;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::store::Store;
use crate::{
    coordination::{
        Adoption, Election, ElectionConfig, ElectionEffect, ElectionInput, Incarnation, Installation, LeaseKey,
        MemberSettings, Overview, PROTOCOL_VERSION, StopReason, Timing,
    },
    shard::{BootInstant, Entry, FiredThrough, ShardCount, ShardId, ShardReport, Term},
};

/// A small seeded generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A message to or from a replica.
#[derive(Clone, Debug)]
enum Message {
    /// A request in flight to the store.
    Request(ElectionEffect),
    /// A response, or a report of a shard, in flight to the replica.
    Input(ElectionInput),
    /// A request for a list of all Leases.
    List { requested_at: BootInstant },
    /// The response to a list request, with the position of the log at the list.
    Listed { input: ElectionInput, cursor: usize },
    /// The watch delivers the log up to this position.
    Watch { upto: usize },
    /// An interrupted watch resumes.
    Resume,
    /// A wake-up that is due at an instant.
    Wake { due: u64 },
}

/// A process of a Pod; a restart creates another.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) election: Election,
    /// The shards that act, with their terms.
    pub(super) acting: BTreeMap<ShardId, Term>,
    /// The instant until which the shards may act.
    pub(super) act_until: BootInstant,
    cursor: usize,
    /// Whether the watch is connected; it is not before the first list.
    is_watching: bool,
    woken_at: u64,
}

/// A Pod.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    pub(super) config: ElectionConfig,
    pub(super) process: Option<Process>,
    /// The start of its boot clock, and the clock's rate in thousandths.
    offset: u64,
    pub(super) rate: u64,
    pub(super) frozen_until: u64,
    pub(super) cut_until: u64,
    /// The delay of its watch, in milliseconds.
    pub(super) watch_lag: u64,
    /// One message in this many may be lost; 0 loses none.
    pub(super) loss: u64,
    /// The time after its start at which it has listed all CronJobs and Jobs, in milliseconds.
    pub(super) sync_delay: u64,
    /// Its shards are paused when they are sealed.
    pub(super) is_paused: bool,
    /// The time that its shards act after the order to seal them, in milliseconds, unless their lease ends earlier.
    pub(super) seal_delay: u64,
    /// The time that its shards then wait for missing answers, in milliseconds.
    pub(super) answer_delay: u64,
    /// Identifies the process, so that messages to former ones are not delivered.
    generation: u64,
    pub(super) has_left: bool,
    pub(super) exits: usize,
}

/// The events that tests check.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    pub(super) leads: Vec<(u64, usize, ShardId, Adoption)>,
    pub(super) stops: Vec<(u64, usize, ShardId, StopReason)>,
    pub(super) rejoins: Vec<(u64, usize, &'static str)>,
    pub(super) fences: Vec<(u64, usize)>,
    /// For each entry of `leads`, the data that the shard must have observed, and the instant of the last leader's seal.
    pub(super) entries: Vec<(Entry, Option<FiredThrough>)>,
    pub(super) evictions: usize,
    pub(super) relists: usize,
    /// The replicas whose last write to their own Lease says that they act.
    pub(super) acting: BTreeSet<usize>,
}

/// The whole cluster.
pub(super) struct World {
    pub(super) now: u64,
    pub(super) store: Store,
    pub(super) replicas: Vec<Replica>,
    queue: BTreeMap<(u64, u64), (usize, u64, Message)>,
    sequence: u64,
    n_sent_to_watches: usize,
    pub(super) random: Random,
    /// The longest delay of a message, in milliseconds.
    pub(super) latency_max: u64,
    pub(super) count: ShardCount,
    pub(super) journal: Journal,
    pub(super) trace: bool,
    /// Whether two replicas share an identity: both act, and no protocol could prevent that.
    pub(super) is_twinned: bool,
}

impl World {
    pub(super) fn new(count: u64, seed: u64) -> World {
        World {
            now: 1_000_000,
            store: Store::default(),
            replicas: Vec::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            n_sent_to_watches: 0,
            random: Random(seed),
            latency_max: 5,
            count: ShardCount::new(count).unwrap(),
            journal: Journal::default(),
            trace: false,
            is_twinned: false,
        }
    }

    pub(super) fn config(&mut self, name: &str) -> ElectionConfig {
        ElectionConfig {
            pod_name: name.into(),
            pod_uid: format!("{:08x}-{name}", self.random.below(1 << 32)).into(),
            incarnation: Incarnation(self.random.below(u64::MAX)),
            revision: "one".into(),
            protocol: PROTOCOL_VERSION,
            installation: Installation::of(self.count),
            settings: MemberSettings::of(&[crate::shard::Scope::Cluster], "UTC"),
            timing: Timing::DEFAULT,
        }
    }

    /// Starts a replica in a new Pod.
    pub(super) fn start(&mut self, name: &str) -> usize {
        let config = self.config(name);
        self.start_with(config)
    }

    pub(super) fn start_with(&mut self, config: ElectionConfig) -> usize {
        let at = self.create(config);
        self.boot(at);
        at
    }

    /// Creates a Pod without a process.
    pub(super) fn create(&mut self, config: ElectionConfig) -> usize {
        let offset = self.random.below(900_000);
        self.replicas.push(Replica {
            config,
            process: None,
            offset,
            rate: 1000,
            frozen_until: 0,
            cut_until: 0,
            watch_lag: 0,
            loss: 0,
            sync_delay: 50,
            is_paused: false,
            seal_delay: 0,
            answer_delay: 0,
            generation: 0,
            has_left: false,
            exits: 0,
        });
        self.replicas.len() - 1
    }

    /// Starts the next process in a Pod.
    pub(super) fn boot(&mut self, at: usize) {
        let now = self.local(at);
        let incarnation = Incarnation(self.random.below(u64::MAX));
        let replica = &mut self.replicas[at];
        replica.generation += 1;
        replica.config.incarnation = incarnation;
        replica.frozen_until = 0;
        replica.process = Some(Process {
            election: Election::new(replica.config.clone(), now),
            acting: BTreeMap::new(),
            act_until: now,
            cursor: 0,
            is_watching: false,
            woken_at: 0,
        });
        self.post(at, 1, Message::List { requested_at: now });
        let delay = self.replicas[at].sync_delay;
        self.post(at, delay, Message::Input(ElectionInput::Shards(ShardReport::Synced)));
    }

    /// Kills the process of a Pod.
    pub(super) fn kill(&mut self, at: usize) {
        self.replicas[at].process = None;
        self.replicas[at].generation += 1;
    }

    /// The time by a replica's boot clock.
    pub(super) fn local(&self, at: usize) -> BootInstant {
        let replica = &self.replicas[at];
        let millis = replica.offset + self.now * replica.rate / 1000;
        BootInstant::after_boot(Duration::from_millis(millis))
    }

    /// The instant at which a replica's boot clock reaches a time.
    fn when(&self, at: usize, local: BootInstant) -> u64 {
        let replica = &self.replicas[at];
        let millis = u64::try_from(local.since_boot().as_millis()).unwrap() + 1;
        (millis.saturating_sub(replica.offset) * 1000)
            .div_ceil(replica.rate)
            .max(self.now)
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp::from_millisecond(1_767_225_600_000 + i64::try_from(self.now).unwrap()).unwrap()
    }

    fn post(&mut self, at: usize, delay: u64, message: Message) {
        let generation = self.replicas[at].generation;
        self.sequence += 1;
        self.queue
            .insert((self.now + delay, self.sequence), (at, generation, message));
    }

    fn latency(&mut self) -> u64 {
        1 + self.random.below(self.latency_max)
    }

    /// Runs for this many milliseconds.
    pub(super) fn run(&mut self, millis: u64) {
        let end = self.now + millis;
        while let Some((&(at, sequence), _)) = self.queue.first_key_value() {
            if at > end {
                break;
            }
            let Some((replica, generation, message)) = self.queue.remove(&(at, sequence)) else {
                break;
            };
            self.now = at;
            if self.replicas[replica].generation == generation && self.replicas[replica].process.is_some() {
                self.deliver(replica, message);
            } else if let Message::Request(effect) = message {
                // Requests of an ended process still arrive.
                self.execute_in_store(&effect);
            }
        }
        self.now = end;
    }

    /// Executes a request in the store, and delivers its changes to every watch.
    fn execute_in_store(&mut self, effect: &ElectionEffect) -> Option<ElectionInput> {
        let answer = self.store.carry_out(effect, self.wall());
        assert_eq!(self.store.wrong_term, None);
        self.send_log_to_watches();
        answer
    }

    fn send_log_to_watches(&mut self) {
        let upto = self.store.log.len();
        if upto > self.n_sent_to_watches {
            self.n_sent_to_watches = upto;
            for at in 0..self.replicas.len() {
                let delay = self.replicas[at].watch_lag + self.latency();
                self.post(at, delay, Message::Watch { upto });
            }
        }
    }

    fn deliver(&mut self, at: usize, message: Message) {
        let is_cut = self.now < self.replicas[at].cut_until;
        let loss = self.replicas[at].loss;
        let is_lost = |random: &mut Random| loss > 0 && random.below(loss) == 0;
        match message {
            // A request that was sent before a freeze still arrives.
            Message::Request(effect) => {
                if is_cut || is_lost(&mut self.random) {
                    return;
                }
                if let Some(answer) = self.execute_in_store(&effect)
                    && !is_lost(&mut self.random)
                {
                    let delay = self.latency();
                    self.post(at, delay, Message::Input(answer));
                }
            }
            Message::List { requested_at } => {
                if is_cut {
                    let retry = self.local(at);
                    return self.post(at, 500, Message::List { requested_at: retry });
                }
                let mut list = self.store.list();
                list.leases.retain(|lease| self.is_visible(at, &lease.key));
                let input = ElectionInput::Listed { requested_at, list };
                let cursor = self.store.log.len();
                let delay = self.latency();
                self.post(at, delay, Message::Listed { input, cursor });
            }
            message if self.now < self.replicas[at].frozen_until => {
                let delay = self.replicas[at].frozen_until - self.now + 1;
                self.post(at, delay, message);
            }
            Message::Input(input) => self.input(at, input),
            Message::Listed { input, cursor } => {
                let process = self.process(at);
                process.cursor = process.cursor.max(cursor);
                process.is_watching = true;
                self.input(at, input);
                let upto = self.store.log.len();
                self.post(at, 1, Message::Watch { upto });
            }
            Message::Watch { upto } if is_cut => {
                let delay = self.replicas[at].cut_until - self.now + 1;
                self.post(at, delay, Message::Watch { upto });
            }
            Message::Watch { upto } => self.watch(at, upto),
            Message::Resume => {
                self.process(at).is_watching = true;
                let upto = self.store.log.len();
                self.post(at, 1, Message::Watch { upto });
            }
            Message::Wake { due } => {
                if self.process(at).woken_at == due {
                    let now = self.local(at);
                    let effects = self.process(at).election.handle_timeout(now);
                    self.carry_out(at, effects);
                }
            }
        }
    }

    fn process(&mut self, at: usize) -> &mut Process {
        self.replicas[at].process.as_mut().unwrap()
    }

    /// Delivers the log to a replica, in order.
    fn watch(&mut self, at: usize, upto: usize) {
        while let Some(process) = &mut self.replicas[at].process {
            if !process.is_watching || process.cursor >= upto {
                return;
            }
            let Some(event) = self.store.log.get(process.cursor).cloned() else {
                return;
            };
            process.cursor += 1;
            if self.is_visible(at, event.key()) {
                self.input(at, event.into_input());
            }
        }
    }

    /// Whether a replica reads a Lease: the names of shard Leases contain the number of shards.
    fn is_visible(&self, at: usize, key: &LeaseKey) -> bool {
        let count = self.replicas[at].config.installation.shard_count;
        matches!(key, LeaseKey::Member(_)) || count == self.count
    }

    /// Interrupts a replica's watch, and resumes it after this many milliseconds.
    pub(super) fn break_watch(&mut self, at: usize, millis: u64) {
        self.process(at).is_watching = false;
        self.post(at, millis, Message::Resume);
    }

    /// Passes a fact to a replica.
    pub(super) fn input(&mut self, at: usize, input: ElectionInput) {
        let now = self.local(at);
        if self.trace && !matches!(input, ElectionInput::Applied(_)) {
            eprintln!("{} <- {at} {input:?}", self.now);
        }
        if let Some(process) = &mut self.replicas[at].process {
            if let ElectionInput::Shards(ShardReport::Sealed { shard_term, .. }) = &input {
                let sealed = (&shard_term.shard, &shard_term.term);
                process.acting.retain(|acting, led| (acting, &*led) != sealed);
            }
            let effects = process.election.handle(input, now);
            self.carry_out(at, effects);
        }
    }

    /// Asserts that no shard that acts in this replica can act in another one, and that no request for it from another
    /// one can be alive.
    fn check_alone(&self, at: usize) {
        let Some(process) = &self.replicas[at].process else {
            return;
        };
        if self.is_twinned || self.local(at) >= process.act_until {
            return;
        }
        for (other, replica) in self.replicas.iter().enumerate().filter(|(other, _)| *other != at) {
            let Some(rival) = &replica.process else { continue };
            let write_life = replica.config.timing.write_life_min;
            if self.local(other) >= rival.act_until + write_life {
                continue;
            }
            let shared = process
                .acting
                .iter()
                .find(|(shard, _)| rival.acting.contains_key(shard));
            assert!(
                shared.is_none(),
                "at {}: {shared:?} acts in {at} and can act in {other} until {:?}, where it is {:?}: {:?}",
                self.now,
                rival.act_until,
                self.local(other),
                rival.acting
            );
        }
    }

    /// The overview of a running replica.
    pub(super) fn overview(&self, at: usize) -> Overview {
        let process = self.replicas[at].process.as_ref().unwrap();
        process.election.overview(self.local(at))
    }

    /// The replica in which each shard acts.
    pub(super) fn leaders(&self) -> BTreeMap<ShardId, usize> {
        let mut leaders = BTreeMap::new();
        for (at, replica) in self.replicas.iter().enumerate() {
            let Some(process) = &replica.process else { continue };
            if self.now >= replica.frozen_until && self.local(at) < process.act_until {
                leaders.extend(process.acting.keys().map(|shard| (*shard, at)));
            }
        }
        leaders
    }

    /// The number of shards that act in each replica.
    pub(super) fn load(&self) -> Vec<usize> {
        let mut load = vec![0; self.replicas.len()];
        for at in self.leaders().into_values() {
            load[at] += 1;
        }
        load
    }

    pub(super) fn n_live(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.process.is_some()).count()
    }

    pub(super) fn n_moves(&self) -> usize {
        self.store.moves.values().sum()
    }

    /// Runs until every shard is led, and returns the milliseconds that it took; fails after `max` milliseconds.
    pub(super) fn run_until_led(&mut self, max: u64) -> u64 {
        let start = self.now;
        while self.leaders().len() < usize::from(self.count.get()) {
            assert!(
                self.now - start < max,
                "not all led after {max} ms: {:?} {:#?}",
                self.load(),
                self.unled()
            );
            self.run(10);
        }
        self.now - start
    }

    fn unled(&self) -> BTreeSet<ShardId> {
        let leaders = self.leaders();
        self.count
            .shards()
            .filter(|shard| !leaders.contains_key(shard))
            .take(3)
            .collect()
    }

    pub(super) fn delete(&mut self, key: &LeaseKey) {
        self.store.delete(key);
        self.send_log_to_watches();
    }

    /// Sets an annotation of a Lease, as a user.
    pub(super) fn edit(&mut self, key: &LeaseKey, annotation: &str, text: &str) {
        let mut lease = self.store.leases[key].clone();
        self.store.version += 1;
        lease.resource_version.0 = self.store.version;
        lease.annotations.insert(annotation.into(), text.into());
        self.store.put(lease);
        self.send_log_to_watches();
    }

    pub(super) fn member_key(&self, at: usize) -> LeaseKey {
        LeaseKey::Member(self.replicas[at].config.pod_uid.clone())
    }

    /// Starts a copy of a replica.
    pub(super) fn wake(&mut self, at: usize) {
        let upto = self.store.log.len();
        self.post(at, 1, Message::Watch { upto });
        self.carry_out(at, Vec::new());
    }

    pub(super) fn drain(&mut self, at: usize) {
        self.input(at, ElectionInput::DrainRequested);
    }
}

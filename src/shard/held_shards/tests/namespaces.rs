//! Tests of the managed namespaces of a replica.

use super::*;
use crate::shard::{NamespaceUpdate, ShardReport, TroubleKind};

fn clocks(wall: Timestamp, seconds: u64) -> Clocks {
    let boot = BootInstant::after_boot(std::time::Duration::from_secs(seconds));
    Clocks { wall, boot }
}

fn in_namespace(namespace: &str, name: &str) -> CronJobRecord {
    let mut record = test_record(name);
    record.identity = std::sync::Arc::new(crate::shard::CronJobIdentity {
        namespace: namespace.into(),
        name: name.into(),
        uid: Uid::new(&format!("uid-{name}")),
    });
    record
}

/// Sixteen shards on standby that manage no namespace yet.
fn selecting() -> HeldShards {
    let mut shards = sixteen();
    shards.manage_only(ManagedNamespaces::selected());
    shards
}

fn update(shards: &mut HeldShards, updates: &[NamespaceUpdate], now: Timestamp) {
    for update in updates {
        shards.handle(Input::NamespaceUpdated(update.clone()), now);
    }
}

fn listed(names: &[&str]) -> Vec<NamespaceUpdate> {
    let selected = names.iter().map(|name| NamespaceUpdate::selected((*name).into()));
    let begun = [NamespaceUpdate::ListBegun].into_iter();
    begun.chain(selected).chain([NamespaceUpdate::ListDone]).collect()
}

#[test]
fn no_shard_is_led_before_the_namespaces_are_listed() {
    let record = in_namespace("shop", "first");
    let now = at("10:00:05");
    let mut shards = selecting();
    let lead = ShardCommand::Lead {
        shard_term: shard_term(shard_of(&record)),
        entry: crate::shard::Entry::Watch(ResourceVersions::default()),
        fired_through: None,
    };
    list(&mut shards, &[record], now);
    shards.command(lead, clocks(now, 0));
    assert!(!shards.are_permitted_watches_synced());
    assert_eq!(shards.poll_report(), None);
    update(&mut shards, &listed(&["shop"]), now);
    shards.advance_lifecycles(clocks(now, 0));
    assert!(shards.are_permitted_watches_synced());
    let reports: Vec<ShardReport> = std::iter::from_fn(|| shards.poll_report()).collect();
    assert!(
        matches!(reports.as_slice(), [ShardReport::Synced, ShardReport::Leading(_)]),
        "{reports:?}"
    );
    assert_eq!(creates(&mut shards).len(), 1);
    assert_eq!((shards.led().cron_jobs, shards.sizes().cron_jobs), (1, 1));
}

#[test]
fn figures_and_troubles_are_of_managed_namespaces() {
    let records = ["shop", "bank"].map(|namespace| CronJobRecord {
        schedule: crate::shard::CronJobSchedule::new("no schedule", None, &crate::schedule::Zone::utc()),
        ..in_namespace(namespace, namespace)
    });
    let now = at("10:00:05");
    let mut shards = selecting();
    shards.survey_cron_jobs(true);
    for shard in count().shards() {
        shards.lead(shard_term(shard), now);
    }
    list(&mut shards, &records, now);
    update(&mut shards, &listed(&["shop"]), now);
    let named = |shards: &mut HeldShards| -> Vec<(String, TroubleKind)> {
        let report = shards.trouble_report();
        let named = report.named.iter();
        named.map(|it| (it.cron_job.namespace.to_string(), it.kind)).collect()
    };
    shards.survey(clocks(now, 0));
    assert_eq!(named(&mut shards), [("shop".to_owned(), TroubleKind::Invalid)]);
    assert_eq!(shards.led().cron_jobs, 1);
    update(&mut shards, &[NamespaceUpdate::Released("shop".into())], now);
    assert_eq!(named(&mut shards), [], "at once, not after the next pass");
    assert_eq!((shards.led().cron_jobs, shards.sizes().cron_jobs), (0, 0));
}

/// Random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// An answer that is under way, until this instant.
type UnderWay = (Timestamp, TermedAnswer);

/// Answers every effect after a random time, and checks what may be ordered.
struct Cluster {
    shards: HeldShards,
    chance: Chance,
    under_way: Vec<UnderWay>,
    managed: BTreeSet<&'static str>,
    /// The created Jobs, with their owners.
    jobs: BTreeMap<String, JobRecord>,
    n_orders: usize,
}

impl Cluster {
    fn perform(&mut self, now: Timestamp) {
        while let Some(TermedEffect { shard_term, effect }) = self.shards.poll_effect() {
            self.n_orders += 1;
            let answer = match effect {
                Effect::CreateJob(order) => {
                    let namespace = &*order.cron_job.namespace;
                    assert!(
                        self.managed.contains(namespace),
                        "{now}: create {} in {namespace}",
                        order.name
                    );
                    let record = CronJobRecord {
                        identity: order.cron_job.clone(),
                        ..test_record("any")
                    };
                    let job = JobRecord {
                        namespace: namespace.into(),
                        ..job(&record, order.slot)
                    };
                    let answer = match self.jobs.insert(order.name.to_string(), job.clone()) {
                        None => CreateOutcome::Created {
                            uid: job.uid,
                            resource_version: "20".into(),
                            created: now,
                        },
                        Some(_) => panic!("{now}: {} is created twice", order.name),
                    };
                    let (cron_job, slot) = (order.cron_job.uid.clone(), order.slot);
                    OrderAnswer::Create { cron_job, slot, answer }
                }
                Effect::WriteStatus(write) => {
                    let answer = StatusOutcome::Stored {
                        resource_version: ResourceVersion(write.resource_version.0 + 1),
                    };
                    let (cron_job, sent) = (write.cron_job.uid.clone(), Box::new(write.status));
                    OrderAnswer::Status { cron_job, sent, answer }
                }
                Effect::DeleteJob(delete) => {
                    assert!(
                        self.managed.contains(&*delete.namespace),
                        "{now}: delete {}",
                        delete.name
                    );
                    let answer = crate::shard::DeleteOutcome::Deleted;
                    OrderAnswer::Delete { delete, answer }
                }
                Effect::EmitEvent(event) => {
                    let namespace = &*event.cron_job.namespace;
                    assert!(self.managed.contains(namespace), "{now}: Event {}", event.message);
                    continue;
                }
                // A create that is sent is not withdrawn, and no create is unanswered.
                Effect::Withdraw(_) | Effect::LookUpJob(_) => continue,
            };
            let millis = i64::try_from(self.chance.below(4_000)).unwrap();
            let at = now + SignedDuration::from_millis(millis);
            self.under_way.push((at, TermedAnswer { shard_term, answer }));
        }
    }

    fn step(&mut self, now: Timestamp) {
        self.shards.handle_timeout(now);
        self.perform(now);
        let (due, left): (Vec<UnderWay>, Vec<UnderWay>) = self.under_way.drain(..).partition(|(at, _)| *at <= now);
        self.under_way = left;
        for (_, answer) in due {
            self.shards.handle_answer(answer, now);
            self.perform(now);
        }
    }
}

#[test]
fn namespaces_that_move_to_and_fro_get_each_job_once_and_nothing_after_the_release() {
    const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];
    let mut now = at("10:00:05");
    let mut shards = selecting();
    for shard in count().shards() {
        shards.lead(shard_term(shard), now);
    }
    let records: Vec<CronJobRecord> = (0..24)
        .map(|number| in_namespace(NAMESPACES[number % 4], &format!("cron-{number}")))
        .collect();
    update(&mut shards, &listed(&[]), now);
    list(&mut shards, &records, now);
    let mut cluster = Cluster {
        shards,
        chance: Chance(0x5eed),
        under_way: Vec::new(),
        managed: BTreeSet::new(),
        jobs: BTreeMap::new(),
        n_orders: 0,
    };
    let mut n_moves = 0;
    for _ in 0..4_000 {
        now += SignedDuration::from_millis(i64::try_from(cluster.chance.below(900)).unwrap());
        if cluster.chance.below(12) == 0 {
            let name = NAMESPACES[cluster.chance.below(4)];
            let moved = if cluster.managed.remove(name) {
                NamespaceUpdate::Released(name.into())
            } else {
                cluster.managed.insert(name);
                NamespaceUpdate::selected(name.into())
            };
            update(&mut cluster.shards, &[moved], now);
            n_moves += 1;
        }
        cluster.step(now);
        let counts = cluster.shards.outcome_counts();
        let n_ended: u64 = counts.outcomes.iter().sum();
        assert_eq!(counts.due_instants, n_ended + counts.open_instants, "{now}");
    }
    assert!(
        n_moves > 250 && cluster.n_orders > 500,
        "{n_moves} {}",
        cluster.n_orders
    );
}

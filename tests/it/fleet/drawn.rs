//! Random fleets: a seed draws the disruptions, their times and their combinations.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use apisim::{Fault, Rule, RuleId, Verb};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    cluster::{Fleet, Size},
    oracle::AFTERMATH,
    play_recorded,
};
use crate::random::Random;

/// The time from the beginning to the last disruption.
const LENGTH: SignedDuration = SignedDuration::from_mins(5);

/// The grace period that a kubelet gives a terminating process.
const TERMINATION_GRACE: SignedDuration = SignedDuration::from_secs(30);

/// The time after the last aftermath. The shards settle in it, and every run must be on time.
const CALM: SignedDuration = SignedDuration::from_secs(75);

/// A disruption with a beginning and an end.
#[derive(Clone, Debug)]
enum Disruption {
    /// A process is killed, and restarted at the end.
    Crash(String),
    /// A process is terminated, and restarted at the end.
    Drain(String),
    Freeze(String),
    Cut(String),
    /// Fault rules for one Pod, or for all.
    Fault(Option<String>, Vec<Rule>),
    Lag(Duration),
    ClockStep(String, SignedDuration),
    DeleteLease(String),
}

/// The action at the end of a disruption.
enum Undo {
    Nothing,
    Start(String),
    Thaw(String),
    Heal(String, [RuleId; 2]),
    Rules(Vec<RuleId>),
    LagEnds,
    StepBack(String, SignedDuration),
}

fn draw(random: &mut Random, pods: &[String], n_shards: u16) -> (Disruption, SignedDuration) {
    let mut pod = || pods[random.below(pods.len())].clone();
    let (pod, other) = (pod(), pod());
    let target = if random.is_one_in(2) { Some(other) } else { None };
    let rule = |fault: Fault, per_million: u32, verbs: &[Verb]| Rule {
        per_million,
        verbs: verbs.to_vec(),
        ..Rule::new(fault)
    };
    let delay = |millis: u64| Fault::Delay {
        shortest: Duration::ZERO,
        longest: Duration::from_millis(millis),
    };
    let disruption = match random.below(16) {
        0 | 1 => Disruption::Crash(pod),
        2 | 3 => Disruption::Drain(pod),
        4 | 5 => Disruption::Freeze(pod),
        6 | 7 => Disruption::Cut(pod),
        8 => Disruption::Fault(target, vec![rule(Fault::Outage, 1_000_000, &[])]),
        9 => Disruption::Fault(
            target,
            vec![rule(delay(random.pick(&[400, 1_500, 3_000])), 1_000_000, &[])],
        ),
        10 => {
            let throttle = Fault::Throttle { retry_after_seconds: 1 };
            Disruption::Fault(target, vec![rule(throttle, 300_000, &[])])
        }
        11 => {
            let ending = rule(Fault::CloseWatch, 300_000, &[]);
            Disruption::Fault(target, vec![ending, rule(Fault::Expired, 300_000, &[Verb::Watch])])
        }
        12 => {
            let fault = random.pick(&[0, 1, 2]);
            let faults = [Fault::StallWatch, Fault::DropAfter, Fault::DropBefore];
            let per_million = random.pick(&[100_000, 300_000]);
            let verbs: &[Verb] = if fault == 0 {
                &[]
            } else {
                &[Verb::Create, Verb::Patch, Verb::Update]
            };
            Disruption::Fault(target, vec![rule(faults[fault].clone(), per_million, verbs)])
        }
        13 => Disruption::Lag(Duration::from_millis(random.pick(&[500, 3_000, 5_500, 9_000]))),
        14 => {
            let millis = random.pick(&[-3_600_000, -3_000, -1_500, 1_500, 3_000, 3_600_000]);
            Disruption::ClockStep(pod, SignedDuration::from_millis(millis))
        }
        _ => {
            let shard = random.below(n_shards.into());
            let level = n_shards.ilog2();
            let member = format!("cronwheel-member-uid-{pod}");
            let name = if random.is_one_in(2) {
                member
            } else {
                format!("cronwheel-shard-{level}-{shard}")
            };
            Disruption::DeleteLease(name)
        }
    };
    let millis_max = random.pick(&[400, 3_000, 9_000, 12_000, 40_000]);
    (disruption, SignedDuration::from_millis(random.between(50, millis_max)))
}

/// Draws the time of the next disruption. Half of the times are near a full minute.
fn next(random: &mut Random, now: Timestamp) -> Timestamp {
    if random.is_one_in(2) {
        return now + SignedDuration::from_millis(random.between(100, 15_000));
    }
    let minute = Timestamp::from_second((now.as_second() / 60 + 1) * 60).unwrap();
    (minute + SignedDuration::from_millis(random.between(-700, 500))).max(now)
}

async fn begin(fleet: &mut Fleet, disruption: &Disruption) -> Undo {
    let names = fleet.names();
    match disruption {
        Disruption::Crash(pod) if names.contains(pod) => {
            fleet.kill(pod).await;
            Undo::Start(pod.clone())
        }
        Disruption::Drain(pod) if names.contains(pod) => {
            fleet.terminate(pod);
            Undo::Start(pod.clone())
        }
        Disruption::Freeze(pod) if names.contains(pod) => {
            if fleet.random.is_one_in(3) {
                fleet.freeze_at_create(pod, 1);
            } else {
                fleet.freeze(pod);
            }
            Undo::Thaw(pod.clone())
        }
        Disruption::Cut(pod) if !fleet.is_cut(pod) => Undo::Heal(pod.clone(), fleet.cut(pod)),
        Disruption::Fault(pod, rules) => {
            let mut added = Vec::new();
            for rule in rules {
                match pod {
                    None => added.extend(fleet.add_fault(rule.clone())),
                    Some(pod) => added.push(fleet.add_fault_for(pod, rule.clone())),
                }
            }
            Undo::Rules(added)
        }
        Disruption::Lag(lag) => {
            fleet.api.set_lag(1, *lag);
            Undo::LagEnds
        }
        Disruption::ClockStep(pod, by) => {
            fleet.wall(pod).step(*by);
            Undo::StepBack(pod.clone(), -*by)
        }
        Disruption::DeleteLease(name) => {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}");
            // The Lease may not exist.
            let _ = fleet.request("DELETE", &path, &json!({})).await;
            Undo::Nothing
        }
        Disruption::Crash(_) | Disruption::Drain(_) | Disruption::Freeze(_) | Disruption::Cut(_) => Undo::Nothing,
    }
}

async fn end(fleet: &mut Fleet, undo: Undo) {
    match undo {
        Undo::Nothing => {}
        Undo::Start(pod) => {
            if fleet.names().contains(&pod) {
                // The process is terminating, and its grace period is over.
                fleet.kill(&pod).await;
            }
            fleet.start(&pod);
        }
        Undo::Thaw(pod) => {
            fleet.freeze_at_create(&pod, 0);
            fleet.thaw(&pod);
        }
        Undo::Heal(pod, rules) => fleet.heal(&pod, rules),
        Undo::Rules(rules) => fleet.remove_faults(rules),
        Undo::LagEnds => fleet.api.set_lag(1, Duration::ZERO),
        Undo::StepBack(pod, by) => fleet.wall(&pod).step(by),
    }
}

/// Configures the API servers and starts the replicas. It draws nothing from the generator of the disruptions.
fn set_up(fleet: &mut Fleet, seed: u64, pods: &[String]) {
    if seed.is_multiple_of(2) {
        fleet.add_fence_policy();
    }
    for (number, pod) in pods.iter().enumerate() {
        fleet.add(pod);
        fleet.change(pod, |pod| pod.front_end = number % 2);
        fleet.start(pod);
    }
}

/// Runs one seed. Returns the record of all events.
fn play_drawn(seed: u64) -> String {
    let mut random = Random::new(seed);
    // The options have their own numbers, so that they do not change the rest of a seed.
    let mut of_options = Random::new(!seed);
    let n_shards = random.pick(&[16, 16, 32, 64]);
    let n_pods = random.between(3, 5);
    let size = Size {
        n_cron_jobs: random.pick(&[30, 60, 90]),
        n_shards,
    };
    let roughness = random.pick(&[1, 2, 4]);
    let pods: Vec<String> = (0..n_pods).map(|number| format!("p{number}")).collect();
    let is_verbose = std::env::var("CRONWHEEL_FLEET_SHOW").is_ok();
    let ((), record) = play_recorded(seed, size, async |fleet| {
        fleet.give_options(&mut of_options).await;
        set_up(fleet, seed, &pods);
        fleet.at(0, 50.0).await;
        let last = fleet.now() + LENGTH;
        // The end of each disruption, with its beginning and its action.
        let mut agenda: BTreeMap<(Timestamp, usize), (Timestamp, Undo)> = BTreeMap::new();
        let mut number = 0;
        let mut next_at = next(&mut random, fleet.now());
        while next_at < last || !agenda.is_empty() {
            let end_at = agenda.first_key_value().map(|((at, _), _)| *at);
            if let Some(at) = end_at.filter(|at| *at <= next_at || next_at >= last) {
                fleet.until(at).await;
                let (_, (since, undo)) = agenda.pop_first().unwrap();
                let went_on = !matches!(undo, Undo::Nothing);
                end(fleet, undo).await;
                fleet.disruption_ended(since, went_on);
                continue;
            }
            fleet.until(next_at).await;
            for _ in 0..random.between(1, roughness) {
                let (disruption, length) = draw(&mut random, &pods, n_shards);
                let until = fleet.now() + length;
                if is_verbose {
                    eprintln!("{} {disruption:?} until {until}", fleet.now());
                }
                let since = fleet.now();
                let undo = begin(fleet, &disruption).await;
                let is_drain = matches!(disruption, Disruption::Drain(_));
                let until = if is_drain { until + TERMINATION_GRACE } else { until };
                number += 1;
                agenda.insert((until, number), (since, undo));
            }
            if of_options.is_one_in(2) {
                fleet.ask_for_a_run(&mut of_options).await;
            }
            next_at = next(&mut random, fleet.now());
        }
        fleet.until(fleet.now() + AFTERMATH).await;
        fleet.all_led(Duration::ZERO).await;
        fleet.until(fleet.now() + CALM).await;
        fleet.all_led(Duration::ZERO).await;
        let shares = fleet.shares();
        let (fewest, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
        assert!(most - fewest <= 1, "{shares:?}");
    });
    record
}

/// Runs one seed. If it fails, prints the command that repeats it.
fn is_red(seed: u64) -> bool {
    let is_red = catch_unwind(AssertUnwindSafe(|| play_drawn(seed))).is_err();
    if is_red {
        eprintln!("again: make fleet SEED={seed} SEEDS=1");
    }
    is_red
}

#[test]
fn random_faults_cause_no_missed_or_doubled_run() {
    let variable = |name: &str, default: u64| {
        let text = std::env::var(name).ok().filter(|text| !text.is_empty());
        text.map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
        })
    };
    let first = variable("CRONWHEEL_FLEET_SEED", 1);
    let n_seeds = variable("CRONWHEEL_FLEET_SEEDS", 3);
    let next = std::sync::atomic::AtomicU64::new(first);
    let red = std::thread::scope(|scope| {
        let work = || {
            let seeds = std::iter::repeat_with(|| next.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            let seeds = seeds.take_while(|seed| *seed < first + n_seeds);
            seeds.filter(|seed| is_red(*seed)).collect::<Vec<u64>>()
        };
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect::<Vec<u64>>()
    });
    assert!(red.is_empty(), "red: {red:?}");
}

#[test]
fn same_seed_gives_the_same_run() {
    let [one, other] = [(); 2].map(|()| play_drawn(7));
    let pairs = one.lines().zip(other.lines()).enumerate();
    let differs = pairs.filter(|(_, (one, other))| one != other).take(10);
    assert_eq!(differs.collect::<Vec<_>>(), []);
    assert_eq!(one.len(), other.len());
}

//! Random fleets: a seed draws everything that the scenarios do, at any time and in any combination.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use apisim::{Fault, Rule, RuleId, Verb};
use cronwheel::coordination::ProtocolRange;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    cluster::{Fleet, Size},
    oracle::AFTERMATH,
    play_recorded,
};
use crate::random::Random;

/// The time from the beginning to the last fault.
const LENGTH: SignedDuration = SignedDuration::from_mins(5);

/// The grace period that a kubelet gives a terminating process.
const TERMINATION_GRACE: SignedDuration = SignedDuration::from_secs(30);

/// The time after the last aftermath in which everything must be on time again, so that the shards settle.
const CALM: SignedDuration = SignedDuration::from_secs(75);

/// The previous version of the protocol.
const FORMER: ProtocolRange = ProtocolRange { min: 1, max: 1 };

/// A fault with a beginning and an end.
#[derive(Clone, Debug)]
enum Trouble {
    /// A process is killed, and restarted.
    Crash(String),
    /// A process is asked to terminate, and restarted.
    Drain(String),
    Freeze(String),
    Cut(String),
    /// Fault rules for one Pod, or for all.
    Fault(Option<String>, Vec<Rule>),
    Lag(Duration),
    ClockStep(String, SignedDuration),
    DeleteLease(String),
}

/// What must be undone when a fault ends.
enum Begun {
    Nothing,
    Start(String),
    Thaw(String),
    Heal(String, [RuleId; 2]),
    Rules(Vec<RuleId>),
    LagEnds,
    StepBack(String, SignedDuration),
}

fn draw(random: &mut Random, pods: &[String], n_shards: u16) -> (Trouble, SignedDuration) {
    let mut pod = || pods[random.below(pods.len())].clone();
    let (pod, other) = (pod(), pod());
    let for_whom = if random.is_one_in(2) { Some(other) } else { None };
    let rule = |fault: Fault, per_million: u32, verbs: &[Verb]| Rule {
        per_million,
        verbs: verbs.to_vec(),
        ..Rule::new(fault)
    };
    let delay = |millis: u64| Fault::Delay {
        shortest: Duration::ZERO,
        longest: Duration::from_millis(millis),
    };
    let trouble = match random.below(16) {
        0 | 1 => Trouble::Crash(pod),
        2 | 3 => Trouble::Drain(pod),
        4 | 5 => Trouble::Freeze(pod),
        6 | 7 => Trouble::Cut(pod),
        8 => Trouble::Fault(for_whom, vec![rule(Fault::Outage, 1_000_000, &[])]),
        9 => Trouble::Fault(
            for_whom,
            vec![rule(delay(random.pick(&[400, 1_500, 3_000])), 1_000_000, &[])],
        ),
        10 => {
            let throttle = Fault::Throttle { retry_after_seconds: 1 };
            Trouble::Fault(for_whom, vec![rule(throttle, 300_000, &[])])
        }
        11 => {
            let ending = rule(Fault::CloseWatch, 300_000, &[]);
            Trouble::Fault(for_whom, vec![ending, rule(Fault::Expired, 300_000, &[Verb::Watch])])
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
            Trouble::Fault(for_whom, vec![rule(faults[fault].clone(), per_million, verbs)])
        }
        13 => Trouble::Lag(Duration::from_millis(random.pick(&[500, 3_000, 5_500, 9_000]))),
        14 => {
            let millis = random.pick(&[-3_600_000, -3_000, -1_500, 1_500, 3_000, 3_600_000]);
            Trouble::ClockStep(pod, SignedDuration::from_millis(millis))
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
            Trouble::DeleteLease(name)
        }
    };
    let millis_max = random.pick(&[400, 3_000, 9_000, 12_000, 40_000]);
    (trouble, SignedDuration::from_millis(random.between(50, millis_max)))
}

/// Draws the time of the next fault. Half of them are near a full minute.
fn next(random: &mut Random, now: Timestamp) -> Timestamp {
    if random.is_one_in(2) {
        return now + SignedDuration::from_millis(random.between(100, 15_000));
    }
    let minute = Timestamp::from_second((now.as_second() / 60 + 1) * 60).unwrap();
    (minute + SignedDuration::from_millis(random.between(-700, 500))).max(now)
}

async fn begin(fleet: &mut Fleet, trouble: &Trouble) -> Begun {
    let names = fleet.names();
    match trouble {
        Trouble::Crash(pod) if names.contains(pod) => {
            fleet.kill(pod).await;
            Begun::Start(pod.clone())
        }
        Trouble::Drain(pod) if names.contains(pod) => {
            fleet.ask_to_end(pod);
            Begun::Start(pod.clone())
        }
        Trouble::Freeze(pod) if names.contains(pod) => {
            if fleet.random.is_one_in(3) {
                fleet.freeze_at_create(pod, 1);
            } else {
                fleet.freeze(pod);
            }
            Begun::Thaw(pod.clone())
        }
        Trouble::Cut(pod) if !fleet.is_cut(pod) => Begun::Heal(pod.clone(), fleet.cut(pod)),
        Trouble::Fault(pod, rules) => {
            let mut begun = Vec::new();
            for rule in rules {
                match pod {
                    None => begun.extend(fleet.trouble(rule.clone())),
                    Some(pod) => begun.push(fleet.trouble_of(pod, rule.clone())),
                }
            }
            Begun::Rules(begun)
        }
        Trouble::Lag(lag) => {
            fleet.api.set_lag(1, *lag);
            Begun::LagEnds
        }
        Trouble::ClockStep(pod, by) => {
            fleet.wall(pod).step(*by);
            Begun::StepBack(pod.clone(), -*by)
        }
        Trouble::DeleteLease(name) => {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}");
            // The Lease may not exist.
            let _ = fleet.ask("DELETE", &path, &json!({})).await;
            Begun::Nothing
        }
        Trouble::Crash(_) | Trouble::Drain(_) | Trouble::Freeze(_) | Trouble::Cut(_) => Begun::Nothing,
    }
}

async fn end(fleet: &mut Fleet, begun: Begun) {
    match begun {
        Begun::Nothing => {}
        Begun::Start(pod) => {
            if fleet.names().contains(&pod) {
                // It was asked to terminate, and its grace period is over.
                fleet.kill(&pod).await;
            }
            fleet.start(&pod);
        }
        Begun::Thaw(pod) => {
            fleet.freeze_at_create(&pod, 0);
            fleet.thaw(&pod);
        }
        Begun::Heal(pod, rules) => fleet.heal(&pod, rules),
        Begun::Rules(rules) => fleet.end_trouble(rules),
        Begun::LagEnds => fleet.api.set_lag(1, Duration::ZERO),
        Begun::StepBack(pod, by) => fleet.wall(&pod).step(by),
    }
}

/// Configures the API servers and starts the replicas. The choices have no influence on other draws.
fn set_up(fleet: &mut Fleet, seed: u64, pods: &[String], protocols: &[ProtocolRange]) {
    // Neither API server selects CronJobs by shard, one does, or both.
    let serves = [[false, false], [true, false], [true, true]][usize::try_from(seed % 3).unwrap()];
    for (front_end, serves) in serves.into_iter().enumerate() {
        fleet.api.set_serves_shard_selectors(front_end, serves);
    }
    if seed.is_multiple_of(2) {
        fleet.add_fence_policy();
    }
    for (number, pod) in pods.iter().enumerate() {
        fleet.add(pod);
        fleet.change(pod, |pod| {
            pod.front_end = number % 2;
            pod.protocol = protocols[number % protocols.len()];
        });
        fleet.start(pod);
    }
}

/// Runs one seed. Returns the record of all events.
fn play_drawn(seed: u64) -> String {
    let mut random = Random::new(seed);
    let n_shards = random.pick(&[16, 16, 32, 64]);
    let n_pods = random.between(3, 5);
    let size = Size {
        n_cron_jobs: random.pick(&[30, 60, 90]),
        n_shards,
    };
    let roughness = random.pick(&[1, 2, 4]);
    // Drawn from its own generator, so that other choices do not change. One in three fleets has a replica with the
    // previous version.
    let protocols: &[ProtocolRange] = if Random::new(seed.rotate_left(32)).is_one_in(3) {
        &[FORMER, ProtocolRange::OURS, ProtocolRange::OURS]
    } else {
        &[ProtocolRange::OURS]
    };
    let pods: Vec<String> = (0..n_pods).map(|number| format!("p{number}")).collect();
    let shown = std::env::var("CRONWHEEL_FLEET_SHOW").is_ok();
    let played = play_recorded(seed, size, async |fleet| {
        set_up(fleet, seed, &pods, protocols);
        fleet.at(0, 50.0).await;
        let last = fleet.now() + LENGTH;
        // The end of each fault, with its beginning.
        let mut agenda: BTreeMap<(Timestamp, usize), (Timestamp, Begun)> = BTreeMap::new();
        let mut number = 0;
        let mut next_at = next(&mut random, fleet.now());
        while next_at < last || !agenda.is_empty() {
            let end_at = agenda.first_key_value().map(|((at, _), _)| *at);
            if let Some(at) = end_at.filter(|at| *at <= next_at || next_at >= last) {
                fleet.until(at).await;
                let (_, (since, begun)) = agenda.pop_first().unwrap();
                let went_on = !matches!(begun, Begun::Nothing);
                end(fleet, begun).await;
                fleet.trouble_ended(since, went_on);
                continue;
            }
            fleet.until(next_at).await;
            for _ in 0..random.between(1, roughness) {
                let (trouble, length) = draw(&mut random, &pods, n_shards);
                let until = fleet.now() + length;
                if shown {
                    eprintln!("{} {trouble:?} until {until}", fleet.now());
                }
                let since = fleet.now();
                let begun = begin(fleet, &trouble).await;
                let is_drain = matches!(trouble, Trouble::Drain(_));
                let until = if is_drain { until + TERMINATION_GRACE } else { until };
                number += 1;
                agenda.insert((until, number), (since, begun));
            }
            next_at = next(&mut random, fleet.now());
        }
        fleet.until(fleet.now() + AFTERMATH).await;
        fleet.all_led(Duration::ZERO).await;
        fleet.until(fleet.now() + CALM).await;
        fleet.all_led(Duration::ZERO).await;
        let shares = fleet.shares();
        let (fewest, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
        let quarantined = fleet.look("p0", |process| process.figures().unwrap().overview.quarantined);
        // The leader of a quarantined shard leads no other shard.
        assert!(most - fewest <= 1 || !quarantined.is_empty(), "{shares:?}");
    });
    played.1
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

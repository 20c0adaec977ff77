//! Admission webhooks that delay creates, and the fence policy, which denies late creates.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use jiff::SignedDuration;

use super::{FOUR, THREE, begin};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Life, Plan, Policy},
    play,
};

/// How long webhooks delay a create, in seconds.
#[derive(Clone, Copy, Debug)]
struct Admission {
    mutating: u64,
    validating: u64,
}

/// Delays that an API server allows. Each is longer than the leadership of a replica without renewal.
const SLOW: [Admission; 3] = [
    Admission {
        mutating: 10,
        validating: 0,
    },
    Admission {
        mutating: 0,
        validating: 10,
    },
    Admission {
        mutating: 0,
        validating: 25,
    },
];

const SIZE: Size = Size {
    n_cron_jobs: 30,
    n_shards: 16,
};

/// The maximum delay that the controller adds to the admission time.
const CONTROLLER_LATENESS: Duration = Duration::from_secs(2);

/// How long a request for the previous slot may still be in flight, if Forbid held that slot back until shortly before
/// the next one.
const FORMER_SLOT: Duration = Duration::from_secs(9);

/// A disruption of a replica while admission is slow.
#[derive(Clone, Copy, Debug)]
enum Disruption {
    Kill,
    Freeze,
    Drain,
}

impl Admission {
    fn seconds(self) -> u64 {
        self.mutating + self.validating
    }

    /// Delays one in `one_in` creates of Jobs from now on.
    fn delay_creates(self, fleet: &Fleet, one_in: u32) {
        let fault = Fault::SlowAdmission {
            mutating: Duration::from_secs(self.mutating),
            validating: Duration::from_secs(self.validating),
        };
        fleet.api.faults().add(Rule {
            resource: Some(Resource::Job),
            verbs: vec![Verb::Create],
            per_million: 1_000_000 / one_in,
            ..Rule::new(fault)
        });
    }
}

/// Starts a fleet in which every Job has this admission time.
async fn begin_with_admission(fleet: &mut Fleet, admission: Admission, has_fence_policy: bool) {
    begin(fleet, &FOUR).await;
    if has_fence_policy {
        fleet.add_fence_policy();
    }
    admission.delay_creates(fleet, 1);
    allow_each_late(fleet, admission.seconds());
}

/// Allows every Job to be late by this time plus the lateness of the controller.
fn allow_each_late(fleet: &mut Fleet, seconds: u64) {
    let begun = fleet.now();
    for second in 0..300 {
        let due = begun + SignedDuration::from_secs(second);
        fleet.allow_late(
            due,
            (Duration::from_secs(seconds) + CONTROLLER_LATENESS + FORMER_SLOT).as_secs_f64(),
        );
    }
}

/// Disrupts replicas while the creates of the first slot are in flight. Waits until the creates of the second slot are
/// stored.
async fn disrupt(fleet: &mut Fleet, disruption: Disruption) {
    fleet.at(1, 3.0).await;
    match disruption {
        Disruption::Kill => {
            fleet.kill("b").await;
        }
        Disruption::Freeze => {
            fleet.freeze("b");
            fleet.at(1, 40.0).await;
            fleet.thaw("b");
        }
        Disruption::Drain => {
            fleet.drain("b").await;
            fleet.at(2, 3.0).await;
            fleet.drain("c").await;
        }
    }
    fleet.at(2, 58.0).await;
}

/// Plays a disruption with each slow admission and the fence policy, and with the slowest admission without the policy.
fn disrupt_slow_admission(seed: u64, disruption: Disruption) {
    let [mutating, validating, slowest] = SLOW;
    let cases = [(mutating, true), (validating, true), (slowest, true), (slowest, false)];
    for (seed, (admission, has_fence_policy)) in (seed..).zip(cases) {
        play(seed, SIZE, async |fleet| {
            begin_with_admission(fleet, admission, has_fence_policy).await;
            disrupt(fleet, disruption).await;
            assert_eq!(fleet.records().n_denied, 0, "{admission:?}");
        });
    }
}

/// The maximum lateness of Jobs that only admission delays, for slots from the first minute on.
fn worst_lateness(fleet: &Fleet) -> SignedDuration {
    let (records, from) = (fleet.records(), fleet.instant(1, 0.0));
    let jobs = records
        .jobs
        .values()
        .filter(|job| records.cron_jobs[&job.owner].plan.policy == Policy::Allow);
    let slots = jobs.filter_map(|job| Some((job.slot.filter(|slot| *slot >= from)?, job.created)));
    slots.map(|(slot, created)| created.duration_since(slot)).max().unwrap()
}

#[test]
fn f_29_slow_admission_delays_jobs_and_loses_none() {
    for (seed, admission) in (2_900..).zip(SLOW) {
        play(seed, SIZE, async |fleet| {
            begin_with_admission(fleet, admission, true).await;
            fleet.at(3, 50.0).await;
            let admitted = Duration::from_secs(admission.seconds());
            let longest = SignedDuration::try_from(admitted + CONTROLLER_LATENESS).unwrap();
            let worst = worst_lateness(fleet);
            assert!(worst <= longest, "{worst:?}");
            assert_eq!(fleet.records().n_denied, 0, "{admission:?}");
        });
    }
}

#[test]
fn f_29_kill_during_slow_admission_doubles_no_run() {
    disrupt_slow_admission(2_950, Disruption::Kill);
}

#[test]
fn f_29_freeze_during_slow_admission_doubles_no_run() {
    disrupt_slow_admission(2_960, Disruption::Freeze);
}

#[test]
fn f_29_drain_during_slow_admission_loses_and_doubles_no_run() {
    disrupt_slow_admission(2_930, Disruption::Drain);
}

#[test]
fn f_29_many_creates_with_slow_admission_fit_into_their_minute() {
    let size = Size { n_cron_jobs: 0, ..SIZE };
    play(2_940, size, async |fleet| {
        for number in 0..550 {
            fleet.create_cron_job(Plan::plain(&format!("c-{number:03}"))).await;
        }
        begin(fleet, &THREE).await;
        let [_, ten_seconds, _] = SLOW;
        ten_seconds.delay_creates(fleet, 1);
        // One in eleven creates takes 25 seconds.
        let more = Admission {
            mutating: 0,
            validating: 15,
        };
        more.delay_creates(fleet, 11);
        allow_each_late(fleet, 55);
        fleet.at(3, 58.0).await;
    });
}

/// The number of CronJobs whose Jobs may be deleted before their slot is stored.
const N_SHORT: usize = 12;

/// Starts a fleet with CronJobs whose Jobs may be deleted before their slot is stored.
async fn begin_with_short_lived(fleet: &mut Fleet) {
    let lives = [Life::Seconds(0), Life::Seconds(5), Life::NoHistory];
    for number in 0..N_SHORT {
        let plan = Plan {
            life: lives[number % lives.len()],
            ..Plan::plain(&format!("short-{number:02}"))
        };
        fleet.create_cron_job(plan).await;
    }
    begin(fleet, &FOUR).await;
}

/// The number of Jobs since the first minute that belong to CronJobs of [`begin_with_short_lived`].
fn n_short_lived(fleet: &Fleet) -> usize {
    let (records, from) = (fleet.records(), fleet.instant(1, 0.0));
    let short = records.jobs.values().filter(|job| job.name.starts_with("short-"));
    short.filter(|job| job.slot >= Some(from)).count()
}

/// The oracle accepts a lost run of a short-lived Job only if an Event reports it.
#[test]
fn f_29_short_lived_jobs_lost_in_slow_admission_are_reported() {
    let size = Size { n_cron_jobs: 3, ..SIZE };
    let disruptions = [Disruption::Kill, Disruption::Freeze, Disruption::Drain];
    let cases = SLOW
        .into_iter()
        .flat_map(|admission| disruptions.map(|disruption| (admission, disruption)));
    for (number, (admission, disruption)) in (0_u32..).zip(cases) {
        // All creates or half of them are slow. With half of them, another attempt may overtake a slow one.
        let one_in = 1 + number % 2;
        play(2_950 + u64::from(number), size, async |fleet| {
            begin_with_short_lived(fleet).await;
            admission.delay_creates(fleet, one_in);
            // The last attempt of a run may be at the end of its minute.
            allow_each_late(fleet, 55);
            disrupt(fleet, disruption).await;
            let n_jobs = n_short_lived(fleet);
            let expected = if one_in == 1 { 0..=0 } else { N_SHORT..=2 * N_SHORT };
            assert!(expected.contains(&n_jobs), "{admission:?} {disruption:?}: {n_jobs}");
        });
    }
}

#[test]
fn f_29_the_fence_policy_denies_jobs_whose_mutation_outlives_leadership() {
    let size = Size { n_cron_jobs: 3, ..SIZE };
    for has_fence_policy in [false, true] {
        play(2_980 + u64::from(has_fence_policy), size, async |fleet| {
            begin_with_short_lived(fleet).await;
            if has_fence_policy {
                fleet.add_fence_policy();
            }
            // The delay is less than the lifetime of the request, and more than the six seconds that are left after a
            // renewal.
            let admission = Admission {
                mutating: 7,
                validating: 0,
            };
            admission.delay_creates(fleet, 1);
            allow_each_late(fleet, 55);
            fleet.at(2, 50.0).await;
            let n_jobs = n_short_lived(fleet);
            let (n_expected, is_denied) = if has_fence_policy {
                (0, true)
            } else {
                (2 * N_SHORT, false)
            };
            assert_eq!((n_jobs, fleet.records().n_denied > 0), (n_expected, is_denied));
        });
    }
}

/// The next leader has created the Job, and the Job is already deleted.
#[test]
fn f_29_the_fence_policy_denies_a_late_create_of_a_frozen_replica() {
    let size = Size { n_cron_jobs: 0, ..SIZE };
    play(2_990, size, async |fleet| {
        begin_with_short_lived(fleet).await;
        fleet.add_fence_policy();
        fleet.at(0, 59.0).await;
        fleet.allow_late(fleet.now(), 12.5);
        fleet.freeze_at_create("b", 1);
        fleet.at(1, 30.0).await;
        assert_eq!(n_short_lived(fleet), N_SHORT);
        fleet.thaw("b");
        fleet.at(1, 32.0).await;
        assert!(fleet.records().n_denied > 0, "the policy denies the late create");
        fleet.at(2, 20.0).await;
    });
}

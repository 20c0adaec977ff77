//! The verdict: compares the Jobs that must exist with those that were created, and computes their lateness.
//!
//! The name of a Job contains its slot (B-11.1), so a name is one instant of one CronJob. A Job that was never created
//! is missed. A Job that was created more than once is doubled, even if the first one was deleted in between.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    slice,
};

use crate::{
    audit::Request,
    generator::SyntheticCronJob,
    slots::{Slot, Slots},
};

/// Namespaces and names of Jobs.
pub(crate) type JobNames = BTreeSet<(String, String)>;

/// The creation of the Jobs of one or several slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Burst {
    /// From slot to arrival, in ascending order, in microseconds. A negative value would be too early.
    lateness_us: Vec<i64>,
}

impl Burst {
    /// The number of Jobs.
    pub(crate) fn n_jobs(&self) -> usize {
        self.lateness_us.len()
    }

    /// From slot to arrival, in ascending order, in microseconds.
    pub(crate) fn lateness_us(&self) -> &[i64] {
        &self.lateness_us
    }

    /// The quantile of the lateness, by nearest rank. `None` without Jobs.
    pub(crate) fn quantile_us(&self, share: f64) -> Option<i64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a rank is between 0 and the number of Jobs"
        )]
        let rank = (share * self.n_jobs() as f64).ceil() as usize;
        self.lateness_us.get(rank.saturating_sub(1)).copied()
    }
}

/// The outcome of all due instants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Due instants.
    pub(crate) n_expected: usize,
    /// Instants for which a Job was created.
    pub(crate) n_created: usize,
    /// Of these, instants whose create got no response. The existence of the Job proves the create.
    pub(crate) n_unanswered: usize,
    /// Names of the Jobs that were never created.
    pub(crate) missed: Vec<String>,
    /// Names of the Jobs that were created more than once.
    pub(crate) doubled: Vec<String>,
    /// Jobs created for slots outside the window. They do not affect the verdict.
    pub(crate) n_outside: usize,
    /// The bursts of the measured slots.
    pub(crate) bursts: BTreeMap<Slot, Burst>,
    /// All measured slots together.
    pub(crate) measured: Burst,
}

impl Tally {
    /// Compares the due instants with the audit log and with the Jobs that still exist.
    pub(crate) fn of(
        cron_jobs: &[SyntheticCronJob],
        slots: &Slots,
        requests: &[Request],
        existing: &JobNames,
    ) -> Tally {
        let unanswered = unanswered_creates(requests, existing);
        let mut arrivals: HashMap<(&str, &str), Vec<&Request>> = HashMap::new();
        let mut n_creates = 0;
        for request in requests.iter().filter(|request| request.is_job_create()) {
            arrivals
                .entry((&request.namespace, &request.name))
                .or_default()
                .push(request);
            n_creates += 1;
        }
        let mut tally = Tally {
            n_outside: n_creates,
            ..Tally::default()
        };
        for slot in slots.all() {
            for cron_job in cron_jobs.iter().filter(|one| one.due.is_at(slot)) {
                let name = slot.job_name(&cron_job.name);
                let key = (cron_job.namespace.as_str(), name.as_str());
                let answered = arrivals.get(&key).map(Vec::as_slice);
                let unanswered = unanswered.get(&key).filter(|_| answered.is_none());
                tally.n_unanswered += usize::from(unanswered.is_some());
                tally.n_outside += usize::from(unanswered.is_some());
                let created = answered.or(unanswered.map(slice::from_ref)).unwrap_or_default();
                let full_name = format!("{}/{name}", cron_job.namespace);
                tally.add(full_name, slot, slots.is_measured(slot), created);
            }
        }
        tally.measured.lateness_us.sort_unstable();
        tally
            .bursts
            .values_mut()
            .for_each(|burst| burst.lateness_us.sort_unstable());
        tally
    }

    /// Whether each instant has exactly one Job.
    pub(crate) fn is_clean(&self) -> bool {
        self.missed.is_empty() && self.doubled.is_empty()
    }

    fn add(&mut self, full_name: String, slot: Slot, is_measured: bool, created: &[&Request]) {
        self.n_expected += 1;
        self.n_outside -= created.len();
        // The log is in the order of responses. The order of arrivals may differ among duplicates.
        let Some(first) = created.iter().map(|request| request.received).min() else {
            self.missed.push(full_name);
            return;
        };
        self.n_created += 1;
        if created.len() > 1 {
            self.doubled.push(full_name);
        }
        if is_measured {
            let lateness_us = first.as_microsecond() - slot.start().as_microsecond();
            self.bursts.entry(slot).or_default().lateness_us.push(lateness_us);
            self.measured.lateness_us.push(lateness_us);
        }
    }
}

/// For each Job, the first create without a response that may have made it. Includes only Jobs that exist or were
/// deleted.
fn unanswered_creates<'a>(requests: &'a [Request], existing: &JobNames) -> HashMap<(&'a str, &'a str), &'a Request> {
    let name = |request: &'a Request| (request.namespace.as_str(), request.name.as_str());
    let delete_requests = requests.iter().filter(|request| request.is_job_delete());
    let deleted: HashSet<(&str, &str)> = delete_requests.map(name).collect();
    let mut creates: HashMap<(&str, &str), &Request> = HashMap::new();
    for request in requests.iter().filter(|request| request.is_unanswered_job_create()) {
        let key = name(request);
        if deleted.contains(&key) || existing.contains(&(key.0.to_owned(), key.1.to_owned())) {
            creates.entry(key).or_insert(request);
        }
    }
    creates
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::{generator::Load, slots::Due};

    const NAMES: [&str; 2] = ["a", "b"];

    fn cron_jobs() -> Vec<SyntheticCronJob> {
        let mut cron_jobs = Load::minutely("load".into(), 2, 1, 3).cron_jobs();
        for (cron_job, name) in cron_jobs.iter_mut().zip(NAMES) {
            cron_job.name = name.into();
        }
        cron_jobs
    }

    /// A warm-up slot at minute 100, and measured slots at 101 and 102.
    fn slots() -> Slots {
        Slots::starting_at(Timestamp::from_second(6_000).unwrap(), 1, 2)
    }

    fn create(name: &str, minute: i64, lateness_ms: i64) -> Request {
        let received = Timestamp::from_second(minute * 60).unwrap() + SignedDuration::from_millis(lateness_ms);
        Request {
            verb: "create".into(),
            resource: "jobs".into(),
            namespace: "load-0".into(),
            name: format!("{name}-{minute}"),
            code: 201,
            received,
            answered: received,
        }
    }

    fn all_once() -> Vec<Request> {
        (100..103)
            .flat_map(|minute| NAMES.map(|name| create(name, minute, minute - 99)))
            .collect()
    }

    fn tally(requests: &[Request]) -> Tally {
        Tally::of(&cron_jobs(), &slots(), requests, &JobNames::new())
    }

    #[test]
    fn every_instant_with_one_job_is_clean() {
        let tally = tally(&all_once());
        assert!(tally.is_clean());
        assert_eq!((tally.n_expected, tally.n_created, tally.n_outside), (6, 6, 0));
    }

    #[test]
    fn an_instant_without_a_job_is_missed() {
        let mut requests = all_once();
        requests.remove(3);
        let tally = tally(&requests);
        assert!(!tally.is_clean());
        assert_eq!(tally.missed, ["load-0/b-101"]);
        assert_eq!(tally.n_created, 5);
    }

    #[test]
    fn cron_job_is_expected_only_when_due() {
        let mut cron_jobs = cron_jobs();
        cron_jobs[0].due = Due::EveryMinutes(5);
        cron_jobs[1].due = Due::Never;
        let tally = Tally::of(&cron_jobs, &slots(), &[create("a", 100, 1)], &JobNames::new());
        assert_eq!((tally.n_expected, tally.n_created, tally.missed.len()), (1, 1, 0));
    }

    #[test]
    fn a_refused_create_makes_no_job() {
        let mut requests = all_once();
        requests[3].code = 409;
        assert_eq!(tally(&requests).missed, ["load-0/b-101"]);
    }

    #[test]
    fn unanswered_create_counts_if_its_job_was_seen() {
        let mut requests = all_once();
        requests[3].code = 504;
        assert_eq!(tally(&requests).missed, ["load-0/b-101"]);

        let existing = JobNames::from([("load-0".to_owned(), "b-101".to_owned())]);
        let by_job = Tally::of(&cron_jobs(), &slots(), &requests, &existing);
        assert!(by_job.is_clean());
        assert_eq!((by_job.n_created, by_job.n_unanswered, by_job.n_outside), (6, 1, 0));

        let mut delete = create("b", 101, 300_000);
        (delete.verb, delete.code) = ("delete".to_owned(), 200);
        requests.push(delete);
        let by_delete = tally(&requests);
        assert!(by_delete.is_clean());
        assert_eq!(by_delete.n_unanswered, 1);

        // Created by another client as well: one create got its response, the other did not.
        requests.push(create("b", 101, 5_000));
        assert_eq!((tally(&requests).n_unanswered, tally(&requests).doubled.len()), (0, 0));
    }

    #[test]
    fn a_job_created_twice_is_doubled_and_its_first_arrival_counts() {
        let mut requests = all_once();
        requests.insert(0, create("a", 102, 59_000));
        let tally = tally(&requests);
        assert_eq!(tally.doubled, ["load-0/a-102"]);
        assert_eq!(tally.measured.quantile_us(1.0), Some(3_000));
    }

    #[test]
    fn job_with_the_same_name_in_another_namespace_is_outside() {
        let mut requests = all_once();
        requests[3].namespace = "other".into();
        let tally = tally(&requests);
        assert_eq!(tally.missed, ["load-0/b-101"]);
        assert_eq!(tally.n_outside, 1);
    }

    #[test]
    fn slots_outside_the_window_do_not_affect_the_verdict() {
        let mut requests = all_once();
        requests.extend([create("a", 99, 7), create("a", 103, 7)]);
        let tally = tally(&requests);
        assert!(tally.is_clean());
        assert_eq!(tally.n_outside, 2);
    }

    #[test]
    fn lateness_covers_only_the_measured_slots() {
        let tally = tally(&all_once());
        assert_eq!(tally.measured.lateness_us, [2_000, 2_000, 3_000, 3_000]);
        assert_eq!(tally.bursts.values().map(Burst::n_jobs).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn quantiles_use_the_nearest_rank() {
        let burst = Burst {
            lateness_us: (1..=100).collect(),
        };
        let check = |share: f64, expected: i64| assert_eq!(burst.quantile_us(share), Some(expected), "{share}");
        check(0.0, 1);
        check(0.5, 50);
        check(0.99, 99);
        check(1.0, 100);
        assert_eq!(Burst { lateness_us: vec![7] }.quantile_us(0.5), Some(7));
        assert_eq!(Burst::default().quantile_us(0.5), None);
    }
}

//! Compares the index with maps, using seeded random operations.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::shard::{
    CronJobRecord, Finish, JobCreator, JobRecord, ResourceVersion, TemplateMemory, cron_job::Management,
};

/// A small seeded generator that gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn uid(kind: &str, number: u64) -> Uid {
    Uid::new(&format!("{kind}-{number}"))
}

fn job(number: u64, owner: Option<u64>) -> JobRecord {
    JobRecord {
        uid: uid("job", number),
        namespace: format!("namespace-{}", number % 3).into(),
        name: format!("job-{number}").into(),
        resource_version: ResourceVersion(1),
        controller: owner.map(|owner| uid("cron-job", owner)),
        scheduled: None,
        finish: None,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    }
}

/// The reference model: the CronJobs present, and the owner of each Job.
#[derive(Default)]
struct Model {
    cron_jobs: BTreeSet<u64>,
    jobs: BTreeMap<u64, u64>,
}

fn check(index: &Index, model: &Model, context: &str) {
    let known = index
        .owner_indexes()
        .filter(|owner| index.get_cron_job(*owner).is_some());
    assert_eq!(known.count(), model.cron_jobs.len(), "{context}");
    assert_eq!(index.n_jobs(), model.jobs.len(), "{context}");
    for owner in 0..8 {
        let uid = uid("cron-job", owner);
        let found = index.find_cron_job(&uid);
        assert_eq!(found.is_some(), model.cron_jobs.contains(&owner), "{context}");
        let Some(place) = index.find_owner(&uid) else {
            assert!(!model.jobs.values().any(|of| *of == owner), "{context}");
            continue;
        };
        let mut names: Vec<&str> = index.jobs_of(place).map(|(_, job)| &*job.name).collect();
        names.sort_unstable();
        let mut expected: Vec<String> = model
            .jobs
            .iter()
            .filter(|(_, of)| **of == owner)
            .map(|(job, _)| format!("job-{job}"))
            .collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "{context}");
        assert_eq!(index.n_jobs_of(place) as usize, expected.len(), "{context}");
    }
}

fn template() -> CronJobRecord {
    crate::shard::state::test_record("any")
}

#[test]
fn index_matches_a_model_under_random_operations() {
    for seed in 1..=20 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let (mut index, mut model) = (Index::new(), Model::default());
        for step in 0..400 {
            let (owner, number) = (random.below(8), random.below(24));
            match random.below(6) {
                0 => {
                    let cron_job = CronJobState::new(template(), 0, &TemplateMemory::default(), Management::Managed);
                    index.insert_cron_job(&uid("cron-job", owner), Box::new(cron_job));
                    model.cron_jobs.insert(owner);
                }
                1 => {
                    if let Some(place) = index.find_cron_job(&uid("cron-job", owner)) {
                        index.remove_cron_job(place);
                    }
                    model.cron_jobs.remove(&owner);
                }
                2 => {
                    if let Some(place) = index.find_job(&uid("job", number)) {
                        index.remove_job(place);
                    }
                    model.jobs.remove(&number);
                }
                3 => {
                    index.apply_job(job(number, None), 0);
                    model.jobs.remove(&number);
                }
                _ => {
                    let [former_owner, _] = index.apply_job(job(number, Some(owner)), 0);
                    let former = model.jobs.insert(number, owner);
                    assert_eq!(former_owner.is_some(), former.is_some_and(|former| former != owner));
                }
            }
            check(&index, &model, &format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn the_owner_is_evaluated_for_a_finished_job_and_not_for_an_echo() {
    let mut index = Index::new();
    let mut is_evaluated = |record| index.apply_job(record, 0)[1].is_some();
    let first = job(1, Some(1));
    let echo = JobRecord {
        resource_version: ResourceVersion(2),
        ..first.clone()
    };
    let finished = JobRecord {
        resource_version: ResourceVersion(3),
        finish: Some(Finish::Failed),
        ..first.clone()
    };
    assert!(is_evaluated(first));
    assert!(!is_evaluated(echo));
    assert!(is_evaluated(finished));
}

#[test]
fn an_older_version_of_a_job_only_marks_it_as_present() {
    let mut index = Index::new();
    let ended = JobRecord {
        resource_version: ResourceVersion(150),
        finish: Some(Finish::Complete),
        ..job(1, Some(1))
    };
    index.apply_job(ended, 1);
    for controller in [Some(1), Some(2), None] {
        let running = JobRecord {
            resource_version: ResourceVersion(90),
            ..job(1, controller)
        };
        assert_eq!(index.apply_job(running, 2), [None, None], "{controller:?}");
        let known = index.job(index.find_job(&uid("job", 1)).unwrap());
        let known = (known.finish, known.resource_version, known.mark);
        assert_eq!(known, (Some(Finish::Complete), 150, 2), "{controller:?}");
        let owner = index.find_owner(&uid("cron-job", 1)).unwrap();
        assert_eq!(index.jobs_of(owner).count(), 1, "{controller:?}");
    }
}

#[test]
fn the_token_of_a_job_is_that_of_its_last_version_and_ends_with_it() {
    let mut index = Index::new();
    for (version, token) in [(1, Some("t1")), (2, Some("t2")), (3, None), (4, Some("t3"))] {
        let record = JobRecord {
            resource_version: ResourceVersion(version),
            run_token: token.map(Into::into),
            ..job(1, Some(1))
        };
        index.apply_job(record, 1);
        let place = index.find_job(&uid("job", 1)).unwrap();
        assert_eq!(index.run_token(place), token);
    }
    let place = index.find_job(&uid("job", 1)).unwrap();
    index.remove_job(place);
    assert!(!index.has_run_tokens());
}

#[test]
fn job_record_fits_its_memory_budget() {
    // The element, a name of thirty bytes with the allocator's overhead, and its share of the table.
    let table_bytes = 10;
    assert!(
        size_of::<Option<Job>>() + 48 + table_bytes <= 256,
        "{}",
        size_of::<Option<Job>>()
    );
}

//! Tests of the state of a CronJob.

use super::*;
use crate::shard::state::test_record;

#[test]
fn state_of_a_cron_job_fits_the_size_class_of_the_allocator() {
    // The next class of jemalloc is 768 bytes.
    assert!(size_of::<CronJobState>() <= 640, "{}", size_of::<CronJobState>());
}

#[test]
fn answer_of_a_former_write_does_not_change_the_current_status() {
    let entry = ActiveJob {
        name: "a".into(),
        namespace: "default".into(),
        uid: Uid::new("a"),
        resource_version: "1".into(),
    };
    let mut cron_job = CronJobState::new(
        test_record("hello"),
        0,
        &TemplateMemory::new(u64::MAX),
        Management::Managed,
    );
    let stored = cron_job.record.status.clone();
    cron_job.add_active(entry.clone());
    let sent = cron_job.current_status().clone();
    assert!(cron_job.remove_active(&entry.uid));
    assert!(cron_job.is_status_stored());
    cron_job.drop_stored_status();
    cron_job.note_stored(sent);
    assert_eq!(*cron_job.current_status(), stored);
    assert!(!cron_job.is_status_stored(), "the current status must be written again");
}

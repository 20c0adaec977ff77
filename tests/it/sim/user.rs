//! The actions of users. The world records them.

use std::cell::RefCell;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, NAMESPACE, STRANGERS_NAMESPACE},
    options::CALENDAR_NAME,
    scenario::{Edit, EditKind, Scenario, Spec},
    world::{CronJob, Freeze, World},
};

/// The annotation of manual Jobs.
const MANUAL: &str = "cronjob.kubernetes.io/instantiate";

pub(super) struct User<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) world: &'a RefCell<World>,
}

impl User<'_> {
    /// Creates the CronJobs of a scenario.
    pub(super) async fn begin(&self, scenario: &Scenario) {
        self.cluster.create_strangers_namespace().await;
        self.create_calendar(scenario.excluded_day).await;
        for (number, spec) in scenario.specs.iter().enumerate() {
            self.create(&name(number), *spec).await;
        }
    }

    /// Performs the edits of a scenario.
    pub(super) async fn edit(&self, scenario: &Scenario) {
        for (number, edit) in scenario.edits.iter().enumerate() {
            self.cluster.stop_at(edit.at).await;
            self.perform(number, edit).await;
        }
    }

    /// Suspends every CronJob.
    pub(super) async fn suspend_all(&self) {
        let names = self.with_all(|cron_job| cron_job.name.clone());
        for name in names {
            self.change(&name, |spec| spec.is_suspended = true).await;
        }
    }

    /// Creates the calendar that `not-on` names, with one date.
    async fn create_calendar(&self, excluded_day: i64) {
        let midnight = Timestamp::from_second(excluded_day * 86_400).unwrap();
        let date = midnight.to_zoned(TimeZone::UTC).date();
        let calendar = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CALENDAR_NAME, "labels": {"cronwheel.dev/calendar": "true"}},
            "data": {"dates": format!("# The only date\n{date} Holiday\n")},
        });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        self.cluster.send_to("POST", &path, Some(&calendar)).await.unwrap();
    }

    /// Sets or removes the annotation of a freeze.
    async fn annotate_namespace(&self, until: Option<Timestamp>) {
        let patch = json!({"metadata": {"annotations": {
            "cronwheel.dev/freeze-until": until.map(|until| until.to_string()),
        }}});
        let url = format!("/api/v1/namespaces/{NAMESPACE}");
        self.cluster.send_to("PATCH", &url, Some(&patch)).await.unwrap();
        let (mut world, now) = (self.world.borrow_mut(), self.cluster.now());
        // The annotation of a freeze replaces that of the last one.
        if let Some(last) = world.freezes.last_mut() {
            last.removed.get_or_insert(now);
        }
        world.freezes.extend(until.map(|until| Freeze {
            from: now,
            until,
            removed: None,
        }));
    }

    fn with_all<T>(&self, of: impl Fn(&CronJob) -> T) -> Vec<T> {
        let world = self.world.borrow();
        let exists = |cron_job: &&CronJob| cron_job.deleted.is_none();
        world.cron_jobs.iter().filter(exists).map(of).collect()
    }

    async fn perform(&self, number: usize, edit: &Edit) {
        let name = name(edit.cron_job);
        let found = self.world.borrow().find(&name);
        match (edit.kind, found) {
            (EditKind::Create(spec), None) => self.create(&name, spec).await,
            (EditKind::Freeze(until), _) => self.annotate_namespace(Some(until)).await,
            (EditKind::Thaw, _) => self.annotate_namespace(None).await,
            (EditKind::Create(_), Some(_)) | (_, None) => {}
            (EditKind::Change(change), Some(_)) => self.change(&name, |spec| change.apply(spec)).await,
            (EditKind::Delete, Some(index)) => {
                // The record precedes the request, because the Jobs are deleted with the CronJob.
                self.world.borrow_mut().end(index, self.cluster.now());
                self.cluster.send("DELETE", "cronjobs", &name, None).await.unwrap();
            }
            (EditKind::ManualJob, Some(index)) => self.create_manual_job(number, index).await,
            (EditKind::ForeignJob, Some(index)) => self.create_foreign_job(index).await,
            (EditKind::StrangersJob, Some(index)) => self.create_strangers_job(number, index).await,
            (EditKind::DeleteJob { number }, Some(index)) => self.delete_job(number, index).await,
        }
    }

    async fn create(&self, name: &str, spec: Spec) {
        let mut annotations = spec.options.annotations(&spec.calendar);
        annotations.retain(|_, value| !value.is_null());
        let object = json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name, "annotations": annotations},
            "spec": cron_job_spec(&spec),
        });
        let stored = self.cluster.send("POST", "cronjobs", "", Some(&object)).await.unwrap();
        let text = |member: &str| stored["metadata"][member].as_str().unwrap().to_owned();
        self.world.borrow_mut().begin(CronJob {
            name: name.to_owned(),
            uid: text("uid"),
            created: text("creationTimestamp").parse().unwrap(),
            specs: vec![(self.cluster.now(), spec)],
            deleted: None,
            statuses: Vec::new(),
        });
    }

    async fn change(&self, name: &str, change: impl FnOnce(&mut Spec)) {
        let Some(index) = self.world.borrow().find(name) else {
            return;
        };
        let mut spec = *self.world.borrow().cron_jobs[index].spec();
        change(&mut spec);
        let annotations = spec.options.annotations(&spec.calendar);
        let patch = json!({"metadata": {"annotations": annotations}, "spec": cron_job_spec(&spec)});
        self.cluster
            .send("PATCH", "cronjobs", name, Some(&patch))
            .await
            .unwrap();
        self.world.borrow_mut().cron_jobs[index]
            .specs
            .push((self.cluster.now(), spec));
    }

    async fn create_manual_job(&self, number: usize, index: usize) {
        let (name, uid, spec) = self.name_uid_spec(index);
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": format!("{name}-by-hand-{number}"),
                "annotations": {MANUAL: "manual"},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true}],
            },
            "spec": job_spec(&spec),
        });
        self.cluster.send("POST", "jobs", "", Some(&job)).await.unwrap();
    }

    /// Creates a Job with the name of the Job for the next slot.
    async fn create_foreign_job(&self, index: usize) {
        let (name, _, spec) = self.name_uid_spec(index);
        let Some(slot) = self.next_slot(index) else { return };
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": job_name(&name, slot)},
            "spec": job_spec(&spec),
        });
        // The Job may already exist if the clock of the controller is ahead.
        let _ = self.cluster.send("POST", "jobs", "", Some(&job)).await;
    }

    /// Creates a Job in the namespace of the strangers that resembles a run of the CronJob, for its next slot or for a
    /// slot in the far future.
    async fn create_strangers_job(&self, number: usize, index: usize) {
        let (name, uid, spec) = self.name_uid_spec(index);
        let now = self.cluster.now();
        let far_ahead = Timestamp::from_second((now.as_second() / 60 + 50 * 365 * 24 * 60) * 60).unwrap();
        let slot = if number.is_multiple_of(2) {
            self.next_slot(index).unwrap_or(far_ahead)
        } else {
            far_ahead
        };
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(&name, slot),
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_string()},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true}],
            },
            "spec": job_spec(&spec),
        });
        // A Job for that slot may already exist.
        let _ = self
            .cluster
            .send_in(STRANGERS_NAMESPACE, "POST", "jobs", "", Some(&job))
            .await;
    }

    fn next_slot(&self, index: usize) -> Option<Timestamp> {
        let world = self.world.borrow();
        let (cron_job, now) = (&world.cron_jobs[index], self.cluster.now());
        let end = now + SignedDuration::from_hours(25);
        let slots = cron_job.spec().slots(cron_job.created, now, end);
        slots.first().copied()
    }

    async fn delete_job(&self, number: usize, index: usize) {
        let chosen = {
            let world = self.world.borrow();
            let jobs = world.jobs_of(&world.cron_jobs[index].uid);
            let chosen = number.checked_rem(jobs.len()).and_then(|number| jobs.get(number));
            chosen.map(|job| (job.uid.clone(), job.namespace.clone(), job.name.clone()))
        };
        let Some((job_uid, namespace, job)) = chosen else {
            return;
        };
        self.world.borrow_mut().deleted_by_users.insert(job_uid);
        // The Job may already be deleted.
        let _ = self.cluster.send_in(&namespace, "DELETE", "jobs", &job, None).await;
    }

    fn name_uid_spec(&self, index: usize) -> (String, String, Spec) {
        let world = self.world.borrow();
        let cron_job = &world.cron_jobs[index];
        (cron_job.name.clone(), cron_job.uid.clone(), *cron_job.spec())
    }
}

fn name(number: usize) -> String {
    format!("job-{number:02}")
}

/// The name of the Job for a slot (B-11.1).
pub(super) fn job_name(cron_job: &str, slot: Timestamp) -> String {
    format!("{cron_job}-{}", slot.as_second() / 60)
}

fn cron_job_spec(spec: &Spec) -> Value {
    json!({
        "schedule": spec.calendar.text(),
        "timeZone": spec.calendar.time_zone(),
        "suspend": spec.is_suspended,
        "concurrencyPolicy": spec.policy.as_str(),
        "startingDeadlineSeconds": spec.deadline_seconds,
        "successfulJobsHistoryLimit": spec.complete_max,
        "failedJobsHistoryLimit": spec.failed_max,
        "jobTemplate": {"spec": job_spec(spec)},
    })
}

fn job_spec(spec: &Spec) -> Value {
    json!({
        "ttlSecondsAfterFinished": spec.ttl_seconds,
        "template": {
            "metadata": {"annotations": {"run-for": format!("{}s", spec.run_seconds)}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
        },
    })
}

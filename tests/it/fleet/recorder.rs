//! The recorder watches the API server and records every Job, status cursor, Lease and Warning.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use apisim::{Api, WallClock};
use futures::StreamExt;
use jiff::Timestamp;
use kube::{Client, core::WatchEvent};
use serde_json::Value;

use super::{
    pod::NAMESPACE,
    records::{Holder, Job, MemberChange, Records, ShardChange},
};

#[derive(Clone, Copy)]
enum Kind {
    Jobs,
    CronJobs,
    Leases,
    Events,
}

/// Records all changes after a version, forever.
pub(super) async fn run(api: Api, clock: WallClock, records: Arc<Mutex<Records>>, version: u64) -> Infallible {
    let follow =
        |kind: Kind, path: &'static str| follow(api.clone(), clock.clone(), Arc::clone(&records), version, kind, path);
    tokio::select! {
        biased;
        never = follow(Kind::Leases, "/apis/coordination.k8s.io/v1/leases") => never,
        never = follow(Kind::Jobs, "/apis/batch/v1/jobs") => never,
        never = follow(Kind::CronJobs, "/apis/batch/v1/cronjobs") => never,
        never = follow(Kind::Events, "/api/v1/events") => never,
    }
}

async fn follow(
    api: Api,
    clock: WallClock,
    records: Arc<Mutex<Records>>,
    mut version: u64,
    kind: Kind,
    path: &'static str,
) -> Infallible {
    let client = Client::new(api.client("observer"), NAMESPACE);
    loop {
        let request = http::Request::get(format!("{path}?watch=1&resourceVersion={version}"));
        let request = request.body(Vec::new()).unwrap();
        let mut events = std::pin::pin!(client.request_events::<Value>(request).await.unwrap());
        while let Some(event) = events.next().await {
            let (object, is_deleted) = match event.unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => panic!("the recorder's watch: {status:?}"),
            };
            version = number(&object["metadata"]["resourceVersion"]).unwrap();
            let observed = Observed {
                object: &object,
                is_deleted,
                version,
                at: clock.now(),
            };
            let mut records = records.lock().unwrap();
            match kind {
                Kind::Jobs => records.record_job(&observed),
                Kind::CronJobs => records.record_cron_job(&observed),
                Kind::Leases => records.record_lease(&observed),
                Kind::Events => records.record_event(&observed),
            }
        }
    }
}

/// A watched object.
struct Observed<'a> {
    object: &'a Value,
    is_deleted: bool,
    version: u64,
    at: Timestamp,
}

impl Observed<'_> {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap()
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][name].as_str()
    }

    fn holder(&self) -> Option<Holder> {
        Holder::parse(self.object["spec"]["holderIdentity"].as_str()?)
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

impl Records {
    fn record_job(&mut self, observed: &Observed<'_>) {
        let metadata = &observed.object["metadata"];
        let slot = observed.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
        let job = self.jobs.entry(metadata["uid"].as_str().unwrap().to_owned());
        let job = job.or_insert_with(|| Job {
            name: observed.name().to_owned(),
            owner: metadata["ownerReferences"][0]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            slot: slot.and_then(|slot| slot.parse().ok()),
            token: observed.annotation("cronwheel.dev/run-now").map(ToOwned::to_owned),
            created: observed.at,
            ended: None,
        });
        let is_finished = observed.object["status"]["conditions"]
            .as_array()
            .is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|it| it["type"] == "Complete" || it["type"] == "Failed")
            });
        let owner = metadata["ownerReferences"][0]["name"].as_str().unwrap_or_default();
        // A Job that its CronJob does not control any more is no run of it.
        if is_finished || observed.is_deleted || owner != job.owner {
            job.ended.get_or_insert(observed.at);
        } else {
            job.ended = None;
        }
    }

    fn record_cron_job(&mut self, observed: &Observed<'_>) {
        let Some(cron_job) = self.cron_jobs.get_mut(observed.name()) else {
            return;
        };
        if observed.is_deleted {
            cron_job.ended.get_or_insert(observed.at);
            return;
        }
        let cursor = instant(&observed.object["status"]["lastScheduleTime"]);
        if cursor < cron_job.cursor {
            let problem = format!(
                "{}: cursor from {:?} back to {cursor:?} at {}",
                observed.name(),
                cron_job.cursor,
                observed.at
            );
            self.cursors_back.push(problem);
        }
        cron_job.cursor = cursor;
    }

    /// Every update counts, because a repeated Event only raises the count of the first one.
    fn record_event(&mut self, observed: &Observed<'_>) {
        let (about, text) = (&observed.object["involvedObject"], |value: &Value| {
            value.as_str().unwrap_or_default().to_owned()
        });
        if observed.object["type"] == "Warning" && about["kind"] == "CronJob" && !observed.is_deleted {
            let warnings = self.warnings.entry(text(&about["name"])).or_default();
            warnings.push((observed.at, text(&observed.object["reason"])));
        }
    }

    fn record_lease(&mut self, observed: &Observed<'_>) {
        let name = observed.name();
        if let Some(pod_uid) = name.strip_prefix("cronwheel-member-") {
            let change = MemberChange {
                at: observed.at,
                holder: observed.holder(),
                evicted_by: observed.annotation("cronwheel.dev/evicted-by").map(ToOwned::to_owned),
            };
            return self.members.entry(pod_uid.to_owned()).or_default().push(change);
        }
        let shard = name
            .strip_prefix("cronwheel-shard-")
            .and_then(|rest| rest.split_once('-')?.1.parse().ok());
        let Some(shard) = shard else { return };
        let holder = observed.holder().filter(|_| !observed.is_deleted);
        let change = ShardChange {
            version: observed.version,
            at: observed.at,
            holder,
            is_transfer: holder.is_some() && observed.annotation("cronwheel.dev/written-through").is_some(),
            term: observed.object["spec"]["leaseTransitions"]
                .as_u64()
                .filter(|_| !observed.is_deleted),
        };
        self.shards.entry(shard).or_default().push(change);
    }
}

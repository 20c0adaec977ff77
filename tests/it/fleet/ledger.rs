//! Follows the API server and records every Job, every status cursor, every Lease and every Warning.

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
    books::{Books, Holder, Job, MemberChange, ShardChange},
    pod::NAMESPACE,
};

#[derive(Clone, Copy)]
enum Kind {
    Jobs,
    CronJobs,
    Leases,
    Events,
}

/// Records everything after a version, forever.
pub(super) async fn keep(api: Api, clock: WallClock, books: Arc<Mutex<Books>>, version: u64) -> Infallible {
    let follow =
        |kind: Kind, path: &'static str| follow(api.clone(), clock.clone(), Arc::clone(&books), version, kind, path);
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
    books: Arc<Mutex<Books>>,
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
                WatchEvent::Error(status) => panic!("the ledger's watch: {status:?}"),
            };
            version = number(&object["metadata"]["resourceVersion"]).unwrap();
            let seen = Seen {
                object: &object,
                is_deleted,
                version,
                at: clock.now(),
            };
            let mut books = books.lock().unwrap();
            match kind {
                Kind::Jobs => books.see_job(&seen),
                Kind::CronJobs => books.see_cron_job(&seen),
                Kind::Leases => books.see_lease(&seen),
                Kind::Events => books.see_event(&seen),
            }
        }
    }
}

struct Seen<'a> {
    object: &'a Value,
    is_deleted: bool,
    version: u64,
    at: Timestamp,
}

impl Seen<'_> {
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

impl Books {
    fn see_job(&mut self, seen: &Seen<'_>) {
        let metadata = &seen.object["metadata"];
        let slot = seen.annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
        let job = self.jobs.entry(metadata["uid"].as_str().unwrap().to_owned());
        let job = job.or_insert_with(|| Job {
            name: seen.name().to_owned(),
            owner: metadata["ownerReferences"][0]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            slot: slot.and_then(|slot| slot.parse().ok()),
            created: seen.at,
            ended: None,
        });
        let is_finished = seen.object["status"]["conditions"]
            .as_array()
            .is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|it| it["type"] == "Complete" || it["type"] == "Failed")
            });
        if is_finished || seen.is_deleted {
            job.ended.get_or_insert(seen.at);
        }
    }

    fn see_cron_job(&mut self, seen: &Seen<'_>) {
        let Some(cron_job) = self.cron_jobs.get_mut(seen.name()) else {
            return;
        };
        if seen.is_deleted {
            cron_job.ended.get_or_insert(seen.at);
            return;
        }
        let cursor = instant(&seen.object["status"]["lastScheduleTime"]);
        if cursor < cron_job.cursor {
            let gone_back = format!(
                "{}: cursor from {:?} back to {cursor:?} at {}",
                seen.name(),
                cron_job.cursor,
                seen.at
            );
            self.cursors_back.push(gone_back);
        }
        cron_job.cursor = cursor;
    }

    /// A repeated Event raises the count of the first one.
    fn see_event(&mut self, seen: &Seen<'_>) {
        let (about, text) = (&seen.object["involvedObject"], |value: &Value| {
            value.as_str().unwrap_or_default().to_owned()
        });
        if seen.object["type"] == "Warning" && about["kind"] == "CronJob" && !seen.is_deleted {
            let warnings = self.warnings.entry(text(&about["name"])).or_default();
            warnings.push((seen.at, text(&seen.object["reason"])));
        }
    }

    fn see_lease(&mut self, seen: &Seen<'_>) {
        let name = seen.name();
        if let Some(pod_uid) = name.strip_prefix("cronwheel-member-") {
            let change = MemberChange {
                at: seen.at,
                holder: seen.holder(),
                evicted_by: seen.annotation("cronwheel.dev/evicted-by").map(ToOwned::to_owned),
            };
            return self.members.entry(pod_uid.to_owned()).or_default().push(change);
        }
        let shard = name
            .strip_prefix("cronwheel-shard-")
            .and_then(|rest| rest.split_once('-')?.1.parse().ok());
        let Some(shard) = shard else { return };
        let holder = seen.holder().filter(|_| !seen.is_deleted);
        let change = ShardChange {
            version: seen.version,
            at: seen.at,
            holder,
            is_transfer: holder.is_some() && seen.annotation("cronwheel.dev/written-through").is_some(),
            term: seen.object["spec"]["leaseTransitions"]
                .as_u64()
                .filter(|_| !seen.is_deleted),
            crashes: seen
                .annotation("cronwheel.dev/crashes")
                .map_or(0, |text| text.parse().unwrap()),
        };
        self.shards.entry(shard).or_default().push(change);
    }
}

//! Decodes any bytes as an object and as a watch event. Either they are refused, or their record yields well-formed
//! requests.

use cronwheel::{
    kube_api::objects::{
        decode::{Decoder, ReceivedCronJob, ReceivedJob},
        encode::{job_body, status_body},
    },
    schedule::Zone,
    shard::{CronJobRecord, JobCreate, StatusWrite},
};
use jiff::Timestamp;
use kube::core::WatchEvent;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The input is JSON of an object, or of an event with an object.
pub(crate) fn run(data: &[u8]) {
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    for cron_job in objects::<ReceivedCronJob>(data) {
        match decoder.cron_job(cron_job.text()) {
            Ok(record) => {
                assert_eq!(cron_job.uid(), Some(&record.identity.uid));
                check_requests(&record);
            }
            Err(undecodable) => assert!(!undecodable.error.to_string().is_empty()),
        }
    }
    for job in objects::<ReceivedJob>(data) {
        let uid = job.uid().cloned();
        match job.into_record() {
            Ok(record) => assert_eq!(uid, Some(record.uid)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn objects<K: serde::de::DeserializeOwned>(data: &[u8]) -> Vec<K> {
    let in_event = match serde_json::from_slice(data) {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => Some(object),
        Ok(WatchEvent::Bookmark(_) | WatchEvent::Error(_)) | Err(_) => None,
    };
    in_event.into_iter().chain(serde_json::from_slice(data).ok()).collect()
}

/// Checks that requests with spliced bytes of the object are valid JSON with the right content.
fn check_requests(record: &CronJobRecord) {
    let name = "a \"name\"\\";
    let order = JobCreate {
        cron_job: record.identity.clone(),
        name: name.into(),
        slot: Timestamp::UNIX_EPOCH,
        start: Timestamp::UNIX_EPOCH,
        scheduled_timestamp: "1970-01-01T00:00:00Z".into(),
        template: record.template.clone(),
        wanted_by: Timestamp::MAX,
        expires_at: None,
        store_by: None,
        n_attempts_before: 0,
        is_on_time: true,
        late_from: None,
        run_token: None,
    };
    if let Some(job) = job_body(&order, None).and_then(|body| read(&body)) {
        assert_eq!(job["metadata"]["name"], name);
        let owner = &job["metadata"]["ownerReferences"][0];
        assert_eq!(owner["name"], *record.identity.name);
        assert_eq!(owner["uid"], record.identity.uid.to_string());
    }
    let write = StatusWrite {
        cron_job: record.identity.clone(),
        resource_version: record.resource_version,
        retained_metadata: record.retained_metadata.clone(),
        status: record.status.clone(),
        is_urgent: false,
    };
    if let Some(status) = status_body(&write).and_then(|body| read(&body)) {
        assert_eq!(status["metadata"]["name"], *record.identity.name);
    }
}

/// Returns `None` for valid JSON that cannot be parsed: half of a surrogate pair, or a number out of range.
fn read(body: &[u8]) -> Option<Value> {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        panic!("{error}: {}", String::from_utf8_lossy(body));
    }
    serde_json::from_slice(body).ok()
}

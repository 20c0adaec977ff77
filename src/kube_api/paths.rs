//! Paths of objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::shard::CronJobIdentity;

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Appends a path segment. Names that the API server accepts need no escapes, but `status.active` may contain any name.
pub(super) fn push_segment(path: &mut String, segment: &str) {
    path.extend(utf8_percent_encode(segment, RESERVED));
}

pub(super) fn jobs_path(namespace: &str) -> String {
    let mut path = String::with_capacity(96);
    path.push_str("/apis/batch/v1/namespaces/");
    push_segment(&mut path, namespace);
    path.push_str("/jobs");
    path
}

pub(super) fn cron_job_path(cron_job: &CronJobIdentity) -> String {
    let mut path = String::from("/apis/batch/v1/namespaces/");
    push_segment(&mut path, &cron_job.namespace);
    path.push_str("/cronjobs/");
    push_segment(&mut path, &cron_job.name);
    path
}

pub(super) fn job_path(namespace: &str, name: &str) -> String {
    let mut path = jobs_path(namespace);
    path.push('/');
    push_segment(&mut path, name);
    path
}

pub(super) fn events_path(namespace: &str) -> String {
    let mut path = String::from("/api/v1/namespaces/");
    push_segment(&mut path, namespace);
    path.push_str("/events");
    path
}

//! The requests to the API server, counted and timed by kind.

use std::time::Duration;

use prometheus::{Histogram, IntCounterVec};

use crate::controller::permissions::FailureLog;

/// The label value of a request without a response.
const CODE_NONE: &str = "none";

/// Codes whose series exist from the start, so that a query finds them before the first such answer: of an accepted
/// request, of a throttled one, of an error of the API server, and of a request without an answer.
const EXPECTED_CODES: [&str; 4] = ["200", "429", "500", CODE_NONE];

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiCall {
    /// POST a Job.
    CreateJob,
    /// DELETE a Job.
    DeleteJob,
    /// GET a Job.
    LookUpJob,
    /// GET a CronJob.
    ReadCronJob,
    /// PUT the status of a CronJob.
    WriteStatus,
    /// POST an Event.
    CreateEvent,
    /// PATCH an Event.
    PatchEvent,
    /// GET the version, to read the `Date` header.
    Probe,
    /// GET one page of the CronJobs.
    ListCronJobs,
    /// Open a watch of CronJobs.
    WatchCronJobs,
    /// GET one page of the Jobs.
    ListJobs,
    /// Open a watch of Jobs.
    WatchJobs,
    /// POST a Lease.
    CreateLease,
    /// PATCH a Lease.
    PatchLease,
    /// DELETE a Lease.
    DeleteLease,
    /// GET a Lease.
    GetLease,
    /// PATCH a Job.
    LabelJob,
    /// POST a review of one of cronwheel's permissions.
    ReviewAccess,
    /// GET a namespace.
    GetNamespace,
}

impl ApiCall {
    pub(super) const ALL: [ApiCall; 19] = [
        ApiCall::CreateJob,
        ApiCall::DeleteJob,
        ApiCall::LookUpJob,
        ApiCall::ReadCronJob,
        ApiCall::WriteStatus,
        ApiCall::CreateEvent,
        ApiCall::PatchEvent,
        ApiCall::Probe,
        ApiCall::ListCronJobs,
        ApiCall::WatchCronJobs,
        ApiCall::ListJobs,
        ApiCall::WatchJobs,
        ApiCall::CreateLease,
        ApiCall::PatchLease,
        ApiCall::DeleteLease,
        ApiCall::GetLease,
        ApiCall::LabelJob,
        ApiCall::ReviewAccess,
        ApiCall::GetNamespace,
    ];

    /// The verb and the resource, as in Kubernetes audit logs and RBAC rules.
    pub(crate) fn labels(self) -> [&'static str; 2] {
        match self {
            ApiCall::CreateJob => ["create", "jobs"],
            ApiCall::DeleteJob => ["delete", "jobs"],
            ApiCall::LookUpJob => ["get", "jobs"],
            ApiCall::ReadCronJob => ["get", "cronjobs"],
            ApiCall::WriteStatus => ["update", "cronjobs/status"],
            ApiCall::CreateEvent => ["create", "events"],
            ApiCall::PatchEvent => ["patch", "events"],
            ApiCall::Probe => ["get", "version"],
            ApiCall::ListCronJobs => ["list", "cronjobs"],
            ApiCall::WatchCronJobs => ["watch", "cronjobs"],
            ApiCall::ListJobs => ["list", "jobs"],
            ApiCall::WatchJobs => ["watch", "jobs"],
            ApiCall::CreateLease => ["create", "leases"],
            ApiCall::PatchLease => ["patch", "leases"],
            ApiCall::DeleteLease => ["delete", "leases"],
            ApiCall::GetLease => ["get", "leases"],
            ApiCall::LabelJob => ["patch", "jobs"],
            ApiCall::ReviewAccess => ["create", "selfsubjectaccessreviews"],
            ApiCall::GetNamespace => ["get", "namespaces"],
        }
    }
}

/// Creates the series of the expected codes. A Job, an Event or a Lease that was created is answered with 201.
pub(super) fn begun_at_zero(requests: IntCounterVec) -> IntCounterVec {
    for [verb, resource] in ApiCall::ALL.map(ApiCall::labels) {
        for code in EXPECTED_CODES {
            let code = if verb == "create" && code == "200" { "201" } else { code };
            requests.with_label_values(&[verb, resource, code]);
        }
    }
    requests
}

/// Counts responses and times requests.
#[derive(Clone, Debug)]
pub struct ApiMetrics {
    pub(super) requests: IntCounterVec,
    pub(super) durations: [Histogram; ApiCall::ALL.len()],
    /// The log of failed and forbidden requests.
    pub failures: FailureLog,
}

impl ApiMetrics {
    /// Records one request, answered or not.
    pub fn record(&self, call: ApiCall, code: Option<u16>, duration: Duration) {
        let [verb, resource] = call.labels();
        let code = code.map(|code| code.to_string());
        let labels = [verb, resource, code.as_deref().unwrap_or(CODE_NONE)];
        self.requests.with_label_values(&labels).inc();
        self.durations[call as usize].observe(duration.as_secs_f64());
    }
}

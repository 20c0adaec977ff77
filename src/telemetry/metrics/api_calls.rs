//! The requests to the API server, counted and timed by kind.

use std::time::Duration;

use prometheus::{Histogram, IntCounterVec};

use crate::controller::permissions::FailureLog;

/// The label value of a request without a response.
const CODE_NONE: &str = "none";

/// Codes whose series exist from the start, so that a query finds them before the first such answer: of an accepted
/// request, of a throttled one, of an error of the API server, and of a request without an answer.
const EXPECTED_CODES: [&str; 4] = ["200", "429", "500", CODE_NONE];

macro_rules! api_calls {
    ($($(#[$documentation:meta])+ $call:ident: [$verb:literal, $resource:literal],)+) => {
        /// A kind of request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ApiCall {
            $($(#[$documentation])+ $call,)+
        }

        impl ApiCall {
            pub(super) const ALL: [ApiCall; [$(ApiCall::$call),+].len()] = [$(ApiCall::$call),+];

            /// The verb and the resource, as in Kubernetes audit logs and RBAC rules.
            pub(crate) fn labels(self) -> [&'static str; 2] {
                match self {
                    $(ApiCall::$call => [$verb, $resource],)+
                }
            }

            /// The kind of request with these labels.
            pub(crate) fn of(labels: [&str; 2]) -> Option<ApiCall> {
                ApiCall::ALL.into_iter().find(|call| call.labels() == labels)
            }
        }
    };
}

api_calls! {
    /// POST a Job.
    CreateJob: ["create", "jobs"],
    /// DELETE a Job.
    DeleteJob: ["delete", "jobs"],
    /// GET a Job.
    LookUpJob: ["get", "jobs"],
    /// GET a CronJob.
    ReadCronJob: ["get", "cronjobs"],
    /// PUT the status of a CronJob.
    WriteStatus: ["update", "cronjobs/status"],
    /// POST an Event.
    CreateEvent: ["create", "events"],
    /// PATCH an Event.
    PatchEvent: ["patch", "events"],
    /// GET the version, to read the `Date` header.
    Probe: ["get", "version"],
    /// GET one page of the CronJobs.
    ListCronJobs: ["list", "cronjobs"],
    /// Open a watch of CronJobs.
    WatchCronJobs: ["watch", "cronjobs"],
    /// GET one page of the Jobs.
    ListJobs: ["list", "jobs"],
    /// Open a watch of Jobs.
    WatchJobs: ["watch", "jobs"],
    /// GET one page of the selected namespaces.
    ListNamespaces: ["list", "namespaces"],
    /// Open a watch of the selected namespaces.
    WatchNamespaces: ["watch", "namespaces"],
    /// POST a Lease.
    CreateLease: ["create", "leases"],
    /// PATCH a Lease.
    PatchLease: ["patch", "leases"],
    /// DELETE a Lease.
    DeleteLease: ["delete", "leases"],
    /// GET a Lease.
    GetLease: ["get", "leases"],
    /// GET one page of the Leases.
    ListLeases: ["list", "leases"],
    /// Open a watch of Leases.
    WatchLeases: ["watch", "leases"],
    /// POST a review of one of cronwheel's permissions.
    ReviewAccess: ["create", "selfsubjectaccessreviews"],
    /// GET an admission policy that keeps the built-in controller out.
    GetPolicy: ["get", "validatingadmissionpolicies"],
    /// GET its binding.
    GetPolicyBinding: ["get", "validatingadmissionpolicybindings"],
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

//! `--pre`: reads what a cluster offers and what the switch would do to its CronJobs. It writes nothing.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::Timestamp;

use super::{
    CheckArgs,
    built_in::{self, Evidence, HeldLease},
    cluster::{self, ADMISSION, FLOW_CONTROL, Right},
    finding::{Finding, Unread},
    freezes::Freezes,
    options::{Defaults, Known, TimedCronJobs, is_run_by_cronwheel},
    reads::{ServerClock, batch, get, items_of, namespaces, no_access, parameter},
    switch::Switch,
};
use crate::{
    controller::clock::Clock,
    explain::{Survey, objects::namespace_of},
    kube_api::{JsonApi, access_review::AccessRequest, objects::encode::EVENT_COMPONENT, page_sizes::PAGE_SIZE},
};

/// Where the chart is installed by default.
const NAMESPACE: &str = "kube-system";

/// Returns all findings; one alone if the API server does not answer.
pub(super) async fn findings(args: &CheckArgs, api: &JsonApi, clock: &Clock) -> Vec<Finding> {
    let (clock, version) = ServerClock::read(api, clock).await;
    if let Some(finding) = no_access(&version) {
        return vec![finding];
    }
    let version = version.map_err(|error| Unread::new("get /version", &error));
    let mut findings = vec![cluster::version(&version), clock.finding()];
    let group = async |path: &str| get(api, path, &format!("get {path}")).await;
    findings.push(cluster::policies(&group(ADMISSION).await));
    findings.push(cluster::fairness(&group(FLOW_CONTROL).await));
    findings.extend(rights(api, args.lease_namespace.as_deref().unwrap_or(NAMESPACE)).await);
    findings.extend(of_cron_jobs(args, api, || clock.now()).await);
    findings
}

/// Reviews the rights for a release in the namespace of its Leases, as the chart installs it by default.
async fn rights(api: &JsonApi, namespace: &str) -> [Finding; 2] {
    let (granted, installs) = (cluster::granted(namespace), cluster::installs(namespace));
    let (granted, installs) = (reviewed(api, granted).await, reviewed(api, installs).await);
    [
        cluster::rights(
            "rights to grant",
            "that the chart grants to cronwheel, which Kubernetes lets only their owners grant",
            &granted,
        ),
        cluster::rights("rights to install", "to install the chart", &installs),
    ]
}

async fn reviewed<'a>(api: &JsonApi, requests: Vec<AccessRequest<'a>>) -> Vec<Right<'a>> {
    let review = async |access: AccessRequest<'a>| {
        let reviewed = api.may(&access).await;
        let what = "create selfsubjectaccessreviews.authorization.k8s.io";
        (access, reviewed.map_err(|error| Unread::new(what, &error)))
    };
    join_all(requests.into_iter().map(review)).await
}

/// Reads Jobs and CronJobs once, for the evidence of the built-in controller and for the effect of the switch.
async fn of_cron_jobs(args: &CheckArgs, api: &JsonApi, now: impl Fn() -> Timestamp) -> Vec<Finding> {
    let (mut evidence, mut switch) = (Evidence::default(), Switch::default());
    let (mut timed, mut run_by_cronwheel) = (TimedCronJobs::default(), BTreeSet::new());
    let mut survey = Survey::new(&args.default_time_zone, now());
    let namespaces = namespaces(api, &args.namespaces).await;
    namespaces
        .iter()
        .flatten()
        .for_each(|namespace| survey.take_namespace(namespace));
    let defaults = Defaults::new(&namespaces);
    let mut ineffective = defaults.ineffective.clone();
    let jobs = batch(api, "jobs", &args.namespaces, |page| {
        page["items"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|job| evidence.add_job(job, now()));
        survey.take_jobs(page);
    });
    let jobs = jobs.await;
    let cron_jobs = batch(api, "cronjobs", &args.namespaces, |page| {
        let items = page["items"].as_array();
        for cron_job in items.into_iter().flatten() {
            evidence.add_cron_job(cron_job, now());
            ineffective.add_cron_job(cron_job);
            let known = Known {
                is_managed: is_run_by_cronwheel(cron_job),
                has_job_of_other: false,
            };
            if known.is_managed {
                run_by_cronwheel.insert(namespace_of(cron_job).to_owned());
            }
            if let Some(cron_job) = defaults.read(cron_job) {
                timed.add(&cron_job, &known, now());
            }
        }
        for outlook in survey.outlooks(page) {
            switch.add(&outlook, now());
        }
    });
    let cron_jobs = cron_jobs.await;
    evidence.unread = [&jobs, &cron_jobs]
        .into_iter()
        .filter_map(|read| read.as_ref().err().cloned())
        .collect();
    let mut findings = built_in(api, evidence, &now).await;
    match jobs.and(cron_jobs) {
        Ok(()) => {
            findings.extend(switch.findings(&args.default_time_zone));
            findings.push(timed.finding_before_switch(&defaults));
            findings.extend(ineffective.finding());
            let namespaces = namespaces.unwrap_or_default();
            let freezes = Freezes::new(&namespaces, |name| run_by_cronwheel.contains(name), now());
            findings.extend(freezes.finding_before_switch());
        }
        Err(unread) => findings.push(Finding::unread("CronJobs", &unread)),
    }
    findings
}

/// Reads the rest of the evidence of the built-in controller.
async fn built_in(api: &JsonApi, mut evidence: Evidence, now: impl Fn() -> Timestamp) -> Vec<Finding> {
    if evidence.is_without_trace() {
        // One page: the Events of an hour may be many.
        let selector = parameter("fieldSelector", &format!("source={EVENT_COMPONENT}"));
        let path = format!("/api/v1/events?limit={PAGE_SIZE}&{selector}");
        let events = get(api, &path, "list events in all namespaces").await;
        for event in events.ok().flatten().map(items_of).unwrap_or_default() {
            evidence.add_event(&event, now());
        }
    }
    let lease = get(
        api,
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager",
        "get leases in namespace kube-system",
    );
    let lease = lease.await.map(|lease| lease.as_ref().and_then(HeldLease::read));
    let account = get(
        api,
        "/api/v1/namespaces/kube-system/serviceaccounts/cronjob-controller",
        "get serviceaccounts in namespace kube-system",
    );
    let has_account = account.await.map(|account| account.is_some());
    vec![evidence.finding(&lease, now()), built_in::identity(&has_account)]
}

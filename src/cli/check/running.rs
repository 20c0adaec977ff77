//! Without a form: reads the state of a running installation.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    CheckArgs, Sources,
    cluster::ADMISSION,
    finding::{Cause, Finding, Unread},
    freezes::Freezes,
    installation::{Managed, Runs, leaders, replicas},
    options::{Defaults, Known, TimedCronJobs},
    own_policies,
    policy::{Owner, Policies},
    reads::{ServerClock, batch, items, items_of, namespaces, parameter},
    requirements::Requirements,
};
use crate::{
    cli::shards::{self, Listing},
    controller::clock::Clock,
    kube_api::{JsonApi, LeaseError},
};

/// Returns all findings; one alone if there is no installation.
pub(super) async fn findings(args: &CheckArgs, sources: &Sources, clock: &Clock) -> Vec<Finding> {
    let api = JsonApi::new(sources.client.clone());
    let searched = shards::search(&sources.leases, &args.installation, &sources.lease_namespaces).await;
    let known = match searched {
        Ok(Some((_, known))) => known,
        Ok(None) => return vec![absent(args, &sources.lease_namespaces)],
        Err(error) => return vec![unread_leases(&error, &sources.lease_namespaces)],
    };
    let (clock, _) = ServerClock::read(&api, clock).await;
    let now = clock.now();
    let listing = Listing::of(&known);
    let published = Managed::of(&listing);
    let requirements = published.as_ref().and_then(Managed::requirements);
    let mut findings: Vec<Finding> = clock.is_off().into_iter().collect();
    findings.extend([replicas(&listing, now), leaders(&listing)]);
    let installation = args.installation.to_string();
    let owner = Owner {
        installation: &installation,
        lease_namespace: &known.namespace,
    };
    findings.push(policy(&api, owner, requirements.as_ref(), now).await);
    let Some(managed) = published else {
        findings.push(unknown_namespaces());
        return findings;
    };
    let selected = selected(&api, &managed).await;
    match &selected {
        Ok(selected) => findings.push(managed.finding(selected)),
        Err(unread) => findings.push(Finding::unread("namespaces", unread)),
    }
    let namespaces = namespaces(&api, &[]).await;
    findings.extend(freezes(&namespaces, (&managed, &selected), now));
    let defaults = match managed {
        Managed::Selected(_) => Defaults::new(&namespaces),
        Managed::All | Managed::Named(_) => Defaults::without_effect(&namespaces),
    };
    let runs = Runs::new(format!("{}/{installation}", known.namespace), now);
    findings.extend(of_runs(&api, (&managed, &selected), &defaults, runs, now).await);
    findings
}

fn absent(args: &CheckArgs, namespaces: &[String]) -> Finding {
    Finding::failed(
        "replicas",
        format!(
            "no replica of installation {} has a Lease in namespace {}",
            args.installation,
            namespaces.join(" or ")
        ),
        "give --lease-namespace or --installation, or install the chart; cronwheel check --pre before",
    )
}

fn unread_leases(error: &LeaseError, namespaces: &[String]) -> Finding {
    let what = format!("list leases in namespace {}", namespaces.join(" or "));
    Finding::nothing_read("replicas", &Unread::of_leases(what, error))
}

/// The finding of an installation whose replicas have gone with their settings. What depends on the managed namespaces
/// cannot be judged.
fn unknown_namespaces() -> Finding {
    Finding::warning(
        "namespaces",
        "not known, because no replica publishes its settings; runs and options are not checked",
        "start a replica and repeat the check",
    )
}

async fn policy(api: &JsonApi, owner: Owner<'_>, managed: Option<&Requirements>, now: Timestamp) -> Finding {
    let read = async |plural: &str| {
        let what = format!("list {plural}.admissionregistration.k8s.io");
        match items(api, &format!("{ADMISSION}/{plural}"), "", &what).await {
            Err(unread) if unread.cause == Cause::Denied => {
                let own = own_policies::read(api, plural, owner.lease_namespace).await;
                own.ok_or(unread)
            }
            read => read,
        }
    };
    let policies = read("validatingadmissionpolicies").await;
    let bindings = read("validatingadmissionpolicybindings").await;
    let policies = match (policies, bindings) {
        (Ok(policies), Ok(bindings)) => Policies { policies, bindings },
        (Err(unread), _) | (_, Err(unread)) => return Finding::unread("admission policy", &unread),
    };
    let leases = match policies.parameters(owner) {
        None => Ok(Vec::new()),
        Some(parameters) => {
            let namespace = parameters.namespace;
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
            let labels = parameter("labelSelector", &parameters.selector);
            items(api, &path, &labels, &format!("list leases in namespace {namespace}")).await
        }
    };
    policies.finding(owner, managed, &leases, now)
}

/// Returns the names of the namespaces that match the selector.
async fn selected(api: &JsonApi, managed: &Managed) -> Result<BTreeSet<String>, Unread> {
    let Managed::Selected(selector) = managed else {
        return Ok(BTreeSet::new());
    };
    let labels = parameter("labelSelector", selector);
    let namespaces = items(api, "/api/v1/namespaces", &labels, "list namespaces").await?;
    let name = |namespace: Value| Some(namespace["metadata"]["name"].as_str()?.to_owned());
    Ok(namespaces.into_iter().filter_map(name).collect())
}

/// Judges the freezes of namespaces, as far as these are known.
fn freezes(
    namespaces: &Result<Vec<Value>, Unread>,
    (managed, selected): (&Managed, &Result<BTreeSet<String>, Unread>),
    now: Timestamp,
) -> Option<Finding> {
    let followed = selected.as_ref().ok()?;
    let freezes = Freezes::new(namespaces.as_ref().ok()?, |name| followed.contains(name), now);
    freezes.finding(managed)
}

/// Reads the CronJobs of all namespaces, and the Jobs of managed ones.
async fn of_runs(
    api: &JsonApi,
    (managed, selected): (&Managed, &Result<BTreeSet<String>, Unread>),
    defaults: &Defaults,
    mut runs: Runs,
    now: Timestamp,
) -> Vec<Finding> {
    let (names, only): (Vec<String>, Option<&BTreeSet<String>>) = match (managed, selected) {
        (Managed::All, _) => (Vec::new(), None),
        (Managed::Named(names), _) => (names.iter().cloned().collect(), Some(names)),
        (Managed::Selected(_), Ok(selected)) => (Vec::new(), Some(selected)),
        (Managed::Selected(_), Err(_)) => return Vec::new(),
    };
    let is_managed = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        only.is_none_or(|only| only.contains(namespace))
    };
    // Only those with options are kept, without their spec.
    let mut cron_jobs = Vec::new();
    let mut ineffective = defaults.ineffective.clone();
    let mut keep = |page| {
        for cron_job in &items_of(page) {
            ineffective.add_cron_job(cron_job);
            if is_managed(cron_job) {
                runs.add_cron_job(cron_job);
            }
            cron_jobs.extend(defaults.read(cron_job));
        }
    };
    let mut listed = batch(api, "cronjobs", &[], &mut keep).await;
    // A replica of some namespaces may not list the others.
    if !names.is_empty() && listed.as_ref().is_err_and(|unread| unread.cause == Cause::Denied) {
        listed = batch(api, "cronjobs", &names, keep).await;
    }
    for cron_job in &cron_jobs {
        runs.add_offset(&cron_job.object, cron_job.offset);
    }
    let read = batch(api, "jobs", &names, |page| {
        items_of(page)
            .iter()
            .filter(|job| is_managed(job))
            .for_each(|job| runs.add(job));
    });
    if let Err(unread) = read.await {
        return vec![Finding::unread("recent runs", &unread)];
    }
    let mut timed = TimedCronJobs::default();
    for cron_job in &cron_jobs {
        let known = Known {
            is_managed: is_managed(&cron_job.object),
            has_job_of_other: runs.has_job_beside(&cron_job.object),
        };
        timed.add(cron_job, &known, now);
    }
    let options = match &listed {
        Ok(()) => timed.finding(managed, defaults),
        Err(unread) => Finding::unread("options", unread),
    };
    let mut findings = vec![runs.lateness(), runs.beside(&listed), options];
    findings.extend(ineffective.finding());
    findings
}

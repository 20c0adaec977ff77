//! `--canary` without a namespace: two namespaces of its own, one managed and one not, with a CronJob each that is due every minute. The
//! creators of their Jobs show whether the built-in controller is stopped in managed namespaces.
//!
//! The Jobs are suspended and their Pods match no node, so nothing runs. Both namespaces are removed at the end, also
//! after Ctrl-C and after an error.

pub(super) mod existing;
mod looks;
mod plan;
mod seen;
mod verdict;

use std::{collections::BTreeMap, pin::pin, time::Duration};

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::looks::{Looks, PAUSE, repeated};
pub(super) use self::{
    plan::Plan,
    seen::{Creator, Seen},
    verdict::{Question, judge},
};
use super::{
    CheckArgs, Sources,
    built_in::time,
    finding::{Cause, Finding, Unread},
    installation::Managed,
    reads::{ServerClock, items, no_access},
};
use crate::{
    cli::shards::{self, Listing, MemberRow, MemberState},
    controller::clock::Clock,
    kube_api::{
        JsonApi, JsonError,
        objects::classify::{error_text, is_not_permitted},
    },
};

/// The label of the namespaces, for a person who must remove them.
const LABEL: &str = "cronwheel.dev/canary";

const TITLE: &str = "canary";

/// What the account must be able to do.
const RIGHTS: &str = "create namespaces and CronJobs, and delete namespaces";

/// The name of the CronJobs.
const NAME: &str = "canary";

/// The namespaces of a run.
struct Namespaces {
    managed: String,
    /// The one without the label; `None` if every namespace is managed.
    other: Option<String>,
}

impl Namespaces {
    fn new(plan: &Plan, now: Timestamp) -> Namespaces {
        // Two checks may begin in the same millisecond.
        let managed = format!("cronwheel-canary-{}-{}", now.as_millisecond(), std::process::id());
        Namespaces {
            other: plan.has_other.then(|| format!("{managed}-unlabelled")),
            managed,
        }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        [self.managed.as_str()].into_iter().chain(self.other.as_deref())
    }
}

/// Returns all findings. `interrupted` completes when the command is to end.
pub(super) async fn findings(
    args: &CheckArgs,
    sources: &Sources,
    clock: &Clock,
    interrupted: impl Future<Output = ()>,
) -> Vec<Finding> {
    let api = JsonApi::new(sources.client.clone());
    let (server_clock, version) = ServerClock::read(&api, clock).await;
    if let Some(finding) = no_access(&version) {
        return vec![finding];
    }
    let mut findings: Vec<Finding> = server_clock.is_off().into_iter().collect();
    let listing = listing(args, sources).await;
    let managed = listing.iter().flatten().find_map(Managed::of);
    let plan = match Plan::of(args.namespace_selector.as_ref(), managed.as_ref()) {
        Ok(plan) => plan,
        Err(finding) => {
            findings.push(finding);
            return findings;
        }
    };
    let namespaces = Namespaces::new(&plan, clock.now());
    // A create that has begun is awaited: the removal follows it.
    let shown = match create(&api, &plan, &namespaces).await {
        Ok(first_slot_in) => {
            let question = Question {
                place: plan.place,
                wait: args.wait,
                n_replicas: replicas_at_work(args, sources, server_clock.now()).await,
            };
            match observe(&api, &namespaces, first_slot_in + args.wait, interrupted).await {
                Ok(Some((managed, other))) => judge(&question, &managed, other.as_ref()),
                Ok(None) => vec![interruption()],
                Err(unread) => vec![Finding::unread(TITLE, &unread).into_failed()],
            }
        }
        Err(NotCreated { finding, open }) => {
            findings.push(finding);
            findings.push(remove(&api, &namespaces, open.as_deref()).await);
            return findings;
        }
    };
    findings.extend(shown);
    findings.push(remove(&api, &namespaces, None).await);
    findings
}

/// A script must not take it for a success.
fn interruption() -> Finding {
    Finding::failed(TITLE, "interrupted before it showed anything", "repeat the check")
}

/// Why a canary does not begin.
struct NotCreated {
    finding: Finding,
    /// The namespace whose create has no answer, so that it may yet appear.
    open: Option<String>,
}

/// Creates the namespaces and their CronJobs. Returns the time until the first run is due.
async fn create(api: &JsonApi, plan: &Plan, namespaces: &Namespaces) -> Result<Duration, NotCreated> {
    let labels = |is_managed| {
        let own = json!({LABEL: "true"});
        if is_managed { merged(own, &plan.labels) } else { own }
    };
    for name in namespaces.all() {
        let labels = labels(name == namespaces.managed);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let created = api.create("/api/v1/namespaces", &object).await;
        created.map_err(|error| NotCreated {
            // The create may still be in progress.
            open: error.code().is_none_or(|code| code >= 500).then(|| name.to_owned()),
            finding: not_created(&format!("namespace {name}"), &error, RIGHTS),
        })?;
    }
    let mut first_slot_in = Duration::ZERO;
    for namespace in namespaces.all() {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        let created = api.create(&path, &cron_job(NAME)).await;
        let created = created.map_err(|error| NotCreated {
            finding: not_created(&format!("a CronJob in namespace {namespace}"), &error, RIGHTS),
            open: None,
        })?;
        first_slot_in = until_first_slot(&created.body);
    }
    Ok(first_slot_in)
}

fn merged(mut labels: Value, others: &BTreeMap<String, String>) -> Value {
    for (key, value) in others {
        labels[key] = Value::from(value.as_str());
    }
    labels
}

/// Says why an object cannot be created. `rights` is what the account must be able to do.
fn not_created(what: &str, error: &JsonError, rights: &str) -> Finding {
    let is_of_admission = matches!(
        error,
        JsonError::Refused { code: code @ (400 | 403 | 422), message } if !is_not_permitted(*code, message)
    );
    let mend = if is_of_admission {
        format!(
            "let the policy, webhook or quota that refuses it admit objects with the label {LABEL}, or run the canary in a \
             managed namespace that admits its CronJob: --canary=NAMESPACE"
        )
    } else {
        Cause::of(error).mend(rights)
    };
    let reason = format!("not checked: cannot create {what}: {}", error_text(error));
    Finding::failed(TITLE, reason, mend)
}

/// A CronJob whose Jobs have no Pods. The Pods would match no node.
fn cron_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "spec": {
            "schedule": "* * * * *",
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {
                "suspend": true,
                "template": {"spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {LABEL: "matches-no-node"},
                    "containers": [{"name": NAME, "image": NAME}],
                }},
            }},
        },
    })
}

/// Returns the time from the creation of a CronJob to its first run, by the clock of the API server.
fn until_first_slot(cron_job: &Value) -> Duration {
    let created = time(&cron_job["metadata"]["creationTimestamp"]).map_or(0, Timestamp::as_second);
    Duration::from_secs(60_u64.saturating_sub(created.rem_euclid(60).unsigned_abs()))
}

/// Looks at the namespaces until the end of the wait, or until another controller has created a Job in the managed one.
/// Returns what is in the managed namespace. The other namespace counts if it was observed until the end or has a Job.
/// Returns `None` if interrupted.
async fn observe(
    api: &JsonApi,
    namespaces: &Namespaces,
    wait: Duration,
    interrupted: impl Future<Output = ()>,
) -> Result<Option<(Seen, Option<Seen>)>, Unread> {
    let (mut interrupted, mut end) = (pin!(interrupted), pin!(sleep(wait)));
    let (mut looks, mut is_over, mut is_cut_short) = (Looks::default(), false, false);
    while !is_over && !is_cut_short {
        tokio::select! {
            () = interrupted.as_mut() => return Ok(None),
            () = end.as_mut() => is_over = true,
            () = sleep(PAUSE) => {}
        }
        let jobs = looks.take(jobs(api, &namespaces.managed).await)?.unwrap_or_default();
        is_cut_short = jobs.iter().any(|job| matches!(Creator::of(job), Creator::Other(_)));
    }
    let (managed, other) = tokio::select! {
        () = interrupted.as_mut() => return Ok(None),
        seen = repeated(async || look_at_both(api, namespaces).await) => seen?,
    };
    Ok(Some((
        managed,
        other.filter(|other| !is_cut_short || other.job.is_some()),
    )))
}

async fn look_at_both(api: &JsonApi, namespaces: &Namespaces) -> Result<(Seen, Option<Seen>), Unread> {
    let managed = look(api, &namespaces.managed).await?;
    let other = match &namespaces.other {
        Some(other) => Some(look(api, other).await?),
        None => None,
    };
    Ok((managed, other))
}

async fn jobs(api: &JsonApi, namespace: &str) -> Result<Vec<Value>, Unread> {
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    items(api, &path, "", &format!("list jobs in namespace {namespace}")).await
}

/// Reads everything that a controller may have left in a namespace. Events may stay unread.
async fn look(api: &JsonApi, namespace: &str) -> Result<Seen, Unread> {
    let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
    let cron_jobs = items(api, &path, "", &format!("list cronjobs in namespace {namespace}")).await?;
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let events = items(api, &path, "", &format!("list events in namespace {namespace}")).await;
    let jobs = jobs(api, namespace).await?;
    Ok(Seen::of(&jobs, &cron_jobs, &events.unwrap_or_default()))
}

/// Reads the Leases of the installation: no listing if there are none, `None` if they cannot be read.
async fn listing(args: &CheckArgs, sources: &Sources) -> Option<Option<Listing>> {
    let searched = shards::search(&sources.leases, &args.installation, &sources.lease_namespaces).await;
    let known = searched.ok()?;
    Some(known.map(|(_, known)| Listing::of(&known)))
}

/// Returns the number of replicas that take shards; `None` if the Leases cannot be read.
async fn replicas_at_work(args: &CheckArgs, sources: &Sources, now: Timestamp) -> Option<usize> {
    let listing = listing(args, sources).await?;
    let is_at_work = |row: &&MemberRow| row.state == MemberState::Takes && !row.is_silent(now);
    Some(listing.map_or(0, |listing| listing.members.values().filter(is_at_work).count()))
}

/// Removes the namespaces with everything in them. `open` is the one whose create has no answer.
async fn remove(api: &JsonApi, namespaces: &Namespaces, open: Option<&str>) -> Finding {
    const TITLE: &str = "removed";
    let (mut left, mut is_open) = (Vec::new(), false);
    for name in namespaces.all() {
        match api.delete(&format!("/api/v1/namespaces/{name}")).await {
            Ok(_) => {}
            Err(error) if error.code() != Some(StatusCode::NOT_FOUND.as_u16()) => left.push((name, error_text(&error))),
            Err(_) => is_open |= open == Some(name),
        }
    }
    let (mut names, errors): (Vec<&str>, Vec<String>) = left.into_iter().unzip();
    match open.filter(|_| is_open) {
        Some(open) if names.is_empty() => {
            return Finding::warning(
                TITLE,
                format!("namespace {open} does not exist, but its create had no answer and may still be carried out"),
                format!("kubectl delete namespace {open} --ignore-not-found, in a minute"),
            );
        }
        None if names.is_empty() => return Finding::fine(TITLE, "the namespaces of the canary are deleted"),
        open => names.extend(open),
    }
    Finding::failed(
        TITLE,
        format!("cannot delete namespace {}: {}", names.join(" and "), errors.join("; ")),
        format!("kubectl delete namespace {}", names.join(" ")),
    )
}

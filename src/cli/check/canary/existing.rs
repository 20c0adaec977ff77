//! `--canary=NAMESPACE`: one CronJob in a managed namespace that exists, whose Job cronwheel must create. It needs rights
//! in this namespace alone, so a test of a release can run it.

use std::{pin::pin, time::Duration};

use http::StatusCode;
use serde_json::Value;
use tokio::time::sleep;

use super::{
    Creator, Looks, PAUSE, Seen, TITLE, cron_job, interruption, jobs, not_created, repeated, until_first_slot, verdict,
};
use crate::{
    cli::check::finding::{Finding, Unread},
    controller::clock::Clock,
    kube_api::{JsonApi, objects::classify::error_text},
};

/// The CronJob of a run.
struct Canary<'a> {
    api: &'a JsonApi,
    namespace: &'a str,
    name: String,
}

/// Returns all findings. `interrupted` completes when the command is to end.
pub(in crate::cli::check) async fn findings(
    api: &JsonApi,
    namespace: &str,
    wait: Duration,
    clock: &Clock,
    interrupted: impl Future<Output = ()>,
) -> Vec<Finding> {
    // Two checks may begin in the same millisecond.
    let name = format!("canary-{}-{}", clock.now().as_millisecond(), std::process::id());
    let canary = Canary { api, namespace, name };
    let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
    let shown = match api.create(&path, &cron_job(&canary.name)).await {
        Ok(created) => {
            let end = until_first_slot(&created.body) + wait;
            let observed = canary.observe(&created.body, end, interrupted).await;
            observed.unwrap_or_else(|unread| Finding::unread(TITLE, &unread).into_failed())
        }
        Err(error) => not_created(
            &format!("a CronJob in namespace {namespace}"),
            &error,
            "create and delete CronJobs and list Jobs there",
        ),
    };
    vec![shown, canary.remove().await]
}

impl Canary<'_> {
    /// Awaits the first Job of the CronJob until the end of the wait.
    async fn observe(
        &self,
        created: &Value,
        wait: Duration,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Finding, Unread> {
        let (mut interrupted, mut end) = (pin!(interrupted), pin!(sleep(wait)));
        let uid = &created["metadata"]["uid"];
        let is_own = |job: &Value| {
            let owners = job["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["uid"] == *uid)
        };
        let namespace = self.namespace;
        let look = async || jobs(self.api, namespace).await;
        let (mut looks, mut is_over) = (Looks::default(), false);
        while !is_over {
            tokio::select! {
                () = interrupted.as_mut() => return Ok(interruption()),
                () = end.as_mut() => is_over = true,
                () = sleep(PAUSE) => {}
            }
            let found = if is_over {
                Some(repeated(look).await?)
            } else {
                looks.take(look().await)?
            };
            let mut jobs = found.unwrap_or_default();
            jobs.retain(is_own);
            if let Some(finding) = self.judge(&Seen::of(&jobs, &[], &[])) {
                return Ok(finding);
            }
        }
        Ok(Finding::failed(
            TITLE,
            format!("nobody created a Job of the CronJob in namespace {namespace} in time"),
            format!(
                "kubectl get namespace {namespace} --show-labels: cronwheel runs only managed namespaces; cronwheel check"
            ),
        ))
    }

    /// Judges the first Job; `None` without one.
    fn judge(&self, seen: &Seen) -> Option<Finding> {
        let job = seen.job.as_ref()?;
        let (name, namespace) = (&job.name, self.namespace);
        let after = verdict::seconds_text(job.seconds);
        Some(match &job.creator {
            Creator::Cronwheel(who) => Finding::fine(
                TITLE,
                format!("{who} created Job {name} in namespace {namespace} {after} after its slot"),
            ),
            Creator::Other(manager) => Finding::failed(
                TITLE,
                format!("{manager} created Job {name} in namespace {namespace}, and not cronwheel"),
                "cronwheel check says whether the namespace is managed and the policy is bound",
            ),
        })
    }

    /// Removes the CronJob with its Jobs, also if its create had no answer.
    async fn remove(&self) -> Finding {
        let Canary { api, namespace, name } = self;
        match api
            .delete(&format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}"))
            .await
        {
            Err(error) if error.code() != Some(StatusCode::NOT_FOUND.as_u16()) => Finding::failed(
                "removed",
                format!(
                    "cannot delete CronJob {name} in namespace {namespace}: {}",
                    error_text(&error)
                ),
                format!("kubectl delete cronjob {name} --namespace {namespace}"),
            ),
            Ok(_) | Err(_) => Finding::fine("removed", "the CronJob of the canary is deleted"),
        }
    }
}

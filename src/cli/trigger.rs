//! The `trigger` command: asks for one run of a CronJob by the option `run-now`, and follows it.

mod followed;

use std::{
    hash::{BuildHasher as _, RandomState},
    io::Write,
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::followed::{Answered, Followed};
use super::{
    args::values::{parse_namespace, parse_wait},
    error::CommandError,
    explain::parse_cron_job_name,
};
use crate::{
    kube_api::{JsonApi, JsonError, objects::classify::is_not_permitted},
    schedule::options::OptionName,
    shard::{Uid, naming::run_job_name},
};

/// How long the controller has to answer. It needs a fraction of a second, and ten seconds if its leader has crashed.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The interval of the looks at the CronJob, and of those at the Job.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Asks for one run of a CronJob.
#[derive(Args, Debug)]
pub struct TriggerArgs {
    /// Name of the CronJob; also as cronjob/NAME
    #[arg(value_parser = parse_cron_job_name)]
    name: String,
    /// Namespace of the CronJob. Default: that of the context or of the service account
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Wait until the Job has ended. Exit code 1 means that it failed
    #[arg(short, long)]
    wait: bool,
    /// With --wait, the longest time until the end of the Job, e.g. 30m
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_wait, requires = "wait")]
    timeout: Duration,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// Asks for the run, prints its Job, and follows it.
///
/// # Errors
///
/// [`CommandError`] if the CronJob cannot be annotated, if no controller takes the run up or the run is refused, and with
/// `--wait` if the Job fails or does not end in time.
pub async fn run(
    args: &TriggerArgs,
    api: &JsonApi,
    default_namespace: &str,
    mut output: impl Write,
) -> Result<(), CommandError> {
    let namespace = args.namespace.as_deref().unwrap_or(default_namespace);
    let token = token();
    let cron_job = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{}", args.name);
    let change = json!({"metadata": {"annotations": {OptionName::RunNow.annotation(): token}}});
    let patched = api.merge_patch(&cron_job, &change).await;
    let answer = patched.map_err(|error| not_asked(namespace, &args.name, error))?;
    let object = answer.body;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let job = run_job_name(&args.name, &Uid::new(uid), &token);
    let mut print = |line: String| {
        writeln!(output, "{line}")
            .and_then(|()| output.flush())
            .map_err(CommandError::Write)
    };
    print(format!(
        "cronjob {namespace}/{} is asked for a run with the token {token}: job {job}",
        args.name
    ))?;
    let followed = Followed {
        api,
        namespace,
        cron_job_name: &args.name,
        token: &token,
        job: &job,
        uid,
        since: answer.date.unwrap_or(Timestamp::MIN),
    };
    match followed.answer(ANSWER_WITHIN, LOOK_EVERY).await? {
        Answered::Created => print(format!("job {job} was created"))?,
        Answered::Refused(message) => return Err(format!("the run did not start: {message}").into()),
        Answered::Nothing(message) => {
            let current = followed.cron_job().await?;
            return Err(not_taken_up(namespace, &args.name, &token, &current, message).into());
        }
    }
    if args.wait {
        let end = followed.end(args.timeout, LOOK_EVERY * 2).await?;
        print(format!("job {job} is complete{end}"))?;
    }
    Ok(())
}

/// A token that no one has used for the CronJob.
fn token() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn not_asked(namespace: &str, name: &str, error: JsonError) -> CommandError {
    let remedy = match &error {
        JsonError::Refused { code: 404, .. } => "; check its name, the namespace by -n, and the cluster by --context",
        JsonError::Refused { code, message } if is_not_permitted(*code, message) => {
            "; the account needs patch and get on cronjobs, and get on jobs"
        }
        JsonError::Refused { .. } | JsonError::Unanswered(_) | JsonError::Unreadable(_) => "",
    };
    CommandError::caused(
        format!("cannot ask cronjob {namespace}/{name} for a run{remedy}"),
        error,
    )
}

/// Why no controller may have taken the run up. The CronJob is as it is now.
fn not_taken_up(namespace: &str, name: &str, token: &str, cron_job: &Value, message: Option<String>) -> String {
    let annotation = OptionName::RunNow.annotation();
    let asked = cron_job["metadata"]["annotations"][annotation].as_str();
    if asked != Some(token) {
        return match asked {
            Some(other) => {
                format!("the run did not start: another one was asked for meanwhile, with the token {other}; ask again")
            }
            None => "the run did not start: it was withdrawn meanwhile".to_owned(),
        };
    }
    let seconds = ANSWER_WITHIN.as_secs();
    let why = match message {
        Some(message) => format!("its job is not created yet: {message}"),
        None if cron_job["metadata"]["deletionTimestamp"].is_string() => "the CronJob is being deleted".to_owned(),
        None => format!(
            "no controller took the run up: namespace {namespace} may not be managed, or it is frozen (cronwheel check)"
        ),
    };
    format!(
        "after {seconds} s, {why}. The run starts as soon as it can. To withdraw it: kubectl annotate cronjob {name} -n \
         {namespace} {annotation}-"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_not_taken_up_starts_later_unless_it_is_not_asked_for_any_more() {
        let text = |annotations: Value| {
            let cron_job = json!({"metadata": {"annotations": annotations}});
            not_taken_up("shop", "report", "t1", &cron_job, None)
        };
        let waits = text(json!({"cronwheel.dev/run-now": "t1"}));
        assert!(waits.contains("no controller took the run up"), "{waits}");
        assert!(waits.contains("). The run starts as soon as it can"), "{waits}");
        // The program escapes line breaks.
        assert!(!waits.contains('\n'), "{waits}");
        assert_eq!(
            text(json!({"cronwheel.dev/run-now": "t2"})),
            "the run did not start: another one was asked for meanwhile, with the token t2; ask again"
        );
        assert_eq!(text(json!({})), "the run did not start: it was withdrawn meanwhile");
    }
}

//! The `explain` command: predicts the actions of the controller for a CronJob, with the reasons.
//!
//! It reads objects from files or from a cluster and writes the answer of [`explain`]. It writes nothing to the cluster.

mod live;
mod server;

use std::{
    io::{Read, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;

use super::{args::values::parse_zone, error::CommandError, object_files};
use crate::{
    explain::{self, AssumedCreate, Meaning, Question, objects::Objects},
    schedule::Zone,
};

/// Says what the controller would do with a CronJob now, and why.
#[derive(Args, Debug)]
#[command(
    after_long_help = reasons(),
    group = ArgGroup::new("question").required(true).multiple(true).args(["name", "file", "rule"]),
)]
pub struct ExplainArgs {
    /// Name of the CronJob, in the cluster or in the files of -f; also as cronjob/NAME. explain writes nothing
    #[arg(value_parser = parse_cron_job, conflicts_with = "rule")]
    name: Option<String>,
    /// The name after a resource, as in `kubectl get cronjob NAME`
    #[arg(hide = true, value_parser = parse_cron_job)]
    name_after_resource: Option<String>,
    /// Namespace of the CronJob. Default: that of the context or of the service account; all in files
    #[arg(short, long, value_name = "NAME", requires = "name", value_parser = parse_name)]
    pub namespace: Option<String>,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", conflicts_with = "rule")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME", conflicts_with = "rule")]
    pub context: Option<String>,
    /// Read CronJobs and Jobs from a YAML or JSON file, from the files of a directory, or from - for standard input,
    /// instead of a cluster; can be repeated. Jobs that are in none of the files do not exist
    #[arg(short, long = "file", value_name = "FILE")]
    file: Vec<String>,
    /// Print a rule of the built-in controller's behaviour, such as B-10.3, or of an option of cronwheel, such as O-7
    #[arg(long, value_name = "NUMBER", conflicts_with = "file")]
    rule: Option<String>,
    /// List the CronJobs that can never run, would be refused by the API server, or have an annotation of cronwheel that
    /// cannot be used, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
    /// With --check and -f, ask the API server of the cluster by a dry run, which includes its admission. Nothing is
    /// written
    #[arg(long, requires_all = ["check", "file"])]
    server: bool,
    /// Explain the state at this time, in RFC 3339, from 1973 to the end of 2099, e.g. 2026-11-21T10:30:00Z. Default:
    /// now
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    now: Option<Timestamp>,
    /// Time zone of CronJobs without spec.timeZone, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    default_time_zone: Zone,
    /// Assumed answer to the create of a Job, if the objects do not decide it: create=created, create=exists (the
    /// CronJob already has a Job of that name), create=foreign (another owner has it) or create=error
    #[arg(long, value_name = "create=ANSWER", default_value = "create=created", value_parser = parse_assumption)]
    assume: AssumedCreate,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people
    Text,
    /// Text with the rules of the built-in controller's behaviour and of options that apply
    Wide,
    /// One JSON object, or a list for several CronJobs
    Json,
}

/// The possible values of `reason`, for the long help.
fn reasons() -> String {
    let mut help = "Reasons, with the rules of the built-in controller or of options that they come from:".to_owned();
    for meaning in explain::reasons() {
        let Meaning {
            decision,
            name,
            rules,
            sentence,
            ..
        } = meaning;
        let decision = decision.as_str();
        // clap wraps the sentence with its indent.
        help += &["\n  ", name, " (", decision, "; ", rules, ")\n      ", sentence].concat();
    }
    help
}

/// Characters of a path segment, which the names of CronJobs and namespaces consist of.
pub(super) fn parse_name(name: &str) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(is_good) && name != "." && name != ".." {
        Ok(name.to_owned())
    } else {
        Err("write a name as Kubernetes has it: lower-case letters, digits, '-' and '.', at most 253".to_owned())
    }
}

/// The forms of the resource before a name, as in `kubectl`.
const RESOURCES: [&str; 5] = ["cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch"];

fn parse_cron_job(text: &str) -> Result<String, String> {
    let has_resource = text
        .split_once('/')
        .is_some_and(|(resource, _)| RESOURCES.contains(&resource));
    if !has_resource && is_file(text) {
        return Err(format!("for a file or a directory write -f {text}"));
    }
    if text.starts_with("B-") || text.starts_with("O-") {
        return Err(format!("for a rule write --rule {text}"));
    }
    parse_cron_job_name(text)
}

/// Parses the name of a CronJob, also as `cronjob/NAME`.
pub(super) fn parse_cron_job_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((resource, name)) if RESOURCES.contains(&resource) => parse_name(name),
        Some((namespace, name)) if parse_name(namespace).is_ok() && parse_name(name).is_ok() => {
            Err(format!("for a CronJob in a namespace write {name} -n {namespace}"))
        }
        _ => parse_name(text),
    }
}

/// Whether this names a file, or standard input, rather than a CronJob.
fn is_file(text: &str) -> bool {
    text == "-" || object_files::is_named_as_file(text) || text.contains('/') && Path::new(text).exists()
}

/// The accepted instants in Unix seconds, from 1973 to the end of 2099. Before 1973 a zone had an offset with odd
/// seconds, and after 2099 the zone tables end. Both would require a chain of slots to be walked one by one.
const INSTANTS_SECONDS: Range<i64> = 94_694_400..4_102_444_800;

pub(super) fn parse_instant(text: &str) -> Result<Timestamp, String> {
    let instant: Timestamp = text.parse().map_err(|_| {
        "no instant in RFC 3339; write it like 2026-11-21T10:30:00Z or 2026-11-21T11:30:00+01:00".to_owned()
    })?;
    if INSTANTS_SECONDS.contains(&instant.as_second()) {
        Ok(instant)
    } else {
        Err("outside of what can be answered; give an instant from 1973 to the end of 2099".to_owned())
    }
}

fn parse_assumption(text: &str) -> Result<AssumedCreate, String> {
    match text {
        "create=created" => Ok(AssumedCreate::Created),
        "create=exists" => Ok(AssumedCreate::Exists),
        "create=foreign" => Ok(AssumedCreate::Foreign),
        "create=error" => Ok(AssumedCreate::Error),
        _ => Err("write create=created, create=exists, create=foreign or create=error".to_owned()),
    }
}

impl ExplainArgs {
    /// The name of the CronJob in a cluster; `None` if a file or a rule is given.
    ///
    /// # Errors
    ///
    /// If there are two names.
    pub fn name_in_cluster(&self) -> Result<Option<&str>, CommandError> {
        Ok(self.cron_job_name()?.filter(|_| self.file.is_empty()))
    }

    /// Whether files are checked by an API server.
    pub fn asks_server(&self) -> bool {
        self.server
    }

    /// Refuses the flags of a connection that is not made.
    fn refuse_connection(&self) -> Result<(), CommandError> {
        let flag = match (&self.kubeconfig, &self.context) {
            (Some(_), _) => "--kubeconfig",
            (None, Some(_)) => "--context",
            (None, None) => return Ok(()),
        };
        Err(format!("{flag} cannot be used with -f alone; leave it out, or add --check --server").into())
    }

    /// Returns the name, which may come after a resource.
    fn cron_job_name(&self) -> Result<Option<&str>, CommandError> {
        match (&self.name, &self.name_after_resource) {
            (Some(resource), Some(name)) if RESOURCES.contains(&resource.as_str()) => Ok(Some(name)),
            (Some(first), Some(second)) => {
                Err(format!("{first} and {second} are two CronJobs; give one, or the files of several by -f").into())
            }
            (name, _) => Ok(name.as_deref()),
        }
    }
}

/// Explains the objects of a file; `now` is the default instant. Notes go to `notes`, one per line.
pub fn run(
    args: &ExplainArgs,
    now: Timestamp,
    input: impl Read,
    output: impl Write,
    notes: impl Write,
) -> Result<(), CommandError> {
    if let Some(number) = &args.rule {
        return print_rule(number, output);
    }
    args.refuse_connection()?;
    let objects = object_files::read_all(&args.file, input)?;
    answer(args, &object_files::names_of(&args.file), objects, now, output, notes)
}

/// Checks the CronJobs of files by dry runs on an API server, like [`run`]. `namespace` is that of CronJobs that name none.
pub async fn run_on_server(
    args: &ExplainArgs,
    (client, namespace): (&kube::Client, &str),
    now: impl FnOnce() -> Timestamp,
    input: impl Read,
    output: impl Write,
    notes: impl Write,
) -> Result<(), CommandError> {
    let mut objects = object_files::read_all(&args.file, input)?;
    objects.refusals = Some(server::refusals(client, &objects, namespace).await?);
    answer(args, &object_files::names_of(&args.file), objects, now(), output, notes)
}

/// Explains a CronJob of a cluster, like [`run`]. `now` is called when the objects have been read, which may take long.
pub async fn run_live(
    args: &ExplainArgs,
    client: &kube::Client,
    (namespace, name): (&str, &str),
    now: impl FnOnce() -> Timestamp,
    output: impl Write,
    notes: impl Write,
) -> Result<(), CommandError> {
    let objects = live::fetch(client, namespace, name).await?;
    answer(args, name, objects, now(), output, notes)
}

/// Returns the text about a CronJob of a cluster, for the page. Of its namespace, these Jobs alone are read, and no Events:
/// the account of the page may not read them.
pub(super) async fn text_of_live(
    client: &kube::Client,
    (namespace, name): (&str, &str),
    job_names: &[Box<str>],
    default_zone: &Zone,
    now: impl FnOnce() -> Timestamp,
) -> Result<String, CommandError> {
    let objects = live::fetch_named(client, (namespace, name), job_names).await?;
    let question = Question {
        input: name,
        name: Some(name),
        namespace: Some(namespace),
        default_zone,
        assumed: AssumedCreate::Created,
        now: now(),
        is_present: true,
    };
    Ok(explain::answer(objects, &question)?.text(false).to_string())
}

fn answer(
    args: &ExplainArgs,
    name: &str,
    objects: Objects,
    now: Timestamp,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let question = Question {
        input: name,
        name: args.cron_job_name()?,
        namespace: args.namespace.as_deref(),
        default_zone: &args.default_time_zone,
        assumed: args.assume,
        now: args.now.unwrap_or(now),
        is_present: args.now.is_none(),
    };
    let answer = explain::answer(objects, &question)?;
    // Standard error may be closed.
    let mut tell = |text: &str| drop(writeln!(notes, "cronwheel: {text}"));
    for remark in answer.remarks() {
        tell(&format!("note: {remark}"));
    }
    if !args.check || args.output != OutputFormat::Text {
        answer.broken().iter().for_each(|text| tell(text));
    }
    let written = match args.output {
        OutputFormat::Json => {
            let document = answer.json()?;
            writeln!(output, "{document}")
        }
        OutputFormat::Text if args.check => write!(output, "{}", answer.check()),
        OutputFormat::Text => write!(output, "{}", answer.text(false)),
        OutputFormat::Wide => write!(output, "{}", answer.text(true)),
    };
    let written = written.and_then(|()| output.flush());
    // The exit code does not depend on a reader of the answer.
    if let Some(defects) = answer.defects(args.check) {
        return Err(defects.into());
    }
    written.map_err(CommandError::Write)
}

fn print_rule(number: &str, mut output: impl Write) -> Result<(), CommandError> {
    let rule = explain::rule_text(number)?;
    writeln!(output, "{rule}")
        .and_then(|()| output.flush())
        .map_err(CommandError::Write)
}

#[cfg(test)]
mod tests;

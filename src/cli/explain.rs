//! The `explain` command: what the controller would do with a CronJob now, and why.
//!
//! The command uses the code of `run`: it feeds the objects to a shard and reports the requested actions instead of
//! executing them. It writes nothing to the cluster.

mod explanation;
mod json;
mod live;
mod objects;
mod reason;
mod text;
mod trial;
mod world;

use std::{
    fs::File,
    io::{self, Read, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;

use self::{
    explanation::Explanation,
    live::GetError,
    objects::Objects,
    reason::{Meaning, Reason},
    trial::AssumedCreate,
    world::World,
};
use super::args::values::parse_zone;
use crate::schedule::Zone;

/// Maximum size of the input; a hundred thousand CronJobs need less.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Says what the controller would do with a CronJob now, and why.
#[derive(Args, Debug)]
#[command(
    after_long_help = reasons(),
    group = ArgGroup::new("question").required(true).args(["name", "file"]),
)]
pub struct ExplainArgs {
    /// CronJob of the cluster. explain writes nothing
    #[arg(value_parser = parse_name)]
    name: Option<String>,
    /// Namespace of the CronJob. Default: that of the context or of the service account
    #[arg(short, long, value_name = "NAME", requires = "name", value_parser = parse_name)]
    namespace: Option<String>,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "name")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME", requires = "name")]
    context: Option<String>,
    /// Read CronJobs and Jobs from a YAML or JSON file, or from - for standard input, instead of a cluster. Jobs that
    /// are not in the file do not exist
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,
    /// Instant of the question in RFC 3339, from 1973 to the end of 2099, e.g. 2026-11-21T10:30:00Z. Default: now
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
    /// One JSON object, or a list for several CronJobs
    Json,
}

/// The possible values of `reason`, for the long help.
fn reasons() -> String {
    let mut help = "Reasons, with the rules of the built-in controller that they come from:".to_owned();
    for reason in Reason::ALL {
        let Meaning {
            name, rules, sentence, ..
        } = reason.meaning();
        let decision = reason.decision().as_str();
        help += &["\n  ", name, " (", decision, "; ", rules, ")"].concat();
        for line in wrapped(sentence, HELP_COLUMNS) {
            help += "\n      ";
            help += &line;
        }
    }
    help
}

/// Width of a line of the long help behind its indent, on a narrow terminal.
const HELP_COLUMNS: usize = 72;

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Characters of a path segment, which the names of CronJobs and namespaces consist of.
fn parse_name(name: &str) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(is_good) && name != "." && name != ".." {
        Ok(name.to_owned())
    } else {
        Err("write a name as Kubernetes has it: lower-case letters, digits, '-' and '.', at most 253".to_owned())
    }
}

/// The accepted instants in Unix seconds, from 1973 to the end of 2099. Before, a zone had an offset with odd seconds;
/// after, the zone tables end. There a chain of slots would have to be walked one by one.
const INSTANTS_SECONDS: Range<i64> = 94_694_400..4_102_444_800;

fn parse_instant(text: &str) -> Result<Timestamp, String> {
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

/// Why `explain` gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The file cannot be read.
    #[error("-f {file}: cannot be read; give a file of CronJobs and Jobs, or - for standard input")]
    Read {
        /// The path as given.
        file: String,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The file is too large.
    #[error("-f {file}: larger than {INPUT_BYTES_MAX} bytes; give the CronJobs of one namespace at a time")]
    TooLarge {
        /// The path as given.
        file: String,
    },
    /// The file is not UTF-8.
    #[error("-f {file}: not in UTF-8; give YAML or JSON")]
    NoText {
        /// The path as given.
        file: String,
    },
    /// The file is not valid YAML.
    #[error("{input}: not YAML: {problem}; {fix}")]
    Yaml {
        /// The name of the input.
        input: String,
        /// The error of the parser, with its position.
        problem: String,
        /// The fix.
        fix: &'static str,
    },
    /// The file begins like JSON and is not valid JSON.
    #[error("{input}: not JSON: {problem}; correct it there")]
    Json {
        /// The name of the input.
        input: String,
        /// The error of the parser, with its position.
        problem: String,
    },
    /// A document is not an object.
    #[error("{place} is {found}; give Kubernetes objects, with apiVersion, kind, metadata and spec")]
    NoObject {
        /// The document.
        place: String,
        /// The type of the document.
        found: &'static str,
    },
    /// An object has no kind.
    #[error("{place} has no kind; give Kubernetes objects, with apiVersion, kind, metadata and spec")]
    NoKind {
        /// The object.
        place: String,
    },
    /// An object has no name.
    #[error("a {kind} has no metadata.name; give it one")]
    NoName {
        /// The kind of the object.
        kind: &'static str,
    },
    /// An object occurs twice.
    #[error("{kind} {name} occurs twice; keep one")]
    Repeated {
        /// The kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        name: String,
    },
    /// Two Jobs have the same uid.
    #[error("Job {name} has the metadata.uid {uid} of another Job; leave it out, or give each its own")]
    SameUid {
        /// The namespace and name of the second Job.
        name: String,
        /// The uid.
        uid: String,
    },
    /// The CronJob is not in the cluster.
    #[error("CronJob {namespace}/{name} is not in the cluster; check the name and give the namespace by -n")]
    NotFound {
        /// The namespace of the CronJob.
        namespace: String,
        /// The name of the CronJob.
        name: String,
    },
    /// The cluster does not return an object.
    #[error("cannot get the {what} {name}; the account needs get on cronjobs, get and list on jobs")]
    Fetch {
        /// The requested object.
        what: &'static str,
        /// The namespace and name of the CronJob.
        name: String,
        /// The error of the API server or of the transport.
        #[source]
        error: Box<GetError>,
    },
    /// The input has no CronJob.
    #[error("{input}: no batch/v1 CronJob in it; give at least one")]
    NoCronJob {
        /// The name of the input.
        input: String,
    },
    /// An object cannot be converted between forms of JSON.
    #[error("an object cannot be converted")]
    Convert(#[source] serde_json::Error),
    /// The shard requests actions without an end.
    #[error("CronJob {name}: the decision does not settle; please report this with the objects")]
    Unsettled {
        /// The namespace and name of the CronJob.
        name: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

/// The CronJob of a cluster to explain, and the access to the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The name of the CronJob.
    pub name: &'a str,
    /// The namespace of the CronJob, if given.
    pub namespace: Option<&'a str>,
    /// The kubeconfig, if given.
    pub kubeconfig: Option<&'a Path>,
    /// The context of the kubeconfig, if given.
    pub context: Option<&'a str>,
}

impl ExplainArgs {
    /// The CronJob of a cluster; `None` if a file is given.
    pub fn wanted(&self) -> Option<Wanted<'_>> {
        Some(Wanted {
            name: self.name.as_deref()?,
            namespace: self.namespace.as_deref(),
            kubeconfig: self.kubeconfig.as_deref(),
            context: self.context.as_deref(),
        })
    }
}

/// Explains the objects of a file; `now` is the default instant. Notes go to `notes`, one per line.
///
/// A closed `output` ends the command without an error.
pub fn run(
    args: &ExplainArgs,
    now: Timestamp,
    input: impl Read,
    output: impl Write,
    notes: impl Write,
) -> Result<(), ExplainError> {
    let file = args.file.as_deref().unwrap_or("-");
    let text = read(file, input)?;
    let name = if file == "-" { "standard input" } else { file };
    let objects = objects::read(name, &text)?;
    answer(args, name, objects, now, output, notes)
}

/// Explains a CronJob of a cluster, like [`run`].
pub async fn run_live(
    args: &ExplainArgs,
    client: &kube::Client,
    (namespace, name): (&str, &str),
    now: Timestamp,
    output: impl Write,
    notes: impl Write,
) -> Result<(), ExplainError> {
    let objects = live::fetch(client, namespace, name).await?;
    answer(args, name, objects, now, output, notes)
}

/// Reads the file, or standard input.
fn read(file: &str, input: impl Read) -> Result<String, ExplainError> {
    let failed = |error| ExplainError::Read {
        file: file.to_owned(),
        error,
    };
    let mut bytes = Vec::new();
    let n_bytes = if file == "-" {
        input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        let opened = File::open(file).map_err(failed)?;
        opened.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    if n_bytes.map_err(failed)? as u64 > INPUT_BYTES_MAX {
        return Err(ExplainError::TooLarge { file: file.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| ExplainError::NoText { file: file.to_owned() })
}

fn answer(
    args: &ExplainArgs,
    name: &str,
    objects: Objects,
    now: Timestamp,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), ExplainError> {
    let now = args.now.unwrap_or(now);
    let mut remarks = objects.notes();
    let world = World::new(objects.objects, &args.default_time_zone, now, &mut remarks)?;
    if world.subjects.is_empty() {
        return Err(ExplainError::NoCronJob { input: name.to_owned() });
    }
    let explain = |subject| trial::explain(subject, &world, args.assume, now);
    let explanations: Vec<Explanation> = world.subjects.iter().map(explain).collect::<Result<_, _>>()?;
    for remark in &remarks {
        writeln!(notes, "cronwheel: note: {remark}").map_err(ExplainError::Write)?;
    }
    let written = match args.output {
        OutputFormat::Json => {
            let document = json::document(&explanations).map_err(ExplainError::Convert)?;
            writeln!(output, "{document}")
        }
        OutputFormat::Text => text::write(&world, &explanations, now, &mut output),
    };
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(ExplainError::Write(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

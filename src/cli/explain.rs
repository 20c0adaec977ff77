//! The `explain` command: what the controller would do with a CronJob now, and why.
//!
//! It answers with the code that a run uses: a shard of its own is shown the objects, and what it asks for is told
//! instead of done. Nothing is written anywhere.

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

/// The largest input that is taken: a cluster of a hundred thousand CronJobs has less.
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

/// What the answers' `reason` can be, for the long help.
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

/// Room for a line of the long help behind its indent, on a narrow terminal.
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

/// What can stand in a path as one segment, as the names of CronJobs and namespaces do.
fn parse_name(name: &str) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !name.is_empty() && name.len() <= 253 && name.bytes().all(is_good) && name != "." && name != ".." {
        Ok(name.to_owned())
    } else {
        Err("write a name as Kubernetes has it: lower-case letters, digits, '-' and '.', at most 253".to_owned())
    }
}

/// What can be asked for, in Unix seconds: from 1973 to the end of 2099. Around it a chain of slots cannot be jumped
/// along and would be walked one by one for very long: before, a zone had an offset of odd seconds, after it the zone
/// tables end.
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
        /// As given.
        file: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// The file is too large.
    #[error("-f {file}: larger than {INPUT_BYTES_MAX} bytes; give the CronJobs of one namespace at a time")]
    TooLarge {
        /// As given.
        file: String,
    },
    /// The file is no text.
    #[error("-f {file}: not in UTF-8; give YAML or JSON")]
    NoText {
        /// As given.
        file: String,
    },
    /// The file is no YAML.
    #[error("{input}: not YAML: {problem}; {fix}")]
    Yaml {
        /// Its name.
        input: String,
        /// What the parser says, with the place.
        problem: String,
        /// What to do about it.
        fix: &'static str,
    },
    /// The file begins like JSON and is none.
    #[error("{input}: not JSON: {problem}; correct it there")]
    Json {
        /// Its name.
        input: String,
        /// What the parser says, with the place.
        problem: String,
    },
    /// A document is no object.
    #[error("{place} is {found}; give Kubernetes objects, with apiVersion, kind, metadata and spec")]
    NoObject {
        /// Which.
        place: String,
        /// What it is.
        found: &'static str,
    },
    /// An object does not say what it is.
    #[error("{place} has no kind; give Kubernetes objects, with apiVersion, kind, metadata and spec")]
    NoKind {
        /// Which.
        place: String,
    },
    /// An object does not say how it is called.
    #[error("a {kind} has no metadata.name; give it one")]
    NoName {
        /// Its kind.
        kind: &'static str,
    },
    /// Two objects are one.
    #[error("{kind} {name} occurs twice; keep one")]
    Repeated {
        /// Its kind.
        kind: &'static str,
        /// Namespace and name.
        name: String,
    },
    /// Two Jobs claim to be one.
    #[error("Job {name} has the metadata.uid {uid} of another Job; leave it out, or give each its own")]
    SameUid {
        /// The second one's.
        name: String,
        /// Of both.
        uid: String,
    },
    /// The CronJob is not in the cluster.
    #[error("CronJob {namespace}/{name} is not in the cluster; check the name and give the namespace by -n")]
    NotFound {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The cluster does not give what is asked for.
    #[error("cannot get the {what} {name}; the account needs get on cronjobs, get and list on jobs")]
    Fetch {
        /// What was asked for.
        what: &'static str,
        /// The CronJob's namespace and name.
        name: String,
        /// What the API server or the transport says.
        #[source]
        error: Box<GetError>,
    },
    /// There is nothing to explain.
    #[error("{input}: no batch/v1 CronJob in it; give at least one")]
    NoCronJob {
        /// Its name.
        input: String,
    },
    /// An object does not go from one form of JSON to another.
    #[error("an object cannot be converted")]
    Convert(#[source] serde_json::Error),
    /// The shard goes on asking for things.
    #[error("CronJob {name}: the decision does not settle; please report this with the objects")]
    Unsettled {
        /// Namespace and name.
        name: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

/// The CronJob of a cluster that is asked about, and the way there.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace, where given.
    pub namespace: Option<&'a str>,
    /// The kubeconfig, where given.
    pub kubeconfig: Option<&'a Path>,
    /// The kubeconfig's context, where given.
    pub context: Option<&'a str>,
}

impl ExplainArgs {
    /// The CronJob of a cluster that is asked about; none where a file is given.
    pub fn wanted(&self) -> Option<Wanted<'_>> {
        Some(Wanted {
            name: self.name.as_deref()?,
            namespace: self.namespace.as_deref(),
            kubeconfig: self.kubeconfig.as_deref(),
            context: self.context.as_deref(),
        })
    }
}

/// Answers for objects in a file; `now` is the instant where none is given. Notes go to `notes`, one a line.
///
/// A reader that has seen enough and closes `output` ends the command, which is no error.
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

/// Answers for a CronJob of a cluster, as [`run`] does.
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

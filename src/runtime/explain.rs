//! The `explain` command: what the controller would do with a CronJob now, and why.
//!
//! It answers with the code that a run uses: a shard of its own is shown the objects, and what it asks for is told
//! instead of done. Nothing is written anywhere.

mod json;
mod objects;
mod reason;
mod text;
mod trial;
mod world;

use std::{
    fs::File,
    io::{self, Read, Write},
};

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use self::{
    objects::Objects,
    trial::{AssumedCreate, Explanation},
    world::World,
};
use super::args::parse_zone;
use crate::schedule::Zone;

/// The largest input that is taken: a cluster of a hundred thousand CronJobs has less.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Says what the controller would do with a CronJob now, and why.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Objects as YAML or JSON, several documents or a List: CronJobs, and the Jobs that there are; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: String,
    /// The instant to answer for, in RFC 3339, e.g. 2026-11-21T10:30:00Z; now without it
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    now: Option<Timestamp>,
    /// The time zone of schedules that name none, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    default_time_zone: Zone,
    /// What the API server answers the create of a Job where the objects do not say: create=created, create=exists
    /// (a Job of its name is there and ours), create=foreign (one is there and not ours) or create=error
    #[arg(long, value_name = "create=ANSWER", default_value = "create=created", value_parser = parse_assumption)]
    assume: AssumedCreate,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For reading
    Text,
    /// One JSON object; a list of them where there are several CronJobs
    Json,
}

fn parse_instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| {
        "no instant in RFC 3339; write it like 2026-11-21T10:30:00Z or 2026-11-21T11:30:00+01:00".to_owned()
    })
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
    #[error("{input}: not YAML: {problem}; correct it there (a schedule that begins with * must be in quotes)")]
    Yaml {
        /// Its name.
        input: String,
        /// What the parser says, with the place.
        problem: String,
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
    #[error("{kind} {name} is there twice; keep one")]
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
    #[error("CronJob {name}: the controller finds no end with it; please report this with the objects")]
    Unsettled {
        /// Namespace and name.
        name: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
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
    let text = read(&args.file, input)?;
    let name = if args.file == "-" { "standard input" } else { &args.file };
    let objects = objects::read(name, &text)?;
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
        OutputFormat::Json => serde_json::to_writer_pretty(&mut output, &json::document(&explanations))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output)),
        OutputFormat::Text => text::write(&world, &explanations, now, &mut output),
    };
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(ExplainError::Write(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

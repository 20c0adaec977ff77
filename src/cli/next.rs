//! The `next` command: when a schedule fires, for people, for programs, and for comparisons in bulk.

mod bulk;

use std::{
    fmt,
    io::{self, BufRead, Write},
};

use clap::{Args, ValueEnum, value_parser};
use jiff::{Timestamp, tz::Offset};
use serde::Serialize;

use crate::{
    schedule::{ParseError, Schedule, Zone, ZoneError, parse_standard, tzdb_version},
    shard::CronJobSchedule,
};

/// Activations that one query may ask for: enough for three years of nights, and a bound on the work of one query.
const COUNT_MAX: u32 = 1_000;

/// Prints the next activations of a schedule.
#[derive(Args, Debug)]
pub struct NextArgs {
    /// The schedule, as in `spec.schedule`: five fields or a descriptor, quoted as one argument
    #[arg(required_unless_present = "stdin")]
    schedule: Option<String>,
    /// The time zone, as in `spec.timeZone`, e.g. Europe/Berlin; UTC without it
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The instant to count from, in RFC 3339, e.g. 2026-11-21T10:30:00Z; now without it
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// How many activations to print
    #[arg(short = 'n', long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// Answer queries from standard input, one a line: schedule, zone, instant, count, with tabs between;
    /// each is printed again with a tab and its answer
    #[arg(long, conflicts_with_all = ["schedule", "time_zone", "from", "count", "output"])]
    stdin: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutputFormat {
    /// For reading
    Text,
    /// One JSON object
    Json,
}

/// Why `next` gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum NextError {
    /// The schedule does not parse.
    #[error("schedule {text:?}: {error}; {advice}")]
    Schedule {
        /// The text as given.
        text: String,
        /// What the parser says.
        error: ParseError,
        /// What to do about it.
        advice: ScheduleAdvice,
    },
    /// `--time-zone` does not load.
    #[error("--time-zone {name:?}: {error}; {advice}")]
    TimeZone {
        /// The name as given.
        name: String,
        /// What the loader says.
        error: ZoneError,
        /// What to do about it.
        advice: TimeZoneAdvice,
    },
    /// `--from` is no instant.
    #[error("--from {text:?}: no instant in RFC 3339; write it like 2026-11-21T10:30:00Z or 2026-11-21T11:30:00+01:00")]
    From {
        /// The text as given.
        text: String,
        /// What the parser of instants says.
        source: jiff::Error,
    },
    /// The queries cannot be read.
    #[error("cannot read the queries from standard input")]
    Read(#[source] io::Error),
    /// Lines of standard input were malformed.
    #[error("{n_malformed} of the lines {} not answered; correct the lines that are answered with BAD", if *.n_malformed == 1 { "was" } else { "were" })]
    Malformed {
        /// How many.
        n_malformed: u64,
    },
    /// The answers cannot be written.
    #[error("cannot write the answers")]
    Write(#[source] io::Error),
}

/// Runs the command; `now` is the instant to count from where none is given. Answers are written one by one, so give
/// `output` a buffer.
///
/// A reader that has seen enough and closes `output` ends the command, which is no error.
pub fn run(args: NextArgs, now: Timestamp, input: impl BufRead, mut output: impl Write) -> Result<(), NextError> {
    let result = match args.schedule.as_deref() {
        Some(text) if !args.stdin => answer_one(text, &args, now, &mut output),
        _ => bulk::run(input, &mut output),
    };
    match output.flush().map_err(NextError::Write).and(result) {
        Err(NextError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn answer_one(text: &str, args: &NextArgs, now: Timestamp, output: &mut impl Write) -> Result<(), NextError> {
    let from = args.from.as_deref().map_or(Ok(now), |text| {
        text.parse().map_err(|source| NextError::From {
            text: text.to_owned(),
            source,
        })
    })?;
    if let Some(name) = &args.time_zone {
        Zone::load(name).map_err(|error| NextError::TimeZone {
            name: name.clone(),
            error,
            advice: TimeZoneAdvice {
                exact_name: Zone::exact_name(name),
            },
        })?;
    }
    let effective = CronJobSchedule::new(text, args.time_zone.as_deref(), &Zone::utc());
    let schedule = effective.parsed.as_ref().map_err(|error| NextError::Schedule {
        text: text.to_owned(),
        error: error.clone(),
        advice: ScheduleAdvice::new(text),
    })?;
    let answer = Answer::new(&effective, schedule, from, args.count);
    match args.output {
        OutputFormat::Text => write!(output, "{answer}"),
        OutputFormat::Json => serde_json::to_writer_pretty(&mut *output, &answer)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output)),
    }
    .map_err(NextError::Write)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    schedule: String,
    /// The zone that the schedule is evaluated in.
    time_zone: String,
    /// Whether that is the zone of the text, which wins over `--time-zone` (B-7.1).
    is_zone_in_text: bool,
    time_zone_data: &'static str,
    from: Instant,
    activations: Vec<Instant>,
    /// Whether there are fewer than asked for: none within five years (B-8.1).
    ends: bool,
}

#[derive(Debug, Serialize)]
struct Instant {
    local: String,
    utc: String,
    #[serde(skip)]
    weekday: String,
}

impl Instant {
    fn new(instant: Timestamp, zone: &Zone) -> Instant {
        let offset = Offset::from_seconds(zone.offset_seconds_at(instant.as_second())).unwrap_or(Offset::UTC);
        let weekday = offset.to_datetime(instant).strftime("%a").to_string();
        Instant {
            local: instant.display_with_offset(offset).to_string(),
            utc: instant.to_string(),
            weekday,
        }
    }
}

impl Answer {
    fn new(effective: &CronJobSchedule, schedule: &Schedule, from: Timestamp, count: u32) -> Answer {
        let is_zone_in_text = effective.names_zone_in_text();
        let loaded = effective
            .zone
            .as_ref()
            .and_then(|zone| zone.as_ref().ok())
            .filter(|_| !is_zone_in_text);
        let zone = schedule.zone().or(loaded).unwrap_or(&effective.default_zone);
        let mut activations = Vec::new();
        let mut reference = from;
        while activations.len() < count as usize
            && let Some(next) = schedule.next_after(reference, &effective.default_zone)
        {
            activations.push(Instant::new(next, zone));
            reference = next;
        }
        Answer {
            schedule: effective.text.to_string(),
            time_zone: zone.name().to_owned(),
            is_zone_in_text,
            time_zone_data: tzdb_version(),
            from: Instant::new(from, zone),
            ends: activations.len() < count as usize,
            activations,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "schedule   {}", self.schedule.escape_debug())?;
        writeln!(
            formatter,
            "time zone  {} (data {})",
            self.time_zone, self.time_zone_data
        )?;
        if self.is_zone_in_text {
            writeln!(
                formatter,
                "           named by the schedule itself, which Kubernetes does not support"
            )?;
        }
        writeln!(formatter, "from       {}  {}\n", self.from.weekday, self.from.local)?;
        for activation in &self.activations {
            let Instant { local, utc, weekday } = activation;
            writeln!(formatter, "{weekday}  {local}  {utc}")?;
        }
        if self.ends {
            let last = if self.activations.is_empty() {
                "never: no"
            } else {
                "no further"
            };
            writeln!(formatter, "{last} activation within five years")?;
        }
        Ok(())
    }
}

/// The fields of a schedule and what they take.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31"),
    ("month", "1-12 or jan-dec"),
    ("day of week", "0-6 or sun-sat, Sunday is 0"),
];

/// What to do about a schedule that does not parse.
#[derive(Debug)]
pub enum ScheduleAdvice {
    /// One of the five fields is wrong, by its place.
    Field(usize),
    /// The text has not the form of a schedule.
    Form,
}

impl ScheduleAdvice {
    fn new(text: &str) -> ScheduleAdvice {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            return ScheduleAdvice::Form;
        }
        let is_wrong = |place: &usize| {
            let mut alone = ["*"; FIELDS.len()];
            alone[*place] = fields[*place];
            parse_standard(&alone.join(" ")).is_err()
        };
        (0..FIELDS.len())
            .find(is_wrong)
            .map_or(ScheduleAdvice::Form, ScheduleAdvice::Field)
    }
}

impl fmt::Display for ScheduleAdvice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleAdvice::Field(place) => {
                let (name, values) = FIELDS[*place];
                write!(
                    formatter,
                    "correct the {name} field, which takes {values}, as lists, ranges and steps"
                )
            }
            ScheduleAdvice::Form => formatter.write_str(
                "write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, \
                 @weekly, @daily, @hourly, or @every with a duration such as 1h30m",
            ),
        }
    }
}

/// What to do about a zone that does not load.
#[derive(Debug)]
pub struct TimeZoneAdvice {
    exact_name: Option<&'static str>,
}

impl fmt::Display for TimeZoneAdvice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact_name {
            Some(name) => write!(formatter, "names are case-sensitive, write {name}"),
            None => formatter.write_str("write a name of the IANA database, such as America/New_York or Etc/UTC"),
        }
    }
}

#[cfg(test)]
mod tests;

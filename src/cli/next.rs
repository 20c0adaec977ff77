//! The `next` command: the activations of a schedule, or of the CronJobs of files, as text, as JSON, or in bulk.

mod answer;
mod bulk;
mod files;

use std::io::{self, BufRead, Write};

use clap::{Args, ValueEnum, value_parser};
use jiff::{Timestamp, civil::DateTime};

use self::answer::Answer;
use super::error::CommandError;
use crate::{
    explain::{
        advice::{refusal, schedule_advice, shown, zone_advice},
        calendar::Calendar,
        never::why_never,
    },
    schedule::{CronJobSchedule, Schedule, Zone},
};

/// Activations that one query may ask for: enough for three years of nights, and a bound on the work of one query.
const COUNT_MAX: u32 = 1_000;

/// Says in words when a schedule fires, and prints its next activations. With -f, it does so for each CronJob of the
/// files, with its options.
///
/// Exit code 1 means that the API server refuses the schedule or the time zone, or that the schedule never fires.
#[derive(Args, Debug)]
pub struct NextArgs {
    /// The schedule, as in `spec.schedule`: five fields or a descriptor, quoted as one argument
    #[arg(required_unless_present_any = ["stdin", "file"], num_args = 1..)]
    schedule: Vec<String>,
    /// Read CronJobs from a YAML or JSON file, from the files of a directory, or from - for standard input; can be
    /// repeated
    #[arg(short, long = "file", value_name = "FILE", conflicts_with_all = ["schedule", "time_zone", "stdin"])]
    file: Vec<String>,
    /// The time zone, as in `spec.timeZone`, e.g. Europe/Berlin. Default: UTC
    #[arg(long, visible_alias = "tz", alias = "timezone", value_name = "ZONE")]
    time_zone: Option<String>,
    /// The instant to count from, in RFC 3339, e.g. 2026-11-21T10:30:00Z, or a date or local time in the time zone,
    /// e.g. 2026-11-21. Default: now
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Number of activations to print
    #[arg(short = 'n', long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// Answer queries from standard input, one a line: schedule, zone, instant, count, with tabs between. Each is
    /// printed again with a tab and its answer
    #[arg(long, conflicts_with_all = ["schedule", "time_zone", "from", "count", "output"])]
    stdin: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutputFormat {
    /// Text for people
    Text,
    /// One JSON object, or a list for several CronJobs
    Json,
}

/// Runs the command; `now` is the default instant to count from. Answers are written one by one, so `output` should
/// be buffered.
pub fn run(args: NextArgs, now: Timestamp, input: impl BufRead, mut output: impl Write) -> Result<(), CommandError> {
    let result = match args.schedule.as_slice() {
        _ if args.stdin => bulk::run(input, &mut output),
        _ if !args.file.is_empty() => files::run(&args, now, input, &mut output),
        [text] => answer_one(text, &args, now, &mut output),
        arguments => Err(unquoted(arguments)),
    };
    output.flush().map_err(CommandError::Write).and(result)
}

fn unquoted(arguments: &[String]) -> CommandError {
    let is_schedule = |text: &str| CronJobSchedule::new(text, None, &Zone::utc()).parsed.is_ok();
    if let Some((first, more)) = arguments.split_first()
        && is_schedule(first)
    {
        let more = more.join(" ");
        let advice = more_advice(&more);
        return format!("{more:?} is more than the schedule; give {advice}").into();
    }
    let text = arguments.join(" ");
    let example = if is_schedule(&text) { &text } else { "*/5 * * * *" };
    format!(
        "{} arguments instead of one schedule, because the shell expands * and splits at spaces; quote the schedule, such \
         as cronwheel next '{example}'",
        arguments.len()
    )
    .into()
}

fn more_advice(more: &str) -> String {
    match Zone::load(more) {
        Ok(_) => format!("the time zone by --tz {more}"),
        Err(_) => "one schedule, the time zone by --tz, and the start by --from".to_owned(),
    }
}

fn answer_one(text: &str, args: &NextArgs, now: Timestamp, output: &mut impl Write) -> Result<(), CommandError> {
    let effective = CronJobSchedule::new(text, args.time_zone.as_deref(), &Zone::utc());
    let schedule = parsed(&effective, ["schedule", "--time-zone"])?;
    let from = args.from(&effective, now)?;
    let calendar = Calendar::new(&effective, schedule, (from, from), args.count as usize);
    let answer = Answer::new(&calendar, &effective, schedule, from, args);
    match args.output {
        OutputFormat::Text => answer.write_text(&calendar, args.from.is_some().then_some(from), output),
        OutputFormat::Json => serde_json::to_writer_pretty(&mut *output, &answer)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output)),
    }
    .map_err(CommandError::Write)?;
    match problem(&effective, &calendar, from) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// The schedule, or why the API server refuses it or its zone. `fields` are the names of both in a message.
fn parsed<'a>(effective: &'a CronJobSchedule, fields: [&str; 2]) -> Result<&'a Schedule, String> {
    if let (Some(name), Some(Err(error))) = (&effective.time_zone, &effective.zone) {
        let (field, error, advice) = (fields[1], shown(&error.to_string()), zone_advice(name));
        return Err(format!(
            "refused by the API server: {field} {name:?}: {error}; {advice}"
        ));
    }
    effective.parsed.as_ref().map_err(|error| {
        let (field, error, advice) = (fields[0], shown(&error.0), schedule_advice(&effective.text));
        format!(
            "refused by the API server: {field} {:?}: {error}; {advice}",
            effective.text
        )
    })
}

/// Why a schedule that parses is refused or never fires.
fn problem(effective: &CronJobSchedule, calendar: &Calendar<'_>, from: Timestamp) -> Option<String> {
    match refusal(effective) {
        Some(refusal) => Some(format!("refused by the API server: {refusal}")),
        None if calendar.never_runs() => Some(format!("never: {}", why_never(effective, from))),
        None => None,
    }
}

impl NextArgs {
    /// The instant to count from.
    fn from(&self, effective: &CronJobSchedule, now: Timestamp) -> Result<Timestamp, CommandError> {
        let from = self.from.as_deref();
        from.map_or(Ok(now), |text| parse_from(text, effective.effective_zone()))
    }
}

/// Parses an instant, or a local time or date in a zone.
fn parse_from(text: &str, zone: &Zone) -> Result<Timestamp, CommandError> {
    let local = |_: jiff::Error| -> Result<Timestamp, jiff::Error> {
        let local: DateTime = text.parse()?;
        Ok(local.to_zoned(zone.to_jiff())?.timestamp())
    };
    text.parse().or_else(local).map_err(|error| {
        let fix = "write it like 2026-11-21T10:30:00Z, or 2026-11-21 for midnight in the time zone";
        CommandError::caused(format!("--from {text:?}: not an instant; {fix}"), error)
    })
}

#[cfg(test)]
mod tests;

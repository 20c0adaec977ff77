//! The `next` command: the activations of a schedule as text, as JSON, or in bulk.

mod bulk;

use std::io::{self, BufRead, Write};

use clap::{Args, ValueEnum, value_parser};
use jiff::{Timestamp, civil::DateTime, tz::Offset};
use serde::Serialize;

use super::error::CommandError;
use crate::{
    explain::{
        advice::{never_advice, refusal, schedule_advice, shown, zone_advice, zone_note},
        calendar::Calendar,
    },
    schedule::{CronJobSchedule, Schedule, Zone, describe, tzdb_version},
};

/// Activations that one query may ask for: enough for three years of nights, and a bound on the work of one query.
const COUNT_MAX: u32 = 1_000;

/// Says in words when a schedule fires, and prints its next activations.
///
/// Exit code 1 means that the API server refuses the schedule or the time zone, or that the schedule never fires.
#[derive(Args, Debug)]
pub struct NextArgs {
    /// The schedule, as in `spec.schedule`: five fields or a descriptor, quoted as one argument
    #[arg(required_unless_present = "stdin", num_args = 1..)]
    schedule: Vec<String>,
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
    /// One JSON object
    Json,
}

/// Runs the command; `now` is the default instant to count from. Answers are written one by one, so `output` should
/// be buffered.
pub fn run(args: NextArgs, now: Timestamp, input: impl BufRead, mut output: impl Write) -> Result<(), CommandError> {
    let result = match args.schedule.as_slice() {
        _ if args.stdin => bulk::run(input, &mut output),
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
    if let (Some(name), Some(Err(error))) = (&args.time_zone, &effective.zone) {
        let (error, advice) = (shown(&error.to_string()), zone_advice(name));
        return Err(format!("refused by the API server: --time-zone {name:?}: {error}; {advice}").into());
    }
    let schedule = effective.parsed.as_ref().map_err(|error| {
        let (error, advice) = (shown(&error.0), schedule_advice(text));
        format!("refused by the API server: schedule {text:?}: {error}; {advice}")
    })?;
    let from = args.from.as_deref();
    let from = from.map_or(Ok(now), |text| parse_from(text, effective.effective_zone()))?;
    let calendar = Calendar::new(&effective, schedule, (from, from), args.count as usize);
    let answer = Answer::new(&calendar, &effective, schedule, from, args.count);
    match args.output {
        OutputFormat::Text => write_text(&calendar, &answer, args.from.is_some().then_some(from), output),
        OutputFormat::Json => serde_json::to_writer_pretty(&mut *output, &answer)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output)),
    }
    .map_err(CommandError::Write)?;
    match refusal(&effective) {
        Some(refusal) => Err(format!("refused by the API server: {refusal}").into()),
        None if calendar.next.is_empty() => Err(format!(
            "never: schedule {text:?} matches no instant within five years; {}",
            never_advice(text)
        )
        .into()),
        None => Ok(()),
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

fn write_text(
    calendar: &Calendar<'_>,
    answer: &Answer,
    from: Option<Timestamp>,
    output: &mut impl Write,
) -> io::Result<()> {
    writeln!(output, "{}", calendar.schedule_text())?;
    for sentence in &answer.notes {
        writeln!(output, "note: {sentence}")?;
    }
    if let Some(from) = from {
        writeln!(output, "from {}", calendar.local(from))?;
    }
    writeln!(output)?;
    for line in calendar.next_lines() {
        writeln!(output, "{line}")?;
    }
    if answer.ends && !calendar.next.is_empty() {
        writeln!(output, "no further activation within five years")?;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    schedule: String,
    description: String,
    notes: Vec<String>,
    /// The zone that the schedule is evaluated in.
    time_zone: String,
    /// Whether the zone is that of the text, which takes precedence over `--time-zone` (B-7.1).
    is_zone_in_text: bool,
    time_zone_data: &'static str,
    from: Instant,
    activations: Vec<Instant>,
    /// Whether there are fewer activations than requested: none within five years (B-8.1).
    ends: bool,
}

#[derive(Debug, Serialize)]
struct Instant {
    local: String,
    utc: String,
}

impl Instant {
    fn new(instant: Timestamp, zone: &Zone) -> Instant {
        let offset = Offset::from_seconds(zone.offset_seconds_at(instant.as_second())).unwrap_or(Offset::UTC);
        Instant {
            local: instant.display_with_offset(offset).to_string(),
            utc: instant.to_string(),
        }
    }
}

impl Answer {
    fn new(
        calendar: &Calendar<'_>,
        effective: &CronJobSchedule,
        schedule: &Schedule,
        from: Timestamp,
        count: u32,
    ) -> Answer {
        let zone = effective.effective_zone();
        Answer {
            schedule: effective.text.to_string(),
            description: describe::describe(schedule),
            notes: describe::surprises(&effective.text, schedule)
                .into_iter()
                .chain(zone_note(zone.name()))
                .collect(),
            time_zone: zone.name().to_owned(),
            is_zone_in_text: effective.names_zone_in_text(),
            time_zone_data: tzdb_version(),
            from: Instant::new(from, zone),
            ends: calendar.next.len() < count as usize,
            activations: calendar.next.iter().map(|at| Instant::new(*at, zone)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;

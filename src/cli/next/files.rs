//! The activations of the CronJobs of files, with their options.

use std::io::{self, BufRead, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{NextArgs, OutputFormat, answer::Answer, parse_from, parsed, problem};
use crate::{
    cli::{error::CommandError, object_files},
    explain::{
        ExplainError,
        calendar::Calendar,
        objects::{Objects, name_of, namespace_of},
    },
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone, options::OptionName, thaw::FrozenCronJob},
    shard::hash::even_hash,
};

/// The answer for one CronJob.
#[derive(Debug, Serialize)]
struct Entry {
    namespace: String,
    name: String,
    #[serde(flatten)]
    answer: Option<Answer>,
    /// Why the API server refuses the schedule or its zone, or that it never fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip)]
    text: Vec<u8>,
}

/// Answers for each CronJob of the files. A document that cannot be read is reported in the error, and hides nothing of
/// the others.
pub(super) fn run(
    args: &NextArgs,
    now: Timestamp,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<(), CommandError> {
    if let Some(from) = &args.from {
        parse_from(from, &Zone::utc())?;
    }
    let objects = object_files::read_all(&args.file, input)?;
    let cron_jobs = objects.titled_cron_jobs();
    let entries: Result<Vec<Entry>, CommandError> = cron_jobs
        .map(|(title, cron_job)| Entry::new(&title, cron_job, &objects, args, now))
        .collect();
    let entries = entries?;
    if entries.is_empty() && objects.broken.is_empty() {
        let input = object_files::names_of(&args.file);
        return Err(ExplainError::NoCronJob { input }.into());
    }
    write(&entries, args.output, output).map_err(CommandError::Write)?;
    match defects(&entries, &objects.broken) {
        Some(defects) => Err(defects.into()),
        None => Ok(()),
    }
}

fn write(entries: &[Entry], format: OutputFormat, output: &mut impl Write) -> io::Result<()> {
    match (format, entries) {
        (_, []) => return Ok(()),
        (OutputFormat::Json, [one]) => serde_json::to_writer_pretty(&mut *output, one)?,
        (OutputFormat::Json, several) => serde_json::to_writer_pretty(&mut *output, several)?,
        (OutputFormat::Text, _) => {
            let texts: Vec<&[u8]> = entries.iter().map(|entry| entry.text.as_slice()).collect();
            return output.write_all(&texts.join(&b'\n'));
        }
    }
    writeln!(output)
}

/// The documents that cannot be read, and the number of CronJobs with a problem.
fn defects(entries: &[Entry], broken: &[String]) -> Option<String> {
    let mut lines = broken.to_vec();
    let n_problems = entries.iter().filter(|entry| entry.problem.is_some()).count();
    match (n_problems, entries) {
        (0, _) => {}
        (_, [one]) => lines.extend(one.problem.clone()),
        (1, several) => lines.push(format!("1 of {} CronJobs has a problem", several.len())),
        (n, several) => lines.push(format!("{n} of {} CronJobs have a problem", several.len())),
    }
    (!lines.is_empty()).then(|| lines.join("; "))
}

impl Entry {
    /// Fails if the start of the calendar is no instant.
    fn new(
        title: &str,
        cron_job: &Value,
        objects: &Objects,
        args: &NextArgs,
        now: Timestamp,
    ) -> Result<Entry, CommandError> {
        let mut entry = Entry {
            namespace: namespace_of(cron_job).to_owned(),
            name: name_of(cron_job).to_owned(),
            answer: None,
            problem: None,
            text: format!("{title}\n").into_bytes(),
        };
        entry.answer(cron_job, objects, args, now)?;
        if let Some(problem) = &entry.problem {
            entry.text.extend(format!("problem: {problem}\n").bytes());
        }
        Ok(entry)
    }

    fn answer(
        &mut self,
        cron_job: &Value,
        objects: &Objects,
        args: &NextArgs,
        now: Timestamp,
    ) -> Result<(), CommandError> {
        let Written {
            schedule: effective,
            mut notes,
        } = match Written::read(cron_job, objects) {
            Ok(written) => written,
            Err(problem) => {
                self.problem = Some(problem);
                return Ok(());
            }
        };
        let schedule = match parsed(&effective, ["spec.schedule", "spec.timeZone"]) {
            Ok(schedule) => schedule,
            Err(problem) => {
                self.problem = Some(problem);
                return Ok(());
            }
        };
        let from = args.from(&effective, now)?;
        notes.extend(objects.freeze_text(namespace_of(cron_job), from));
        let since = if schedule.is_every() {
            chain_start(cron_job).unwrap_or(from)
        } else {
            from
        };
        let calendar = Calendar::new(&effective, schedule, (since, from), args.count as usize);
        let calendar = calendar.in_freeze(frozen(cron_job, objects, &effective, from));
        let mut answer = Answer::new(&calendar, &effective, schedule, from, args);
        answer.options = effective.options().sentences(policy(cron_job));
        answer.notes.append(&mut notes);
        let printed_from = args.from.is_some().then_some(from);
        answer
            .write_text(&calendar, printed_from, &mut self.text)
            .map_err(CommandError::Write)?;
        self.problem = problem(&effective, &calendar, from);
        self.answer = Some(answer);
        Ok(())
    }
}

/// What a CronJob says about its runs.
struct Written {
    schedule: CronJobSchedule,
    notes: Vec<String>,
}

impl Written {
    /// The error names the field and the fix.
    fn read(cron_job: &Value, objects: &Objects) -> Result<Written, String> {
        let text = |pointer: &str, name: &str| match cron_job.pointer(pointer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(format!(
                "refused by the API server: {name} is {other} and no text; write it in quotes"
            )),
        };
        let schedule = text("/spec/schedule", "spec.schedule")?;
        let schedule = schedule.ok_or("refused by the API server: spec.schedule is missing")?;
        let time_zone = text("/spec/timeZone", "spec.timeZone")?;
        let annotation = |name: &str| cron_job.pointer("/metadata/annotations")?.get(name);
        let uid = cron_job.pointer("/metadata/uid").and_then(Value::as_str);
        let hash = even_hash(uid.unwrap_or_default().as_bytes());
        let mut schedule = CronJobSchedule::new(schedule, time_zone, &Zone::utc()).with_options(
            cron_job
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            |name| annotation(name)?.as_str(),
            hash,
        );
        objects.inherit(namespace_of(cron_job), &mut schedule, hash);
        if uid.is_none() {
            schedule.forget_offset();
        }
        let unread = objects.resolve_calendar(namespace_of(cron_job), &mut schedule);
        let mut notes: Vec<String> = schedule.options().invalid.iter().map(ToString::to_string).collect();
        notes.extend(unread);
        notes.extend(objects.annotation_notes(cron_job));
        for name in OptionName::OF_CRON_JOB.map(OptionName::annotation) {
            let value = annotation(name).filter(|value| !value.is_string() && !value.is_null());
            notes.extend(value.map(|value| format!("annotation {name} is {value} and no text; write it in quotes")));
        }
        if cron_job.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
            notes.push("spec.suspend is true, so nothing starts until it is false".to_owned());
        }
        Ok(Written { schedule, notes })
    }
}

/// The CronJob in the freeze of its namespace, if one holds at an instant.
fn frozen<'a>(
    cron_job: &Value,
    objects: &Objects,
    schedule: &'a CronJobSchedule,
    from: Timestamp,
) -> Option<FrozenCronJob<'a>> {
    let until = objects.frozen_until(namespace_of(cron_job));
    Some(FrozenCronJob {
        schedule,
        // A CronJob that does not exist yet has no earlier slots.
        created: chain_start(cron_job).unwrap_or(from),
        last_schedule_time: None,
        starting_deadline_seconds: cron_job
            .pointer("/spec/startingDeadlineSeconds")
            .and_then(|seconds| Some(seconds.as_i64()?.max(0))),
        concurrency_policy: policy(cron_job),
        until: until.filter(|until| from < *until)?,
    })
}

fn policy(cron_job: &Value) -> ConcurrencyPolicy {
    ConcurrencyPolicy::of_name(cron_job.pointer("/spec/concurrencyPolicy").and_then(Value::as_str))
}

/// The start of the chain of an interval: the last slot that was started, else the creation.
fn chain_start(cron_job: &Value) -> Option<Timestamp> {
    let pointers = ["/status/lastScheduleTime", "/metadata/creationTimestamp"].into_iter();
    let mut texts = pointers.filter_map(|pointer| cron_job.pointer(pointer)?.as_str());
    texts.find_map(|text| text.parse().ok())
}

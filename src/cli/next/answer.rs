//! The answer for one schedule, as JSON and as text.

use std::io::{self, Write};

use jiff::{Timestamp, tz::Offset};
use serde::Serialize;

use super::NextArgs;
use crate::{
    explain::{advice::zone_note, calendar::Calendar, never::search_limit, runs::ExcludedRuns},
    schedule::{CronJobSchedule, Schedule, Zone, describe, tzdb_version},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// `spec.schedule`, also if an option replaces it.
    schedule: String,
    /// The lines of the option that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedules: Option<Vec<String>>,
    /// The schedule that runs in words.
    description: String,
    pub(super) notes: Vec<String>,
    /// What each option of the CronJob changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) options: Vec<String>,
    /// The zone that the schedule is evaluated in.
    time_zone: String,
    /// Whether the zone is that of the text, which takes precedence over the field (B-7.1).
    is_zone_in_text: bool,
    time_zone_data: &'static str,
    from: Instant,
    activations: Vec<Activation>,
    /// The days on which activations fall out in between, by the option `not-on`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<ExcludedRuns>,
    /// Whether there are fewer activations than requested: none within five years (B-8.1), or ever (O-5.2).
    ends: bool,
    #[serde(skip)]
    search_limit: &'static str,
}

#[derive(Debug, Serialize)]
struct Activation {
    #[serde(flatten)]
    slot: Instant,
    /// The start, if the option `spread` moves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Instant>,
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
    pub(super) fn new(
        calendar: &Calendar<'_>,
        effective: &CronJobSchedule,
        schedule: &Schedule,
        from: Timestamp,
        args: &NextArgs,
    ) -> Answer {
        let zone = effective.effective_zone();
        let activation = |slot: &Timestamp| {
            let start = effective.start_of(*slot);
            Activation {
                slot: Instant::new(*slot, zone),
                start: (start != *slot).then(|| Instant::new(start, zone)),
            }
        };
        let lines = schedule.lines_of_option();
        Answer {
            schedule: effective.text.to_string(),
            schedules: lines.map(|lines| lines.into_iter().map(str::to_owned).collect()),
            description: describe::describe(schedule),
            notes: describe::surprises(&effective.text, schedule)
                .into_iter()
                .chain(zone_note(zone.name()))
                .collect(),
            options: Vec::new(),
            time_zone: zone.name().to_owned(),
            is_zone_in_text: effective.names_zone_in_text(),
            time_zone_data: tzdb_version(),
            from: Instant::new(from, zone),
            ends: calendar.next.len() < args.count as usize,
            search_limit: search_limit(effective),
            activations: calendar.next.iter().map(activation).collect(),
            excluded: ExcludedRuns::of(calendar),
        }
    }

    pub(super) fn write_text(
        &self,
        calendar: &Calendar<'_>,
        from: Option<Timestamp>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        writeln!(output, "{}", calendar.schedule_text())?;
        for sentence in &self.options {
            writeln!(output, "option: {sentence}")?;
        }
        for sentence in &self.notes {
            writeln!(output, "note: {sentence}")?;
        }
        if let Some(from) = from {
            writeln!(output, "from {}", calendar.local(from))?;
        }
        writeln!(output)?;
        for line in calendar.next_lines() {
            writeln!(output, "{line}")?;
        }
        if self.ends && !calendar.next.is_empty() {
            writeln!(output, "no further activation{}", self.search_limit)?;
        }
        Ok(())
    }
}

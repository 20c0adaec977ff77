//! Runs that a clock change of the next 60 days skips or repeats.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::Offset};

use super::{CronJobAdviceInput, about, full_name};
use crate::{
    observe::{view::Advice, words::thousands},
    schedule::{
        CronJobSchedule, Schedule, after,
        change_day::{ChangeDay, time_of_day, walls},
        zone::OffsetChange,
    },
};

/// Changes after this time are not reported yet.
const AHEAD: SignedDuration = SignedDuration::from_hours(60 * 24);

/// The effect on one day, in the order of the advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Skips,
    Repeats,
    Strays,
}

/// A clock change with its effect on some CronJobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trap {
    at: i64,
    zone: Box<str>,
    effect: Effect,
}

/// What happens to a schedule: the trap with its change, and the times of day that are concerned.
type Found = (Trap, OffsetChange, Vec<i64>);

/// What decides the activations: the schedule, its zone and its options.
type Key<'a> = (&'a str, Option<&'a str>, Option<Box<str>>);

/// What happens to one CronJob.
type Concerned<'a, 'b> = (&'b CronJobAdviceInput<'a>, OffsetChange, Vec<i64>);

pub(super) fn advice(cron_jobs: &[CronJobAdviceInput<'_>], now: Timestamp) -> Vec<Advice> {
    let mut traps: BTreeMap<Trap, Vec<Concerned<'_, '_>>> = BTreeMap::new();
    // CronJobs with the same schedule share the computation.
    let mut known: BTreeMap<Key<'_>, Vec<Found>> = BTreeMap::new();
    for input in cron_jobs.iter().filter(|input| !input.facts.is_suspended) {
        let schedule = &input.facts.schedule;
        let options = schedule.parsed.as_ref().ok().and_then(Schedule::options_key);
        let found = known
            .entry((&schedule.text, schedule.time_zone.as_deref(), options))
            .or_insert_with(|| traps_of(schedule, now));
        for (trap, change, times) in found {
            traps
                .entry(trap.clone())
                .or_default()
                .push((input, *change, times.clone()));
        }
    }
    traps
        .into_iter()
        .filter_map(|(trap, concerned)| sentence(&trap, &concerned))
        .collect()
}

fn traps_of(schedule: &CronJobSchedule, now: Timestamp) -> Vec<Found> {
    let has_zone = !matches!(schedule.zone, Some(Err(_)));
    // Clock changes do not affect an interval.
    let Some(parsed) = schedule
        .parsed
        .as_ref()
        .ok()
        .filter(|parsed| has_zone && !parsed.is_every())
    else {
        return Vec::new();
    };
    let zone = schedule.effective_zone();
    let until = after(now, AHEAD).as_second();
    let first = zone.next_change_after(now.as_second());
    let changes = std::iter::successors(first, |change| zone.next_change_after(change.at));
    let changes = changes.take_while(|change| change.at <= until);
    changes
        .flat_map(|change| traps_at(schedule, parsed, now, change))
        .collect()
}

fn traps_at(schedule: &CronJobSchedule, parsed: &Schedule, now: Timestamp, change: OffsetChange) -> Vec<Found> {
    let day = ChangeDay::new(schedule, parsed, now, &change);
    let effects = [
        (Effect::Skips, day.lost),
        (Effect::Repeats, day.repeated),
        (Effect::Strays, day.strange),
    ];
    let trap = |(effect, times): (Effect, Vec<i64>)| {
        let zone = schedule.effective_zone().name().into();
        let trap = Trap {
            at: change.at,
            zone,
            effect,
        };
        (!times.is_empty()).then_some((trap, change, times))
    };
    effects.into_iter().filter_map(trap).collect()
}

/// Formats `clocks in Europe/Berlin go back from 03:00 to 02:00`.
fn clocks(zone: &str, change: &OffsetChange) -> String {
    let (from, to) = walls(change);
    let direction = if to > from { "forward" } else { "back" };
    let (from, to) = (wall(from).strftime("%H:%M"), wall(to).strftime("%H:%M"));
    format!("clocks in {zone} go {direction} from {from} to {to}")
}

fn sentence(trap: &Trap, concerned: &[Concerned<'_, '_>]) -> Option<Advice> {
    let (_, change, times) = concerned.first()?;
    let (from, to) = walls(change);
    let date = wall(from.min(to)).strftime("%-d %B %Y");
    let clocks = clocks(&trap.zone, change);
    let inputs: Vec<&CronJobAdviceInput<'_>> = concerned.iter().map(|(input, ..)| *input).collect();
    let first = full_name(inputs.first()?.facts);
    let what = what_one_does(trap.effect, times);
    about(
        "ClockChange",
        &inputs,
        |name| format!("{name} {what} on {date}: {clocks}."),
        |n| {
            let what = match trap.effect {
                Effect::Skips => "skip runs",
                Effect::Repeats => "run twice",
                Effect::Strays => "run at times that their schedules do not name",
            };
            let n = thousands(n as u64);
            format!("{n} CronJobs, {first} among them, {what} on {date}: {clocks}.")
        },
    )
}

fn what_one_does(effect: Effect, times: &[i64]) -> String {
    let first = times.first().copied().map(time_of_day).unwrap_or_default();
    match (effect, times.len()) {
        (Effect::Skips, 1) => format!("skips its run at {first}"),
        (Effect::Skips, n) => format!("skips {n} runs, the first at {first},"),
        (Effect::Repeats, 1) => format!("runs twice at {first}"),
        (Effect::Repeats, n) => format!("runs twice at {n} times, the first of them {first},"),
        (Effect::Strays, 1) => format!("runs at {first}, which its schedule does not name,"),
        (Effect::Strays, n) => format!("runs at {n} times that its schedule does not name, the first of them {first},"),
    }
}

/// Local time that is read as UTC.
fn wall(unix_seconds: i64) -> DateTime {
    Offset::UTC.to_datetime(Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX))
}

//! Combines `spec.schedule` and `spec.timeZone` of a CronJob, parsed once (B-7.1).

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    ClockChange, Exclusion, ParseError, Schedule, SchedulesError, Zone, ZoneError, after, due,
    fires::Lines,
    options::{Calendar, NamespaceOptions, OptionName, Options, ValueProblem},
    parse_standard,
    with_second::lines_with_second,
};

/// The longest `spec.schedule` that is parsed, and the longest text of a schedule or time zone that is stored. A
/// schedule that lists every value of every field takes a tenth of it. The limit bounds the cost of a CronJob event,
/// each of which parses the schedule.
pub const SCHEDULE_MAX_BYTES: usize = 4096;

/// The longest name of a CronJob whose Jobs have the second in their names (O-5.5): the name of a Job has at most 63
/// characters, since its Pods get it as a label.
const NAME_WITH_SECOND_MAX_BYTES: usize = 51;

/// What a message recommends to a CronJob with a longer name.
const EXAMPLE_WITHOUT_SECONDS: &str = "0 */15 8-18 * * Mon-Fri";

/// The longest value of the option `schedule` that a message recommends.
const RECOMMENDED_MAX_BYTES: usize = 256;

/// `spec.schedule` with `spec.timeZone`, parsed once (B-7.1).
#[derive(Clone, Debug)]
pub struct CronJobSchedule {
    /// `spec.schedule`, truncated to [`SCHEDULE_MAX_BYTES`].
    pub text: Box<str>,
    /// `spec.timeZone`, truncated to [`SCHEDULE_MAX_BYTES`].
    pub time_zone: Option<Box<str>>,
    /// The zone of `spec.timeZone`, or the error of loading it (B-6.2). `Local` is the default zone.
    pub zone: Option<Result<Zone, ZoneError>>,
    /// The effective schedule, or the error of parsing it (B-6.4).
    pub parsed: Result<Schedule, ParseError>,
    /// The zone of a schedule that names none (B-7.2).
    pub default_zone: Zone,
    /// The options of the CronJob; `None` without any.
    options: Option<Box<Options>>,
}

impl CronJobSchedule {
    /// Builds the effective schedule (B-7.1). A text that contains `TZ` anywhere is used unchanged, and the zone field
    /// is ignored.
    pub fn new(text: &str, time_zone: Option<&str>, default_zone: &Zone) -> CronJobSchedule {
        let is_too_long = text.len() > SCHEDULE_MAX_BYTES;
        // No time zone has a name this long.
        let (text, time_zone) = (cut(text), time_zone.map(cut));
        let zone = time_zone.map(|name| match name {
            // The zone of the process; cronwheel uses the default zone (B-7.2).
            "Local" => Ok(default_zone.clone()),
            _ => Zone::load(name),
        });
        let parsed = match (time_zone, &zone) {
            _ if is_too_long => Err(ParseError(format!("longer than {SCHEDULE_MAX_BYTES} bytes"))),
            (Some(name), Some(Ok(_))) if !text.contains("TZ") => parse_standard(&format!("TZ={name} {text}")),
            _ => parse_standard(text),
        };
        CronJobSchedule {
            text: text.into(),
            time_zone: time_zone.map(Into::into),
            zone,
            parsed,
            default_zone: default_zone.clone(),
            options: None,
        }
    }

    /// Adds the options in the annotations of the CronJob of this name. `hash` is an even hash of its uid.
    #[must_use]
    pub fn with_options<'a>(mut self, name: &str, get: impl Fn(&str) -> Option<&'a str>, hash: u64) -> CronJobSchedule {
        let schedules = get(OptionName::Schedule.annotation()).filter(|value| value.trim() != "none");
        let result = schedules.map(|text| self.replace_by(text, name.len()));
        let mut options = Options::read(get, self.parsed.as_ref().ok(), hash);
        if let (Some(text), Some(result)) = (schedules, result) {
            options.set_schedules(text, result);
        }
        self.set_options(options);
        self
    }

    /// Replaces the activations by those of the option `schedule`, unless it is invalid.
    fn replace_by(&mut self, text: &str, n_bytes_of_name: usize) -> Result<(), ValueProblem> {
        let may_have_seconds = n_bytes_of_name <= NAME_WITH_SECOND_MAX_BYTES;
        let problem = |problem| ValueProblem {
            text: problem,
            example: recommended(text, may_have_seconds),
        };
        let lines = Lines::parse(text, self.named_zone().cloned()).map_err(|error| problem(error.to_string()))?;
        if lines.has_seconds() && !may_have_seconds {
            return Err(problem(format!(
                "it has seconds, which the names of Jobs need, and the name of the CronJob is longer than \
                 {NAME_WITH_SECOND_MAX_BYTES} characters"
            )));
        }
        self.set_lines(lines);
        Ok(())
    }

    /// If `spec.schedule` does not parse, the CronJob still runs nothing (B-6.4).
    fn set_lines(&mut self, lines: Lines) {
        if let Ok(parsed) = &mut self.parsed {
            *parsed = Schedule::lines(lines);
        }
    }

    /// The CronJob with the activations of the option `schedule` (O-5), in the zone that it has already. `text` remains
    /// `spec.schedule`, and if that does not parse, neither does the result (B-6.4). Apply the option before
    /// `clock-change`.
    ///
    /// # Errors
    ///
    /// Returns [`SchedulesError`] if the text is too long, or names a line that does not parse.
    pub fn with_schedules(mut self, text: &str) -> Result<CronJobSchedule, SchedulesError> {
        let lines = Lines::parse(text, self.named_zone().cloned())?;
        self.set_lines(lines);
        Ok(self)
    }

    /// The same schedule with the option `clock-change` (O-6). Apply it after the option `schedule`.
    #[must_use]
    pub fn with_clock_change(mut self, clock_change: ClockChange) -> CronJobSchedule {
        self.set_clock_change(clock_change);
        self
    }

    /// Takes the options of the namespace in addition to those of the CronJob.
    pub fn inherit(&mut self, namespace: Option<&NamespaceOptions>, hash: u64) {
        let has_defaults = namespace.is_some_and(NamespaceOptions::has_defaults);
        if self.options.is_some() || has_defaults {
            let options = self.options().within(namespace, self.parsed.as_ref().ok(), hash);
            self.set_options(options);
        }
    }

    fn set_options(&mut self, mut options: Options) {
        if options.clock_change != self.options().clock_change {
            self.set_clock_change(options.clock_change);
        }
        let is_moved = self.parsed.as_ref().is_ok_and(Schedule::follows_once);
        options.is_clock_change_idle = options.clock_change == ClockChange::Once && !is_moved;
        self.options = (options != Options::NONE).then(|| Box::new(options));
    }

    fn set_clock_change(&mut self, clock_change: ClockChange) {
        if let Ok(parsed) = &mut self.parsed {
            parsed.set_clock_change(clock_change);
        }
    }

    /// Takes the calendar that the option `not-on` names, or its problem.
    pub fn set_calendar(&mut self, found: Result<Arc<Calendar>, String>) {
        if let Some(options) = &mut self.options {
            options.set_calendar(found);
        }
    }

    /// The slots that the calendar of the CronJob excludes; `None` without a calendar that can be used.
    pub fn exclusion(&self) -> Option<Exclusion<'_>> {
        self.options.as_ref()?;
        Exclusion::of(self)
    }

    /// Whether the calendar of the CronJob excludes a slot.
    pub fn excludes(&self, slot: Timestamp) -> bool {
        self.exclusion().is_some_and(|exclusion| exclusion.excludes(slot))
    }

    /// The first slot after an instant that the calendar does not exclude. An interval counts from that instant.
    pub fn next_wanted(&self, instant: Timestamp) -> Option<Timestamp> {
        match self.exclusion() {
            Some(exclusion) => exclusion.next_after(instant),
            None => self.parsed.as_ref().ok()?.next_after(instant, &self.default_zone),
        }
    }

    /// The first slot from this one on that the calendar does not exclude.
    pub fn wanted_from(&self, slot: Timestamp) -> Option<Timestamp> {
        if self.excludes(slot) {
            self.next_wanted(slot)
        } else {
            Some(slot)
        }
    }

    /// The latest slot not after `until` that the calendar does not exclude, given that `due` is a slot.
    pub(crate) fn latest_wanted(&self, due: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let Some(exclusion) = self.exclusion() else {
            return Some(self.latest_between(due, until).unwrap_or(due));
        };
        let later = exclusion.last_slot(due, due, until);
        later.or_else(|| Some(due).filter(|due| !exclusion.excludes(*due)))
    }

    /// The latest slot after `since` and not after `until`.
    pub(crate) fn latest_between(&self, since: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let parsed = self.parsed.as_ref().ok()?;
        due::most_recent(parsed, &self.default_zone, since, until)
    }

    /// Forgets the offset of `spread`, for a CronJob without a uid.
    pub fn forget_offset(&mut self) {
        if let Some(options) = &mut self.options {
            options.offset_seconds = None;
        }
    }

    /// Whether the CronJob has any option, or an annotation that cannot be used.
    pub fn has_options(&self) -> bool {
        self.options.is_some()
    }

    /// The options of the CronJob.
    pub fn options(&self) -> &Options {
        static NONE: Options = Options::NONE;
        self.options.as_deref().unwrap_or(&NONE)
    }

    /// The instant at which a slot starts: later than the slot by the offset of `spread`.
    pub fn start_of(&self, slot: Timestamp) -> Timestamp {
        self.options
            .as_ref()
            .map_or(slot, |options| after(slot, options.offset()))
    }

    /// The latest slot that is due at `now`, by [`start_of`](CronJobSchedule::start_of).
    pub fn slots_until(&self, now: Timestamp) -> Timestamp {
        self.options
            .as_ref()
            .map_or(now, |options| after(now, -options.offset()))
    }

    /// Whether slots have seconds, so that several of them may be in one minute (O-5.5).
    pub fn has_seconds(&self) -> bool {
        self.parsed.as_ref().is_ok_and(Schedule::has_seconds)
    }

    /// The first activation after `now`. `anchor` starts the chain of `@every`. `None` if the schedule or its zone is
    /// invalid, or if nothing matches.
    pub fn next_run(&self, anchor: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let has_zone = !matches!(self.zone, Some(Err(_)));
        let schedule = self.parsed.as_ref().ok().filter(|_| has_zone)?;
        if let Some(exclusion) = self.exclusion() {
            return exclusion.next_in_chain(anchor, now);
        }
        if schedule.is_every() {
            due::next_in_chain(schedule, &self.default_zone, anchor, now)
        } else {
            schedule.next_after(now, &self.default_zone)
        }
    }

    /// Whether the text itself names a zone, which Kubernetes does not support (B-7.1).
    pub fn names_zone_in_text(&self) -> bool {
        self.text.contains("TZ")
    }

    /// The zone of the activations: that in the text, otherwise `spec.timeZone`, otherwise the default (B-7.1). A text
    /// with the zone `Local` means the default, regardless of the field; an interval has no zone.
    pub fn effective_zone(&self) -> &Zone {
        self.named_zone().unwrap_or(&self.default_zone)
    }

    /// The zone of the activations, if it is not the default.
    fn named_zone(&self) -> Option<&Zone> {
        let parsed = self.parsed.as_ref().ok();
        let in_text = parsed.and_then(Schedule::zone);
        let is_local = self.names_zone_in_text() && parsed.is_some_and(|parsed| !parsed.is_every());
        let in_field = self.zone.as_ref().and_then(|zone| zone.as_ref().ok());
        in_text.or(in_field.filter(|_| !is_local))
    }

    /// Whether the user changed the schedule, its zone or an option that changes its activations, by the rule of B-2.1.
    pub fn differs_from(&self, other: &CronJobSchedule) -> bool {
        self.text != other.text || self.time_zone != other.time_zone || self.parsed != other.parsed
    }
}

/// A value of the option `schedule` that a message recommends instead of one that is invalid; `None` for its example.
fn recommended(text: &str, may_have_seconds: bool) -> Option<String> {
    let with_second = lines_with_second(text).filter(|lines| lines.len() <= RECOMMENDED_MAX_BYTES);
    let is_valid =
        |lines: &String| Lines::parse(lines, None).is_ok_and(|lines| may_have_seconds || !lines.has_seconds());
    let without_seconds = || (!may_have_seconds).then(|| EXAMPLE_WITHOUT_SECONDS.to_owned());
    with_second.filter(is_valid).or_else(without_seconds)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(SCHEDULE_MAX_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str, time_zone: Option<&str>) -> CronJobSchedule {
        CronJobSchedule::new(text, time_zone, &Zone::utc())
    }

    #[test]
    fn a_schedule_of_more_than_4096_bytes_is_rejected_b_7_3() {
        let longest = "0".to_owned() + &",59".repeat(1_362) + "  * * * *";
        for (text, is_parsed) in [
            (longest.clone() + " ", false),
            ("0,".repeat(10_000) + "0 0 * * *", false),
            (" ".repeat(1 << 20), false),
            ("ö".repeat(1 << 19), false),
            ("@every ".to_owned() + &"1ns".repeat(1 << 18), false),
            (longest, true),
        ] {
            for zone in [None, Some("Europe/Berlin")] {
                let schedule = new(&text, zone);
                assert_eq!(schedule.parsed.is_ok(), is_parsed, "{} bytes", text.len());
                assert!(schedule.text.len() <= SCHEDULE_MAX_BYTES);
                let is_reported = schedule.parsed.is_err_and(|error| error.0 == "longer than 4096 bytes");
                assert_eq!(is_reported, !is_parsed, "{} bytes", text.len());
            }
        }
    }

    #[test]
    fn a_long_time_zone_is_unknown_and_truncated() {
        let schedule = new("* * * * *", Some(&"Europe/Berlin".repeat(80_000)));
        let kept = schedule.time_zone.unwrap().len();
        let Some(Err(error)) = schedule.zone else {
            panic!("there is no such zone")
        };
        assert!(kept <= SCHEDULE_MAX_BYTES && error.0.len() <= SCHEDULE_MAX_BYTES);
    }

    #[test]
    fn a_schedule_that_lists_every_value_is_accepted() {
        let list =
            |values: std::ops::RangeInclusive<u8>| values.map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        let names = "jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec sun,mon,tue,wed,thu,fri,sat";
        let text = format!("{} {} {} {names}", list(0..=59), list(0..=23), list(1..=31));
        assert!(new(&text, None).parsed.is_ok());
        assert!(text.len() * 10 <= SCHEDULE_MAX_BYTES, "{} bytes", text.len());
    }

    #[test]
    fn a_period_below_one_second_is_one_second() {
        let parsed = new("@every 1ns", None).parsed.unwrap();
        assert_eq!(parsed.period_seconds(), Some(1));
    }
}

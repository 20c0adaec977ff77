//! The end of a freeze (O-7.2): which of the slots before it start then, by the rules of the controller.

use std::iter::successors;

use jiff::Timestamp;

use super::{
    ConcurrencyPolicy, CronJobSchedule, due, just_before,
    options::{CatchUp, is_without_end},
    policy::{self, Decision, Facts, count_between},
};

/// From here on, the number of slots is an estimate ([`count_between`]).
const N_COUNTED: u64 = 100;

/// What determines the slots that a freeze holds back.
#[derive(Clone, Copy, Debug)]
pub struct FrozenCronJob<'a> {
    /// The effective schedule, with the options of the CronJob.
    pub schedule: &'a CronJobSchedule,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `status.lastScheduleTime`.
    pub last_schedule_time: Option<Timestamp>,
    /// `spec.startingDeadlineSeconds`.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// The end of the freeze: the first instant at which a slot may start.
    pub until: Timestamp,
}

/// The end of a freeze, for one CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thaw {
    /// The end of the freeze.
    pub until: Timestamp,
    /// The number of slots before the end that are still to come. From a hundred on, an estimate.
    pub n_held_back: u64,
    /// The slots before the end that start then, the oldest first. Under Forbid, one after the other.
    pub starts: Vec<Timestamp>,
}

impl FrozenCronJob<'_> {
    /// The slots that start at the end because it comes.
    pub fn starts(&self) -> Vec<Timestamp> {
        let Some(first) = self.first_start() else {
            return Vec::new();
        };
        let options = self.schedule.options();
        // Replace starts only the latest one.
        let is_all = matches!(options.on_resume(), CatchUp::All(_));
        let is_one = !is_all || self.concurrency_policy == ConcurrencyPolicy::Replace;
        let slots = successors(Some(first), |slot| self.schedule.next_wanted(*slot));
        let slots = slots.take_while(|slot| self.is_held_back(*slot));
        slots.take(if is_one { 1 } else { usize::MAX }).collect()
    }

    /// The first slot that starts at the end, if it is one that the freeze held back.
    fn first_start(&self) -> Option<Timestamp> {
        let facts = Facts {
            schedule: self.schedule,
            is_deleting: false,
            is_suspended: false,
            created: self.created,
            last_schedule_time: self.last_schedule_time,
            starting_deadline_seconds: self.starting_deadline_seconds,
            concurrency_policy: self.concurrency_policy,
            n_active_jobs: 0,
            is_active_slot: &|_| false,
            schedule_changed: None,
            frozen_until: Some(self.until),
            resumed: Some(last_frozen(self.until)),
            busy_since: None,
            armed: None,
            was_awaited: false,
        };
        match policy::decide(&facts, self.until).decision {
            Decision::Start { slot, .. } => Some(slot).filter(|slot| self.is_held_back(*slot)),
            Decision::Skip(_) => None,
        }
    }

    fn is_held_back(&self, slot: Timestamp) -> bool {
        self.schedule.start_of(slot) < self.until
    }

    /// The first slot that the freeze does not hold back.
    pub fn next_run(&self) -> Option<Timestamp> {
        let since = self.last_schedule_time.unwrap_or(self.created);
        let last = self.schedule.slots_until(last_frozen(self.until));
        self.schedule.next_run(since, last)
    }

    /// The end of the freeze, as it is to be expected at `now`.
    pub fn thaw(&self, now: Timestamp) -> Thaw {
        Thaw {
            until: self.until,
            n_held_back: self.n_held_back(now),
            starts: self.starts(),
        }
    }

    fn n_held_back(&self, now: Timestamp) -> u64 {
        let Ok(parsed) = &self.schedule.parsed else { return 0 };
        let since = self.last_schedule_time.unwrap_or(self.created);
        let (now, end) = (self.schedule.slots_until(now), self.schedule.slots_until(self.until));
        // An interval counts from its last slot.
        let last = due::most_recent(parsed, &self.schedule.default_zone, since, now);
        let base = last.unwrap_or(now).max(since);
        let n_excluded = self.schedule.exclusion().map_or(0, |days| days.count(since, base, end));
        count_between(self.schedule, base, end).saturating_sub(n_excluded)
    }
}

/// The last instant of a freeze, for the comparison with slots: one that starts at its end was not held back.
pub(crate) fn last_frozen(until: Timestamp) -> Timestamp {
    just_before(until)
}

impl Thaw {
    /// What happens to the slots before the end, without its time. `None` if there are none.
    pub fn sentence(&self) -> Option<String> {
        if is_without_end(self.until) {
            return Some("nothing starts before the namespace is thawed".to_owned());
        }
        let about = if self.n_held_back < N_COUNTED { "" } else { "about " };
        let held_back = match self.n_held_back {
            0 => None,
            1 => Some("1 run before it does not start at its time".to_owned()),
            n => Some(format!("{about}{n} runs before it do not start at their times")),
        };
        let starts = match self.starts.len() {
            0 => None,
            1 => Some("the latest run before it starts then".to_owned()),
            n => Some(format!("the last {n} runs before it start then")),
        };
        match (held_back, starts) {
            (None, None) => None,
            (Some(held_back), None) => Some(format!("{held_back}, and not then either")),
            (None, Some(starts)) => Some(starts),
            (Some(held_back), Some(starts)) => Some(format!("{held_back}; {starts}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ConcurrencyPolicy::{Allow, Forbid, Replace},
        *,
    };
    use crate::schedule::Zone;

    fn at(text: &str) -> Timestamp {
        format!("2026-05-05T{text}:00Z").parse().unwrap()
    }

    /// A CronJob of this schedule that ran last at 06:00, in a freeze until this instant.
    fn thaw(text: &str, options: &[(&str, &str)], policy: ConcurrencyPolicy, until: &str) -> (u64, Vec<String>) {
        let (zone, hash) = (Zone::utc(), u64::MAX / 2 + 1);
        let get = |name: &str| {
            let named = |(option, _): &&(&str, &str)| name.strip_prefix("cronwheel.dev/") == Some(option);
            options.iter().find(named).map(|(_, value)| *value)
        };
        let schedule = CronJobSchedule::new(text, None, &zone).with_options("hello", get, hash);
        let has_deadline = options.iter().any(|(name, _)| *name == "deadline");
        let frozen = FrozenCronJob {
            schedule: &schedule,
            created: at("01:00"),
            last_schedule_time: Some(at("06:00")),
            starting_deadline_seconds: has_deadline.then_some(7_200),
            concurrency_policy: policy,
            until: at(until),
        };
        // It is 09:10.
        let thaw = frozen.thaw(at("09:10"));
        let starts = thaw.starts.iter().map(|slot| slot.strftime("%H:%M").to_string());
        (thaw.n_held_back, starts.collect())
    }

    #[test]
    fn the_option_determines_what_starts_at_the_end_of_a_freeze_o_7_2() {
        for (text, options, policy, until, expected) in [
            ("0 * * * *", &[][..], Allow, "12:30", (3, &["12:00"][..])),
            (
                "0 * * * *",
                &[("on-resume", "latest")],
                Forbid,
                "12:30",
                (3, &["12:00"]),
            ),
            ("0 * * * *", &[("on-resume", "skip")], Allow, "12:30", (3, &[])),
            ("0 * * * *", &[("missed-runs", "skip")], Allow, "12:30", (3, &[])),
            (
                "0 * * * *",
                &[("missed-runs", "skip"), ("on-resume", "latest")],
                Allow,
                "12:30",
                (3, &["12:00"]),
            ),
            (
                "0 * * * *",
                &[("missed-runs", "all 2")],
                Allow,
                "12:30",
                (3, &["11:00", "12:00"]),
            ),
            (
                "0 * * * *",
                &[("on-resume", "all")],
                Forbid,
                "10:30",
                (1, &["07:00", "08:00", "09:00", "10:00"]),
            ),
            ("0 * * * *", &[("on-resume", "all")], Replace, "10:30", (1, &["10:00"])),
            ("0 * * * *", &[], Allow, "09:50", (0, &["09:00"])),
            // The slot at the end is not held back, and takes the place of the latest one before it.
            ("0 * * * *", &[], Allow, "12:00", (2, &[])),
            (
                "0 * * * *",
                &[("on-resume", "all 2")],
                Allow,
                "12:00",
                (2, &["10:00", "11:00"]),
            ),
            // A starting deadline of two hours.
            (
                "0 * * * *",
                &[("on-resume", "all"), ("deadline", "")],
                Allow,
                "12:30",
                (3, &["11:00", "12:00"]),
            ),
            ("0 7 * * *", &[("deadline", "")], Allow, "12:30", (0, &[])),
            // With an offset of five minutes, 12:00 would start at 12:05.
            ("0 * * * *", &[("spread", "10m")], Allow, "12:05", (2, &[])),
            ("0 * * * *", &[("spread", "10m")], Allow, "12:04", (2, &["11:00"])),
            ("@every 50m", &[], Allow, "12:30", (4, &["11:50"])),
            (
                "* * * * *",
                &[("on-resume", "all 1")],
                Allow,
                "23:10",
                (839, &["23:09"]),
            ),
            ("0 0 30 2 *", &[], Allow, "12:30", (0, &[])),
            ("nonsense", &[], Allow, "12:30", (0, &[])),
        ] {
            let starts = expected.1.iter().map(|slot| (*slot).to_owned()).collect();
            assert_eq!(
                thaw(text, options, policy, until),
                (expected.0, starts),
                "{text} {options:?} {policy:?} until {until}"
            );
        }
    }

    #[test]
    fn the_sentence_names_what_starts() {
        for (n_held_back, n_starts, expected) in [
            (0, 0, None),
            (
                1,
                0,
                Some("1 run before it does not start at its time, and not then either"),
            ),
            (
                2,
                1,
                Some("2 runs before it do not start at their times; the latest run before it starts then"),
            ),
            (0, 1, Some("the latest run before it starts then")),
            (
                839,
                3,
                Some("about 839 runs before it do not start at their times; the last 3 runs before it start then"),
            ),
        ] {
            let thaw = Thaw {
                until: at("12:00"),
                n_held_back,
                starts: vec![at("11:00"); n_starts],
            };
            assert_eq!(thaw.sentence().as_deref(), expected);
        }
    }

    #[test]
    fn a_freeze_without_an_end_names_no_run() {
        let schedule = CronJobSchedule::new("* * * * *", None, &Zone::utc());
        let frozen = FrozenCronJob {
            schedule: &schedule,
            created: at("06:00"),
            last_schedule_time: None,
            starting_deadline_seconds: None,
            concurrency_policy: Allow,
            until: crate::schedule::options::freeze_end("9999-12-31T23:59:59Z").unwrap(),
        };
        let sentence = frozen.thaw(at("07:00")).sentence();
        assert_eq!(sentence.unwrap(), "nothing starts before the namespace is thawed");
    }
}

//! Options in plain words.

use super::{CatchUp, MISSED_AFTER, NamedCalendar, NotOn, Options};
use crate::schedule::{ClockChange, ConcurrencyPolicy};

impl Options {
    /// What each option changes, as one sentence.
    pub fn sentences(&self, policy: ConcurrencyPolicy) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.has_schedules {
            sentences
                .push("schedule: replaces spec.schedule, which is what the built-in controller would run".to_owned());
        }
        if let Some(window) = self.spread_seconds {
            let window = duration_text(window);
            sentences.push(match self.offset_seconds {
                Some(offset) => format!(
                    "spread: starts {} after each slot, in a window of {window}",
                    duration_text(offset)
                ),
                None => format!("spread: starts less than {window} after each slot; the uid determines when"),
            });
        }
        if self.missed_runs != CatchUp::Latest {
            sentences.push(format!(
                "missed-runs: {}",
                rule_text(self.missed_runs, "missed", policy)
            ));
        }
        if let Some(rule) = self.on_resume {
            sentences.push(format!("on-resume: {}", rule_text(rule, "held back", policy)));
        }
        if self.clock_change == ClockChange::Once {
            let effect = if self.is_clock_change_idle {
                "once changes nothing, because the schedule has all hours or is an interval"
            } else {
                "a time that a clock change skips starts at the end of the gap, and a repeated one once"
            };
            sentences.push(format!("clock-change: {effect}"));
        }
        if self.passes_scheduled_time {
            sentences.push("pass-scheduled-time: the Pods get the time of the slot as an annotation".to_owned());
        }
        sentences.extend(self.not_on.as_ref().and_then(not_on_text));
        if let Some(token) = &self.run_now {
            sentences.push(format!(
                "run-now: the token {token} asks for one run beside the schedule, once"
            ));
        }
        if self.counts_manual_jobs {
            sentences.push(format!("manual-jobs: {}", manual_jobs_text(policy)));
        }
        sentences
    }
}

fn not_on_text(NotOn { name, calendar }: &NotOn) -> Option<String> {
    let dates = match calendar {
        NamedCalendar::Unknown => ", which was not read",
        NamedCalendar::Known(calendar) if calendar.stretches().is_empty() => ", which has none",
        NamedCalendar::Known(_) => "",
        NamedCalendar::Unusable => return None,
    };
    Some(format!(
        "not-on: nothing starts on the dates of the ConfigMap {name}{dates}"
    ))
}

fn manual_jobs_text(policy: ConcurrencyPolicy) -> &'static str {
    match policy {
        ConcurrencyPolicy::Allow => {
            "Jobs that others create for the CronJob are active; concurrencyPolicy is Allow, so they hold nothing back"
        }
        ConcurrencyPolicy::Forbid => "Jobs that others create for the CronJob hold its slots back while they run",
        ConcurrencyPolicy::Replace => "Jobs that others create for the CronJob are deleted when its next slot starts",
    }
}

fn rule_text(rule: CatchUp, held: &str, policy: ConcurrencyPolicy) -> String {
    match rule {
        CatchUp::Latest => format!("the latest slot that was {held} starts"),
        CatchUp::Skip if held == "missed" => {
            let seconds = MISSED_AFTER.as_secs();
            format!("a slot that has not started {seconds} s after its time does not start")
        }
        CatchUp::Skip => format!("no slot that was {held} starts"),
        CatchUp::All(count) => {
            let order = match policy {
                ConcurrencyPolicy::Allow => ", the oldest first",
                ConcurrencyPolicy::Forbid => ", the oldest first, one after the other",
                ConcurrencyPolicy::Replace => {
                    return format!("concurrencyPolicy is Replace: only the latest slot that was {held} starts");
                }
            };
            format!("the last {count} slots that were {held} start{order}")
        }
    }
}

/// A number of seconds such as `1h 5m`.
fn duration_text(seconds: u32) -> String {
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let text: Vec<String> = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schedule::options::Calendar;

    #[test]
    fn each_option_is_one_sentence() {
        let options = Options {
            spread_seconds: Some(5400),
            offset_seconds: Some(61),
            missed_runs: CatchUp::All(10),
            on_resume: Some(CatchUp::Skip),
            passes_scheduled_time: true,
            run_now: Some("t1".into()),
            counts_manual_jobs: true,
            ..Options::NONE
        };
        assert_eq!(
            options.sentences(ConcurrencyPolicy::Forbid),
            [
                "spread: starts 1m 1s after each slot, in a window of 1h 30m",
                "missed-runs: the last 10 slots that were missed start, the oldest first, one after the other",
                "on-resume: no slot that was held back starts",
                "pass-scheduled-time: the Pods get the time of the slot as an annotation",
                "run-now: the token t1 asks for one run beside the schedule, once",
                "manual-jobs: Jobs that others create for the CronJob hold its slots back while they run",
            ]
        );
        assert_eq!(Options::NONE.sentences(ConcurrencyPolicy::Allow), [""; 0]);
    }

    #[test]
    fn a_calendar_without_dates_is_told() {
        let not_on = |text: &str| {
            let calendar = Calendar::read([("dates", text)].into_iter()).unwrap();
            not_on_text(&NotOn {
                name: "holidays".into(),
                calendar: NamedCalendar::Known(Arc::new(calendar)),
            })
        };
        let expected = "not-on: nothing starts on the dates of the ConfigMap holidays";
        assert_eq!(not_on("2026-12-24").as_deref(), Some(expected));
        assert_eq!(not_on("# none yet"), Some(format!("{expected}, which has none")));
    }

    #[test]
    fn a_rule_is_told_with_its_policy() {
        for (rule, policy, expected) in [
            (
                CatchUp::Skip,
                ConcurrencyPolicy::Allow,
                "a slot that has not started 60 s after its time does not start",
            ),
            (
                CatchUp::All(3),
                ConcurrencyPolicy::Allow,
                "the last 3 slots that were missed start, the oldest first",
            ),
            (
                CatchUp::All(3),
                ConcurrencyPolicy::Replace,
                "concurrencyPolicy is Replace: only the latest slot that was missed starts",
            ),
        ] {
            assert_eq!(rule_text(rule, "missed", policy), expected);
        }
    }
}

//! Annotations whose values cannot be used, with a valid value for the same CronJob.

use super::{OptionName, kept};

/// An annotation whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {}{} is {value:?}: {problem}{}; the CronJob runs as without it",
    .option.annotation(), if *.is_of_namespace { " of the namespace" } else { "" }, advice(.example)
)]
pub struct InvalidOption {
    /// The option.
    pub option: OptionName,
    /// Whether the annotation is that of the namespace.
    pub is_of_namespace: bool,
    /// The value, truncated.
    pub value: Box<str>,
    /// The problem.
    pub problem: Box<str>,
    /// A valid value for the CronJob; empty if the problem has its own advice.
    example: Box<str>,
}

fn advice(example: &str) -> String {
    if example.is_empty() {
        String::new()
    } else {
        format!("; a valid value is {example:?}")
    }
}

impl InvalidOption {
    /// A valid value for the CronJob; empty if the problem has its own advice.
    pub fn recommended(&self) -> &str {
        &self.example
    }

    pub(super) fn new(
        option: OptionName,
        is_of_namespace: bool,
        value: &str,
        problem: impl Into<ValueProblem>,
    ) -> InvalidOption {
        let ValueProblem { text, example } = problem.into();
        // The problems of `not-on` say what to do.
        let of_option = || {
            if option == OptionName::NotOn {
                ""
            } else {
                option.example()
            }
        };
        InvalidOption {
            option,
            is_of_namespace,
            value: kept(value),
            problem: text.into(),
            example: example.map_or_else(|| of_option().into(), Into::into),
        }
    }
}

/// Why a value cannot be used.
#[derive(Debug)]
pub(in crate::schedule) struct ValueProblem {
    pub(in crate::schedule) text: String,
    /// A valid value, if the example of the option may not fit the CronJob.
    pub(in crate::schedule) example: Option<String>,
}

impl From<String> for ValueProblem {
    fn from(text: String) -> ValueProblem {
        ValueProblem { text, example: None }
    }
}

impl From<&str> for ValueProblem {
    fn from(text: &str) -> ValueProblem {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::{CronJobSchedule, Zone};

    #[test]
    fn the_value_that_a_message_recommends_fits_the_cron_job() {
        let longest = "a".repeat(52);
        for (name, schedule, option, value, recommended) in [
            ("hello", "*/10 * * * *", "spread", "20m", "5m"),
            ("hello", "*/10 * * * *", "spread", "ten", "5m"),
            ("hello", "*/15 * * * *", "spread", "20m", "10m"),
            ("hello", "* * * * *", "spread", "10m", "30s"),
            ("hello", "@every 3m", "spread", "10m", "1m30s"),
            ("hello", "@every 1s", "spread", "10m", "none"),
            ("hello", "0 0 30 2 *", "spread", "25h", "10m"),
            ("hello", "0 * * * *", "schedule", "often", "*/15 * 8-18 * * Mon-Fri"),
            (
                "hello",
                "0 * * * *",
                "schedule",
                "*/15 8-18 * * 1-5",
                "0 */15 8-18 * * Mon-Fri",
            ),
            (
                "hello",
                "0 * * * *",
                "schedule",
                "0 3 * * *\n30 0 4 * * *",
                "0 0 3 * * *\n30 0 4 * * *",
            ),
            (&longest, "0 * * * *", "schedule", "0 3 * * *", "0 0 3 * * *"),
            (
                &longest,
                "0 * * * *",
                "schedule",
                "0 3 * * *\n30 0 4 * * *",
                "0 */15 8-18 * * Mon-Fri",
            ),
            (
                &longest,
                "0 * * * *",
                "schedule",
                "*/20 * * * * *",
                "0 */15 8-18 * * Mon-Fri",
            ),
            (&longest, "0 * * * *", "schedule", "often", "0 */15 8-18 * * Mon-Fri"),
        ] {
            let invalid = |value: &str| {
                let annotation = format!("cronwheel.dev/{option}");
                let get = |name: &str| (name == annotation).then_some(value);
                let schedule = CronJobSchedule::new(schedule, None, &Zone::utc()).with_options(name, get, 0);
                let invalid = schedule.options().invalid.iter();
                invalid.map(ToString::to_string).collect::<Vec<_>>()
            };
            let messages = invalid(value);
            let expected = format!("; a valid value is {recommended:?}; the CronJob runs as without it");
            assert!(
                messages.len() == 1 && messages[0].ends_with(&expected),
                "{messages:?}: {expected}"
            );
            assert_eq!(invalid(recommended), [""; 0], "{schedule}");
        }
    }
}

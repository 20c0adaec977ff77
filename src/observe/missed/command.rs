//! The shell command that starts slots again.

use jiff::Timestamp;

use crate::observe::{view::CronJobName, words::shell_word};

/// `cronwheel backfill` with the flags by which a command finds its cluster and reads its schedules.
#[derive(Clone, Debug, Default)]
pub struct BackfillCommand {
    /// The flags, each with its value.
    flags: Vec<(&'static str, String)>,
}

/// The slots that a command starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meant {
    /// The first slot.
    pub from: Timestamp,
    /// The last slot.
    pub to: Timestamp,
    /// Whether slots start of which nothing is known.
    pub has_unknown: bool,
}

impl BackfillCommand {
    /// Adds a flag.
    #[must_use]
    pub fn with(mut self, flag: &'static str, value: String) -> BackfillCommand {
        self.flags.push((flag, value));
        self
    }

    /// The command line.
    pub fn line(&self, cron_job: &CronJobName, slots: Meant) -> String {
        self.words(cron_job, slots).join(" ")
    }

    /// The words of the command line. A flag and its value are one word, so that no line breaks between them.
    pub fn words(&self, cron_job: &CronJobName, slots: Meant) -> Vec<String> {
        let (name, namespace) = (shell_word(&cron_job.name), shell_word(&cron_job.namespace));
        let mut words = vec!["cronwheel".to_owned(), "backfill".to_owned(), name];
        words.push(format!("-n {namespace}"));
        words.push(format!("--from {}", slots.from));
        words.push(format!("--to {}", slots.to));
        words.extend(slots.has_unknown.then(|| "--include-unknown".to_owned()));
        let flags = self.flags.iter();
        words.extend(flags.map(|(flag, value)| format!("{flag}={}", shell_word(value))));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_cluster_and_quotes_what_is_no_name() {
        let cron_job = CronJobName {
            namespace: "shop".into(),
            name: "a';reboot".into(),
        };
        let slots = Meant {
            from: "2026-11-27T02:00:00Z".parse().unwrap(),
            to: "2026-11-27T03:00:00Z".parse().unwrap(),
            has_unknown: true,
        };
        let command = BackfillCommand::default().with("--context", "it's prod".to_owned());
        assert_eq!(
            command.line(&cron_job, slots),
            r"cronwheel backfill 'a'\'';reboot' -n shop --from 2026-11-27T02:00:00Z --to 2026-11-27T03:00:00Z --include-unknown --context='it'\''s prod'"
        );
    }
}

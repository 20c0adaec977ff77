//! The shell command that starts slots again.

use std::fmt::Write as _;

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
        let (name, namespace) = (shell_word(&cron_job.name), shell_word(&cron_job.namespace));
        let mut line = format!(
            "cronwheel backfill {name} -n {namespace} --from {} --to {}",
            slots.from, slots.to
        );
        if slots.has_unknown {
            line += " --include-unknown";
        }
        for (flag, value) in &self.flags {
            let _ = write!(line, " {flag}={}", shell_word(value));
        }
        line
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

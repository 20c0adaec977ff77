//! Reads the files of credentials and the CA again, so that replacing them needs no restart.
//!
//! It never holds a request up: requests take what the last reading found.

use std::time::Duration;

use super::{
    Shell,
    clock::Clock,
    shutdown::{Phase, PhaseReceiver},
    tasks::Task,
};
use crate::{
    kube_api::http::{ApiServer, CredentialFileError, Refreshed},
    shard::BootInstant,
};

/// How often it reads. A forced rotation ends the old token at once, and a replica keeps its Leases for no more than
/// seconds without a renewal; users may rely on new files within a minute.
const INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two warnings about the same files.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// See the module.
pub(super) struct CredentialTask {
    server: ApiServer,
    clock: Clock,
    phase: PhaseReceiver,
}

impl Shell {
    /// Nothing where no file is to be read again.
    pub(super) fn spawn_credentials(&self) -> Option<Task> {
        let server = self.api_server.clone().filter(ApiServer::has_files)?;
        let task = CredentialTask {
            server,
            clock: self.clock.clone(),
            phase: self.phases.subscribe(),
        };
        // Until the last request was sent.
        Some(self.start("credentials", Phase::End, task.run()))
    }
}

impl CredentialTask {
    /// Works until everything ends.
    async fn run(self) {
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::End) => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        let (mut token, mut certificates) = (FileLog::default(), FileLog::default());
        loop {
            tokio::time::sleep(INTERVAL).await;
            let line = token.line(self.server.refresh_token().await, self.clock.boot());
            line.write("token");
            let line = certificates.line(self.server.refresh_certificates().await, self.clock.boot());
            line.write("certificates");
        }
    }
}

/// What the log has about some files.
#[derive(Debug, Default)]
struct FileLog {
    /// Readings in a row that failed.
    n_failed: u64,
    /// The last warning; none once the files are good.
    warned_at: Option<BootInstant>,
    /// No warning before this.
    warning_due: Option<BootInstant>,
}

/// What a reading adds to the log.
#[derive(Debug)]
enum Line {
    Nothing,
    Changed,
    UsableAgain,
    Unusable { error: CredentialFileError, n_failed: u64 },
}

impl FileLog {
    /// Files that are replaced one after the other do not fit for a moment, so one reading that fails is no fault.
    fn line(&mut self, result: Result<Refreshed, CredentialFileError>, now: BootInstant) -> Line {
        match result {
            Ok(refreshed) => {
                self.n_failed = 0;
                match (self.warned_at.take(), refreshed) {
                    (_, Refreshed::Changed) => Line::Changed,
                    (Some(_), Refreshed::Same) => Line::UsableAgain,
                    (None, Refreshed::Same) => Line::Nothing,
                }
            }
            Err(error) => {
                self.n_failed += 1;
                if self.n_failed < 2 || self.warning_due.is_some_and(|due| now < due) {
                    return Line::Nothing;
                }
                self.warned_at = Some(now);
                self.warning_due = Some(now + WARNING_INTERVAL);
                let n_failed = self.n_failed;
                Line::Unusable { error, n_failed }
            }
        }
    }
}

impl Line {
    fn write(self, files: &'static str) {
        match self {
            Line::Nothing => {}
            Line::Changed => tracing::info!(files, "credentials have changed: requests use the new ones"),
            Line::UsableAgain => tracing::info!(files, "the files of credentials can be used again"),
            Line::Unusable { error, n_failed } => tracing::warn!(
                files,
                n_failed,
                error = &error as &dyn std::error::Error,
                "files of credentials cannot be used: requests use what they held before"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unusable() -> Result<Refreshed, CredentialFileError> {
        let path = "/etc/cronwheel/ca.crt".to_owned();
        Err(CredentialFileError::NoAuthority { path })
    }

    #[test]
    fn a_fault_is_reported_at_its_second_reading_and_once_a_minute() {
        let mut log = FileLog::default();
        let mut kind = |seconds, result| {
            let now = BootInstant::after_boot(Duration::from_secs(seconds));
            match log.line(result, now) {
                Line::Nothing => "",
                Line::Changed => "changed",
                Line::UsableAgain => "usable again",
                Line::Unusable { .. } => "unusable",
            }
        };
        assert_eq!(kind(1, Ok(Refreshed::Same)), "");
        assert_eq!(kind(2, Ok(Refreshed::Changed)), "changed");
        assert_eq!(kind(3, unusable()), "");
        assert_eq!(kind(4, Ok(Refreshed::Changed)), "changed", "one moment is no fault");
        assert_eq!(kind(5, unusable()), "");
        assert_eq!(kind(6, unusable()), "unusable");
        assert_eq!(kind(7, unusable()), "");
        assert_eq!(kind(65, unusable()), "");
        assert_eq!(kind(66, unusable()), "unusable");
        assert_eq!(kind(67, Ok(Refreshed::Same)), "usable again");
        assert_eq!(kind(68, Ok(Refreshed::Same)), "");
        assert_eq!(kind(69, unusable()), "");
        assert_eq!(kind(70, unusable()), "", "at most once a minute, also after a repair");
        assert_eq!(kind(126, unusable()), "unusable");
    }
}

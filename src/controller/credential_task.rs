//! Reads the credential and CA files again, so that replacing them needs no restart.
//!
//! The task never delays a request: requests use the result of the last successful read.

use std::time::Duration;

use super::{Session, clock::Clock, shutdown::Phase, tasks::Task};
use crate::{
    kube_api::http::{ApiServer, CredentialFileError, Refreshed},
    shard::BootInstant,
};

/// Interval between reads. A forced rotation invalidates the old token at once, and a replica holds its Leases only for
/// seconds without a renewal. Users can rely on new files within a minute.
const INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval between two warnings about the same files.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// The task that reads credential files again.
pub(super) struct CredentialTask {
    server: ApiServer,
    clock: Clock,
}

impl Session {
    /// Returns `None` if the configuration names no files to read again.
    pub(super) fn spawn_credentials(&self) -> Option<Task> {
        let server = self.api_server.clone().filter(ApiServer::has_files)?;
        let task = CredentialTask {
            server,
            clock: self.clock.clone(),
        };
        // Runs until the last request was sent.
        Some(self.start_until("credentials", Phase::End, task.run()))
    }
}

impl CredentialTask {
    /// Never returns.
    async fn run(self) {
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

/// Log state of one group of files.
#[derive(Debug, Default)]
struct FileLog {
    /// Number of consecutive failed reads.
    n_failed: u64,
    /// Time of the last warning; `None` once the files are usable.
    warned_at: Option<BootInstant>,
    /// Earliest time of the next warning.
    warning_due: Option<BootInstant>,
}

/// Log line for one read.
#[derive(Debug)]
enum Line {
    Nothing,
    Changed,
    UsableAgain,
    Unusable { error: CredentialFileError, n_failed: u64 },
}

impl FileLog {
    /// A single failed read is not a fault: files that are replaced in sequence do not match for an instant.
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
            Line::Changed => tracing::info!(files, "credentials changed: requests use the new ones"),
            Line::UsableAgain => tracing::info!(files, "credential files are usable again"),
            Line::Unusable { error, n_failed } => tracing::warn!(
                files,
                n_failed,
                error = &error as &dyn std::error::Error,
                "credential files are unusable: requests use their former contents"
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
    fn a_credential_fault_is_reported_at_its_second_reading() {
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

//! Reads the credential and CA files again, so that replacing them needs no restart.
//!
//! The task never delays a request: requests use the result of the last successful read.

use std::time::Duration;

use super::clock::Clock;
use crate::{
    kube_api::{
        http::{ApiServer, CredentialFileError, Refreshed},
        objects::classify::error_text,
    },
    shard::BootInstant,
};

/// Interval between reads. A forced rotation invalidates the old token at once, and a replica holds its Leases only for
/// seconds without a renewal. The documentation promises this interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval between two warnings about the same files.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// A single failed read is not a fault: files that are replaced in sequence do not match for an instant.
const FAULT_MIN: u64 = 2;

/// The task that reads credential files again.
pub(super) struct CredentialTask {
    pub(super) server: ApiServer,
    pub(super) clock: Clock,
}

impl CredentialTask {
    /// Never returns.
    pub(super) async fn run(self) {
        let (mut token, mut certificates) = (FileLog::default(), FileLog::default());
        loop {
            tokio::time::sleep(INTERVAL).await;
            let read = self.server.refresh_token().await;
            token.report("token", read, self.clock.boot());
            let read = self.server.refresh_certificates().await;
            certificates.report("certificates", read, self.clock.boot());
        }
    }
}

/// Log state of one group of files.
#[derive(Debug, Default)]
struct FileLog {
    /// Number of consecutive failed reads.
    n_failed: u64,
    /// Time of the last warning.
    warned_at: Option<BootInstant>,
    /// Whether the last warning is about the present fault.
    is_reported: bool,
}

impl FileLog {
    /// Logs the result of a read.
    fn report(&mut self, files: &'static str, result: Result<Refreshed, CredentialFileError>, now: BootInstant) {
        match result {
            Ok(refreshed) => {
                self.n_failed = 0;
                let was_reported = std::mem::take(&mut self.is_reported);
                match refreshed {
                    Refreshed::Changed => tracing::info!(files, "credentials changed: requests use the new ones"),
                    Refreshed::Same if was_reported => tracing::info!(files, "credential files are usable again"),
                    Refreshed::Same => {}
                }
            }
            Err(error) => {
                self.n_failed += 1;
                let is_due = self.warned_at.is_none_or(|at| now.since(at) >= WARNING_INTERVAL);
                if self.n_failed >= FAULT_MIN && is_due {
                    self.warned_at = Some(now);
                    self.is_reported = true;
                    tracing::warn!(
                        files,
                        n_failed = self.n_failed,
                        error = error_text(&error),
                        "credential files are unusable: requests use their former contents"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::captured_log::CapturedLog;

    fn unusable() -> Result<Refreshed, CredentialFileError> {
        let path = "/etc/cronwheel/ca.crt".to_owned();
        Err(CredentialFileError::NoAuthority { path })
    }

    #[test]
    fn a_credential_fault_is_reported_at_its_second_reading() {
        let (captured, mut log) = (CapturedLog::begin(), FileLog::default());
        let mut kind = |seconds, result| {
            log.report("token", result, BootInstant::after_boot(Duration::from_secs(seconds)));
            let logged = captured.take();
            let mut kinds = ["changed", "usable again", "unusable"].into_iter();
            kinds.find(|kind| logged.contains(kind)).unwrap_or_default()
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

    #[test]
    fn a_credential_fault_is_reported_with_its_cause() {
        let (captured, mut log) = (CapturedLog::begin(), FileLog::default());
        for seconds in [1, 2] {
            let error = CredentialFileError::Read {
                path: "/etc/cronwheel/token".to_owned(),
                source: std::io::Error::other("is a directory"),
            };
            let now = BootInstant::after_boot(Duration::from_secs(seconds));
            log.report("token", Err(error), now);
        }
        assert_eq!(captured.n_lines_with("token cannot be read: is a directory"), 1);
    }
}

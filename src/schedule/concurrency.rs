//! The concurrency policy of a CronJob (B-10).

/// `spec.concurrencyPolicy`. A value introduced by a newer server is treated as `Allow` (B-10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Runs may overlap.
    Allow,
    /// A run waits for the previous one to end (B-10.3).
    Forbid,
    /// A run ends the previous one (B-10.4).
    Replace,
}

impl ConcurrencyPolicy {
    /// The policy of a name in the API.
    pub fn of_name(name: Option<&str>) -> ConcurrencyPolicy {
        match name {
            Some("Forbid") => ConcurrencyPolicy::Forbid,
            Some("Replace") => ConcurrencyPolicy::Replace,
            _ => ConcurrencyPolicy::Allow,
        }
    }

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ConcurrencyPolicy::Allow => "Allow",
            ConcurrencyPolicy::Forbid => "Forbid",
            ConcurrencyPolicy::Replace => "Replace",
        }
    }
}

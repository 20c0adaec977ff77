//! The error of an explanation.

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The objects have no CronJob.
    #[error("{input}: no batch/v1 CronJob in it; give at least one")]
    NoCronJob {
        /// Where the objects come from.
        input: String,
    },
    /// The objects have no CronJob of the wanted name.
    #[error("{input}: no CronJob {name} in it; check the name and the namespace")]
    UnknownCronJob {
        /// Where the objects come from.
        input: String,
        /// The wanted name.
        name: String,
    },
    /// Objects cannot be used.
    #[error("{problems}")]
    Broken {
        /// One line for each object: its place, the problem and the fix.
        problems: String,
    },
    /// The page of the rules has no such number.
    #[error("no rule {number}; the rules are in docs/spec, give a number such as B-10.3 or O-7.1")]
    UnknownRule {
        /// The number as given.
        number: String,
    },
    /// The shard keeps requesting actions.
    #[error("CronJob {cron_job}: the decision does not settle; please report this with the objects")]
    Unsettled {
        /// Namespace and name.
        cron_job: String,
    },
    /// The decision panicked.
    #[error(
        "CronJob {cron_job}: cronwheel panicked, which is a fault of cronwheel: {message}; please report this with the \
         objects"
    )]
    Panicked {
        /// Namespace and name.
        cron_job: String,
        /// The message of the panic.
        message: Box<str>,
    },
    /// An object cannot be converted between forms of JSON.
    #[error("an object cannot be converted")]
    Conversion(#[source] serde_json::Error),
}

//! Classified answers of the API server. An expected answer is not an error.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    ids::{ResourceVersion, Uid},
    record::JobRecord,
};

/// The answer to the creation of a Job (B-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// 201 (B-12.1).
    Created {
        /// The new Job's uid.
        uid: Uid,
        /// Its resource version, as written.
        resource_version: Box<str>,
        /// Its creation time by the server's clock, in whole seconds.
        created: Timestamp,
    },
    /// A Job of that name exists; it may belong to another owner (B-12.3).
    AlreadyExists {
        /// The server's text.
        message: String,
    },
    /// The namespace is being deleted (B-12.2): back off without an Event.
    NamespaceTerminating,
    /// Refused as invalid, too large or malformed. A retry succeeds only after the CronJob, or a webhook that changed
    /// the Job, is corrected.
    Invalid {
        /// The server's text.
        message: String,
    },
    /// cronwheel has no permission to create Jobs. An API server that has just started also answers this for a moment.
    NotPermitted {
        /// The server's text.
        message: String,
    },
    /// Refused or failed, possibly temporarily: quota, admission, an internal error.
    Failed {
        /// The error text of the server or the transport.
        message: String,
        /// The HTTP status of the API server's answer. `None` without one: the create could not be sent, or its CronJob
        /// could not be read.
        status: Option<u16>,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// Sent but not answered. The Job may exist, so it is looked up before anything else.
    Unanswered {
        /// The error text of the server or of the transport.
        message: String,
        /// Whether no API server was reached, or the connection to it broke. False if only this request may be affected,
        /// for example because an admission webhook does not respond.
        is_unreachable: bool,
    },
    /// Not sent: the shard withdrew it, since its CronJob has changed, or it reached the front of the queue at or after
    /// its `expires_at`.
    Withdrawn,
    /// Not sent, or refused with 429 before: leadership ended, the queue is full, the slot is in the future, the CronJob
    /// that was read has changed, or the process is shutting down. This request created no Job, so the slot is decided
    /// again without a look-up.
    Abandoned,
}

impl CreateOutcome {
    /// Whether the API server answered the request.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(
            self,
            CreateOutcome::Unanswered { .. } | CreateOutcome::Withdrawn | CreateOutcome::Abandoned
        )
    }
}

/// The reason of a refused create, without the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// [`CreateOutcome::NamespaceTerminating`].
    NamespaceTerminating,
    /// [`CreateOutcome::Invalid`].
    Invalid,
    /// [`CreateOutcome::NotPermitted`].
    NotPermitted,
    /// [`CreateOutcome::Failed`] with this HTTP status.
    Failed(Option<u16>),
}

impl RefusalReason {
    /// Whether the tenant causes the refusal: the Job is invalid, or its namespace, a quota or admission does not permit
    /// it. Other causes are an API server that fails, and a permission that cronwheel lacks.
    pub(crate) fn is_due_to_tenant(self) -> bool {
        match self {
            RefusalReason::NamespaceTerminating | RefusalReason::Invalid => true,
            RefusalReason::NotPermitted => false,
            // 429 is the denial of a webhook here. The API server's own 429 is not an outcome. 409 is a conflict of
            // creates that use one quota.
            RefusalReason::Failed(status) => status.is_some_and(|status| (400..500).contains(&status) && status != 409),
        }
    }
}

/// The answer to the deletion of a Job (B-4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Deleted, or the deletion has begun.
    Deleted,
    /// 404, or another object has the name: the Job is gone (B-4.5 and its difference).
    Gone,
    /// Any other answer.
    Failed {
        /// The error text of the server or the transport.
        message: String,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// Not sent: the shard withdrew it, since its CronJob has changed.
    Withdrawn,
    /// Not sent, or sent and not answered: leadership ended or the process is shutting down. It may be repeated.
    Abandoned,
}

/// The answer to looking up a Job by name (B-5.4, B-12.3).
pub type LookUpOutcome = ReadOutcome<JobRecord>;

/// The answer to reading an object by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome<T> {
    /// It exists.
    Found(Box<T>),
    /// 404.
    Gone,
    /// The authorizer refuses the request, or the server rejects the credentials.
    NotPermitted {
        /// The server's text.
        message: String,
    },
    /// Any other answer.
    Failed {
        /// The error text of the server or the transport.
        message: String,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// Not sent, or sent and not answered: leadership ended or the process is shutting down. It may be repeated.
    Abandoned,
}

/// The answer to a status write (B-13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusOutcome {
    /// The status is stored.
    Stored {
        /// The CronJob's new resource version.
        resource_version: ResourceVersion,
    },
    /// 409: another client wrote first. The next event delivers that version, and the write is rebuilt on it.
    Conflict,
    /// 404, or another object has the name.
    Gone,
    /// Any other answer.
    Failed {
        /// The error text of the server or the transport.
        message: String,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// Not sent, or sent and not answered: leadership ended or the process is shutting down. It may be repeated.
    Abandoned,
}

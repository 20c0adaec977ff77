//! What the API server said to a request of ours, sorted. An expected answer is not an error.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    ids::{ResourceVersion, Uid},
    record::JobRecord,
};
use crate::shard::ShardLabels;

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
        /// Which shards its labels name: a mutating webhook may have changed them.
        shard_labels: Box<ShardLabels>,
    },
    /// A Job of that name exists, ours or not (B-12.3).
    AlreadyExists {
        /// The server's text.
        message: String,
    },
    /// The namespace is being deleted (B-12.2): back off, tell nobody.
    NamespaceTerminating,
    /// Refused in a way that no retry mends: invalid, too large, malformed.
    Refused {
        /// The server's text.
        message: String,
    },
    /// We may not do so at all, whatever the Job. An API server that has just started says so for a moment.
    NotPermitted {
        /// The server's text.
        message: String,
    },
    /// Refused or failed in a way that may pass: quota, admission, an internal error.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// Sent, and no answer came: whether the Job exists is unknown, so it is looked up before anything else.
    Unanswered {
        /// The transport's text.
        message: String,
    },
    /// Not sent: it came up for sending at or after its `expires_at`.
    Expired,
    /// Not sent, or sent and unanswered: leadership ended or the process is going down.
    Abandoned,
}

/// The answer to the deletion of a Job (B-4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Deleted, or its deletion has begun.
    Deleted,
    /// 404, or another object bears its name: what we wanted gone is gone (B-4.5 and its difference).
    Gone,
    /// Anything else.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// Not sent: leadership ended or the process is going down.
    Abandoned,
}

/// The answer to looking a Job up by name (B-5.4, B-12.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUpOutcome {
    /// It exists.
    Found(Box<JobRecord>),
    /// 404.
    Gone,
    /// The authorizer refuses the request, or the server does not know the credentials.
    NotPermitted {
        /// The server's text.
        message: String,
    },
    /// Anything else.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// Not sent: leadership ended or the process is going down.
    Abandoned,
}

/// The answer to a status write (B-13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusOutcome {
    /// Stored, under this version.
    Stored {
        /// The CronJob's new resource version.
        resource_version: ResourceVersion,
    },
    /// 409: somebody wrote since; the next event brings what, and the write is rebuilt on it.
    Conflict,
    /// 404, or another object bears the name.
    Gone,
    /// Anything else.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// Not sent: leadership ended or the process is going down.
    Abandoned,
}

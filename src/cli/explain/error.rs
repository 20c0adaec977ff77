//! The errors of `explain`.

use std::io;

/// The reasons why `explain` gives no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The file cannot be read.
    #[error("-f {file}: cannot be read; give a file or directory of CronJobs and Jobs, or - for standard input")]
    Read {
        /// The path as given.
        file: String,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The file is not UTF-8. Windows PowerShell redirects output as UTF-16.
    #[error("-f {file}: not UTF-8; save it as UTF-8")]
    NotUtf8 {
        /// The path as given.
        file: String,
    },
    /// The file is not valid YAML.
    #[error("{input}: not YAML: {problem}; {fix}")]
    Yaml {
        /// The name of the input.
        input: String,
        /// The error of the parser, with its position.
        problem: String,
        /// The fix.
        fix: &'static str,
    },
    /// The file begins like JSON and is not valid JSON.
    #[error("{input}: not JSON: {problem}; correct it there")]
    Json {
        /// The name of the input.
        input: String,
        /// The error of the parser, with its position.
        problem: String,
    },
    /// A document or an item of a list is not a Kubernetes object.
    #[error("{place} {problem}; give Kubernetes objects, with apiVersion, kind, metadata and spec")]
    NoObject {
        /// The document or item.
        place: String,
        /// The reason, which follows the place.
        problem: &'static str,
    },
    /// An object has no name.
    #[error("{place}: the {kind} has no metadata.name; give it one")]
    NoName {
        /// The document or item.
        place: String,
        /// The kind of the object.
        kind: &'static str,
    },
    /// An object occurs twice.
    #[error("{place}: {kind} {name} occurs twice; keep one")]
    Repeated {
        /// The document or item of the second one.
        place: String,
        /// The kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        name: String,
    },
    /// Two Jobs have the same uid.
    #[error("Job {name} has the metadata.uid {uid} of another Job; leave it out, or give each its own")]
    SameUid {
        /// The namespace and name of the second Job.
        name: String,
        /// The uid.
        uid: String,
    },
    /// The CronJob is not in the cluster.
    #[error("CronJob {namespace}/{name} is not in the cluster; check the name and give the namespace by -n")]
    NotFound {
        /// The namespace of the CronJob.
        namespace: String,
        /// The name of the CronJob.
        name: String,
    },
    /// The cluster does not return an object.
    #[error("cannot get the {what} {name}: {message}{right}")]
    Fetch {
        /// The requested object.
        what: &'static str,
        /// The namespace and name of the CronJob.
        name: String,
        /// The error of the API server or of the transport.
        message: String,
        /// The missing rights, if they are the cause.
        right: &'static str,
    },
    /// The input has no CronJob.
    #[error("{input}: no batch/v1 CronJob in it; give at least one")]
    NoCronJob {
        /// The name of the input.
        input: String,
    },
    /// The input has no CronJob of the name.
    #[error("{input}: no CronJob {name} in it; check the name and the namespace")]
    NotInFiles {
        /// The name of the input.
        input: String,
        /// The name of the CronJob.
        name: String,
    },
    /// Two names are given.
    #[error("{first} and {second} are two CronJobs; give one, or the files of several by -f")]
    TwoNames {
        /// The first name.
        first: String,
        /// The second name.
        second: String,
    },
    /// An object cannot be converted between forms of JSON.
    #[error("an object cannot be converted")]
    Convert(#[source] serde_json::Error),
    /// The shard requests actions without an end.
    #[error("CronJob {name}: the decision does not settle; please report this with the objects")]
    Unsettled {
        /// The namespace and name of the CronJob.
        name: String,
    },
    /// `--check` found CronJobs that cannot run.
    #[error(
        "{n_unfit} of {n_cron_jobs} CronJobs can never run or would be refused by the API server; correct what the \
         answer lists"
    )]
    Unfit {
        /// Their number.
        n_unfit: usize,
        /// The number of all CronJobs.
        n_cron_jobs: usize,
    },
    /// There is no rule of this number.
    #[error("no rule {number}; the rules are in docs/spec/cronjob-behaviour.md, give a number such as B-10.3")]
    NoRule {
        /// The number as given.
        number: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Write(#[source] io::Error),
}

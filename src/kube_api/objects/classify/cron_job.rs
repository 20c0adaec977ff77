//! The answer to reading a CronJob.

use std::time::Duration;

use http::StatusCode;

use super::{Answer, RawAnswer, is_not_permitted, sorted};
use crate::kube_api::objects::decode::SlimCronJob;

/// The answer to reading a CronJob, in the form `T`.
#[derive(Clone, Debug)]
pub enum CronJobOutcome<T> {
    /// It exists.
    Found(T),
    /// 404.
    Gone,
    /// The authorizer refuses the request, or the server rejects the credentials.
    NotPermitted {
        /// The server's text.
        message: String,
    },
    /// Anything else.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// The wait that the server required.
        retry_after: Option<Duration>,
    },
}

/// The answer to reading a CronJob.
pub fn read_cron_job(answer: &RawAnswer) -> Answer<CronJobOutcome<SlimCronJob>> {
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => CronJobOutcome::Found(serde_json::from_slice(&answer.body)?),
            Some(_) if answer.status == StatusCode::NOT_FOUND => CronJobOutcome::Gone,
            Some(refusal) if is_not_permitted(answer.status, &refusal) => CronJobOutcome::NotPermitted {
                message: refusal.message,
            },
            Some(refusal) => CronJobOutcome::Failed {
                message: refusal.message,
                retry_after: refusal.retry_after,
            },
        })
    })
}

//! Reads the admission policies that keep the built-in controller out, and reports those that are missing: without them,
//! both controllers run the same CronJobs.

use std::time::Duration;

use super::{clock::Clock, recorded_send::send_recorded};
use crate::{
    kube_api::{
        Answer, ApiClient,
        admission::{PolicyPart, PolicyReading},
        other_controllers::OtherControllers,
    },
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// Interval between reads. With the intervals of a Prometheus, 30 seconds each, an alert tells within two minutes that a
/// policy is gone.
const INTERVAL: Duration = Duration::from_secs(15);

/// The task that reads policies.
pub struct PolicyTask {
    /// Client for the reads.
    pub api: ApiClient,
    /// The names of the policies, which are those of their bindings too.
    pub policies: Vec<Box<str>>,
    /// The clock.
    pub clock: Clock,
    /// Metrics of requests and answers, with the log of refusals.
    pub api_metrics: ApiMetrics,
    /// The evidence of other controllers, of which a missing policy is a part.
    pub other_controllers: OtherControllers,
}

impl PolicyTask {
    /// Never returns.
    pub async fn run(self) {
        loop {
            if let Ok(missing) = self.missing().await {
                self.other_controllers.note_policies(&missing, self.clock.now());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Returns the policies that refuse nothing. If one of them was not read, returns the reason, and it is not known
    /// whether the built-in controller is kept out.
    async fn missing(&self) -> Result<Vec<&str>, String> {
        let mut missing = Vec::new();
        for policy in &self.policies {
            for part in PolicyPart::ALL {
                if !self.read(part, policy).await? {
                    missing.push(&**policy);
                    break;
                }
            }
        }
        Ok(missing)
    }

    async fn read(&self, part: PolicyPart, name: &str) -> PolicyReading {
        let call = match part {
            PolicyPart::Policy => ApiCall::GetPolicy,
            PolicyPart::Binding => ApiCall::GetPolicyBinding,
        };
        let read = self.api.read_policy(part, name);
        let (answered, _) = send_recorded(&self.clock, &self.api_metrics, call, read).await;
        match answered.answer {
            Answer::Outcome(reading) => reading,
            Answer::Throttled { message, .. } | Answer::Unavailable { message, .. } => Err(message),
        }
    }
}

#[cfg(test)]
mod tests;

//! The CronJobs of a fleet. A third of them are minutely, every policy occurs, and their Jobs take some time.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Allow,
    Forbid,
    Replace,
}

/// How long finished Jobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Until the history limits delete them.
    Kept,
    /// For `ttlSecondsAfterFinished`.
    Seconds(i64),
    /// Until the status is stored. The history limits are 0.
    NoHistory,
}

/// The specification of a CronJob.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) policy: Policy,
    /// The period in minutes. Slots are aligned to the hour.
    pub(super) minutes: i64,
    /// The run time of its Jobs.
    pub(super) run_seconds: i64,
    pub(super) deadline_seconds: Option<i64>,
    pub(super) life: Life,
}

impl Plan {
    pub(super) fn draw_all(random: &mut Random, n: usize) -> Vec<Plan> {
        (0..n).map(|number| Plan::draw(random, number)).collect()
    }

    fn draw(random: &mut Random, number: usize) -> Plan {
        let policies = [Policy::Allow, Policy::Forbid, Policy::Replace];
        let minutes = if number.is_multiple_of(3) {
            1
        } else {
            random.pick(&[2, 2, 3, 5])
        };
        Plan {
            name: format!("c-{number:03}"),
            policy: policies[number / 3 % 3],
            minutes,
            run_seconds: random.pick(&[1, 5, 20, 40, 40, 75]),
            deadline_seconds: random.pick(&[None, None, Some(600)]),
            life: Life::Kept,
        }
    }

    /// A minutely CronJob.
    pub(super) fn plain(name: &str) -> Plan {
        Plan::every(1, name)
    }

    /// A CronJob with this period in minutes.
    pub(super) fn every(minutes: i64, name: &str) -> Plan {
        Plan {
            name: name.to_owned(),
            policy: Policy::Allow,
            minutes,
            run_seconds: 1,
            deadline_seconds: None,
            life: Life::Kept,
        }
    }

    pub(super) fn object(&self) -> Value {
        let schedule = if self.minutes == 1 {
            "* * * * *".to_owned()
        } else {
            format!("*/{} * * * *", self.minutes)
        };
        let history_limit = u8::from(self.life != Life::NoHistory);
        json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": self.name},
            "spec": {
                "schedule": schedule,
                "concurrencyPolicy": format!("{:?}", self.policy),
                "startingDeadlineSeconds": self.deadline_seconds,
                "successfulJobsHistoryLimit": history_limit,
                "failedJobsHistoryLimit": history_limit,
                "jobTemplate": {"spec": self.job_spec()},
            },
        })
    }

    pub(super) fn job_spec(&self) -> Value {
        let ttl_seconds = match self.life {
            Life::Seconds(seconds) => Some(seconds),
            Life::Kept | Life::NoHistory => None,
        };
        json!({
            "ttlSecondsAfterFinished": ttl_seconds,
            "template": {
                "metadata": {"annotations": {"run-for": format!("{}s", self.run_seconds)}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
            },
        })
    }

    /// The slots after `from` and before `until`, in order.
    pub(super) fn slots(&self, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let period = self.minutes * 60;
        let first = (from.as_second() / period + 1) * period;
        let seconds = (first..until.as_second()).step_by(period.unsigned_abs().try_into().unwrap());
        seconds.map(|second| Timestamp::from_second(second).unwrap()).collect()
    }

    pub(super) fn period(&self) -> SignedDuration {
        SignedDuration::from_mins(self.minutes)
    }

    pub(super) fn job_name(&self, slot: Timestamp) -> String {
        format!("{}-{}", self.name, slot.as_second() / 60)
    }
}

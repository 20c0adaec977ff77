//! The controllers to compare: their names and flags.

use std::path::PathBuf;

use testbed::ReferenceLimits;

use super::result::ControllerInfo;
use crate::measure;

/// More than the API server of a small machine can serve, so the client never reaches its limit.
pub(super) const UNTHROTTLED: ReferenceLimits = ReferenceLimits {
    shared_identity: false,
    kube_api_qps: 10_000,
    kube_api_burst: 10_000,
    concurrent_cron_job_syncs: 5,
};

/// The names of the contestants, in the order of the table.
pub(crate) const NAMES: [&str; 4] = ["floor", "built-in", "built-in-unthrottled", "cronwheel"];

/// A controller to compare, or the floor.
#[derive(Clone, Debug)]
pub(crate) enum Contestant {
    /// Bare creates with this many in flight: a lower bound for every controller.
    Floor { in_flight: u32 },
    /// The CronJob controller of kube-controller-manager.
    BuiltIn,
    /// The same without client limits.
    BuiltInUnthrottled,
    /// Replicas of cronwheel.
    Cronwheel {
        program: PathBuf,
        replicas: u32,
        arguments: Vec<String>,
    },
}

impl Contestant {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Contestant::Floor { .. } => NAMES[0],
            Contestant::BuiltIn => NAMES[1],
            Contestant::BuiltInUnthrottled => NAMES[2],
            Contestant::Cronwheel { .. } => NAMES[3],
        }
    }

    /// Describes the contestant. `kubernetes` is the version of the API server and of the built-in controller.
    pub(super) fn info(&self, kubernetes: &str) -> ControllerInfo {
        let (version, replicas, flags) = match self {
            Contestant::Floor { in_flight } => ("bare creates".to_owned(), 1, floor_flags(*in_flight)),
            Contestant::BuiltIn => (kubernetes.to_owned(), 1, limit_flags(ReferenceLimits::default())),
            Contestant::BuiltInUnthrottled => (kubernetes.to_owned(), 1, limit_flags(UNTHROTTLED)),
            Contestant::Cronwheel {
                program,
                replicas,
                arguments,
            } => (measure::program_version(program), *replicas, arguments.clone()),
        };
        ControllerInfo {
            name: self.name().to_owned(),
            version,
            replicas,
            flags,
        }
    }
}

/// The flags that give replicas on one machine their identity.
pub(super) fn replica_flags(number: u32) -> [String; 3] {
    [
        format!("--pod-name=cronwheel-{number}"),
        format!("--pod-uid=uid-{number}"),
        "--pod-revision=1".to_owned(),
    ]
}

fn limit_flags(limits: ReferenceLimits) -> Vec<String> {
    vec![
        "--controllers=cronjob-controller".to_owned(),
        format!("--kube-api-qps={}", limits.kube_api_qps),
        format!("--kube-api-burst={}", limits.kube_api_burst),
        format!("--concurrent-cron-job-syncs={}", limits.concurrent_cron_job_syncs),
    ]
}

pub(super) fn floor_flags(in_flight: u32) -> Vec<String> {
    vec![format!("--in-flight={in_flight}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cronwheel(replicas: u32) -> Contestant {
        Contestant::Cronwheel {
            program: "/no/such/program".into(),
            replicas,
            arguments: vec!["--max-inflight=64".into()],
        }
    }

    #[test]
    fn info_lists_the_flags_of_a_contestant() {
        let flags = |contestant: Contestant| contestant.info("v1.36.3").flags.join(" ");
        assert_eq!(flags(Contestant::Floor { in_flight: 64 }), "--in-flight=64");
        let throttled = flags(Contestant::BuiltIn);
        assert!(
            throttled.contains("--controllers=cronjob-controller --kube-api-qps=20 "),
            "{throttled}"
        );
        let unthrottled = flags(Contestant::BuiltInUnthrottled);
        assert!(unthrottled.contains("--kube-api-qps=10000 "), "{unthrottled}");
        assert_eq!(flags(cronwheel(3)), "--max-inflight=64");
    }

    #[test]
    fn replicas_have_distinct_pods() {
        let distinct: std::collections::BTreeSet<_> = (0..3).map(replica_flags).collect();
        assert_eq!(distinct.len(), 3);
    }

    #[test]
    fn the_built_in_controller_has_the_version_of_the_api_server() {
        assert_eq!(Contestant::BuiltIn.info("v1.36.3").version, "v1.36.3");
        assert_eq!(cronwheel(2).info("v1.36.3").replicas, 2);
    }
}

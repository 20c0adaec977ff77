//! Reasons to doubt the figures of a turn: a busy machine, clocks that differ, an incomplete or missing audit log.

use jiff::{SignedDuration, Timestamp};

use super::{scenario::Scenario, turn::Moment};
use crate::{audit::Request, target::Target, watched};

/// The user of the kubeconfig for the clock probe.
const ADMIN: &str = "admin";

/// The maximum difference between the clocks of machine and audit log without a warning.
const CLOCK_DIFFERENCE_MAX: SignedDuration = SignedDuration::from_millis(50);

/// Returns the reasons to doubt the figures between two moments.
pub(super) fn warnings(
    scenario: Scenario,
    target: &Target,
    begin: &Moment,
    end: &Moment,
    probe: (Timestamp, Timestamp),
) -> anyhow::Result<Vec<String>> {
    let own = end.own.saturating_sub(begin.own);
    // The CPU time of an API server that was stopped is unknown, so it cannot be separated from that of other
    // processes.
    let busy = (scenario != Scenario::ApiServerAway)
        .then(|| end.machine.busy_warning(begin.machine, own))
        .flatten();
    if !target.has_audit_log() {
        return Ok(busy.into_iter().chain([watched::WARNING.to_owned()]).collect());
    }
    let by_admin = target.requests(ADMIN)?;
    let clock = clock_warning(&by_admin, probe);
    let dropped = dropped_warning(target.n_dropped_audit_lines()?);
    Ok([busy, clock, dropped].into_iter().flatten().collect())
}

/// Sends a request that only the probe sends as this user. Returns when it was sent.
pub(super) fn probe_clock(target: &Target) -> anyhow::Result<(Timestamp, Timestamp)> {
    let begin = Timestamp::now();
    target.kubectl().run(&["get", "leases", "--namespace=kube-system"])?;
    Ok((begin, Timestamp::now()))
}

/// Warns if the time of the probe in the audit log differs from the time at which it was sent.
fn clock_warning(requests: &[Request], probe: (Timestamp, Timestamp)) -> Option<String> {
    let probes = requests
        .iter()
        .filter(|one| one.verb == "list" && one.resource == "leases");
    let difference = |one: &Request| {
        let early = probe.0.duration_since(one.received);
        let late = one.received.duration_since(probe.1);
        early.max(late)
    };
    let Some(smallest) = probes.map(difference).min() else {
        return Some("the clocks of this machine and of the audit log could not be compared".to_owned());
    };
    (smallest > CLOCK_DIFFERENCE_MAX).then(|| {
        format!(
            "the clocks of this machine and of the audit log differ by {} ms or more",
            smallest.as_millis()
        )
    })
}

fn dropped_warning(n_dropped: f64) -> Option<String> {
    (n_dropped > 0.0)
        .then(|| format!("the API server dropped {n_dropped} lines of its audit log: missed runs may not be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(milliseconds: i64) -> Request {
        let received = Timestamp::from_millisecond(milliseconds).unwrap();
        Request {
            verb: "list".into(),
            resource: "leases".into(),
            namespace: "kube-system".into(),
            name: String::new(),
            code: 200,
            received,
            answered: received,
        }
    }

    #[test]
    fn clock_warning_compares_the_probe_with_the_audit_log() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let check = |received: i64, expected: Option<&str>| {
            let warning = clock_warning(&[list(received)], (at(10_000), at(10_100)));
            match (&warning, expected) {
                (Some(warning), Some(expected)) => assert!(warning.contains(expected), "{warning}"),
                _ => assert_eq!(warning.as_deref(), expected, "{received}"),
            }
        };
        check(10_050, None);
        check(9_960, None);
        check(10_140, None);
        check(10_800, Some("700 ms"));
        check(9_500, Some("500 ms"));
        assert!(
            clock_warning(&[], (at(10_000), at(10_100)))
                .unwrap()
                .contains("not be compared")
        );
    }

    #[test]
    fn dropped_lines_are_a_warning() {
        assert_eq!(dropped_warning(0.0), None);
        assert!(dropped_warning(3.0).unwrap().contains("dropped 3 lines"));
    }
}

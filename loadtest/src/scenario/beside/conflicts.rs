//! Why a status write of cronwheel met a conflict: who wrote the version that it did not know.

use jiff::{SignedDuration, Timestamp};

use super::report::Outage;
use crate::audit::Request;

/// How long cronwheel may have conflicts after it is back.
const CONFLICTS_MAX: SignedDuration = SignedDuration::from_secs(10);

/// A lost answer counts if cronwheel had sent its write at most this long before: the longest lifetime of a request.
const LIFETIME_MAX_SECONDS: i64 = 40;

impl Outage {
    /// Explains the conflicts of cronwheel's status writes after it was back for ten seconds.
    pub(super) fn judged(self, ours: &[Request], theirs: &[Request]) -> Outage {
        let since = self.back + CONFLICTS_MAX;
        let until = self.back + SignedDuration::from_secs(70);
        let late = ours.iter().filter(|one| (since..until).contains(&one.received));
        let conflicts = late.filter(|one| one.is_status_conflict());
        Outage {
            late_conflicts: conflicts.map(|one| cause(one, ours, theirs)).collect(),
            ..self
        }
    }
}

/// Explains a conflict, which is one of `ours`, by the status writes of both controllers to the same CronJob.
fn cause(conflict: &Request, ours: &[Request], theirs: &[Request]) -> String {
    let is_same = |one: &&Request| {
        one.resource == "cronjobs/status" && one.namespace == conflict.namespace && one.name == conflict.name
    };
    let is_before = |one: &&Request| one.received < conflict.received;
    let last_of = |requests: &[Request]| -> Option<Timestamp> {
        let stored = requests.iter().filter(is_same).filter(|one| one.code == 200);
        // A write that was stored before the conflict was answered can be its cause.
        let stored = stored.filter(|one| one.received < conflict.answered);
        stored.map(|one| one.answered).max()
    };
    let unanswered = ours.iter().filter(is_same).filter(is_before).find(|one| {
        let age = conflict.received.duration_since(one.received).as_secs();
        (one.code == 0 || one.code >= 500) && age <= LIFETIME_MAX_SECONDS
    });
    let n_before = ours.iter().filter(is_same).filter(is_before);
    let n_before = n_before
        .filter(|one| one.code == 409 && conflict.received.duration_since(one.received).as_secs() < 60)
        .count();
    let (last_ours, last_theirs) = (last_of(ours), last_of(theirs));
    let writer = match (last_ours, last_theirs) {
        (_, Some(theirs)) if last_ours < Some(theirs) => format!("by the built-in controller at {theirs}"),
        (Some(ours), _) => format!("by cronwheel at {ours}"),
        (None, _) => "by neither controller".to_owned(),
    };
    let unanswered = unanswered.map_or_else(String::new, |one| {
        format!("; cronwheel's write of {} had the answer {}", one.received, one.code)
    });
    format!(
        "{}/{} at {}, {n_before} more in the minute before: the last status was stored {writer}{unanswered}",
        conflict.namespace, conflict.name, conflict.received
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(second: i64, code: u16) -> Request {
        let at = |second| Timestamp::from_second(second).unwrap();
        Request {
            verb: "update".to_owned(),
            resource: "cronjobs/status".to_owned(),
            namespace: "shop".to_owned(),
            name: "report".to_owned(),
            code,
            received: at(second),
            answered: at(second + 1),
        }
    }

    #[test]
    fn the_writer_of_the_unknown_version_is_named() {
        let conflict = write(100, 409);
        let cause = |ours: &[Request], theirs: &[Request]| cause(&conflict, ours, theirs);
        let place = "shop/report at 1970-01-01T00:01:40Z, 0 more in the minute before: the last status was stored";
        assert_eq!(
            cause(&[write(90, 200)], &[write(95, 200), write(97, 403)]),
            format!("{place} by the built-in controller at 1970-01-01T00:01:36Z")
        );
        assert_eq!(
            cause(&[write(95, 504), write(96, 200)], &[write(90, 200)]),
            format!(
                "{place} by cronwheel at 1970-01-01T00:01:37Z; cronwheel's write of 1970-01-01T00:01:35Z had the answer 504"
            )
        );
        let elsewhere = Request {
            name: "other".to_owned(),
            ..write(95, 200)
        };
        assert_eq!(cause(&[elsewhere], &[]), format!("{place} by neither controller"));
    }

    #[test]
    fn repeated_conflicts_are_counted() {
        let conflict = write(100, 409);
        let text = cause(
            &conflict,
            &[write(30, 409), write(90, 409), write(95, 409), conflict.clone()],
            &[],
        );
        assert!(text.contains("2 more in the minute before"), "{text}");
    }
}

//! The actions of a CronJob that wait, most of them after a failure.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The instants until which actions wait. Few CronJobs have any.
#[derive(Debug, Default)]
pub(crate) struct Delays(Option<Box<Instants>>);

type Instants = BTreeMap<DelayedAction, Timestamp>;

impl Delays {
    pub(crate) fn set(&mut self, action: DelayedAction, until: Timestamp) {
        self.0.get_or_insert_default().insert(action, until);
    }

    /// The instant until which the action waits, if that is in the future.
    pub(crate) fn until(&mut self, action: DelayedAction, now: Timestamp) -> Option<Timestamp> {
        let until = *self.0.as_ref()?.get(&action)?;
        if now < until {
            return Some(until);
        }
        self.end(action);
        None
    }

    pub(crate) fn end(&mut self, action: DelayedAction) {
        if let Some(instants) = &mut self.0 {
            instants.remove(&action);
            if instants.is_empty() {
                self.0 = None;
            }
        }
    }
}

/// An action that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DelayedAction {
    /// The next status write, since the last one failed or had a conflict.
    Status,
    /// The next history delete, since one failed.
    History,
    /// The next evaluation after a change of a Job, if the CronJob has very many.
    JobEvaluation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_waits_until_its_instant_and_only_itself() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut delays = Delays::default();
        delays.set(DelayedAction::Status, at(5));
        assert_eq!(delays.until(DelayedAction::Status, at(4)), Some(at(5)));
        assert_eq!(delays.until(DelayedAction::History, at(4)), None);
        assert_eq!(delays.until(DelayedAction::Status, at(5)), None);
        assert_eq!(delays.until(DelayedAction::Status, at(4)), None, "the wait has ended");
    }
}

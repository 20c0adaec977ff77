//! When a CronJob may have been resumed, by its `metadata.managedFields`.
//!
//! Each client has an entry with the fields that it has set last, and the time of its last change. An object does not say
//! what its fields were before.

use jiff::{SignedDuration, Timestamp};

use crate::schedule::after;

/// Both times of a creation have whole seconds, and may differ by one.
const CREATION_SLACK: SignedDuration = SignedDuration::from_secs(1);

/// An entry of `metadata.managedFields` that has fields of the spec, and is not of a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecEntry {
    /// The last change of the client.
    pub time: Timestamp,
    /// Whether the client updates fields. The entry of a client that applies a manifest also has fields that it did not
    /// change.
    pub is_update: bool,
    /// Whether the client has set `spec.suspend` last.
    pub has_suspend: bool,
    /// Whether it has set nothing else.
    pub is_alone: bool,
}

/// The last resumption of a CronJob that is not suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// It was resumed then.
    At(Timestamp),
    /// It was changed then, which may have ended a suspension. Later it was not resumed.
    Perhaps(Timestamp),
}

impl Resumption {
    /// What the entries tell. `None` if the CronJob was not resumed since its creation, or if there are no entries.
    pub fn of(entries: &[SpecEntry], created: Timestamp) -> Option<Resumption> {
        let last = entries.iter().map(|entry| entry.time).max()?;
        // The value of a field is at least as old as the earliest entry that has the field.
        let setters = entries.iter().filter(|entry| entry.has_suspend);
        let resumption = match setters.min_by_key(|entry| entry.time) {
            Some(entry) if entry.is_update && entry.is_alone => Resumption::At(entry.time),
            Some(entry) => Resumption::Perhaps(entry.time),
            None => Resumption::Perhaps(last),
        };
        (resumption.at() > after(created, CREATION_SLACK)).then_some(resumption)
    }

    /// The end of the suspension, if there was one, or an instant after it.
    pub fn at(self) -> Timestamp {
        let (Resumption::At(at) | Resumption::Perhaps(at)) = self;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_client_that_set_suspend_tells_when_a_suspension_ended() {
        let entry = |time, is_update, has_suspend, is_alone| SpecEntry {
            time: at(time),
            is_update,
            has_suspend,
            is_alone,
        };
        let created = entry(100, true, true, false);
        let without_suspend = entry(100, false, false, false);
        for (name, entries, expected) in [
            ("no entries", vec![], None),
            ("as created", vec![entry(101, true, true, false)], None),
            (
                "kubectl patch",
                vec![entry(100, true, false, false), entry(500, true, true, true)],
                Some(Resumption::At(at(500))),
            ),
            (
                "kubectl patch with other fields",
                vec![entry(100, true, false, false), entry(500, true, true, false)],
                Some(Resumption::Perhaps(at(500))),
            ),
            (
                "kubectl apply",
                vec![entry(500, true, true, false)],
                Some(Resumption::Perhaps(at(500))),
            ),
            (
                "an apply that claims the field",
                vec![without_suspend, entry(500, false, true, true)],
                Some(Resumption::Perhaps(at(500))),
            ),
            ("another field", vec![created, entry(500, true, false, false)], None),
            (
                "an applied manifest that leaves suspend out",
                vec![entry(500, false, false, false)],
                Some(Resumption::Perhaps(at(500))),
            ),
            (
                "two that set it",
                vec![entry(300, true, true, true), entry(500, false, true, false)],
                Some(Resumption::At(at(300))),
            ),
        ] {
            assert_eq!(Resumption::of(&entries, at(100)), expected, "{name}");
        }
    }
}

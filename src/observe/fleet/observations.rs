//! The periods in which both watches were current, so that every Job was seen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::second::Second;
use crate::{
    observe::facts::{Kind, Observation},
    shard::Scope,
};

/// Maximum number of periods. Each restart and each relist begins one; older ones lie before all slots that matter.
const PERIODS_MAX: usize = 512;

/// The periods by time, without overlaps.
#[derive(Debug, Default)]
pub(super) struct Observations {
    periods: Vec<Observation>,
    is_current: bool,
    /// Whether the last period changed after [`Observations::take_record`].
    is_changed: bool,
    /// The namespaces of the watches; `None`: all.
    watched: Option<BTreeSet<Box<str>>>,
    /// Namespaces that may not be read, with the lists that lack until they are known again.
    absent: BTreeMap<Box<str>, BTreeSet<Kind>>,
}

impl Observations {
    /// Whether both watches are current.
    pub(super) fn is_current(&self) -> bool {
        self.is_current
    }

    /// The start of the first period of a namespace that is watched.
    pub(super) fn first(&self) -> Option<Timestamp> {
        let is_watched = |period: &&Observation| {
            let watched = self.watched.as_ref();
            watched.is_none_or(|watched| watched.iter().any(|namespace| period.includes(namespace)))
        };
        self.periods.iter().find(is_watched).map(|period| period.from)
    }

    /// The scopes of the watches.
    pub(super) fn set_scopes(&mut self, scopes: &[Scope]) {
        let names = scopes.iter().map(|scope| match scope {
            Scope::Cluster => None,
            Scope::Namespace(name) => Some(Box::from(&**name)),
        });
        self.watched = names.collect();
    }

    /// Whether a namespace is in the scopes.
    pub(super) fn is_watched(&self, namespace: &str) -> bool {
        let watched = self.watched.as_ref();
        watched.is_none_or(|watched| watched.contains(namespace))
    }

    /// A namespace may not be read any more. It leaves the current period as a whole.
    pub(super) fn lose(&mut self, namespace: &str) {
        self.absent.insert(namespace.into(), Kind::ALL.into());
        let namespaces = self.namespaces();
        if let Some(period) = self.periods.last_mut().filter(|_| self.is_current) {
            period.namespaces = namespaces;
            self.is_changed = true;
        }
    }

    /// A list of a namespace is complete. After both, one that could not be read is in the periods that begin.
    pub(super) fn regain(&mut self, namespace: &str, kind: Kind, now: Timestamp) {
        let Some(lacks) = self.absent.get_mut(namespace) else {
            return;
        };
        lacks.remove(&kind);
        if !lacks.is_empty() {
            return;
        }
        self.absent.remove(namespace);
        if self.is_current {
            self.advance(now);
            self.begin(now);
        }
    }

    /// The last instant at which both watches were current.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.periods.last().map(|period| period.to)
    }

    /// The begin of the first period after an instant.
    pub(super) fn begin_after(&self, instant: Second) -> Option<Second> {
        let mut begins = self.periods.iter().map(|period| Second::ceil(period.from));
        begins.find(|begin| *begin > instant)
    }

    /// Adds a period of the history, or moves the end of one.
    pub(super) fn load(&mut self, loaded: Observation) {
        let place = self.periods.partition_point(|period| period.from < loaded.from);
        match self.periods.get_mut(place) {
            Some(period) if period.from == loaded.from => {
                period.to = period.to.max(loaded.to);
                period.namespaces = loaded.namespaces;
            }
            _ => self.periods.insert(place, loaded),
        }
        self.bound();
    }

    pub(super) fn begin(&mut self, now: Timestamp) {
        self.periods.push(Observation {
            from: now,
            to: now,
            namespaces: self.namespaces(),
        });
        (self.is_current, self.is_changed) = (true, true);
        self.bound();
    }

    pub(super) fn end(&mut self, now: Timestamp) {
        self.advance(now);
        self.is_current = false;
    }

    /// Moves the end of the current period.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if let Some(period) = self
            .periods
            .last_mut()
            .filter(|period| self.is_current && period.to < now)
        {
            period.to = now;
            self.is_changed = true;
        }
    }

    /// The last period, if it changed after the last call.
    pub(super) fn take_record(&mut self) -> Option<Observation> {
        let is_changed = std::mem::take(&mut self.is_changed);
        self.periods.last().filter(|_| is_changed).cloned()
    }

    /// Whether every Job of a namespace was seen from one instant to another. The list that begins a period has what exists then, so a
    /// slot of the same second counts.
    pub(super) fn covers(&self, namespace: &str, from: Second, to: Second) -> bool {
        let n_before = self
            .periods
            .partition_point(|period| Second::floor(period.from) <= from);
        let Some(period) = n_before.checked_sub(1).and_then(|last| self.periods.get(last)) else {
            return false;
        };
        let is_last = n_before == self.periods.len();
        period.includes(namespace) && (is_last && self.is_current || Second::floor(period.to) >= to)
    }

    /// The namespaces that are watched and can be read.
    fn namespaces(&self) -> Option<Box<str>> {
        let watched = self.watched.as_ref()?.iter();
        let readable = watched.filter(|namespace| !self.absent.contains_key(*namespace));
        let names: Vec<&str> = readable.map(|namespace| &**namespace).collect();
        Some(names.join(",").into())
    }

    fn bound(&mut self) {
        let n_excess = self.periods.len().saturating_sub(PERIODS_MAX);
        self.periods.drain(..n_excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-05-05T{text}Z").parse().unwrap()
    }

    #[test]
    fn a_span_is_covered_within_one_period() {
        let mut observations = Observations::default();
        observations.load(Observation {
            from: at("10:00:00"),
            to: at("10:05:00"),
            namespaces: None,
        });
        observations.load(Observation {
            from: at("10:00:00"),
            to: at("10:10:00"),
            namespaces: None,
        });
        observations.begin(at("10:20:00.5"));
        for (from, to, expected) in [
            ("10:00:00", "10:10:00", true),
            ("09:59:59", "10:01:00", false),
            ("10:00:00", "10:10:01", false),
            ("10:15:00", "10:16:00", false),
            ("10:09:00", "10:21:00", false),
            ("10:20:00", "10:21:00", true),
        ] {
            let is_covered = observations.covers("a", Second::floor(at(from)), Second::floor(at(to)));
            assert_eq!(is_covered, expected, "{from} to {to}");
        }
        observations.end(at("10:30:00"));
        assert!(!observations.covers("a", Second::floor(at("10:25:00")), Second::floor(at("10:31:00"))));
    }

    #[test]
    fn only_a_change_is_recorded() {
        let mut observations = Observations::default();
        assert_eq!(observations.take_record(), None);
        observations.begin(at("10:00:00"));
        assert!(observations.take_record().is_some());
        observations.advance(at("10:00:00"));
        assert_eq!(observations.take_record(), None);
        observations.advance(at("10:00:01"));
        assert_eq!(observations.take_record().map(|period| period.to), Some(at("10:00:01")));
    }
}

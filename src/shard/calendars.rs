//! The calendars of the option `not-on`: the ConfigMaps that replicas have read.
//!
//! A CronJob that names a calendar is not decided before the first list of those of its scope is complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::input::Scope;
use crate::schedule::{
    CronJobSchedule,
    options::{CALENDAR_LABEL, Calendar},
};

/// The most dates and ranges that the calendars of one namespace may have together.
const NAMESPACE_ENTRIES_MAX: usize = 65_536;

/// The most dates and ranges that all calendars may have together: those of eight full namespaces, about 50 MB.
const ENTRIES_MAX: usize = 524_288;

/// The most calendars that a namespace may have, also such as cannot be used.
const NAMESPACE_CALENDARS_MAX: usize = 1_000;

/// The dates of a ConfigMap, or why they cannot be used.
pub type ReadCalendar = Result<Arc<Calendar>, Box<str>>;

/// A namespace, and a name in it.
type Key = (Box<str>, Box<str>);

/// A step of the list or of the watch of the calendars of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalendarUpdate {
    /// A list begins. A calendar that is not applied before the end of the list is gone.
    ListBegun(Scope),
    /// The calendar exists in this form.
    Applied {
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// Its dates.
        calendar: ReadCalendar,
    },
    /// The calendar is gone, or does not have the label any more.
    Removed {
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
    },
    /// The list is complete.
    ListDone(Scope),
}

/// The calendars. Clones share them. By default none are read.
#[derive(Clone, Debug, Default)]
pub struct Calendars(Option<Arc<Mutex<Known>>>);

#[derive(Debug, Default)]
struct Known {
    calendars: BTreeMap<Key, ReadCalendar>,
    /// The dates and ranges of all calendars.
    n_entries: usize,
    /// The scopes that were never listed.
    unlisted: Vec<Scope>,
    /// The calendars of each list in progress.
    listing: BTreeMap<Scope, BTreeSet<Key>>,
    /// Whether there may be others, of which nothing is known.
    is_partial: bool,
}

/// The CronJobs that an update concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CalendarChange {
    /// None.
    Nothing,
    /// Those that name one of these calendars.
    Of(BTreeSet<Key>),
    /// All of this scope that name a calendar: its first list is complete.
    FirstList(Scope),
}

impl CalendarChange {
    /// Whether it concerns a CronJob of this namespace that names this calendar.
    pub(crate) fn concerns(&self, namespace: &str, name: &str) -> bool {
        match self {
            CalendarChange::Nothing => false,
            CalendarChange::Of(changed) => changed.contains(&(namespace.into(), name.into())),
            CalendarChange::FirstList(scope) => scope.contains(namespace),
        }
    }
}

impl Calendars {
    /// Those of these scopes. None of a scope is known before it has been listed.
    pub fn of_scopes(scopes: &[Scope]) -> Calendars {
        let known = Known {
            unlisted: scopes.to_vec(),
            ..Known::default()
        };
        Calendars(Some(Arc::new(Mutex::new(known))))
    }

    /// Some of those that exist: nothing is known of the others.
    pub fn partial() -> Calendars {
        let known = Known {
            is_partial: true,
            ..Known::default()
        };
        Calendars(Some(Arc::new(Mutex::new(known))))
    }

    /// Whether the calendars of a namespace are known, or none are read.
    pub fn are_known_in(&self, namespace: &str) -> bool {
        self.known().is_none_or(|known| known.has_listed(namespace))
    }

    /// Gives a CronJob the calendar that it names, or the problem.
    pub fn resolve(&self, namespace: &str, schedule: &mut CronJobSchedule) {
        let Some(not_on) = &schedule.options().not_on else {
            return;
        };
        if let Some(found) = self.find(namespace, &not_on.name) {
            schedule.set_calendar(found);
        }
    }

    /// `None` if nothing is known of it.
    fn find(&self, namespace: &str, name: &str) -> Option<Result<Arc<Calendar>, String>> {
        let Some(known) = self.known() else {
            let problem = "this installation reads no ConfigMaps; set the chart value calendars.enabled, or --calendars \
                           of cronwheel run";
            return Some(Err(problem.to_owned()));
        };
        if !known.has_listed(namespace) {
            return None;
        }
        match known.calendars.get(&(namespace.into(), name.into())) {
            Some(Ok(calendar)) => Some(Ok(Arc::clone(calendar))),
            Some(Err(problem)) => Some(Err(format!("the ConfigMap cannot be used: {problem}"))),
            None if known.is_partial => None,
            None if known.of_namespace(namespace).count() >= NAMESPACE_CALENDARS_MAX => Some(Err(format!(
                "the namespace has {NAMESPACE_CALENDARS_MAX} calendars, and no more are used; delete some of them, and \
                 create this one again"
            ))),
            None => Some(Err(format!(
                "the namespace has no ConfigMap of this name with the label {CALENDAR_LABEL}=true; create it, or add the \
                 label"
            ))),
        }
    }

    /// Handles an update. Returns the CronJobs that it concerns.
    pub(crate) fn apply(&self, update: CalendarUpdate) -> CalendarChange {
        let Some(mut known) = self.known() else {
            return CalendarChange::Nothing;
        };
        match update {
            CalendarUpdate::ListBegun(scope) => {
                known.listing.insert(scope, BTreeSet::new());
                CalendarChange::Nothing
            }
            CalendarUpdate::Applied {
                namespace,
                name,
                calendar,
            } => known.insert((namespace, name), calendar),
            CalendarUpdate::Removed { namespace, name } => known.remove([(namespace, name)].into()),
            CalendarUpdate::ListDone(scope) => known.end_list(&scope),
        }
    }

    /// Locks them; `None` if none are read. They are consistent after every statement that can panic.
    fn known(&self) -> Option<MutexGuard<'_, Known>> {
        let known = self.0.as_ref()?;
        Some(known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn insert(&mut self, key: Key, calendar: ReadCalendar) -> CalendarChange {
        for (scope, listed) in &mut self.listing {
            if scope.contains(&key.0) {
                listed.insert(key.clone());
            }
        }
        if self.calendars.get(&key) == Some(&calendar) {
            return CalendarChange::Nothing;
        }
        let Some(calendar) = self.within_limits(&key, calendar) else {
            return CalendarChange::Nothing;
        };
        if self.calendars.get(&key) == Some(&calendar) {
            return CalendarChange::Nothing;
        }
        self.n_entries += n_entries(&calendar);
        let former = self.calendars.insert(key.clone(), calendar);
        self.n_entries -= former.as_ref().map_or(0, n_entries);
        self.change_of([key].into())
    }

    /// The calendar, or the limit that it exceeds. `None` if the namespace has no place for another one.
    fn within_limits(&self, key: &Key, calendar: ReadCalendar) -> Option<ReadCalendar> {
        let others = self.of_namespace(&key.0).filter(|(other, _)| *other != key);
        let sizes = others.map(|(_, calendar)| n_entries(calendar));
        let (n_others, n_entries_of_others) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
        if n_others >= NAMESPACE_CALENDARS_MAX {
            return None;
        }
        if n_entries_of_others + n_entries(&calendar) > NAMESPACE_ENTRIES_MAX {
            let problem = format!("the calendars of the namespace have more than {NAMESPACE_ENTRIES_MAX} dates");
            return Some(Err(problem.into()));
        }
        let n_former = self.calendars.get(key).map_or(0, n_entries);
        if self.n_entries - n_former + n_entries(&calendar) > ENTRIES_MAX {
            let problem = format!("the calendars of all namespaces have more than {ENTRIES_MAX} dates");
            return Some(Err(problem.into()));
        }
        Some(calendar)
    }

    /// The calendars of a namespace.
    fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = (&Key, &ReadCalendar)> {
        let first: Key = (namespace.into(), "".into());
        let later = self.calendars.range(first.clone()..);
        later.take_while(move |((namespace, _), _)| *namespace == first.0)
    }

    /// Whether each scope that contains a namespace has been listed.
    fn has_listed(&self, namespace: &str) -> bool {
        !self.unlisted.iter().any(|scope| scope.contains(namespace))
    }

    /// A change of these calendars. It concerns no CronJob of a namespace that is not listed yet.
    fn change_of(&self, mut keys: BTreeSet<Key>) -> CalendarChange {
        keys.retain(|(namespace, _)| self.has_listed(namespace));
        if keys.is_empty() {
            CalendarChange::Nothing
        } else {
            CalendarChange::Of(keys)
        }
    }

    fn remove(&mut self, mut keys: BTreeSet<Key>) -> CalendarChange {
        keys.retain(|key| {
            let removed = self.calendars.remove(key);
            self.n_entries -= removed.as_ref().map_or(0, n_entries);
            removed.is_some()
        });
        self.change_of(keys)
    }

    fn end_list(&mut self, scope: &Scope) -> CalendarChange {
        let listed = self.listing.remove(scope).unwrap_or_default();
        let of_scope = self.calendars.keys().filter(|(namespace, _)| scope.contains(namespace));
        let gone = of_scope.filter(|key| !listed.contains(*key)).cloned().collect();
        let removed = self.remove(gone);
        let n_unlisted = self.unlisted.len();
        self.unlisted.retain(|unlisted| unlisted != scope);
        if self.unlisted.len() < n_unlisted {
            CalendarChange::FirstList(scope.clone())
        } else {
            removed
        }
    }
}

fn n_entries(calendar: &ReadCalendar) -> usize {
    calendar.as_ref().map_or(0, |calendar| calendar.stretches().len())
}

#[cfg(test)]
mod tests;

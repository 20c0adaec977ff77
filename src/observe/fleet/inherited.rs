//! What CronJobs get from their namespaces: defaults of options, freezes, and the dates of calendars.
//!
//! A change counts from its observation on. What becomes known later than the CronJobs counts for all slots: it may be as
//! old as they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{Fleet, cron_job::CronJob, cron_jobs::CronJobKey, freezes::Freezes, is_in, second::Second};
use crate::{
    observe::facts::{CalendarFacts, CronJobFacts, FreezeSpan, NamespaceFacts, Record},
    schedule::options::NamespaceOptions,
    shard::{CalendarUpdate, Calendars, Scope, Uid, calendars::CalendarChange, hash::spread_hash},
};

/// What the namespaces say.
#[derive(Debug)]
pub(super) struct Inherited {
    /// The namespaces with options.
    names: BTreeMap<Uid, Box<str>>,
    options: BTreeMap<Box<str>, Arc<NamespaceOptions>>,
    pub(super) freezes: Freezes,
    /// When the namespaces were last known; `None` as the name is the whole cluster.
    known: BTreeMap<Option<Box<str>>, Known>,
    /// The end of the observation in the history.
    pub(super) loaded_until: Option<Second>,
    calendars: Calendars,
    calendar_names: BTreeMap<Uid, (Box<str>, Box<str>)>,
    /// Whether any CronJob names a calendar.
    needs_calendars: bool,
}

/// The time for which the namespaces of a scope are known.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// The watch is current.
    Now,
    /// It was, until then.
    Until(Second),
}

/// Why facts differ from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// They changed.
    Change,
    /// They were not known before.
    News,
}

impl Default for Inherited {
    fn default() -> Inherited {
        Inherited {
            names: BTreeMap::new(),
            options: BTreeMap::new(),
            freezes: Freezes::default(),
            known: BTreeMap::new(),
            loaded_until: None,
            calendars: Calendars::of_scopes(&[Scope::Cluster]),
            calendar_names: BTreeMap::new(),
            needs_calendars: false,
        }
    }
}

impl Inherited {
    /// Adds to a CronJob what its namespace says. `has_more` tells that it may have something of it already.
    fn complete(&self, facts: &mut CronJobFacts, has_more: bool) {
        let options = self.options.get(&facts.namespace);
        if options.is_some() || has_more {
            let hash = spread_hash(&facts.uid);
            facts.schedule.inherit(options.map(AsRef::as_ref), hash);
        }
        self.calendars.resolve(&facts.namespace, &mut facts.schedule);
    }

    /// When the options of a namespace were last known. `None` if they never were.
    fn seen(&self, namespace: &str, now: Second) -> Option<Second> {
        let known = self.known.iter();
        let known = known.filter(|(scope, _)| scope.as_deref().is_none_or(|scope| scope == namespace));
        let seen = known.map(|(_, known)| match known {
            Known::Now => now,
            Known::Until(until) => *until,
        });
        let of_history = self.loaded_until.filter(|_| self.freezes.has(namespace));
        seen.max().or(of_history)
    }

    fn is_known(&self, namespace: &str) -> bool {
        let mut scopes = self.known.keys();
        scopes.any(|scope| scope.as_deref().is_none_or(|scope| scope == namespace))
    }
}

impl Fleet {
    /// The scopes of the calendars. To be called before anything is known.
    pub(super) fn set_calendar_scopes(&mut self, scopes: &[Scope]) {
        self.inherited.calendars = Calendars::of_scopes(scopes);
    }

    /// Completes a CronJob before it is used.
    pub(super) fn complete(&mut self, facts: &mut CronJobFacts) {
        self.inherited.complete(facts, false);
        self.inherited.needs_calendars |= facts.schedule.options().not_on.is_some();
    }

    /// Whether any CronJob names a calendar, so that calendars should be read.
    pub fn needs_calendars(&self) -> bool {
        self.inherited.needs_calendars
    }

    /// A namespace was listed, created or changed.
    pub fn apply_namespace(&mut self, facts: NamespaceFacts, now: Timestamp) {
        let NamespaceFacts {
            uid,
            name,
            options,
            freeze_changed,
        } = facts;
        let is_empty = options.is_none();
        self.follow_options(&name, options.map(Arc::from), freeze_changed, now);
        if is_empty {
            self.inherited.names.remove(&uid);
        } else {
            self.inherited.names.insert(uid, name);
        }
    }

    /// A namespace was deleted.
    pub fn remove_namespace(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(name) = self.inherited.names.remove(uid) {
            self.follow_options(&name, None, None, now);
        }
    }

    /// A list of namespaces is complete. `namespace` is the only one that it may contain.
    pub fn retain_namespaces(&mut self, listed: &BTreeSet<Uid>, namespace: Option<&str>, now: Timestamp) {
        let names = self.inherited.names.iter();
        let here = names.filter(|(_, name)| namespace.is_none_or(|namespace| ***name == *namespace));
        let gone: Vec<Uid> = here
            .filter(|(uid, _)| !listed.contains(*uid))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in gone {
            self.remove_namespace(&uid, now);
        }
        self.inherited.known.insert(namespace.map(Box::from), Known::Now);
    }

    /// Namespaces can no longer be read. What they last said stays.
    pub fn lose_namespaces(&mut self, namespace: Option<&str>, now: Timestamp) {
        let key = namespace.map(Box::from);
        if let Some(known) = self
            .inherited
            .known
            .get_mut(&key)
            .filter(|known| matches!(known, Known::Now))
        {
            *known = Known::Until(Second::floor(now));
        }
    }

    /// The watch of namespaces continues where it was.
    pub fn regain_namespaces(&mut self, namespace: Option<&str>) {
        if let Some(known) = self.inherited.known.get_mut(&namespace.map(Box::from)) {
            *known = Known::Now;
        }
    }

    /// A calendar was listed, created or changed.
    pub fn apply_calendar(&mut self, facts: CalendarFacts, now: Timestamp) {
        let CalendarFacts {
            uid,
            namespace,
            name,
            calendar,
        } = facts;
        let key = (namespace.clone(), name.clone());
        self.inherited.calendar_names.insert(uid, key);
        self.follow_calendars(
            CalendarUpdate::Applied {
                namespace,
                name,
                calendar,
            },
            now,
        );
    }

    /// A calendar was deleted, or has no longer its label.
    pub fn remove_calendar(&mut self, uid: &Uid, now: Timestamp) {
        if let Some((namespace, name)) = self.inherited.calendar_names.remove(uid) {
            self.follow_calendars(CalendarUpdate::Removed { namespace, name }, now);
        }
    }

    /// A list of calendars begins. `namespace` is that of the list.
    pub fn begin_calendars(&mut self, namespace: Option<&str>, now: Timestamp) {
        self.follow_calendars(CalendarUpdate::ListBegun(scope_of(namespace)), now);
    }

    /// Calendars that a new list does not contain are gone. `namespace` is that of the list.
    pub fn retain_calendars(&mut self, listed: &BTreeSet<Uid>, namespace: Option<&str>, now: Timestamp) {
        let is_here = |of: &str| namespace.is_none_or(|namespace| of == namespace);
        let names = &mut self.inherited.calendar_names;
        names.retain(|uid, (of, _)| listed.contains(uid) || !is_here(of));
        self.follow_calendars(CalendarUpdate::ListDone(scope_of(namespace)), now);
    }

    /// The freeze that holds a CronJob back at an instant, with its reason.
    pub(super) fn present_freeze(&self, cron_job: &CronJob, now: Timestamp) -> Option<(Timestamp, &str)> {
        let freezes = &self.inherited.freezes;
        let span = freezes.present(&cron_job.name.namespace, Second::floor(now))?;
        (!cron_job.ignores_options()).then(|| (span.end_timestamp(), &*span.reason))
    }

    /// The frozen namespaces with CronJobs that follow the freeze: the name, the end and the reason of each.
    pub fn frozen_namespaces(&self, now: Timestamp) -> Vec<(Box<str>, Timestamp, Box<str>)> {
        let is_followed = |namespace: &str| {
            let mut cron_jobs = self.cron_jobs.of_namespace(namespace);
            cron_jobs.any(|cron_job| !cron_job.ignores_options())
        };
        let present = self.inherited.freezes.all_present(Second::floor(now));
        let present = present.filter(|(namespace, _)| is_followed(namespace));
        present
            .map(|(namespace, span)| (namespace.into(), span.end_timestamp(), span.reason.clone()))
            .collect()
    }

    /// Adds a freeze of the history.
    pub(super) fn load_freeze(&mut self, span: &FreezeSpan) {
        self.inherited.freezes.load(span);
    }

    fn follow_options(
        &mut self,
        namespace: &str,
        options: Option<Arc<NamespaceOptions>>,
        freeze_changed: Option<Timestamp>,
        now: Timestamp,
    ) {
        let second = Second::floor(now);
        let seen = self.inherited.seen(namespace, second);
        let freeze = options.as_ref().and_then(|options| options.freeze.as_ref());
        let freezes = &mut self.inherited.freezes;
        let span = freezes.follow(namespace, freeze, freeze_changed, (seen, second));
        let has_freeze_changed = span.is_some();
        if let Some(span) = span {
            self.outbox.push(Record::Freeze(span));
            self.is_forecast_stale = true;
        }
        let before = match options {
            Some(options) => self.inherited.options.insert(namespace.into(), options),
            None => self.inherited.options.remove(namespace),
        };
        let has_changed = before.as_ref() != self.inherited.options.get(namespace);
        if !has_changed && !has_freeze_changed {
            return;
        }
        let cause = if self.inherited.is_known(namespace) {
            Cause::Change
        } else {
            Cause::News
        };
        let here = self.cron_jobs.iter();
        let here = here.filter(|(_, cron_job)| is_in(cron_job, Some(namespace)) && cron_job.facts.is_some());
        for key in here.map(|(key, _)| key).collect::<Vec<_>>() {
            self.inherit(key, cause, now);
            self.touch(key, now);
        }
    }

    fn follow_calendars(&mut self, update: CalendarUpdate, now: Timestamp) {
        let change = self.inherited.calendars.apply(update);
        self.inherit_calendars(&change, now);
    }

    fn inherit_calendars(&mut self, change: &CalendarChange, now: Timestamp) {
        let cause = match change {
            CalendarChange::Nothing => return,
            CalendarChange::Of(_) => Cause::Change,
            CalendarChange::FirstList(_) => Cause::News,
        };
        let is_meant = |cron_job: &CronJob| {
            let facts = cron_job.facts.as_deref();
            let not_on = facts.and_then(|facts| facts.schedule.options().not_on.as_ref());
            not_on.is_some_and(|not_on| change.concerns(&cron_job.name.namespace, &not_on.name))
        };
        let meant = self.cron_jobs.iter().filter(|(_, cron_job)| is_meant(cron_job));
        for key in meant.map(|(key, _)| key).collect::<Vec<_>>() {
            self.inherit(key, cause, now);
            self.touch(key, now);
        }
    }

    /// Gives a CronJob what its namespace says now.
    fn inherit(&mut self, key: CronJobKey, cause: Cause, now: Timestamp) {
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        let Some(before) = cron_job.facts.as_deref() else {
            return;
        };
        let mut facts = before.clone();
        self.inherited.complete(&mut facts, true);
        let is_same = facts.schedule.options() == before.schedule.options();
        if is_same && !facts.schedule.differs_from(&before.schedule) {
            return;
        }
        self.is_forecast_stale = true;
        match cause {
            Cause::Change => {
                if cron_job.set_facts(facts, now) {
                    self.outbox.push_change(cron_job, now);
                }
            }
            Cause::News => cron_job.learn(facts),
        }
    }
}

fn scope_of(namespace: Option<&str>) -> Scope {
    namespace.map_or(Scope::Cluster, |namespace| Scope::Namespace(namespace.into()))
}

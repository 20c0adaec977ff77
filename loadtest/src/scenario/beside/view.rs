//! What one installation did in some minutes, by the audit log.

use jiff::Timestamp;

use super::{BEFORE_SLOT, report::Period};
use crate::{
    audit::Request,
    generator::{Load, SyntheticCronJob},
    slots::Slots,
    tracker::{JobNames, Tally},
};

/// The requests of an installation and of the built-in controller, and the namespaces that are its own.
pub(super) struct View<'a> {
    pub(super) load: &'a Load,
    pub(super) ours: &'a [Request],
    pub(super) theirs: &'a [Request],
    pub(super) existing: JobNames,
    /// The namespaces in which it may store nothing.
    pub(super) elsewhere: Vec<String>,
}

/// The bounds of the measured minutes.
pub(super) fn bounds(slots: &Slots) -> (Timestamp, Timestamp) {
    (
        slots.first_measured().start() - BEFORE_SLOT,
        slots.end().start() - BEFORE_SLOT,
    )
}

fn is_stored_write(one: &Request) -> bool {
    one.is_write() && one.code < 300 && one.resource != "leases"
}

impl View<'_> {
    /// The figures of these slots.
    pub(super) fn period(&self, slots: &Slots) -> Period {
        let (begin, end) = bounds(slots);
        let within = |one: &&Request| (begin..end).contains(&one.received);
        let count = |requests: &[Request], is_it: &dyn Fn(&Request) -> bool| {
            requests.iter().filter(within).filter(|one| is_it(one)).count()
        };
        let managed = self.load.namespaces();
        Period {
            managed: self.tally(&self.load.cron_jobs(), slots),
            n_unmanaged_missed: None,
            n_stored_by_built_in: count(self.theirs, &|one| {
                is_stored_write(one) && managed.contains(&one.namespace)
            }),
            n_refused_to_built_in: count(self.theirs, &|one| one.is_write() && one.code == 403),
            n_refused: count(self.ours, &|one| one.code == 403),
            n_stored_outside: count(self.ours, &|one| {
                is_stored_write(one) && self.elsewhere.contains(&one.namespace)
            }),
            n_conflicts: count(self.ours, &Request::is_status_conflict),
            n_superseded: 0,
            n_deletes_missing: count(self.ours, &|one| one.verb == "delete" && one.code == 404),
        }
    }

    fn tally(&self, cron_jobs: &[SyntheticCronJob], slots: &Slots) -> Tally {
        let all: Vec<Request> = self.ours.iter().chain(self.theirs).cloned().collect();
        Tally::of(cron_jobs, slots, &all, &self.existing)
    }
}

impl Period {
    /// Adds what the built-in controller missed in the namespaces without a label.
    pub(super) fn with_unmanaged(self, view: &View<'_>, unmanaged: &Load, slots: &Slots) -> Period {
        Period {
            n_unmanaged_missed: Some(view.tally(&unmanaged.cron_jobs(), slots).missed.len()),
            ..self
        }
    }
}

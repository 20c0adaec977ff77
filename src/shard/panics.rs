//! Panics on one CronJob, which stop nothing else.
//!
//! A fault of cronwheel that one CronJob or one of its Jobs brings out must not end the process, nor the process that leads
//! the shard next. So the decoding of one object and the handling of one CronJob are contained: after a panic, the CronJob
//! starts nothing until another version of it is known, and all others go on.
//!
//! A process that runs out of memory or of stack still ends, as does one that aborts.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, Location, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of panics that wait to be logged. Beyond it, they are only counted.
const UNREPORTED_MAX: usize = 100;

thread_local! {
    /// Whether a function is contained on this thread.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// The place in the source of the panic that is being contained, if the panic hook has noted it.
    static LOCATION: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Calls a function. Returns the message of its panic if it panics, and its place in the source if the panic hook notes it.
/// What the function changed before is up to the caller.
pub fn contain<T>(function: impl FnOnce() -> T) -> Result<T, Box<str>> {
    let was_contained = IS_CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(function));
    IS_CONTAINED.set(was_contained);
    result.map_err(|panic| {
        let message = message(&*panic);
        match LOCATION.take() {
            Some(location) => format!("{message}, at {location}").into(),
            None => message.into(),
        }
    })
}

/// Notes the place of a panic, for the panic hook. Returns whether the panic is contained, so that its message is reported
/// by what contains it. A second panic before the first is contained ends the process, and is not.
pub fn note_contained(location: Option<&Location<'_>>) -> bool {
    IS_CONTAINED.get()
        && LOCATION.with_borrow_mut(|noted| {
            let is_first = noted.is_none();
            *noted = Some(location.map_or_else(|| "an unknown place".into(), |location| location.to_string().into()));
            is_first
        })
}

/// The message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let fixed = panic.downcast_ref::<&'static str>().copied();
    let message = fixed.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("a panic without a message")
}

/// A contained panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainedPanic {
    /// Namespace and name of the CronJob, or its uid if it is not known.
    pub cron_job: Box<str>,
    /// The message of the panic, with its place in the source.
    pub message: Box<str>,
}

/// The contained panics of a replica. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panics(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    n_total: u64,
    n_cron_jobs: u64,
    unreported: Vec<ContainedPanic>,
}

/// A CronJob on which cronwheel panicked. Dropped when another version of it is known.
#[derive(Debug)]
pub(crate) struct PanickedCronJob(Panics);

impl Drop for PanickedCronJob {
    fn drop(&mut self) {
        self.0.counted().n_cron_jobs -= 1;
    }
}

/// A test that causes a contained panic takes it. In all others it is a failure.
#[cfg(test)]
impl Drop for Counted {
    fn drop(&mut self) {
        assert!(
            self.unreported.is_empty() || std::thread::panicking(),
            "{:?}",
            self.unreported
        );
    }
}

impl Panics {
    pub(crate) fn add(&self, panic: ContainedPanic) {
        let mut counted = self.counted();
        counted.n_total += 1;
        if counted.unreported.len() < UNREPORTED_MAX {
            counted.unreported.push(panic);
        }
    }

    /// Counts a CronJob on which cronwheel panicked.
    pub(crate) fn cron_job(&self) -> PanickedCronJob {
        self.counted().n_cron_jobs += 1;
        PanickedCronJob(self.clone())
    }

    /// The current number of CronJobs on which cronwheel panicked.
    pub(super) fn n_cron_jobs(&self) -> u64 {
        self.counted().n_cron_jobs
    }

    /// The number of all panics.
    pub(super) fn n_total(&self) -> u64 {
        self.counted().n_total
    }

    /// Removes and returns the panics since the last call.
    pub(crate) fn take(&self) -> Vec<ContainedPanic> {
        std::mem::take(&mut self.counted().unreported)
    }

    /// Locks the panics. They are consistent after every statement, so a panic elsewhere does not invalidate them.
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_returned_with_its_message() {
        assert_eq!(contain(|| 7), Ok(7));
        let fixed: Result<(), _> = contain(|| panic!("fixed"));
        assert_eq!(fixed, Err("fixed".into()));
        let number = 7;
        let formatted: Result<(), _> = contain(|| panic!("formatted {number}"));
        assert_eq!(formatted, Err("formatted 7".into()));
    }

    #[test]
    fn a_noted_place_is_in_the_message_of_its_panic_only() {
        let here = Location::caller();
        assert!(!note_contained(Some(here)), "nothing is contained");
        let noted: Result<(), _> = contain(|| {
            let inner: Result<(), _> = contain(|| panic!("inner"));
            assert_eq!(inner, Err("inner".into()));
            assert!(note_contained(Some(here)));
            panic!("outer")
        });
        assert_eq!(noted, Err(format!("outer, at {here}").into()));
        let second: Result<(), _> = contain(|| {
            assert!(note_contained(None));
            assert!(!note_contained(None), "the process is about to end");
            panic!("second")
        });
        assert_eq!(second, Err("second, at an unknown place".into()));
        let later: Result<(), _> = contain(|| panic!("later"));
        assert_eq!(later, Err("later".into()));
    }

    #[test]
    fn no_profile_aborts_instead_of_a_panic() {
        assert!(!include_str!("../../Cargo.toml").contains("panic = "));
    }

    #[test]
    fn a_cron_job_counts_until_another_version_of_it_is_known() {
        let panics = Panics::default();
        let (first, second) = (panics.cron_job(), panics.cron_job());
        assert_eq!(panics.n_cron_jobs(), 2);
        drop(first);
        assert_eq!(panics.n_cron_jobs(), 1);
        drop(second);
        assert_eq!(panics.n_cron_jobs(), 0);
    }

    #[test]
    fn all_panics_are_counted_and_a_bounded_number_is_reported() {
        let panics = Panics::default();
        for _ in 0..UNREPORTED_MAX + 5 {
            panics.add(ContainedPanic {
                cron_job: "shop/backup".into(),
                message: "a fault".into(),
            });
        }
        assert_eq!(panics.take().len(), UNREPORTED_MAX);
        assert_eq!(panics.take(), []);
        assert_eq!(panics.n_total(), UNREPORTED_MAX as u64 + 5);
    }
}

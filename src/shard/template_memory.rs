//! The memory for templates and metadata of CronJobs, shared between the shards of a replica and between namespaces.
//!
//! A namespace may use as many bytes as remain free. A single namespace therefore gets half of the memory at most, two
//! large ones a third each, and some memory is always left for another. A stored text stays while it does not grow.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A memory budget. Clones share one account.
#[derive(Clone, Debug)]
pub struct TemplateMemory(Arc<Mutex<Account>>);

/// The use of a [`TemplateMemory`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateUse {
    /// Bytes in use.
    pub n_bytes: u64,
    /// CronJobs whose template is not in memory.
    pub n_not_kept: u64,
}

#[derive(Debug)]
struct Account {
    bytes_max: u64,
    in_use: TemplateUse,
    /// The bytes of each namespace that uses memory.
    by_namespace: BTreeMap<Arc<str>, u64>,
}

/// The parts of a CronJob that may be held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptPart {
    /// Template and metadata.
    All,
    /// Only the metadata.
    Metadata,
    /// Neither.
    Nothing,
}

/// The memory of one CronJob, released on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    memory: TemplateMemory,
    namespace: Arc<str>,
    n_bytes: u64,
    part: KeptPart,
}

impl TemplateMemory {
    /// Default size in MiB: 100,000 CronJobs of 5 KiB take 500 MiB, which one namespace alone may use of 1 GiB.
    pub const MIB_DEFAULT: u32 = 1024;

    /// Creates a budget of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> TemplateMemory {
        TemplateMemory(Arc::new(Mutex::new(Account {
            bytes_max,
            in_use: TemplateUse::default(),
            by_namespace: BTreeMap::new(),
        })))
    }

    /// Sets the size of the budget. Texts already in memory stay.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.account().bytes_max = bytes_max;
    }

    /// The current use.
    pub fn in_use(&self) -> TemplateUse {
        self.account().in_use
    }

    /// Creates an empty reservation for a CronJob of this namespace.
    pub(super) fn reservation(&self, namespace: &str) -> Reservation {
        let mut account = self.account();
        let known = account.by_namespace.get_key_value(namespace);
        let namespace = known.map_or_else(|| namespace.into(), |(known, _)| Arc::clone(known));
        account.in_use.n_not_kept += 1;
        Reservation {
            memory: self.clone(),
            namespace,
            n_bytes: 0,
            part: KeptPart::Nothing,
        }
    }

    /// Locks the account. Ignoring poisoning is safe: the account is consistent after every statement that can panic.
    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TemplateMemory {
    fn default() -> TemplateMemory {
        TemplateMemory::new(u64::from(TemplateMemory::MIB_DEFAULT) << 20)
    }
}

impl Account {
    fn may_keep(&self, namespace: &str, n_bytes: u64) -> bool {
        let of_namespace = self.by_namespace.get(namespace).copied().unwrap_or_default();
        let n_free = self.bytes_max.saturating_sub(self.in_use.n_bytes);
        of_namespace + n_bytes <= n_free.saturating_sub(n_bytes)
    }

    fn reserve(&mut self, reservation: &Reservation) {
        self.in_use.n_bytes += reservation.n_bytes;
        self.in_use.n_not_kept += u64::from(reservation.part != KeptPart::All);
        if reservation.n_bytes > 0 {
            *self.by_namespace.entry(Arc::clone(&reservation.namespace)).or_default() += reservation.n_bytes;
        }
    }

    fn release(&mut self, reservation: &Reservation) {
        self.in_use.n_bytes -= reservation.n_bytes;
        self.in_use.n_not_kept -= u64::from(reservation.part != KeptPart::All);
        if let Some(of_namespace) = self.by_namespace.get_mut(&reservation.namespace) {
            *of_namespace -= reservation.n_bytes;
            if *of_namespace == 0 {
                self.by_namespace.remove(&reservation.namespace);
            }
        }
    }
}

impl Reservation {
    /// Reserves memory for a new version of the CronJob. Returns the parts that may be held in memory.
    pub(super) fn renew(&mut self, template_bytes: usize, metadata_bytes: usize) -> KeptPart {
        let (template_bytes, metadata_bytes) = (template_bytes as u64, metadata_bytes as u64);
        let all_bytes = template_bytes.saturating_add(metadata_bytes);
        // The usual case: an event that changes only the status.
        if self.part == KeptPart::All && self.n_bytes == all_bytes {
            return KeptPart::All;
        }
        let mut account = self.memory.account();
        account.release(self);
        let may_keep = |n_bytes| n_bytes <= self.n_bytes || account.may_keep(&self.namespace, n_bytes);
        (self.part, self.n_bytes) = if may_keep(all_bytes) {
            (KeptPart::All, all_bytes)
        } else if may_keep(metadata_bytes) {
            (KeptPart::Metadata, metadata_bytes)
        } else {
            (KeptPart::Nothing, 0)
        };
        account.reserve(self);
        self.part
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.account().release(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reserves memory for a template of `n_bytes` in a namespace, without metadata.
    fn reserve(memory: &TemplateMemory, namespace: &str, n_bytes: usize) -> (Reservation, KeptPart) {
        let mut reservation = memory.reservation(namespace);
        let part = reservation.renew(n_bytes, 0);
        (reservation, part)
    }

    /// Reserves `n_templates` templates in a namespace. Returns how many of them may be held in memory.
    fn fill(memory: &TemplateMemory, namespace: &str, n_templates: usize) -> (Vec<Reservation>, usize) {
        let reservations = (0..n_templates).map(|_| reserve(memory, namespace, 10));
        let (reservations, parts): (Vec<_>, Vec<_>) = reservations.unzip();
        let n_kept = parts.iter().filter(|part| **part == KeptPart::All).count();
        (reservations, n_kept)
    }

    #[test]
    fn a_namespace_uses_at_most_as_much_memory_as_stays_free() {
        let memory = TemplateMemory::new(1_000);
        let (_first, n_first) = fill(&memory, "a", 200);
        let (_second, n_second) = fill(&memory, "b", 200);
        let (_third, n_third) = fill(&memory, "c", 200);
        assert_eq!([n_first, n_second, n_third], [50, 25, 12]);
        let n_not_kept = 600 - 50 - 25 - 12;
        assert_eq!(
            memory.in_use(),
            TemplateUse {
                n_bytes: 870,
                n_not_kept
            }
        );
    }

    #[test]
    fn namespaces_that_grow_together_get_equal_shares() {
        let memory = TemplateMemory::new(1_000);
        let mut kept = [0, 0, 0];
        let mut reservations = Vec::new();
        for _ in 0..100 {
            for (namespace, n_kept) in ["a", "b", "c"].into_iter().zip(&mut kept) {
                let (reservation, part) = reserve(&memory, namespace, 10);
                reservations.push(reservation);
                *n_kept += usize::from(part == KeptPart::All);
            }
        }
        assert_eq!(kept, [25, 25, 25]);
    }

    #[test]
    fn dropped_reservations_free_their_memory() {
        let memory = TemplateMemory::new(1_000);
        let (reservations, _) = fill(&memory, "a", 100);
        drop(reservations);
        assert_eq!(memory.in_use(), TemplateUse::default());
        assert!(memory.account().by_namespace.is_empty());
        assert_eq!(reserve(&memory, "a", 500).1, KeptPart::All);
    }

    #[test]
    fn a_namespace_that_uses_no_memory_has_no_entry() {
        let memory = TemplateMemory::new(1_000);
        let (mut reservation, part) = reserve(&memory, "a", 2_000);
        let n_namespaces = || memory.account().by_namespace.len();
        assert_eq!((part, n_namespaces()), (KeptPart::Metadata, 0));
        assert_eq!(
            (reservation.renew(2_000, 2_000), n_namespaces()),
            (KeptPart::Nothing, 0)
        );
        assert_eq!((reservation.renew(400, 100), n_namespaces()), (KeptPart::All, 1));
        assert_eq!(
            (reservation.renew(2_000, 2_000), n_namespaces()),
            (KeptPart::Nothing, 0)
        );
    }

    #[test]
    fn metadata_is_kept_if_the_template_is_too_large() {
        let memory = TemplateMemory::new(1_000);
        let mut reservation = memory.reservation("a");
        assert_eq!(reservation.renew(900, 100), KeptPart::Metadata);
        assert_eq!(
            memory.in_use(),
            TemplateUse {
                n_bytes: 100,
                n_not_kept: 1
            }
        );
        assert_eq!(reservation.renew(900, 501), KeptPart::Nothing);
        assert_eq!(reservation.renew(300, 100), KeptPart::All);
        assert_eq!(
            memory.in_use(),
            TemplateUse {
                n_bytes: 400,
                n_not_kept: 0
            }
        );
    }

    #[test]
    fn a_reservation_that_does_not_grow_is_kept() {
        let memory = TemplateMemory::new(1_000);
        let (mut early, _) = reserve(&memory, "a", 400);
        let (_others, n_kept) = fill(&memory, "b", 100);
        assert_eq!(n_kept, 30);
        assert_eq!(early.renew(400, 0), KeptPart::All);
        assert_eq!(early.renew(390, 0), KeptPart::All);
        assert_eq!(early.renew(400, 0), KeptPart::Metadata);
    }
}

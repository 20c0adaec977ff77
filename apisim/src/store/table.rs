//! The objects of one kind and the log of their changes.
//!
//! Invariant: undoing the changes in the log above a version, newest first, gives the objects at that version.

use std::{
    collections::{BTreeMap, VecDeque, btree_map},
    iter::Peekable,
    ops::Bound,
    sync::Arc,
};

use tokio::{sync::Notify, time::Instant};

use super::{Key, Stored};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The object after the change. For a deletion, its last state with the version of the deletion.
    pub(crate) object: Arc<Stored>,
    /// The object before the change.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The time of the change. Front ends use it to decide how long to hide the change.
    pub(crate) at: Instant,
}

/// Some changes since the requested version are no longer in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that is still available.
    pub(crate) oldest: u64,
}

/// The objects of a kind.
#[derive(Clone)]
pub(crate) struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Change>,
    log_capacity: usize,
    /// Changes up to this version may be missing from the log.
    compacted: u64,
    pub(super) changed: Arc<Notify>,
}

impl Table {
    pub(super) fn new(log_capacity: usize) -> Table {
        Table {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            log_capacity,
            compacted: 0,
            changed: Arc::new(Notify::new()),
        }
    }

    /// The prefix of the keys in a namespace. Empty for all namespaces.
    pub(crate) fn prefix(namespace: Option<&str>) -> String {
        namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the keys in a namespace, in order.
    pub(crate) fn keys_in(&self, namespace: &str) -> impl Iterator<Item = &Key> {
        let prefix = Table::prefix(Some(namespace));
        self.objects
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(move |key| key.as_str().starts_with(&prefix))
    }

    pub(super) fn put(&mut self, object: Arc<Stored>, previous: Option<Arc<Stored>>, at: Instant) {
        self.objects.insert(object.key.clone(), Arc::clone(&object));
        let kind = if previous.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        self.record(Change {
            kind,
            object,
            previous,
            at,
        });
    }

    pub(super) fn remove(&mut self, last: Arc<Stored>, previous: Arc<Stored>, at: Instant) {
        self.objects.remove(&last.key);
        self.record(Change {
            kind: ChangeKind::Deleted,
            object: last,
            previous: Some(previous),
            at,
        });
    }

    fn record(&mut self, change: Change) {
        if self.log.len() >= self.log_capacity
            && let Some(lost) = self.log.pop_front()
        {
            self.compacted = lost.object.version;
        }
        self.log.push_back(change);
        self.changed.notify_waiters();
    }

    /// Forgets changes up to a version. Watches that have already read them can continue.
    pub(super) fn compact(&mut self, version: u64) {
        while let Some(first) = self.log.front()
            && first.object.version <= version
        {
            self.compacted = first.object.version;
            self.log.pop_front();
        }
        self.changed.notify_waiters();
    }

    /// Forgets all changes and sets the oldest available version, which may be later than the last change.
    pub(super) fn forget_changes(&mut self, version: u64) {
        self.log.clear();
        self.compacted = version;
        self.changed.notify_waiters();
    }

    /// Returns the changes after a version, in order.
    pub(crate) fn changes_after(&self, version: u64) -> Result<impl Iterator<Item = &Change>, Compacted> {
        self.check(version)?;
        let from = self.first(|change| change.object.version > version);
        Ok(self.log.range(from..))
    }

    /// Returns the first change after an instant.
    pub(crate) fn first_change_after(&self, at: Instant) -> Option<&Change> {
        self.log.get(self.first(|change| change.at > at))
    }

    /// Returns the position of the first change for which `is_new` is true. The log is sorted: all later changes are
    /// new as well. Callers are seldom far behind, so the search starts at the end with growing steps.
    fn first(&self, is_new: impl Fn(&Change) -> bool) -> usize {
        let (mut old_below, mut new_from) = (0, self.log.len());
        let mut step = 1;
        while let Some(at) = self.log.len().checked_sub(step) {
            if !is_new(&self.log[at]) {
                old_below = at + 1;
                break;
            }
            new_from = at;
            step *= 2;
        }
        while old_below < new_from {
            let middle = old_below.midpoint(new_from);
            if is_new(&self.log[middle]) {
                new_from = middle;
            } else {
                old_below = middle + 1;
            }
        }
        new_from
    }

    /// Returns the oldest change in the log.
    pub(crate) fn first_change(&self) -> Option<&Change> {
        self.log.front()
    }

    fn check(&self, version: u64) -> Result<(), Compacted> {
        if version < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        Ok(())
    }

    /// Returns the objects at a version.
    pub(crate) fn view(&self, version: u64) -> Result<View<'_>, Compacted> {
        self.check(version)?;
        let mut undone = BTreeMap::new();
        for change in self
            .log
            .iter()
            .rev()
            .take_while(|change| change.object.version > version)
        {
            undone.insert(change.object.key.clone(), change.previous.as_ref());
        }
        Ok(View { table: self, undone })
    }
}

/// The objects of a kind at a version.
pub(crate) struct View<'a> {
    table: &'a Table,
    /// The objects that differ from the current ones. `None` means that the object did not exist.
    undone: BTreeMap<Key, Option<&'a Arc<Stored>>>,
}

impl<'a> View<'a> {
    /// Returns the objects whose keys start with `prefix` and follow `after`, in order.
    pub(crate) fn range(
        &self,
        prefix: &str,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'_, 'a> {
        let start = match after {
            Some(after) => Bound::Excluded(after.as_str()),
            None => Bound::Included(prefix),
        };
        let bounds = (start, Bound::Unbounded);
        let prefix = prefix.to_owned();
        Merged {
            current: self.table.objects.range::<str, _>(bounds).peekable(),
            undone: self.undone.range::<str, _>(bounds).peekable(),
        }
        .take_while(move |object| object.key.as_str().starts_with(&prefix))
    }
}

struct Merged<'a, 'b> {
    current: Peekable<btree_map::Range<'a, Key, Arc<Stored>>>,
    undone: Peekable<btree_map::Range<'b, Key, Option<&'a Arc<Stored>>>>,
}

impl<'a> Iterator for Merged<'a, '_> {
    type Item = &'a Arc<Stored>;

    fn next(&mut self) -> Option<&'a Arc<Stored>> {
        loop {
            match (self.current.peek(), self.undone.peek()) {
                (Some((current, _)), Some((undone, _))) if current < undone => {}
                (_, None) => {}
                (current, Some((undone, _))) => {
                    if current.is_some_and(|(current, _)| current == undone) {
                        self.current.next();
                    }
                    if let Some((_, Some(before))) = self.undone.next() {
                        return Some(before);
                    }
                    continue;
                }
            }
            return self.current.next().map(|(_, object)| object);
        }
    }
}

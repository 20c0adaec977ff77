//! The objects of one kind and the log of their changes.
//!
//! Invariant: undoing the changes of the log above a version, in reverse, gives the objects as they were at that version.

use std::{
    collections::{BTreeMap, VecDeque, btree_map},
    iter::Peekable,
    ops::Bound,
    sync::Arc,
};

use tokio::{sync::Notify, time::Instant};

use super::{Key, Stored};

/// What happened to an object.
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
    /// The object as it became; of a deletion the last state under the deletion's version.
    pub(crate) object: Arc<Stored>,
    /// As it was before.
    pub(crate) previous: Option<Arc<Stored>>,
    /// When it was made, by which front ends know how long they do not show it.
    pub(crate) at: Instant,
}

/// The changes since a version are no longer all known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that can still be asked for.
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

    /// What the keys of a namespace's objects begin with; of all namespaces', nothing.
    pub(crate) fn prefix(namespace: Option<&str>) -> String {
        namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The keys in a namespace, in order.
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

    /// Whoever has seen all that is forgotten may go on.
    pub(super) fn compact(&mut self, version: u64) {
        while let Some(first) = self.log.front()
            && first.object.version <= version
        {
            self.compacted = first.object.version;
            self.log.pop_front();
        }
        self.changed.notify_waiters();
    }

    /// Forgets everything before a version, which may be later than the last change.
    pub(super) fn forget_changes(&mut self, version: u64) {
        self.log.clear();
        self.compacted = version;
        self.changed.notify_waiters();
    }

    /// The changes after a version, in order.
    pub(crate) fn changes_after(&self, version: u64) -> Result<impl Iterator<Item = &Change>, Compacted> {
        self.check(version)?;
        let from = self.first(|change| change.object.version > version);
        Ok(self.log.range(from..))
    }

    /// The first change that was made after an instant.
    pub(crate) fn first_change_after(&self, at: Instant) -> Option<&Change> {
        self.log.get(self.first(|change| change.at > at))
    }

    /// The place of the first change that is new, in a log where those after a new one are new too. Who asks is seldom far
    /// behind, so it is looked for from the end, in steps that grow.
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

    /// The oldest change that is known.
    pub(crate) fn first_change(&self) -> Option<&Change> {
        self.log.front()
    }

    fn check(&self, version: u64) -> Result<(), Compacted> {
        if version < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        Ok(())
    }

    /// The objects as they were at a version.
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
    /// What was different, none where there was no object.
    undone: BTreeMap<Key, Option<&'a Arc<Stored>>>,
}

impl<'a> View<'a> {
    /// The objects whose keys begin with `prefix` and come after `after`, in order.
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

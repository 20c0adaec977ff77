//! A map of bounded size that forgets the entry that was used least recently.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

#[derive(Debug)]
pub(super) struct LeastRecentlyUsed<K, V> {
    capacity: usize,
    entries: HashMap<K, Entry<V>>,
    /// Keys by the number of their last use.
    by_use: BTreeMap<u64, K>,
    n_uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    last_use: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> LeastRecentlyUsed<K, V> {
    pub(super) fn new(capacity: usize) -> LeastRecentlyUsed<K, V> {
        LeastRecentlyUsed {
            capacity,
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            n_uses: 0,
        }
    }

    /// An entry, used thereby.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.n_uses += 1;
        if let Some(key) = self.by_use.remove(&entry.last_use) {
            self.by_use.insert(self.n_uses, key);
        }
        entry.last_use = self.n_uses;
        Some(&mut entry.value)
    }

    /// An entry, used thereby, new if it is not there.
    pub(super) fn get_or_insert(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) {
            self.insert(key.clone(), new());
        }
        self.get_mut(&key).expect("it was there or has been inserted")
    }

    /// Inserts or replaces an entry, used thereby.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.n_uses += 1;
        let last_use = self.n_uses;
        if let Some(replaced) = self.entries.insert(key.clone(), Entry { last_use, value }) {
            self.by_use.remove(&replaced.last_use);
        }
        self.by_use.insert(last_use, key);
        if self.entries.len() > self.capacity
            && let Some((_, forgotten)) = self.by_use.pop_first()
        {
            self.entries.remove(&forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeastRecentlyUsed;

    #[test]
    fn what_was_used_least_recently_is_forgotten_first() {
        let mut map = LeastRecentlyUsed::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        assert_eq!(map.get_mut(&"a"), Some(&mut 1));
        map.insert("c", 3);
        assert_eq!(map.get_mut(&"b"), None);
        map.insert("a", 4);
        assert_eq!(*map.get_or_insert("d", || 5), 5);
        assert_eq!(map.get_mut(&"c"), None);
        assert_eq!(map.get_mut(&"a"), Some(&mut 4));
        assert_eq!((map.entries.len(), map.by_use.len()), (2, 2));
    }
}

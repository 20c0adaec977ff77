//! A channel that keeps only the latest value, like tokio's `watch`, and wakes receivers in the order of their waits.
//!
//! tokio wakes receivers in random order, so tasks would send requests of one instant in a different order each time,
//! and simulated runs would not be reproducible.

use std::{
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use tokio::sync::Notify;

/// The sender. Clones share the value. Receivers do not notice its end: they wait for ever.
#[derive(Debug)]
pub struct LatestSender<T>(Arc<Shared<T>>);

/// A receiver. A clone has observed the same changes.
#[derive(Debug)]
pub struct LatestReceiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the last observed change.
    seen: u64,
}

#[derive(Debug)]
struct Shared<T> {
    /// Locked for one read or one change, never across an await.
    current: RwLock<Current<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Current<T> {
    value: T,
    n_changes: u64,
}

/// The value, which does not change while it is borrowed.
#[derive(Debug)]
pub struct Ref<'a, T>(RwLockReadGuard<'a, Current<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> LatestSender<T> {
    /// Creates a sender with a first value.
    pub fn new(value: T) -> LatestSender<T> {
        LatestSender(Arc::new(Shared {
            current: RwLock::new(Current { value, n_changes: 0 }),
            changed: Notify::new(),
        }))
    }

    /// Borrows the value. Whoever changes it waits meanwhile.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.current())
    }

    /// Replaces the value. An equal value is a change too.
    pub fn send_replace(&self, value: T) {
        self.send_modify(|current| *current = value);
    }

    /// Changes the value in place.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value in place. If `change` returns false, receivers are not woken.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
        if change(&mut current.value) {
            current.n_changes += 1;
            drop(current);
            self.0.changed.notify_waiters();
        }
    }

    /// Returns a receiver that has observed all changes up to now.
    pub fn subscribe(&self) -> LatestReceiver<T> {
        LatestReceiver {
            shared: Arc::clone(&self.0),
            seen: self.0.current().n_changes,
        }
    }
}

impl<T: Copy + PartialEq> LatestSender<T> {
    /// Returns the value.
    pub fn get(&self) -> T {
        *self.borrow()
    }

    /// Sets the value. Setting an equal value is not a change.
    pub fn set(&self, value: T) {
        self.update(|_| value);
    }

    /// Sets the value to a function of the present one, atomically.
    pub fn update(&self, change: impl FnOnce(T) -> T) {
        self.send_if_modified(|value| {
            let former = *value;
            *value = change(former);
            *value != former
        });
    }
}

impl<T: Default> Default for LatestSender<T> {
    fn default() -> LatestSender<T> {
        LatestSender::new(T::default())
    }
}

impl<T> Clone for LatestSender<T> {
    fn clone(&self) -> LatestSender<T> {
        LatestSender(Arc::clone(&self.0))
    }
}

impl<T> Clone for LatestReceiver<T> {
    fn clone(&self) -> LatestReceiver<T> {
        LatestReceiver {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> LatestReceiver<T> {
    /// Borrows the value. Whoever changes it waits meanwhile.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.current())
    }

    /// Waits for a change that was not observed yet. Cancel-safe.
    pub async fn changed(&mut self) {
        let seen = self.seen;
        self.until(|current| current.n_changes != seen).await;
    }

    /// Waits until the value meets a condition. Cancel-safe.
    pub async fn wait_for(&mut self, is_wanted: impl Fn(&T) -> bool) {
        self.until(|current| is_wanted(&current.value)).await;
    }

    async fn until(&mut self, is_reached: impl Fn(&Current<T>) -> bool) {
        let shared = Arc::clone(&self.shared);
        loop {
            let mut changed = std::pin::pin!(shared.changed.notified());
            changed.as_mut().enable();
            {
                let current = shared.current();
                self.seen = current.n_changes;
                if is_reached(&current) {
                    return;
                }
            }
            changed.await;
        }
    }
}

impl<T: Copy> LatestReceiver<T> {
    /// Returns the value.
    pub fn get(&self) -> T {
        *self.borrow()
    }

    /// Returns the value and marks its changes as observed.
    pub fn see(&mut self) -> T {
        let current = self.shared.current();
        self.seen = current.n_changes;
        current.value
    }
}

impl<T> Shared<T> {
    /// The state is consistent after every statement, so a panic elsewhere does not corrupt it.
    fn current(&self) -> RwLockReadGuard<'_, Current<T>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_change_is_seen_once() {
        let sender = LatestSender::new(1);
        let mut receiver = sender.subscribe();
        assert_eq!(receiver.changed().now_or_never(), None);
        sender.set(1);
        assert_eq!(receiver.changed().now_or_never(), None);
        sender.set(2);
        assert_eq!(receiver.changed().now_or_never(), Some(()));
        assert_eq!(receiver.changed().now_or_never(), None);
        assert_eq!((sender.get(), receiver.get()), (2, 2));
        sender.set(3);
        assert_eq!((receiver.get(), receiver.see()), (3, 3));
        assert_eq!(receiver.changed().now_or_never(), None);
        assert_eq!(receiver.wait_for(|value| *value == 3).now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn a_value_that_is_changed_in_place_wakes_receivers_if_it_says_so() {
        let sender = LatestSender::new(vec![1]);
        let mut receiver = sender.subscribe();
        sender.send_if_modified(|values| {
            values.push(2);
            false
        });
        assert_eq!(receiver.changed().now_or_never(), None);
        assert_eq!(*receiver.borrow(), [1, 2]);
        sender.send_modify(Vec::clear);
        assert_eq!(receiver.changed().now_or_never(), Some(()));
        sender.send_replace(Vec::new());
        assert_eq!(receiver.changed().now_or_never(), Some(()), "an equal value");
        assert!(sender.borrow().is_empty());
    }

    #[tokio::test]
    async fn receivers_are_woken_in_the_order_of_their_waits() {
        const N_WAITERS: usize = 40;
        let sender = LatestSender::new(false);
        let (woken_in, mut woken) = mpsc::channel(N_WAITERS);
        for number in 0..N_WAITERS {
            let (mut receiver, woken_in) = (sender.subscribe(), woken_in.clone());
            tokio::spawn(async move {
                receiver.changed().await;
                woken_in.try_send(number).unwrap();
            });
        }
        tokio::task::yield_now().await;
        sender.set(true);
        for number in 0..N_WAITERS {
            assert_eq!(woken.recv().await, Some(number));
        }
    }
}

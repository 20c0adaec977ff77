//! A watch channel like tokio's, with first-in-first-out wake-ups.
//!
//! tokio wakes receivers in random order, so tasks would send requests of one instant in a different order each time,
//! and simulated runs would not be reproducible.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The sender. Clones share the value. Receivers do not notice its end: they wait for ever.
#[derive(Debug)]
pub struct OrderedSender<T>(Arc<Shared<T>>);

/// A receiver. A clone has observed the same changes.
#[derive(Debug)]
pub struct OrderedReceiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the last observed change.
    seen: u64,
}

#[derive(Debug)]
struct Shared<T> {
    /// Held for one read or one change, never across an await.
    current: Mutex<Current<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Current<T> {
    value: T,
    n_changes: u64,
}

impl<T: Copy + PartialEq> OrderedSender<T> {
    /// Creates a sender with a first value.
    pub fn new(value: T) -> OrderedSender<T> {
        OrderedSender(Arc::new(Shared {
            current: Mutex::new(Current { value, n_changes: 0 }),
            changed: Notify::new(),
        }))
    }

    /// Returns the value.
    pub fn get(&self) -> T {
        self.0.current().value
    }

    /// Sets the value. Setting an equal value is not a change.
    pub fn set(&self, value: T) {
        self.update(|_| value);
    }

    /// Sets the value to a function of the present one, atomically.
    pub fn update(&self, change: impl FnOnce(T) -> T) {
        let mut current = self.0.current();
        let value = change(current.value);
        if current.value != value {
            current.value = value;
            current.n_changes += 1;
            drop(current);
            self.0.changed.notify_waiters();
        }
    }

    /// Returns a receiver that has observed all changes up to now.
    pub fn subscribe(&self) -> OrderedReceiver<T> {
        OrderedReceiver {
            shared: Arc::clone(&self.0),
            seen: self.0.current().n_changes,
        }
    }
}

impl<T> Clone for OrderedSender<T> {
    fn clone(&self) -> OrderedSender<T> {
        OrderedSender(Arc::clone(&self.0))
    }
}

impl<T> Clone for OrderedReceiver<T> {
    fn clone(&self) -> OrderedReceiver<T> {
        OrderedReceiver {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T: Copy> OrderedReceiver<T> {
    /// Returns the value.
    pub fn get(&self) -> T {
        self.shared.current().value
    }

    /// Returns the value and marks its changes as observed.
    pub fn see(&mut self) -> T {
        let current = self.shared.current();
        self.seen = current.n_changes;
        current.value
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

impl<T> Shared<T> {
    /// The state is consistent after every statement, so a panic elsewhere does not corrupt it.
    fn current(&self) -> MutexGuard<'_, Current<T>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_change_is_seen_once() {
        let watched = OrderedSender::new(1);
        let mut view = watched.subscribe();
        assert_eq!(view.changed().now_or_never(), None);
        watched.set(1);
        assert_eq!(view.changed().now_or_never(), None);
        watched.set(2);
        assert_eq!(view.changed().now_or_never(), Some(()));
        assert_eq!(view.changed().now_or_never(), None);
        assert_eq!((watched.get(), view.get()), (2, 2));
        watched.set(3);
        assert_eq!((view.get(), view.see()), (3, 3));
        assert_eq!(view.changed().now_or_never(), None);
        assert_eq!(view.wait_for(|value| *value == 3).now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn waiters_are_woken_in_fifo_order() {
        const N_WAITERS: usize = 40;
        let watched = OrderedSender::new(false);
        let (sender, mut woken) = mpsc::channel(N_WAITERS);
        for number in 0..N_WAITERS {
            let (mut view, sender) = (watched.subscribe(), sender.clone());
            tokio::spawn(async move {
                view.changed().await;
                sender.try_send(number).unwrap();
            });
        }
        tokio::task::yield_now().await;
        watched.set(true);
        for number in 0..N_WAITERS {
            assert_eq!(woken.recv().await, Some(number));
        }
    }
}

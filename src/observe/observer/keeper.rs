//! What receives the records of what happened.

use jiff::Timestamp;

use crate::observe::{facts::Record, history::History};

/// Receives what happened.
pub trait Keeper: Send {
    /// Stores the records. Called every second, also without records, so that it knows the time.
    fn keep(&mut self, records: Vec<Record>, now: Timestamp);

    /// What is wrong, for the head of the page: sentences with full stops.
    fn problems(&self) -> Vec<String>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoHistory;

impl Keeper for NoHistory {
    fn keep(&mut self, _: Vec<Record>, _: Timestamp) {}

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Keeper for History {
    fn keep(&mut self, records: Vec<Record>, now: Timestamp) {
        self.record(records, now);
    }

    fn problems(&self) -> Vec<String> {
        self.banners().into_iter().map(|banner| banner.sentence).collect()
    }
}

impl Keeper for Box<dyn Keeper> {
    fn keep(&mut self, records: Vec<Record>, now: Timestamp) {
        (**self).keep(records, now);
    }

    fn problems(&self) -> Vec<String> {
        (**self).problems()
    }
}

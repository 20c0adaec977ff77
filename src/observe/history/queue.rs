//! The bounded queue between the caller, who never waits, and the thread that writes.
//!
//! A period of observation claims that every Job of that time was seen. If the queue loses a record, the current period
//! therefore ends, and another one begins afterwards: slots between them are not observed instead of lost.

use jiff::Timestamp;

use crate::observe::facts::{Observation, Record};

/// Maximum number of records that wait. The first lists of 20,000 CronJobs with 80,000 Jobs give 100,000 at once, some
/// 35 MB, which are written within seconds; the others are for what happens meanwhile.
pub(super) const RECORDS_MAX: usize = 120_000;
/// Periods that wait. The watches begin a period each time they start again.
const OBSERVATIONS_MAX: usize = 100;

/// Records that wait to be written.
pub(super) struct Queue {
    records: Vec<Record>,
    /// One for each start, and written after the records.
    observations: Vec<Observation>,
    /// Records that the writer has taken and not written yet.
    n_taken: usize,
    n_lost: u64,
    period: Period,
    now: Timestamp,
}

/// The current period of observation.
#[derive(Clone, Copy)]
enum Period {
    /// As the caller says.
    Whole,
    /// Records were lost: a new period begins with the next observation.
    Cut,
    /// The period that the caller began at `original` begins at `later`.
    Resumed { original: Timestamp, later: Timestamp },
}

impl Queue {
    pub(super) fn new(now: Timestamp) -> Queue {
        Queue {
            records: Vec::new(),
            observations: Vec::new(),
            n_taken: 0,
            n_lost: 0,
            period: Period::Whole,
            now,
        }
    }

    /// Adds records; those for which there is no room are lost. Returns the number of records that wait.
    pub(super) fn add(&mut self, records: Vec<Record>, now: Timestamp) -> usize {
        self.now = now;
        if self.records.is_empty() {
            self.records.reserve(records.len().min(RECORDS_MAX));
        }
        for record in records {
            match record {
                Record::Observation(observation) => self.observe(observation),
                _ if self.n_waiting() < RECORDS_MAX => self.records.push(record),
                Record::Run { .. } | Record::Change(_) | Record::Freeze(_) => {
                    self.n_lost += 1;
                    self.period = Period::Cut;
                }
            }
        }
        self.n_waiting()
    }

    fn observe(&mut self, observation: Observation) {
        let Observation { from, to, namespaces } = observation;
        if let Period::Cut = self.period {
            self.period = Period::Resumed {
                original: from,
                later: to,
            };
        }
        let from = match self.period {
            Period::Resumed { original, later } if original == from => later,
            Period::Resumed { .. } | Period::Whole | Period::Cut => from,
        };
        let has_room = self.observations.len() < OBSERVATIONS_MAX;
        match self.observations.iter_mut().find(|waiting| waiting.from == from) {
            Some(waiting) => {
                waiting.to = to.max(waiting.to);
                waiting.namespaces = namespaces;
            }
            None if has_room => self.observations.push(Observation { from, to, namespaces }),
            // A period that is not stored claims nothing.
            None => {}
        }
    }

    /// Takes everything that waits, in the order in which it must be written.
    pub(super) fn take(&mut self) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.records);
        records.extend(self.observations.drain(..).map(Record::Observation));
        self.n_taken += records.len();
        records
    }

    /// Makes room for records that were taken.
    pub(super) fn written(&mut self, n_records: usize) {
        self.n_taken -= n_records;
    }

    /// The number of records that were lost.
    pub(super) fn n_lost(&self) -> u64 {
        self.n_lost
    }

    /// The time of the last call.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    fn n_waiting(&self) -> usize {
        self.records.len() + self.n_taken
    }
}

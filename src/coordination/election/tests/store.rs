//! A model of an API server for Leases, as far as the protocol can observe it: versions, preconditions, an ordered log.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    coordination::{
        ElectionEffect, ElectionInput, LeaseAnswer, LeaseKey, LeaseList, LeaseRecord, LeaseWrite, RequestId,
    },
    shard::{ResourceVersion, ShardId, Term},
};

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Applied(LeaseRecord),
    Deleted(LeaseKey, ResourceVersion),
}

impl Event {
    pub(super) fn key(&self) -> &LeaseKey {
        match self {
            Event::Applied(record) => &record.key,
            Event::Deleted(key, _) => key,
        }
    }

    pub(super) fn into_input(self) -> ElectionInput {
        match self {
            Event::Applied(record) => ElectionInput::Applied(record),
            Event::Deleted(key, version) => ElectionInput::Deleted(key, version),
        }
    }
}

/// All Leases and their history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) leases: BTreeMap<LeaseKey, LeaseRecord>,
    pub(super) version: u64,
    pub(super) log: Vec<Event>,
    /// Whether preconditions are ignored; they are a guard of the protocol.
    pub(super) is_lax: bool,
    /// The number of refused writes to shard Leases, while they are refused.
    pub(super) n_refused: Option<usize>,
    /// The first violation of the rules for terms, if any.
    pub(super) wrong_term: Option<String>,
    /// The highest term that each shard has had.
    pub(super) terms: BTreeMap<ShardId, Term>,
    /// How often each shard changed its holder.
    pub(super) moves: BTreeMap<ShardId, usize>,
    /// Writes by kind: of member Leases, of shard Leases.
    pub(super) n_writes: [usize; 2],
}

impl Store {
    pub(super) fn list(&self) -> LeaseList {
        LeaseList {
            resource_version: ResourceVersion(self.version),
            leases: self.leases.values().cloned().collect(),
        }
    }

    /// Executes a request and returns its response; `None` for an effect that is not a request.
    pub(super) fn carry_out(&mut self, effect: &ElectionEffect, wall: Timestamp) -> Option<ElectionInput> {
        match effect {
            ElectionEffect::Write {
                request,
                precondition,
                write,
            } => {
                let answer = match (self.leases.get(&write.key), precondition) {
                    (Some(_), None) => LeaseAnswer::Exists,
                    (None, Some(_)) => LeaseAnswer::Missing,
                    (Some(lease), Some(version)) if lease.resource_version != *version && !self.is_lax => {
                        LeaseAnswer::Conflict
                    }
                    (None, None) | (Some(_), Some(_)) => self.write(write, wall),
                };
                Some(answered(*request, answer))
            }
            ElectionEffect::Delete {
                request,
                precondition,
                key,
            } => {
                let answer = match self.leases.get(key) {
                    None => LeaseAnswer::Missing,
                    Some(lease) if lease.resource_version != *precondition => LeaseAnswer::Conflict,
                    Some(_) => LeaseAnswer::Done(Box::new(self.delete(key)?)),
                };
                Some(answered(*request, answer))
            }
            ElectionEffect::Read { request, key } => {
                let lease = self.leases.get(key).cloned();
                let answer = lease.map_or(LeaseAnswer::Missing, |lease| LeaseAnswer::Done(Box::new(lease)));
                Some(answered(*request, answer))
            }
            ElectionEffect::Relist
            | ElectionEffect::ActUntil(_)
            | ElectionEffect::Fence
            | ElectionEffect::Lead { .. }
            | ElectionEffect::Stop { .. }
            | ElectionEffect::Seal(_)
            | ElectionEffect::Rejoin(_)
            | ElectionEffect::Left
            | ElectionEffect::Exit(_) => None,
        }
    }

    fn write(&mut self, write: &LeaseWrite, wall: Timestamp) -> LeaseAnswer {
        if let (LeaseKey::Shard(_), Some(n_refused)) = (&write.key, &mut self.n_refused) {
            *n_refused += 1;
            return LeaseAnswer::Refused;
        }
        self.version += 1;
        let former = self.leases.get(&write.key);
        let record = applied(write, former, ResourceVersion(self.version), wall);
        if let LeaseKey::Shard(shard) = record.key {
            self.note_term(shard, former.cloned().as_ref(), &record);
            self.n_writes[1] += 1;
        } else {
            self.n_writes[0] += 1;
        }
        self.put(record.clone());
        LeaseAnswer::Done(Box::new(record))
    }

    /// Checks a term. It is unchanged while the holder stays or is removed, and increases by one with another holder. A
    /// Lease that was deleted starts above all former terms.
    fn note_term(&mut self, shard: ShardId, former: Option<&LeaseRecord>, record: &LeaseRecord) {
        let term = Term(record.transitions);
        let last = self.terms.entry(shard).or_insert(Term(0));
        let is_same_holder = former.is_some_and(|former| former.holder == record.holder) || record.holder.is_empty();
        let is_right = if is_same_holder {
            former.is_some_and(|former| Term(former.transitions) == term)
        } else if former.is_some() {
            term.0 == last.0 + 1
        } else {
            term > *last
        };
        if !is_right {
            self.wrong_term = Some(format!("{shard:?}: {former:?} became {record:?} after {last:?}"));
        }
        if !is_same_holder {
            *self.moves.entry(shard).or_insert(0) += 1;
        }
        *last = (*last).max(term);
    }

    pub(super) fn put(&mut self, record: LeaseRecord) {
        self.log.push(Event::Applied(record.clone()));
        self.leases.insert(record.key.clone(), record);
    }

    pub(super) fn delete(&mut self, key: &LeaseKey) -> Option<LeaseRecord> {
        let lease = self.leases.remove(key)?;
        self.version += 1;
        self.log
            .push(Event::Deleted(key.clone(), ResourceVersion(self.version)));
        Some(lease)
    }
}

/// The Lease that results when a server applies a write to `former`, or creates it.
fn applied(write: &LeaseWrite, former: Option<&LeaseRecord>, version: ResourceVersion, wall: Timestamp) -> LeaseRecord {
    let new = || LeaseRecord::empty(write.key.clone(), version);
    let mut record = former.cloned().unwrap_or_else(new);
    record.resource_version = version;
    if let Some(holder) = &write.holder {
        record.holder.clone_from(holder);
    }
    record.duration_secs = write.duration_secs.unwrap_or(record.duration_secs);
    record.transitions = write.term.map_or(record.transitions, |term| term.0);
    if write.is_renewal {
        record.renewed_at = Some(wall);
    }
    if write.is_acquisition {
        record.acquired_at = Some(wall);
    }
    for (name, text) in &write.annotations {
        match text {
            Some(text) => record.annotations.insert((*name).into(), text.clone()),
            None => record.annotations.remove(*name),
        };
    }
    record
}

fn answered(request: RequestId, answer: LeaseAnswer) -> ElectionInput {
    ElectionInput::Answered { request, answer }
}

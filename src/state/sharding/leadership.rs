//! What this replica may do and until when: nothing that was decided is sent unless this says so at that moment.

use std::collections::BTreeMap;

use super::{BootInstant, ShardId, Term};

/// Under what an effect was decided: it may be performed in that term of that shard, and in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mandate {
    /// The shard.
    pub shard: ShardId,
    /// The term.
    pub term: Term,
}

/// The shards that this replica leads, and the instant at which it must stop unless it is heard of before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    terms: BTreeMap<ShardId, Term>,
    /// The first instant at which all of it is over unless it is renewed; none where nobody competes for it.
    until: Option<BootInstant>,
}

impl Leadership {
    /// Of one shard, for as long as the process lives.
    pub fn of_one(mandate: Mandate) -> Leadership {
        Leadership {
            terms: BTreeMap::from([(mandate.shard, mandate.term)]),
            until: None,
        }
    }

    /// Of no shard, and of any only until this instant.
    pub fn of_none_until(until: BootInstant) -> Leadership {
        Leadership {
            terms: BTreeMap::new(),
            until: Some(until),
        }
    }

    /// Whether what was decided under a mandate may be done at this instant.
    pub fn covers(&self, mandate: Mandate, now: BootInstant) -> bool {
        self.terms.get(&mandate.shard) == Some(&mandate.term) && self.until.is_none_or(|until| now < until)
    }

    /// Leads a shard from now on, in this term and no earlier one.
    pub fn begin(&mut self, mandate: Mandate) {
        self.terms.insert(mandate.shard, mandate.term);
    }

    /// Leads a shard no more.
    pub fn end(&mut self, shard: ShardId) {
        self.terms.remove(&shard);
    }

    /// Moves the instant at which it is over.
    pub fn renew(&mut self, until: BootInstant) {
        self.until = Some(until);
    }

    /// The first instant at which it is over; none where nobody competes.
    pub fn until(&self) -> Option<BootInstant> {
        self.until
    }

    /// How many shards it is of.
    pub fn n_shards(&self) -> usize {
        self.terms.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn mandate(shard: u16, term: u64) -> Mandate {
        Mandate {
            shard: ShardId(shard),
            term: Term(term),
        }
    }

    #[test]
    fn it_covers_the_terms_that_it_is_of_until_its_end() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let lasting = Leadership::of_one(mandate(0, 3));
        let mut ending = Leadership::of_none_until(at(10));
        ending.begin(mandate(0, 3));
        ending.begin(mandate(5, 9));
        for (leadership, mandate, now, is_covered) in [
            (&lasting, mandate(0, 3), at(0), true),
            (&lasting, mandate(0, 2), at(0), false),
            (&lasting, mandate(0, 4), at(0), false),
            (&lasting, mandate(1, 3), at(0), false),
            (&ending, mandate(0, 3), at(9), true),
            (&ending, mandate(5, 9), at(9), true),
            (&ending, mandate(5, 9), at(10), false),
        ] {
            let is = leadership.covers(mandate, now);
            assert_eq!(is, is_covered, "{leadership:?} {mandate:?} {now:?}");
        }
        ending.renew(at(20));
        assert!(ending.covers(mandate(5, 9), at(19)));
        ending.end(ShardId(5));
        assert!(!ending.covers(mandate(5, 9), at(19)));
        assert_eq!(ending.n_shards(), 1);
    }
}

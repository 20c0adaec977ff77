//! Vacant shards: when they became vacant, and when each member may take them.
//!
//! A shard is vacant in these cases:
//!
//! - Its Lease has no holder.
//! - Its Lease names an incarnation, and the Lease of that member no longer does. Such an incarnation does not act: it
//!   was evicted after its fence, has left, or was replaced by the next incarnation of its Pod.
//! - Its Lease, or the member Lease of its holder, has been gone for a whole duration, or its holder is no member.
//! - It has never had a leader in this installation.
//! - This replica led it when its Lease was deleted.
//!
//! A response can deliver a shard Lease ahead of the watch, and that Lease can name a new incarnation. So the holder is
//! judged only when the watch has reached the version of the shard Lease.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;

use super::{Adoption, Election, LeaseKey, MemberIdentity, Purpose, lease_view::Seen};
use crate::{
    coordination::{Acceptance, Holder, LeaseWrite, Placement, ShardLease, annotation},
    shard::{BootInstant, FiredThrough, ShardId, Term},
};

/// Maximum number of shards that are requested at once. More would only queue: at about half a millisecond for each
/// write, 32 occupy an API server for 16 ms.
const TAKES_IN_FLIGHT_MAX: usize = 32;

/// More shards are requested when at most this many requests are in flight. Each time, all shards are placed, so a start
/// that takes 256 shards places them a few times and not after each answer.
const TAKES_REFILLED_AT: usize = TAKES_IN_FLIGHT_MAX / 2;

/// A leader whose last renewal came this long after it took the shard counts as one that led it. The proof of a complete view
/// takes some four seconds. A leader that had to list for its view may have ended before it led.
const LED_AFTER: SignedDuration = SignedDuration::from_secs(15);

/// The number of terms that may begin and end between the last observation of a shard and the deletion of its Lease.
/// Used where the clock gives no bound.
const TERMS_UNSEEN_MAX: u64 = 1_000;

/// 2025-01-01T00:00:00Z in Unix seconds. A Lease counts terms up to 2^31, which is 68 years of seconds.
const TERM_SECONDS_BEGIN: i64 = 1_735_689_600;

/// A shard that this replica has requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Taking {
    /// The requested term.
    pub(super) term: Term,
    /// The way in which the shard became vacant.
    pub(super) adoption: Adoption,
    /// How far its last leader fired the slots, if it did not hand the shard over.
    pub(super) fired_through: Option<FiredThrough>,
}

/// The vacancy of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vacancy {
    /// The instant from which the shard may be taken; it may lie in the future.
    pub(super) since: BootInstant,
    /// Why the shard is vacant.
    pub(super) adoption: Adoption,
}

impl Vacancy {
    fn new(since: BootInstant, adoption: Adoption) -> Vacancy {
        Vacancy { since, adoption }
    }
}

impl Election {
    /// Every vacant shard.
    pub(super) fn vacancies(&self) -> BTreeMap<ShardId, Vacancy> {
        let with_vacancy = |(shard, seen)| Some((shard, self.vacancy(shard, seen)?));
        self.view.shards().filter_map(with_vacancy).collect()
    }

    /// The vacancy of a shard; `None` if it has a holder, or if the holder may be an incarnation that this replica has not
    /// observed.
    fn vacancy(&self, shard: ShardId, seen: &Seen<ShardLease>) -> Option<Vacancy> {
        if self.guards().whole_view && !self.view.has_observed(seen.version) {
            return None;
        }
        if self.recreating.contains(shard) {
            return Some(Vacancy::new(seen.changed_at, Adoption::Recreated));
        }
        let Some(lease) = &seen.lease else {
            return Some(self.vacancy_without_lease(shard, seen));
        };
        match &lease.holder {
            Holder::Nobody => Some(Vacancy::new(seen.changed_at, Adoption::Released)),
            Holder::NotAMember(_) => Some(self.vacancy_after(seen.changed_at, lease)),
            Holder::Member(holder) => self.vacancy_of_member(holder, seen.changed_at, lease),
        }
    }

    fn vacancy_without_lease(&self, shard: ShardId, seen: &Seen<ShardLease>) -> Vacancy {
        if self.view.is_genesis && self.view.last_term(shard) == Term(0) {
            return Vacancy::new(seen.changed_at, Adoption::First);
        }
        let duration = self.view.duration_max().max(self.config.timing.evict_after);
        Vacancy::new(seen.changed_at + self.waited(duration), Adoption::Crashed)
    }

    /// The vacancy one whole duration after the holder of this Lease was last known to exist.
    fn vacancy_after(&self, gone_since: BootInstant, lease: &ShardLease) -> Vacancy {
        let duration = Duration::from_secs(lease.duration_secs.into());
        Vacancy::new(gone_since + self.waited(duration), Adoption::Crashed)
    }

    /// The vacancy of a shard whose Lease names this member since `changed_at`; `None` while the member's Lease names the
    /// same incarnation.
    fn vacancy_of_member(
        &self,
        holder: &MemberIdentity,
        changed_at: BootInstant,
        lease: &ShardLease,
    ) -> Option<Vacancy> {
        let Some(seen) = self.view.seen_member(&holder.pod_uid) else {
            return Some(self.vacancy_after(changed_at, lease));
        };
        let Some(member) = &seen.lease else {
            return Some(self.vacancy_after(seen.changed_at.max(changed_at), lease));
        };
        if member.holder.is(holder) {
            return None;
        }
        let has_left = member.holder == Holder::Nobody && member.is_draining;
        let adoption = if has_left {
            Adoption::Released
        } else {
            Adoption::Crashed
        };
        Some(Vacancy::new(seen.holder_since.max(changed_at), adoption))
    }

    /// The duration, if its guard is enabled.
    fn waited(&self, duration: Duration) -> Duration {
        if self.guards().wait_out_duration {
            duration
        } else {
            Duration::ZERO
        }
    }

    /// Takes the vacant shards whose turn for this replica has come.
    pub(super) fn adopt(&mut self, now: BootInstant) {
        if self.own_acceptance() != Acceptance::Now || !self.is_established() {
            return;
        }
        let busy = self.requests.busy_shards();
        if busy.len() > TAKES_REFILLED_AT {
            return;
        }
        let vacancies = self.vacancies();
        if vacancies.keys().all(|shard| busy.contains(*shard)) {
            return;
        }
        let placement = self.place(false, now);
        let is_first = |vacancy: &Vacancy| vacancy.adoption == Adoption::First;
        let genesis = vacancies.values().any(is_first).then(|| self.place(true, now));
        let mut n_in_flight = busy.len();
        for (shard, vacancy) in vacancies {
            let placement = genesis.as_ref().filter(|_| is_first(&vacancy)).unwrap_or(&placement);
            let Some(at) = self.take_at(shard, vacancy, placement) else {
                continue;
            };
            if at > now {
                self.wake_at(at);
            } else if !busy.contains(shard) && n_in_flight < TAKES_IN_FLIGHT_MAX {
                n_in_flight += 1;
                self.take(shard, vacancy.adoption, now);
            }
        }
    }

    /// The instant at which this replica may take a shard: at its turn, and after any retry delay.
    fn take_at(&self, shard: ShardId, vacancy: Vacancy, placement: &Placement) -> Option<BootInstant> {
        let turn = u32::try_from(self.turn_to_take(shard, vacancy, placement)?).unwrap_or(u32::MAX);
        let at = vacancy.since + self.config.timing.stagger * turn;
        Some(at.max(self.view.shard(shard).retry_at))
    }

    /// The number of turns that this replica waits. Members that know the term of a deleted Lease come first, so that the
    /// next term follows it.
    fn turn_to_take(&self, shard: ShardId, vacancy: Vacancy, placement: &Placement) -> Option<usize> {
        if vacancy.adoption == Adoption::Recreated {
            return Some(0);
        }
        let turn = placement.adoption_turn(shard, &self.config.pod_uid)?;
        let is_gone = vacancy.adoption == Adoption::Crashed && self.view.lease(shard).is_none();
        let is_term_unknown = is_gone && self.view.last_term(shard) == Term(0);
        Some(if is_term_unknown {
            turn + placement.n_members()
        } else {
            turn
        })
    }

    /// The term after a shard's last one. A shard without a Lease may have had terms that this replica does not know.
    fn next_term(&self, shard: ShardId, adoption: Adoption) -> Term {
        let last = match self.view.lease(shard) {
            Some(lease) => lease.term,
            None if adoption == Adoption::First => Term(0),
            None => self.term_after_deletion(self.view.last_term(shard)),
        };
        Term(last.0 + 1)
    }

    /// The term after which a new one begins if the Lease was deleted: the seconds since 2025, if they are above the last
    /// known term of the shard, or of any shard if that one is unknown. Otherwise it is the next multiple of 1,000 above
    /// that term. No shard changes its leader often enough to overtake these numbers.
    fn term_after_deletion(&self, last_of_shard: Term) -> Term {
        let last = if last_of_shard > Term(0) {
            last_of_shard
        } else {
            self.view.last_term_of_any()
        };
        let by_the_clock = self.term_by_the_clock();
        if last == Term(0) || last < by_the_clock {
            by_the_clock
        } else {
            Term((last.0 / TERMS_UNSEEN_MAX + 1) * TERMS_UNSEEN_MAX)
        }
    }

    /// The seconds of this replica's last renewal, by its own clock. A replica with a wrong clock takes no shards.
    fn term_by_the_clock(&self) -> Term {
        let renewed_at = self.view.member(&self.config.pod_uid).and_then(|ours| ours.renewed_at);
        let seconds = renewed_at.map_or(0, |at| at.as_second() - TERM_SECONDS_BEGIN);
        Term(u64::try_from(seconds).unwrap_or(0))
    }

    /// Takes a shard, in the term after the last observed one.
    fn take(&mut self, shard: ShardId, adoption: Adoption, now: BootInstant) {
        let term = self.next_term(shard, adoption);
        let lease = self.view.lease(shard);
        let is_released = lease.is_some_and(|lease| lease.holder == Holder::Nobody);
        let mut write = LeaseWrite {
            holder: Some(self.identity.to_string().into()),
            duration_secs: Some(self.config.timing.duration_secs()),
            term: Some(term),
            is_acquisition: true,
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(annotation::WRITTEN_THROUGH, None::<&str>);
        if !is_released {
            // The last leader did not write the annotation, so it is of an earlier term.
            write = write.annotate(annotation::FIRED_THROUGH, None::<&str>);
        }
        let taking = Taking {
            term,
            adoption,
            fired_through: lease.and_then(|lease| self.fired_before_the_end(lease)),
        };
        self.taking.insert(shard, taking);
        self.send(Purpose::Take, write, now);
    }

    /// How far the holder of a shard fired the slots before it ended without a handover, by its last renewal. `None` if it
    /// may not have led the shard by then.
    fn fired_before_the_end(&self, lease: &ShardLease) -> Option<FiredThrough> {
        let renewed_at = self.view.last_renewal(lease.holder.member()?)?;
        let led_since = lease.acquired_at?.checked_add(LED_AFTER).ok()?;
        (led_since <= renewed_at).then_some(FiredThrough::Renewal(renewed_at))
    }
}

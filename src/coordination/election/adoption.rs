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

use super::{Adoption, Election, LeaseKey, MemberIdentity, Purpose, lease_view::Seen};
use crate::{
    coordination::{Acceptance, Holder, LeaseWrite, Placement, ShardLease, annotation},
    shard::{BootInstant, ShardId, Term},
};

/// Maximum number of shards that are requested at once. More would only queue: at about half a millisecond for each
/// write, 32 occupy an API server for 16 ms.
const TAKES_IN_FLIGHT_MAX: usize = 32;

/// The number of terms that may begin and end between the last observation of a shard and the deletion of its Lease.
/// Used where the clock gives no bound.
const TERMS_UNSEEN_MAX: u64 = 1_000;

/// 2025-01-01T00:00:00Z in Unix seconds. A Lease counts terms up to 2^31, which is 68 years of seconds.
const TERM_SECONDS_BEGIN: i64 = 1_735_689_600;

/// How long a quarantined shard waits for its crashed leader to return: the longest pause of the kubelet before it
/// restarts a container, and ten seconds to start.
const RESTART_MAX: Duration = Duration::from_secs(310);

/// A leader that crashes within this time after taking a shard may have crashed because of it.
const CRASH_WINDOW: Duration = Duration::from_mins(10);

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
        let vacancies = self.vacancies();
        let busy = self.requests.busy_shards();
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
        if !self.may_host(shard) {
            return None;
        }
        let restart = if self.waits_for_restart(shard, vacancy) {
            RESTART_MAX
        } else {
            Duration::ZERO
        };
        let turn = u32::try_from(self.turn_to_take(shard, vacancy, placement)?).unwrap_or(u32::MAX);
        let at = vacancy.since + restart + self.config.timing.stagger * turn;
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

    /// Whether this replica may take a shard. It takes none that is in quarantine while it leads others that another
    /// member could lead, so that a crash affects no other shard.
    pub(super) fn may_host(&self, shard: ShardId) -> bool {
        let is_quarantined = |shard| self.view.lease(shard).is_some_and(ShardLease::is_quarantined);
        let leads_others = || self.led_shards.keys().any(|led| !is_quarantined(*led));
        !is_quarantined(shard) || !leads_others() || !self.has_other_taker()
    }

    /// Whether a quarantined shard waits until the Pod of its crashed leader restarts. So one member crashes again and
    /// again, and not all of them in turn. If all shards are in quarantine, there are no others to protect.
    fn waits_for_restart(&self, shard: ShardId, vacancy: Vacancy) -> bool {
        let leader = self.view.lease(shard).filter(|lease| lease.is_quarantined());
        let leader = leader.and_then(|lease| self.view.member(&lease.holder.member()?.pod_uid));
        let is_evicted = leader.is_some_and(|leader| leader.holder == Holder::Nobody);
        let mut all = self.view.shard_leases();
        vacancy.adoption == Adoption::Crashed && is_evicted && all.any(|(_, lease)| !lease.is_quarantined())
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
        let crashes = lease.map_or(0, |lease| self.crashes_after(lease, adoption));
        let is_released = lease.is_some_and(|lease| lease.holder == Holder::Nobody);
        let mut write = LeaseWrite {
            holder: Some(self.identity.to_string().into()),
            duration_secs: Some(self.config.timing.duration_secs()),
            term: Some(term),
            is_acquisition: true,
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(annotation::CRASHES, (crashes > 0).then(|| crashes.to_string()))
        .annotate(annotation::WRITTEN_THROUGH, None::<&str>);
        if !is_released {
            // The last leader did not write the annotation, so it is of an earlier term.
            write = write.annotate(annotation::FIRED_THROUGH, None::<&str>);
        }
        self.taking.insert(shard, (term, adoption));
        self.send(Purpose::Take, write, now);
    }

    /// The number of consecutive leaders that crashed soon after taking the shard, including the last leader. The tenure
    /// of a leader counts from the write that made it the leader, by the clock of the writer. A leader without a member
    /// Lease does not count.
    fn crashes_after(&self, lease: &ShardLease, adoption: Adoption) -> u32 {
        let crashed = lease.holder.member().filter(|_| adoption == Adoption::Crashed);
        let Some(member) = crashed.and_then(|crashed| self.view.member(&crashed.pod_uid)) else {
            return lease.crashes;
        };
        let tenure = member
            .renewed_at
            .zip(lease.acquired_at)
            .and_then(|(renewed_at, acquired_at)| Duration::try_from(renewed_at.duration_since(acquired_at)).ok());
        if tenure.is_some_and(|tenure| tenure >= CRASH_WINDOW) {
            0
        } else {
            lease.crashes.saturating_add(1)
        }
    }

    /// Resets the crash count of shards that this replica has led for the whole crash window without crashing.
    pub(super) fn reset_crash_counts(&mut self, now: BootInstant) {
        let busy = self.requests.busy_shards();
        let led: Vec<(ShardId, BootInstant)> = self
            .led_shards
            .iter()
            .map(|(shard, led_shard)| (*shard, led_shard.led_since))
            .collect();
        for (shard, led_since) in led {
            if self.view.lease(shard).is_none_or(|lease| lease.crashes == 0) {
                continue;
            }
            let at = (led_since + CRASH_WINDOW).max(self.view.shard(shard).retry_at);
            if at > now {
                self.wake_at(at);
            } else if !busy.contains(shard) {
                let write = LeaseWrite::to(LeaseKey::Shard(shard)).annotate(annotation::CRASHES, None::<&str>);
                self.send(Purpose::ResetCrashes, write, now);
            }
        }
    }
}

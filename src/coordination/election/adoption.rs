//! Shards that nobody holds: since when, and whose turn it is to take them.
//!
//! A shard is vacant when its Lease names nobody, when it names a life that its member's Lease does not name any more, and,
//! a whole duration later, when its Lease or its member's is gone. The life that a Lease has stopped naming cannot renew, so
//! it acts no more; who would be the first to know, by its fence. Who a Lease names is judged only by a view that is as
//! new as the Lease: an answer or a read shows one Lease ahead of the others, and the life that it names may be new.

use std::{collections::BTreeMap, time::Duration};

use super::{Adoption, Election, ElectionEffect, LeaseKey, Purpose, lease_view::SeenShard, members::Placed};
use crate::{
    coordination::{Holder, LeaseWrite, MemberIdentity, MemberLease, ShardLease, annotation},
    shard::{BootInstant, ShardId, ShardSet, Term},
};

/// So many shards are taken at once. More would only queue: 32 writes are half a millisecond each at a server's pace.
const TAKES_IN_FLIGHT_MAX: usize = 32;

/// So many terms of a shard may begin and end between what was last seen of it and the end of its Lease, where the clock
/// does not tell.
const TERMS_UNSEEN_MAX: u64 = 1_000;

/// 2025-01-01T00:00:00Z in Unix seconds. A Lease counts terms to 2^31, which is 68 years of seconds.
const TERM_SECONDS_BEGIN: i64 = 1_735_689_600;

/// A leader that dies within this time of taking a shard may have died of it.
const CRASH_WINDOW: Duration = Duration::from_mins(10);

/// A shard that nobody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vacancy {
    /// Since when it may be taken; may lie ahead.
    pub(super) since: BootInstant,
    pub(super) kind: VacancyKind,
}

/// How it came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VacancyKind {
    /// It never had a Lease, in an installation that we saw begin.
    First,
    /// Its Lease is gone.
    LeaseGone,
    /// We led it, and its Lease is gone.
    OursGone,
    /// Its leader left it, or left altogether.
    Released,
    /// Its leader was evicted, or has been replaced by its next life.
    Crashed(MemberIdentity),
    /// Its leader's Lease is gone, or its leader was none of ours.
    HolderGone,
}

impl Election {
    /// Every shard that nobody holds.
    pub(super) fn vacancies(&self) -> BTreeMap<ShardId, Vacancy> {
        let with_vacancy = |(shard, seen)| Some((shard, self.vacancy(shard, seen)?));
        self.view.shards().filter_map(with_vacancy).collect()
    }

    fn vacancy(&self, shard: ShardId, seen: &SeenShard) -> Option<Vacancy> {
        let vacancy = |since, kind| Some(Vacancy { since, kind });
        if self.guards.whole_view && !self.view.is_caught_up_with(seen) {
            return None;
        }
        let Some(lease) = &seen.lease else {
            return if self.recreating.contains(shard) {
                vacancy(seen.changed_at, VacancyKind::OursGone)
            } else if self.view.is_genesis && seen.last_term == Term(0) {
                vacancy(seen.changed_at, VacancyKind::First)
            } else {
                let duration = self.view.duration_max().max(self.config.timing.parts().evict_after);
                vacancy(seen.changed_at + self.waited(duration), VacancyKind::LeaseGone)
            };
        };
        let duration = self.waited(Duration::from_secs(lease.duration_secs.into()));
        let holder = match &lease.holder {
            Holder::Nobody => return vacancy(seen.changed_at, VacancyKind::Released),
            Holder::Stranger(_) => return vacancy(seen.changed_at + duration, VacancyKind::HolderGone),
            Holder::Member(holder) => holder,
        };
        let Some(member) = self.view.members.get(&holder.pod_uid) else {
            let absent_since = self.view.absent_since(&holder.pod_uid)?;
            return vacancy(absent_since.max(seen.changed_at) + duration, VacancyKind::HolderGone);
        };
        if member.lease.holder.is(holder) {
            return None;
        }
        let has_left = member.lease.holder == Holder::Nobody && member.lease.is_draining;
        let kind = if has_left {
            VacancyKind::Released
        } else {
            VacancyKind::Crashed(holder.clone())
        };
        vacancy(member.holder_since.max(seen.changed_at), kind)
    }

    fn waited(&self, duration: Duration) -> Duration {
        if self.guards.wait_out_duration {
            duration
        } else {
            Duration::ZERO
        }
    }

    /// Takes the shards that nobody holds and whose turn it is to be ours.
    pub(super) fn adopt(&mut self, now: BootInstant) {
        let is_established = self.active().is_some_and(|active| active.is_established);
        if self.is_leaving() || !self.is_synced || !is_established {
            return;
        }
        let vacancies = self.vacancies();
        let busy = self.requests.busy_shards();
        if vacancies.keys().all(|shard| busy.contains(*shard)) {
            return;
        }
        let placed = self.place(false, now);
        let is_first = |vacancy: &Vacancy| vacancy.kind == VacancyKind::First;
        let genesis = vacancies.values().any(is_first).then(|| self.place(true, now));
        let mut n_in_flight = busy.len();
        for (shard, vacancy) in vacancies {
            let placed = genesis.as_ref().filter(|_| is_first(&vacancy)).unwrap_or(&placed);
            let Some(at) = self.take_at(shard, &vacancy, placed) else {
                continue;
            };
            if at > now {
                self.wake_at(at);
            } else if !busy.contains(shard) && n_in_flight < TAKES_IN_FLIGHT_MAX {
                n_in_flight += 1;
                self.take(shard, &vacancy, now);
            }
        }
    }

    /// When we may take a shard: in our turn, and not before a retry is due.
    fn take_at(&self, shard: ShardId, vacancy: &Vacancy, placed: &Placed) -> Option<BootInstant> {
        let turn = if vacancy.kind == VacancyKind::OursGone {
            0
        } else {
            placed.turn(shard, placed.member(&self.config.pod_uid)?)?
        };
        let seen = self.view.shard(shard)?;
        // Whoever knows in which term the Lease was that is gone comes first, so that the next one follows it.
        let is_stranger = vacancy.kind == VacancyKind::LeaseGone && seen.last_term == Term(0);
        let turn = if is_stranger {
            turn + placed.pod_uids.len()
        } else {
            turn
        };
        let turn = u32::try_from(turn).unwrap_or(u32::MAX);
        let at = vacancy.since + self.config.timing.parts().stagger * turn;
        Some(at.max(seen.retry_at))
    }

    /// The term after the last of a shard. Of one whose Lease is gone we may not have seen the last: it goes on at the
    /// seconds of the clock, which no shard changes hands often enough to overtake. Where they are behind the last that we
    /// saw, of this shard or, if we never saw it, of any, it goes on far above that.
    fn next_term(&self, seen: &SeenShard, vacancy: &Vacancy) -> Term {
        let last = match &seen.lease {
            Some(lease) => lease.term,
            None if vacancy.kind == VacancyKind::First => Term(0),
            None => self.unseen_term(seen.last_term),
        };
        Term(last.0 + 1)
    }

    fn unseen_term(&self, last: Term) -> Term {
        let of_others = || self.view.shards().map(|(_, other)| other.last_term).max();
        let last = Some(last).filter(|last| *last > Term(0)).or_else(of_others);
        let last = last.unwrap_or(Term(0));
        let by_the_clock = self.term_by_the_clock();
        if last == Term(0) || last < by_the_clock {
            by_the_clock
        } else {
            Term((last.0 / TERMS_UNSEEN_MAX + 1) * TERMS_UNSEEN_MAX)
        }
    }

    /// The seconds of our last renewal: an instant of our own clock, which owns nothing when it is off.
    fn term_by_the_clock(&self) -> Term {
        let ours = self.view.members.get(&self.config.pod_uid);
        let renewed_at = ours.and_then(|seen| seen.lease.renewed_at);
        let seconds = renewed_at.map_or(0, |at| at.as_second() - TERM_SECONDS_BEGIN);
        Term(u64::try_from(seconds).unwrap_or(0))
    }

    /// Makes a shard ours, in the term after the last that was seen.
    fn take(&mut self, shard: ShardId, vacancy: &Vacancy, now: BootInstant) {
        let Some(seen) = self.view.shard(shard) else {
            return;
        };
        let lease = seen.lease.clone();
        let term = self.next_term(seen, vacancy);
        let crashes = lease.as_ref().map_or(0, |lease| self.crashes_after(lease, vacancy));
        let adoption = Self::adoption(lease.as_ref(), vacancy);
        let write = LeaseWrite {
            holder: Some(self.identity.to_string().into()),
            duration_secs: Some(self.config.timing.duration_secs()),
            term: Some(term),
            is_renewal: true,
            is_acquisition: true,
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(annotation::CRASHES, (crashes > 0).then(|| crashes.to_string()))
        .annotate(annotation::WRITTEN_THROUGH, None::<&str>);
        self.taking.insert(shard, (term, adoption));
        let request = self.requests.sent(Purpose::Take(shard), now);
        self.effects.push(match lease {
            Some(lease) => ElectionEffect::Patch {
                request,
                precondition: lease.resource_version,
                write,
            },
            None => ElectionEffect::Create { request, write },
        });
    }

    fn adoption(lease: Option<&ShardLease>, vacancy: &Vacancy) -> Adoption {
        let fired_through = lease.and_then(|lease| lease.fired_through);
        let of_crashed = |former| Adoption::Crashed { former };
        match &vacancy.kind {
            VacancyKind::First => Adoption::First,
            VacancyKind::OursGone => Adoption::Recreated,
            VacancyKind::Released => Adoption::Released { fired_through },
            VacancyKind::Crashed(former) => of_crashed(Some(former.clone())),
            VacancyKind::LeaseGone => of_crashed(None),
            VacancyKind::HolderGone => of_crashed(lease.and_then(|lease| lease.holder.member()).cloned()),
        }
    }

    /// How many leaders in a row will have crashed soon after they took a shard, with the one that is gone now. Both
    /// instants are of that leader's clock.
    fn crashes_after(&self, lease: &ShardLease, vacancy: &Vacancy) -> u32 {
        let VacancyKind::Crashed(former) = &vacancy.kind else {
            return lease.crashes;
        };
        let member = self.view.members.get(&former.pod_uid);
        let tenure = member
            .and_then(|member| Some(member.lease.renewed_at?.duration_since(lease.acquired_at?)))
            .and_then(|tenure| Duration::try_from(tenure).ok());
        if tenure.is_some_and(|tenure| tenure >= CRASH_WINDOW) {
            0
        } else {
            lease.crashes.saturating_add(1)
        }
    }

    /// Forgets the crashes of shards that we have led for long enough: they did not kill us.
    pub(super) fn pardon(&mut self, now: BootInstant) {
        let busy = self.requests.busy_shards();
        let led: Vec<(ShardId, BootInstant)> = self
            .led_shards
            .iter()
            .map(|(shard, led_shard)| (*shard, led_shard.since))
            .collect();
        for (shard, since) in led {
            let Some(lease) = self.view.lease(shard).filter(|lease| lease.crashes > 0) else {
                continue;
            };
            let precondition = lease.resource_version;
            let at = since + CRASH_WINDOW;
            if at > now {
                self.wake_at(at);
            } else if !busy.contains(shard) {
                let write = LeaseWrite::to(LeaseKey::Shard(shard)).annotate(annotation::CRASHES, None::<&str>);
                let request = self.requests.sent(Purpose::Pardon(shard), now);
                self.effects.push(ElectionEffect::Patch {
                    request,
                    precondition,
                    write,
                });
            }
        }
    }

    /// Shards that somebody announced to us, and that we should load.
    pub(super) fn announced_to_us(&self) -> ShardSet {
        let donors = self
            .live_members()
            .filter(|(pod_uid, _)| **pod_uid != *self.config.pod_uid);
        let is_its_own = |lease: &MemberLease, shard: &ShardId| {
            self.view
                .lease(*shard)
                .is_some_and(|shard| shard.holder == lease.holder)
        };
        donors
            .flat_map(|(_, lease)| {
                lease
                    .plan
                    .for_target(&self.config.pod_uid)
                    .filter(move |shard| is_its_own(lease, shard))
            })
            .collect()
    }
}

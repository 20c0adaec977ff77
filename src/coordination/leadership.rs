//! The shards that this replica may act for, and the end of that right. Every request is checked when it is sent.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::Timing;
use crate::shard::{BootInstant, ShardId, ShardTerm, Term};

/// The limits of a write while other replicas might lead: its lifetime, and the stamp with the latest time of
/// creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// The lifetime. After it the request must have no effect, whether it is answered or not.
    pub life: Duration,
    /// The stamp of a new Job.
    pub stamp: Stamp,
}

/// The creator of a Job, for audits, and the latest time at which the Job could be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The shard and the term of the creation.
    pub shard_term: ShardTerm,
    /// The creator's incarnation.
    pub incarnation: u64,
    /// The latest time of creation, by the API server's clock; `None` while that clock is not known.
    pub create_before: Option<Timestamp>,
}

/// `shard/term/incarnation`.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardTerm { shard, term } = self.shard_term;
        write!(f, "{}/{}/{:016x}", shard.0, term.0, self.incarnation)
    }
}

/// The shards that this replica leads, and the instant at which it must stop unless its leadership is renewed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    terms: BTreeMap<ShardId, Term>,
    /// The first instant at which all leadership is over unless it is renewed.
    until: BootInstant,
    fencing: Fencing,
    /// The number of replicas, this one included, that send requests.
    n_senders: u32,
}

/// The answer to a renewal of the member Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalAnswer {
    /// Its `Date`: the API server's clock, in whole seconds.
    pub date: Timestamp,
    /// The instant at which the renewal was sent.
    pub sent: BootInstant,
    /// The instant at which the answer arrived.
    pub answered: BootInstant,
}

/// `creationTimestamp` has whole seconds, so a Job may be created up to a second after its own.
const WHOLE_SECOND: Duration = Duration::from_secs(1);

/// The data for the limits of writes while another replica might lead next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fencing {
    timing: Timing,
    incarnation: u64,
    /// A second before the fence, by the API server's clock.
    create_before: Option<Timestamp>,
    /// One fence after the send of the renewal that `create_before` counts from.
    renewed_until: BootInstant,
}

/// The instant this much later, or the last one.
fn later(instant: Timestamp, duration: Duration) -> Timestamp {
    let sum = SignedDuration::try_from(duration).map(|duration| instant.checked_add(duration));
    sum.ok().and_then(Result::ok).unwrap_or(Timestamp::MAX)
}

impl Leadership {
    /// Leadership of one shard that lasts longer than any test, and does not limit the lifetime of a request.
    #[cfg(test)]
    pub(crate) fn of_one(shard_term: ShardTerm) -> Leadership {
        let timing = Timing {
            evict_after: Duration::from_hours(1),
            ..Timing::DEFAULT
        };
        let until = BootInstant::after_boot(Duration::from_hours(1_000_000));
        let mut leadership = Leadership::of_none_until(until, 0, timing);
        leadership.begin(shard_term);
        leadership
    }

    /// Whether any request may be sent at this instant.
    pub fn may_act(&self, now: BootInstant) -> bool {
        now < self.until
    }

    /// Leadership of no shard yet, by this incarnation of a replica. It ends at `until` unless it is renewed, and
    /// `timing` bounds its writes.
    pub fn of_none_until(until: BootInstant, incarnation: u64, timing: Timing) -> Leadership {
        Leadership {
            terms: BTreeMap::new(),
            until,
            fencing: Fencing {
                timing,
                incarnation,
                create_before: None,
                renewed_until: until,
            },
            n_senders: 1,
        }
    }

    /// The number of replicas that share the API server's capacity.
    pub fn n_senders(&self) -> u32 {
        self.n_senders
    }

    /// Records how many replicas send requests; returns whether the number changed.
    pub fn share_among(&mut self, n_senders: u32) -> bool {
        std::mem::replace(&mut self.n_senders, n_senders.max(1)) != n_senders.max(1)
    }

    /// The limits of a write that is sent now. `life_min` is the least lifetime of a write that may outlive the
    /// leadership of this replica. For all other writes it is zero.
    pub fn write_limits(&self, shard_term: ShardTerm, now: BootInstant, life_min: Duration) -> WriteLimits {
        let fencing = &self.fencing;
        let until_fence = self.until.since(now);
        let beyond_fence = life_min.saturating_sub(fencing.renewed_until.since(now));
        WriteLimits {
            life: fencing.timing.write_life(until_fence).max(life_min),
            stamp: Stamp {
                shard_term,
                incarnation: fencing.incarnation,
                create_before: fencing.create_before.map(|at| later(at, beyond_fence)),
            },
        }
    }

    /// Allows Jobs to be created until a second before the fence, by the clock of the API server that answered the latest
    /// renewal.
    pub fn renewal_answered(&mut self, answer: &RenewalAnswer) {
        let fencing = &mut self.fencing;
        let (fence_after, round_trip) = (fencing.timing.self_fence, answer.answered.since(answer.sent));
        // The limit counts from the send, like the fence. At the send, the server's clock was at least `date` minus the
        // round trip.
        let received = answer.date.checked_sub(round_trip);
        let lasts = fence_after.saturating_sub(WHOLE_SECOND);
        let renewed_until = answer.sent + fence_after;
        if renewed_until >= fencing.renewed_until {
            fencing.create_before = received.and_then(|received| received.checked_add(lasts)).ok();
            fencing.renewed_until = renewed_until;
        }
    }

    /// Whether a decision of this term may be executed at this instant.
    pub fn covers(&self, shard_term: ShardTerm, now: BootInstant) -> bool {
        self.terms.get(&shard_term.shard) == Some(&shard_term.term) && self.may_act(now)
    }

    /// The shard with its current term, if it is led at this instant.
    pub fn shard_term(&self, shard: ShardId, now: BootInstant) -> Option<ShardTerm> {
        let term = *self.terms.get(&shard)?;
        let shard_term = ShardTerm { shard, term };
        self.covers(shard_term, now).then_some(shard_term)
    }

    /// Begins to lead a shard, in this term only.
    pub fn begin(&mut self, shard_term: ShardTerm) {
        self.terms.insert(shard_term.shard, shard_term.term);
    }

    /// Ends a term of a shard. A later term is unaffected, since a message about a former one may arrive late.
    pub fn end(&mut self, shard_term: ShardTerm) {
        if self.terms.get(&shard_term.shard) == Some(&shard_term.term) {
            self.terms.remove(&shard_term.shard);
        }
    }

    /// Sets the end of leadership; returns whether it changed.
    pub fn set_until(&mut self, until: BootInstant) -> bool {
        std::mem::replace(&mut self.until, until) != until
    }

    /// The first instant at which leadership is over.
    pub fn until(&self) -> BootInstant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By a clock that runs slow, another replica may lead nine seconds after a renewal.
    const TIMING: Timing = Timing {
        self_fence: Duration::from_secs(7),
        evict_after: Duration::from_millis(9_900),
        write_life_min: Duration::from_secs(2),
        ..Timing::DEFAULT
    };

    #[test]
    fn a_write_expires_before_another_replica_may_lead() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let leadership = Leadership::of_none_until(at(107), 1, TIMING);
        let life = |now, life_min| {
            let limits = leadership.write_limits(shard_term(0, 1), at(now), Duration::from_secs(life_min));
            limits.life
        };
        for (now, expected) in [(100, 9), (103, 6), (107, 2), (120, 2)] {
            assert_eq!(life(now, 0), Duration::from_secs(expected), "{now}");
            assert_eq!(life(now, 30), Duration::from_secs(30), "{now}");
        }
    }

    fn at_millis(millis: u64) -> BootInstant {
        BootInstant::after_boot(Duration::from_millis(millis))
    }

    /// A renewal that is answered after some milliseconds.
    fn renewal(date: &str, sent_millis: u64, round_trip: u64) -> RenewalAnswer {
        RenewalAnswer {
            date: date.parse().unwrap(),
            sent: at_millis(sent_millis),
            answered: at_millis(sent_millis + round_trip),
        }
    }

    #[test]
    fn create_before_covers_the_lifetime_of_the_request() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let mut leadership = Leadership::of_none_until(at(107), 1, TIMING);
        leadership.renewal_answered(&renewal("2026-01-01T00:00:00Z", 100_000, 0));
        // (now, least lifetime, latest creation): the leadership ends at 107 s, and one second is subtracted.
        for (now, life_min, expected) in [
            (100, 0, "2026-01-01T00:00:06Z"),
            (100, 7, "2026-01-01T00:00:06Z"),
            (100, 34, "2026-01-01T00:00:33Z"),
            (105, 34, "2026-01-01T00:00:38Z"),
        ] {
            let limits = leadership.write_limits(shard_term(0, 1), at(now), Duration::from_secs(life_min));
            let create_before = limits.stamp.create_before.unwrap();
            assert_eq!(create_before.to_string(), expected, "{now} {life_min}");
        }
    }

    /// The time in milliseconds, from the send of a create, until the fence policy refuses its Job. The clock of the API
    /// server shows a multiple of ten seconds when that of this machine does.
    fn admission_time(renewed: u64, create: u64, until: u64, life_min: Duration) -> i64 {
        let round_trip = 3;
        let date = |millis: u64| Timestamp::from_second(i64::try_from(millis / 1_000).unwrap()).unwrap();
        let mut leadership = Leadership::of_none_until(at_millis(until), 1, TIMING);
        leadership.renewal_answered(&RenewalAnswer {
            date: date(renewed + round_trip),
            sent: at_millis(renewed),
            answered: at_millis(renewed + round_trip),
        });
        let limits = leadership.write_limits(shard_term(0, 1), at_millis(create), life_min);
        // The annotation has whole seconds, and so has `creationTimestamp`.
        let create_before = limits.stamp.create_before.unwrap().as_second();
        (create_before + 1) * 1_000 - i64::try_from(create).unwrap()
    }

    #[test]
    fn mutating_webhooks_have_three_to_six_or_32_to_34_seconds() {
        let times = |life_min: u64, view_age: u64| {
            let renewals = (100_000..101_000).step_by(50);
            let creates = renewals.flat_map(|renewed| (5..2_000).step_by(45).map(move |age| (renewed, renewed + age)));
            let times = creates.map(|(renewed, create)| {
                let until = renewed + 7_000 - view_age;
                admission_time(renewed, create, until, Duration::from_secs(life_min))
            });
            let times: Vec<i64> = times.collect();
            (*times.iter().min().unwrap(), *times.iter().max().unwrap())
        };
        // The watch delivers renewals at once, or three seconds late.
        for view_age in [0, 3_000] {
            let (shortest, longest) = times(0, view_age);
            assert!((3_000..3_200).contains(&shortest), "{shortest}");
            assert!((5_800..=6_000).contains(&longest), "{longest}");
            let (shortest, longest) = times(34, view_age);
            assert!((32_000..32_200).contains(&shortest), "{shortest}");
            assert!((33_800..=34_000).contains(&longest), "{longest}");
        }
    }

    #[test]
    fn a_job_is_stamped_with_its_creator_and_latest_creation_time() {
        let at = BootInstant::after_boot(Duration::from_secs(100));
        let mut leadership = Leadership::of_none_until(at, 0xab, TIMING);
        let stamp = |leadership: &Leadership| leadership.write_limits(shard_term(7, 3), at, Duration::ZERO).stamp;
        assert_eq!(stamp(&leadership).create_before, None);
        assert_eq!(stamp(&leadership).to_string(), "7/3/00000000000000ab");
        let create_before = |leadership: &Leadership| stamp(leadership).create_before.unwrap().to_string();
        // An API server whose clock is an hour ahead, and one with the right clock.
        leadership.renewal_answered(&renewal("2026-01-01T01:00:00Z", 100_000, 0));
        assert_eq!(create_before(&leadership), "2026-01-01T01:00:06Z");
        leadership.renewal_answered(&renewal("2026-01-01T00:00:02Z", 102_000, 0));
        assert_eq!(create_before(&leadership), "2026-01-01T00:00:08Z");
        leadership.renewal_answered(&renewal("2026-01-01T01:00:01Z", 101_000, 2));
        assert_eq!(
            create_before(&leadership),
            "2026-01-01T00:00:08Z",
            "the latest send counts"
        );
    }

    fn shard_term(shard: u16, term: u64) -> ShardTerm {
        ShardTerm {
            shard: ShardId(shard),
            term: Term(term),
        }
    }

    #[test]
    fn leadership_covers_its_own_terms_until_it_ends() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let lasting = Leadership::of_one(shard_term(0, 3));
        let mut ending = Leadership::of_none_until(at(10), 1, TIMING);
        ending.begin(shard_term(0, 3));
        ending.begin(shard_term(5, 9));
        for (leadership, shard_term, now, is_covered) in [
            (&lasting, shard_term(0, 3), at(0), true),
            (&lasting, shard_term(0, 2), at(0), false),
            (&lasting, shard_term(0, 4), at(0), false),
            (&lasting, shard_term(1, 3), at(0), false),
            (&ending, shard_term(0, 3), at(9), true),
            (&ending, shard_term(5, 9), at(9), true),
            (&ending, shard_term(5, 9), at(10), false),
        ] {
            let is = leadership.covers(shard_term, now);
            assert_eq!(is, is_covered, "{leadership:?} {shard_term:?} {now:?}");
        }
        ending.set_until(at(20));
        assert!(ending.covers(shard_term(5, 9), at(19)));
        ending.end(shard_term(5, 8));
        assert!(
            ending.covers(shard_term(5, 9), at(19)),
            "a late message about a former term has no effect"
        );
        ending.end(shard_term(5, 9));
        assert!(!ending.covers(shard_term(5, 9), at(19)));
        assert!(ending.covers(shard_term(0, 3), at(19)));
    }
}

//! The durations of the protocol, and the inequality that makes it safe.

use std::time::Duration;

/// How much faster one clock may run than another, in percent, before the protocol is unsafe.
const CLOCK_RATE_SLACK_PERCENT: u32 = 10;

/// The durations of the protocol, all on the boot clock. They fit together: every request sent before a replica's fence
/// is dead before another replica may take its shards, even with clocks that differ by a tenth in rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// From one renewal to the next.
    pub renew_interval: Duration,
    /// How long a response is awaited.
    pub attempt_timeout: Duration,
    /// From the send of the last successful renewal to the fence.
    pub self_fence: Duration,
    /// The least lifetime of a write to the cluster. A write that is sent just before the fence may live this long.
    pub write_life_min: Duration,
    /// How long a member's Lease must be unchanged before others evict the member; advertised in whole seconds.
    pub evict_after: Duration,
    /// Between the attempts of several members that would evict the same member or take the same shard.
    pub stagger: Duration,
    /// How long the members must be unchanged before members with too many shards give some away.
    pub settle_window: Duration,
}

impl Timing {
    /// Shards of a dead node are led again after 8 to 10.5 s.
    pub const DEFAULT: Timing = Timing {
        renew_interval: Duration::from_secs(2),
        attempt_timeout: Duration::from_millis(1_500),
        self_fence: Duration::from_secs(7),
        write_life_min: Duration::from_secs(2),
        evict_after: Duration::from_secs(10),
        stagger: Duration::from_millis(500),
        settle_window: Duration::from_secs(10),
    };

    /// The lifetime of a write that is sent this long before the fence. The write is dead, also by a clock that runs slow,
    /// before another replica may lead its shard.
    pub(super) fn write_life(&self, until_fence: Duration) -> Duration {
        let since_renewal = self.self_fence.saturating_sub(until_fence);
        let dead_after = self.evict_after * 100 / (100 + CLOCK_RATE_SLACK_PERCENT);
        dead_after.saturating_sub(since_renewal).max(self.write_life_min)
    }

    /// The duration that a Lease advertises, in seconds.
    pub fn duration_secs(&self) -> u32 {
        u32::try_from(self.evict_after.as_secs()).unwrap_or(u32::MAX)
    }

    /// The maximum age of a view that may identify silent members.
    pub(super) fn trusted_age(&self) -> Duration {
        self.renew_interval * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordination::Leadership,
        shard::{BootInstant, ShardId, ShardTerm, Term},
    };

    impl Timing {
        /// Asserts that the durations fit together.
        pub(in crate::coordination) fn check(&self) {
            assert_eq!(self.evict_after.subsec_nanos(), 0, "a Lease has whole seconds only");
            let renewals = self.renew_interval * 2 + self.attempt_timeout;
            assert!(
                self.self_fence > renewals,
                "one failed renewal must not cause a fence: {self:?}"
            );
            let alive_until = slowed(self.self_fence + self.write_life_min);
            assert!(alive_until < self.evict_after, "writes live too long: {self:?}");
        }
    }

    /// The longest that this duration can take by another replica's clock.
    fn slowed(duration: Duration) -> Duration {
        duration * (100 + CLOCK_RATE_SLACK_PERCENT) / 100
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_timing_satisfies_the_invariants() {
        Timing::DEFAULT.check();
    }

    /// The lifetime of a write that is sent `age` after the last renewal.
    fn life_at(timing: &Timing, age: Duration) -> Duration {
        let renewed = BootInstant::after_boot(seconds(1_000));
        let until = renewed + timing.self_fence;
        let leadership = Leadership::of_none_until(until, 1, *timing);
        let shard_term = ShardTerm {
            shard: ShardId(0),
            term: Term(1),
        };
        leadership.write_limits(shard_term, renewed + age, Duration::ZERO).life
    }

    #[test]
    fn the_lifetime_of_a_write_ends_before_eviction() {
        let life = |age: u64| life_at(&Timing::DEFAULT, Duration::from_millis(age)).as_millis();
        assert_eq!([life(0), life(2_200), life(7_000)], [9_090, 6_890, 2_090]);
        let timing = Timing::DEFAULT;
        for age in (0..timing.self_fence.as_millis()).step_by(100) {
            let age = Duration::from_millis(u64::try_from(age).unwrap());
            assert!(slowed(age + life_at(&timing, age)) <= timing.evict_after, "{age:?}");
        }
    }
}

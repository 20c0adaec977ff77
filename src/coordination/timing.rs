//! The durations of the protocol, and the inequality that makes it safe.

use std::time::Duration;

use crate::coordination::WriteLife;

/// How much faster one clock may run than another, in percent, before the protocol is unsafe.
const CLOCK_RATE_SLACK_PERCENT: u32 = 10;

/// A set of durations that fit together: every request sent before a replica's fence is dead before another replica may
/// take its shards, even with clocks that differ by a tenth in rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing(TimingParts);

/// The durations of the protocol, all on the boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimingParts {
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

/// Timings that were tested as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Shards of a dead node are led again after 8 to 10.5 s.
    #[default]
    Default,
    /// Shards of a dead node are led again after 5 to 6.5 s, at nearly twice the Lease writes.
    Fast,
    /// Shards of a dead node are led again after 12 to 16 s; for API servers with slow writes.
    Safe,
}

impl Preset {
    /// The durations of this preset.
    pub fn timing(self) -> Timing {
        let [renew, attempt, fence, write, evict, stagger, settle] = match self {
            Preset::Default => [2_000, 1_500, 7_000, 2_000, 10_000, 500, 10_000],
            Preset::Fast => [1_200, 1_000, 4_000, 1_200, 6_000, 300, 5_000],
            Preset::Safe => [3_000, 3_000, 10_000, 3_000, 15_000, 1_000, 20_000],
        }
        .map(Duration::from_millis);
        Timing(TimingParts {
            renew_interval: renew,
            attempt_timeout: attempt,
            self_fence: fence,
            write_life_min: write,
            evict_after: evict,
            stagger,
            settle_window: settle,
        })
    }
}

impl Timing {
    /// The durations.
    pub fn parts(&self) -> &TimingParts {
        &self.0
    }

    /// The rule for the lifetime of a write: the write must be dead, by a clock that runs slow, before others may take
    /// the shard.
    pub fn write_life(&self) -> WriteLife {
        WriteLife {
            fence_after: self.0.self_fence,
            dead_after: self.0.evict_after * 100 / (100 + CLOCK_RATE_SLACK_PERCENT),
            least: self.0.write_life_min,
        }
    }

    /// The duration that a Lease advertises, in seconds.
    pub fn duration_secs(&self) -> u32 {
        u32::try_from(self.0.evict_after.as_secs()).unwrap_or(u32::MAX)
    }

    /// The maximum age of a view that may identify silent members.
    pub(super) fn trusted_age(&self) -> Duration {
        self.0.renew_interval * 2
    }
}

#[cfg(test)]
impl Timing {
    /// Asserts that the durations fit together, and returns them as a set.
    pub(super) fn checked(parts: TimingParts) -> Timing {
        assert_eq!(parts.evict_after.subsec_nanos(), 0, "a Lease has whole seconds only");
        let renewals = parts.renew_interval * 2 + parts.attempt_timeout;
        assert!(
            parts.self_fence > renewals,
            "one failed renewal must not cause a fence: {parts:?}"
        );
        let alive_until = slowed(parts.self_fence + parts.write_life_min);
        assert!(alive_until < parts.evict_after, "writes live too long: {parts:?}");
        Timing(parts)
    }
}

/// The longest that this duration can take by another replica's clock.
#[cfg(test)]
fn slowed(duration: Duration) -> Duration {
    duration * (100 + CLOCK_RATE_SLACK_PERCENT) / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordination::Leadership,
        shard::{BootInstant, ShardId, ShardTerm, Term},
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn timing_presets_satisfy_the_invariants() {
        for preset in [Preset::Default, Preset::Fast, Preset::Safe] {
            let timing = preset.timing();
            assert_eq!(Timing::checked(*timing.parts()), timing, "{preset:?}");
        }
    }

    /// The lifetime of a write that is sent `age` after the last renewal.
    fn life_at(timing: &Timing, age: Duration) -> Duration {
        let renewed = BootInstant::after_boot(seconds(1_000));
        let until = renewed + timing.parts().self_fence;
        let leadership = Leadership::of_none_until(until, 1, timing.write_life());
        let shard_term = ShardTerm {
            shard: ShardId(0),
            term: Term(1),
        };
        leadership
            .write_limits(shard_term, renewed + age, Duration::ZERO)
            .unwrap()
            .life
    }

    #[test]
    fn the_lifetime_of_a_write_ends_before_eviction() {
        let timing = Preset::Default.timing();
        let life = |age: u64| life_at(&timing, Duration::from_millis(age)).as_millis();
        assert_eq!([life(0), life(2_200), life(7_000)], [9_090, 6_890, 2_090]);
        for preset in [Preset::Default, Preset::Fast, Preset::Safe] {
            let timing = preset.timing();
            let parts = timing.parts();
            for age in (0..parts.self_fence.as_millis()).step_by(100) {
                let age = Duration::from_millis(u64::try_from(age).unwrap());
                assert!(
                    slowed(age + life_at(&timing, age)) <= parts.evict_after,
                    "{preset:?} {age:?}"
                );
            }
        }
    }
}

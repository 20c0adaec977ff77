//! The realistic mix: each CronJob is drawn from a seed and its number.

use super::SyntheticCronJob;
use crate::slots::Due;

/// Values with their shares, in percent.
type Shares<T> = &'static [(u64, T)];

const PERIODS_MINUTES: Shares<u32> = &[(50, 1), (25, 2), (15, 5), (7, 15), (3, 60)];
const POLICIES: Shares<&str> = &[(60, "Allow"), (25, "Forbid"), (15, "Replace")];
/// All are shorter than any period, so that no concurrency policy skips a run.
const JOB_SECONDS: Shares<u32> = &[(50, 2), (30, 8), (15, 20), (5, 40)];
const FAILURES: Shares<bool> = &[(90, false), (10, true)];
const PADDING_BYTES: Shares<usize> = &[(60, 0), (25, 1_024), (10, 4_096), (5, 16_384)];
const EVEN_POLICIES: Shares<&str> = &[(34, "Allow"), (33, "Forbid"), (33, "Replace")];
const SUSPENSIONS: Shares<bool> = &[(95, false), (5, true)];
/// One of them is not a whole number of hours from UTC.
const ZONES: Shares<&str> = &[(40, "Etc/UTC"), (30, "Europe/Berlin"), (30, "Asia/Kathmandu")];
/// All are longer than a run is late beside the built-in controller.
const DEADLINES: Shares<Option<u32>> = &[(60, None), (20, Some(100)), (20, Some(3_600))];
const HISTORY_LIMITS: Shares<u32> = &[(50, 1), (30, 2), (20, 3)];

/// A sequence of random numbers from a seed (`SplitMix64`).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<T: Copy>(&mut self, shares: Shares<T>) -> T {
        let mut left = self.next() % 100;
        let mut chosen = shares[0].1;
        for (share, value) in shares {
            chosen = *value;
            if left < *share {
                break;
            }
            left -= share;
        }
        chosen
    }
}

/// Returns `plain` with all variable fields drawn at random.
pub(super) fn varied(plain: SyntheticCronJob, seed: u32, number: u32) -> SyntheticCronJob {
    let mut draw = Draw((u64::from(seed) << 32) | u64::from(number));
    SyntheticCronJob {
        due: Due::EveryMinutes(draw.one_of(PERIODS_MINUTES)),
        concurrency_policy: draw.one_of(POLICIES),
        job_seconds: draw.one_of(JOB_SECONDS),
        fails: draw.one_of(FAILURES),
        padding_bytes: draw.one_of(PADDING_BYTES),
        ..plain
    }
}

/// Returns `plain` with everything but its schedule varied by its number.
pub(super) fn minutely(plain: SyntheticCronJob, number: u32) -> SyntheticCronJob {
    let mut draw = Draw(u64::from(number));
    let suspended = draw.one_of(SUSPENSIONS);
    SyntheticCronJob {
        due: if suspended { Due::Never } else { Due::EveryMinutes(1) },
        suspended,
        concurrency_policy: draw.one_of(EVEN_POLICIES),
        job_seconds: u32::try_from(draw.next() % 50).unwrap_or_default() + 1,
        time_zone: draw.one_of(ZONES),
        starting_deadline_seconds: draw.one_of(DEADLINES),
        fails: draw.one_of(FAILURES),
        history_limit: draw.one_of(HISTORY_LIMITS),
        ..plain
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, Variety};
    use super::*;

    fn mixed(seed: u32) -> Vec<SyntheticCronJob> {
        let load = Load {
            variety: Variety::Mixed { seed },
            spread: None,
            ..Load::minutely("load".into(), 1_000, 5, 3)
        };
        load.cron_jobs()
    }

    #[test]
    fn seed_determines_the_mix() {
        assert_eq!(mixed(1), mixed(1));
        assert_ne!(mixed(1), mixed(2));
    }

    #[test]
    fn a_minutely_mix_is_due_at_each_minute_unless_suspended() {
        let load = Load {
            variety: Variety::MinutelyMixed,
            spread: None,
            ..Load::minutely("load".into(), 1_000, 5, 3)
        };
        let all = load.cron_jobs();
        let n_suspended = all.iter().filter(|one| one.suspended).count();
        assert!((20..100).contains(&n_suspended), "{n_suspended}");
        for one in &all {
            assert_eq!(one.due == Due::Never, one.suspended);
            assert!((1..=50).contains(&one.job_seconds));
        }
    }

    #[test]
    fn shares_of_the_mix_match_the_tables() {
        let all = mixed(7);
        let share = |is: &dyn Fn(&SyntheticCronJob) -> bool| all.iter().filter(|one| is(one)).count();
        let check = |n: usize, expected: usize| assert!(n.abs_diff(expected) < 60, "{n}, {expected} expected");
        check(share(&|one| one.due == Due::EveryMinutes(1)), 500);
        check(share(&|one| one.concurrency_policy == "Replace"), 150);
        check(share(&|one| one.fails), 100);
        check(share(&|one| one.padding_bytes == 16_384), 50);
        for shares in [
            PERIODS_MINUTES.iter().map(|it| it.0).sum::<u64>(),
            JOB_SECONDS.iter().map(|it| it.0).sum(),
        ] {
            assert_eq!(shares, 100);
        }
    }
}

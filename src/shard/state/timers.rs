//! The timer wheels of a shard, and the conversion between instants and ticks.

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::wheel::{LAST_TICK, Wheel},
    shard::index::OwnerIndex,
};

/// Ticks per second. Deadlines and back-offs need no finer resolution.
const TICKS_PER_SEC: i64 = 20;
const TICK_NANOS: i64 = 1_000_000_000 / TICKS_PER_SEC;

/// A clock that falls back by at most this many ticks, one second, does not rebuild the wheels.
const FALL_BACK_TICKS_MAX: u32 = 20;

/// The CronJobs whose timers are due.
#[derive(Default)]
pub(super) struct Due {
    /// Due armed slots.
    pub(super) slots: Vec<OwnerIndex>,
    /// Other due wake-ups.
    pub(super) wakes: Vec<OwnerIndex>,
}

/// A CronJob has at most one slot and one other wake-up, for a deadline or a back-off.
pub(super) struct Timers {
    ticks: Ticks,
    slots: Wheel,
    wakes: Wheel,
}

impl Timers {
    pub(super) fn new(now: Timestamp) -> Timers {
        Timers {
            ticks: Ticks {
                origin_secs: now.as_second(),
            },
            slots: Wheel::new(0),
            wakes: Wheel::new(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() + self.wakes.len()
    }

    /// Whether a slot of the CronJob is on the wheel.
    pub(super) fn has_slot(&self, owner: OwnerIndex) -> bool {
        self.slots.tick(owner).is_some()
    }

    /// Whether the wheels must be rebuilt: they are ahead of `now`, so that new timers would be late or lost, or the
    /// ticks may run out eventually.
    fn must_be_rebuilt(&self, now: Timestamp) -> bool {
        let tick = self.ticks.floor(now);
        let elapsed = self.slots.elapsed().max(self.wakes.elapsed());
        let is_set_back = elapsed > tick.saturating_add(FALL_BACK_TICKS_MAX) || self.ticks.begin_after(now);
        is_set_back || tick > LAST_TICK / 2
    }

    /// Collects everything due by `now`.
    pub(super) fn advance(&mut self, now: Timestamp) -> Due {
        let (tick, mut due) = (self.ticks.floor(now), Due::default());
        self.slots.advance(tick, &mut due.slots);
        self.wakes.advance(tick, &mut due.wakes);
        due
    }

    pub(super) fn next_wakeup(&mut self) -> Option<Timestamp> {
        let ticks = [self.slots.next_tick(), self.wakes.next_tick()];
        let next = ticks.into_iter().flatten().min()?;
        Some(self.ticks.instant(next))
    }
}

impl ShardState {
    /// Rebuilds the wheels after the clock was set back, since they would wait for the same time to come again, or when
    /// the process has run for years. The cursor prevents a slot from starting twice.
    pub(super) fn follow_clock(&mut self, now: Timestamp) {
        if !self.timers.must_be_rebuilt(now) {
            return;
        }
        self.timers = Timers::new(now);
        for owner in self.index.owner_indexes() {
            let Some(cron_job) = self.index.get_cron_job_mut(owner) else {
                continue;
            };
            cron_job.armed = None;
            // Instants of the wrong time must not delay anything.
            cron_job.schedule_changed = cron_job.schedule_changed.map(|changed| changed.min(now));
            cron_job.status_not_before = None;
            cron_job.history_not_before = None;
            cron_job.look_up_unlabelled_at = None;
            cron_job.end_waits(now);
            self.evaluate(owner, now);
        }
    }

    /// Puts the CronJob's next slot on the wheel, or removes it.
    pub(super) fn arm(&mut self, owner: OwnerIndex, slot: Option<Timestamp>) {
        self.index.cron_job_mut(owner).armed = slot;
        match slot {
            Some(slot) => self.timers.slots.set(owner, self.timers.ticks.ceiling(slot)),
            None => {
                self.timers.slots.cancel(owner);
            }
        }
    }

    /// Schedules an evaluation of the CronJob no later than `at`.
    pub(super) fn wake_at(&mut self, owner: OwnerIndex, at: Timestamp) {
        let tick = self.timers.ticks.ceiling(at);
        if self.timers.wakes.tick(owner).is_none_or(|earlier| tick < earlier) {
            self.timers.wakes.set(owner, tick);
        }
    }

    pub(super) fn cancel_wake(&mut self, owner: OwnerIndex) {
        self.timers.wakes.cancel(owner);
    }
}

/// Ticks since `origin_secs`; 32 bits of them are almost seven years.
#[derive(Clone, Copy)]
struct Ticks {
    origin_secs: i64,
}

impl Ticks {
    /// Whether an instant is before the first tick.
    fn begin_after(self, instant: Timestamp) -> bool {
        instant.as_second() < self.origin_secs
    }

    fn floor(self, instant: Timestamp) -> u32 {
        let secs = instant.as_second() - self.origin_secs;
        let ticks = secs * TICKS_PER_SEC + i64::from(instant.subsec_nanosecond()) / TICK_NANOS;
        u32::try_from(ticks.max(0)).unwrap_or(LAST_TICK)
    }

    /// Rounds up, so that a timer never fires before its instant.
    fn ceiling(self, instant: Timestamp) -> u32 {
        let is_on_tick = i64::from(instant.subsec_nanosecond()) % TICK_NANOS == 0;
        self.floor(instant).saturating_add(u32::from(!is_on_tick))
    }

    fn instant(self, tick: u32) -> Timestamp {
        let ticks = i64::from(tick);
        let nanos = i32::try_from(ticks % TICKS_PER_SEC * TICK_NANOS).unwrap_or(0);
        Timestamp::new(self.origin_secs + ticks / TICKS_PER_SEC, nanos).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn a_timer_is_never_early_and_less_than_a_tick_late() {
        for text in [
            "2026-05-01T00:00:00Z",
            "2026-05-01T00:00:00.001Z",
            "2026-05-01T00:00:00.049999999Z",
            "2026-05-01T00:00:07.95Z",
        ] {
            let instant = at(text);
            let ticks = Ticks {
                origin_secs: at("2026-04-30T23:59:07Z").as_second(),
            };
            let woken = ticks.instant(ticks.ceiling(instant));
            assert!(woken >= instant, "{text}: {woken}");
            assert!(
                woken.duration_since(instant).as_nanos() < i128::from(TICK_NANOS),
                "{text}: {woken}"
            );
        }
    }
}

//! The timer wheels of a shard, and the conversion between instants and ticks.

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::wheel::{LAST_TICK, Wheel},
    shard::{index::OwnerIndex, seconds::Seconds},
};

/// Ticks of the fine wheels per second. Deadlines and back-offs need no finer resolution.
const FINE_TICKS_PER_SEC: i64 = 20;
const FINE_TICK_NANOS: i64 = 1_000_000_000 / FINE_TICKS_PER_SEC;

/// A clock that falls back by at most this many fine ticks, one second, does not rebuild the wheels.
const FALL_BACK_TICKS_MAX: u32 = 20;

/// The CronJobs whose timers are due.
#[derive(Default)]
pub(super) struct Due {
    /// Due armed slots.
    pub(super) slots: Vec<OwnerIndex>,
    /// Other due wake-ups.
    pub(super) wakes: Vec<OwnerIndex>,
}

/// One wheel of whole minutes for cron instants, and finer ones for `@every` and for deadlines and back-offs. A CronJob
/// has at most one slot, on one of the first two wheels, and one other wake-up.
pub(super) struct Timers {
    fine_ticks: FineTicks,
    minute_slots: Wheel,
    fine_slots: Wheel,
    wakes: Wheel,
    /// Reused between calls, so that a burst does not allocate again.
    buffers: Due,
}

impl Timers {
    pub(super) fn new(now: Timestamp) -> Timers {
        Timers {
            fine_ticks: FineTicks {
                origin_secs: now.as_second(),
            },
            minute_slots: Wheel::new(minute_floor(now)),
            fine_slots: Wheel::new(0),
            wakes: Wheel::new(0),
            buffers: Due::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.minute_slots.len() + self.fine_slots.len() + self.wakes.len()
    }

    /// Whether a slot of the CronJob is on a wheel.
    pub(super) fn has_slot(&self, owner: OwnerIndex) -> bool {
        self.minute_slots.tick(owner).is_some() || self.fine_slots.tick(owner).is_some()
    }

    /// Whether the wheels must be rebuilt: they are ahead of `now`, so that new timers would be late or lost, or the
    /// fine ticks may run out eventually.
    fn must_be_rebuilt(&self, now: Timestamp) -> bool {
        let fine_tick = self.fine_ticks.floor(now);
        let elapsed = self.fine_slots.elapsed().max(self.wakes.elapsed());
        let is_set_back = elapsed > fine_tick.saturating_add(FALL_BACK_TICKS_MAX) || self.fine_ticks.begin_after(now);
        is_set_back || self.minute_slots.elapsed() > minute_floor(now).saturating_add(1) || fine_tick > LAST_TICK / 2
    }

    pub(super) fn take_buffers(&mut self) -> Due {
        std::mem::take(&mut self.buffers)
    }

    pub(super) fn return_buffers(&mut self, mut due: Due) {
        due.slots.clear();
        due.wakes.clear();
        self.buffers = due;
    }

    /// Collects everything due by `now`.
    pub(super) fn advance(&mut self, now: Timestamp, due: &mut Due) {
        self.minute_slots.advance(minute_floor(now), &mut due.slots);
        let fine_tick = self.fine_ticks.floor(now);
        self.fine_slots.advance(fine_tick, &mut due.slots);
        self.wakes.advance(fine_tick, &mut due.wakes);
    }

    pub(super) fn next_wakeup(&mut self) -> Option<Timestamp> {
        let minute = self.minute_slots.next_tick().map(from_minute);
        let fine = [&mut self.fine_slots, &mut self.wakes].map(Wheel::next_tick);
        let fine = fine.into_iter().flatten().map(|tick| self.fine_ticks.instant(tick));
        fine.chain(minute).min()
    }

    fn set_slot(&mut self, owner: OwnerIndex, slot: Timestamp) {
        if slot.as_second() % 60 == 0 && slot.subsec_nanosecond() == 0 {
            self.fine_slots.cancel(owner);
            self.minute_slots.set(owner, minute_floor(slot));
        } else {
            self.minute_slots.cancel(owner);
            self.fine_slots.set(owner, self.fine_ticks.ceiling(slot));
        }
    }

    fn cancel_slot(&mut self, owner: OwnerIndex) {
        self.minute_slots.cancel(owner);
        self.fine_slots.cancel(owner);
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
            cron_job.armed = Seconds::default();
            // Instants of the wrong time must not delay anything.
            cron_job.schedule_changed = cron_job.schedule_changed.map(|changed| changed.min(now));
            cron_job.resumed = Seconds::new(cron_job.resumed.get().map(|resumed| resumed.min(now)));
            if let Some(since) = cron_job.startable_since() {
                cron_job.rare_mut().startable_since = Seconds::new(Some(since.min(now)));
            }
            if cron_job.open.is_none() {
                let counted = cron_job.counted_until.get();
                cron_job.counted_until = Seconds::new(counted.map(|counted| counted.min(now)));
            }
            cron_job.end_waits(now);
            self.calendar_notes.set_back(owner, now);
            self.evaluate(owner, now);
        }
    }

    /// Puts the CronJob's next slot on a wheel, or removes it.
    pub(super) fn arm(&mut self, owner: OwnerIndex, slot: Option<Timestamp>) {
        let armed = &mut self.index.cron_job_mut(owner).armed;
        if armed.get() == slot && self.timers.has_slot(owner) {
            return;
        }
        *armed = Seconds::new(slot);
        match slot {
            Some(slot) => {
                let start = self.index.cron_job(owner).record.schedule.start_of(slot);
                self.timers.set_slot(owner, start);
            }
            None => self.timers.cancel_slot(owner),
        }
    }

    /// Schedules an evaluation of the CronJob no later than `at`.
    pub(super) fn wake_at(&mut self, owner: OwnerIndex, at: Timestamp) {
        let tick = self.timers.fine_ticks.ceiling(at);
        if self.timers.wakes.tick(owner).is_none_or(|earlier| tick < earlier) {
            self.timers.wakes.set(owner, tick);
        }
    }

    pub(super) fn cancel_wake(&mut self, owner: OwnerIndex) {
        self.timers.wakes.cancel(owner);
    }
}

/// The minute of an instant; instants before the epoch count as the epoch, since nothing is armed there.
fn minute_floor(instant: Timestamp) -> u32 {
    let minutes = instant.as_second().div_euclid(60).max(0);
    u32::try_from(minutes).unwrap_or(LAST_TICK)
}

fn from_minute(tick: u32) -> Timestamp {
    Timestamp::from_second(i64::from(tick) * 60).unwrap_or(Timestamp::MAX)
}

/// Fine ticks since `origin_secs`; 32 bits of them are almost seven years.
#[derive(Clone, Copy)]
struct FineTicks {
    origin_secs: i64,
}

impl FineTicks {
    /// Whether an instant is before the first tick.
    fn begin_after(self, instant: Timestamp) -> bool {
        instant.as_second() < self.origin_secs
    }

    fn floor(self, instant: Timestamp) -> u32 {
        let secs = instant.as_second() - self.origin_secs;
        let ticks = secs * FINE_TICKS_PER_SEC + i64::from(instant.subsec_nanosecond()) / FINE_TICK_NANOS;
        u32::try_from(ticks.max(0)).unwrap_or(LAST_TICK)
    }

    /// Rounds up, so that a timer never fires before its instant.
    fn ceiling(self, instant: Timestamp) -> u32 {
        let is_on_tick = i64::from(instant.subsec_nanosecond()) % FINE_TICK_NANOS == 0;
        self.floor(instant).saturating_add(u32::from(!is_on_tick))
    }

    fn instant(self, tick: u32) -> Timestamp {
        let ticks = i64::from(tick);
        let nanos = i32::try_from(ticks % FINE_TICKS_PER_SEC * FINE_TICK_NANOS).unwrap_or(0);
        Timestamp::new(self.origin_secs + ticks / FINE_TICKS_PER_SEC, nanos).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn a_fine_timer_is_never_early_and_less_than_a_tick_late() {
        for text in [
            "2026-05-01T00:00:00Z",
            "2026-05-01T00:00:00.001Z",
            "2026-05-01T00:00:00.049999999Z",
            "2026-05-01T00:00:07.95Z",
        ] {
            let instant = at(text);
            let ticks = FineTicks {
                origin_secs: at("2026-04-30T23:59:07Z").as_second(),
            };
            let woken = ticks.instant(ticks.ceiling(instant));
            assert!(woken >= instant, "{text}: {woken}");
            assert!(
                woken.duration_since(instant).as_nanos() < i128::from(FINE_TICK_NANOS),
                "{text}: {woken}"
            );
        }
    }

    #[test]
    fn minute_ticks_are_whole_minutes() {
        let instant = at("2026-05-01T00:01:00Z");
        assert_eq!(from_minute(minute_floor(instant)), instant);
        assert_eq!(minute_floor(at("2026-05-01T00:01:59.999Z")), minute_floor(instant));
    }
}

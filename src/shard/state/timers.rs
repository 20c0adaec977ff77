//! The wheels of a shard and the conversion between instants and their ticks.

use jiff::Timestamp;

use super::{ShardState, Wakeup};
use crate::{
    schedule::wheel::{LAST_TICK, Wheel},
    shard::index::OwnerIndex,
};

/// Ticks of the fine wheel in a second: deadlines and back-offs need no better.
const FINE_TICKS_PER_SEC: i64 = 20;
const FINE_TICK_NANOS: i64 = 1_000_000_000 / FINE_TICKS_PER_SEC;

/// A clock that falls back by so little is soon there again.
const FALL_BACK_TICKS_MAX: u32 = 20;

/// Whose timers are due.
#[derive(Default)]
pub(super) struct Due {
    /// Of the armed slot.
    pub(super) slots: Vec<OwnerIndex>,
    /// Of anything else that is waited for.
    pub(super) wakes: Vec<OwnerIndex>,
}

/// Whole minutes for cron instants; finer ones for `@every`, and for deadlines and back-offs. A CronJob has at most one
/// slot, which is on one of the first two, and one other instant at which it is to be looked at.
pub(super) struct Timers {
    fine_ticks: FineTicks,
    minute_slots: Wheel,
    fine_slots: Wheel,
    wakes: Wheel,
    /// Handed out and back, so that a burst does not grow them anew.
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

    /// Whether the wheels stand after `now`, for then what is set on them would come late or not at all, or their fine
    /// ticks may run out one day.
    fn are_to_be_made_anew(&self, now: Timestamp) -> bool {
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

    /// Everything due by `now`.
    pub(super) fn advance(&mut self, now: Timestamp, due: &mut Due) {
        self.minute_slots.advance(minute_floor(now), &mut due.slots);
        let fine_tick = self.fine_ticks.floor(now);
        self.fine_slots.advance(fine_tick, &mut due.slots);
        self.wakes.advance(fine_tick, &mut due.wakes);
    }

    pub(super) fn next_wakeup(&mut self) -> Option<Wakeup> {
        let minute = self.minute_slots.next_tick().map(|tick| Wakeup {
            at: from_minute(tick),
            timer: "slot",
        });
        let [slot, wake] = [(&mut self.fine_slots, "slot"), (&mut self.wakes, "wake")].map(|(wheel, timer)| {
            let at = self.fine_ticks.instant(wheel.next_tick()?);
            Some(Wakeup { at, timer })
        });
        [minute, slot, wake]
            .into_iter()
            .flatten()
            .min_by_key(|wakeup| wakeup.at)
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
    /// A clock that was set back would leave the wheels waiting for the time to come again: they are made anew, as they are
    /// when a process has run for years.
    /// What was started stays started, since the cursor says so.
    pub(super) fn follow_clock(&mut self, now: Timestamp) {
        if !self.timers.are_to_be_made_anew(now) {
            return;
        }
        self.timers = Timers::new(now);
        for owner in self.index.owner_indexes() {
            let Some(cron_job) = self.index.cron_job_mut(owner) else {
                continue;
            };
            cron_job.armed = None;
            // Instants of the time that was wrong must not hold anything back.
            cron_job.schedule_changed = cron_job.schedule_changed.map(|changed| changed.min(now));
            cron_job.status_not_before = None;
            cron_job.history_not_before = None;
            cron_job.ask_unlabelled_at = None;
            cron_job.end_waits(now);
            self.evaluate(owner, now);
        }
    }

    /// Puts the CronJob's next slot on a wheel, or takes it off.
    pub(super) fn arm(&mut self, owner: OwnerIndex, slot: Option<Timestamp>) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let Some(slot) = slot else {
            self.disarm(owner);
            return;
        };
        cron_job.armed = Some(slot);
        self.timers.set_slot(owner, slot);
    }

    /// Takes the CronJob's slot off its wheel.
    pub(super) fn disarm(&mut self, owner: OwnerIndex) {
        if let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.armed = None;
        }
        self.timers.cancel_slot(owner);
    }

    /// Sees to it that the CronJob is looked at by `at`, at the latest.
    pub(super) fn wake_at(&mut self, owner: OwnerIndex, at: Timestamp) {
        if self.index.cron_job(owner).is_none() {
            return;
        }
        let tick = self.timers.fine_ticks.ceiling(at);
        if self.timers.wakes.tick(owner).is_none_or(|earlier| tick < earlier) {
            self.timers.wakes.set(owner, tick);
        }
    }

    pub(super) fn cancel_wake(&mut self, owner: OwnerIndex) {
        self.timers.wakes.cancel(owner);
    }
}

/// Instants before the epoch are the epoch: nothing is armed there.
fn minute_floor(instant: Timestamp) -> u32 {
    let minutes = instant.as_second().div_euclid(60).max(0);
    u32::try_from(minutes).unwrap_or(LAST_TICK)
}

fn from_minute(tick: u32) -> Timestamp {
    Timestamp::from_second(i64::from(tick) * 60).unwrap_or(Timestamp::MAX)
}

/// Fine ticks, counted from a second of our own: 32 bits of them are almost seven years.
#[derive(Clone, Copy)]
struct FineTicks {
    origin_secs: i64,
}

impl FineTicks {
    /// Whether an instant is before the first of them.
    fn begin_after(self, instant: Timestamp) -> bool {
        instant.as_second() < self.origin_secs
    }

    fn floor(self, instant: Timestamp) -> u32 {
        let secs = instant.as_second() - self.origin_secs;
        let ticks = secs * FINE_TICKS_PER_SEC + i64::from(instant.subsec_nanosecond()) / FINE_TICK_NANOS;
        u32::try_from(ticks.max(0)).unwrap_or(LAST_TICK)
    }

    /// Never early: a timer that is due has its instant behind it.
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
    fn a_whole_minute_is_its_own_tick() {
        let instant = at("2026-05-01T00:01:00Z");
        assert_eq!(from_minute(minute_floor(instant)), instant);
        assert_eq!(minute_floor(at("2026-05-01T00:01:59.999Z")), minute_floor(instant));
    }
}

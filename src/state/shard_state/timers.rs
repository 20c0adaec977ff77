//! The two wheels of a shard and the conversion between instants and their ticks.

use jiff::Timestamp;

use super::{ShardState, Wakeup};
use crate::{
    schedule::wheel::Wheel,
    state::{cron_job::SlotTimer, index::OwnerIndex},
};

/// Ticks of the fine wheel in a second: deadlines and back-offs need no better.
const FINE_TICKS_PER_SEC: i64 = 20;
const FINE_TICK_NANOS: i64 = 1_000_000_000 / FINE_TICKS_PER_SEC;

/// What a timer was set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The armed slot of a CronJob.
    Slot(OwnerIndex),
    /// Anything else that a CronJob waits for.
    Wake(OwnerIndex),
}

/// Whole minutes for cron instants; a finer wheel for `@every`, deadlines and back-offs.
pub(super) struct Timers {
    minutes: Wheel<OwnerIndex>,
    fine: Wheel<Due>,
    due_minutes: Vec<(u64, OwnerIndex)>,
    due_fine: Vec<(u64, Due)>,
    /// Handed out and back, so that a burst does not grow it anew.
    buffer: Vec<Due>,
}

impl Timers {
    pub(super) fn new(now: Timestamp) -> Timers {
        Timers {
            minutes: Wheel::new(minute_floor(now)),
            fine: Wheel::new(fine_floor(now)),
            due_minutes: Vec::new(),
            due_fine: Vec::new(),
            buffer: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.minutes.len() + self.fine.len()
    }

    /// Whether the wheels stand more than a minute after `now`.
    fn is_ahead_of(&self, now: Timestamp) -> bool {
        self.minutes.elapsed() > minute_floor(now) + 1
    }

    pub(super) fn take_buffer(&mut self) -> Vec<Due> {
        std::mem::take(&mut self.buffer)
    }

    pub(super) fn return_buffer(&mut self, mut buffer: Vec<Due>) {
        buffer.clear();
        self.buffer = buffer;
    }

    /// Everything due by `now`: slots of whole minutes first, since most are.
    pub(super) fn advance(&mut self, now: Timestamp, due: &mut Vec<Due>) {
        self.minutes.advance(minute_floor(now), &mut self.due_minutes);
        due.extend(self.due_minutes.drain(..).map(|(_, owner)| Due::Slot(owner)));
        self.fine.advance(fine_floor(now), &mut self.due_fine);
        due.extend(self.due_fine.drain(..).map(|(_, timer)| timer));
    }

    pub(super) fn next_wakeup(&self) -> Option<Wakeup> {
        let minute = self.minutes.next_tick().map(|tick| Wakeup {
            at: from_minute(tick),
            timer: "slot",
        });
        let fine = self.fine.next_tick().map(|tick| Wakeup {
            at: from_fine(tick),
            timer: "fine",
        });
        match (minute, fine) {
            (Some(minute), Some(fine)) => Some(if fine.at < minute.at { fine } else { minute }),
            (minute, fine) => minute.or(fine),
        }
    }
}

impl ShardState {
    /// A clock that was set back would leave the wheels waiting for the time to come again: they are made anew.
    /// What was started stays started, since the cursor says so.
    pub(super) fn follow_clock(&mut self, now: Timestamp) {
        if !self.timers.is_ahead_of(now) {
            return;
        }
        self.timers = Timers::new(now);
        for owner in self.index.owner_indexes() {
            let Some(cron_job) = self.index.cron_job_mut(owner) else {
                continue;
            };
            cron_job.slot_timer = None;
            cron_job.wake_timer = None;
            cron_job.armed = None;
            // Instants of the time that was wrong must not hold anything back.
            cron_job.schedule_changed = cron_job.schedule_changed.map(|changed| changed.min(now));
            cron_job.status_not_before = None;
            cron_job.history_not_before = None;
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
        let is_whole_minute = slot.as_second() % 60 == 0 && slot.subsec_nanosecond() == 0;
        let timers = &mut self.timers;
        cron_job.slot_timer = Some(match (cron_job.slot_timer, is_whole_minute) {
            (Some(SlotTimer::Minute(timer)), true) => {
                timers.minutes.set(timer, minute_floor(slot));
                SlotTimer::Minute(timer)
            }
            (Some(SlotTimer::Fine(timer)), false) => {
                timers.fine.set(timer, fine_ceiling(slot));
                SlotTimer::Fine(timer)
            }
            (former, true) => {
                timers.cancel(former);
                SlotTimer::Minute(timers.minutes.insert(minute_floor(slot), owner))
            }
            (former, false) => {
                timers.cancel(former);
                SlotTimer::Fine(timers.fine.insert(fine_ceiling(slot), Due::Slot(owner)))
            }
        });
    }

    /// Takes the CronJob's slot off its wheel.
    pub(super) fn disarm(&mut self, owner: OwnerIndex) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        cron_job.armed = None;
        let former = cron_job.slot_timer.take();
        self.timers.cancel(former);
    }

    /// Sees to it that the CronJob is looked at by `at`, at the latest.
    pub(super) fn wake_at(&mut self, owner: OwnerIndex, at: Timestamp) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        match cron_job.wake_timer {
            Some((earlier, _)) if earlier <= at => {}
            Some((_, timer)) => {
                self.timers.fine.set(timer, fine_ceiling(at));
                cron_job.wake_timer = Some((at, timer));
            }
            None => {
                let timer = self.timers.fine.insert(fine_ceiling(at), Due::Wake(owner));
                cron_job.wake_timer = Some((at, timer));
            }
        }
    }

    pub(super) fn cancel_wake(&mut self, owner: OwnerIndex) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        if let Some((_, timer)) = cron_job.wake_timer.take() {
            self.timers.fine.cancel(timer);
        }
    }
}

impl Timers {
    fn cancel(&mut self, timer: Option<SlotTimer>) {
        match timer {
            Some(SlotTimer::Minute(timer)) => {
                self.minutes.cancel(timer);
            }
            Some(SlotTimer::Fine(timer)) => {
                self.fine.cancel(timer);
            }
            None => {}
        }
    }
}

/// Instants before the epoch are the epoch: nothing is armed there.
fn minute_floor(instant: Timestamp) -> u64 {
    u64::try_from(instant.as_second().div_euclid(60)).unwrap_or(0)
}

fn fine_floor(instant: Timestamp) -> u64 {
    let ticks = instant.as_second() * FINE_TICKS_PER_SEC + i64::from(instant.subsec_nanosecond()) / FINE_TICK_NANOS;
    u64::try_from(ticks).unwrap_or(0)
}

/// Never early: a timer that is due has its instant behind it.
fn fine_ceiling(instant: Timestamp) -> u64 {
    let is_on_tick = i64::from(instant.subsec_nanosecond()) % FINE_TICK_NANOS == 0;
    fine_floor(instant) + u64::from(!is_on_tick)
}

fn from_minute(tick: u64) -> Timestamp {
    let secs = i64::try_from(tick).ok().and_then(|minutes| minutes.checked_mul(60));
    secs.and_then(|secs| Timestamp::from_second(secs).ok())
        .unwrap_or(Timestamp::MAX)
}

fn from_fine(tick: u64) -> Timestamp {
    let ticks = i64::try_from(tick).unwrap_or(i64::MAX);
    let nanos = i32::try_from(ticks % FINE_TICKS_PER_SEC * FINE_TICK_NANOS).unwrap_or(0);
    Timestamp::new(ticks / FINE_TICKS_PER_SEC, nanos).unwrap_or(Timestamp::MAX)
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
            let woken = from_fine(fine_ceiling(instant));
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

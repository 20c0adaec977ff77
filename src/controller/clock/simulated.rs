//! The clock of a simulated machine, for tests.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{Clock, Source};
use crate::{kube_api::latest_value::LatestSender, shard::BootInstant};

/// Rate of an accurate boot clock: a million seconds counted in a million seconds.
const TRUE_RATE: u32 = 1_000_000;

/// The wall clock of a simulated machine. It follows the timer of the async runtime, which tests can pause, and can be
/// stepped. Clones share one clock.
#[derive(Clone, Debug)]
pub struct SimulatedWall {
    epoch: Timestamp,
    start: Instant,
    /// Sum of all steps, in milliseconds.
    stepped_ms: Arc<AtomicI64>,
    /// Whether the processes of the machine are stopped.
    is_frozen: LatestSender<bool>,
    /// Seconds that the boot clock counts in a million seconds.
    boot_rate: u32,
}

#[cfg(test)]
impl Clock {
    /// Observes answers to a round of probes, of servers whose clock is ahead by `server_ahead`.
    pub(crate) fn compare(&self, server_ahead: SignedDuration) {
        let answer = super::ProbeAnswer {
            sent: self.boot(),
            received: self.boot(),
            date: Some(self.now() + server_ahead),
        };
        self.observe(&[answer; crate::controller::connections::N_WRITE_CONNECTIONS]);
    }
}

impl SimulatedWall {
    /// Creates a clock that reads `epoch` now, of a machine that has just booted.
    #[expect(
        clippy::disallowed_methods,
        reason = "time of a simulation follows the timer of the async runtime"
    )]
    pub fn starting_at(epoch: Timestamp) -> SimulatedWall {
        SimulatedWall {
            epoch,
            start: Instant::now(),
            stepped_ms: Arc::default(),
            is_frozen: LatestSender::new(false),
            boot_rate: TRUE_RATE,
        }
    }

    /// Sets the rate of the boot clock, in seconds counted per million seconds.
    #[must_use]
    pub fn with_boot_rate(mut self, seconds_per_million: u32) -> SimulatedWall {
        self.boot_rate = seconds_per_million;
        self
    }

    /// Returns the wall time.
    pub fn now(&self) -> Timestamp {
        self.read().0
    }

    /// Returns the readings of the wall clock and of the boot clock.
    pub(super) fn read(&self) -> (Timestamp, BootInstant) {
        let elapsed = self.start.elapsed();
        let stepped = SignedDuration::from_millis(self.stepped_ms.load(Ordering::Relaxed));
        let boot = BootInstant::after_boot(elapsed * self.boot_rate / TRUE_RATE);
        (self.epoch + elapsed + stepped, boot)
    }

    /// Steps the clock forward or back by whole milliseconds.
    pub fn step(&self, by: SignedDuration) {
        let millis = by.as_millis().try_into().unwrap_or_default();
        self.stepped_ms.fetch_add(millis, Ordering::Relaxed);
    }

    /// Stops the processes of the machine, as SIGSTOP does. Time continues.
    pub fn freeze(&self) {
        self.is_frozen.set(true);
    }

    /// Resumes the processes of the machine.
    pub fn thaw(&self) {
        self.is_frozen.set(false);
    }

    /// Runs a task as a process of the machine: the task makes no progress while the machine is frozen.
    pub async fn run<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        let mut frozen = self.is_frozen.subscribe();
        loop {
            frozen.wait_for(|is_frozen| !is_frozen).await;
            tokio::select! {
                biased;
                () = frozen.changed() => {}
                output = &mut task => return output,
            }
        }
    }
}

impl Clock {
    /// Creates a clock that starts at `epoch` and follows the async runtime's timer, for tests with paused time.
    pub fn simulated(epoch: Timestamp) -> Clock {
        Clock::of_simulated(SimulatedWall::starting_at(epoch))
    }

    /// Creates a clock over a simulated machine, which can outlive this process, for tests with paused time.
    pub fn of_simulated(wall: SimulatedWall) -> Clock {
        Clock::over(
            Source::Simulated(wall),
            SignedDuration::ZERO,
            SignedDuration::from_secs(2),
        )
    }

    /// Steps the wall clock if it is simulated.
    #[cfg(test)]
    pub(in crate::controller) fn step_wall(&self, by: SignedDuration) {
        if let Source::Simulated(wall) = &self.shared.source {
            wall.step(by);
        }
    }
}

//! Time: the only place that reads a clock.
//!
//! [`Clock::now`] is the wall time that the [guard](guard::ClockGuard) accepts, plus `--clock-offset`. Durations are
//! measured by the boot clock. A sleeper never returns before its instant, even if the wall clock is stepped meanwhile.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use rustix::{
    fd::OwnedFd,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    },
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::sleep,
};

use crate::{
    kube_api::latest_value::{LatestReceiver, LatestSender},
    shard::BootInstant,
};

pub mod guard;
#[cfg(feature = "simulation")]
mod simulated;

use guard::ClockGuard;
pub use guard::{ClockVerdict, ProbeAnswer};
#[cfg(feature = "simulation")]
pub use simulated::SimulatedWall;

/// Maximum interval between two reads of the clock by a sleeper, so that it notices a step of the wall clock in time.
const CLOCK_READ_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The clocks of this process and their guard. Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    offset: SignedDuration,
    guard: Mutex<ClockGuard>,
    verdict: LatestSender<ClockVerdict>,
}

#[derive(Debug)]
enum Source {
    System,
    #[cfg(feature = "simulation")]
    Simulated(SimulatedWall),
}

impl Source {
    fn read(&self) -> (Timestamp, BootInstant) {
        match self {
            Source::System => (system_wall(), system_boot()),
            #[cfg(feature = "simulation")]
            Source::Simulated(wall) => wall.read(),
        }
    }

    fn boot(&self) -> BootInstant {
        match self {
            Source::System => system_boot(),
            #[cfg(feature = "simulation")]
            Source::Simulated(wall) => wall.read().1,
        }
    }
}

impl Clock {
    /// Creates a clock over the machine's clocks. `offset` is the lead of the controller's time over them, `skew_max`
    /// the maximum difference from the API server's clock.
    pub fn system(offset: SignedDuration, skew_max: SignedDuration) -> Clock {
        Clock::over(Source::System, offset, skew_max)
    }

    /// Returns the wall clock's own reading, without guard and offset, for views that start nothing: the guard holds a step
    /// of the clock back until the API server confirms it, which a view does not ask.
    pub(crate) fn wall(&self) -> Timestamp {
        self.shared.source.read().0
    }

    fn over(source: Source, offset: SignedDuration, skew_max: SignedDuration) -> Clock {
        let (wall, boot) = source.read();
        let guard = ClockGuard::new(skew_max, wall, boot);
        let verdict = LatestSender::new(guard.verdict());
        Clock {
            shared: Arc::new(Shared {
                source,
                offset,
                guard: Mutex::new(guard),
                verdict,
            }),
        }
    }

    /// Returns the controller's wall time.
    pub fn now(&self) -> Timestamp {
        let (wall, boot) = self.shared.source.read();
        let trusted = self.guard().read(wall, boot);
        trusted.saturating_add(self.shared.offset).unwrap_or(trusted)
    }

    /// Returns the reading of the boot clock, for durations and Leases.
    pub fn boot(&self) -> BootInstant {
        self.shared.source.boot()
    }

    /// Returns the maximum difference from the API server's clock (`--max-clock-skew`).
    pub fn skew_max(&self) -> SignedDuration {
        self.guard().skew_max
    }

    /// Returns the lead of the controller's time over the machine's (`--clock-offset`).
    pub fn offset(&self) -> SignedDuration {
        self.shared.offset
    }

    /// Records the answers to a round of probes.
    pub fn observe(&self, round: &[ProbeAnswer]) {
        let (wall, boot) = self.shared.source.read();
        let mut guard = self.guard();
        guard.read(wall, boot);
        guard.observe(round);
        self.shared.verdict.set(guard.verdict());
    }

    /// Returns whether the clock of the server that answered is too far from this one.
    pub fn contradicts(&self, answer: &ProbeAnswer) -> bool {
        self.guard().contradicts(answer)
    }

    /// Returns the result of the comparison of the clocks.
    pub fn verdict(&self) -> ClockVerdict {
        self.shared.verdict.get()
    }

    /// Returns whether the controller may act by this clock.
    pub fn is_fine(&self) -> bool {
        self.verdict() == ClockVerdict::Fine
    }

    /// Returns a receiver of the verdict that is notified of each change.
    pub fn subscribe_verdict(&self) -> LatestReceiver<ClockVerdict> {
        self.shared.verdict.subscribe()
    }

    /// Returns this machine's clock minus the API server's, if it is known.
    pub fn skew(&self) -> Option<SignedDuration> {
        self.guard().skew()
    }

    /// Returns whether a step of the wall clock is held, that is, not followed yet.
    pub fn is_holding_step(&self) -> bool {
        self.guard().is_holding_step()
    }

    /// Returns whether the clocks need answers of the API server soon.
    pub fn is_in_doubt(&self) -> bool {
        self.guard().is_in_doubt()
    }

    /// Creates a sleeper for instants of this clock.
    pub fn sleeper(&self) -> Sleeper {
        let timer = match self.shared.source {
            Source::System => kernel_timer(),
            #[cfg(feature = "simulation")]
            Source::Simulated(_) => None,
        };
        Sleeper {
            clock: self.clone(),
            timer,
        }
    }

    /// Runs a task as a process of this clock's machine; a simulated machine can be frozen.
    pub(super) async fn run_with<T>(&self, task: impl Future<Output = T>) -> T {
        match &self.shared.source {
            Source::System => task.await,
            #[cfg(feature = "simulation")]
            Source::Simulated(wall) => wall.run(task).await,
        }
    }

    /// Locks the guard. It is consistent after every statement, so a panic elsewhere does not invalidate it.
    fn guard(&self) -> MutexGuard<'_, ClockGuard> {
        self.shared.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps until instants of wall time, accurate to tens of microseconds where kernel timers are available.
///
/// The async runtime's own timer rounds up to whole milliseconds: too coarse for Jobs that are due now.
#[derive(Debug)]
pub struct Sleeper {
    clock: Clock,
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Sleeper {
    /// Returns at `instant` or as soon after it as possible, never before. Cancel safe.
    pub async fn sleep_until(&mut self, instant: Timestamp) {
        loop {
            let remaining = instant.duration_since(self.clock.now());
            let Ok(remaining) = Duration::try_from(remaining) else {
                return;
            };
            if remaining.is_zero() {
                return;
            }
            self.pause(remaining.min(CLOCK_READ_INTERVAL_MAX)).await;
        }
    }

    async fn pause(&mut self, duration: Duration) {
        let is_over = match &self.timer {
            Some(timer) => wait_for_kernel_timer(timer, duration).await.is_ok(),
            None => false,
        };
        if !is_over {
            self.timer = None;
            sleep(duration).await;
        }
    }
}

/// `None` where the kernel or a sandbox refuses a timer; the coarser timer of the runtime is used instead.
fn kernel_timer() -> Option<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC).ok()?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of types that do not own what they name"
    )]
    AsyncFd::with_interest(timer, Interest::READABLE).ok()
}

async fn wait_for_kernel_timer(timer: &AsyncFd<OwnedFd>, duration: Duration) -> std::io::Result<()> {
    let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Timespec::try_from(duration).map_err(|_| std::io::ErrorKind::InvalidInput)?;
    // Setting the timer also clears an expiry that has not been read.
    timerfd_settime(
        timer,
        TimerfdTimerFlags::empty(),
        &Itimerspec {
            it_interval: never_again,
            it_value: once,
        },
    )?;
    loop {
        let mut readiness = timer.readable().await?;
        let mut n_expiries = [0u8; 8];
        match readiness.try_io(|timer| Ok(rustix::io::read(timer, &mut n_expiries)?)) {
            Ok(read) => return read.map(drop),
            Err(_would_block) => {}
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads clocks")]
fn system_wall() -> Timestamp {
    Timestamp::now()
}

fn system_boot() -> BootInstant {
    let elapsed = rustix::time::clock_gettime(ClockId::Boottime);
    BootInstant::after_boot(Duration::try_from(elapsed).unwrap_or_default())
}

#[cfg(test)]
mod tests;

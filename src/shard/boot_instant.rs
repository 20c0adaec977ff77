//! Instants of the boot clock, and the time on both clocks.

use std::{ops::Add, time::Duration};

use jiff::Timestamp;

/// An instant of the boot clock. The clock never steps, counts while the machine sleeps, and is local to one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// The instant `elapsed` after boot.
    pub const fn after_boot(elapsed: Duration) -> BootInstant {
        BootInstant(elapsed)
    }

    /// Time since boot.
    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// Time since an earlier instant; zero if that instant is later.
    pub fn since(self, earlier: BootInstant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootInstant {
    type Output = BootInstant;

    fn add(self, duration: Duration) -> BootInstant {
        BootInstant(self.0.saturating_add(duration))
    }
}

/// The current time on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Wall time, for schedules.
    pub wall: Timestamp,
    /// The boot clock, for durations.
    pub boot: BootInstant,
}

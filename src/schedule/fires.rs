//! The next activation of a schedule, equal to robfig/cron v3 to the last quirk (B-8).

use jiff::Timestamp;

use super::zone::Zone;

/// A parsed schedule.
#[derive(Clone, Debug)]
pub struct Schedule {}

impl Schedule {
    /// The first activation strictly later than `reference`, at whole seconds, or `None` where the
    /// library gives the zero time (B-8.1). `local` is the zone of a schedule that names none (B-7.2).
    pub fn next_after(&self, _reference: Timestamp, _local: &Zone) -> Option<Timestamp> {
        todo!()
    }

    /// Whether this is an `@every` schedule, anchored to the reference instant (B-7.5).
    pub fn is_every(&self) -> bool {
        todo!()
    }
}

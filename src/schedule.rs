//! Layer 1, pure: what a schedule says, which slot is due, and what follows from it.
//!
//! Uses the standard library and jiff's zone data. Reads no clock: `now` is an argument everywhere.

pub mod cron;
pub mod describe;
pub mod due;
pub mod effective;
pub mod fires;
pub mod policy;
pub mod wheel;
pub mod zone;

pub use cron::{ParseError, parse_standard, quote};
pub use effective::CronJobSchedule;
pub use fires::Schedule;
pub use policy::ConcurrencyPolicy;
pub use zone::{Zone, ZoneError, tzdb_version};

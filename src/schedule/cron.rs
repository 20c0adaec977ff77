//! Schedule text to a parsed schedule, exactly as robfig/cron v3 `ParseStandard` (B-7).

use super::fires::Schedule;

/// Why a text is no schedule; `Display` is the library's own text (B-7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

/// Parses a schedule with an optional `TZ=` or `CRON_TZ=` prefix (B-7.3).
pub fn parse_standard(_text: &str) -> Result<Schedule, ParseError> {
    todo!()
}

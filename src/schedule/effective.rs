//! `spec.schedule` and `spec.timeZone` of a CronJob, put together and parsed once (B-7.1).

use super::{ParseError, Schedule, Zone, ZoneError, parse_standard};

/// `spec.schedule` with `spec.timeZone`, parsed once (B-7.1).
#[derive(Clone, Debug)]
pub struct CronJobSchedule {
    /// `spec.schedule` as written.
    pub text: Box<str>,
    /// `spec.timeZone` as written.
    pub time_zone: Option<Box<str>>,
    /// The zone of `spec.timeZone`, or why it does not load (B-6.2); the default zone for `Local`.
    pub zone: Option<Result<Zone, ZoneError>>,
    /// The effective schedule, or why it does not parse (B-6.4).
    pub parsed: Result<Schedule, ParseError>,
    /// The zone of a schedule that names none (B-7.2).
    pub default_zone: Zone,
}

impl CronJobSchedule {
    /// Builds the effective schedule (B-7.1): a text that holds `TZ` anywhere is used as it is, whatever the zone field says.
    pub fn new(text: &str, time_zone: Option<&str>, default_zone: &Zone) -> CronJobSchedule {
        let zone = time_zone.map(|name| match name {
            // The zone of the process, for which ours is the default one (B-7.2).
            "Local" => Ok(default_zone.clone()),
            _ => Zone::load(name),
        });
        let parsed = match (time_zone, &zone) {
            (Some(name), Some(Ok(_))) if !text.contains("TZ") => parse_standard(&format!("TZ={name} {text}")),
            _ => parse_standard(text),
        };
        CronJobSchedule {
            text: text.into(),
            time_zone: time_zone.map(Into::into),
            zone,
            parsed,
            default_zone: default_zone.clone(),
        }
    }

    /// Whether the text itself names a zone, which Kubernetes does not support (B-7.1).
    pub fn names_zone_in_text(&self) -> bool {
        self.text.contains("TZ")
    }

    /// Whether another one was written by the user, by the rule of B-2.1.
    pub fn differs_from(&self, other: &CronJobSchedule) -> bool {
        self.text != other.text || self.time_zone != other.time_zone
    }
}

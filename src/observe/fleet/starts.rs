//! The forecast of a fleet, which is computed again from time to time.

use jiff::{SignedDuration, Timestamp};

use super::Fleet;
use crate::observe::forecast::Forecast;

/// The time that the forecast covers: a day, and the time until it is computed again.
const FORECAST_LENGTH: SignedDuration = SignedDuration::from_hours(25);

/// The forecast is not computed more often.
const FORECAST_INTERVAL_MIN: SignedDuration = SignedDuration::from_mins(1);

/// The forecast is computed again after this time, even if no schedule changed.
const FORECAST_INTERVAL_MAX: SignedDuration = SignedDuration::from_mins(30);

impl Fleet {
    /// The starts of the next 24 hours at least, as they were known in the last half hour.
    pub fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// When the forecast is to be computed again, if something changed.
    pub(super) fn forecast_due(&self) -> Option<Timestamp> {
        self.is_forecast_stale
            .then(|| self.forecast_computed + FORECAST_INTERVAL_MIN)
    }

    pub(super) fn refresh_forecast(&mut self, now: Timestamp) {
        let age = now.duration_since(self.forecast_computed);
        let has_passed = self.forecast.peak().is_some_and(|peak| peak.at < now);
        let is_due = (self.is_forecast_stale || has_passed) && age >= FORECAST_INTERVAL_MIN;
        let is_first = self.is_forecast_stale && self.forecast.namespaces().next().is_none();
        if !is_due && !is_first && age < FORECAST_INTERVAL_MAX {
            return;
        }
        let inputs = self
            .cron_jobs
            .iter()
            .filter_map(|(_, cron_job)| cron_job.forecast_input(&self.inherited.freezes));
        self.forecast = Forecast::new(inputs, now, now.saturating_add(FORECAST_LENGTH).unwrap_or(now));
        (self.forecast_computed, self.is_forecast_stale) = (now, false);
        self.version += 1;
    }
}

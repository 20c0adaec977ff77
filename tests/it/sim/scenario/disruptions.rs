//! The disruptions of the API server, of the connection to it, and of the clock of the controller.

use jiff::{SignedDuration, Timestamp};

use super::pause;
use crate::random::Random;

const DISRUPTIONS_AN_HOUR: i64 = 8;

/// A disruption with a limited duration.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Disruption {
    pub(in crate::sim) from: Timestamp,
    pub(in crate::sim) until: Timestamp,
    pub(in crate::sim) kind: DisruptionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum DisruptionKind {
    /// The API server is down. After its restart, it knows no earlier changes.
    Outage,
    /// Requests take seconds.
    Slow,
    /// Requests other than watches get 429 with `Retry-After`. Work may stay pending for minutes, and its CronJob may
    /// change meanwhile.
    Throttled { retry_after_seconds: u64 },
    /// Some requests get 500.
    InternalErrors,
    /// Some requests get 503.
    Unavailable,
    /// Admission denies Jobs.
    Denied,
    /// Status writes get 409.
    Conflicts,
    /// Lists and watches get 410.
    Expired,
    /// Watches end after each event.
    WatchesEnd,
    /// Watches stay open without events.
    WatchesStall,
    /// Watches deliver events slowly, one after the other.
    WatchesSlow,
    /// The second API server lags.
    Behind,
    /// The wall clock of the controller is wrong by this many milliseconds.
    ClockStep { millis: i64 },
}

impl Disruption {
    /// The maximum time that the controller needs to recover afterwards. It retries refused creates within 75 seconds,
    /// and other deferred work in half that time. It retries a watch within ten seconds, or within twenty if the request
    /// is lost.
    pub(in crate::sim) fn recovery(&self) -> SignedDuration {
        SignedDuration::from_secs(match self.kind {
            DisruptionKind::InternalErrors | DisruptionKind::Denied => 80,
            DisruptionKind::Outage
            | DisruptionKind::Unavailable
            | DisruptionKind::Expired
            | DisruptionKind::Throttled { .. } => 25,
            DisruptionKind::Slow
            | DisruptionKind::WatchesStall
            | DisruptionKind::WatchesSlow
            | DisruptionKind::Behind => 5,
            DisruptionKind::Conflicts | DisruptionKind::WatchesEnd | DisruptionKind::ClockStep { .. } => 0,
        })
    }

    /// Whether the disruption can delay due requests of the controller.
    pub(in crate::sim) fn delays_requests(&self) -> bool {
        match self.kind {
            DisruptionKind::Conflicts | DisruptionKind::WatchesEnd | DisruptionKind::ClockStep { .. } => false,
            DisruptionKind::Outage
            | DisruptionKind::Slow
            | DisruptionKind::Throttled { .. }
            | DisruptionKind::InternalErrors
            | DisruptionKind::Unavailable
            | DisruptionKind::Denied
            | DisruptionKind::Expired
            | DisruptionKind::WatchesStall
            | DisruptionKind::WatchesSlow
            | DisruptionKind::Behind => true,
        }
    }

    /// Whether watches may deliver changes late: they stall, cannot start, or end after each event.
    pub(in crate::sim) fn delays_watches(&self) -> bool {
        match self.kind {
            DisruptionKind::Throttled { .. }
            | DisruptionKind::Denied
            | DisruptionKind::Conflicts
            | DisruptionKind::ClockStep { .. } => false,
            DisruptionKind::Outage
            | DisruptionKind::Slow
            | DisruptionKind::InternalErrors
            | DisruptionKind::Unavailable
            | DisruptionKind::Expired
            | DisruptionKind::WatchesEnd
            | DisruptionKind::WatchesStall
            | DisruptionKind::WatchesSlow
            | DisruptionKind::Behind => true,
        }
    }

    /// Whether a controller that starts during the disruption must stay idle, because its clock is wrong.
    pub(in crate::sim) fn stops_new_controllers(&self) -> bool {
        matches!(self.kind, DisruptionKind::ClockStep { millis } if millis.abs() > 1_000)
    }
}

pub(super) fn draw(random: &mut Random, roughness: i64, start: Timestamp, calm_at: Timestamp) -> Vec<Disruption> {
    let mut disruptions: Vec<Disruption> = Vec::new();
    let mut at = start;
    loop {
        at += pause(random, roughness * DISRUPTIONS_AN_HOUR);
        let kind = draw_kind(random);
        let until = at + SignedDuration::from_millis(draw_millis(random, kind));
        if until >= calm_at {
            return disruptions;
        }
        // Two overlapping clock steps could set the clock to any time.
        let is_step = |disruption: &Disruption| matches!(disruption.kind, DisruptionKind::ClockStep { .. });
        let disruption = Disruption { from: at, until, kind };
        let is_stepped = disruptions.iter().any(|other| is_step(other) && other.until >= at);
        if !(is_step(&disruption) && is_stepped) {
            disruptions.push(disruption);
        }
    }
}

fn draw_millis(random: &mut Random, kind: DisruptionKind) -> i64 {
    let longest = longest_seconds(kind) * 1_000;
    // Later slots must become due while deletes wait to be sent.
    let longest = if matches!(kind, DisruptionKind::Throttled { .. }) {
        random.pick(&[5_000, longest, longest, longest])
    } else {
        random.pick(&[5_000, 30_000, 60_000, longest])
    };
    random.between(1_000, longest)
}

fn longest_seconds(kind: DisruptionKind) -> i64 {
    match kind {
        DisruptionKind::Outage
        | DisruptionKind::Throttled { .. }
        | DisruptionKind::WatchesStall
        | DisruptionKind::ClockStep { .. } => 300,
        DisruptionKind::Slow
        | DisruptionKind::InternalErrors
        | DisruptionKind::Unavailable
        | DisruptionKind::Denied
        | DisruptionKind::Conflicts
        | DisruptionKind::Expired
        | DisruptionKind::WatchesEnd
        | DisruptionKind::WatchesSlow
        | DisruptionKind::Behind => 90,
    }
}

fn draw_kind(random: &mut Random) -> DisruptionKind {
    let throttled = DisruptionKind::Throttled {
        retry_after_seconds: random.pick(&[1, 3, 10]),
    };
    let step = DisruptionKind::ClockStep {
        millis: random.pick(&[
            -800,
            800,
            -5_000,
            5_000,
            -60_000,
            60_000,
            -3_600_000,
            3_600_000,
            100_000_000,
        ]),
    };
    random.pick(&[
        DisruptionKind::Outage,
        DisruptionKind::Slow,
        throttled,
        throttled,
        DisruptionKind::InternalErrors,
        DisruptionKind::Unavailable,
        DisruptionKind::Denied,
        DisruptionKind::Conflicts,
        DisruptionKind::Expired,
        DisruptionKind::WatchesEnd,
        DisruptionKind::WatchesStall,
        DisruptionKind::WatchesSlow,
        DisruptionKind::Behind,
        step,
        step,
    ])
}

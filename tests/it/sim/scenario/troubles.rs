//! The faults between the controller and the API server, and of the controller's clock.

use jiff::{SignedDuration, Timestamp};

use super::pause;
use crate::random::Random;

const TROUBLES_AN_HOUR: i64 = 8;

/// A fault with a limited duration.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Trouble {
    pub(in crate::sim) from: Timestamp,
    pub(in crate::sim) until: Timestamp,
    pub(in crate::sim) kind: TroubleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum TroubleKind {
    /// There is no API server. The restarted one knows no earlier changes.
    Outage,
    /// Requests take seconds.
    Slow,
    /// 429 with `Retry-After` for everything except watches. Started work may be neither done nor refused for minutes,
    /// and its CronJob may change meanwhile.
    Throttled { retry_after_seconds: u64 },
    /// Some responses are 500.
    InternalErrors,
    /// Some responses are 503.
    Unavailable,
    /// Admission denies Jobs.
    Denied,
    /// Status writes get 409.
    Conflicts,
    /// Lists and watches get 410.
    Expired,
    /// Watches end after each event.
    WatchesEnd,
    /// Watches stay open without sending anything.
    WatchesStall,
    /// Watches send their events slowly, one after the other.
    WatchesSlow,
    /// The second API server lags.
    Behind,
    /// The controller's wall clock is wrong by this many milliseconds.
    ClockStep { millis: i64 },
}

impl Trouble {
    /// How long the controller may need to recover afterwards. Refused creates return within a minute plus a quarter, other
    /// deferred work in half that time. A watch that was refused for long is requested again within ten seconds, or within twenty if that
    /// message is lost.
    pub(in crate::sim) fn recovery(&self) -> SignedDuration {
        SignedDuration::from_secs(match self.kind {
            TroubleKind::InternalErrors | TroubleKind::Denied => 80,
            TroubleKind::Outage | TroubleKind::Unavailable | TroubleKind::Expired | TroubleKind::Throttled { .. } => 25,
            TroubleKind::Slow | TroubleKind::WatchesStall | TroubleKind::WatchesSlow | TroubleKind::Behind => 5,
            TroubleKind::Conflicts | TroubleKind::WatchesEnd | TroubleKind::ClockStep { .. } => 0,
        })
    }

    /// Whether the fault can delay the controller's immediate work.
    pub(in crate::sim) fn holds_up(&self) -> bool {
        match self.kind {
            TroubleKind::Conflicts | TroubleKind::WatchesEnd | TroubleKind::ClockStep { .. } => false,
            TroubleKind::Outage
            | TroubleKind::Slow
            | TroubleKind::Throttled { .. }
            | TroubleKind::InternalErrors
            | TroubleKind::Unavailable
            | TroubleKind::Denied
            | TroubleKind::Expired
            | TroubleKind::WatchesStall
            | TroubleKind::WatchesSlow
            | TroubleKind::Behind => true,
        }
    }

    /// Whether watches may deliver changes late: they stall, cannot start, or end after each event.
    pub(in crate::sim) fn delays_watches(&self) -> bool {
        match self.kind {
            TroubleKind::Throttled { .. }
            | TroubleKind::Denied
            | TroubleKind::Conflicts
            | TroubleKind::ClockStep { .. } => false,
            TroubleKind::Outage
            | TroubleKind::Slow
            | TroubleKind::InternalErrors
            | TroubleKind::Unavailable
            | TroubleKind::Expired
            | TroubleKind::WatchesEnd
            | TroubleKind::WatchesStall
            | TroubleKind::WatchesSlow
            | TroubleKind::Behind => true,
        }
    }

    /// Whether a controller that starts during the fault must do nothing, because its clock is wrong.
    pub(in crate::sim) fn stops_beginners(&self) -> bool {
        matches!(self.kind, TroubleKind::ClockStep { millis } if millis.abs() > 1_000)
    }
}

pub(super) fn draw(random: &mut Random, roughness: i64, start: Timestamp, calm_at: Timestamp) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    let mut at = start;
    loop {
        at += pause(random, roughness * TROUBLES_AN_HOUR);
        let kind = draw_kind(random);
        let until = at + SignedDuration::from_millis(draw_millis(random, kind));
        if until >= calm_at {
            return troubles;
        }
        // Two clock steps at once could set the clock to any time.
        let is_step = |trouble: &Trouble| matches!(trouble.kind, TroubleKind::ClockStep { .. });
        let trouble = Trouble { from: at, until, kind };
        let is_stepped = troubles.iter().any(|other| is_step(other) && other.until >= at);
        if !(is_step(&trouble) && is_stepped) {
            troubles.push(trouble);
        }
    }
}

fn draw_millis(random: &mut Random, kind: TroubleKind) -> i64 {
    let longest = longest_seconds(kind) * 1_000;
    // While deletes wait to be sent, later slots must become due.
    let longest = if matches!(kind, TroubleKind::Throttled { .. }) {
        random.pick(&[5_000, longest, longest, longest])
    } else {
        random.pick(&[5_000, 30_000, 60_000, longest])
    };
    random.between(1_000, longest)
}

fn longest_seconds(kind: TroubleKind) -> i64 {
    match kind {
        TroubleKind::Outage
        | TroubleKind::Throttled { .. }
        | TroubleKind::WatchesStall
        | TroubleKind::ClockStep { .. } => 300,
        TroubleKind::Slow
        | TroubleKind::InternalErrors
        | TroubleKind::Unavailable
        | TroubleKind::Denied
        | TroubleKind::Conflicts
        | TroubleKind::Expired
        | TroubleKind::WatchesEnd
        | TroubleKind::WatchesSlow
        | TroubleKind::Behind => 90,
    }
}

fn draw_kind(random: &mut Random) -> TroubleKind {
    let throttled = TroubleKind::Throttled {
        retry_after_seconds: random.pick(&[1, 3, 10]),
    };
    let step = TroubleKind::ClockStep {
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
        TroubleKind::Outage,
        TroubleKind::Slow,
        throttled,
        throttled,
        TroubleKind::InternalErrors,
        TroubleKind::Unavailable,
        TroubleKind::Denied,
        TroubleKind::Conflicts,
        TroubleKind::Expired,
        TroubleKind::WatchesEnd,
        TroubleKind::WatchesStall,
        TroubleKind::WatchesSlow,
        TroubleKind::Behind,
        step,
        step,
    ])
}

//! Estimates the number of runs of a scenario: the slots that a controller can start.

use jiff::{SignedDuration, Timestamp};

use super::{
    Crash, Edit, Freeze, Policy, Spec,
    disruptions::{Disruption, DisruptionKind},
    edits::EditKind,
};

/// A slot may start this late, regardless of its deadline.
const LATENESS_ALLOWED: SignedDuration = SignedDuration::from_secs(10);

/// The periods in which no run starts, in order and disjoint.
pub(super) struct Standstills(Vec<(Timestamp, Timestamp)>);

impl Standstills {
    pub(super) fn new(crashes: &[Crash], disruptions: &[Disruption], freezes: &[Freeze]) -> Standstills {
        let wrong_clock = |at: Timestamp| {
            let holds = |disruption: &&Disruption| {
                disruption.stops_new_controllers() && disruption.from <= at && at < disruption.until
            };
            disruptions.iter().find(holds).map_or(at, |disruption| disruption.until)
        };
        let without_controller = crashes.iter().map(|crash| (crash.at, wrong_clock(crash.back_at)));
        let without_responses = disruptions
            .iter()
            .filter(|disruption| stops_starts(disruption.kind))
            .map(|disruption| (disruption.from, disruption.until + disruption.recovery() / 2));
        let frozen = freezes.iter().map(|freeze| (freeze.from, freeze.end()));
        let mut spans: Vec<_> = without_controller.chain(without_responses).chain(frozen).collect();
        spans.sort_unstable();
        let mut apart: Vec<(Timestamp, Timestamp)> = Vec::new();
        for (from, until) in spans {
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                Some(_) | None => apart.push((from, until)),
            }
        }
        Standstills(apart)
    }

    /// The first instant at or after `at` at which a run can start.
    fn over(&self, at: Timestamp) -> Timestamp {
        let n_begun = self.0.partition_point(|(from, _)| *from <= at);
        self.0[..n_begun].last().map_or(at, |(_, until)| at.max(*until))
    }
}

fn stops_starts(kind: DisruptionKind) -> bool {
    match kind {
        DisruptionKind::Outage | DisruptionKind::Throttled { .. } | DisruptionKind::Denied => true,
        DisruptionKind::Slow
        | DisruptionKind::InternalErrors
        | DisruptionKind::Unavailable
        | DisruptionKind::Conflicts
        | DisruptionKind::Expired
        | DisruptionKind::WatchesEnd
        | DisruptionKind::WatchesStall
        | DisruptionKind::WatchesSlow
        | DisruptionKind::Behind
        | DisruptionKind::ClockStep { .. } => false,
    }
}

/// Estimates the number of runs of the CronJob with this number. Applies its edits by users.
pub(super) fn runs(
    number: usize,
    spec: Spec,
    edits: &[Edit],
    from: Timestamp,
    end: Timestamp,
    still: &Standstills,
) -> u64 {
    let mut there = Some(spec);
    let (mut anchor, mut since, mut busy_until) = (from, from, from);
    let mut n_runs = 0;
    let of_this = edits.iter().filter(|edit| edit.cron_job == number);
    for (at, kind) in of_this.map(|edit| (edit.at, Some(edit.kind))).chain([(end, None)]) {
        if let Some(spec) = there.filter(|spec| !spec.is_suspended) {
            n_runs += runs_within(spec, anchor, since..at, &mut busy_until, still);
        }
        since = at;
        match (kind, &mut there) {
            (Some(EditKind::Change(change)), Some(spec)) => change.apply(spec),
            (Some(EditKind::Delete), there) => *there = None,
            (Some(EditKind::Create(spec)), there @ None) => {
                *there = Some(spec);
                (anchor, busy_until) = (at, at);
            }
            _ => {}
        }
    }
    n_runs
}

fn runs_within(
    spec: Spec,
    anchor: Timestamp,
    span: std::ops::Range<Timestamp>,
    busy_until: &mut Timestamp,
    still: &Standstills,
) -> u64 {
    let slots = spec.calendar.slots(anchor, span.start, span.end);
    let ends = slots.iter().copied().skip(1).chain([span.end]);
    let mut n_runs = 0;
    for (slot, over) in slots.iter().copied().zip(ends) {
        let starts = still.over(slot);
        let latest = spec
            .deadline_seconds
            .map(|seconds| slot + SignedDuration::from_secs(seconds).max(LATENESS_ALLOWED));
        let is_lost = starts >= over || latest.is_some_and(|latest| starts > latest);
        let is_refused = spec.policy == Policy::Forbid && starts < *busy_until;
        if !is_lost && !is_refused {
            n_runs += 1;
            *busy_until = starts + SignedDuration::from_secs(spec.run_seconds);
        }
    }
    n_runs
}

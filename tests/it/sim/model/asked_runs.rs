//! Checks the runs that users ask for: each token is answered once, and starts one run or is refused (O-10).

use jiff::{SignedDuration, Timestamp};

use super::{Case, IN_FLIGHT_MAX, OBSERVATION_DELAY_MAX, PATIENCE, missed::has_gap, view::View};
use crate::sim::{
    scenario::{Policy, Spec},
    world::{Deleter, Job, Life},
};

/// A run is given up after ten minutes; with obstructions of that length, it may not start.
const GIVEN_UP: SignedDuration = SignedDuration::from_mins(9);

/// A token, from the time when it is set until another one replaces it.
struct Asked {
    token: u32,
    from: Timestamp,
    until: Timestamp,
}

pub(super) fn judge(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    for asked in asked(case, view) {
        let is_its = |job: &&&Job| job.token == Some(asked.token);
        let runs: Vec<&Job> = view.jobs.iter().filter(is_its).copied().collect();
        let name = &view.cron_job.name;
        for pair in runs.windows(2) {
            if !was_lost(view, pair[0], asked.token) || pair[0].deleted.is_some_and(|at| at.at > pair[1].created) {
                problems.push(format!("{name}: {} Jobs for the token {}", runs.len(), asked.token));
            }
        }
        for run in &runs {
            if let Some(reason) = is_forbidden(case, view, &asked, run) {
                problems.push(format!(
                    "{name}: a Job for the token {} at {}, {reason}",
                    asked.token, run.created
                ));
            }
        }
        if runs.is_empty() && must_run(case, view, &asked) {
            let Asked { token, from, until } = asked;
            problems.push(format!(
                "{name}: no Job for the token {token}, asked for from {from} to {until}"
            ));
        }
    }
}

fn asked(case: &Case<'_>, view: &View<'_>) -> Vec<Asked> {
    let end = view.cron_job.deleted.unwrap_or(case.end);
    let mut all: Vec<Asked> = Vec::new();
    for (since, spec) in &view.cron_job.specs {
        let Some(token) = spec.options.token else { continue };
        match all.last_mut() {
            Some(last) if last.token == token => {}
            last => {
                if let Some(last) = last {
                    last.until = *since;
                }
                all.push(Asked {
                    token,
                    from: *since,
                    until: end,
                });
            }
        }
    }
    all
}

/// Whether others deleted the Job before its token was stored as answered, or Replace did, which does not wait for writes
/// that fail. The next controller cannot know of it.
fn was_lost(view: &View<'_>, run: &Job, token: u32) -> bool {
    run.deleted.is_some_and(|deletion| {
        let is_stored = answered_before(view, deletion.version) == Some(token);
        let specs = view.specs(run.created, deletion.at);
        let is_replaced = specs.iter().any(|(_, spec)| spec.policy == Policy::Replace);
        !is_stored && (deletion.by != Deleter::Controller || is_replaced)
    })
}

pub(super) fn answered_before(view: &View<'_>, version: u64) -> Option<u32> {
    view.cron_job.status_before(version)?.answered
}

/// Whether no controller may have seen at an instant that the Job of a run exists: its create was still on its way when a
/// controller started, and another token has replaced its own, so that nobody looks for it.
pub(super) fn may_be_unseen(case: &Case<'_>, view: &View<'_>, job: &Job, at: Timestamp) -> bool {
    let Some(token) = job.token else { return false };
    let mut lives = case.world.lives.iter();
    let is_of_former = |life: &Life| (life.from..life.from + IN_FLIGHT_MAX).contains(&job.created);
    lives.any(is_of_former)
        && case.obstructions.known_at(at) <= job.created
        && view.cron_job.spec_at(at).options.token != Some(token)
}

/// Why the Job of a token may not have been created, if so.
fn is_forbidden(case: &Case<'_>, view: &View<'_>, asked: &Asked, run: &Job) -> Option<&'static str> {
    let known_at = case.obstructions.known_at(run.created);
    let answered = view
        .cron_job
        .statuses
        .iter()
        .find(|status| status.answered == Some(asked.token));
    if run.created < asked.from || asked.until < known_at {
        Some("when nobody asked for it")
    } else if view.is_frozen(known_at, run.created) {
        Some("in a freeze")
    } else if view.cron_job.deleted.is_some_and(|deleted| deleted < known_at) {
        Some("after the deletion")
    } else if answered.is_some_and(|status| status.at + IN_FLIGHT_MAX < run.created) {
        Some("after it was answered")
    } else {
        None
    }
}

/// Whether a controller had the time to start the run, and no Job let Forbid refuse it.
fn must_run(case: &Case<'_>, view: &View<'_>, asked: &Asked) -> bool {
    let (from, until) = (asked.from, asked.until);
    let specs = view.specs(from - OBSERVATION_DELAY_MAX, until);
    let is_forbid = |(_, spec): &(Timestamp, Spec)| spec.policy == Policy::Forbid;
    let runs_beside = |job: &&Job| {
        let ended = job.ended().unwrap_or(case.end);
        job.is_run() && job.created <= until && from - OBSERVATION_DELAY_MAX <= ended
    };
    if specs.iter().any(is_forbid) && view.jobs.iter().any(runs_beside) {
        return false;
    }
    let until = until.min(from + GIVEN_UP);
    let mut obstacles = case.obstructions.within(from, until).to_vec();
    obstacles.extend(view.freezes().map(|freeze| (freeze.from, freeze.until)));
    obstacles.extend(view.specs(from, until).iter().map(|(since, _)| (*since, *since)));
    obstacles.retain(|(begin, end)| *end >= from && *begin <= until);
    has_gap(obstacles, from, until, PATIENCE)
}

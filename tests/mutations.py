#!/usr/bin/env python3
"""Checks that the simulations detect errors. Each mutation breaks the controller in one place, in a copy of the tree.
The simulation must then fail within 20 seeds. If the mutation breaks sharding, a fleet scenario or one of 20 fleet
seeds must fail. Code that neither of them runs is left to unit tests.

    CARGO_TARGET_DIR=target/mutations python3 tests/mutations.py [simulation | fleet | unit | NAME ...]
    python3 tests/mutations.py apply

The second form builds nothing. It checks that the text that each mutation replaces still exists.

Prints one line for each mutation and exits with 1 if one survives. Use a separate target folder, because the programs
built there are broken on purpose.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STATE = "src/shard/state"
# Name: file, text, replacement.
MUTATIONS = {
    "delete-before-cursor": (f"{STATE}/history_limits.rs", "if !is_waiting {", "if job < u32::MAX {"),
    "forbid-ignored": ("src/schedule/policy.rs", "ConcurrencyPolicy::Forbid if facts.n_active_jobs > 0", "ConcurrencyPolicy::Forbid if facts.n_active_jobs > 9"),
    "replace-deletes-nothing": ("src/schedule/policy.rs", "Decision::Start { slot, replaces: true }", "Decision::Start { slot, replaces: false }"),
    "replace-does-not-decide-again": (f"{STATE}/answers.rs", "(true, false) => self.retry_at(owner, now),", "(true, false) => self.order(owner, None, now),"),
    "history-keeps-one-job-more": (f"{STATE}/history_limits.rs", ".count().saturating_sub(limit);", ".count().saturating_sub(limit + 1);"),
    "history-counts-jobs-being-deleted": (f"{STATE}/history_limits.rs", "job.finish == Some(kind) && !job.is_delete_requested &&", "job.finish == Some(kind) &&"),
    "cursor-stays": (f"{STATE}/answers.rs", "        cron_job.advance_cursor(slot);\n        cron_job.note_short_life();", "        cron_job.note_short_life();"),
    "ended-job-stays-active": (f"{STATE}/active.rs", "        self.index.cron_job_mut(owner).remove_active(&uid);\n", ""),
    "deleted-job-stays-active": (f"{STATE}/active.rs", "let was_active = cron_job.remove_active(&job.uid);", "let was_active = cron_job.is_listed_active(&job.uid);"),
    "job-of-another-namespace-is-owned": ("src/shard/index/job.rs", "        *self.namespace == *cron_job.namespace", "        *self.namespace == *cron_job.namespace || !self.namespace.is_empty()"),
    "manual-job-adopted": (f"{STATE}/active.rs", "(None, false) if self.is_ours(owner, index) => Finding::Adopt,", "(None, false) if self.is_ours(owner, index) || !job.is_reported_unexpected => Finding::Adopt,"),
    "timer-not-armed-after-a-start": (f"{STATE}/decision.rs", "        self.arm(owner, verdict.next);\n", "        self.arm(owner, verdict.next.filter(|_| self.index.n_jobs_of(owner) == 0));\n"),
    "missed-slot-not-started": ("src/schedule/policy.rs", "        slot: slot.map(Chosen::Start),\n", "        slot: slot.filter(|_| facts.armed.is_some()).map(Chosen::Start),\n"),
    "deadline-ignored": ("src/kube_api/objects/decode/cron_job.rs", "starting_deadline_seconds: spec.starting_deadline_seconds.map(|seconds| seconds.max(0)),", "starting_deadline_seconds: spec.starting_deadline_seconds.map(|seconds| seconds.max(900)),"),
    "suspend-ignored": ("src/schedule/policy.rs", "    if facts.is_suspended {\n", "    if facts.is_suspended && facts.armed.is_none() {\n"),
    "new-schedule-starts-a-past-slot": (f"{STATE}/changes.rs", "cron_job.schedule_changed = Some(now);", "cron_job.schedule_changed = None;"),
    "relist-forgets-jobs": (f"{STATE}/relists.rs", "|known| known.mark < mark", "|known| known.mark <= mark"),
    "relist-keeps-deleted-objects": (f"{STATE}/relists.rs", "|known| known.mark < mark", "|known| known.mark > mark"),
    "unanswered-create-not-looked-up": (f"{STATE}/answers.rs", "CreateOutcome::Unanswered { message, .. } => self.look_up_slot(owner, slot, message),", "CreateOutcome::Unanswered { .. } => self.close_slot(owner, InstantOutcome::RefusedDueToTenant),"),
    "failed-create-not-retried": (f"{STATE}/answers.rs", "self.retry_refused(owner, RefusalReason::Failed(status), retry_after, now);", "let _ = (status, retry_after);\n                self.close_slot(owner, InstantOutcome::RefusedDueToTenant);"),
    "failed-status-write-not-retried": (f"{STATE}/status.rs", "                cron_job.n_status_failures = cron_job.n_status_failures.saturating_add(1);", "                cron_job.record.status = sent;\n                cron_job.n_status_failures = cron_job.n_status_failures.saturating_add(1);"),
    "status-conflict-counts-as-success": (f"{STATE}/status.rs", "            StatusOutcome::Conflict => {\n", "            StatusOutcome::Conflict => {\n                cron_job.record.status = sent;\n"),
    "retry-after-ignored": ("src/controller/pacing.rs", "let pause = retry_after.map_or(chosen, |required| required.clamp(PAUSE_MIN, RETRY_AFTER_MAX));", "let pause = chosen;"),
    "expired-creates-sent": ("src/controller/dispatcher/request.rs", "now >= self.expires_at()", "now - jiff::SignedDuration::from_hours(1) > self.expires_at()"),
    "clock-step-accepted-unconfirmed": ("src/controller/clock/guard.rs", "pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);", "pub const STEP_MAX: SignedDuration = SignedDuration::from_hours(2);"),
    "wrong-clock-accepted": ("src/controller/clock/guard.rs", "server.excess_of(self.offset).abs() <= self.skew_max", "server.excess_of(self.offset).abs() <= self.skew_max || self.skew_max.is_positive()"),
    "wrong-outcome-reported": ("src/shard/cron_job/open_slot.rs", "SlotStage::HeldByForbid => InstantOutcome::HeldByForbid,", "SlotStage::HeldByForbid => InstantOutcome::Superseded,"),
    "no-create-without-a-kept-template": ("src/controller/dispatcher/request.rs", "ReadOutcome::Found(record) if is_same(&record) =>", "ReadOutcome::Found(record) if is_same(&record) && record.is_deleting =>"),
    "slot-waits-for-a-foreign-job": (f"{STATE}/look_ups.rs", "                    self.close_slot(owner, InstantOutcome::ForeignJob);", "                    self.retry_later(owner, now);"),
    "asked-run-beside-a-job-under-forbid": (f"{STATE}/run_now.rs", "(ConcurrencyPolicy::Forbid, Some(job)) => {", "(ConcurrencyPolicy::Forbid, Some(job)) if job.len() > 99 => {"),
    "asked-run-in-a-freeze": (f"{STATE}/run_now.rs", "            .filter(|until| now < *until)\n        {", "            .filter(|until| now > *until)\n        {"),
    "job-of-a-token-deleted-before-the-answer": ("src/shard/cron_job/open_run.rs", "unstored.any(|token| job.name == self.record.run_job_name(token))", "unstored.any(|token| token.is_empty() && job.name == self.record.run_job_name(token))"),
    "freeze-ignored": ("src/schedule/policy.rs", "facts.frozen_until.filter(|until| now < *until)", "facts.frozen_until.filter(|until| now < *until && facts.armed.is_none())"),
    "missed-runs-all-starts-the-latest": ("src/schedule/options/catch_up.rs", "CatchUp::All(count) => self.oldest_of_last(resumed, self.now, count),", "CatchUp::All(_) => Some(latest),"),
    "missed-runs-all-starts-one-more": ("src/schedule/options/catch_up.rs", "for _ in 0..count {", "for _ in 0..=count {"),
    "missed-runs-skip-starts-the-latest": ("src/schedule/options/catch_up.rs", "CatchUp::Skip if latest <= missed_until => None,", "CatchUp::Skip if latest <= missed_until && self.resumed.is_some() => None,"),
    "on-resume-ignored": ("src/schedule/options.rs", "self.on_resume.unwrap_or(self.missed_runs)", "self.on_resume.filter(|_| self.has_schedules).unwrap_or(self.missed_runs)"),
    "slots-before-a-change-hide-later-ones": ("src/schedule/policy.rs", "let changed = facts.schedule_changed.filter(|_| options.start_several());", "let changed = facts.schedule_changed.filter(|_| options.start_several() && facts.is_suspended);"),
    "spread-starts-early": ("src/schedule/options.rs", "SignedDuration::from_secs(self.offset_seconds.unwrap_or(0).into())", "SignedDuration::from_secs(self.offset_seconds.unwrap_or(0).min(7).into())"),
    "calendar-excludes-the-day-before": ("src/schedule/exclusion.rs", "(seconds + i64::from(self.zone.offset_seconds_at(seconds))).div_euclid(DAY_SECONDS)", "(seconds + i64::from(self.zone.offset_seconds_at(seconds))).div_euclid(DAY_SECONDS) + 1"),
}

ELECTION = "src/coordination/election"
# Of sharding, with the scenario that is to be red; where that is not, all are played, and seeds.
FLEET = {
    "fence-counted-from-the-answer": (f"{ELECTION}/guards.rs", "fence_from_send: true,", "fence_from_send: false,", "f_06_the_fence"),
    "fence-ignores-the-view": (f"{ELECTION}/guards.rs", "fence_from_view: true,", "fence_from_view: false,", "f_15"),
    "evicted-before-the-lease-expires": (f"{ELECTION}/guards.rs", "wait_out_duration: true,", "wait_out_duration: false,", "f_06_replica_frozen_for_five"),
    "eviction-without-a-current-watch": (f"{ELECTION}/guards.rs", "trusted_watch: true,", "trusted_watch: false,", "f_08"),
    "no-settle-window": (f"{ELECTION}/members.rs", "now >= self.settled_at() &&", "now + self.config.timing.settle_window >= self.members.unchanged_since &&", "f_03"),
    "shares-balanced-during-a-rollout": (f"{ELECTION}/members.rs", "Some(other) == first", "Some(other) == first || !other.is_empty()", "f_02"),
    "sealed-with-unanswered-requests": ("src/shard/state/phase.rs", "while let Some(owner) = self.busy.last() {", "while let Some(owner) = self.busy.last().filter(|_| false) {", "f_01"),
    "transfer-before-statuses-are-stored": ("src/shard/state/phase.rs", "!has_request_in_flight && (cron_job.is_status_stored() || cron_job.unusable.is_some() || has_failed_write)", "let _ = has_failed_write;\n    !has_request_in_flight", "f_01"),
    "takeover-does-not-wait-for-the-proof": ("src/shard/held_shards/takeovers.rs", "Entry::Current => (ResourceVersions::default(), ViewNeeded::Current),", "Entry::Current => (ResourceVersions::default(), ViewNeeded::Written { until: clocks.boot + PROOF_PATIENCE }),", "f_12_lagging_replica"),
    "handed-over-shard-led-before-its-versions": ("src/shard/held_shards/takeovers.rs", "iter::repeat(&takeover.written)", "iter::repeat(&ResourceVersions::default())", "f_12_lagging_next"),
    "deleted-cron-job-stays-on-standby": ("src/shard/state.rs", "Input::CronJobDeleted(uid) => self.delete_cron_job(&uid),", "Input::CronJobDeleted(uid) => {\n                if self.phase != ShardPhase::Standby {\n                    self.delete_cron_job(&uid);\n                }\n            }", "f_14_next_leader"),
    "released-job-is-kept": ("src/shard/state.rs", "Input::JobReleased(uid) => self.release_job(&uid, now),", "Input::JobReleased(uid) => drop(uid),", "f_13"),
    "job-stays-with-its-former-controller": ("src/shard/held_shards.rs", "        if !is_known {\n", "        if is_known {\n", "f_13"),
    "adoption-in-the-same-term": (f"{ELECTION}/adoption.rs", "        Term(last.0 + 1)\n    }", "        Term(last.0.max(1))\n    }", "f_05"),
    "transfer-in-the-same-term": (f"{ELECTION}/handover.rs", "Term(lease.term.0 + 1)", "lease.term", "f_01"),
    "transfer-before-the-drain-is-published": (f"{ELECTION}/handover.rs", "            is_announced\n", "            is_announced || is_leaving\n", "f_01_no_shard_moves"),
    "writes-without-a-precondition": ("src/kube_api/leases/body.rs", '    let mut metadata = json!({\n        "resourceVersion": precondition.to_string(),\n', "    let _ = precondition;\n    let mut metadata = json!({\n", "f_20"),
    "overdue-creates-without-a-rate-limit": ("src/controller/tokens.rs", "if beyond > Duration::ZERO {", "if beyond > Duration::from_hours(1) {", "f_07_overdue"),
    "overdue-create-delays-the-next-slot": ("src/controller/dispatcher/backlog.rs", "self.queue(QueueKind::Overdue).pop_until(now)", "self.queue(QueueKind::Overdue).pop_until(Timestamp::MIN)", "f_07_overdue"),
    "leads-beside-other-settings": (f"{ELECTION}/no_shards_reason.rs", "let theirs = self.other_settings().min_by_key(ToString::to_string)?;", "let theirs = self.other_settings().min_by_key(ToString::to_string).filter(|_| false)?;", "settings::"),
    "waits-for-a-member-that-takes-no-shards": (f"{ELECTION}/no_shards_reason.rs", "lease.holder.member().is_some() && lease.takes_shards();", "lease.holder.member().is_some();", "settings::"),
    "shares-with-an-incompatible-protocol": (f"{ELECTION}/no_shards_reason.rs", "find(|theirs| *theirs != ours)?", "find(|theirs| *theirs != ours && *theirs == 0)?", "f_22"),
    "incompatible-newcomer-takes-shards": (f"{ELECTION}/no_shards_reason.rs", "(!self.is_taking_announced() || theirs < ours).then_some(", "(!self.is_taking_announced() && theirs < ours).then_some(", "f_22"),
    "leads-with-a-wrong-clock": ("src/controller/election.rs", "Some(ElectionInput::ClockTrusted(self.clock.is_fine()))", "Some(ElectionInput::ClockTrusted(true))", "f_16"),
    "one-wrong-api-server-decides": ("src/controller/clock/guard.rs", "servers.get(servers.len().saturating_sub(1) / 2)", "servers.get(servers.len().saturating_sub(1))", "f_28"),
    "fenced-create-not-sent-to-another-api-server": ("src/kube_api/client.rs", "fenced_over: is_fenced.then_some(connection)", "fenced_over: (is_fenced && false).then_some(connection)", "f_28"),
    "create-timeout-ends-with-the-leadership": ("src/controller/dispatcher/request.rs", "left.unwrap_or_default().min(STORE_TIME_MAX)", "left.unwrap_or_default().min(STORE_TIME_MAX - STORE_TIME_MAX)", "f_29_slow"),
    "create-before-ends-with-the-leadership": ("src/coordination/leadership.rs", "create_before: fencing.create_before.map(|at| later(at, beyond_fence)),", "create_before: fencing.create_before,", "f_29_slow"),
    "create-before-is-not-sent": ("src/coordination/leadership.rs", "create_before: fencing.create_before.map(|at| later(at, beyond_fence)),", "create_before: fencing.create_before.filter(|_| false),", "f_29_the_fence"),
    "request-timeout-too-long": ("src/kube_api/client.rs", "Some(life) => request.with_server_timeout(life),", "Some(life) => request.with_server_timeout(life * 99),", "f_29_short"),
    "lost-create-is-not-reported": (f"{STATE}/look_ups.rs", "if open.n_creates_without_job > 1 {", "if open.n_creates_without_job > 99 {", "f_29_short"),
    "queued-create-not-withdrawn": (f"{STATE}/changes.rs", "SlotStage::Creating => vec![withdrawal(None)],", "SlotStage::Creating => vec![withdrawal(None)].into_iter().take(0).collect(),", "f_31"),
    "slow-admission-takes-places": ("src/controller/pacing/send_instants.rs", "RECENT_MAX: Duration = Duration::from_secs(1)", "RECENT_MAX: Duration = Duration::from_secs(99)", "f_29_many"),
}

# Of what neither plays: with the unit tests that are to be red.
UNIT = {
    "panic-ends-the-process": ("src/shard/panics.rs", "let result = catch_unwind(AssertUnwindSafe(function));", "let result = catch_unwind(AssertUnwindSafe(|| ())).map(|()| function());", "f_18"),
    "tried-again-without-a-change": (f"{STATE}/containment.rs", "cron_job.record.resource_version == version", "cron_job.record.resource_version < version", "f_18"),
    "panic-leaves-its-timer": (f"{STATE}/containment.rs", "        self.arm(owner, None);\n", "", "f_18"),
    "slot-of-a-lost-answer-started-again": (f"{STATE}/containment.rs", "if lost == Lost::AnswerForSlot {", "if lost == Lost::Nothing {", "f_18"),
    "any-lost-answer-ends-the-slot": (f"{STATE}/containment.rs", "if is_for_slot {", "if is_for_slot || open.is_some() {", "f_18"),
    "panic-in-the-examination-is-repeated": (f"{STATE}/containment.rs", "is_unexamined = true;", "is_unexamined = false;", "f_18"),
    "panic-leaves-a-slot-that-waits": (f"{STATE}/decision.rs", "SlotStage::BackingOff { until: slot }, verdict)", "SlotStage::Creating, verdict)", "f_18"),
    "panic-is-reported-once-for-ever": (f"{STATE}/changes.rs", "        cron_job.reported.remove(EventReason::InternalError);\n", "", "f_18"),
    "panicking-cron-job-is-in-no-trouble": (f"{STATE}/troubles.rs", "Some(Unusable::Panicked) => unhandled(known),", "Some(Unusable::Panicked) => {\n                unhandled(known);\n                Troubles::default()\n            }", "f_18"),
    "watch-resumed-in-another-history": ("src/kube_api/watch/list_watch/restore.rs", "if current >= newest ||", "if current >= ResourceVersion::default() ||", "restore::tests"),
    "proof-accepted-by-a-watch-behind-it": ("src/shard/held_shards/progress.rs", "if self.reached() >= since => self.observe(through),", "if self.reached() >= since || since <= through => self.observe(through),", "a_second_watch_proves"),
    "versions-requested-for-each-shard": ("src/shard/held_shards/takeovers.rs", "self.takeovers.is_requesting || ", "", "one_request_serves_all"),
    "watch-behind-a-takeover-does-not-list-again": ("src/shard/held_shards/takeovers.rs", "is_late |= *relist_at <= clocks.boot,", "is_late |= *relist_at <= clocks.boot && ready.len() > 9_999,", "takeovers::tests"),
    "end-of-a-freeze-is-forgotten": (f"{STATE}/freezes.rs", "ends.insert(namespace.clone(), last_frozen(former.until));", "let _ = last_frozen(former.until);", "freezes"),
    "open-slot-outlasts-the-leadership": (f"{STATE}/management.rs", "if cron_job.forget_leadership() {", "if cron_job.open.is_none() && cron_job.forget_leadership() {", "led_anew"),
    "job-left-by-its-controller-is-gone": (f"{STATE}/jobs.rs", "            self.remove_doubtful_job(job, now);\n", "            self.forget_job(job, now);\n", "b_2_1"),
    "transfer-to-a-silent-member": (f"{ELECTION}/handover.rs", "<= self.config.timing.trusted_age();", "<= self.config.timing.trusted_age() * 999;", "silent"),
    "older-leases-accepted": (f"{ELECTION}/lease_view.rs", "list.resource_version < self.observed_version || list", "list.resource_version < self.observed_version && list", "tests::history"),
    "all-shards-sealed-at-once": ("src/shard/held_shards/sealing.rs", "seal_when_idle(has_room && !is_sealed, clocks)", "seal_when_idle(has_room || is_sealed, clocks)", "one_shard_at_a_time"),
    "paused-shard-decides": ("src/shard/state/phase.rs", "        self.is_paused = true;", "        self.is_paused = false;", "a_paused_shard_takes_inputs"),
    "slow-admission-lowers-the-limit": ("src/controller/pacing/limit.rs", "        if round.is_used && (self", "        if !round.is_quick() {\n            self.limit = (self.limit * DECREASE_FACTOR).max(START_MIN);\n        } else if round.is_used && (self", "answers_that_admission_delays"),
    "slow-tenant-takes-all-places": ("src/controller/in_flight.rs", "!self.is_for_slow && sends.is_slow(self.now)", "!self.is_for_slow && sends.n > 9_999", "slow_tenant"),
    "slow-tenant-is-quick-between-two-answers": ("src/controller/in_flight.rs", "self.was_slow || oldest", "oldest", "gets_one_place_for_each_answer"),
    "slow-tenant-stops-all-statuses": ("src/controller/status_batcher.rs", "lane: lane.with_places_for_slow().within(", "lane: lane.within(", "status_batcher"),
    "released-namespace-is-still-managed": (f"{STATE}/management.rs", "(true, false) => self.contained_at(owner, |shard| shard.release(owner, now)),", "(true, false) => {}", "namespaces_that_move"),
    "selected-namespace-does-not-start-from-its-cursor": (f"{STATE}/management.rs", "        self.evaluate(owner, now);\n", "        self.arm(owner, None);\n        let _ = now;\n", "to_select_a_namespace"),
    "released-cron-job-leaves-before-its-answers": (f"{STATE}/management.rs", "if !has_request_in_flight && cron_job.emitted.is_none() {", "if cron_job.emitted.is_none() {\n            let _ = has_request_in_flight;", "namespaces_that_move"),
    "leads-before-the-namespaces-are-listed": ("src/shard/held_shards.rs", "self.namespaces.are_known() && self.progress.is_listed_as_permitted()", "self.progress.is_listed_as_permitted()", "before_the_namespaces_are_listed"),
    "other-controllers-of-other-namespaces-are-reported": ("src/kube_api/other_controllers.rs", "was_managed && self.since", "(was_managed || !namespace.is_empty()) && self.since", "only_actions_in_managed"),
    "status-writes-without-shares": ("src/controller/status_batcher/pending.rs", "(places / STATUS_SHARES).max(1)", "places.max(STATUS_SHARES)", "status_batcher"),
    "creates-of-a-slow-tenant-are-a-burst": ("src/controller/dispatcher.rs", "n_to_send + n_recent_creates > BURST_MIN", "n_to_send.max(n_creates) + n_recent_creates > BURST_MIN", "slow_tenant"),
    "daily-create-waits-for-ever": ("src/controller/dispatcher/backlog.rs", ".min(arrived + PRECEDENCE_MAX)", ".min(arrived + PRECEDENCE_MAX * 9_999)", "a_daily_create"),
    "withdrawn-request-is-sent-again": ("src/controller/dispatcher/backlog.rs", "        if self.take_withdrawn(&queued) {", "        if self.take_withdrawn(&queued) && self.n_turns > 9_999 {", "withdrawal"),
    "overdue-jobs-do-not-wait-for-the-watch": ("src/shard/held_shards/pause.rs", "self.progress.are_cron_jobs_interrupted() && clocks.boot < ends_at", "self.progress.are_cron_jobs_interrupted() && clocks.boot >= ends_at", "held_shards::pause"),
    "seal-decides-in-a-pause": ("src/shard/state/phase.rs", "self.phase.acts() && !self.is_paused", "self.phase.acts()", "held_shards::pause"),
    "scope-that-stays-refused-pauses-again": ("src/shard/held_shards/pause.rs", "if ends_at <= clocks.boot {", "if ends_at < clocks.boot && ends_at > clocks.boot {", "held_shards::pause"),
    "late-create-is-an-outage": ("src/shard/held_shards/pause.rs", "is_unreachable: true, ..", "..", "held_shards::pause"),
    "outage-withdraws-nothing": ("src/shard/held_shards/pause.rs", "held.state.withdraw_all();", "held.state.pause();", "held_shards::pause"),
    "place-is-taken-after-the-leadership-check": ("src/controller/lane.rs", "let api = api.with_place().await?;", "let api = api.clone();", "full_connections"),
    "answer-of-a-former-term-counts": ("src/shard/held_shards.rs", "if held.term != Some(term) {", "if held.term < Some(term) {", "takeovers::tests::terms"),
    "sent-without-checking-leadership": ("src/controller/lane.rs", "is_led.then(|| api", "(is_led || !now.since_boot().is_zero()).then(|| api", "checked_again_before_the"),
    "create-outlives-its-slot": (f"{STATE}/order.rs", "expires_at.map_or(Timestamp::MAX, |expires_at| after(expires_at, -clock_skew_max))", "Timestamp::MAX", "a_job_may_be_stored_until"),
    "short-lived-job-outlives-its-term": ("src/shard/record.rs", "self.has_short_ttl() || limits.contains(&Some(0))", "self.has_short_ttl() && limits.contains(&Some(0))", "a_job_may_be_stored_until"),
    "invalid-job-not-retried": (f"{STATE}/answers.rs", "self.retry_refused(owner, RefusalReason::Invalid, None, now);", "self.close_slot(owner, InstantOutcome::RefusedDueToTenant);", "refused_as_invalid"),
    "slot-of-a-former-deadline-stays-lost": ("src/shard/cron_job.rs", "(is_still_skipped || is_missed || outcome.is_over())", "(is_still_skipped || is_missed || outcome != InstantOutcome::Created)", "restarts"),
    "back-off-restarts-at-each-slot": (f"{STATE}/refusals.rs", "refused.n_refusals.saturating_add(1).max(n_failures);", "n_failures;", "each_slot_costs_one_request"),
    "next-slot-does-not-back-off": (f"{STATE}/refusals.rs", "refused.not_before = after(now, wait.min(NEXT_SLOT_WAIT_MAX));", "refused.not_before = after(now, wait.min(NEXT_SLOT_WAIT_MAX) - wait);", "every_nine_seconds"),
    "known-job-is-created-again": (f"{STATE}/decision.rs", "if !replaces && self.has_ended_job(owner, slot) {", "if replaces && self.has_ended_job(owner, slot) {", "known_to_have_ended"),
    "spread-ignored": ("src/schedule/effective.rs", "after(now, -options.offset())", "after(now, options.offset() - options.offset())", "state::tests::options"),
    "missed-runs-start-the-newest-first": ("src/schedule/options/catch_up.rs", "            oldest = Some(slot);\n", "            oldest = oldest.or(Some(slot));\n", "state::tests::options"),
    "answered-token-is-forgotten": ("src/schedule/options/run_now.rs", "chain(others).take(TOKENS_REMEMBERED_MAX)", "chain(others).take(1)", "state::tests::run_tokens"),
    "run-asked-for-starts-again": ("src/shard/cron_job.rs", "        self.current_status_mut().set_run_done(token);\n", "        let _ = token;\n", "state::tests::run_now"),
    "run-asked-for-moves-the-cursor": (f"{STATE}/run_now.rs", "        cron_job.note_run_done(token);\n", "        cron_job.note_run_done(token);\n        cron_job.advance_cursor(Timestamp::MAX);\n", "state::tests::run_now"),
    "run-asked-for-ignores-forbid": (f"{STATE}/run_now.rs", "(ConcurrencyPolicy::Forbid, Some(job)) => {", "(ConcurrencyPolicy::Forbid, Some(job)) if job.is_empty() => {", "state::tests::run_now"),
    "run-asked-for-ignores-replace": (f"{STATE}/run_now.rs", "(ConcurrencyPolicy::Replace, Some(_)) => {", "(ConcurrencyPolicy::Replace, Some(job)) if job.is_empty() => {", "state::tests::run_now"),
    "run-asked-for-ignores-a-freeze": (f"{STATE}/run_now.rs", "            .filter(|until| now < *until)\n        {", "            .filter(|until| *until < now)\n        {", "state::tests::run_now"),
    "run-asked-for-waits-for-the-resumption": (f"{STATE}/run_now.rs", "            && !cron_job.record.is_deleting\n", "            && !cron_job.record.is_deleting\n            && !cron_job.record.is_suspended\n", "state::tests::run_now"),
    "run-of-a-former-leader-not-recognized": (f"{STATE}/run_now.rs", "        if self.job_of_run(owner, &token).is_some() {\n            return", "        if self.job_of_run(owner, &token).is_some() && token.is_empty() {\n            return", "state::tests::run_now"),
    "history-deletes-the-lock-of-a-run": (f"{STATE}/history_limits.rs", "        if is_lock_of_run {", "        if is_lock_of_run && slot.is_some() {", "state::tests::run_now"),
    "replace-deletes-the-lock-of-a-run": (f"{STATE}/run_now.rs", "cron_job.n_status_failures == 0 && self.running", "cron_job.n_status_failures == 9 && self.running", "state::tests::run_now"),
    "job-that-carries-a-token-not-recognized": (f"{STATE}/run_tokens.rs", "        (self.index.job(job).name == name).then_some(token)", "        (self.index.job(job).name == name && token.is_empty()).then_some(token)", "state::tests::run_tokens"),
    "forgotten-token-answered-again": (f"{STATE}/run_tokens.rs", "            waiting.retain(|(age, _)| Some(*age) > newest);\n", "            let _ = newest;\n", "state::tests::run_tokens"),
    "run-replaces-the-lock-of-a-slot": (f"{STATE}/run_now.rs", "stored < job.scheduled() && job.scheduled() <= current", "stored < job.scheduled() && current < job.scheduled()", "state::tests::run_now"),
    "manual-jobs-not-counted": (f"{STATE}/active.rs", "            || cron_job.record.schedule.options().counts_manual_jobs\n", "", "state::tests::run_now"),
    "manual-job-moves-the-cursor": (f"{STATE}/active.rs", "        let scheduled = self.index.job(job).scheduled().filter(|_| self.is_of_slot(owner, job));\n", "        let scheduled = self.index.job(job).scheduled();\n", "state::tests::run_now"),
    "missed-run-waits-for-a-later-job": ("src/schedule/policy.rs", "busy_since.map_or(now, |since| now.min(facts.schedule.slots_until(since)))", "busy_since.map_or(now, |_| Timestamp::MIN)", "state::tests::options"),
    "skipped-run-waits-to-be-sent": (f"{STATE}/order.rs", "[expiry, next, skipped_from].into_iter()", "[expiry, next, skipped_from.filter(|_| next.is_none())].into_iter()", "state::tests::missed_runs"),
    "slot-at-its-deadline-ignores-on-resume": ("src/schedule/policy.rs", "just_before(earliest.min(armed))", "earliest.min(armed)", "schedule::options::tests"),
    "awaited-slot-ignores-on-resume": ("src/schedule/policy.rs", "just_before(earliest.min(armed))", "just_before(earliest.max(armed))", "schedule::options::tests"),
    "refused-run-counts-as-missed": ("src/shard/cron_job/open_slot.rs", "reason == InstantOutcome::Missed && self.is_refused_due_to_tenant {", "reason == InstantOutcome::Missed && self.is_refused_due_to_tenant && self.n_failures == 0 {", "state::tests::missed_runs"),
    "skipped-run-starts": ("src/schedule/options/catch_up.rs", "CatchUp::Skip if latest <= missed_until => None,", "CatchUp::Skip if latest < self.since => None,", "state::tests::options"),
    "run-without-permission-is-not-reported": (f"{STATE}/run_now.rs", "                if self.is_without_permission(owner, now) {", "                if self.is_without_permission(owner, now) && message.is_empty() {", "state::tests::run_now"),
    "missed-run-loses-its-place-to-the-next-slot": ("src/shard/catch_up_pace.rs", "Some(place) if !place.is_used => place,", "Some(place) if !place.is_used && place.came.is_some() => place,", "state::tests::pace"),
    "run-that-came-meanwhile-waits-for-a-place": (f"{STATE}/order.rs", "now < *at && place.came.is_none()", "now < *at", "state::tests::pace"),
    "runs-that-came-meanwhile-start-all-at-once": ("src/shard/cron_job/rare.rs", "Some(came) => place.came_through = came,", "Some(_) => {}", "state::tests::pace"),
    "place-outlives-its-missed-runs": (f"{STATE}/order.rs", "            cron_job.give_place_up();\n", "", "state::tests::pace"),
    "run-that-forbid-held-back-waits-for-a-place": (f"{STATE}/order.rs", "let is_held_back = open.stage == SlotStage::HeldByForbid;", "let is_held_back = open.stage == SlotStage::Frozen;", "state::tests::pace"),
    "place-is-kept-in-a-suspension": (f"{STATE}/holds.rs", "        self.index.cron_job_mut(owner).give_place_up();\n", "", "state::tests::pace"),
    "held-back-slot-is-counted-twice": (f"{STATE}/holds.rs", "for _ in 1..count {", "for _ in count..count {", "state::tests::options"),
    "no-wait-after-the-last-slot": (f"{STATE}/decision.rs", "(now < until && !cron_job.must_decide && !is_later_due)", "(now < until && !cron_job.may_be_due(now) && !is_later_due)", "state::tests::options"),
    "freeze-ignored": ("src/schedule/policy.rs", "facts.frozen_until.filter(|until| now < *until)", "facts.frozen_until.filter(|until| now < *until && facts.is_deleting)", "state::tests::freezes"),
    "end-of-a-freeze-decides-nothing": (f"{STATE}/decision.rs", "                self.index.cron_job_mut(owner).must_decide = true;\n", "", "state::tests::freezes"),
    "earlier-freeze-counts": (f"{STATE}/freezes.rs", "max_by_key(|freeze| freeze.until)", "min_by_key(|freeze| freeze.until)", "state::tests::freezes"),
    "day-in-two-entries-counts-twice": ("src/schedule/options/calendar.rs", "entry.first.max(free_from)", "entry.first.max(free_from.min(entry.first))", "options::calendar"),
    "date-of-a-slot-is-in-utc": ("src/schedule/exclusion.rs", "(seconds + i64::from(self.zone.offset_seconds_at(seconds)))", "(seconds + i64::from(self.zone.offset_seconds_at(seconds) * 0))", "schedule::exclusion"),
    "excluded-slot-starts": ("src/schedule/options/catch_up.rs", "            return exclusion.last_slot(anchor, after, until);\n", "            let _ = exclusion;\n", "state::tests::calendars"),
    "excluded-slot-is-not-counted": (f"{STATE}/calendars.rs", "self.outcome_counts.pass(n_excluded, ", "self.outcome_counts.pass(n_excluded * 0, ", "state::tests::calendars"),
    "changed-calendar-starts-former-slots": (f"{STATE}/calendars.rs", "latest.filter(|_| is_over)", "latest.filter(|_| is_over && starts_several)", "state::tests::calendars"),
    "decides-before-the-calendars-are-listed": (f"{STATE}/calendars.rs", "record.schedule.options().not_on.is_some() && ", "record.schedule.options().not_on.is_some() && record.identity.namespace.is_empty() && ", "state::tests::calendars"),
    "invalid-value-hides-the-default": ("src/schedule/options.rs", "of_cron_job.into_iter().chain(of_namespace)", "of_cron_job.or(of_namespace)", "schedule::options::tests"),
    "runs-on-two-days-are-not-compared": ("src/schedule/fires/lines/distance.rs", "if before >> place & 1 == 1 { today }", "if before >> place & 1 == 1 { today & before }", "fires::tests::lines"),
    "check-ignores-defaults-of-namespaces": ("src/cli/check/options.rs", "        self.namespaces.inherit(namespace, &mut record.schedule, hash);\n", "        let _ = hash;\n", "check::tests::options"),
    "slot-at-the-end-of-a-freeze-is-held-back": ("src/schedule/thaw.rs", "self.schedule.start_of(slot) < self.until", "self.schedule.start_of(slot) <= self.until", "schedule::thaw"),
    "forecast-without-the-end-of-a-freeze": ("src/observe/forecast.rs", "            *thaws.entry(place).or_default() += n_starts;\n", "            *thaws.entry(place).or_default() += n_starts * 0;\n", "observe::forecast"),
    "faults-hit-every-client": ("src/cli/dev/faults.rs", "client: Some(CONTROLLER.to_owned()),", "client: None,", "dev::faults"),
    "missed-runs-are-not-counted": ("src/cli/dev/audit.rs", "        self.counts.missed += 1;\n", "        self.counts.held_back += 1;\n", "dev::audit"),
    "doubled-runs-are-not-counted": ("src/cli/dev/audit.rs", "            self.counts.doubled += 1;\n", "            self.counts.started += 1;\n", "dev::audit"),
    "refused-look-up-stops-forbid-for-ever": ("src/shard/cron_job/look_up.rs", "now.duration_since(since) >= LOOK_UP_PATIENCE", "since > now", "state::tests::refusals"),
    "refused-look-up-stops-later-slots": (f"{STATE}/decision.rs", "        if cron_job.awaits_answer(now) {", "        if cron_job.open.as_ref().is_some_and(OpenSlot::must_be_settled) {", "a_look_up_that_is_not_permitted"),
    "suspended-is-in-trouble": ("src/shard/trouble.rs", "    if facts.is_stopped || facts", "    if facts.is_stopped && facts.is_unschedulable || facts", "trouble"),
    "alerts-that-are-off-are-on": ("src/shard/trouble.rs", "    if facts.is_stopped || facts.thresholds.are_alerts_off {", "    if facts.is_stopped {", "troubles"),
    "oldest-status-counts-from-its-deadline": ("src/controller/status_batcher/pending.rs", "deadline.since_boot().saturating_sub(wait)", "deadline.since_boot().saturating_sub(wait * 0)", "oldest_write"),
    "first-success-frees-its-namespace": ("src/shard/refused_creates.rs", "            if *count == 0 {", "            if *count > 0 {", "refused_creates"),
    "failure-outlasts-a-success": ("src/shard/trouble.rs", "facts.last_successful_time <= Some(*started)", "facts.last_successful_time <= Some(*started) || facts.created < *started", "trouble"),
    "late-counts-from-the-open-slot": ("src/shard/trouble.rs", "let first = facts.after_start?.first.get()?.min(pending);", "let first = facts.after_start?.first.get()?.max(pending);", "trouble"),
    "no-success-a-period-early": ("src/shard/trouble.rs", "let third = first.and_then(next).and_then(next);", "let third = first.and_then(next);", "trouble"),
    "blocked-by-nothing": ("src/shard/trouble.rs", "facts.after_start.filter(|_| facts.is_held_back)?", "facts.after_start?", "trouble"),
    "never-fires-is-valid": ("src/shard/trouble.rs", "facts.is_unschedulable || facts.after_success.third.get().is_none()", "facts.is_unschedulable", "trouble"),
    "one-namespace-hides-the-others": ("src/shard/trouble/selection.rs", "troubles.iter().cloned().enumerate())", "troubles.iter().cloned().map(|trouble| (0, trouble)))", "selection"),
    "trouble-of-a-released-shard": ("src/shard/trouble/selection.rs", "shards.contains(trouble.shard)", "!shards.is_empty() || shards.contains(trouble.shard)", "survey"),
    "every-replica-names-500": ("src/shard/held_shards/survey.rs", "NAMED_MAX * acting.len() / usize::from(self.count.get())", "NAMED_MAX.min(NAMED_MAX * acting.len() / usize::from(self.count.get()) * 99)", "survey"),
    "examines-all-at-once": ("src/shard/held_shards/survey.rs", "if n_examined >= STEP_MAX {", "if n_examined >= STEP_MAX * 99 {", "survey"),
    "trouble-from-a-job-of-another-namespace": (f"{STATE}/troubles.rs", "job.is_in_namespace_of(identity) && !job", "!job", "troubles"),
    "activations-of-a-former-schedule": (f"{STATE}/changes.rs", "        (cron_job.after_start, cron_job.after_success) = Default::default();\n", "", "troubles"),
    "activations-of-a-former-success": (f"{STATE}/troubles.rs", "if !known.are_after(instant) {", "if *known == Activations::default() {", "troubles"),
    "once-starts-before-the-gap": ("src/schedule/fires/once.rs", "(wall - span.offset).max(span.start)", "wall - span.offset", "fires::tests::once"),
    "once-runs-twice-in-a-repeated-hour": ("src/schedule/fires/once.rs", "latest = latest.max(span.end - 1 + span.offset);", "latest = latest.max(span.start - 1);", "fires::tests::once"),
    "once-runs-on-a-skipped-day": ("src/schedule/fires/once.rs", "is_skipped.then_some(midnight)", "(is_skipped && self.wall < 0).then_some(midnight)", "fires::tests::once"),
    "once-moves-hourly-schedules": ("src/schedule/fires.rs", "Rule::Spec(spec) if spec.hours != ALL_HOURS =>", "Rule::Spec(spec) if spec.hours != 0 =>", "fires::tests::once"),
    "repeated-time-of-a-line-runs-once": ("src/schedule/fires/shown.rs", "from = span.end;", "from = span.end + 3_600;", "fires::tests::lines"),
    "last-activation-in-the-month-of-now": ("src/schedule/fires/lines/line.rs", "if last_year < year {", "if last_year > year {", "fires::tests::lines"),
    "last-year-of-a-line-never-runs": ("src/schedule/due.rs", "if schedule.may_end() {", "if schedule.is_every() {", "fires::tests::lines"),
}

# The profile of `make fleet`, without optimization of the mutated crate: most mutations fail within a second of run time,
# so the build time dominates. Unlike the profile of `make simulate`, it has debug assertions.
SOONER = ["--config", "profile.sim.package.cronwheel.opt-level=0"]
BUILD = ["cargo", "test", "--profile", "sim", *SOONER, "--quiet", "--test"]

# Longer seeds for mutations that show only in rare events, such as a start while the clock is off by seconds.
MINUTES = {"wrong-clock-accepted": 720}

# A test target with only the fleets, which builds faster than all tests. The simulation already has its own target.
TARGET = '\n[[test]]\nname = "fleet_alone"\npath = "tests/it/fleet_alone.rs"\n'
ROOT = '#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "tests")]\n#[global_allocator]\nstatic ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;\nmod naive_options;\nmod random;\nmod fleet;\n'


def mutation(name: str) -> tuple[str, ...]:
    return MUTATIONS.get(name) or FLEET.get(name) or UNIT[name]


class MissedPlace(Exception):
    """The code that a mutation changes is not there, or is there more than once."""


def mutated(text: str, name: str) -> str:
    file, old, new = mutation(name)[:3]
    if text.count(old) != 1:
        raise MissedPlace(f"{name}: {file} has {text.count(old)} times {old!r}; adapt the mutation")
    return text.replace(old, new)


def verdict(tree: Path, name: str) -> str:
    if name in UNIT:
        return unit_tests(tree, UNIT[name][3])
    test = [*BUILD, "fleet_alone" if name in FLEET else "simulation"]
    built = subprocess.run([*test, "--no-run"], cwd=tree, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile:\n" + built.stderr[-2000:]
    if name in FLEET:
        return play_fleets(tree, [*test, FLEET[name][3]]) or play_fleets(tree, test) or "SURVIVED"
    return simulate(tree, [*test, "no_run", "--", "--nocapture"], MINUTES.get(name, 60))


def unit_tests(tree: Path, tests: str) -> str:
    command = ["cargo", "test", "--profile", "sim", *SOONER, "--lib"]
    built = subprocess.run([*command, "--no-run"], cwd=tree, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile:\n" + built.stderr[-2000:]
    run = subprocess.run([*command, tests], cwd=tree, capture_output=True, text=True)
    red = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("test ") and line.endswith("FAILED")]
    return f"red: {red[0].rsplit('::')[-1]}" if red else "SURVIVED"


def play_fleets(tree: Path, command: list[str]) -> str | None:
    """Returns the test that failed, or None."""
    environment = {**os.environ, "CRONWHEEL_FLEET_SEEDS": "20", "CRONWHEEL_FLEET_SEED": "1", "RUST_BACKTRACE": "0"}
    # Without --quiet, each test prints a line when it has ended.
    command = [*(argument for argument in command if argument != "--quiet"), "--", "--test-threads=2"]
    run = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in run.stdout:
        if line.startswith("test fleet::") and line.rstrip().endswith("FAILED"):
            stop(run)
            return f"red: {line.split()[1].rsplit('::')[-1]}"
    return None if run.wait() == 0 else "red: the run ended otherwise"


def simulate(tree: Path, command: list[str], minutes: int) -> str:
    seeds = {"CRONWHEEL_SIM_SEEDS": "20", "CRONWHEEL_SIM_SEED": "1", "CRONWHEEL_SIM_MINUTES": str(minutes)}
    environment = {**os.environ, **seeds, "RUST_BACKTRACE": "0"}
    run = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    output, n_seeds = [], 0
    for line in run.stderr:
        output.append(line.strip())
        n_seeds += line.startswith(("seed ", "again: ")) and not line.rstrip().endswith(":")
        if line.startswith("again: "):
            first = next((number for number, line in enumerate(output) if line.startswith("seed ") and line.endswith(":")), -1)
            stop(run)
            return f"red as number {n_seeds} of the seeds: {output[first + 1][:160]}"
    run.wait()
    return "SURVIVED" if run.returncode == 0 else "ended otherwise: " + " ".join(output[-3:])


def stop(run: subprocess.Popen) -> None:
    """Ends a test run and its child processes."""
    subprocess.run(["kill", *children(run.pid), str(run.pid)], check=False)
    run.wait()


def children(process: int) -> list[str]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return listed.stdout.split()


def chosen(arguments: list[str]) -> list[str]:
    suites = {"simulation": list(MUTATIONS), "fleet": list(FLEET), "unit": list(UNIT)}
    names = [name for argument in arguments or suites for name in suites.get(argument, [argument])]
    unknown = [name for name in names if all(name not in suite for suite in suites.values())]
    if unknown:
        sys.exit(f"no mutation: {', '.join(unknown)}")
    return names


def apply_all(root: Path) -> int:
    n_missed = 0
    for name in chosen([]):
        try:
            mutated((root / mutation(name)[0]).read_text(), name)
        except MissedPlace as missed:
            print(missed, file=sys.stderr)
            n_missed += 1
    return min(n_missed, 1)


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    if sys.argv[1:] == ["apply"]:
        return apply_all(root)
    if "CARGO_TARGET_DIR" not in os.environ:
        sys.exit("set CARGO_TARGET_DIR to a folder that nothing else uses, such as target/mutations")
    os.environ["CARGO_TARGET_DIR"] = str(Path(os.environ["CARGO_TARGET_DIR"]).resolve())
    n_survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        # All mutations use one copy, so that each changed file is newer than the previous build.
        tree = Path(folder) / "cronwheel"
        shutil.copytree(root, tree, ignore=shutil.ignore_patterns("target", ".git"))
        (tree / "tests/it/fleet_alone.rs").write_text(ROOT)
        manifest = tree / "Cargo.toml"
        manifest.write_text(manifest.read_text().replace("\n[[bench]]", TARGET + "\n[[bench]]", 1))
        for name in chosen(sys.argv[1:]):
            path = tree / mutation(name)[0]
            original = path.read_text()
            path.write_text(mutated(original, name))
            result = verdict(tree, name)
            path.write_text(original)
            n_survivors += not result.startswith("red")
            print(f"{name}: {result}", flush=True)
    return 1 if n_survivors else 0


if __name__ == "__main__":
    sys.exit(main())

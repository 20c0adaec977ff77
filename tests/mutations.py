#!/usr/bin/env python3
"""Shows that the simulation can fail: breaks the controller in one place at a time, in a copy of the tree, and expects
the simulation to be red within 20 seeds.

    CARGO_TARGET_DIR=target/mutations python3 tests/mutations.py [NAME ...]

Prints one line for each mutation and exits with 1 if one survives. The target folder must be one that nothing else uses:
what is built there is broken on purpose.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

STATE = "src/state/shard_state"
# Name: file, what stands there, what is put in its place.
MUTATIONS = {
    "delete-before-cursor": (f"{STATE}/history.rs", "if !is_waiting {", "if job < u32::MAX {"),
    "forbid-forgotten": ("src/schedule/policy.rs", "ConcurrencyPolicy::Forbid if facts.n_active_jobs > 0", "ConcurrencyPolicy::Forbid if facts.n_active_jobs > 9"),
    "replace-deletes-nothing": ("src/schedule/policy.rs", "Decision::Start { slot, replaces: true }", "Decision::Start { slot, replaces: false }"),
    "replace-starts-what-it-began-with": (f"{STATE}/answers.rs", "(true, false) => self.retry_at(owner, now),", "(true, false) => self.order(owner, None),"),
    "history-keeps-one-more": (f"{STATE}/history.rs", ".count().saturating_sub(limit);", ".count().saturating_sub(limit + 1);"),
    "history-counts-what-goes": (f"{STATE}/history.rs", "job.finish == Some(kind) && !job.is_delete_requested;", "job.finish == Some(kind);"),
    "cursor-stays": (f"{STATE}/answers.rs", "        cron_job.advance_cursor(slot);\n        cron_job.note_short_life();", "        cron_job.note_short_life();"),
    "ended-job-stays-active": (f"{STATE}/active.rs", "            cron_job.remove_active(&uid);\n", ""),
    "gone-job-stays-active": (f"{STATE}/active.rs", "let was_active = cron_job.remove_active(&job.uid);", "let was_active = cron_job.is_listed_active(&job.uid);"),
    "manual-run-adopted": (f"{STATE}/active.rs", "(None, false) if self.is_ours(owner, index) => Finding::Adopt,", "(None, false) if self.is_ours(owner, index) || !job.is_told_unexpected => Finding::Adopt,"),
    "nothing-armed-after-a-start": (f"{STATE}/decision.rs", "        self.arm(owner, next);\n", "        self.arm(owner, next.filter(|_| self.index.n_jobs_of(owner) == 0));\n"),
    "no-catching-up": ("src/schedule/policy.rs", "    Ok(Due {\n        slot,\n", "    Ok(Due {\n        slot: slot.filter(|_| facts.armed.is_some()),\n"),
    "deadline-ignored": ("src/cluster/decode/cron_job.rs", "starting_deadline_seconds: deadline.map(|seconds| seconds.max(0)),", "starting_deadline_seconds: deadline.map(|seconds| seconds.max(900)),"),
    "suspend-ignored": ("src/schedule/policy.rs", "    if facts.is_suspended {\n", "    if facts.is_suspended && facts.armed.is_none() {\n"),
    "past-of-a-new-schedule-started": (f"{STATE}.rs", "cron_job.schedule_changed = Some(now);", "cron_job.schedule_changed = None;"),
    "relist-forgets-jobs": (f"{STATE}/relists.rs", "|job| job.mark < mark", "|job| job.mark <= mark"),
    "relist-keeps-what-is-gone": (f"{STATE}/relists.rs", "|job| job.mark < mark", "|job| job.mark > mark"),
    "lost-version-is-passed-over": ("src/cluster/watch.rs", "status.code == 410", "status.code == 411"),
    "unanswered-create-is-given-up": (f"{STATE}/answers.rs", "CreateOutcome::Unanswered { message } => self.ask_for_slot(owner, slot, message),", "CreateOutcome::Unanswered { .. } => self.end_open(owner, InstantOutcome::Refused),"),
    "failed-create-not-repeated": (f"{STATE}/answers.rs", "                self.tell_failed_create(owner, &message);\n                self.retry_later(owner, retry_after, now);", "                self.tell_failed_create(owner, &message);\n                self.end_open(owner, InstantOutcome::Refused);"),
    "failed-status-write-forgotten": (f"{STATE}/status.rs", "                cron_job.n_status_failures = cron_job.n_status_failures.saturating_add(1);", "                cron_job.record.status = sent;\n                cron_job.n_status_failures = cron_job.n_status_failures.saturating_add(1);"),
    "conflict-taken-for-success": (f"{STATE}/status.rs", "            StatusOutcome::Conflict => {\n", "            StatusOutcome::Conflict => {\n                cron_job.record.status = sent;\n"),
    "retry-after-ignored": ("src/runtime/pacing.rs", "let pause = retry_after.map_or(doubled.min(PAUSE_MAX), |asked| asked.clamp(PAUSE_MIN, RETRY_AFTER_MAX));", "let pause = doubled.min(PAUSE_MAX);"),
    "late-orders-sent": ("src/runtime/dispatcher/request.rs", "order.expires_at.is_some_and(|expires_at| now >= expires_at)", "order.expires_at.is_some_and(|expires_at| now > expires_at + jiff::SignedDuration::from_hours(1))"),
    "clock-steps-followed": ("src/runtime/clock/guard.rs", "pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);", "pub const STEP_MAX: SignedDuration = SignedDuration::from_hours(2);"),
    "wrong-clock-believed": ("src/runtime/clock/guard.rs", "let is_near = server.excess_of(self.offset).abs() <= self.skew_max;", "let is_near = true;"),
    "outcome-told-wrong": ("src/state/cron_job.rs", "Stage::Forbidden => InstantOutcome::Forbidden,", "Stage::Forbidden => InstantOutcome::Superseded,"),
    "foreign-job-waited-for": (f"{STATE}/look_ups.rs", "                    self.end_open(owner, InstantOutcome::ForeignJob);", "                    self.retry_later(owner, None, now);"),
}

# As `make simulate` builds it, but for what is broken each time: most are red after a second, and wait for the build.
SOONER = ["--config", "profile.sim.package.cronwheel.opt-level=0"]
BUILD = ["cargo", "test", "--profile", "sim", *SOONER, "--quiet", "--test", "simulation"]


def mutated(text: str, name: str) -> str:
    file, old, new = MUTATIONS[name]
    if text.count(old) != 1:
        sys.exit(f"{name}: {file} has {text.count(old)} times {old!r}; adapt the mutation")
    return text.replace(old, new)


def verdict(tree: Path) -> str:
    environment = {**os.environ, "CRONWHEEL_SIM_SEEDS": "20", "CRONWHEEL_SIM_SEED": "1", "CRONWHEEL_SIM_MINUTES": "60", "RUST_BACKTRACE": "0"}
    built = subprocess.run([*BUILD, "--no-run"], cwd=tree, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile:\n" + built.stderr[-2000:]
    run = subprocess.Popen([*BUILD, "no_run", "--", "--nocapture"], cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said, n_seeds = [], 0
    for line in run.stderr:
        said.append(line.strip())
        n_seeds += line.startswith(("seed ", "again: ")) and not line.rstrip().endswith(":")
        if line.startswith("again: "):
            first = next((number for number, line in enumerate(said) if line.startswith("seed ") and line.endswith(":")), -1)
            stop(run)
            return f"red as number {n_seeds} of the seeds: {said[first + 1][:160]}"
    run.wait()
    return "SURVIVED" if run.returncode == 0 else "ended otherwise: " + " ".join(said[-3:])


def stop(run: subprocess.Popen) -> None:
    """Ends a test run with what it started."""
    subprocess.run(["kill", *children(run.pid), str(run.pid)], check=False)
    run.wait()


def children(process: int) -> list[str]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return listed.stdout.split()


def main() -> int:
    if "CARGO_TARGET_DIR" not in os.environ:
        sys.exit("set CARGO_TARGET_DIR to a folder that nothing else uses, such as target/mutations")
    root = Path(__file__).resolve().parent.parent
    os.environ["CARGO_TARGET_DIR"] = str(Path(os.environ["CARGO_TARGET_DIR"]).resolve())
    n_survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        # One copy for all, so that every change is newer than what was built before it.
        tree = Path(folder) / "cronwheel"
        shutil.copytree(root, tree, ignore=shutil.ignore_patterns("target", ".git"))
        for name in sys.argv[1:] or MUTATIONS:
            path = tree / MUTATIONS[name][0]
            original = path.read_text()
            path.write_text(mutated(original, name))
            said = verdict(tree)
            path.write_text(original)
            n_survivors += not said.startswith("red")
            print(f"{name}: {said}", flush=True)
    return 1 if n_survivors else 0


if __name__ == "__main__":
    sys.exit(main())

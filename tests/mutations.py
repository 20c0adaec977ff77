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
    "history-keeps-one-more": (f"{STATE}/history.rs", ".count().saturating_sub(limit);", ".count().saturating_sub(limit + 1);"),
    "cursor-stays": (f"{STATE}/answers.rs", "        cron_job.advance_cursor(slot);\n        cron_job.note_short_life();", "        cron_job.note_short_life();"),
    "ended-job-stays-active": (f"{STATE}/active.rs", "            cron_job.remove_active(&uid);\n", ""),
    "nothing-armed-after-a-start": (f"{STATE}/decision.rs", "        self.arm(owner, next);\n", "        self.arm(owner, next.filter(|_| self.index.n_jobs_of(owner) == 0));\n"),
    "no-catching-up": ("src/schedule/policy.rs", "    Ok(Due {\n        slot,\n", "    Ok(Due {\n        slot: slot.filter(|_| facts.armed.is_some()),\n"),
    "relist-forgets-jobs": (f"{STATE}/relists.rs", "|job| job.mark < mark", "|job| job.mark <= mark"),
    "unanswered-create-is-given-up": (f"{STATE}/answers.rs", "CreateOutcome::Unanswered { message } => self.ask_for_slot(owner, slot, message),", "CreateOutcome::Unanswered { .. } => self.end_open(owner, InstantOutcome::Refused),"),
}


def mutated(text: str, name: str) -> str:
    file, old, new = MUTATIONS[name]
    if text.count(old) != 1:
        sys.exit(f"{name}: {file} has {text.count(old)} times {old!r}; adapt the mutation")
    return text.replace(old, new)


def verdict(tree: Path) -> str:
    environment = {**os.environ, "CRONWHEEL_SIM_SEEDS": "20", "CRONWHEEL_SIM_SEED": "1"}
    built = subprocess.run(["cargo", "test", "--quiet", "--test", "it", "--no-run"], cwd=tree, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile:\n" + built.stderr[-2000:]
    command = ["cargo", "test", "--quiet", "--test", "it", "sim::no_run", "--", "--nocapture"]
    run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if run.returncode == 0:
        return "SURVIVED"
    seeds = run.stderr.count("CRONWHEEL_SIM_SEED=")
    return f"red at seed {seeds}"


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

//! Passes the commit to the crate: that in `CRONWHEEL_COMMIT`, otherwise for a release build the one that git knows.
//! Other builds have none, so that a commit does not compile everything anew. The result depends on the commit alone.

#![allow(clippy::print_stdout, reason = "cargo reads the output")]

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=CRONWHEEL_COMMIT");
    let given = env::var("CRONWHEEL_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // Without a file that is named, cargo would run this script after every change.
    println!("cargo::rerun-if-changed=build.rs");
    if is_release && let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]).filter(|_| is_release));
    if let Some(commit) = commit {
        println!("cargo::rustc-env=CRONWHEEL_BUILD_COMMIT={commit}");
    }
}

/// Returns the output of git; `None` without git or outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}

//! Tests of `cronwheel explain` with objects from files and the explanation as JSON.

mod calendars;
mod checks;
mod inputs;
mod live;
mod refused;
mod rules;
mod texts;

use serde_json::{Value, json};

use super::*;
use crate::cli::args::{Cli, Command};

/// The standard output of the command, and its notes.
#[derive(Debug)]
struct Printed {
    output: String,
    notes: String,
}

/// Runs a command line after `cronwheel explain -f -`, with `input` as the standard input.
fn run_on(input: &str, arguments: &[&str]) -> Result<Printed, String> {
    let mut output = Vec::new();
    let notes = run_into(input, arguments, &mut output)?;
    Ok(Printed {
        output: String::from_utf8(output).unwrap(),
        notes: String::from_utf8(notes).unwrap(),
    })
}

/// Runs like [`run_on`] and returns the notes. `output` keeps the output before a failure.
fn run_into(input: &str, arguments: &[&str], output: &mut Vec<u8>) -> Result<Vec<u8>, String> {
    use clap::Parser as _;
    let line = ["cronwheel", "explain", "-f", "-"].iter().chain(arguments);
    let Command::Explain(args) = Cli::try_parse_from(line).map_err(|error| error.to_string())?.command else {
        return Err("another command".to_owned());
    };
    let mut notes = Vec::new();
    let now = "2026-05-05T10:00:05Z".parse().unwrap();
    run(&args, now, input.as_bytes(), output, &mut notes).map_err(|error| error.to_string())?;
    Ok(notes)
}

/// The explanation of these objects at 10:00:05, unless the arguments set another time.
#[track_caller]
fn run_json(objects: &[Value], arguments: &[&str]) -> Value {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let arguments: Vec<&str> = ["-o", "json"].iter().chain(arguments).copied().collect();
    let printed = run_on(&list.to_string(), &arguments).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&printed.output).unwrap()
}

/// Checks the members of the explanation that are in `expected`; it may have others.
#[track_caller]
fn check(objects: &[Value], arguments: &[&str], expected: Value) {
    let answer = run_json(objects, arguments);
    for (member, expected) in expected.as_object().unwrap() {
        let found = &answer[member];
        assert_eq!(found, expected, "{member} of {answer:#}");
    }
}

/// Merges objects member by member, as a merge patch does; null removes a member.
fn with(mut object: Value, changes: Value) -> Value {
    match (&mut object, changes) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    members.remove(&name);
                } else {
                    let before = members.remove(&name).unwrap_or(Value::Null);
                    members.insert(name, with(before, change));
                }
            }
            object
        }
        (_, changes) => changes,
    }
}

/// The CronJob `hello`, which runs every ten minutes and ran last at 09:50.
fn cron_job(changes: Value) -> Value {
    let object = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": "hello", "namespace": "default", "uid": "aaaaaaaa-0000-0000-0000-000000000001",
            "resourceVersion": "7", "creationTimestamp": "2026-05-01T00:00:00Z",
        },
        "spec": {
            "schedule": "*/10 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}],
            }}}},
        },
        "status": {"lastScheduleTime": "2026-05-05T09:50:00Z"},
    });
    with(object, changes)
}

/// The running Job of a slot of `hello`, in minutes since the epoch; 10:00 is 29632920.
fn job(minutes: i64, changes: Value) -> Value {
    let slot = Timestamp::from_second(minutes * 60).unwrap().to_string();
    let object = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": format!("hello-{minutes}"), "namespace": "default", "uid": format!("job-{minutes}"),
            "resourceVersion": "20",
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "hello", "controller": true,
                "uid": "aaaaaaaa-0000-0000-0000-000000000001",
            }],
        },
        "status": {"startTime": slot},
    });
    with(object, changes)
}

/// A Job of `hello` made by hand.
fn manual_job(changes: Value) -> Value {
    let made = json!({"metadata": {"name": "by-hand", "uid": "by-hand", "annotations": null}});
    with(with(job(29_632_915, json!({})), made), changes)
}

/// The status of a finished Job.
fn ended(condition: &str, completed: Option<&str>) -> Value {
    json!({"status": {
        "conditions": [{"type": condition, "status": "True"}],
        "completionTime": completed.map(|time| format!("2026-05-05T{time}Z")),
    }})
}

/// The entry of `status.active` for a Job of [`job`].
fn entry(minutes: i64) -> Value {
    json!({
        "kind": "Job", "apiVersion": "batch/v1", "name": format!("hello-{minutes}"), "namespace": "default",
        "uid": format!("job-{minutes}"), "resourceVersion": "20",
    })
}

fn event(event_type: &str, reason: &str, message: &str) -> Value {
    json!({"type": event_type, "reason": reason, "message": message})
}

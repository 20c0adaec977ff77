//! Runs the bodies of the fuzz targets in `fuzz/` on seeded mutations, without cargo-fuzz.

mod event;
mod explain;
mod schedule;

use crate::random::{self, Random};

/// The number of mutated inputs for each body.
const N_INPUTS: usize = 20_000;

/// Runs a body on examples and on their mutations. Mutations may accumulate.
fn run(body: fn(&[u8]), examples: &[Vec<u8>], pieces: &[&str]) {
    let mut random = Random::new(random::seed());
    let mut kept = examples.to_vec();
    for example in examples {
        body(example);
    }
    for _ in 0..N_INPUTS {
        let index = random.below(kept.len());
        let mut input = kept[index].clone();
        for _ in 0..random.between(1, 4) {
            mutate(&mut random, &mut input, pieces);
        }
        body(&input);
        // Half of the inputs stay near the examples.
        if kept.len() < 2 * examples.len() {
            kept.push(input);
        } else if index >= examples.len() && !random.is_one_in(8) {
            kept[index] = input;
        }
    }
}

fn mutate(random: &mut Random, input: &mut Vec<u8>, pieces: &[&str]) {
    let at = random.below(input.len() + 1);
    let end = input.len().min(at + 1 + random.below(8));
    match random.between(0, 5) {
        0 | 1 => drop(input.splice(at..at, random.pick(pieces).bytes())),
        2 => drop(input.splice(at..end, random.pick(pieces).bytes())),
        3 => drop(input.drain(at..end)),
        4 => {
            let copy = input[at..end].to_vec();
            drop(input.splice(at..at, copy));
        }
        _ if at < input.len() => input[at] = u8::try_from(random.between(0, 255)).unwrap(),
        _ => {}
    }
}

#[test]
fn schedule_parser_accepts_or_refuses_any_text() {
    let texts = [
        "*/5 * * * *\tEurope/Berlin",
        "0 2 29 2 1-5\tAfrica/Cairo",
        "TZ=America/Havana 30 0 1,15 jan-mar ?",
        "@every 1h30m",
        "@daily\tAustralia/Lord_Howe",
        "15,45 */20 2 1-7 * ? 2024-2030\n0 0 12 * * Mon\tAmerica/Nuuk",
    ];
    // A time in October 2026, and a time shortly before a clock change in 2024.
    let seconds: [i64; 2] = [1_791_000_000, 1_710_050_400];
    let examples: Vec<Vec<u8>> = texts
        .iter()
        .flat_map(|text| seconds.map(|second| [&second.to_le_bytes(), text.as_bytes()].concat()))
        .collect();
    let pieces = [
        " ",
        "\t",
        ",",
        "-",
        "/",
        "*",
        "?",
        "@",
        "0",
        "7",
        "31",
        "99999999999999999999",
        "SUN",
        "TZ=",
        "@every ",
        "µs",
        "é",
    ];
    run(schedule::run, &examples, &pieces);
}

#[test]
fn watch_decoder_accepts_or_refuses_any_bytes() {
    let examples = [
        r#"{"type":"ADDED","object":{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"backup","namespace":"shop","uid":"0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","resourceVersion":"4711","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"},"managedFields":[{}]},"spec":{"schedule":"*/5 * * * *","timeZone":"Europe/Berlin","startingDeadlineSeconds":30,"concurrencyPolicy":"Forbid","suspend":true,"successfulJobsHistoryLimit":3,"jobTemplate":{"metadata":{"labels":{"x":"y"},"annotations":{"n":"o"}},"spec":{"template":{}}}},"status":{"active":[{"kind":"Job","name":"backup-1","uid":"u"}],"lastScheduleTime":"2026-03-01T00:05:00Z","future":[1]}}}"#,
        r#"{"metadata":{"name":"backup-1","namespace":"shop","uid":"u","resourceVersion":"1","annotations":{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2026-03-01T00:05:00Z"},"ownerReferences":[{"kind":"CronJob","name":"backup","uid":"0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","controller":true}]},"status":{"startTime":"2026-03-01T00:05:01Z","conditions":[{"type":"Complete","status":"True"}],"completionTime":"2026-03-01T00:05:09Z"}}"#,
        r#"{"type":"BOOKMARK","object":{"kind":"CronJob","metadata":{"resourceVersion":"7"}}}"#,
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#,
    ];
    let examples = examples.map(|example| example.as_bytes().to_vec());
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "null",
        "true",
        "-1",
        "1e400",
        "9223372036854775808",
        "\"\"",
        "\\u0000",
        "\\ud800",
        "\"metadata\":{}",
        "\"annotations\":null,",
        "\"ownerReferences\":[null],",
        "\"name\":\"x\",",
        "\u{2028}",
    ];
    run(event::run, &examples, &pieces);
}

#[test]
fn explain_accepts_or_refuses_any_text() {
    let world = "apiVersion: batch/v1
kind: CronJob
metadata: {name: hello, namespace: shop, uid: a, creationTimestamp: 2026-05-01T00:00:00Z}
spec:
  schedule: '*/5 * * * *'
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 100
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}
status: {lastScheduleTime: 2026-05-01T00:05:00Z, active: [{name: hello-1, uid: b}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hello-1, namespace: shop, uid: b, ownerReferences: [{kind: CronJob, name: hello, uid: a, controller: true}]}
status: {conditions: [{type: Complete, status: 'True'}], startTime: 2026-05-01T00:05:00Z}
";
    let list = r#"{"kind":"List","items":[{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":"@every 1h","suspend":true,"jobTemplate":{}}}]}"#;
    let examples: Vec<Vec<u8>> = (0..8)
        .flat_map(|how| [world, list].map(|text| [&[how], text.as_bytes()].concat()))
        .collect();
    let pieces = [
        "---\n",
        "\n",
        "  ",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: *a",
        "!!int ",
        "|\n",
        "\"",
        "'",
        "null",
        "~",
        "-1",
        "1e9",
        "2026-05-01T00:00:00Z",
        "31 2",
        "TZ=",
        "kind: Job\n",
        "uid: a\n",
        "\t",
        "#",
    ];
    run(explain::run, &examples, &pieces);
}

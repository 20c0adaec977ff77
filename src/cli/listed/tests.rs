//! Lists are judged by the clock of the API server.

use std::convert::Infallible;

use bytes::Bytes;
use clap::Parser as _;
use http::{Request, Response};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    cli::{
        args::{Cli, Command},
        missed, report,
        ui::Cluster,
    },
    controller::clock::Clock,
    shard::naming,
};

/// A cluster whose clock is ahead, with a CronJob of every minute that missed no run. It keeps three Jobs.
fn cluster(lead: SignedDuration) -> Cluster {
    let now = move || Clock::system(SignedDuration::ZERO, SignedDuration::ZERO).now() + lead;
    let started = now();
    let service = tower::service_fn(move |request: Request<Body>| async move {
        if request.uri().query().is_some_and(|query| query.contains("watch=")) {
            std::future::pending::<()>().await;
        }
        let items = match request.uri().path() {
            "/apis/batch/v1/cronjobs" => vec![cron_job(started)],
            "/apis/batch/v1/jobs" => (0..3).map(|age| job(started, age)).collect(),
            _ => Vec::new(),
        };
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items});
        let date = now().strftime("%a, %d %b %Y %H:%M:%S GMT");
        let answer = Response::builder().header("date", date.to_string());
        let answer = answer.header("content-type", "application/json");
        Ok::<_, Infallible>(answer.body(Full::new(Bytes::from(list.to_string()))).unwrap())
    });
    Cluster {
        client: Client::new(service, "default"),
        name: "test".to_owned(),
        context: None,
        address: "https://127.0.0.1:6443".to_owned(),
        credentials: None,
    }
}

fn slot(started: Timestamp, age_minutes: i64) -> Timestamp {
    Timestamp::from_second((started.as_second() / 60 - age_minutes) * 60).unwrap()
}

fn text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn cron_job(started: Timestamp) -> Value {
    json!({
        "metadata": {"name": "load", "namespace": "data", "uid": "load", "resourceVersion": "1",
            "creationTimestamp": text(started - SignedDuration::from_hours(30))},
        "spec": {"schedule": "* * * * *", "jobTemplate": {}},
        "status": {"lastScheduleTime": text(slot(started, 0))},
    })
}

fn job(started: Timestamp, age_minutes: i64) -> Value {
    let slot = slot(started, age_minutes);
    let name = naming::job_name("load", slot);
    json!({
        "metadata": {"name": &*name, "namespace": "data", "uid": &*name, "resourceVersion": "1",
            "creationTimestamp": text(slot),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": text(slot)},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "load", "uid": "load",
                "controller": true}]},
        "spec": {},
        "status": {"startTime": text(slot), "completionTime": text(slot),
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": text(slot)}]},
    })
}

/// The output of a command with `-o json`.
async fn output(command: &str, lead: SignedDuration) -> Value {
    let line = ["cronwheel", command, "--since", "1h", "-o", "json"];
    let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
    let mut output = Vec::new();
    let parsed = Cli::try_parse_from(line).unwrap().command;
    let printed = if let Command::Report(args) = parsed {
        report::run(&args, cluster(lead), &clock, &mut output, Vec::new()).await
    } else if let Command::Missed(args) = parsed {
        missed::run(&args, cluster(lead), &clock, &mut output, Vec::new()).await
    } else {
        panic!("{command}")
    };
    printed.unwrap();
    serde_json::from_slice(&output).unwrap()
}

#[tokio::test]
async fn a_report_judges_by_the_clock_of_the_api_server() {
    for minutes in [-5, 0, 5, 60 * 26] {
        let report = output("report", SignedDuration::from_mins(minutes)).await;
        let slots = &report["slots"];
        // The minute may have ended meanwhile.
        let n_known = slots["nStarted"].as_u64().unwrap() + slots["nOpen"].as_u64().unwrap();
        assert!((3..=4).contains(&n_known), "{minutes}: {slots}");
        assert_eq!(
            (&slots["nLost"], &slots["nLate"]),
            (&json!(0), &json!(0)),
            "{minutes}: {slots}"
        );
        let n_unknown = slots["nUnknown"].as_u64().unwrap();
        assert!((56..=58).contains(&n_unknown), "{minutes}: {slots}");
        let notes = report["notes"].to_string();
        assert_eq!(notes.contains("by which this report judges"), minutes != 0, "{notes}");
    }
}

#[tokio::test]
async fn missed_judges_by_the_clock_of_the_api_server() {
    for minutes in [-5, 0, 5] {
        let missed = output("missed", SignedDuration::from_mins(minutes)).await;
        assert!(missed["nSlots"].as_u64().unwrap() <= 1, "{minutes}: {missed}");
        assert!(
            (56..=58).contains(&missed["nUnknown"].as_u64().unwrap()),
            "{minutes}: {missed}"
        );
        let n_entries = missed["nEntries"].as_u64().unwrap();
        assert!(
            n_entries <= 1,
            "slots of which nothing is known are not listed: {missed}"
        );
        let notes = missed["notes"].to_string();
        assert!(notes.contains(" due slots nothing is known"), "{notes}");
        assert_eq!(notes.contains("by which this list judges"), minutes != 0, "{notes}");
    }
}

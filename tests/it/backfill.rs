//! `cronwheel missed` and `cronwheel backfill` in one process with the in-memory API server and its Job runner.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, JobRunner, JobRunnerOptions, Options, Resource, Rule, Verb, WallClock};
use clap::Parser as _;
use cronwheel::{
    cli::{
        args::{Cli, Command},
        backfill::{self, Console},
        error::CommandError,
        missed,
        ui::Cluster,
    },
    controller::clock::Clock,
    kube_api::{ApiClient, JsonApi, WriteConnections},
};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// Captures the printed text. Clones share one buffer.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn at(text: &str) -> Timestamp {
    format!("2026-11-27T{text}Z").parse().unwrap()
}

/// A cluster without a controller, whose Jobs run for 20 seconds.
struct World {
    api: Api,
    clock: Clock,
}

/// What a command printed, its notes, and its error.
struct Ended {
    text: String,
    notes: String,
    error: Option<String>,
}

impl World {
    /// The CronJob `shop/load` was created at 02:00:30 with these fields, and is due every minute; it is the given time now.
    async fn at(now: &str, fields: Value) -> World {
        let mut options = Options::default();
        options.namespaces.push("shop".to_owned());
        let begun = at("02:00:30");
        let world = World {
            api: Api::new(options, WallClock::starting_at(begun)),
            clock: Clock::simulated(begun),
        };
        let template = json!({
            "metadata": {"annotations": {"run-for": "20s"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
        });
        let mut object = json!({"metadata": {"name": "load"}, "spec": {
            "schedule": "* * * * *",
            "timeZone": "Europe/Berlin",
            "jobTemplate": {"metadata": {"labels": {"team": "a"}}, "spec": {"template": template}},
        }});
        for (name, value) in fields.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        world.post("cronjobs", &object).await;
        let elapsed = at(now).duration_since(begun).unsigned_abs();
        tokio::time::sleep(elapsed).await;
        world
    }

    fn client(&self) -> Client {
        Client::new(self.api.client("user"), "shop")
    }

    async fn post(&self, plural: &str, object: &Value) {
        let request = Request::post(format!("/apis/batch/v1/namespaces/shop/{plural}"));
        let request = request.header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let _: Value = self.client().request(request).await.unwrap();
    }

    async fn freeze_until(&self, until: &str) {
        let patch = json!({"metadata": {"annotations": {"cronwheel.dev/freeze-until": until}}});
        let request = Request::patch("/api/v1/namespaces/shop").header("content-type", "application/merge-patch+json");
        let request = request.body(patch.to_string().into_bytes()).unwrap();
        let _: Value = self.client().request(request).await.unwrap();
    }

    async fn jobs(&self) -> Vec<Value> {
        let request = Request::get("/apis/batch/v1/namespaces/shop/jobs")
            .body(Vec::new())
            .unwrap();
        let list: Value = self.client().request(request).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    async fn job_names(&self) -> Vec<String> {
        let names = self.jobs().await.into_iter();
        names
            .map(|job| job["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The creation time of each Job, in seconds after 02:00.
    async fn creation_seconds(&self) -> Vec<i64> {
        let created = |job: &Value| {
            job["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap()
                .parse::<Timestamp>()
        };
        let jobs = self.jobs().await;
        jobs.iter()
            .map(|job| created(job).unwrap().duration_since(at("02:00:00")).as_secs())
            .collect()
    }

    fn cluster(&self) -> Cluster {
        Cluster {
            client: self.client(),
            name: "test".to_owned(),
            context: Some("test".to_owned()),
            address: "https://test.example.com/".to_owned(),
            credentials: None,
        }
    }

    async fn missed(&self, arguments: &[&str]) -> String {
        let line = [&["cronwheel", "missed"], arguments].concat();
        let Command::Missed(args) = Cli::parse_from(line).command else {
            panic!("not missed");
        };
        let printed = Printed::default();
        let ended = missed::run(&args, self.cluster(), &self.clock, printed.clone(), io::sink()).await;
        ended.unwrap();
        printed.text()
    }

    /// Runs `backfill load` while Jobs run, until it ends.
    async fn backfill(&self, arguments: &[&str]) -> Ended {
        self.backfill_until(arguments, std::future::pending()).await
    }

    /// Runs `backfill load` until it ends or is interrupted.
    async fn backfill_until(&self, arguments: &[&str], interrupted: impl Future<Output = ()>) -> Ended {
        let line = [&["cronwheel", "backfill", "load"], arguments].concat();
        let Command::Backfill(args) = Cli::parse_from(line).command else {
            panic!("not backfill");
        };
        let sources = backfill::Sources {
            cluster: self.cluster(),
            writes: ApiClient::new(WriteConnections::from_clients(vec![self.client()])),
            namespaces: JsonApi::new(self.client()),
            namespace: "shop".to_owned(),
        };
        let (printed, notes) = (Printed::default(), Printed::default());
        let console = Console::new(printed.clone(), false);
        let listen = || Ok::<_, CommandError>(interrupted);
        let command = backfill::run(&args, sources, &self.clock, listen, console, notes.clone());
        let runner = JobRunner::new(self.api.clone(), JobRunnerOptions::default());
        let ended = tokio::select! {
            ended = command => ended,
            () = runner.run() => panic!("the runner ended"),
        };
        Ended {
            text: printed.text(),
            notes: notes.text(),
            error: ended.err().map(|error| error.to_string()),
        }
    }
}

const FOUR: [&str; 4] = ["load-29929081", "load-29929082", "load-29929083", "load-29929084"];

#[tokio::test(start_paused = true)]
async fn missed_names_the_command_that_starts_the_slots() {
    let world = World::at("02:04:30", json!({})).await;
    let text = world.missed(&["-n", "shop"]).await;
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("shop ")).collect();
    assert_eq!(
        rows,
        [
            "shop        load          3   2026-11-27T02:01:00Z   2026-11-27T02:03:00Z   NotStarted: no controller started it, or its Job was refused",
            "shop        load          1   2026-11-27T02:04:00Z   2026-11-27T02:04:00Z   Open: no Job yet",
        ],
        "{text}"
    );
    let command =
        "cronwheel backfill load -n shop --from 2026-11-27T02:01:00Z --to 2026-11-27T02:03:00Z --context=test";
    assert_eq!(text.lines().last().map(str::trim), Some(command));
    let document: Value = serde_json::from_str(&world.missed(&["-o", "json"]).await).unwrap();
    assert_eq!(
        (&document["nSlots"], &document["missed"][0]["command"]),
        (&json!(4), &json!(command))
    );
}

#[tokio::test(start_paused = true)]
async fn backfill_starts_each_slot_once() {
    let world = World::at("02:04:30", json!({})).await;
    let plan = "shop/load from 2026-11-27T01:04:30Z to 2026-11-27T02:04:30Z: 4 slots to start\n";
    let dry = world.backfill(&["--from", "1h", "--dry-run"]).await;
    assert!(dry.error.is_none() && dry.text.starts_with(plan), "{}", dry.text);
    let first = "would start load-29929081 for 2026-11-27T02:01:00Z: no controller started it, or its Job was refused";
    assert_eq!(dry.text.lines().nth(1), Some(first));
    assert_eq!(world.api.count(Resource::Job), 0);

    let done = world.backfill(&["--from", "1h"]).await;
    assert_eq!(done.error, None, "{}", done.text);
    let expected = "\
started load-29929081 for 2026-11-27T02:01:00Z
load-29929081 succeeded
started load-29929082 for 2026-11-27T02:02:00Z
load-29929082 succeeded
started load-29929083 for 2026-11-27T02:03:00Z
load-29929083 succeeded
started load-29929084 for 2026-11-27T02:04:00Z
load-29929084 succeeded
4 Jobs started: 4 succeeded
";
    assert_eq!(done.text, format!("{plan}{expected}"));
    assert_eq!(world.job_names().await, FOUR);

    let version = world.api.version();
    let window = ["--from", "2026-11-27T02:01:00Z", "--to", "2026-11-27T02:04:00Z"];
    let again = world.backfill(&window).await;
    assert_eq!(again.error, None);
    assert!(
        again.text.ends_with("0 slots to start, 4 have a Job\n"),
        "{}",
        again.text
    );
    assert_eq!(world.api.version(), version, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_in_a_frozen_namespace() {
    let world = World::at("02:04:30", json!({})).await;
    world.freeze_until("2026-11-27T02:05:00Z").await;
    let refused = world.backfill(&["--from", "1h"]).await.error.expect("a refusal");
    let (frozen, remedy) = refused.split_once("; ").expect("a remedy");
    assert!(frozen.starts_with("namespace shop is frozen until "), "{refused}");
    assert_eq!(remedy, "wait for its end, or end it: cronwheel thaw shop");
    assert_eq!(world.api.count(Resource::Job), 0);

    world.freeze_until("2026-11-27T02:04:30Z").await;
    assert_eq!(world.backfill(&["--from", "1h"]).await.error, None);
    assert_eq!(world.api.count(Resource::Job), 4);
}

#[tokio::test(start_paused = true)]
async fn a_backfilled_job_is_that_of_its_slot() {
    let world = World::at("02:01:30", json!({})).await;
    assert_eq!(world.backfill(&["--from", "1h"]).await.error, None);
    let job = world.jobs().await.remove(0);
    let metadata = &job["metadata"];
    assert_eq!(metadata["name"], "load-29929081");
    assert_eq!(metadata["labels"]["team"], "a");
    assert_eq!(
        metadata["annotations"],
        json!({
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-27T03:01:00+01:00",
            "cronwheel.dev/created-under": "backfill",
        })
    );
    let owner = &metadata["ownerReferences"][0];
    assert_eq!((&owner["name"], &owner["controller"]), (&json!("load"), &json!(true)));
    assert_eq!(job["spec"]["template"]["metadata"]["annotations"]["run-for"], "20s");
}

#[tokio::test(start_paused = true)]
async fn parallel_is_the_number_of_jobs_that_run() {
    for (parallel, gaps) in [("1", [20, 20, 20]), ("2", [0, 20, 0]), ("9", [0, 0, 0])] {
        let world = World::at("02:04:30", json!({})).await;
        let done = world.backfill(&["--from", "1h", "--parallel", parallel]).await;
        assert_eq!(done.error, None, "{}", done.text);
        let seconds = world.creation_seconds().await;
        for (pair, gap) in seconds.windows(2).zip(gaps) {
            let found = pair[1] - pair[0];
            // The Jobs are looked at every second.
            assert!((gap..gap + 3).contains(&found), "{parallel}: {seconds:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_backfill_goes_on_where_it_stopped() {
    let world = World::at("02:04:30", json!({})).await;
    let interrupted = tokio::time::sleep(Duration::from_secs(25));
    let first = world.backfill_until(&["--from", "1h"], interrupted).await;
    let error = first.error.unwrap();
    assert_eq!(
        error,
        "interrupted: 2 Jobs started: 1 succeeded. Jobs that run go on. To continue: cronwheel backfill load -n shop \
         --from 2026-11-27T02:03:00Z --to 2026-11-27T02:04:30Z --include-unknown --context=test"
    );
    assert_eq!(world.job_names().await, FOUR[..2]);

    // The second Job runs, and the third one waits for it.
    let second = world
        .backfill(&["--from", "2026-11-27T02:01:00Z", "--to", "2026-11-27T02:04:00Z"])
        .await;
    assert_eq!(second.error, None, "{}", second.text);
    let expected = "\
: 2 slots to start, 2 have a Job
Job load-29929082 runs already and counts towards --parallel
load-29929082 succeeded
started load-29929083 for 2026-11-27T02:03:00Z
";
    assert!(second.text.contains(expected), "{}", second.text);
    assert_eq!(world.job_names().await, FOUR);
}

#[tokio::test(start_paused = true)]
async fn unanswered_create_doubles_no_job() {
    let world = World::at("02:02:30", json!({})).await;
    let rule = Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Create],
        times_max: Some(1),
        ..Rule::new(Fault::DropAfter)
    };
    world.api.faults().add(rule);
    let done = world.backfill(&["--from", "1h"]).await;
    assert_eq!(done.error, None, "{}", done.text);
    assert!(done.text.ends_with("2 Jobs started: 2 succeeded\n"), "{}", done.text);
    assert_eq!(world.job_names().await, FOUR[..2]);
}

#[tokio::test(start_paused = true)]
async fn refused_create_ends_the_backfill() {
    let world = World::at("02:02:30", json!({})).await;
    let rule = Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Create],
        ..Rule::new(Fault::NotPermitted)
    };
    world.api.faults().add(rule);
    let error = world.backfill(&["--from", "1h"]).await.error.unwrap();
    assert!(error.starts_with("cannot create Job shop/load-29929081: "), "{error}");
    assert!(
        error.ends_with("; the account needs create on jobs in the namespace"),
        "{error}"
    );
    assert_eq!(world.api.count(Resource::Job), 0);
}

#[tokio::test(start_paused = true)]
async fn foreign_job_of_the_name_is_left_alone() {
    let world = World::at("02:02:30", json!({})).await;
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let foreign = json!({"metadata": {"name": FOUR[0]}, "spec": {"template": template}});
    world.post("jobs", &foreign).await;
    let done = world.backfill(&["--from", "1h"]).await;
    let expected = "load-29929081 for 2026-11-27T02:01:00Z is not started: another Job has the name\n";
    assert!(done.text.contains(expected), "{}", done.text);
    assert_eq!(done.error.as_deref(), Some("1 Job failed or not started"));
    assert_eq!(world.job_names().await, FOUR[..2]);
}

/// The Job of the controller may have ended and been deleted by then, so nothing proves that the slot was missed.
#[tokio::test(start_paused = true)]
async fn slot_that_a_controller_reaches_meanwhile_is_left_to_it() {
    let world = World::at("02:02:30", json!({})).await;
    let reach = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let status = json!({"status": {"lastScheduleTime": "2026-11-27T02:02:00Z"}}).to_string();
        let request = Request::patch("/apis/batch/v1/namespaces/shop/cronjobs/load/status");
        let request = request.header("content-type", "application/merge-patch+json");
        let _: Value = world
            .client()
            .request(request.body(status.into_bytes()).unwrap())
            .await
            .unwrap();
    };
    let (done, ()) = tokio::join!(world.backfill(&["--from", "1h"]), reach);
    assert_eq!(done.error, None, "{}", done.text);
    let expected = "load-29929082 for 2026-11-27T02:02:00Z is left to the controller, which has reached the slot\n";
    assert!(done.text.contains(expected), "{}", done.text);
    assert!(
        done.text
            .ends_with("1 Job started: 1 succeeded; 1 left to the controller\n"),
        "{}",
        done.text
    );
    assert_eq!(world.job_names().await, FOUR[..1]);
}

#[tokio::test(start_paused = true)]
async fn suspended_slots_start_and_notes_warn() {
    let fields = json!({"suspend": true, "concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 1});
    let world = World::at("02:02:30", fields).await;
    let done = world.backfill(&["--from", "1h"]).await;
    assert_eq!(done.error, None, "{}", done.text);
    assert_eq!(world.job_names().await, FOUR[..2]);
    assert_eq!(done.notes.lines().count(), 2, "{}", done.notes);
    assert!(
        done.notes.contains("note: successfulJobsHistoryLimit is 1: "),
        "{}",
        done.notes
    );
    assert!(
        done.notes.contains("note: concurrencyPolicy is Replace: "),
        "{}",
        done.notes
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_start_is_an_error() {
    let world = World::at("02:30:30", json!({})).await;
    for (arguments, expected) in [
        (
            &["--from", "1h", "--to", "2026-11-27T03:00:00Z"][..],
            "is in the future",
        ),
        (&["--from", "1h", "--to", "2h"], "exchange them"),
        (
            &["--from", "1h"],
            "30 Jobs are more than 20, and standard input is no terminal",
        ),
        (
            &["--from", "1h", "-n", "default"],
            "CronJob default/load is not in the cluster",
        ),
    ] {
        let error = world.backfill(arguments).await.error.unwrap();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert_eq!(world.api.count(Resource::Job), 0);
}

#[tokio::test(start_paused = true)]
async fn more_slots_than_one_call_may_start_are_an_error() {
    let world = World::at("02:00:40", json!({})).await;
    tokio::time::sleep(Duration::from_hours(7 * 24)).await;
    let error = world.backfill(&["--from", "300h"]).await.error.unwrap();
    assert!(
        error.contains("has more than 10000 slots; give a shorter time"),
        "{error}"
    );
}

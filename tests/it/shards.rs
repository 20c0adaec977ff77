//! `cronwheel shards` against the in-memory API: its requests, its output, and its errors.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, Options, Resource, Rule, WallClock};
use clap::Parser as _;
use cronwheel::{
    cli::{
        args::{Cli, Command},
        error::CommandError,
        shards::{self, ShardsArgs, Sources},
    },
    controller::clock::Clock,
    coordination::annotation,
    shard::Term,
};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::leases::{TIMEOUT, client, every_server::done, held, leases, member, shard, write};

const BEGUN: &str = "2026-01-02T03:04:30Z";

/// Captures the printed text. Clones share one buffer.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn last_line(&self) -> String {
        self.text().lines().last().unwrap_or_default().to_owned()
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

fn begun() -> Timestamp {
    BEGUN.parse().unwrap()
}

fn api() -> Api {
    let mut options = Options::default();
    options.namespaces.push("shop".to_owned());
    Api::new(options, WallClock::starting_at(begun()))
}

fn args(arguments: &[&str]) -> ShardsArgs {
    let command = Cli::parse_from([&["cronwheel", "shards"], arguments].concat()).command;
    let Command::Shards(args) = command else {
        panic!("{command:?}");
    };
    args
}

async fn show(api: &Api, arguments: &[&str], printed: Printed) -> Result<(), CommandError> {
    show_with_notes(api, arguments, printed, Printed::default()).await
}

async fn show_with_notes(api: &Api, arguments: &[&str], printed: Printed, notes: Printed) -> Result<(), CommandError> {
    let args = args(arguments);
    let sources = Sources {
        leases: client(api),
        cron_jobs: client(api),
        namespaces: shards::namespaces(args.lease_namespace.as_deref(), "other"),
    };
    shards::run(&args, sources, &Clock::simulated(begun()), printed, notes).await
}

async fn create_cron_job(client: &Client, namespace: &str, name: &str, schedule: &str) {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let object = json!({"metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}});
    let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    let _: Value = client.request(request).await.unwrap();
}

/// Creates twenty CronJobs, and the Leases of one member that leads all shards but the last and works in all
/// namespaces.
async fn fleet(api: &Api) {
    fleet_of(api, "*").await;
}

/// Like [`fleet`], with a member that works in these namespaces.
async fn fleet_of(api: &Api, namespaces: &str) {
    fleet_with(api, &format!("time-zone=UTC namespaces={namespaces}")).await;
}

/// Like [`fleet`], with a member with these settings.
async fn fleet_with(api: &Api, settings: &str) {
    let leases = leases(client(api), "kube-system");
    let holder = "pod-a/a/0000000000000001";
    let mut join = held(member("a"), holder);
    join.annotations.insert(annotation::ACCEPTS, Some("now".into()));
    join.annotations.insert(annotation::SETTINGS, Some(settings.into()));
    done(leases.create(&join, begun(), TIMEOUT).await);
    for number in 0..255 {
        let mut take = held(shard(number), holder);
        (take.term, take.is_acquisition) = (Some(Term(1)), true);
        done(leases.create(&take, begun(), TIMEOUT).await);
    }
    for number in 0..20 {
        create_cron_job(&client(api), "default", &format!("c{number}"), "*/5 * * * *").await;
    }
}

#[tokio::test(start_paused = true)]
async fn shards_command_lists_all_shards_with_their_cron_jobs() {
    let api = api();
    fleet(&api).await;
    let printed = Printed::default();
    show(&api, &["--all"], printed.clone()).await.unwrap();
    let text = printed.text();
    let head = "namespace kube-system: 256 shards, 255 of them led; 20 CronJobs, hashed by fnv1a64-uid-10";
    assert_eq!(text.lines().next(), Some(head));
    assert_eq!(text.lines().filter(|line| line.contains("pod-a")).count(), 256);
    assert!(text.lines().any(|line| line.ends_with("no Lease")));

    let printed = Printed::default();
    show(&api, &["-o", "json"], printed.clone()).await.unwrap();
    let document: Value = serde_json::from_str(&printed.text()).unwrap();
    let shards = document["shards"].as_array().unwrap();
    let n_cron_jobs: u64 = shards.iter().map(|shard| shard["cronJobs"].as_u64().unwrap()).sum();
    assert_eq!(n_cron_jobs, 20);
    for shard in shards {
        let next = (shard["cronJobs"] != 0).then_some("2026-01-02T03:05:00Z");
        assert_eq!(shard["nextRun"], json!(next), "{shard}");
    }
}

#[tokio::test(start_paused = true)]
async fn cronjob_flag_prints_shard_leader_and_next_run() {
    let api = api();
    fleet(&api).await;
    create_cron_job(&client(&api), "default", "broken", "@sometimes").await;
    let run = async |arguments: &[&str]| {
        let printed = Printed::default();
        show(&api, arguments, printed.clone())
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(printed.text())
    };
    let document = run(&["--cronjob", "default/c3", "-o", "json"]).await.unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let number = &document["shard"];
    assert_eq!(
        document,
        json!({
            "at": "2026-01-02T03:04:30Z", "namespace": "default", "name": "c3", "shard": number, "isLed": true,
            "holder": {"pod": "pod-a", "podUid": "a", "incarnation": "0000000000000001"},
            "nextRun": "2026-01-02T03:05:00Z",
        })
    );
    assert_eq!(
        run(&["--cronjob", "default/c3"]).await.unwrap(),
        format!(
            "CronJob default/c3: shard {number} of 256, led by pod-a; next run due in 30s, Fri 2026-01-02 03:05 UTC\n"
        )
    );
    let text = run(&["--cronjob", "default/broken"]).await.unwrap();
    assert!(
        text.ends_with(", led by pod-a; no run is due: cronwheel explain says why\n"),
        "{text}"
    );
    assert_eq!(
        run(&["--cronjob", "shop/c3"]).await.unwrap_err(),
        "CronJob shop/c3 is not in the cluster, or cannot be decoded; check namespace and name"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_installation_error_names_the_searched_namespaces() {
    for (arguments, namespaces) in [(&[][..], "other or kube-system"), (&["--lease-namespace", "x"], "x")] {
        let error = show(&api(), arguments, Printed::default()).await.unwrap_err();
        let expected = format!(
            "no replica has a Lease in namespace {namespaces}; give --lease-namespace, or --installation where it has another \
             name. cronwheel dev has no Leases"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_read_error_names_the_missing_permission() {
    let api = api();
    fleet(&api).await;
    api.faults().add(Rule {
        resource: Some(Resource::Lease),
        ..Rule::new(Fault::Forbid("not you".to_owned()))
    });
    let error = show(&api, &[], Printed::default()).await.unwrap_err();
    assert!(error.to_string().contains("list and watch on leases"), "{error}");
}

fn forbid_cron_jobs(namespace: Option<&str>) -> Rule {
    Rule {
        resource: Some(Resource::CronJob),
        namespace: namespace.map(str::to_owned),
        ..Rule::new(Fault::Forbid("not you".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn members_and_shards_are_listed_without_the_right_to_list_cron_jobs() {
    let api = api();
    fleet(&api).await;
    api.faults().add(forbid_cron_jobs(None));
    let (printed, notes) = (Printed::default(), Printed::default());
    show_with_notes(&api, &["--all"], printed.clone(), notes.clone())
        .await
        .unwrap();
    let text = printed.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "namespace kube-system: 256 shards, 255 of them led; hashed by fnv1a64-uid-10"
    );
    assert_eq!(lines[5], "SHARD   BUCKETS     HOLDER   TERM   AGE   STATE");
    let note = notes.text();
    assert!(
        note.starts_with("cronwheel: note: cannot read the CronJobs: "),
        "{note}"
    );
    assert!(
        note.ends_with("; the account needs list and watch on cronjobs in all namespaces\n"),
        "{note}"
    );

    let printed = Printed::default();
    show(&api, &["-o", "json"], printed.clone()).await.unwrap();
    let document: Value = serde_json::from_str(&printed.text()).unwrap();
    assert_eq!(document["shards"][0]["cronJobs"], Value::Null);
    let error = show(&api, &["--cronjob", "default/c3"], Printed::default())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("list and watch on cronjobs in namespace default"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_cron_jobs_in_the_namespaces_of_the_installation_are_read() {
    let api = api();
    fleet_of(&api, "default,shop").await;
    create_cron_job(&client(&api), "shop", "s", "*/5 * * * *").await;
    create_cron_job(&client(&api), "kube-system", "k", "*/5 * * * *").await;
    let printed = Printed::default();
    show(&api, &[], printed.clone()).await.unwrap();
    let text = printed.text();
    assert!(text.contains(" led; 21 CronJobs, "), "{text}");
    let error = show(&api, &["--cronjob", "kube-system/k"], Printed::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "CronJob kube-system/k: not in the namespaces default, shop, in which the installation works; check the \
         namespace and --installation"
    );

    api.faults().add(forbid_cron_jobs(Some("shop")));
    show(&api, &["--cronjob", "default/c3"], Printed::default())
        .await
        .unwrap();
    let notes = Printed::default();
    show_with_notes(&api, &[], Printed::default(), notes.clone())
        .await
        .unwrap();
    let note = notes.text();
    assert!(
        note.ends_with("; the account needs list and watch on cronjobs in namespace shop\n"),
        "{note}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_cron_jobs_of_managed_namespaces_are_shown() {
    let api = api();
    fleet_with(&api, "time-zone=UTC namespace-selector=team=a namespaces=*").await;
    create_cron_job(&client(&api), "shop", "report", "0 * * * *").await;
    let label = Request::patch("/api/v1/namespaces/shop").header("content-type", "application/merge-patch+json");
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    let label = label.body(labels.to_string().into_bytes()).unwrap();
    let _: Value = client(&api).request(label).await.unwrap();
    let printed = Printed::default();
    show(&api, &[], printed.clone()).await.unwrap();
    let text = printed.text();
    assert!(text.contains("255 of them led; 1 CronJobs, "), "{text}");
    show(&api, &["--cronjob", "shop/report"], Printed::default())
        .await
        .unwrap();
    let error = show(&api, &["--cronjob", "default/c0"], Printed::default())
        .await
        .unwrap_err();
    let expected = "CronJob default/c0: the installation does not manage namespace default, which does not match \
                    --namespace-selector team=a; select it: kubectl label namespace NAME team=a";
    assert_eq!(error.to_string(), expected);
    // Without the right to list namespaces, the command says so.
    api.faults().add(Rule {
        resource: Some(Resource::Namespace),
        ..Rule::new(Fault::NotPermitted)
    });
    let error = show(&api, &[], Printed::default()).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the namespaces that the installation manages: "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn watch_flag_works_without_the_right_to_list_cron_jobs() {
    let api = api();
    fleet(&api).await;
    api.faults().add(forbid_cron_jobs(None));
    let (printed, notes) = (Printed::default(), Printed::default());
    let watched = {
        let (api, printed, notes) = (api.clone(), printed.clone(), notes.clone());
        tokio::spawn(async move { show_with_notes(&api, &["-w"], printed, notes).await })
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut taken = held(shard(255), "pod-a/a/0000000000000001");
    taken.term = Some(Term(1));
    done(
        leases(client(&api), "kube-system")
            .create(&taken, begun(), TIMEOUT)
            .await,
    );
    tokio::time::sleep(Duration::from_mins(1)).await;
    let line = printed.last_line();
    assert!(line.contains("shard 255: holder - -> pod-a"), "{line}");
    assert_eq!(notes.text().lines().count(), 1, "{}", notes.text());
    assert!(!watched.is_finished());
    watched.abort();
}

#[tokio::test(start_paused = true)]
async fn watch_flag_prints_changes_across_broken_watches() {
    let api = api();
    fleet(&api).await;
    let printed = Printed::default();
    let watched = {
        let (api, printed) = (api.clone(), printed.clone());
        tokio::spawn(async move { show(&api, &["-w"], printed).await })
    };
    let leases = leases(client(&api), "kube-system");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let n_before = printed.text().lines().count();
    let mut taken = held(shard(255), "pod-a/a/0000000000000001");
    taken.term = Some(Term(1));
    let taken = done(leases.create(&taken, begun(), TIMEOUT).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let line = printed.last_line();
    assert!(
        line.ends_with("shard 255: holder - -> pod-a; term - -> 1; state no Lease -> led"),
        "{line}"
    );
    assert_eq!(printed.text().lines().count(), n_before + 1);

    // All watches break, and the server loses the versions at which they could resume.
    api.faults().add(Rule {
        during: Duration::ZERO..Duration::from_secs(20),
        ..Rule::new(Fault::Outage)
    });
    tokio::time::sleep(Duration::from_secs(30)).await;
    let mut given = write(shard(255));
    (given.holder, given.term) = (Some("".into()), Some(Term(2)));
    done(leases.patch(&given, taken.resource_version, begun(), TIMEOUT).await);
    api.compact();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let line = printed.last_line();
    assert!(
        line.ends_with("shard 255: holder pod-a -> -; term 1 -> 2; state led -> no holder"),
        "{line}"
    );
    assert!(!watched.is_finished());
    watched.abort();
}

//! A world: the objects that exist when the controllers start, the steps that follow, and the known differences.
//!
//! A world is a file in `tests/worlds` with YAML documents. The first is the [`Head`]. The others are objects, with
//! CronJobs first. Objects are abbreviated: `kind`, `name`, and the relevant fields. `uid:Job/x` refers to the uid of
//! that object.

use std::{fs, time::Duration};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::kubernetes::{from_json, merge, resource};

pub(super) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds");

/// The first document of a world.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Head {
    about: String,
    /// The time of the controllers' clocks when they start. It is later than any test run, because the objects are
    /// created before.
    from: Timestamp,
    /// The duration until the comparison, in seconds.
    seconds: u64,
    #[serde(default)]
    short: bool,
    #[serde(default)]
    then: Vec<Step>,
    #[serde(default)]
    differences: Vec<Difference>,
}

/// A step that happens while the controllers run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    /// Seconds after their start.
    at: u64,
    kind: String,
    name: String,
    /// A merge patch. `None` deletes the object.
    patch: Option<Value>,
}

/// A known and intended difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Difference {
    /// The rule whose row in the table of differences describes it.
    pub(super) rule: String,
    /// The prefix of the finding.
    finding: String,
    /// Whether the two may also agree.
    #[serde(default)]
    sometimes: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) from: Timestamp,
    pub(super) is_short: bool,
    pub(super) differences: Vec<Difference>,
    duration: Duration,
    then: Vec<Step>,
    objects: Vec<Value>,
}

impl World {
    pub(super) fn read_all() -> Vec<World> {
        let entries = fs::read_dir(FOLDER).expect("a folder of worlds");
        let mut worlds: Vec<World> = entries
            .map(|entry| {
                let path = entry.expect("an entry").path();
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                World::read(name, &fs::read_to_string(&path).expect("a text"))
            })
            .collect();
        worlds.sort_by(|a, b| a.name.cmp(&b.name));
        worlds
    }

    fn read(name: String, text: &str) -> World {
        let (head, objects) = text
            .split_once("\n---\n")
            .unwrap_or_else(|| panic!("{name} has no objects"));
        let head: Head = serde_saphyr::from_str(head).unwrap_or_else(|error| panic!("{name}: {error}"));
        let objects = objects.split("\n---\n").map(|object| {
            let short: Value = serde_saphyr::from_str(object).unwrap_or_else(|error| panic!("{name}: {error}"));
            expanded(short)
        });
        World {
            objects: objects.collect(),
            name,
            about: head.about,
            from: head.from,
            is_short: head.short,
            differences: head.differences,
            duration: Duration::from_secs(head.seconds),
            then: head.then,
        }
    }

    /// Executes the steps of the world in both namespaces at once.
    pub(super) async fn run(&self, places: &[Place]) {
        let begun = tokio::time::Instant::now();
        for step in &self.then {
            tokio::time::sleep_until(begun + Duration::from_secs(step.at)).await;
            for place in places {
                place.take_step(step).await;
            }
        }
        tokio::time::sleep_until(begun + self.duration).await;
    }

    /// The findings that are no declared difference of this world, and the declared differences that were not found.
    pub(super) fn unexpected(&self, findings: &[String]) -> Vec<String> {
        let explains = |difference: &Difference, finding: &String| finding.starts_with(&difference.finding);
        let is_new = |finding: &&String| !self.differences.iter().any(|difference| explains(difference, finding));
        let mut unexpected: Vec<String> = findings.iter().filter(is_new).cloned().collect();
        for difference in self.differences.iter().filter(|difference| !difference.sometimes) {
            if !findings.iter().any(|finding| explains(difference, finding)) {
                unexpected.push(format!(
                    "no longer a difference ({}): {}",
                    difference.rule, difference.finding
                ));
            }
        }
        unexpected
    }
}

/// Expands an abbreviated object to a complete one.
fn expanded(mut short: Value) -> Value {
    let mut take = |member: &str| short.as_object_mut().expect("an object").remove(member);
    let (name, of, run) = (take("name"), take("of"), take("run"));
    let ended = [("Complete", take("complete")), ("Failed", take("failed"))];
    let template = match run.as_ref().and_then(Value::as_str) {
        Some("hang") => template(json!({"outcome": "hang"})),
        Some("fail") => template(json!({"outcome": "fail", "run-for": "1s"})),
        Some(duration) => template(json!({"run-for": duration})),
        None => template(json!({"run-for": "1s"})),
    };
    let mut object = match short["kind"].as_str() {
        Some("CronJob") => json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}}),
        Some("Job") => json!({"spec": {"template": template}}),
        other => panic!("a world holds no {other:?}"),
    };
    merge(
        &mut object,
        json!({"apiVersion": "batch/v1", "metadata": {"name": name}}),
    );
    if let Some(of) = of {
        let uid = format!("uid:CronJob/{}", of.as_str().expect("a name"));
        let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": of, "uid": uid, "controller": true,
            "blockOwnerDeletion": true});
        merge(&mut object, json!({"metadata": {"ownerReferences": [owner]}}));
    }
    for (condition, times) in ended {
        if let Some(times) = times {
            merge(&mut object, json!({"status": ended_status(condition, &times)}));
        }
    }
    merge(&mut object, short);
    object
}

fn template(annotations: Value) -> Value {
    let container = json!({"name": "work", "image": "work"});
    json!({"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}})
}

/// The status of a finished Job. `times` are start and end.
fn ended_status(condition: &str, times: &Value) -> Value {
    let (start, end) = (&times[0], &times[1]);
    let is_complete = condition == "Complete";
    let before = if is_complete {
        "SuccessCriteriaMet"
    } else {
        "FailureTarget"
    };
    let conditions = [before, condition]
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": end, "lastTransitionTime": end}));
    let mut status = json!({"startTime": start, "conditions": conditions});
    if is_complete {
        merge(&mut status, json!({"succeeded": 1, "completionTime": end}));
    } else {
        merge(&mut status, json!({"failed": 1}));
    }
    status
}

/// The namespace in which one of the controllers runs a world.
pub(super) struct Place {
    pub(super) namespace: String,
    client: Client,
}

impl Place {
    pub(super) fn new(client: &Client, world: &World, whose: &str) -> Place {
        Place {
            namespace: format!("{}-{whose}", world.name.replace('_', "-")),
            client: client.clone(),
        }
    }

    pub(super) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = if kind == "Event" { "" } else { "batch" };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(group, kind))
    }

    /// Creates the namespace and the objects. Then writes the fields that can only be set by updates.
    pub(super) async fn create(&self, world: &World, etcd_address: &str) {
        let namespaces: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource("", "Namespace"));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        namespaces
            .create(&PostParams::default(), &from_json(namespace))
            .await
            .expect("a namespace");
        let mut names = vec![("namespace:".to_owned(), self.namespace.clone())];
        for object in &world.objects {
            let mut object = resolved(object, &names);
            object.as_object_mut().expect("an object").remove("stored");
            let (kind, name) = (object["kind"].as_str().expect("a kind"), &object["metadata"]["name"]);
            let created = self
                .api(kind)
                .create(&PostParams::default(), &from_json(object.clone()))
                .await;
            let created = created.unwrap_or_else(|error| panic!("{}: {name}: {error}", world.name));
            let uid = created.metadata.uid.expect("a uid");
            names.push((format!("uid:{kind}/{}", name.as_str().expect("a name")), uid));
        }
        for object in &world.objects {
            let mut object = resolved(object, &names);
            let stored = object.as_object_mut().and_then(|object| object.remove("stored"));
            let kind = object["kind"].as_str().expect("a kind");
            let name = object["metadata"]["name"].as_str().expect("a name");
            if let Some(stored) = stored {
                self.store(kind, name, stored, etcd_address).await;
            }
            if object["status"].is_null() {
                continue;
            }
            let patch = Patch::Merge(json!({"status": object["status"]}));
            let written = self.api(kind).patch_status(name, &PatchParams::default(), &patch).await;
            written.unwrap_or_else(|error| panic!("{}: the status of {name}: {error}", world.name));
        }
    }

    /// Stores changes that the API server would refuse directly in etcd.
    async fn store(&self, kind: &str, name: &str, changes: Value, etcd_address: &str) {
        let object = self.api(kind).get(name).await.expect("it was created");
        let mut object = serde_json::to_value(object).expect("JSON");
        merge(&mut object, changes);
        let bytes = |text: String| ByteString(text.into_bytes());
        let key = format!("/registry/{}s/{}/{name}", kind.to_lowercase(), self.namespace);
        let body = json!({"key": bytes(key), "value": bytes(object.to_string())}).to_string();
        let length = body.len();
        let request = format!("POST /v3/kv/put HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut stream = TcpStream::connect(etcd_address).await.expect("etcd");
        stream.write_all(request.as_bytes()).await.expect("etcd reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("etcd answers");
        assert_eq!(answer.split(' ').nth(1), Some("200"), "{answer}");
    }

    async fn take_step(&self, step: &Step) {
        let api = self.api(&step.kind);
        let done = match &step.patch {
            Some(patch) => api
                .patch(&step.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(drop),
            None => api.delete(&step.name, &DeleteParams::background()).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("{}: {step:?}: {error}", self.namespace));
    }
}

/// Replaces references to uids and to the namespace in an object.
fn resolved(object: &Value, names: &[(String, String)]) -> Value {
    let resolve =
        |text: String, (name, uid): &(String, String)| text.replace(&format!("\"{name}\""), &format!("\"{uid}\""));
    let text = names.iter().fold(object.to_string(), resolve);
    serde_json::from_str(&text).expect("it was JSON")
}

pub(super) fn unlisted_and_vanished_differences_are_findings() {
    let text = "about: A world.\nfrom: 2035-05-01T12:00:00Z\nseconds: 1\ndifferences:\n\
                - {rule: B-1.1, finding: \"Job a: only here\"}\n\
                - {rule: B-1.2, finding: \"Event only there\", sometimes: true}\n---\nkind: CronJob\nname: hello\n";
    let world = World::read("a_world".to_owned(), text);
    let unexpected = |findings: &[&str]| {
        let findings: Vec<String> = findings.iter().copied().map(str::to_owned).collect();
        world.unexpected(&findings)
    };
    assert!(unexpected(&["Job a: only here"]).is_empty());
    assert!(unexpected(&["Job a: only here", "Event only there: Normal Such"]).is_empty());
    assert_eq!(
        unexpected(&["Job a: only here", "Job b: only here"]),
        ["Job b: only here"]
    );
    assert_eq!(unexpected(&[]), ["no longer a difference (B-1.1): Job a: only here"]);
}
